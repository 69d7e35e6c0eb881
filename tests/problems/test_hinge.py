"""Structured hinge losses of chains, forests and graphs against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chain_problems import altered
from label_problems import Enumerated
from margin_problems import make_problem
from trellis.corpus import Labels
from trellis.errors import DataError
from trellis.problems import HingeLoss, summed_risk
from trellis.solvers import minimise_bundle, minimise_frank_wolfe

problems = st.builds(
    make_problem, st.integers(0, 10_000), st.sampled_from(["chain", "tree"]),
    directed=st.booleans(), n_types=st.integers(1, 2), indicators=st.booleans(),
    rich=st.sampled_from([None, "dense", "sparse"]),
)  # fmt: skip


def loopy(inference):
    return st.builds(
        make_problem, st.integers(0, 10_000), st.just("graph"), directed=st.booleans(),
        n_types=st.integers(1, 2), rich=st.sampled_from([None, "dense", "sparse"]),
        inference=st.just(inference),
    )  # fmt: skip


@settings(max_examples=40)
@given(p=problems, seed=st.integers(0, 1000), scale=st.sampled_from([0.0, 0.5, 3.0]))
def test_risk_is_that_of_enumeration(p, seed, scale):
    loss = HingeLoss(p.problem)
    w = np.random.default_rng(seed).normal(size=loss.n_weights) * scale
    cut = loss.risk(w)
    assert cut.upper == cut.lower == pytest.approx(p.risk(w), rel=1e-9, abs=1e-9)
    assert loss.value(w) == cut.upper
    # A subgradient: the plane touches at w and lies below everywhere.
    for other in np.random.default_rng(seed + 1).normal(size=(3, loss.n_weights)):
        assert p.risk(other) >= cut.lower + cut.slope @ (other - w) - 1e-9


@settings(max_examples=20)
@given(p=problems, seed=st.integers(0, 1000))
def test_slope_is_the_gradient_where_there_is_one(p, seed):
    loss = HingeLoss(p.problem)
    rng = np.random.default_rng(seed)
    w, direction = rng.normal(size=(2, loss.n_weights))
    h = 1e-6
    numeric = (p.risk(w + h * direction) - p.risk(w - h * direction)) / (2 * h)
    assert loss.risk(w).slope @ direction == pytest.approx(numeric, rel=1e-4, abs=1e-4)


@settings(max_examples=30)
@given(p=problems, seed=st.integers(0, 1000))
def test_single_samples_make_up_the_risk(p, seed):
    loss = HingeLoss(p.problem)
    w = np.random.default_rng(seed).normal(size=loss.n_weights)
    for i, hinge in enumerate(p.hinges(w)):
        (index, psi), cost, upper = loss.best(i, w)
        assert cost - psi @ w[index] == pytest.approx(hinge, rel=1e-9, abs=1e-9)
        assert upper == pytest.approx(hinge, rel=1e-9, abs=1e-9)
    cut = summed_risk(loss.best, loss.n_samples, loss.n_weights, loss.sample_weight)(w)
    whole = loss.risk(w)
    assert cut.upper == pytest.approx(whole.upper)
    assert cut.lower == pytest.approx(whole.lower)
    np.testing.assert_allclose(cut.slope, whole.slope, atol=1e-9)


@settings(max_examples=20)
@given(p=loopy("exact"), seed=st.integers(0, 1000))
def test_exact_inference_gives_the_risk_of_graphs(p, seed):
    loss = HingeLoss(p.problem)
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
@given(p=loopy("lp"), seed=st.integers(0, 1000))
def test_relaxation_gives_bounds_and_valid_planes(p, seed):
    loss = HingeLoss(p.problem)
    w = 2 * np.random.default_rng(seed).normal(size=loss.n_weights)
    cut = loss.risk(w)
    assert cut.lower - 1e-6 <= p.risk(w) <= cut.upper + 1e-6
    for other in np.random.default_rng(seed + 1).normal(size=(2, loss.n_weights)):
        assert p.risk(other) >= cut.lower + cut.slope @ (other - w) - 1e-6


@pytest.mark.parametrize("directed", [True, False])
def test_both_solvers_and_both_structures_agree_on_trees(directed):
    p = make_problem(3, "tree", 8, directed=directed, n_types=2)
    costs = p.problem.costs
    tree, graph = HingeLoss(p.problem), HingeLoss(altered(p.problem, structure="graph"))
    graph.problem.costs = costs
    w = np.random.default_rng(0).normal(size=tree.n_weights)
    one, two = tree.risk(w), graph.risk(w)
    assert two.upper == pytest.approx(one.upper)
    np.testing.assert_allclose(two.slope, one.slope, atol=1e-12)
    a = minimise_bundle(tree.risk, tree.n_weights, l2=0.5, floor=0.0, tol=1e-4)
    b = minimise_frank_wolfe(
        graph.best, graph.n_samples, graph.n_weights, l2=0.5,
        sample_weight=graph.sample_weight, tol=1e-2, max_passes=60, seed=0,
    )  # fmt: skip
    assert a.lower_bound <= b.objective * (1 + 1e-9)
    assert b.lower_bound <= a.objective * (1 + 1e-9)
    assert b.objective == pytest.approx(a.objective, rel=0.02)


@pytest.mark.parametrize("rich", [None, "sparse"])
def test_edges_may_come_in_any_order(rich):
    p = make_problem(7, "graph", 5, n_types=2, rich=rich).problem
    q = np.random.default_rng(0).permutation(len(p.edges))
    loss, shuffled = HingeLoss(p), HingeLoss(altered(p, edges=p.edges[q], types=p.types[q]))
    shuffled.problem.costs = p.costs
    w = np.random.default_rng(1).normal(size=loss.n_weights)
    assert shuffled.risk(w).upper == pytest.approx(loss.risk(w).upper)
    (index, psi), *rest = loss.best(1, w)
    (index2, psi2), *rest2 = shuffled.best(1, w)
    np.testing.assert_array_equal(index, index2)
    np.testing.assert_allclose(psi, psi2)
    assert rest == pytest.approx(rest2)


def test_what_is_rewarded_must_be_known():
    p = make_problem(0).problem
    names = [p.classes[j] for j in p.gold()]
    lists = [[*names[a:b]] for a, b in zip(p.offsets[:-1], p.offsets[1:], strict=True)]
    for unsure in (None, {"a", "b"}):
        lists[1][0] = unsure
        vague = altered(p, labels=Labels.from_lists(lists, p.classes))
        with pytest.raises(DataError, match="sample 1, position 0 has not one label; say which"):
            HingeLoss(vague)


@pytest.mark.parametrize("rich", [None, "dense", "sparse"])
@pytest.mark.parametrize("structure", ["chain", "tree", "graph"])
def test_completed_labels_are_rewarded(structure, rich):
    e = Enumerated(4, structure, rich=rich, both=True)
    w = e.weights()
    completed = e.problem.maxima(w, "compatible").labels
    weight = np.array([0.5, 0.0, 2.0])
    loss = HingeLoss(e.problem, completed, weight)
    cut = loss.risk(w)
    # At these weights the rewards are the best compatible scores: the loss of the label sets.
    each = e.values(w, "all", loss=True) - e.values(w, "compatible")
    assert cut.upper == pytest.approx(weight @ each, abs=1e-6)
    other = e.weights()
    a = 0
    expected = 0.0
    for s in range(e.n_samples):
        own = tuple(completed[a : a + len(e.own(s))])
        expected += weight[s] * (e.value(other, s, "all", loss=True) - e.score(other, s, own))
        a += len(own)
    assert loss.value(other) == pytest.approx(expected, abs=1e-6)
    again = loss.rewarding(e.problem.maxima(other, "compatible").labels)
    lead = e.values(other, "all", loss=True) - e.values(other, "compatible")
    assert again.value(other) == pytest.approx(weight @ lead, abs=1e-6)
