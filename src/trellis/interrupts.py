"""Ctrl-C in the middle of a kernel.

It may come while a compiled function returns. Numba then has a result and an exception at once, of
which Python makes a ``SystemError``, whose cause is the KeyboardInterrupt, maybe by way of another
``SystemError``. Whoever waits for an interrupt, to keep what was learned so far, would not see it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["interrupts"]


@contextmanager
def interrupts() -> Iterator[None]:
    """Let Ctrl-C be a KeyboardInterrupt wherever it comes; also a decorator.

    Examples
    --------
    >>> try:
    ...     with interrupts():
    ...         raise SystemError("a result with an exception set") from KeyboardInterrupt()
    ... except KeyboardInterrupt:
    ...     print("interrupted")
    interrupted
    """
    try:
        yield
    except SystemError as error:
        cause: BaseException | None = error
        while isinstance(cause, SystemError):
            cause = cause.__cause__
        if isinstance(cause, KeyboardInterrupt):
            raise KeyboardInterrupt from error
        raise
