"""Ranges of the quantities of the theory, checked by name."""

from __future__ import annotations

import math
import numbers

from trellis.errors import DataError

__all__ = ["at_least", "choice", "fraction", "positive", "strength"]


def _finite(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)


def positive(**values: float) -> None:
    """Refuse what is not a positive finite number."""
    for name, value in values.items():
        if not (_finite(value) and value > 0):
            raise DataError(f"{name} must be a positive number, got {value!r}")


def at_least(low: float, **values: float) -> None:
    """Refuse what is not a finite number of at least ``low``."""
    for name, value in values.items():
        if not (_finite(value) and value >= low):
            raise DataError(f"{name} must be a number of at least {low}, got {value!r}")


def fraction(*, one: bool, **values: float) -> None:
    """Refuse what does not lie in (0, 1), or in (0, 1] if ``one`` itself is allowed."""
    for name, value in values.items():
        if not (_finite(value) and (0 < value < 1 or (one and value == 1))):
            raise DataError(f"{name} must lie in (0, 1{']' if one else ')'}, got {value!r}")


def strength(alpha: float, n: float) -> None:
    """Refuse a strength of structure regularisation outside [1, n]."""
    at_least(1, n=n)
    if not (_finite(alpha) and 1 <= alpha <= n):
        raise DataError(
            f"alpha must lie in [1, n] = [1, {n}], got {alpha!r}: it is the number of "
            "mini-samples a sample is cut into, n / piece_size"
        )


def choice(name: str, value: str, options: tuple[str, ...]) -> None:
    """Refuse what is not one of the options."""
    if value not in options:
        raise DataError(f"{name} must be one of {', '.join(options)}, got {value!r}")
