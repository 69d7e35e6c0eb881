"""Options of a command from the declared parameters of estimators.

Every option has its parameter's name as ``dest`` and None as default: what is not given stays as
the model has it. A value is read when the command line is, and its range is checked before a model
is made (:func:`given_parameters`).
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from trellis.errors import DataError, ParameterError
from trellis.estimator import Estimator, Parameter, parameters_of

__all__ = ["add_parameters", "given_parameters", "in_words_of_options"]

_ROLE = re.compile(r":\w+:`~?(?:[\w.]*\.)?(\w+)`")


def add_parameters(
    group: argparse._ActionsContainer,
    classes: Sequence[type[Estimator]],
    names: Iterable[str] | None = None,
) -> None:
    """Add the options of parameters that some of the classes have.

    Parameters
    ----------
    group : parser or group of it
        Where the options go.
    classes : sequence of classes
        The estimators that the command may train. A parameter is read as the first of them that
        has it declares it.
    names : iterable of str, optional
        The parameters; by default all that a command line can say.
    """
    tables = {kind: parameters_of(kind) for kind in classes}
    known = {name: p for kind in reversed(classes) for name, p in tables[kind].items()}
    for name in known if names is None else names:
        declared = known[name]
        domain = declared.domain
        if not (domain.is_flag or domain.signs):
            if names is None:
                continue
            raise ValueError(f"no option can say a value of {name}")
        defaults = {
            kind.__name__: _said(table[name].default)
            for kind, table in tables.items()
            if name in table
        }
        how: dict[str, Any]
        if domain.is_flag:
            how = {"action": argparse.BooleanOptionalAction}
        elif all(len(sign) > 1 for sign in domain.signs):
            how = {"type": _reader(declared), "choices": [*map(domain.parse, domain.signs)]}
            how["metavar"] = "{" + ",".join(domain.signs) + "}"
        else:
            how = {"type": _reader(declared), "metavar": "|".join(domain.signs)}
        group.add_argument(
            declared.option, dest=name, default=None, help=_help(declared, defaults), **how
        )


def given_parameters(
    args: argparse.Namespace, kind: type[Estimator], names: Iterable[str] | None = None
) -> dict[str, Any]:
    """The parameters given as options, checked; the others stay as they are.

    Parameters
    ----------
    args : Namespace
        What was parsed.
    kind : class
        The estimator they are for.
    names : iterable of str, optional
        Parameters that the command has options for; by default those of the class. One that the
        class does not have must not be given.

    Raises
    ------
    DataError
        If an option is not for this class, or has a value that it cannot have.
    """
    table = parameters_of(kind)
    given = {}
    for name in table if names is None else names:
        value = getattr(args, name, None)
        if value is None:
            continue
        if name not in table:
            raise DataError(f"--{name.replace('_', '-')} is not for {kind.__name__}")
        try:
            table[name].domain.check(name, value)
        except ParameterError as error:
            raise DataError(in_words_of_options(error, kind)) from None
        given[name] = value
    return given


def in_words_of_options(error: DataError, kind: type[Estimator]) -> str:
    """The message of an error, with a parameter called by its option."""
    declared = None
    if isinstance(error, ParameterError):
        declared = parameters_of(kind).get(error.parameter)
    if declared is None or not isinstance(error, ParameterError):
        return str(error)
    requirement = error.requirement
    if requirement == declared.domain.words:
        requirement = declared.domain.option_words
    return f"{declared.option} must be {requirement}, got {_said(error.value)}"


def _reader(declared: Parameter) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return declared.domain.parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read


def _said(value: object) -> str:
    """A value as a command line has it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else repr(value)


def _help(declared: Parameter, defaults: dict[str, str]) -> str:
    """Help in plain ASCII, with the default, or the defaults by class where they differ."""
    text = _ROLE.sub(r"\1", declared.help).replace("``", "").replace("%", "%%")
    text = text.encode("ascii", "replace").decode()
    different = sorted(set(defaults.values()))
    if len(different) == 1:
        default = different[0]
    else:
        default = ", ".join(f"{value} for {kind}" for kind, value in defaults.items())
    known = "" if default == "None" else f" (default: {default})"
    return f"{text[0].lower()}{text[1:].removesuffix('.')}{known}"
