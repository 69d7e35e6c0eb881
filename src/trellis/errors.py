"""Every exception Trellis raises on purpose.

All derive from :class:`TrellisError`; those caused by what the user passed in are also
``ValueError``, so that code written for scikit-learn keeps working.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "CorruptModelError",
    "DataError",
    "InfeasibleError",
    "ParameterError",
    "TemplateError",
    "TrellisError",
]


class TrellisError(Exception):
    """Base class of all errors raised by Trellis."""


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


class TemplateError(DataError):
    """A feature template that cannot be read or does not fit the columns at hand."""


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
