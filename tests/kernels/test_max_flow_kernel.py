"""Least cuts: against the enumeration of all cuts, and against SciPy's flow of integers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.kernels.max_flow import least_cut

INF = np.inf


def cut_value(edges, there, back, terminal, source_side) -> float:
    """What leaves the side of the source."""
    total = sum(
        max(-x if inside else x, 0.0) for x, inside in zip(terminal, source_side, strict=True)
    )
    for (a, b), forth, other in zip(edges, there, back, strict=True):
        if source_side[a] and not source_side[b]:
            total += forth
        elif source_side[b] and not source_side[a]:
            total += other
    return float(total)


def flow_value(terminal, left) -> float:
    return float(np.maximum(terminal, 0.0).sum() - np.maximum(left, 0.0).sum())


def network(rng, n: int, density: float, scale: float, whole: bool, endless: float):
    edges = [(a, b) for a in range(n) for b in range(n) if a != b and rng.random() < density]
    there, back = rng.exponential(scale, (2, len(edges)))
    back[rng.random(len(edges)) < 0.5] = 0.0
    terminal = rng.normal(size=n) * scale
    terminal[rng.random(n) < 0.2] = 0.0
    if whole:
        there, back, terminal = np.round(there), np.round(back), np.round(terminal)
    there[rng.random(len(edges)) < endless] = INF
    back[rng.random(len(edges)) < endless] = INF
    return np.array(edges, np.int64).reshape(-1, 2), there, back, terminal


@given(
    st.integers(0, 2**32 - 1), st.integers(0, 7), st.sampled_from([0.2, 0.5, 1.0]),
    st.sampled_from([0.0, 1e-8, 1.0, 3.0, 1e9]), st.booleans(), st.sampled_from([0.0, 0.2, 0.8]),
)  # fmt: skip
@settings(max_examples=60)
def test_against_all_cuts(seed, n, density, scale, whole, endless):
    rng = np.random.default_rng(seed)
    edges, there, back, terminal = network(rng, n, density, scale, whole, endless)
    side, left = least_cut(edges, there, back, terminal)
    every = itertools.product([False, True], repeat=n)
    least = min(cut_value(edges, there, back, terminal, cut) for cut in every)
    close = pytest.approx(least, rel=1e-9, abs=1e-12 * scale)
    assert cut_value(edges, there, back, terminal, side) == close
    assert flow_value(terminal, left) == close
    assert (np.abs(left) <= np.abs(terminal)).all() and (left * terminal >= 0).all()


@pytest.mark.parametrize("seed", range(12))
def test_against_scipy(seed):
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 300))
    edges = np.unique(np.sort(rng.integers(0, n, (int(rng.integers(1, 5)) * n, 2)), axis=1), axis=0)
    edges = edges[edges[:, 0] != edges[:, 1]]
    there, back = rng.integers(0, 20, (2, len(edges)))
    terminal = rng.integers(-30, 30, n)
    every = np.arange(n)
    tails = np.concatenate([np.full(n, n), every, edges[:, 0], edges[:, 1]])
    heads = np.concatenate([every, np.full(n, n + 1), edges[:, 1], edges[:, 0]])
    capacities = np.concatenate([terminal.clip(0), (-terminal).clip(0), there, back])
    matrix = csr_array((capacities.astype(np.int32), (tails, heads)), shape=(n + 2, n + 2))
    side, left = least_cut(*(np.asarray(x, float) if x.ndim == 1 else x
                             for x in (edges, there, back, terminal)))  # fmt: skip
    known = maximum_flow(matrix, n, n + 1).flow_value
    assert flow_value(terminal, left) == known
    assert cut_value(edges, there, back, terminal, side) == known


def test_nothing_flows_without_terminals():
    edges = np.array([[0, 1], [1, 2]])
    side, left = least_cut(edges, np.ones(2), np.ones(2), np.zeros(3))
    assert not side.any() and not left.any()
