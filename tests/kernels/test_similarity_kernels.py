"""Common n-grams and edits against the evaluation's, and runs that differ put back in place."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trellis.evaluation import edit_distance
from trellis.kernels.similarity import differences, similarities

SEQUENCES = st.lists(st.lists(st.integers(0, 2), max_size=7), min_size=1, max_size=4)


def packed(sequences):
    flat = [code for sequence in sequences for code in sequence]
    return np.array(flat, np.int32), np.cumsum([0, *map(len, sequences)], dtype=np.int64)


def ngrams(x, longest):
    return Counter(
        tuple(x[i : i + n]) for n in range(1, longest + 1) for i in range(len(x) - n + 1)
    )


@given(SEQUENCES, SEQUENCES, st.integers(0, 4), st.booleans())
def test_pairs(some, others, longest, edit):
    common, edits = similarities(*packed(some), *packed(others), longest, edit, False)
    for r, a in enumerate(some):
        for q, b in enumerate(others):
            assert common[r, q] == (ngrams(a, longest) & ngrams(b, longest)).total()
            assert edits[r, q] == edit * edit_distance([*map(str, a)], [*map(str, b)])


@given(SEQUENCES, st.integers(0, 4))
def test_each_pair_once(some, longest):
    twice = similarities(*packed(some), *packed(some), longest, True, False)
    once = similarities(*packed(some), *packed(some), longest, True, True)
    assert all(np.array_equal(a, b) for a, b in zip(once, twice, strict=True))


@given(st.lists(st.integers(0, 2), max_size=7), SEQUENCES)
def test_runs_that_differ(a, others):
    runs = differences(np.array(a, np.int32), *packed(others))
    for q, b in enumerate(others):
        changed, edits = list(a), 0
        for _, i, k, j, m in runs[runs[:, 0] == q].tolist():  # from the last to the first
            assert i == 0 or j == 0 or a[i - 1] == b[j - 1]
            assert k == len(a) or m == len(b) or a[k] == b[m]
            assert a[i:k] != b[j:m]
            changed[i:k] = b[j:m]
            edits += max(k - i, m - j)
        assert changed == b
        assert edits == edit_distance([*map(str, a)], [*map(str, b)])
