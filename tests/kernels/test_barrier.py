"""The atomics of the barrier: real ones, in the code and in what several threads count."""

from __future__ import annotations

import threading

import numba
import numpy as np

from trellis.kernels.barrier import meet, take

N_THREADS, N_TAKES = 4, 50_000


@numba.njit(nogil=True)
def _take_many(sync, taken):
    for i in range(taken.size):
        taken[i] = take(sync)


@numba.njit(nogil=True)
def _meet_often(sync, n_threads, turns):
    for _ in range(turns):
        meet(sync, n_threads)


def side_by_side(work) -> None:
    threads = [threading.Thread(target=work, args=(i,)) for i in range(N_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_no_piece_of_work_is_taken_twice_or_never():
    """Additions that are not atomic lose some; two threads then take the same."""
    sync = np.zeros(4, np.int64)
    taken = np.empty((N_THREADS, N_TAKES), np.int64)
    _take_many(sync, taken[0, :0])  # compiled before the race begins
    side_by_side(lambda i: _take_many(sync, taken[i]))
    assert sync.tolist() == [0, 0, N_THREADS * N_TAKES, 0]
    assert np.array_equal(np.sort(taken.ravel()), np.arange(N_THREADS * N_TAKES))
    assert (np.diff(taken, axis=1) > 0).all()  # what a thread takes later has a higher number


def test_every_meeting_is_counted_once():
    sync = np.zeros(4, np.int64)
    _meet_often(sync, 1, 1)
    side_by_side(lambda _: _meet_often(sync, N_THREADS, 200))
    assert sync.tolist() == [0, 200, 0, 0]


def test_the_machine_is_told_so():
    """LLVM may neither split nor reorder an atomic; a plain load could be taken out of the loop."""
    sync = np.zeros(4, np.int64)
    _meet_often(sync, 1, 1)
    _take_many(sync, np.empty(0, np.int64))
    (waiting,) = _meet_often.inspect_llvm().values()
    assert "atomicrmw add" in waiting and "load atomic i64" in waiting
    assert waiting.count("seq_cst") >= 3
    (taking,) = _take_many.inspect_llvm().values()
    assert "atomicrmw add" in taking
