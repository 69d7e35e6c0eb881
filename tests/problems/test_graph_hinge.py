"""Structured hinge losses of graphs against enumeration, exact and with bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margin_problems import make_problem
from trellis.problems import GraphHingeLoss, HingeLoss
from trellis.problems.hinge import NodeOrder
from trellis.solvers import minimise_bundle, minimise_frank_wolfe
from trellis.structures import Forest

problems = st.builds(
    make_problem, st.integers(0, 10_000), st.just("graph"), directed=st.booleans(),
    n_tables=st.integers(1, 2),
)  # fmt: skip


def loss_of(p, inference="auto"):
    return GraphHingeLoss(
        p.data, p.edges, p.types, n_tables=p.n_tables, directed=p.directed, inference=inference
    )


@settings(max_examples=20)
@given(p=problems, seed=st.integers(0, 1000))
def test_exact_inference_gives_the_risk(p, seed):
    loss = loss_of(p, "exact")
    w = np.random.default_rng(seed).normal(size=loss.n_weights)
    cut = loss.risk(w)
    assert cut.upper == pytest.approx(p.risk(w), rel=1e-6, abs=1e-6)
    assert cut.lower == pytest.approx(cut.upper, rel=1e-6, abs=1e-6)
    for other in np.random.default_rng(seed + 1).normal(size=(2, loss.n_weights)):
        assert p.risk(other) >= cut.lower + cut.slope @ (other - w) - 1e-9
    for i, hinge in enumerate(p.hinges(w)):
        (index, psi), cost, upper = loss.best(i, w)
        assert cost - psi @ w[index] == pytest.approx(hinge, abs=1e-6)
        assert upper == pytest.approx(hinge, abs=1e-6)


@settings(max_examples=20)
@given(p=problems, seed=st.integers(0, 1000))
def test_relaxation_gives_bounds_and_valid_planes(p, seed):
    loss = loss_of(p, "lp")
    w = 2 * np.random.default_rng(seed).normal(size=loss.n_weights)
    cut = loss.risk(w)
    assert cut.lower - 1e-6 <= p.risk(w) <= cut.upper + 1e-6
    for other in np.random.default_rng(seed + 1).normal(size=(2, loss.n_weights)):
        assert p.risk(other) >= cut.lower + cut.slope @ (other - w) - 1e-6


@pytest.mark.parametrize("directed", [True, False])
def test_both_solvers_and_both_losses_agree_on_trees(directed):
    p = make_problem(3, "tree", 8, directed=directed, n_tables=2)
    nodes = NodeOrder.forest(Forest.of(p.offsets, p.edges), p.types)
    tree = HingeLoss(p.data, nodes, n_tables=2, directed=directed)
    graph = loss_of(p)
    w = np.random.default_rng(0).normal(size=tree.n_weights)
    value, slope = tree.risk(w)
    cut = graph.risk(w)
    assert cut.upper == pytest.approx(value)
    np.testing.assert_allclose(cut.slope, slope, atol=1e-12)
    a = minimise_bundle(tree.risk, tree.n_weights, l2=0.5, floor=0.0, tol=1e-4)
    b = minimise_frank_wolfe(
        graph.best, graph.n_samples, graph.n_weights, l2=0.5,
        sample_weight=p.data.sample_weight, tol=1e-2, max_passes=60, seed=0,
    )  # fmt: skip
    assert a.lower_bound <= b.objective * (1 + 1e-9)
    assert b.lower_bound <= a.objective * (1 + 1e-9)
    assert b.objective == pytest.approx(a.objective, rel=0.02)


def test_edges_may_come_in_any_order():
    p = make_problem(7, "graph", 5)
    q = np.random.default_rng(0).permutation(len(p.edges))
    w = np.random.default_rng(1).normal(size=loss_of(p).n_weights)
    shuffled = GraphHingeLoss(p.data, p.edges[q], p.types[q])
    assert shuffled.risk(w).upper == pytest.approx(loss_of(p).risk(w).upper)
    (index, psi), *rest = loss_of(p).best(1, w)
    (index2, psi2), *rest2 = shuffled.best(1, w)
    np.testing.assert_array_equal(index, index2)
    np.testing.assert_allclose(psi, psi2)
    assert rest == pytest.approx(rest2)
