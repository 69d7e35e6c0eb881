"""Rows of weights that edges have of their own: found, scaled, grouped, taken and checked."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_problems import edge_features
from margin_problems import make_problem
from trellis.corpus import Labels
from trellis.errors import DataError
from trellis.features import Encoded
from trellis.problems import EdgeWeights, LabelProblem, LogLikelihood, Penalty, Weights
from trellis.problems.edge_weights import cross_own
from trellis.problems.log_likelihood import FeatureRates
from trellis.problems.log_objective import whole_samples
from trellis.solvers import AdaptiveFrequency

NONE = np.zeros(0, np.int64), np.zeros(0, np.int32)


@given(st.data(), st.booleans())
def test_pairs_seen_with_features_of_edges(data, directed):
    """Rows as known keep their pairs; new ones have those seen often enough."""
    n_edges, n_own, n_old = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 3)), 1
    own = data.draw(edge_features(n_edges, n_own))
    names = data.draw(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=7, max_size=7))
    labels = Labels.from_lists([names], ("a", "b", "c"))
    edges = np.stack([np.arange(n_edges), np.arange(1, n_edges + 1)], axis=1)
    known = EdgeWeights([-1], [0, 2], [1, 5], [0.5, -0.5], both=False, n_own=n_old)
    least = data.draw(st.sampled_from([0.0, 0.5]))
    grown = cross_own(
        known, own, max(n_own, n_old), labels, edges, negatives=0, least=least,
        rng=np.random.default_rng(0), directed=directed,
    )  # fmt: skip
    assert grown.n_own == grown.n_rows == max(n_own, n_old)
    assert grown.pair[:2].tolist() == [1, 5] and grown.values[:2].tolist() == [0.5, -0.5]
    assert not grown.values[2:].any()
    for g in range(n_old, n_own):
        met = []
        for e in range(n_edges):
            ends = [names[v] for v in edges[e]]
            if None in ends:
                continue
            u, v = ("abc".index(end) for end in ends)
            pair = u * 3 + v if directed else min(u, v) * 3 + max(u, v)
            met += [pair] * own.indices[own.indptr[e] : own.indptr[e + 1]].tolist().count(g)
        expected = {p for p in met if met.count(p) >= least * len(met)}
        assert set(grown.pair[grown.ptr[g] : grown.ptr[g + 1]].tolist()) == expected


def test_rows_that_have_all_pairs_stay_so():
    known = EdgeWeights([0, -1], *NONE, np.arange(4.0), both=False)
    own = Encoded([0, 1], [0, 1], [1], [])
    labels = Labels.from_lists([["a", "b"]])
    asked = {"negatives": 3, "rng": np.random.default_rng(0)}
    grown = cross_own(known, own, 2, labels, np.array([[0, 1]]), **asked)
    assert grown.values.tolist() == [0, 1, 2, 3] + [0] * 8
    assert grown.features_of_rows().tolist() == [0, -1, -1]
    assert grown.taken(np.array([1]), np.array([1])).n_rows == 1
    assert grown.taken(np.array([0])).n_own == 2


def test_they_go_at_the_pace_of_transitions():
    problem = make_problem(3, "tree", 5, rich="dense", own=2).problem
    weights = problem.weights(np.zeros(problem.n_weights))
    rates = FeatureRates.constant(problem.n_features, 0.0)
    rates.gamma[-1] = 0.1
    loss, visits = LogLikelihood(problem), whole_samples(problem)
    loss.descend(weights, visits, np.array([1.0, 0.0]), rates=rates)
    first = weights.edge.rows()[weights.edge.n_joined]
    assert not weights.node.any() and not weights.edge.values[:first].any()
    assert weights.transitions.any() and weights.edge.values[first:].any()
    weights = problem.weights(np.ones(problem.n_weights))
    adf = AdaptiveFrequency(loss, weights, learning_rate=1.0, penalty=Penalty(l2=1.0))
    adf.rates.gamma[:-1] = 0.0
    adf.end_window(1, 1, 1)
    assert (weights.node == 1).all() and (weights.edge.values[:first] == 1).all()
    assert (weights.transitions < 1).all() and (weights.edge.values[first:] < 1).all()


def test_groups_of_features_of_edges():
    edge = EdgeWeights([0, -1], *NONE, np.array([3.0, 1, 2, 2, 4, 6]), both=False, n_own=5)
    weights = Weights(np.full((2, 1), 5.0), np.full((1, 1, 1), 7.0), edge)
    penalty = Penalty(group_lasso=1.0, groups=[0, 1], edge_groups=[0, 0, 0, 1, 1])
    norms, sizes = penalty.group_norms(weights)
    # node groups, edge groups (of which the second has no member), transitions, edges' own
    np.testing.assert_allclose(norms, [5, 5, 3, 0, 7, 3, np.sqrt(52)])
    assert sizes.tolist() == [1, 1, 1, 0, 1, 3, 2]
    penalty.proximal(weights, 3 / np.sqrt(3))
    np.testing.assert_allclose(edge.values[1:4], 0, atol=1e-12)
    assert (edge.values[4:] > 0).all()
    Penalty(l1=1.0).proximal(weights, np.array([0.0, 0.0, 100.0]))
    assert weights.node.all() and edge.values[0] and not edge.values[1:].any()
    with pytest.raises(DataError, match="there are groups of 0 features of edges; weights of 5"):
        Penalty(group_lasso=1.0, groups=[0, 1]).value(weights)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"structure": "chain"}, "the edges of chains are implied and have no features"),
        ({"edge_features": Encoded([0, 2], [0, 1, 1], [0], [])}, "features of 2 edges; edges: 1"),
        ({"edge_features": Encoded([0, 1], [0, 1], [3], [])}, "go up to 3, but there are 2 rows"),
        ({"edge_features": [1]}, "edge_features must be"),
        ({"structure": "chain", "edge_features": None}, "the edges of chains are implied"),
    ],
)
def test_what_does_not_fit_is_refused(more, message):
    encoded = Encoded([0, 2], [0, 1, 2], [0, 0], [])
    given = {
        "structure": "tree", "edges": [[0, 1]], "edge_features": Encoded([0, 1], [0, 1], [1], []),
        "rich": EdgeWeights([-1], *NONE, np.zeros(8), both=False, n_own=2),
    }  # fmt: skip
    labels = Labels.from_lists([["a", "b"]])
    LabelProblem(encoded, labels, 1, **given)
    with pytest.raises(DataError, match=re.escape(message)):
        LabelProblem(encoded, labels, 1, **given | more)


def test_features_follow_their_edges_into_order():
    encoded = Encoded([0, 2, 4], [0, 0, 0, 0, 0], [], [])
    labels = Labels.from_lists([["a", "b", "a", "b"]])
    own = Encoded([0, 2], [0, 1, 2], [1, 0], [2.0, 3.0])
    problem = LabelProblem(
        encoded, labels, 1, structure="graph", edges=[[2, 3], [0, 1]], edge_features=own,
        rich=EdgeWeights([-1], *NONE, np.zeros(8), both=False, n_own=2),
    )  # fmt: skip
    assert problem.edges.tolist() == [[0, 1], [2, 3]]
    assert problem.edge_features.indices.tolist() == [0, 1]
    assert problem.rows.rows.tolist() == [0, 1] and problem.rows.values.tolist() == [3, 2]
    assert len(problem.identity()) == len(make_problem(0, "graph").problem.identity()) + 3
