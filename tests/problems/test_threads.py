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
from sklearn.base import clone

from trellis import ChainCRF, ChainPerceptron
from trellis.kernels.barrier import meet
from trellis.problems import log_likelihood, perceptron, threads
from trellis.problems.threads import feature_bounds, meeting, n_cores, run_threads


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
    sync, counts = np.zeros(4, np.int64), np.zeros(n_threads, np.int64)
    seen = np.zeros(n_threads, np.int64)
    run_threads(n_threads, lambda i: _rounds(sync, n_threads, i, turns, counts, seen))
    # In turn k everybody sees k counts of everybody: nobody was late, nobody was ahead.
    assert seen.tolist() == [n_threads * turns * (turns + 1) // 2] * n_threads
    assert sync[0] == 0


@numba.njit(nogil=True)
def _rounds_with_a_death(sync, n_threads, thread, turns, dies_at):
    """Meet often; thread 1 dies at some turn, as one does that gets no memory."""
    for turn in range(turns):
        if thread == 1 and turn == dies_at:
            raise MemoryError
        if not meet(sync, n_threads):
            return


@pytest.mark.parametrize("dies_at", [0, 1, 57])
def test_nobody_waits_for_a_thread_that_died_inside_a_kernel(dies_at):
    sync = meeting()
    with pytest.raises(MemoryError):
        run_threads(4, lambda i: _rounds_with_a_death(sync, 4, i, 100, dies_at), sync)


def test_nobody_waits_for_a_thread_that_cannot_be_started(monkeypatch):
    sync = meeting()
    start, n_started = threading.Thread.start, itertools.count()

    def failing(thread):
        if next(n_started) == 3:  # after the one that starts the others and two of these
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", failing)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        run_threads(5, lambda i: _rounds_with_a_death(sync, 5, i, 100, -1), sync)
    assert not [thread for thread in threading.enumerate() if "guarded" in thread.name]


@pytest.mark.parametrize(
    "model", [ChainCRF(n_jobs=3, batch_size=8), ChainPerceptron(n_jobs=3, batch_size=8)]
)
def test_training_ends_if_a_thread_of_it_dies(model, monkeypatch):
    """The real kernels give up, too; the model can be trained again afterwards."""
    X, y = [["a", "b", "c"]] * 64, [["A", "B", "A"]] * 64
    real = threads.run_threads

    def with_a_death(n, work, sync=None):
        def dying(i):
            if i == 1:
                raise MemoryError("no room for thread 1")
            work(i)

        real(n, dying, sync)

    expected = clone(model).fit(X, y).predict(X)
    for module in (log_likelihood, perceptron):
        monkeypatch.setattr(module, "run_threads", with_a_death)
    with pytest.raises(MemoryError, match="no room for thread 1"):
        clone(model).fit(X, y)
    monkeypatch.undo()
    assert clone(model).fit(X, y).predict(X) == expected


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
