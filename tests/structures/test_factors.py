"""Factors of any number of nodes: against enumeration of the scores with the factors."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from enumerate_graph import labellings, log_sum, problems, samples_of
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from trellis.errors import DataError, InfeasibleError
from trellis.structures import (
    GraphPotentials,
    best,
    kbest,
    labelling_score,
    marginals,
    sample,
    with_factors,
)

INF = np.inf


@st.composite
def factored(draw, single=False):
    """Graphs and factors of one to four nodes, some with combinations that are forbidden."""
    p = draw(problems(most_nodes=4))
    if single:
        none = GraphPotentials(np.zeros((0, 2)), np.eye(2), np.zeros((0, 2), int), [0, 0])
        p = p.alone(0) if p.n_samples else none
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    hard, factors = draw(st.sampled_from([0.0, 0.2, 0.6])), []
    sizes = np.diff(p.offsets)
    for _ in range(draw(st.integers(0, 3))):
        if not (sizes > 0).any():
            break
        s = rng.choice(np.flatnonzero(sizes > 0))
        k = int(rng.integers(1, sizes[s] + 1))
        nodes = p.offsets[s] + rng.choice(sizes[s], k, replace=False)
        table = rng.normal(size=(p.node.shape[1],) * k)
        table[rng.random(table.shape) < hard] = -INF
        factors.append((nodes, table))
    return p, factors


def enumerated(p, factors) -> list[dict]:
    """Scores with factors of the feasible labellings of each sample, best first."""
    found = []
    for s, alone in enumerate(samples_of(p)):
        first, stop = p.offsets[s], p.offsets[s + 1]
        own = [(nodes - first, t) for nodes, t in factors if first <= nodes[0] < stop]
        scores = {
            y: score + sum(float(t[tuple(y[v] for v in nodes)]) for nodes, t in own)
            for y, score in labellings(alone).items()
        }
        found.append({y: x for y, x in sorted(scores.items(), key=lambda s: -s[1]) if x > -INF})
    return found


@given(factored())
@settings(max_examples=40)
def test_inference_with_factors_is_that_of_enumeration(case):
    p, factors = case
    every = enumerated(p, factors)
    q = with_factors(p, factors)
    if not all(every):
        with pytest.raises(InfeasibleError):
            best(q.potentials, exact=True)
        return
    found = best(q.potentials, exact=True)
    assert found.scores == pytest.approx([max(each.values()) for each in every], abs=1e-9)
    sure = marginals(q.potentials, method="elimination")
    assert sure.log_z == pytest.approx([log_sum(each.values()) for each in every], abs=1e-8)
    labels, chances = q.labels(found.labels), q.chances(sure.node)
    np.testing.assert_array_equal(q.completed(labels), found.labels)
    for s, each in enumerate(every):
        rows = slice(p.offsets[s], p.offsets[s + 1])
        assert each[tuple(labels[rows].tolist())] == pytest.approx(found.scores[s], abs=1e-9)
        wanted, log_z = np.zeros(chances[rows].shape), log_sum(each.values())
        for y, score in each.items():
            wanted[np.arange(len(y)), list(y)] += math.exp(score - log_z)
        np.testing.assert_allclose(chances[rows], wanted, atol=1e-8)


@given(factored(single=True))
@settings(max_examples=30)
def test_scores_and_alternatives(case):
    p, factors = case
    every = enumerated(p, factors)
    assume(every[0])
    q, n_labels = with_factors(p, factors), p.node.shape[1]
    for y in itertools.product(range(n_labels), repeat=len(p.node)):
        found = labelling_score(q.potentials, q.completed(np.array(y, int)))[0]
        assert found == pytest.approx(every[0].get(y, -INF), abs=1e-9)
    labels, scores = kbest(q.potentials, 5)
    wanted = list(every[0].values())[: len(scores[0])]
    assert scores[0] == pytest.approx(wanted, abs=1e-9)
    assert q.labels(labels).shape == (len(labels), len(p.node))
    drawn = q.labels(sample(q.potentials, 20, np.random.default_rng(0)))
    assert all(tuple(y) in every[0] for y in drawn.tolist())


def test_factors_alike_share_their_tables():
    p = GraphPotentials(np.zeros((9, 2)), np.eye(2), np.zeros((0, 2), int), [0, 9])
    even = np.where(np.indices((2, 2, 2)).sum(axis=0) % 2 == 0, 0.0, -INF)
    q = with_factors(p, [([i, i + 1, i + 2], even) for i in range(7)]).potentials
    assert len(q.node) == 16 and q.node.shape[1] == 4 and len(q.pair) == 3
    assert marginals(q).log_z[0] == pytest.approx(math.log(4))  # the first two say all


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ([([0, 1], np.zeros((2, 3)))], r"table of factor 0 .* \(2, 3\)"),
        (
            [([0], np.zeros(2)), ([0, 0], np.zeros((2, 2)))],
            "factor 1 needs one or more nodes, each",
        ),
        ([([], np.zeros(()))], "factor 0 needs one or more nodes"),
        ([([0, 9], np.zeros((2, 2)))], "nodes of factor 0"),
        ([([0, 3], np.zeros((2, 2)))], "factor 0 has nodes of several samples"),
        ([([0], [0.0, np.nan])], "scores of factor 0 must be finite, or -inf"),
        ([([0], [0.0, INF])], "scores of factor 0 must be finite, or -inf"),
        ([([0],)], "factor 0 is not a pair of nodes and a table"),
        (3, "factors"),
    ],
)
def test_refusals(factors, message):
    p = GraphPotentials(np.zeros((4, 2)), np.eye(2), [[0, 1]], [0, 3, 4])
    with pytest.raises(DataError, match=message):
        with_factors(p, factors)


def test_tables_that_are_too_large_are_refused_in_words():
    p = GraphPotentials(np.zeros((12, 2)), np.eye(2), np.zeros((0, 2), int), [0, 12])
    message = (
        r"factors of up to 4,096 combinations .* 13 tables of 4,096 x 4,096 numbers, and budget"
    )
    with pytest.raises(DataError, match=message):
        with_factors(p, [(np.arange(12), np.zeros((2,) * 12))])
    one = np.where(np.indices((2,) * 12).sum(axis=0) == 1, 0.0, -INF)
    q = with_factors(p, [(np.arange(12), one)])
    assert marginals(q.potentials).log_z[0] == pytest.approx(math.log(12))
    with pytest.raises(DataError, match=r"labels have shape \(12,\); expected 13 in the last axis"):
        q.labels(np.zeros(12, int))
