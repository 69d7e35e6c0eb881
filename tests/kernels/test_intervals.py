"""Kernels of intervals against enumeration."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.kernels.intervals import best_intervals, best_rivals

INTERVAL = st.tuples(st.integers(0, 8), st.integers(1, 4))
SAMPLES = st.lists(
    st.lists(st.tuples(INTERVAL, st.integers(-3, 6)), max_size=7), min_size=1, max_size=3
)


def apart(a, b):
    return a[1] <= b[0] or b[1] <= a[0]


def laid_out(samples, key):
    """Offsets, starts, ends and weights of samples, sorted in each."""
    rows = [sorted([((a, a + n), w) for (a, n), w in sample], key=key) for sample in samples]
    offsets = np.concatenate([[0], np.cumsum([len(sample) for sample in rows])]).astype(np.int64)
    flat = [row for sample in rows for row in sample]
    start = np.array([row[0][0] for row in flat], np.int64)
    end = np.array([row[0][1] for row in flat], np.int64)
    return rows, offsets, start, end, np.array([row[1] for row in flat], np.float64)


def by_end(row):
    return row[0][1]


@given(SAMPLES)
def test_the_best_set_is_that_of_all_subsets(samples):
    rows, offsets, start, end, weight = laid_out(samples, by_end)
    chosen = np.zeros(len(weight), np.bool_)
    best_intervals(offsets, start, end, weight, chosen)
    for s, sample in enumerate(rows):
        taken = [
            row for row, t in zip(sample, chosen[offsets[s] : offsets[s + 1]], strict=True) if t
        ]
        assert all(apart(a[0], b[0]) for a, b in combinations(taken, 2))
        assert all(w > 0 for _, w in taken)
        best = max(
            sum(w for _, w in some)
            for n in range(len(sample) + 1)
            for some in combinations(sample, n)
            if all(apart(a[0], b[0]) for a, b in combinations(some, 2))
        )
        assert sum(w for _, w in taken) == pytest.approx(best)


def test_among_equals_the_first_end_wins():
    chosen = np.zeros(3, np.bool_)
    start, end = np.array([0, 1, 1]), np.array([2, 3, 4])
    best_intervals(np.array([0, 3]), start, end, np.array([0.1 + 0.2, 0.3, 0.3]), chosen)
    assert chosen.tolist() == [True, False, False]


@given(SAMPLES)
def test_the_best_rival_is_the_largest_that_overlaps(samples):
    rows, offsets, start, end, value = laid_out(samples, lambda row: row[0])
    rival = np.full(len(value), -9.0)
    best_rivals(offsets, start, end, value, rival)
    for s, sample in enumerate(rows):
        for i, (interval, _) in enumerate(sample):
            others = [v for j, (o, v) in enumerate(sample) if j != i and not apart(interval, o)]
            assert rival[offsets[s] + i] == max(others, default=-9.0)
