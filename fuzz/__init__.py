"""Attacks on Trellis that anyone can run for as long as they like: ``make fuzz MINUTES=10``.

An attack is a module of this package with one function, ``cases``. It makes ready what its cases
share and returns a function that runs one of them::

    def cases() -> Callable[[np.random.Generator], str]

Case ``i`` of seed ``s`` gets ``np.random.default_rng([s, i])`` and nothing else that varies, so its
number is all it takes to see it again: ``python -m fuzz public_api --seed 0 --case 1234``. It
returns a word for what came of it, as «used». A documented error
(:class:`~trellis.errors.TrellisError`) that it lets through counts as «refused». Anything else is a
failure: another exception, a promise not kept (:class:`BrokenPromiseError`), the death of the
process, or more than :data:`fuzz.watch.PATIENCE` seconds.
"""

from __future__ import annotations

__all__ = ["ATTACKS", "BrokenPromiseError"]

# What `make fuzz` runs; the time is shared equally.
ATTACKS: tuple[str, ...] = ("public_api", "model_files", "readers", "kills")


class BrokenPromiseError(AssertionError):
    """Trellis did what it promises not to do."""
