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

from trellis.domains import Alternative, Domain
from trellis.errors import DataError, ParameterError, ParametersError
from trellis.estimator import Estimator, Parameter, check_parameters, parameters_of

__all__ = [
    "add_number",
    "add_parameters",
    "errors_of_options",
    "given_parameters",
    "new_model",
    "sayable",
]

M = TypeVar("M", bound=Estimator)
_OF_PYTHON = ("columns", "group")  # about data in Python; --columns is about the fields of a file
_NONE: Mapping[str, str] = MappingProxyType({})
_ROLE = re.compile(r"( \((?:see )?|, see )?:\w+:`[^`]*`\)?")  # a place in the documentation
_SENTENCE = re.compile(r"\. (?=[A-Z\"`])")
# Help is plain ASCII: it must print on any terminal.
_PLAIN = {
    "‖w‖²": "|w|^2", "‖w‖₁": "|w|_1", "λ": "lambda", "η": "eta", "β": "beta", "Γ": "Gamma",
    "–": "-", "′": "'",
}  # fmt: skip


def sayable(classes: Sequence[type[Estimator]]) -> list[str]:
    """Parameters of some of the classes that a command line can say."""
    return [
        name
        for name, (first, *_) in _declarations(classes).items()
        if first.domain.has_flag or first.domain.signs
    ]


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
        The estimators that the command may train. A value may be whatever one of them takes; help
        and defaults are told for each class where they differ.
    names : iterable of str, optional
        The parameters; by default all that a command line can say.
    defaults : dict of str to str
        What the command does without an option, in words, where it is not the estimators' default.
    """
    known = _declarations(classes)
    for name in sayable(classes) if names is None else names:
        first = known[name][0]
        domain = _union([p.domain for p in known[name]])
        owners = [kind.__name__ for kind in classes if name in parameters_of(kind)]
        default = _by_class(owners, [_said(p.default) for p in known[name]], "{1} for {0}", ", ")
        text = _by_class(owners, [_help(p) for p in known[name]], "{0}: {1}", ". ")
        values = [sign for sign in domain.signs if sign != _said(first.default)]
        how: dict[str, Any] = {"type": _reader(domain), "metavar": "|".join(domain.signs)}
        if domain.has_flag and not values:  # what is not said is the default
            how = {"action": argparse.BooleanOptionalAction}
        elif domain.has_flag:
            how |= {"nargs": "?", "const": True}
        elif domain.is_choice:
            how["metavar"] = "{" + ",".join(domain.signs) + "}"
        default = defaults.get(name) or default.removeprefix("None")
        text += f" (default: {default})" if default else ""
        group.add_argument(
            first.option, dest=name, default=None, help=text.replace("%", "%%"), **how
        )


class _AtLeast(argparse.Action):
    """A number that may not be too small."""

    def __init__(self, *, least: float, **how: Any) -> None:
        super().__init__(**how)
        self.least = least

    def __call__(self, parser: Any, args: Any, value: Any, option: str | None = None) -> None:
        if not value >= self.least:
            raise DataError(f"{option} must be at least {self.least}, got {value}")
        setattr(args, self.dest, value)


def add_number(
    group: argparse._ActionsContainer,
    option: str,
    least: int,
    help: str,
    default: float | None = None,
    metavar: str = "K",
) -> None:
    """Add an option that is no parameter: a number of at least ``least``, whole as its default."""
    group.add_argument(
        option,
        action=_AtLeast,
        least=least,
        type=float if isinstance(default, float) else int,
        default=default,
        metavar=metavar,
        help=help if default is None else f"{help} (default: {default:g})",
    )


def given_parameters(
    args: argparse.Namespace, kind: type[Estimator], classes: Sequence[type[Estimator]] = ()
) -> dict[str, Any]:
    """The parameters given as options, each in its domain; the others stay as they are.

    Parameters
    ----------
    args : Namespace
        What was parsed.
    kind : class
        The estimator they are for.
    classes : sequence of classes
        All that the command has options of. One that this class does not have must not be given.

    Raises
    ------
    DataError
        If an option is not for this class, or has a value that it cannot have.
    """
    table = parameters_of(kind)
    given = {}
    for name, (declared, *_) in _declarations([kind, *classes]).items():
        value = None if name in _OF_PYTHON else getattr(args, name, None)
        if value is None:
            continue
        if name not in table:
            raise DataError(f"{declared.option} is not for {kind.__name__}")
        with errors_of_options(kind):
            declared.domain.check(name, value)
        given[name] = value
    return given


def new_model(
    args: argparse.Namespace, kind: type[M], classes: Sequence[type[Estimator]] = (), **more: Any
) -> M:
    """An estimator with the parameters given as options, all of them checked.

    ``more`` are parameters that the command sets; an option comes before them.
    """
    model = kind(**(more | given_parameters(args, kind, classes)))
    with errors_of_options(kind):
        check_parameters(model)
    return model


@contextmanager
def errors_of_options(kind: type[Estimator]) -> Iterator[None]:
    """Turn errors of parameters into errors of options: «--l2 must be …»."""
    table = parameters_of(kind)
    try:
        yield
    except ParameterError as error:
        declared = table.get(error.parameter)
        if declared is None:
            raise
        requirement = error.requirement
        if requirement == declared.domain.words:
            requirement = declared.domain.option_words
        raise DataError(
            f"{declared.option} must be {requirement}, got {_said(error.value)}"
        ) from error
    except ParametersError as error:
        raise DataError(error.worded(lambda name, value: _as_option(table[name], value))) from error


def _as_option(declared: Parameter, value: object) -> str:
    """How a command line says that a parameter has a value."""
    if isinstance(value, bool):
        return declared.option if value else declared.option.replace("--", "--no-", 1)
    return f"{declared.option} {_said(value)}"


def _declarations(classes: Iterable[type[Estimator]]) -> dict[str, list[Parameter]]:
    """What the classes declare, by the names of parameters."""
    known: dict[str, list[Parameter]] = {}
    for kind in classes:
        for name, declared in parameters_of(kind).items():
            known.setdefault(name, []).append(declared)
    return known


def _union(domains: Iterable[Domain]) -> Domain:
    """What one of the domains can read: each kind of value once."""
    kinds: dict[str, Alternative] = {}
    for domain in domains:
        for a in domain.alternatives:
            kinds.setdefault(a.words if a.parse is None else a.sign, a)
    return Domain(tuple(kinds.values()))


def _by_class(owners: Sequence[str], texts: Sequence[str], form: str, gap: str) -> str:
    """A text, or those of all classes where they differ."""
    if len(set(texts)) == 1:
        return texts[0]
    return gap.join(form.format(*pair) for pair in zip(owners, texts, strict=True))


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


def _help(declared: Parameter) -> str:
    """The first sentence of the help in plain ASCII."""
    text = _SENTENCE.split(_ROLE.sub("", declared.help))[0].replace("``", "").replace('"', "")
    if declared.default is None:
        text = text.replace("None: ", "default: ")
    for letter, plain in _PLAIN.items():
        text = text.replace(letter, plain)
    # An abbreviation or a name keeps its capital.
    first = text[0].lower() if text[1:2].islower() else text[0]
    return f"{first}{text[1:].removesuffix('.')}"
