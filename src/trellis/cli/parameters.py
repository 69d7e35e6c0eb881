"""Options of a command from the declared parameters of estimators.

Every option has its parameter's name as ``dest`` and None as default: what is not given stays as
the model has it. A value is read when the command line is, and its range is checked before a model
is made (:func:`given_parameters`).
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, TypeVar

from trellis.domains import Domain
from trellis.errors import DataError, ParameterError
from trellis.estimator import Estimator, Parameter, check_parameters, parameters_of

__all__ = ["add_parameters", "errors_of_options", "given_parameters", "new_model"]

M = TypeVar("M", bound=Estimator)
_NONE: Mapping[str, str] = MappingProxyType({})
_ROLE = re.compile(r"( \(|, see )?:\w+:`[^`]*`\)?")  # a place in the documentation
# Help is plain ASCII: it must print on any terminal.
_PLAIN = {"‖w‖²": "|w|^2", "‖w‖₁": "|w|_1", "λ": "lambda", "η": "eta", "β": "beta", "Γ": "Gamma"}


def add_parameters(
    group: argparse._ActionsContainer,
    classes: Sequence[type[Estimator]],
    names: Iterable[str] | None = None,
    *,
    defaults: Mapping[str, str] = _NONE,
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
    defaults : dict of str to str
        What the command does without an option, in words, where it is not the estimators' default.
    """
    tables = {kind: parameters_of(kind) for kind in classes}
    known = {name: p for kind in reversed(classes) for name, p in tables[kind].items()}
    sayable = [name for name, p in known.items() if p.domain.is_flag or p.domain.signs]
    for name in sayable if names is None else names:
        domain = known[name].domain
        own = {
            k.__name__: _said(table[name].default) for k, table in tables.items() if name in table
        }
        how: dict[str, Any] = {"type": _reader(domain), "metavar": "|".join(domain.signs)}
        if domain.is_flag:
            how = {"action": argparse.BooleanOptionalAction}
        elif domain.is_choice:
            how["metavar"] = "{" + ",".join(domain.signs) + "}"
        described = _help(known[name], defaults.get(name) or _default_words(own))
        group.add_argument(known[name].option, dest=name, default=None, help=described, **how)


def given_parameters(
    args: argparse.Namespace, kind: type[Estimator], names: Iterable[str] | None = None
) -> dict[str, Any]:
    """The parameters given as options, each in its domain; the others stay as they are.

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
    options = {name: getattr(args, name, None) for name in (table if names is None else names)}
    given = {name: value for name, value in options.items() if value is not None}
    for name, value in given.items():
        if name not in table:
            raise DataError(f"--{name.replace('_', '-')} is not for {kind.__name__}")
        with errors_of_options(kind):
            table[name].domain.check(name, value)
    return given


def new_model(
    args: argparse.Namespace, kind: type[M], names: Iterable[str] | None = None, **more: Any
) -> M:
    """An estimator with the parameters given as options, all of them checked.

    ``more`` are parameters that the command sets; an option comes before them.
    """
    model = kind(**(more | given_parameters(args, kind, names)))
    with errors_of_options(kind):
        check_parameters(model)
    return model


@contextmanager
def errors_of_options(kind: type[Estimator]) -> Iterator[None]:
    """Turn errors of parameters into errors of options: «--l2 must be …»."""
    try:
        yield
    except ParameterError as error:
        declared = parameters_of(kind).get(error.parameter)
        if declared is None:
            raise
        requirement = error.requirement
        if requirement == declared.domain.words:
            requirement = declared.domain.option_words
        raise DataError(
            f"{declared.option} must be {requirement}, got {_said(error.value)}"
        ) from None


def _reader(domain: Domain) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return domain.parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read


def _said(value: object) -> str:
    """A value as a command line has it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(map(_said, value))
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)


def _default_words(own: Mapping[str, str]) -> str:
    """The default, or the defaults by class where they differ; nothing where it is None."""
    if len(set(own.values())) == 1:
        return next(iter(own.values())).removeprefix("None")
    return ", ".join(f"{value} for {kind}" for kind, value in own.items())


def _help(declared: Parameter, default: str) -> str:
    """The first sentence of the help in plain ASCII, and the default."""
    text = _ROLE.sub("", declared.help).replace("``", "").replace('"', "")
    text = text.partition(". ")[0]
    for letter, plain in _PLAIN.items():
        text = text.replace(letter, plain)
    known = f" (default: {default})" if default else ""
    # An abbreviation or a name keeps its capital.
    first = text[0].lower() if text[1:2].islower() else text[0]
    return f"{first}{text[1:].removesuffix('.')}{known}".replace("%", "%%")
