"""What rich edges of few pairs change in the transitions, against the scores of all pairs."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from trellis.kernels.rich_edges import RichEdges, score_edges
from trellis.kernels.scoring import Features
from trellis.kernels.sparse_edges import changed_steps, count_entries


def problem(seed: int, n_labels: int, both: bool, real: bool, some: bool):
    """Features, transitions, weights and offsets; a feature may have a pair twice."""
    rng = np.random.default_rng(seed)
    lengths, n_features = rng.integers(0, 5, rng.integers(1, 5)), 6
    offsets = np.append(0, np.cumsum(lengths))
    indptr = np.append(0, np.cumsum(rng.integers(0, 4, offsets[-1])))
    indices = rng.integers(0, n_features, indptr[-1]).astype(np.int32)
    values = rng.normal(size=len(indices) if real else 0).astype(np.float32)
    crossed = rng.random(n_features) < (0.6 if some else 1.0)
    row = np.where(crossed, np.cumsum(crossed) - 1, -1).astype(np.int32)
    n_crossed = int(crossed.sum())
    ptr = np.append(0, np.cumsum(rng.integers(0, 6, n_crossed * (1 + both))))
    pair = rng.integers(0, n_labels**2, ptr[-1]).astype(np.int32)
    R = rng.normal(size=len(pair)).astype(np.float32)
    T = rng.normal(size=(n_labels, n_labels)).astype(np.float32)
    edges = RichEdges(row if some else row[:0], ptr, pair, R, n_crossed, both)
    return Features(indptr, indices, values), T, edges, offsets


CASES = (
    st.integers(0, 2**32 - 1), st.integers(1, 12), st.booleans(), st.booleans(), st.booleans(),
)  # fmt: skip


@given(*CASES, st.booleans())
@example(358, 3, False, True, True, False)  # no feature is crossed
def test_they_are_the_scores_of_all_pairs_to_the_bit(seed, n_labels, both, real, some, ruled):
    features, T, edges, offsets = problem(seed, n_labels, both, real, some)
    follow = np.random.default_rng(seed).random(T.shape) < (0.7 if ruled else 1.0)
    entries = count_entries(features, edges)
    for a in range(len(offsets)):  # the samples from a on
        first, last = int(offsets[a]), int(offsets[-1])
        own = offsets[a:] - first
        met = entries[last] - entries[first]
        found, unsound = changed_steps(features, T, edges, follow, own, first, met)
        assert unsound == -1 and len(found.ptr) == last - first + 1
        tables = np.repeat(T[None], last - first, axis=0)
        for t in range(last - first):
            here = slice(found.ptr[t], found.ptr[t + 1])
            places = found.source[here], found.target[here]
            assert len(set(zip(*map(np.ndarray.tolist, places), strict=True))) == len(places[0])
            tables[t][places] = found.score[here]
        starts = own[:-1][np.diff(own) > 0]
        assert (np.diff(found.ptr)[starts] == 0).all()
        expected = np.where(follow, score_edges(features, T, edges, first, last), -np.inf)
        steps = np.setdiff1d(np.arange(last - first), starts)
        assert (np.where(follow, tables, -np.inf)[steps] == expected[steps]).all()
        assert np.isneginf(found.score[~follow[found.source, found.target]]).all()


def test_the_first_position_beyond_floats_is_named():
    features = Features(np.arange(6), np.array([1, 0, 1, 1, 0], np.int32), np.zeros(0, np.float32))
    weights = np.array([1.0, 3e38], np.float32)
    edges = RichEdges(
        np.zeros(0, np.int32), np.arange(3), np.array([0, 3], np.int32), weights, 2, False
    )
    T = np.full((2, 2), 1e38, np.float32)
    everything = np.ones((2, 2), np.bool_)
    for follow in (everything, np.eye(2) < 0):  # a rule does not hide it
        found, unsound = changed_steps(features, T, edges, follow, np.array([0, 2, 5]), 0, 5)
        assert unsound == 3 and found.ptr.tolist() == [0, 0, 1, 1, 2, 3]
