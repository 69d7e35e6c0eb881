"""Kernels that run in several threads which meet in barriers (:mod:`trellis.kernels.barrier`)."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["N_CHUNKS", "feature_bounds", "meeting", "n_cores", "run_threads"]

# Parts of a batch that are summed apart: the most threads that can share a batch.
N_CHUNKS = 16


def n_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def meeting() -> NDArray[np.int64]:
    """What the threads of a kernel meet by (:mod:`trellis.kernels.barrier`)."""
    return np.zeros(4, np.int64)


def run_threads(n: int, work: Callable[[int], None], sync: NDArray[np.int64] | None = None) -> None:
    """Run work(0) … work(n − 1) side by side; they may wait for each other by ``sync``.

    An interrupt strikes the main thread alone. So that it cannot keep one of them from coming, the
    work is done by other threads, which are waited for in any case: they write to memory in use. If
    one fails, or cannot even be started, those that wait for it are told and give up.
    """
    if n == 1:
        work(0)
        return
    failed: list[BaseException] = []

    def guarded(task: Callable[[], None]) -> None:
        try:
            task()
        except BaseException as error:  # raised below, in the thread that asked for the work
            failed.append(error)
            if sync is not None:
                sync[3] = 1

    def all_of_it() -> None:
        others: list[threading.Thread] = []

        def start_others_and_work() -> None:
            for i in range(1, n):
                task = functools.partial(work, i)
                other = threading.Thread(target=guarded, args=(task,), daemon=True)
                other.start()
                others.append(other)
            work(0)

        guarded(start_others_and_work)
        for thread in others:
            thread.join()

    first = threading.Thread(target=all_of_it, daemon=True)
    interrupted = False
    try:
        first.start()
    finally:
        while first.is_alive():
            try:
                first.join()
            except KeyboardInterrupt:
                interrupted = True
    if interrupted:
        raise KeyboardInterrupt
    if failed:
        raise failed[0]


def feature_bounds(indices: NDArray[np.int32], n_features: int, n: int) -> NDArray[np.int64]:
    """Ranges of features that occur about equally often, one for each of n threads (n + 1,)."""
    if n == 1:
        return np.array([0, n_features])
    total = np.cumsum(np.bincount(indices, minlength=n_features))
    marks = total[-1] * np.arange(1, n) / n if n_features else np.zeros(n - 1)
    inner = np.searchsorted(total, marks)
    return np.concatenate([[0], inner, [n_features]]).astype(np.int64)
