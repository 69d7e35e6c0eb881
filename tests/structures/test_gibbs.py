"""Gibbs sampling by blocks: forests that cover all nodes, and draws like those of enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from enumerate_graph import feasible, is_forest, labellings, log_sum, problems, samples_of
from hypothesis import assume, given, settings

from trellis.datasets import grid_edges
from trellis.errors import InfeasibleError
from trellis.structures import ChainPotentials, GraphPotentials, marginals, sample
from trellis.structures.gibbs import _cover, _neighbours

INF = np.inf


@given(problems(most_nodes=5))
@settings(max_examples=30)
def test_blocks_are_forests_and_cover_all_nodes(p):
    blocks = _cover(_neighbours(p), np.random.default_rng(0))
    assert not len(p.node) or np.logical_or.reduce(blocks).all()
    for chosen in blocks:
        number, kept = np.cumsum(chosen) - 1, chosen[p.edges].all(axis=1)
        part = p.with_arrays(
            node=p.node[chosen], edges=number[p.edges[kept]], types=p.types[kept],
            offsets=np.array([0, chosen.sum()]),
        )  # fmt: skip
        assert is_forest(part)


@given(problems(most_nodes=4))
@settings(max_examples=30)
def test_draws_are_feasible(p):
    assume(feasible(p))
    y = sample(p, 3, np.random.default_rng(0), method="gibbs", sweeps=3)
    assert y.shape == (3, len(p.node)) and y.dtype == np.int32
    for s, alone in enumerate(samples_of(p)):
        every = labellings(alone)
        assert all(tuple(draw.tolist()) in every for draw in y[:, p.offsets[s] : p.offsets[s + 1]])


def test_draws_have_the_right_frequencies():
    rng = np.random.default_rng(3)
    edges = [[0, 1], [1, 2], [2, 3], [3, 0], [1, 3], [4, 5], [5, 6], [6, 4], [7, 8]]
    pair = 0.4 * rng.normal(size=(9, 2, 2))  # weak, so that every labelling is drawn often enough
    for forbidden in (False, True):
        pair[2, 0, 1] = -INF if forbidden else 0.3
        p = GraphPotentials(0.4 * rng.normal(size=(9, 2)), pair, edges, [0, 4, 7, 9])
        y = sample(p, 20_000, rng, method="gibbs", sweeps=12)
        for s, alone in enumerate(samples_of(p)):
            every = labellings(alone)
            log_z = log_sum(every.values())
            own = y[:, p.offsets[s] : p.offsets[s + 1]]
            found, counts = np.unique(own, axis=0, return_counts=True)
            assert len(found) == len(every)
            for labels, count in zip(found.tolist(), counts, strict=True):
                probability = np.exp(every[tuple(labels)] - log_z)
                spread = np.sqrt(probability * (1 - probability) / len(y))
                assert abs(count / len(y) - probability) < 5 * spread


@pytest.mark.parametrize("strength", [0.5, 1.0])
def test_marginals_of_grids(strength):
    rng = np.random.default_rng(1)
    edges = grid_edges(5, 5)
    pair = strength * rng.normal(size=(len(edges), 3, 3))
    p = GraphPotentials(rng.normal(size=(25, 3)), pair, edges, [0, 25])
    y = sample(p, 2000, rng, method="auto", budget=100, sweeps=30)
    exact = marginals(p, pairs=True)
    share = (y[:, :, None] == np.arange(3)).mean(axis=0)
    assert np.abs(share - exact.node).max() < 5 * 0.5 / np.sqrt(2000)
    a, b = edges.T
    codes = y[:, a] * 3 + y[:, b]
    share = (codes[:, :, None] == np.arange(9)).mean(axis=0)
    assert np.abs(share - exact.pair.reshape(-1, 9)).max() < 5 * 0.5 / np.sqrt(2000)


def test_what_is_cheap_is_drawn_exactly():
    square, tail = [[0, 1], [1, 2], [2, 3], [3, 0]], [[4, 5]]
    rng = np.random.default_rng(0)
    p = GraphPotentials(rng.normal(size=(6, 2)), np.eye(2), square + tail, [0, 4, 6])
    draws = [sample(p, 9, np.random.default_rng(5), method=m) for m in ("exact", "auto", "gibbs")]
    assert np.array_equal(draws[0], draws[1])
    assert np.array_equal(draws[0][:, 4:], draws[2][:, 4:])
    again = sample(p, 9, np.random.default_rng(5), method="gibbs")
    assert np.array_equal(draws[2], again) and not np.array_equal(draws[0], draws[2])
    chain = ChainPotentials(p.node, np.eye(2), [0, 6])
    one, other = (sample(chain, 9, np.random.default_rng(5), method=m) for m in ("exact", "gibbs"))
    assert np.array_equal(one, other)
    assert sample(p, 0, rng, method="gibbs").shape == (0, 6)


def test_no_labelling():
    triangle, differ = [[0, 1], [1, 2], [0, 2]], np.where(np.eye(2), -INF, 0.0)
    p = GraphPotentials(np.zeros((3, 2)), differ, triangle, [0, 3])
    with pytest.raises(InfeasibleError):
        sample(p, 1, np.random.default_rng(0), method="gibbs")
