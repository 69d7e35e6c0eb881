"""What the questions check: methods, and numbers that must not be too small."""

from __future__ import annotations

from trellis.errors import DataError

__all__ = ["at_least", "one_of"]


def one_of(method: str, known: tuple[str, ...]) -> None:
    """Raise if there is no such method."""
    if method not in known:
        raise DataError(f"method is {method!r}; it must be one of {', '.join(known)}")


def at_least(value: int, least: int, what: str) -> None:
    """Raise if a number is too small."""
    if value < least:
        raise DataError(f"{what} is {value}; it must be at least {least}")
