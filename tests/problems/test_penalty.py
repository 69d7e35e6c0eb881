"""Penalties: values by hand, proximal steps against what they are to minimise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar

from chain_problems import same_weights
from rich_problems import random_weights
from trellis.errors import DataError
from trellis.problems import EdgeWeights, Penalty, Weights

GROUPS = np.array([0, 1, 0], np.int32)


def small(sparse: bool = False) -> Weights:
    """Three features, two labels; features 0 and 2 are crossed, for one family."""
    node = np.array([[1.0, -2.0], [3.0, 0.0], [0.5, -0.5]])
    row = np.array([0, -1, 1], np.int32)
    if sparse:
        edge = EdgeWeights(
            row, np.array([0, 1, 4]), np.array([2, 0, 1, 3], np.int32),
            np.array([4.0, -1.0, 2.0, 2.0]), False,
        )  # fmt: skip
    else:
        values = np.array([1.0, 0.0, -1.0, 0.0, 2.0, 0.0, 0.0, 0.0])
        edge = EdgeWeights(row, np.zeros(0, np.int64), np.zeros(0, np.int32), values, False)
    return Weights(node, np.array([[0.0, 3.0], [4.0, 0.0]]), edge)


def test_values_by_hand():
    w = small()
    assert Penalty().value(w) == 0
    squares = (1 + 4 + 9 + 0.5) + 25 + 6
    assert Penalty(l2=2.0).value(w) == pytest.approx(2 * squares)
    assert Penalty(l1=3.0).value(w) == pytest.approx(3 * ((1 + 2 + 3 + 1) + 7 + 4))
    # Groups: features 0 and 2 (four node weights, eight edge weights), feature 1, transitions.
    grouped = 2 * np.sqrt(5.5) + np.sqrt(2) * 3 + np.sqrt(8) * np.sqrt(6) + 2 * 5
    assert Penalty(group_lasso=0.5, groups=GROUPS).value(w) == pytest.approx(0.5 * grouped)
    every = Penalty(l2=2.0, l1=3.0, group_lasso=0.5, groups=GROUPS)
    assert every.value(w) == pytest.approx(2 * squares + 3 * 18 + 0.5 * grouped)


def test_groups_of_sparse_edges_count_the_weights_there_are():
    norms, sizes = Penalty(group_lasso=1.0, groups=GROUPS).group_norms(small(sparse=True))
    # node groups 0 and 1, edge groups 0 and 1 (empty: feature 1 is not crossed), transitions
    assert sizes.tolist() == [4, 2, 4, 0, 4]
    np.testing.assert_allclose(norms, [np.sqrt(5.5), 3, 5, 0, 5])


def test_groups_without_edges_and_with_both_families():
    plain = small()
    plain.edge = None
    norms, sizes = Penalty(group_lasso=1.0, groups=GROUPS).group_norms(plain)
    assert sizes.tolist() == [4, 2, 0, 0, 4]
    assert norms[-1] == 5
    both = random_weights(np.random.default_rng(0), "sparse")
    groups = np.arange(12, dtype=np.int32) % 2
    _, sizes = Penalty(group_lasso=1.0, groups=groups).group_norms(both)
    rows = np.diff(both.edge.ptr)
    owner = np.tile(np.flatnonzero(both.edge.row >= 0), 2)
    assert sizes.tolist() == [18, 18, rows[owner % 2 == 0].sum(), rows[owner % 2 == 1].sum(), 9]


def test_spread_repeats_the_number_of_a_group_for_its_weights():
    w = small(sparse=True)
    node, transitions, edge = Penalty(group_lasso=1.0, groups=GROUPS).spread(
        w, np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    )
    assert node.tolist() == [1, 1, 2, 2, 1, 1]
    assert transitions.tolist() == [5] * 4
    assert edge.tolist() == [3] * 4


def test_smooth_means_neither_l1_nor_groups():
    assert Penalty(l2=1.0).smooth
    assert not Penalty(l1=1.0).smooth
    assert not Penalty(group_lasso=1.0, groups=GROUPS).smooth


@given(st.floats(-5, 5), st.floats(0.01, 3), st.floats(0.01, 2))
@settings(max_examples=30)
def test_the_l1_step_is_the_minimiser(x, strength, rate):
    w = Weights(np.array([[x]]), np.zeros((1, 1)))
    Penalty(l1=strength).proximal(w, rate)
    best = minimize_scalar(lambda z: (z - x) ** 2 / (2 * rate) + strength * abs(z)).x
    assert w.node[0, 0] == pytest.approx(best, abs=1e-5)
    if abs(x) <= strength * rate:
        assert w.node[0, 0] == 0  # exactly


@given(st.integers(0, 2**32), st.floats(0.05, 3), st.floats(0.05, 1), st.sampled_from([0.0, 0.4]))
@settings(max_examples=30)
def test_the_step_of_a_group_is_the_minimiser(seed, strength, rate, l1):
    """Of ‖z − w‖² / (2 · rate) + l1 · ‖z‖₁ + strength · √|g| · ‖z‖, group by group."""
    rng = np.random.default_rng(seed)
    w = Weights(rng.normal(size=(3, 2)), rng.normal(size=(2, 2)))
    before = w.copy()
    Penalty(l1=l1, group_lasso=strength, groups=GROUPS).proximal(w, rate)
    for old, new in (
        (before.node[[0, 2]], w.node[[0, 2]]),
        (before.node[[1]], w.node[[1]]),
        (before.transitions, w.transitions),
    ):
        a, b = old.ravel(), new.ravel()

        def f(z, a=a):
            penalty = l1 * np.abs(z).sum() + strength * np.sqrt(a.size) * np.linalg.norm(z)
            return ((z - a) ** 2).sum() / (2 * rate) + penalty

        # No point near or far is better, however it is looked for.
        found = minimize(f, a, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12})
        assert f(b) <= found.fun + 1e-8
        for step in (1e-1, 1e-3, 1e-5):
            for toward in rng.normal(size=(20, a.size)):
                assert f(b) <= f(b + step * toward) + 1e-12


def test_every_feature_may_have_a_rate_of_its_own():
    w = small(sparse=True)
    Penalty(l1=1.0).proximal(w, np.array([0.5, 1.0, 0.25, 2.0]))
    assert w.node.tolist() == [[0.5, -1.5], [2.0, 0.0], [0.25, -0.25]]
    assert w.transitions.tolist() == [[0, 1], [2, 0]]
    assert w.edge.values.tolist() == [3.5, -0.75, 1.75, 1.75]


def test_a_group_takes_the_mean_rate_of_its_features():
    w = small(sparse=True)
    before = w.copy()
    Penalty(group_lasso=0.1, groups=GROUPS).proximal(w, np.array([0.5, 1.0, 0.3, 2.0]))
    shrunk = [1 - 0.1 * 0.4 * 2 / np.sqrt(5.5), 1 - 0.1 * np.sqrt(2) / 3, 1 - 0.1 * 0.4 * 2 / 5]
    expected = Weights(
        before.node * np.array([shrunk[0], shrunk[1], shrunk[0]])[:, None],
        before.transitions * (1 - 0.1 * 2 * 2 / 5),
        before.edge.like(before.edge.values * shrunk[2]),
    )
    same_weights(w, expected, rtol=1e-12)


def test_strong_penalties_leave_exact_zeros_in_float32():
    for penalty in (Penalty(l1=100.0), Penalty(group_lasso=100.0, groups=GROUPS)):
        w = small().map(lambda a: a.astype(np.float32))
        penalty.proximal(w, 0.5)
        assert all(a.dtype == np.float32 and not a.any() for a in w.arrays())
        assert penalty.value(w) == 0
    zero = small().zeros_like(np.float64)  # a group of norm zero is no division by zero
    Penalty(group_lasso=0.1, groups=GROUPS).proximal(zero, 0.5)
    assert zero.finite()


def test_groups_are_given_and_those_of_the_features():
    no_groups = "the group lasso needs the group of each feature: give groups"
    with pytest.raises(DataError, match=no_groups):
        Penalty(group_lasso=0.1)
    with pytest.raises(DataError, match=no_groups):
        Penalty().group_norms(small())
    for groups in ([0, 1], [0, 1, 0, 1]):
        penalty, w = Penalty(l1=1.0, group_lasso=0.1, groups=groups), small()
        for use in (
            penalty.value,
            penalty.group_norms,
            lambda w, penalty=penalty: penalty.proximal(w, 0.5),
            lambda w, penalty=penalty: penalty.spread(w, np.ones(5)),
        ):
            message = f"there are groups of {len(groups)} features; weights of 3"
            with pytest.raises(DataError, match=message):
                use(w)
        same_weights(w, small())


@pytest.mark.parametrize("rates", [np.ones(3), np.ones((4, 1)), []])
def test_rates_are_one_or_one_for_each_feature_and_the_transitions(rates):
    with pytest.raises(DataError, match=r"rates have shape .*; expected one, or 4 of them"):
        Penalty(l1=1.0).proximal(small(), rates)
