"""How much memory a case may take: what wants more is an attack on the machine.

Two bounds, since a kernel may be refused memory or have taken it: address space above what the
process has when the case begins, and growth of what it has ever held at once.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fuzz import BrokenPromiseError

__all__ = ["GROWTH", "limited_memory"]

_ADDRESSES = 4 << 30  # threads reserve address space that they never touch
GROWTH = 512 << 20


@contextmanager
def limited_memory() -> Iterator[None]:
    """Bound the memory of a case; what it is refused, it must not take for a damaged input."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    room = pages * resource.getpagesize() + _ADDRESSES
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    resource.setrlimit(resource.RLIMIT_AS, (room if soft < 0 else min(soft, room), hard))
    try:
        yield
    except Exception as error:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, MemoryError):
                raise BrokenPromiseError(f"asked for too much memory ({error})") from error
            cause = cause.__cause__ or cause.__context__
        raise
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    growth = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    if growth > GROWTH:
        raise BrokenPromiseError(f"took {growth >> 20} MiB of memory")
