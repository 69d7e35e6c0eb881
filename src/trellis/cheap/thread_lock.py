"""One thread at a time: a lock that belongs to one object in one process.

A copy of the object (deep, pickled, or by a fork) has a lock of its own, which nobody holds.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Concatenate, ParamSpec, Protocol, TypeVar

__all__ = ["ThreadLock", "one_at_a_time"]

P = ParamSpec("P")
R = TypeVar("R")


class ThreadLock:
    """A lock that the thread that holds it may take again.

    Examples
    --------
    >>> import copy
    >>> lock = ThreadLock()
    >>> with lock, lock, copy.deepcopy(lock):
    ...     pass
    """

    def __init__(self) -> None:
        self._renew()

    def _renew(self) -> None:
        self._process, self._lock = os.getpid(), threading.RLock()

    def __enter__(self) -> None:
        if os.getpid() != self._process:  # held, perhaps, by a thread that a fork did not copy
            self._renew()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type[ThreadLock], tuple[()]]:
        return ThreadLock, ()


class _Locked(Protocol):
    @property
    def _lock(self) -> ThreadLock: ...


S = TypeVar("S", bound=_Locked)


def one_at_a_time(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Let one thread at a time use these methods of an object, which has a ``_lock``."""

    @functools.wraps(method)
    def locked(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._lock:
            return method(self, *args, **kwargs)

    return locked
