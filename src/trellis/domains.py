"""What values a parameter may have: domains, which know their test and their words.

    number(at_least=0)                 a number of at least 0
    one_of("auto") | whole(1)          'auto' or a positive integer
    nothing | whole(1) | one_of(-1)    None, a positive integer or -1

A domain is a union of *alternatives*. Each tells whether a value is one of its own, says so in
words, and reads itself from the text of a command line, if that can say it. NumPy's numbers and
truth values are as good as Python's; a truth value is no number, and neither is NaN.
"""

from __future__ import annotations

import functools
import inspect
import math
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import numpy as np

from trellis.errors import ParameterError

__all__ = [
    "Alternative",
    "Domain",
    "anything",
    "flag",
    "function",
    "generator",
    "has",
    "instance",
    "is_finite",
    "is_number",
    "is_whole",
    "nothing",
    "number",
    "one_of",
    "samples",
    "seed",
    "sequence_of",
    "strings",
    "takes",
    "text",
    "whole",
]

P = ParamSpec("P")
R = TypeVar("R")


def is_number(value: object) -> bool:
    """Whether a value is a real number (NumPy's included) and not NaN."""
    return isinstance(value, numbers.Real) and bool(value == value)  # noqa: PLR0124  # NaN is not


def is_finite(value: object) -> bool:
    """Whether a value is a number and finite as a float, which Python's integers need not be."""
    try:
        return isinstance(value, numbers.Real) and math.isfinite(value)
    except OverflowError:
        return False


def is_whole(value: object) -> bool:
    """Whether a value is an integer (NumPy's included) and not a truth value."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


@dataclass(frozen=True)
class Alternative:
    """One of the alternatives of a domain.

    Parameters
    ----------
    words : str
        What a value must be: «a positive integer».
    accepts : function
        Whether a value is one of these.
    parse : function, optional
        Makes a value from the text of a command line, or raises ValueError; None: it cannot.
    sign : str
        What stands for a value in the help of a command line.
    exact : bool
        Whether the sign itself is the one value.
    """

    words: str
    accepts: Callable[[Any], bool]
    parse: Callable[[str], Any] | None = None
    sign: str = "X"
    exact: bool = False


@dataclass(frozen=True)
class Domain:
    """All values that a parameter may have; ``a | b`` is the union of two domains.

    Examples
    --------
    >>> from trellis.domains import nothing, whole
    >>> domain = nothing | whole(1)
    >>> domain.accepts(3), domain.accepts(0), domain.words
    (True, False, 'None or a positive integer')
    >>> domain.parse("3")
    3
    """

    alternatives: tuple[Alternative, ...]

    def __or__(self, other: Domain) -> Domain:
        return Domain(self.alternatives + other.alternatives)

    def accepts(self, value: object) -> bool:
        """Whether the value is in the domain."""
        return any(alternative.accepts(value) for alternative in self.alternatives)

    def check(self, name: str, value: object) -> None:
        """Refuse a value of the parameter ``name`` that is not in the domain.

        Raises
        ------
        ParameterError
            If it is not.
        """
        if not self.accepts(value):
            raise ParameterError(name, value, self.words)

    @property
    def words(self) -> str:
        """What a value must be, after «must be»."""
        return _either([alternative.words for alternative in self.alternatives])

    # ---------------------------------------------------------------- on a command line

    @property
    def has_flag(self) -> bool:
        """Whether truth values are in the domain, which an option says without a value."""
        return any(a in flag.alternatives for a in self.alternatives)

    @property
    def is_choice(self) -> bool:
        """Whether the value of an option is one of a few words."""
        return all(alternative.exact for alternative in self._sayable)

    @property
    def _sayable(self) -> list[Alternative]:
        return [alternative for alternative in self.alternatives if alternative.parse is not None]

    @property
    def option_words(self) -> str:
        """What the value of an option must be: without None, and without quotes."""
        return _either([alternative.words.strip("'") for alternative in self._sayable])

    @property
    def signs(self) -> list[str]:
        """What can stand for the value of an option: the words themselves, or one letter."""
        return [alternative.sign for alternative in self._sayable]

    def parse(self, text: str) -> Any:
        """Make a value from text, by the first alternative that can; its range is not checked.

        Raises
        ------
        ValueError
            If no alternative can.
        """
        for alternative in self._sayable:
            assert alternative.parse is not None
            try:
                return alternative.parse(text)
            except ValueError:
                continue
        raise ValueError(f"must be {self.option_words}, got {text!r}")


def _either(words: list[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]] if words[1:] else words)


def _domain(words: str, accepts: Callable[[Any], bool], *parse: Any) -> Domain:
    return Domain((Alternative(words, accepts, *parse),))


# ------------------------------------------------------------------------------- numbers


def number(
    *,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
    infinite: bool = False,
) -> Domain:
    """Real numbers, finite unless ``infinite`` is True, between bounds that belong to them or not.

    Examples
    --------
    >>> number(above=0, below=1).words
    'a number between 0 and 1, both excluded'
    """

    def accepts(value: Any) -> bool:
        return (
            is_number(value)
            and not isinstance(value, bool)
            and (is_finite(value) or (infinite and abs(value) == math.inf))
            and (at_least is None or value >= at_least)
            and (above is None or value > above)
            and (at_most is None or value <= at_most)
            and (below is None or value < below)
        )

    return _domain(_number_words(at_least, above, at_most, below, infinite), accepts, float)


def _number_words(
    at_least: float | None,
    above: float | None,
    at_most: float | None,
    below: float | None,
    infinite: bool,
) -> str:
    if at_least is not None and at_most is not None:
        return f"a number from {at_least:g} to {at_most:g}"
    if above is not None and below is not None:
        return f"a number between {above:g} and {below:g}, both excluded"
    bounds = [
        f"{words} {bound:g}"
        for words, bound in (
            ("of at least", at_least), ("above", above), ("of at most", at_most), ("below", below),
        )
        if bound is not None
    ]  # fmt: skip
    words = "a positive number" if bounds == ["above 0"] else f"a number {' and '.join(bounds)}"
    return words.rstrip() + (" (or inf)" if infinite else "")


def whole(at_least: int | None = None, at_most: int | None = None) -> Domain:
    """Integers.

    Examples
    --------
    >>> whole(1).words, whole(0).words, whole(1, 9).words
    ('a positive integer', 'an integer of at least 0', 'an integer from 1 to 9')
    """
    if at_least is not None and at_most is not None:
        words = f"an integer from {at_least} to {at_most}"
    elif at_least == 1:
        words = "a positive integer"
    else:
        words = "an integer" if at_least is None else f"an integer of at least {at_least}"

    def accepts(value: Any) -> bool:
        return (
            is_whole(value)
            and (at_least is None or value >= at_least)
            and (at_most is None or value <= at_most)
        )

    return _domain(words, accepts, int, "K")


# ------------------------------------------------------------------------------- choices


def one_of(*choices: str | int) -> Domain:
    """These values, strings or integers.

    Examples
    --------
    >>> one_of("bundle", "perceptron").words
    "'bundle' or 'perceptron'"
    """
    return Domain(tuple(_choice(choice) for choice in choices))


def _choice(choice: str | int) -> Alternative:
    def accepts(value: Any) -> bool:
        return (isinstance(value, str) or is_whole(value)) and value == choice

    def parse(said: str) -> str | int:
        if said != str(choice):
            raise ValueError(said)
        return choice

    return Alternative(repr(choice), accepts, parse, str(choice), exact=True)


nothing = _domain("None", lambda value: value is None)
"""None alone."""

flag = _domain("True or False", lambda value: isinstance(value, bool | np.bool_))
"""Truth values."""


# ------------------------------------------------------------------------------- objects

anything = _domain("anything", lambda value: True)
"""All values: for what only the use of a value can tell."""

text = _domain("a string", lambda value: isinstance(value, str), str, "TEXT")
"""Strings."""

function = _domain("a function", callable)
"""What can be called."""


def instance(kind: type) -> Domain:
    """Objects of a class."""
    name = kind.__name__
    article = "an" if name[0] in "AEIOU" else "a"
    return _domain(f"{article} {name}", lambda value: isinstance(value, kind))


def has(*methods: str, words: str = "") -> Domain:
    """Objects (not classes) that have these methods.

    Examples
    --------
    >>> has("fit", "predict").words
    'an object with fit and predict'
    """

    def accepts(value: object) -> bool:
        return not isinstance(value, type) and all(
            callable(getattr(value, m, None)) for m in methods
        )

    return _domain(words or f"an object with {' and '.join(methods)}", accepts)


def sequence_of(domain: Domain, words: str) -> Domain:
    """Lists and the like of values of a domain; on a command line they have commas between them.

    Examples
    --------
    >>> strings = sequence_of(text, "a list of names")
    >>> strings.accepts(["a", "b"]), strings.accepts("ab"), strings.parse("a, b")
    (True, False, ['a', 'b'])
    """
    # Lists may be long, as those of all words are.
    one = domain.accepts if domain.alternatives[1:] else domain.alternatives[0].accepts

    def accepts(value: Any) -> bool:
        if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__len__"):
            return False
        try:
            return all(map(one, value))
        except TypeError:  # an array without dimensions, a class
            return False

    def parse(said: str) -> list[Any]:
        return [domain.parse(part.strip()) for part in said.split(",") if part.strip()]

    return _domain(words, accepts, parse, "A,B,...")


# ------------------------------------------------------------------------------- arguments

generator = instance(np.random.Generator)
"""Sources of random numbers."""

seed = whole(0) | generator
"""What random numbers may be made of."""

samples = sequence_of(anything, "a list of samples")
"""Lists with an entry for each sample, whatever that is."""

strings = sequence_of(text, "a list of strings")
"""Lists of strings."""


def takes(**domains: Domain) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator: check the arguments of these names before a function is called.

    Raises
    ------
    ParameterError
        If one is not in its domain.

    Examples
    --------
    >>> @takes(k=whole(1))
    ... def first(items, k=1):
    ...     return items[:k]
    >>> first("abc", 2)
    'ab'
    >>> first("abc", k=2.5)
    Traceback (most recent call last):
    trellis.errors.ParameterError: k must be a positive integer, got 2.5
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        parameters = inspect.signature(function).parameters.values()
        names = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]

        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            for name, value in (*zip(names, args, strict=False), *kwargs.items()):
                if name in domains:
                    domains[name].check(name, value)
            return function(*args, **kwargs)

        return checked

    return decorate
