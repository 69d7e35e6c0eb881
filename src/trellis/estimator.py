"""Estimators: parameters are declared once, and the declaration does the rest.

    class Ridge(Estimator):
        l2: float = parameter(number(at_least=0), "Factor of the squared norm.", default=1.0)

makes the constructor ``Ridge(*, l2=1.0)``, the check in ``fit``, ``get_params`` and ``set_params``,
what is shown of a model, the section «Parameters» of the docstring, the option ``--l2`` of a
command (:mod:`trellis.cli.parameters`) and the row of the reference page.

The manners are scikit-learn's: the constructor stores values unchanged and unchecked, parameters
of an estimator inside another are called ``base__alpha``, and ``clone``, ``GridSearchCV`` and tags
work. The base class is not scikit-learn's ``BaseEstimator``, because importing that takes a second,
which every call of the command line would pay. Tags are built when scikit-learn asks.
"""

from __future__ import annotations

import functools
import html
import inspect
import re
import textwrap
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self, TypeVar, cast, dataclass_transform, overload

import numpy as np

from trellis.domains import Domain, anything, nothing, whole
from trellis.errors import DataError
from trellis.metadata_routing import MetadataRequests

__all__ = [
    "REQUIRED",
    "Estimator",
    "Parameter",
    "Seeded",
    "changed",
    "check_fitted",
    "check_parameters",
    "current_names",
    "fitted",
    "fixed",
    "moved",
    "old_arguments",
    "parameter",
    "parameters_of",
    "renamed",
    "warn_of_old",
]

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
REQUIRED: Any = object()  # the default of a parameter without one
_SECTION = re.compile(r"^(Attributes|Notes|References|Examples|See Also)\n-+$", re.MULTILINE)


@dataclass(frozen=True)
class Parameter:
    """A declared parameter.

    Parameters
    ----------
    name : str
        Its name.
    domain : Domain
        The values it may have.
    help : str
        What it means, in a sentence or a few.
    default
        ``REQUIRED`` if it must be given.
    kw_only : bool
        Whether it must be given by name.
    option : str
        The option of a command line.
    """

    name: str
    domain: Domain
    help: str
    default: Any
    kw_only: bool
    option: str

    def __str__(self) -> str:
        """The entry of the docstring."""
        default = "" if self.default is REQUIRED else f"; default {self.default!r}"
        text = textwrap.fill(
            self.help, 96, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False
        )
        return f"{self.name} : {self.domain.words}{default}\n{text}"


@dataclass(frozen=True)
class _Change:
    changes: Mapping[str, Any]


@dataclass(frozen=True)
class _Fixed:
    value: Any


@dataclass(frozen=True)
class _Renamed:
    name: str
    convert: Callable[[Any], Any]


@dataclass(frozen=True)
class _Moved:
    value: Any


_FITTED = object()  # the value of an annotation alone


@overload
def parameter(
    domain: Domain, help: str, *, default: T, kw_only: bool = True, option: str | None = None
) -> T: ...
@overload
def parameter(
    domain: Domain, help: str, *, kw_only: bool = True, option: str | None = None
) -> Any: ...
def parameter(
    domain: Domain,
    help: str,
    *,
    default: Any = REQUIRED,
    kw_only: bool = True,
    option: str | None = None,
) -> Any:
    """Declare a parameter of an estimator, in the body of its class.

    Parameters
    ----------
    domain : Domain
        The values it may have.
    help : str
        What it means.
    default
        Its value if it is not given; without one it must be.
    kw_only : bool
        Whether it must be given by name.
    option : str, optional
        The option of a command line; by default ``--max-iter`` for ``max_iter``.
    """
    return Parameter("", domain, " ".join(help.split()), default, kw_only, option or "")


def changed(*, default: Any = REQUIRED, help: str = "", domain: Domain | None = None) -> Any:
    """Change an inherited parameter, in the body of a class: ``tol = changed(default=0.0)``."""
    changes = {} if default is REQUIRED else {"default": default}
    changes |= {"help": " ".join(help.split())} if help else {}
    return _Change(changes | ({} if domain is None else {"domain": domain}))


def fixed(value: T, *, init: Literal[False] = False) -> T:
    """Drop an inherited parameter, which has this value from here on: ``l1: float = fixed(0.0)``.

    The annotation and ``init`` tell a type checker that the constructor does not take it.
    """
    wrapped: Any = _Fixed(value)
    return wrapped  # type: ignore[no-any-return]  # the class holds the value itself


def renamed(name: str, convert: Callable[[Any], Any] = lambda value: value) -> Any:
    """Keep a name of the last release for one more: ``lam = renamed("l2")`` in a class's body.

    The constructor and ``set_params`` take it with a FutureWarning; ``convert`` makes the new
    value of the old one.
    """
    return _Renamed(name, convert)


def moved(value: Any = None) -> Any:
    """Keep a parameter of the last release for one more that is now an argument of ``fit``.

    The constructor and ``set_params`` take it with a FutureWarning; ``fit`` finds it in the
    attribute of its name, which otherwise has this value.
    """
    return _Moved(value)


def fitted(*, init: Literal[False] = False) -> Any:
    """Annotate what an estimator learns: ``weights_: Floats = fitted()``; it has no value yet."""
    return _FITTED


@dataclass_transform(
    kw_only_default=True, eq_default=False, field_specifiers=(parameter, fixed, fitted)
)
class Estimator(MetadataRequests):
    """Base of all estimators.

    A class declares its parameters in its body with :func:`parameter`; it inherits those of its
    base classes, which it may change (:func:`changed`), rename (:func:`renamed`) or drop
    (:func:`fixed`). ``fit`` calls ``_check_parameters``; what no single parameter can tell is
    checked in ``_check_together``.

    Examples
    --------
    >>> from trellis.domains import number
    >>> from trellis.estimator import Estimator, parameter
    >>> class Mean(Estimator):
    ...     prior: float = parameter(number(at_least=0), "Zeros added to the data.", default=0.0)
    >>> Mean(prior=2.0)
    Mean(prior=2.0)
    >>> Mean().set_params(prior=-1)._check_parameters()
    Traceback (most recent call last):
        ...
    trellis.errors.ParameterError: prior must be a number of at least 0, got -1
    """

    _declared: ClassVar[Mapping[str, Any]] = {}
    _parameter_table: ClassVar[Mapping[str, Parameter]] = {}
    _old_names: ClassVar[Mapping[str, _Renamed | _Moved]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._declared = {
            name: _named(name, value)
            for name, value in list(vars(cls).items())
            if value is _FITTED
            or isinstance(value, Parameter | _Change | _Fixed | _Renamed | _Moved)
        }
        for name, value in cls._declared.items():
            if isinstance(value, _Fixed | _Moved):
                setattr(cls, name, value.value)
            else:
                delattr(cls, name)
        table: dict[str, Parameter] = {}
        old: dict[str, _Renamed | _Moved] = {}
        for base in reversed(cls.__mro__):
            for name, value in _declared(base, object):
                if isinstance(value, Parameter):
                    table[name] = value
                elif isinstance(value, _Change):
                    table[name] = replace(table[name], **value.changes)
                elif isinstance(value, _Renamed | _Moved):
                    old[name] = value
                else:
                    table.pop(name, None)
        # A class's own come first, then those of its bases; in each, as they are declared.
        names = [name for base in cls.__mro__ for name, _ in _declared(base, Parameter)]
        ordered = {name: table[name] for name in names if name in table}
        cls._parameter_table = dict(sorted(ordered.items(), key=lambda item: item[1].kw_only))
        cls._old_names = old
        init = inspect.getattr_static(cls, "__init__")
        if init is object.__init__ or hasattr(init, "__signature__"):
            _make_init(cls)
        else:
            cls._parameter_table = _of_signature(init, cls._parameter_table)
        _document(cls)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters and, if ``deep``, those of estimators among them: base__alpha."""
        params = {name: getattr(self, name) for name in self._parameter_table}
        if deep:
            for name, value in list(params.items()):
                if hasattr(value, "get_params") and not isinstance(value, type):
                    inner = value.get_params()
                    params |= {f"{name}__{key}": inner[key] for key in inner}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of estimators among them (base__alpha); return self."""
        inner: dict[str, dict[str, Any]] = {}
        for key, value in self._under_current_names(params).items():
            name, _, rest = key.partition("__")
            if name not in self._parameter_table:
                raise DataError(
                    f"{type(self).__name__} has no parameter {name!r}; it has "
                    f"{', '.join(self._parameter_table)}"
                )
            if rest:
                inner.setdefault(name, {})[rest] = value
            else:
                setattr(self, name, value)
        for name, values in inner.items():
            if not hasattr(getattr(self, name), "set_params"):
                raise DataError(
                    f"{name}={getattr(self, name)!r:.60} has no parameters to set "
                    f"({name}__{next(iter(values))})"
                )
            getattr(self, name).set_params(**values)
        return self

    def _under_current_names(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters under their names of today."""
        current: dict[str, Any] = {}
        for key, value in params.items():
            old = self._old_names.get(key)
            if old is None:
                current[key] = value
                continue
            now = "is now an argument of fit"
            if isinstance(old, _Renamed):
                now = f"is now called {old.name}"
                if old.name in params:
                    raise TypeError(
                        f"{type(self).__name__}: {key} is the old name of {old.name}; give one"
                    )
                current[old.name] = old.convert(value)
            else:
                setattr(self, key, value)
            warn_of_old(f"{type(self).__name__}: {key} {now}", 4)
        return current

    def __post_init__(self) -> None:
        """Make what an object needs besides its parameters; for subclasses."""

    def _check_parameters(self) -> None:
        """Refuse values that parameters cannot have, one by one and together."""
        for name, declared in self._parameter_table.items():
            declared.domain.check(name, getattr(self, name))
        self._check_together()

    def _check_together(self) -> None:
        """Refuse values that do not go together; for subclasses."""

    def _not_default(self) -> dict[str, Any]:
        """Parameters that differ from their defaults."""
        return {
            name: value
            for name, value in self.get_params(deep=False).items()
            if value is not self._parameter_table[name].default
            and repr(value) != repr(self._parameter_table[name].default)
        }

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self._not_default().items())
        return f"{type(self).__name__}({shown})"

    def _repr_html_(self) -> str:
        """Parameters that differ from their defaults, what was learned, and all parameters."""
        rows = {
            name: f'<tr title="{html.escape(self._parameter_table[name].help)}"><td>{name}</td>'
            f"<td>{html.escape(f'{value!r:.200}')}</td></tr>"
            for name, value in self.get_params(deep=False).items()
        }
        learned = [
            f"<tr><td>{html.escape(name)}</td><td>{html.escape(_summary(value))}</td></tr>"
            for name, value in sorted(vars(self).items())
            if name.endswith("_") and not name.startswith("_")
        ]
        shown = [row for name, row in rows.items() if name in self._not_default()]
        if learned:
            shown += ['<tr><th colspan="2">learned</th></tr>', *learned]
        title = html.escape(type(self).__name__)
        return (
            f'<table><tr><th colspan="2">{title}</th></tr>{"".join(shown)}</table>'
            f"<details><summary>all parameters</summary><table>{''.join(rows.values())}</table>"
            "</details>"
        )

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            input_tags=InputTags(two_d_array=False),
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classes_")

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet; call fit before using it"
            )


def parameters_of(kind: type[Estimator] | Estimator) -> dict[str, Parameter]:
    """Return the declared parameters of a class of estimators by name.

    Examples
    --------
    >>> from trellis.regression import GCRF
    >>> list(parameters_of(GCRF))[:2]
    ['base', 'graph']
    """
    return dict(kind._parameter_table)


def check_parameters(model: Estimator) -> None:
    """Refuse an estimator with parameters that cannot be; ``fit`` does the same.

    Raises
    ------
    DataError
        If a parameter has a value it cannot have, or some do not go together.
    """
    model._check_parameters()


def check_fitted(model: Estimator) -> None:
    """Refuse an estimator that has learned nothing yet; ``predict`` does the same.

    Raises
    ------
    NotFittedError
        scikit-learn's, if it is not fitted.
    """
    model._check_fitted()


def current_names(kind: type[Estimator], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters under their names of today, without a warning: for files of last year."""
    old = {n: o for n, o in kind._old_names.items() if isinstance(o, _Renamed)}
    return {
        old[name].name if name in old else name: old[name].convert(value) if name in old else value
        for name, value in params.items()
    }


# ------------------------------------------------------------------------------- old names


def warn_of_old(what: str, stacklevel: int = 3) -> None:
    """Say that a way of the last release is about to end."""
    warnings.warn(f"{what}; the old way goes in the next release", FutureWarning, stacklevel)


def old_arguments(*positional: str, **names: str) -> Callable[[F], F]:
    """Let a function take old names of its arguments for one release, with a FutureWarning.

    Parameters
    ----------
    *positional : str
        Arguments that could be given by position, after those that still can.
    **names : str
        Old names, and the new ones.

    Examples
    --------
    >>> @old_arguments(k="n_neighbors")
    ... def nearest(point, *, n_neighbors=5):
    ...     return n_neighbors
    >>> nearest(0.0, n_neighbors=3)
    3
    """

    def decorate(call: F) -> F:
        kinds = [p.kind for p in inspect.signature(call).parameters.values()]
        n = sum(kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for kind in kinds)
        title = call.__qualname__

        @functools.wraps(call)
        def wrapper(*args: Any, **given: Any) -> Any:
            for name, value in zip(positional, args[n:], strict=False):
                warn_of_old(f"{title}: give {name}= by name")
                given[name] = value
            for old, new in names.items():
                if old in given:
                    warn_of_old(f"{title}: {old} is now called {new}")
                    given[new] = given.pop(old)
            return call(*args[: n if positional else None], **given)

        return cast("F", wrapper)

    return decorate


# ------------------------------------------------------------------------------- making classes


def _declared(cls: type, kind: type) -> Iterable[tuple[str, Any]]:
    """What the body of one class declares, of one kind."""
    items = vars(cls).get("_declared", {}).items()
    return [(name, value) for name, value in items if isinstance(value, kind)]


def _named(name: str, value: Any) -> Any:
    if not isinstance(value, Parameter):
        return value
    return replace(value, name=name, option=value.option or "--" + name.replace("_", "-"))


def _make_init(cls: type[Estimator]) -> None:
    """Give a class the constructor that its parameters ask for."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    arguments = [inspect.Parameter("self", kinds[0])]
    for p in cls._parameter_table.values():
        default = inspect.Parameter.empty if p.default is REQUIRED else p.default
        arguments.append(inspect.Parameter(p.name, kinds[p.kw_only], default=default))
    signature = inspect.Signature(arguments)

    def __init__(self: Estimator, *args: Any, **given: Any) -> None:  # noqa: N807 (a method)
        given = self._under_current_names(given)
        try:
            bound = signature.bind(self, *args, **given)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}(): {error}") from None
        bound.apply_defaults()
        for name, value in list(bound.arguments.items())[1:]:
            setattr(self, name, value)
        self.__post_init__()

    __init__.__qualname__ = f"{cls.__qualname__}.__init__"
    __init__.__signature__ = signature  # type: ignore[attr-defined]  # functions may have it
    setattr(cls, "__init__", __init__)  # noqa: B010 (its type is that of each class)


def _of_signature(init: Any, declared: Mapping[str, Parameter]) -> dict[str, Parameter]:
    """The parameters of a constructor written by hand, with the declarations that there are."""
    arguments = list(inspect.signature(init).parameters.values())[1:]
    table = {}
    for a in arguments:
        default = REQUIRED if a.default is a.empty else a.default
        anew = Parameter(a.name, anything, "", default, a.kind is a.KEYWORD_ONLY, "")
        table[a.name] = declared.get(a.name, anew)
    return table


def _document(cls: type[Estimator]) -> None:
    """Put the section «Parameters» before the first other section of a class's docstring."""
    described = [str(p) for p in cls._parameter_table.values() if p.help]
    if "__doc__" not in vars(cls) or not cls.__doc__ or not described:
        return
    text = inspect.cleandoc(cls.__doc__)
    section = "\n".join(["Parameters", "----------", *described])
    first = _SECTION.search(text)
    end = len(text) if first is None else first.start()
    cls.__doc__ = f"{text[:end].rstrip()}\n\n{section}\n\n{text[end:]}".rstrip() + "\n"


def _summary(value: Any) -> str:
    """A few words about a value that was learned."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{type(value).__name__} {value.dtype} {tuple(value.shape)}"
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{type(value).__name__}"


# ------------------------------------------------------------------------------- a group


class Seeded(Estimator):
    """An estimator that draws random numbers."""

    random_state: int | None = parameter(
        nothing | whole(0),
        "Seed of the random numbers; the same seed, the same result. None: another one each time.",
        default=None,
        option="--seed",
    )

    def _seed_or_fresh(self) -> int:
        """The seed given, or a fresh one."""
        if self.random_state is not None:
            return int(self.random_state)
        return int(np.random.SeedSequence().generate_state(1)[0])
