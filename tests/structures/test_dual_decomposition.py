"""Dual decomposition: ceilings against brute force, narrowing, resuming, and moves on trees."""

from __future__ import annotations

import numpy as np
import pytest
from enumerate_graph import feasible, labellings, problems, samples_of, score
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from trellis.structures import GraphPotentials, best
from trellis.structures.dual_decomposition import DualDecomposition, moved
from trellis.structures.message_graph import MessageGraph, labelling_scores, supported

INF = np.inf


def ascended(p: GraphPotentials, turns: int) -> DualDecomposition:
    q = supported(p)
    dual = DualDecomposition.of(q, MessageGraph.of(q))
    dual.ascend(turns, np.zeros(p.n_samples))
    return dual


def slack(x: float) -> float:
    return 1e-9 * max(1.0, abs(x))


@given(problems(), st.integers(1, 8))
@settings(max_examples=30)
def test_no_labelling_is_above_the_ceilings_of_its_labels(p, turns):
    assume(feasible(p))
    ceilings = ascended(p, turns).state.ceilings
    for s, alone in enumerate(samples_of(p)):
        for y, value in labellings(alone).items():
            own = ceilings[p.rows(s)][np.arange(len(y)), list(y)]
            assert (own >= value - slack(value)).all()


@given(problems(), st.integers(1, 8), st.integers(0, 3))
@settings(max_examples=30)
def test_narrowing_leaves_what_is_found_and_what_is_better(p, turns, rounds):
    assume(feasible(p))
    dual = ascended(p, turns)
    dual.move(np.full(p.n_samples, rounds), np.zeros(p.n_samples))
    dual.narrow(np.full(p.n_samples, 1e-6))
    narrowed, labels = samples_of(dual.p), dual.state.labels
    for s, alone in enumerate(samples_of(p)):
        highest = max(labellings(alone).values())
        assert max(labellings(narrowed[s]).values()) == pytest.approx(highest)
        found = score(alone, labels[p.rows(s)])
        assert found == -INF or score(narrowed[s], labels[p.rows(s)]) == found


@given(problems(), st.integers(1, 5), st.integers(1, 5))
@settings(max_examples=30)
def test_ascent_can_be_taken_up_again(p, first, more):
    assume(feasible(p))
    whole, parts = ascended(p, first + more), ascended(p, first)
    parts.ascend(first + more, np.zeros(p.n_samples))
    for a, b in zip(whole.state, parts.state, strict=True):
        assert np.array_equal(a, b)
    for s in range(p.n_samples):
        one = np.arange(p.n_samples) == s
        some = ascended(p, first).part(one)
        some.ascend(first + more, np.zeros(1))
        assert np.array_equal(some.state.labels, whole.state.labels[p.rows(s)])
        assert np.array_equal(some.state.bounds, whole.state.bounds[one])


def start(p: GraphPotentials, seed: int) -> np.ndarray:
    """Labels that are allowed at their nodes, if any are."""
    chance = np.random.default_rng(seed).random(p.node.shape)
    return np.where(np.isfinite(p.node), chance, -1.0).argmax(axis=1).astype(np.int32)


def moves(p: GraphPotentials, labels, rounds: int, bounds=None):
    n = p.n_samples
    bounds = np.full(n, INF) if bounds is None else bounds
    return moved(p, MessageGraph.of(p), labels, np.full(n, rounds), bounds, np.zeros(n))


@given(problems(), st.integers(0, 40), st.integers(0, 9))
@settings(max_examples=30)
def test_moves_never_lower_the_score(p, rounds, seed):
    assume(feasible(p))
    q = supported(p)
    before = start(q, seed)
    labels, scores = moves(q, before, rounds)
    assert (scores >= labelling_scores(q, before)).all()
    for s, alone in enumerate(samples_of(p)):
        y = labels[p.rows(s)]
        assert scores[s] == pytest.approx(score(alone, y))
        assert scores[s] <= max(labellings(alone).values()) + slack(scores[s])
    for s in range(p.n_samples):  # the same beside other samples and alone
        alone = q.alone(s)
        own, _ = moves(alone, before[p.rows(s)], rounds)
        assert np.array_equal(own, labels[p.rows(s)])


@given(problems(forest=True), st.integers(0, 9))
def test_one_round_solves_forests(p, seed):
    assume(feasible(p))
    q = supported(p)
    _, scores = moves(q, start(q, seed), 1)
    for value, alone in zip(scores, samples_of(p), strict=True):
        assert value == pytest.approx(max(labellings(alone).values()))


@given(problems(forbidden=(0.0, 0.2)), st.integers(0, 9))
@settings(max_examples=30)
def test_many_rounds_find_the_best_of_small_graphs(p, seed):
    assume(feasible(p))
    q = supported(p)
    _, scores = moves(q, start(q, seed), 300)
    for value, alone in zip(scores, samples_of(p), strict=True):
        assert value == -INF or value == pytest.approx(max(labellings(alone).values()))


def test_moves_end_at_the_bound():
    rng = np.random.default_rng(0)
    p = GraphPotentials(
        rng.normal(size=(4, 3)), rng.normal(size=(3, 3)), [[0, 1], [1, 2], [2, 3], [0, 3]], [0, 4]
    )
    before = start(p, 1)
    labels, _ = moves(p, before, 100, bounds=labelling_scores(p, before))
    assert np.array_equal(labels, before)


def test_moves_repair_what_is_forbidden():
    """Neighbours on a grid must differ, and all have the same label at first."""
    from trellis.datasets import grid_edges

    differ = np.where(np.eye(3), -INF, 0.0)
    node = np.random.default_rng(0).normal(size=(100, 3))
    p = GraphPotentials(node, differ, grid_edges(10, 10), [0, 100])
    _, scores = moves(p, np.zeros(100, np.int32), 30)
    assert np.isfinite(scores[0])


def test_more_rounds_bring_better_labellings():
    from trellis.datasets import grid_edges

    rng = np.random.default_rng(3)
    edges = grid_edges(15, 15)
    p = GraphPotentials(
        rng.normal(size=(225, 4)), rng.normal(size=(len(edges), 4, 4)), edges, [0, 225]
    )
    found = [best(p, method="dual", rounds=n) for n in (0, 10, 300)]
    scores = [one.scores[0] for one in found]
    assert scores[0] < scores[1] < scores[2]
    assert len({one.bounds[0] for one in found}) == 1
    again = best(p, method="dual", rounds=300)
    assert np.array_equal(again.labels, found[2].labels)
