"""Every exception Trellis raises on purpose.

All derive from :class:`TrellisError`; those caused by what the user passed in are also
``ValueError``, so that code written for scikit-learn keeps working.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

__all__ = [
    "CheckpointError",
    "ColumnError",
    "CorruptModelError",
    "DataError",
    "InfeasibleError",
    "ParameterError",
    "ParametersError",
    "TemplateError",
    "TrellisError",
]


class TrellisError(Exception):
    """Base class of all errors raised by Trellis.

    Attributes
    ----------
    path : str or None
        The file whose content is to blame, where it is one.
    """

    path: str | None = None


class DataError(TrellisError, ValueError):
    """Input that cannot be used; the message names the place and what was expected."""


class ParameterError(DataError):
    """A parameter with a value it cannot have.

    Parameters
    ----------
    parameter : str
        Its name.
    value
        The value given.
    requirement : str
        What the value must be, after «must be».

    Examples
    --------
    >>> from trellis.errors import ParameterError
    >>> print(ParameterError("l2", -1, "a number of at least 0"))
    l2 must be a number of at least 0, got -1
    """

    def __init__(self, parameter: str, value: Any, requirement: str) -> None:
        super().__init__(parameter, value, requirement)
        self.parameter = parameter
        self.value = value
        self.requirement = requirement

    def __str__(self) -> str:
        return f"{self.parameter} must be {self.requirement}, got {self.value!r:.80}"


class ParametersError(DataError):
    """Parameters with values that do not go together.

    Parameters
    ----------
    text : str
        What is wrong, with a field ``{name}`` where a parameter and its value are to stand.
    **values
        The parameters named in it, with the values they have or should have.

    Examples
    --------
    >>> from trellis.errors import ParametersError
    >>> error = ParametersError("{states} is for {solver}", states="observed", solver="lbfgs")
    >>> print(error)
    states='observed' is for solver='lbfgs'
    >>> error.worded(lambda name, value: f"--{name} {value}")
    '--states observed is for --solver lbfgs'
    """

    def __init__(self, text: str, /, **values: Any) -> None:
        super().__init__(text)
        self.text = text
        self.values = values

    def worded(self, write: Callable[[str, Any], str]) -> str:
        """The message with parameters as the caller writes them."""
        return self.text.format(**{name: write(name, v) for name, v in self.values.items()})

    def __str__(self) -> str:
        return self.worded(lambda name, value: f"{name}={value!r:.80}")


class CheckpointError(DataError):
    """A checkpoint that a run cannot go on from.

    Parameters
    ----------
    code : "other run" or "solver"
        It belongs to another run, or the solver's runs cannot be taken up.
    path : str
        The file.

    Examples
    --------
    >>> from trellis.errors import CheckpointError
    >>> print(CheckpointError("solver", "run.checkpoint"))
    a run of this solver cannot be taken up in the middle: leave out the checkpoint
    """

    _WORDS: ClassVar = {
        "other run": "{} is the checkpoint of a run with other data or parameters; remove it, or "
        "train as it was trained",
        "solver": "a run of this solver cannot be taken up in the middle: leave out the checkpoint",
    }

    def __init__(self, code: str, path: str) -> None:
        super().__init__(code, path)
        self.code = code
        self.path = path

    def __str__(self) -> str:
        return self._WORDS[self.code].format(self.path)


class TemplateError(DataError):
    """A feature template that cannot be read or does not fit the columns at hand."""


class ColumnError(TemplateError):
    """A feature template that needs a column which the data do not have."""


class InfeasibleError(DataError):
    """Constraints that leave no allowed labelling.

    Parameters
    ----------
    reason : str
        What is wrong, after the name of the sample.
    sample : int, optional
        Number of the sample.

    Examples
    --------
    >>> from trellis.errors import InfeasibleError
    >>> print(InfeasibleError("has no allowed labelling", sample=3))
    sample 3 has no allowed labelling
    """

    def __init__(self, reason: str, sample: int | None = None) -> None:
        super().__init__(reason, sample)
        self.reason = reason
        self.sample = sample

    def __str__(self) -> str:
        return self.reason if self.sample is None else f"sample {self.sample} {self.reason}"


class CorruptModelError(TrellisError, ValueError):
    """A model file that is damaged, truncated, not a model file, or from a newer version."""
