"""Ranges of the quantities of the theory, checked by name."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import ParamSpec, TypeVar

from trellis.domains import Domain, number, one_of
from trellis.errors import DataError

__all__ = ["at_least", "choice", "fraction", "positive", "strength", "within_floats"]

P = ParamSpec("P")
R = TypeVar("R")


def within_floats(bound: Callable[P, R]) -> Callable[P, R]:
    """Decorator: a bound that floats cannot hold is refused."""

    @functools.wraps(bound)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        message = f"{bound.__name__} is beyond what a float holds; use less extreme numbers"
        try:
            value = bound(*args, **kwargs)
        except (OverflowError, ZeroDivisionError) as error:
            raise DataError(message) from error
        if isinstance(value, float) and math.isnan(value):  # inf - inf, inf * 0
            raise DataError(message)
        return value

    return checked


def _check(domain: Domain, values: Mapping[str, object]) -> None:
    for name, value in values.items():
        domain.check(name, value)


def positive(**values: float) -> None:
    """Refuse what is not a positive finite number."""
    _check(number(above=0), values)


def at_least(low: float, **values: float) -> None:
    """Refuse what is not a finite number of at least ``low``."""
    _check(number(at_least=low), values)


def fraction(*, one: bool, **values: float) -> None:
    """Refuse what does not lie in (0, 1), or in (0, 1] if ``one`` itself is allowed."""
    _check(number(above=0, at_most=1) if one else number(above=0, below=1), values)


def strength(alpha: float, n: float) -> None:
    """Refuse a strength of structure regularisation outside [1, n]."""
    at_least(1, n=n)
    if not number(at_least=1, at_most=n).accepts(alpha):
        raise DataError(
            f"alpha must lie in [1, n] = [1, {n}], got {alpha!r}: it is the number of "
            "mini-samples a sample is cut into, n / piece_size"
        )


def choice(name: str, value: str, options: tuple[str, ...]) -> None:
    """Refuse what is not one of the options."""
    one_of(*options).check(name, value)
