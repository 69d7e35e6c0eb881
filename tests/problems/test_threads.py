"""Threads that wait for each other: all come, also when interrupted or more than the cores."""

from __future__ import annotations

import _thread
import itertools
import threading
import time

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.kernels.barrier import meet
from trellis.problems.threads import feature_bounds, n_cores, run_threads


def test_all_run_side_by_side():
    together = threading.Barrier(5, timeout=30)
    came = []

    def work(i: int) -> None:
        together.wait()  # breaks if one is missing
        came.append(i)

    run_threads(5, work)
    assert sorted(came) == [0, 1, 2, 3, 4]


def test_one_runs_where_it_is_called():
    seen = []
    run_threads(1, lambda i: seen.append((i, threading.current_thread())))
    assert seen == [(0, threading.main_thread())]


def test_an_interrupt_waits_until_all_have_come():
    """Ctrl-C before the first has begun must not leave the others waiting for it."""
    together = threading.Barrier(3, timeout=30)
    done = []

    def work(i: int) -> None:
        if i == 0:
            _thread.interrupt_main()
            time.sleep(0.05)
        together.wait()
        done.append(i)

    with pytest.raises(KeyboardInterrupt):
        run_threads(3, work)
    assert sorted(done) == [0, 1, 2]


def test_an_error_in_any_thread_is_raised():
    def work(i: int) -> None:
        if i == 2:
            raise MemoryError("no room for thread 2")

    with pytest.raises(MemoryError, match="no room for thread 2"):
        run_threads(3, work)


@numba.njit(nogil=True)
def _rounds(sync, n_threads, thread, turns, counts, seen):
    """Everybody counts, everybody looks at what all have counted; ``turns`` times."""
    for _ in range(turns):
        counts[thread] += 1
        meet(sync, n_threads)
        total = 0
        for k in range(n_threads):
            total += counts[k]
        seen[thread] += total
        meet(sync, n_threads)


@pytest.mark.parametrize("n_threads", [1, 2, 3, 4 * n_cores() + 1])
def test_nobody_goes_on_before_all_have_met(n_threads):
    turns = 300
    sync, counts = np.zeros(2, np.int64), np.zeros(n_threads, np.int64)
    seen = np.zeros(n_threads, np.int64)
    run_threads(n_threads, lambda i: _rounds(sync, n_threads, i, turns, counts, seen))
    # In turn k everybody sees k counts of everybody: nobody was late, nobody was ahead.
    assert seen.tolist() == [n_threads * turns * (turns + 1) // 2] * n_threads
    assert sync[0] == 0


@given(st.lists(st.integers(0, 9), max_size=60), st.integers(1, 8))
def test_ranges_of_features_cover_all_and_are_about_even(indices, n):
    bounds = feature_bounds(np.array(indices, np.int32), 10, n)
    assert bounds.dtype == np.int64 and len(bounds) == n + 1
    assert bounds[0] == 0 and bounds[-1] == 10 and (np.diff(bounds) >= 0).all()
    most = max((indices.count(f) for f in range(10)), default=0)
    for a, b in itertools.pairwise(bounds):
        assert sum(a <= f < b for f in indices) <= len(indices) / n + most


def test_no_features_have_no_ranges():
    assert feature_bounds(np.zeros(0, np.int32), 0, 3).tolist() == [0, 0, 0, 0]


def test_there_is_a_core():
    assert n_cores() >= 1
