"""Familiar, new and alike positions: against counting one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.features import Encoded
from trellis.problems.familiarity import FeatureCounts

POSITIONS = st.lists(st.lists(st.integers(0, 5), max_size=4, unique=True), min_size=1, max_size=8)


def counted(positions):
    """Features as models see them, and their counts."""
    indptr = np.cumsum([0, *map(len, positions)])
    indices = np.array([f for x in positions for f in x], np.int32)
    encoded = Encoded(np.array([0, len(positions)]), indptr, indices, np.zeros(0, np.float32))
    times = [sum(f in x for x in positions) for f in range(6)]
    return FeatureCounts(encoded, 6), times


@given(positions=POSITIONS)
def test_familiarity_is_the_mean_log_count(positions):
    counts, times = counted(positions)
    each = [sum(math.log(times[f]) for f in x) / len(x) if x else 0.0 for x in positions]
    mean = sum(each) / len(each)
    expected = [value / mean if mean > 1e-9 else 1.0 for value in each]
    np.testing.assert_allclose(counts.familiarity, expected, atol=1e-9)


@given(positions=POSITIONS, data=st.data())
def test_novelty_counts_features_that_were_not_seen(positions, data):
    counts, times = counted(positions)
    places = st.lists(st.integers(0, len(positions) - 1), unique=True)
    told = np.array(data.draw(places), np.int64)
    seen = {f for t in told for f in positions[t]}
    assert set(np.flatnonzero(counts.of_rows(told)).tolist()) == seen
    worth = {f: math.log1p(times[f]) for f in range(6) if f not in seen and times[f] > 1}
    rows = np.arange(len(positions))
    expected = [sum(worth.get(f, 0.0) for f in x) for x in positions]
    found = counts.novelty(rows, counts.of_rows(told))
    np.testing.assert_allclose(found, expected, atol=1e-9)
    cut = data.draw(st.integers(0, len(positions)))
    offsets = np.array([0, cut, len(positions)])
    samples = [positions[:cut], positions[cut:]]
    expected = [sum(worth.get(f, 0.0) for f in {f for x in s for f in x}) for s in samples]
    found = counts.sample_novelty(rows, offsets, counts.of_rows(told))
    np.testing.assert_allclose(found, expected, atol=1e-9)


@given(positions=POSITIONS, data=st.data())
def test_alike_is_the_cosine_of_weighted_features(positions, data):
    counts, times = counted(positions)
    places = st.lists(st.integers(0, len(positions) - 1), min_size=1, max_size=3)
    parts = [np.array(p) for p in data.draw(st.lists(places, min_size=1, max_size=3))]
    vectors = np.zeros((len(parts), 6))
    for k, part in enumerate(parts):
        for t in part:
            for f in positions[t]:
                vectors[k, f] += math.log(len(positions) / times[f])
    norms = np.maximum(np.sqrt((vectors**2).sum(axis=1)), 1e-150)
    expected = vectors @ vectors.T / np.outer(norms, norms)
    np.testing.assert_allclose(counts.alike(parts), expected, atol=1e-9)


def test_features_that_all_positions_have_make_none_familiar():
    counts, _ = counted([[], []])
    assert counts.familiarity.tolist() == [1.0, 1.0]
    counts, _ = counted([[0], [1]])  # each met once
    assert counts.familiarity.tolist() == [1.0, 1.0]
    assert counts.alike([np.array([0]), np.array([1])]).tolist() == pytest.approx(np.eye(2))
