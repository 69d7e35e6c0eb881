"""Structured hinge losses of chains and forests against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margin_problems import make_problem, nodes_of
from trellis.problems.hinge import HingeLoss, NodeOrder, summed_risk

problems = st.builds(
    make_problem, st.integers(0, 10_000), st.sampled_from(["chain", "tree"]),
    directed=st.booleans(), n_tables=st.integers(1, 2), indicators=st.booleans(),
)  # fmt: skip


def loss_of(p):
    return HingeLoss(p.data, nodes_of(p), n_tables=p.n_tables, directed=p.directed)


@settings(max_examples=40)
@given(p=problems, seed=st.integers(0, 1000), scale=st.sampled_from([0.0, 0.5, 3.0]))
def test_risk_is_that_of_enumeration(p, seed, scale):
    loss = loss_of(p)
    w = np.random.default_rng(seed).normal(size=loss.n_weights) * scale
    value, slope = loss.risk(w)
    assert value == pytest.approx(p.risk(w), rel=1e-9, abs=1e-9)
    # A subgradient: the plane touches at w and lies below everywhere.
    for other in np.random.default_rng(seed + 1).normal(size=(3, loss.n_weights)):
        assert p.risk(other) >= value + slope @ (other - w) - 1e-9


@settings(max_examples=20)
@given(p=problems, seed=st.integers(0, 1000))
def test_slope_is_the_gradient_where_there_is_one(p, seed):
    loss = loss_of(p)
    rng = np.random.default_rng(seed)
    w, direction = rng.normal(size=(2, loss.n_weights))
    h = 1e-6
    numeric = (p.risk(w + h * direction) - p.risk(w - h * direction)) / (2 * h)
    assert loss.risk(w)[1] @ direction == pytest.approx(numeric, rel=1e-4, abs=1e-4)


@settings(max_examples=30)
@given(p=problems, seed=st.integers(0, 1000))
def test_single_samples_make_up_the_risk(p, seed):
    loss = loss_of(p)
    w = np.random.default_rng(seed).normal(size=loss.n_weights)
    hinges = p.hinges(w)
    for i in range(loss.n_samples):
        (index, psi), cost = loss.best(i, w)
        if p.data.sample_weight[i] > 0:
            assert cost - psi @ w[index] == pytest.approx(hinges[i], rel=1e-9, abs=1e-9)
    cut = summed_risk(loss.best, loss.n_samples, loss.n_weights, p.data.sample_weight)(w)
    value, slope = loss.risk(w)
    assert cut.upper == cut.lower == pytest.approx(value)
    np.testing.assert_allclose(cut.slope, slope, atol=1e-9)


def test_chain_is_the_default():
    p = make_problem(5, "chain", 6)
    w = np.random.default_rng(0).normal(size=HingeLoss(p.data).n_weights)
    a, b = HingeLoss(p.data).risk(w), loss_of(p).risk(w)
    assert a[0] == b[0]
    np.testing.assert_array_equal(a[1], b[1])


def test_empty_samples_lose_nothing():
    nodes = NodeOrder.chain(np.array([0, 0, 2, 2]))
    assert nodes.parent.tolist() == [-1, 0]
    assert nodes.slots(np.array([0, 0, 2, 2]))[0].tolist() == [-1, 0]


def test_slots_are_numbered_as_they_occur():
    nodes = NodeOrder(
        np.arange(5), np.array([-1, 0, 1, 2, -1]), np.array([-1, 3, 1, 3, -1]), np.ones(5, bool)
    )
    slot, n = nodes.slots(np.array([0, 4, 5]))
    assert slot.tolist() == [-1, 0, 1, 0, -1]
    assert n == 2
