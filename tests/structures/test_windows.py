"""Probabilities of windows: against all labellings, and against sums over whole samples."""

from __future__ import annotations

import numpy as np
import pytest
from enumerate_passes import chains, enumerated, feasible
from hypothesis import given
from hypothesis import strategies as st

from trellis.errors import InfeasibleError
from trellis.structures import ChainPotentials, event_probability, windows
from trellis.structures.windows import window_probabilities


@st.composite
def windows_of(draw, p):
    """Some windows of every sample, and label sets, empty ones too."""
    n_labels = p.node.shape[1]
    rows = st.lists(st.booleans(), min_size=n_labels, max_size=n_labels)
    table = np.array(draw(st.lists(rows, min_size=1, max_size=4)))
    found = []
    for first, stop in zip(p.offsets[:-1].tolist(), p.offsets[1:].tolist(), strict=True):
        if first < stop:
            for _ in range(draw(st.integers(0, 3))):
                begin = draw(st.integers(first, stop - 1))
                found.append((begin, draw(st.integers(begin + 1, stop))))
    found.sort()
    lengths = [b - a for a, b in found]
    n = sum(lengths)
    sets = draw(st.lists(st.integers(0, len(table) - 1), min_size=n, max_size=n))
    first = np.array([a for a, _ in found], np.int64)
    return first, np.cumsum([0, *lengths]), np.array(sets, np.int64), table


@st.composite
def cases(draw):
    p = draw(feasible(chains()))
    return p, draw(windows_of(p))


@given(case=cases())
def test_windows_have_the_probability_of_their_labellings(case):
    p, (first, offsets, sets, table) = case
    found = window_probabilities(p, first, offsets, sets, table)
    samples = enumerated(p)
    for m, begin in enumerate(first):
        s = int(np.searchsorted(p.offsets, begin, side="right")) - 1
        may, shift = table[sets[offsets[m] : offsets[m + 1]]], begin - p.offsets[s]
        expected = samples[s].probability(
            lambda y, may=may, shift=shift: all(may[k, y[shift + k]] for k in range(len(may)))
        )
        assert found[m] == pytest.approx(expected, abs=1e-10, rel=1e-6)
        assert 0 <= found[m] <= 1


@given(case=cases())
def test_large_scores_are_taken_one_window_at_a_time(case):
    p, arguments = case
    found = window_probabilities(p, *arguments)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows, "_LARGE", -1.0)
        apart = window_probabilities(p, *arguments)
    np.testing.assert_allclose(found, apart, atol=1e-10, rtol=1e-6)


@pytest.mark.parametrize("shared", [True, False])
def test_long_chains(shared):
    rng = np.random.default_rng(0)
    n, n_labels = 3000, 6
    trans = rng.normal(0, 3, (n_labels, n_labels) if shared else (n, n_labels, n_labels))
    trans[..., 0, 1] = -np.inf
    p = ChainPotentials(rng.normal(0, 3, (n, n_labels)), trans, [0, 1000, n])
    table = rng.random((8, n_labels)) < 0.7
    first = np.array([0, 500, 997, 1000, 2000, 2990])
    lengths = np.array([1, 40, 3, 1000, 7, 10])
    sets = rng.integers(0, 8, lengths.sum())
    offsets = np.append(0, np.cumsum(lengths))
    found = window_probabilities(p, first, offsets, sets, table)
    for m, a in enumerate(first):
        allowed = np.ones((n, n_labels), bool)
        allowed[a : a + lengths[m]] = table[sets[offsets[m] : offsets[m + 1]]]
        expected = event_probability(p, allowed)[int(a >= 1000)]
        assert found[m] == pytest.approx(expected, abs=1e-10, rel=1e-8)


@pytest.mark.parametrize("size", [1e5, 1e200, 1e308])
def test_scores_as_large_as_floats_are(size):
    p = ChainPotentials([[size, 0.0], [0.0, size]], np.zeros((2, 2)), [0, 2])
    one = window_probabilities(p, np.array([0]), np.array([0, 2]), np.array([0, 1]), np.eye(2) > 0)
    assert one.tolist() == [1.0]


def test_samples_with_windows_must_be_feasible():
    node = np.zeros((3, 2))
    node[2] = -np.inf
    p = ChainPotentials(node, np.zeros((2, 2)), [0, 1, 3])
    table, sets, offsets = np.ones((1, 2), bool), np.zeros(1, np.int64), np.array([0, 1])
    assert window_probabilities(p, np.array([0]), offsets, sets, table).tolist() == [1.0]
    with pytest.raises(InfeasibleError, match="sample 1"):
        window_probabilities(p, np.array([1]), offsets, sets, table)
