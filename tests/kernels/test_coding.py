"""Keys of conjunctions and rows of features against plain Python."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trellis.kernels.coding import assemble, fold_terms, take_ids

LENGTHS = st.lists(st.sampled_from([0, 1, 1, 2, 3, 7, 20]), max_size=5)
RADIX = 6  # of codes −1 .. 4, or with marks


@st.composite
def conjunctions(draw):
    """Codes of two atoms, terms (row, shift), sample bounds and the number of marks."""
    offsets = np.cumsum([0, *draw(LENGTHS)])
    shifts = st.integers(-4, 4) | st.sampled_from([-30, 30])
    terms = draw(st.lists(st.tuples(st.integers(0, 1), shifts), min_size=1, max_size=3))
    marks = draw(st.sampled_from([0, 2 * max(abs(shift) for _, shift in terms)]))
    seed = draw(st.integers(0, 100))
    codes = np.random.default_rng(seed).integers(-1, RADIX - 1, (2, offsets[-1])).astype(np.int32)
    return codes, terms, offsets, marks


def code_at(codes, a, b, u, marks):
    if a <= u < b:
        return codes[u] + marks if codes[u] >= 0 else None
    if not marks:
        return None
    return 2 * (a - u - 1) if u < a else 2 * (u - b) + 1


@given(conjunctions())
def test_keys_are_mixed_radix_numbers(problem):
    codes, terms, offsets, marks = problem
    radix = RADIX + marks
    expected = []
    for a, b in itertools.pairwise(offsets):
        for t in range(a, b):
            digits = [code_at(codes[row], a, b, t + shift, marks) for row, shift in terms]
            key = -1 if None in digits else sum(d * radix**i for i, d in enumerate(digits[::-1]))
            expected.append(key)
    keys = np.full(offsets[-1], 77)
    fold_terms(codes, np.array([(*term, radix) for term in terms]), offsets, marks, keys)
    assert keys.tolist() == expected


@given(st.lists(st.integers(-1, 3), max_size=40), st.sampled_from([[9, 7, 5, 6], []]))
def test_ids_of_codes(given_codes, ids):
    codes = np.array(given_codes if ids else [-1] * len(given_codes), np.int32)
    expected = [ids[code] if code >= 0 else -1 for code in codes]
    take_ids(codes, np.array(ids, np.int32))
    assert codes.tolist() == expected


@st.composite
def columns(draw):
    """Rows of single ids, of which the last carry numbers, and bags."""
    n, n_plain = draw(st.integers(0, 20)), draw(st.integers(0, 4))
    n_numbers, n_bags = draw(st.integers(0, 2)), draw(st.integers(0, 2))
    rng = np.random.default_rng(draw(st.integers(0, 100)))
    single = rng.integers(-1, 5, (n_plain + n_numbers, n)).astype(np.int32)
    numbers = rng.integers(-1, 2, (n_numbers, n)).astype(np.float32)
    counts = rng.integers(0, 3, n_bags * n)
    ends = np.concatenate([[0], np.cumsum(counts)])
    bag_ptr = np.array([ends[b * n : (b + 1) * n + 1] for b in range(n_bags)], np.int64)
    bag_ids = rng.integers(-1, 5, ends[-1]).astype(np.int32)
    return single, numbers, bag_ptr.reshape(n_bags, n + 1), bag_ids, n_plain, n_numbers > 0


@given(columns())
def test_rows_of_features(problem):
    single, numbers, bag_ptr, bag_ids, n_plain, with_values = problem
    expected = []
    for t in range(single.shape[1]):
        row = [(int(ids[t]), 1.0) for ids in single[:n_plain]]
        row += [
            (int(ids[t]) if x[t] else -1, float(x[t]))
            for ids, x in zip(single[n_plain:], numbers, strict=True)
        ]
        row += [(int(i), 1.0) for ptr in bag_ptr for i in bag_ids[ptr[t] : ptr[t + 1]]]
        expected.append([(i, x) for i, x in row if i >= 0])
    indptr, indices, values = assemble(*problem)
    assert (indices.dtype, values.dtype) == (np.int32, np.float32)
    assert values.size == (indices.size if with_values else 0)
    numbers = values.tolist() if with_values else [1.0] * len(indices)
    entries = list(zip(indices.tolist(), numbers, strict=True))
    found = [entries[a:b] for a, b in itertools.pairwise(indptr)]
    assert found == expected
    assert indptr[-1] == len(indices)
