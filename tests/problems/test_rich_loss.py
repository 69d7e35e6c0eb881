"""Loss and gradient with rich edges against enumeration and finite differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chain_problems import EXTREME, Problem, altered, brute_force, chain_problem, same_weights
from rich_problems import partial_data, random_weights, rich_problems, with_all_pairs
from trellis.corpus import Labels
from trellis.decompose import ChainPieces
from trellis.features import Encoded
from trellis.problems import EdgeWeights, LabelProblem, LogLikelihood, Weights
from trellis.problems.visits import Visits


def evaluate(problem: Problem) -> tuple[float, Weights]:
    return LogLikelihood(problem.data).value_and_gradient(problem.weights, problem.visits)


@given(rich_problems())
@settings(max_examples=60)
def test_value_and_gradient_are_those_of_enumeration(problem):
    value, gradient = evaluate(problem)
    exact, exact_gradient = brute_force(problem)
    assert value == pytest.approx(exact, rel=1e-9, abs=1e-9)
    same_weights(gradient, exact_gradient, rtol=1e-8, atol=1e-9)
    assert gradient.edge.row is problem.weights.edge.row


@given(rich_problems(numbers=EXTREME))
@settings(max_examples=60)
def test_extreme_weights_are_done_in_log_space(problem):
    value, gradient = evaluate(problem)
    exact, exact_gradient = brute_force(problem)
    assert value == pytest.approx(exact, rel=1e-9, abs=1e-8)
    same_weights(gradient, exact_gradient, rtol=1e-8, atol=1e-8)


@given(rich_problems(), st.integers(0, 2**32))
@settings(max_examples=40)
def test_gradient_is_the_slope_of_the_value(problem, seed):
    rng = np.random.default_rng(seed)
    step = 1e-5
    _, gradient = evaluate(problem)
    toward = problem.weights.map(lambda a: rng.normal(size=a.shape))
    slope = sum(np.vdot(g, d) for g, d in zip(gradient.arrays(), toward.arrays(), strict=True))
    ends = []
    for sign in (1, -1):
        move = iter(toward.arrays())
        moved = problem.weights.map(lambda a, s=sign, m=move: a + s * step * next(m))
        ends.append(evaluate(replace(problem, weights=moved))[0])
    assert slope == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("edges", ["dense", "sparse"])
def test_every_coordinate_of_the_gradient(edges):
    """On longer chains than can be listed, with real values, label sets and pieces."""
    data = partial_data(np.random.default_rng(2), n_samples=4, n_features=5, real=True)
    rng = np.random.default_rng(0)
    visits = data.visits(ChainPieces(4.5).draw(data.encoded.offsets, rng))
    weights = random_weights(rng, edges, n_features=5)
    loss = LogLikelihood(data)
    _, gradient = loss.value_and_gradient(weights, visits)
    for mine, slopes in zip(weights.arrays(), gradient.arrays(), strict=True):
        flat = mine.reshape(-1)
        for i, slope in enumerate(slopes.ravel()):
            ends = []
            for sign in (1, -1):
                before, flat[i] = flat[i], flat[i] + sign * 1e-5
                ends.append(loss.value_and_gradient(weights, visits)[0])
                flat[i] = before
            assert slope == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5, abs=1e-6)


@given(rich_problems(kinds=["dense"]))
def test_rows_with_all_pairs_are_dense_rows(problem):
    value, gradient = evaluate(problem)
    sparse = replace(problem, weights=with_all_pairs(problem.weights))
    same_value, same_gradient = evaluate(sparse)
    assert same_value == pytest.approx(value, rel=1e-10, abs=1e-10)
    same_weights(same_gradient, gradient, rtol=1e-9, atol=1e-10)


def test_edges_without_weight_are_plain_transitions():
    data = partial_data(np.random.default_rng(3))
    rng = np.random.default_rng(0)
    visits = data.visits(ChainPieces(2.5).draw(data.encoded.offsets, rng))
    plain = random_weights(rng, "plain")
    value, gradient = LogLikelihood(data).value_and_gradient(plain, visits)
    for edges in ("dense", "sparse"):
        edge = random_weights(rng, edges).edge
        rich = replace(plain, edge=edge.like(np.zeros_like(edge.values)))
        same_value, same = LogLikelihood(data).value_and_gradient(rich, visits)
        assert same_value == pytest.approx(value, rel=1e-12)
        same_weights(Weights(same.node, same.transitions), gradient, atol=1e-12)
        assert same.edge.values.any()


def steep(delta: float, kind: type) -> tuple[LabelProblem, Weights, Visits]:
    """Three positions whose edges have all their pairs, every weight about ``delta``."""
    encoded = Encoded(
        np.array([0, 3]), np.arange(4), np.zeros(3, np.int32), np.zeros(0, np.float32)
    )
    data = chain_problem(encoded, Labels.from_lists([["A", "B", "A"]], "AB"), np.ones(1))
    values = np.array([delta, delta + 1, delta + 0.5, delta - 1], kind)
    row, ptr = np.zeros(1, np.int32), np.array([0, 4])
    edge = EdgeWeights(row, ptr, np.arange(4, dtype=np.int32), values, False)
    weights = Weights(np.array([[0.3, -0.2]], kind), np.zeros((2, 2), kind), edge)
    return data, weights, Visits(np.array([0]), np.array([3]), np.ones(1))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize(
    "delta", [-400.0, -60.0, -33.0, -25.0, -12.0, 40.0, 59.5, 60.0, 61.0, 400.0]
)
def test_what_sparse_edges_subtract_leaves_no_rounding_error_behind(delta, kind):
    """U + U (e^δ − 1) is nothing but rounding when δ is far below zero for all pairs."""
    data, weights, visits = steep(delta, kind)
    exact, gradient = brute_force(Problem(data, weights, visits))
    after = weights.copy()
    met = LogLikelihood(data).descend(after, visits, np.array([1.0, 0.0]), rate=1.0)
    tolerance = 1e-9 if kind == np.float64 else 1e-3
    assert met == pytest.approx(exact, rel=tolerance, abs=tolerance)
    slope = iter(gradient.arrays())
    expected = weights.map(lambda a: a - next(slope))
    same_weights(after, expected, rtol=1e-6, atol=tolerance)


@pytest.mark.parametrize("edges", ["dense", "sparse"])
@pytest.mark.parametrize("real", [False, True])
def test_float32_stays_close_to_float64(edges, real):
    data = partial_data(np.random.default_rng(4), n_samples=60, real=real)
    visits = data.visits(ChainPieces(3.5).draw(data.encoded.offsets, np.random.default_rng(0)))
    start = random_weights(np.random.default_rng(1), edges, size=0.1)
    ends = []
    for kind in (np.float32, np.float64):
        w, state = start.map(lambda a, k=kind: a.astype(k)), np.array([1.0, 0.0])
        met = LogLikelihood(data).descend(
            w, visits, state, rate=0.05, decay=0.999, shrink=1e-3, batch_size=4
        )
        assert all(a.dtype == kind for a in w.arrays())
        assert 0 < state[0] < 1
        ends.append((met, w))
    assert ends[0][0] == pytest.approx(ends[1][0], rel=1e-5)
    same_weights(ends[0][1], ends[1][1], rtol=0, atol=1e-4)


@pytest.mark.parametrize("ptr", [[], [0]], ids=["dense", "sparse"])
@pytest.mark.parametrize("both", [False, True])
def test_no_feature_needs_to_be_crossed(ptr, both):
    data = partial_data(np.random.default_rng(5), n_samples=5)
    visits = data.visits(ChainPieces(3).draw(data.encoded.offsets, np.random.default_rng(0)))
    plain = random_weights(np.random.default_rng(0), "plain")
    row, pair = np.full(12, -1, np.int32), np.zeros(0, np.int32)
    edge = EdgeWeights(row, np.array(ptr, np.int64), pair, np.zeros(0), both)
    value, gradient = LogLikelihood(data).value_and_gradient(plain, visits)
    same_value, same = LogLikelihood(data).value_and_gradient(replace(plain, edge=edge), visits)
    assert same_value == value
    assert same.edge.values.size == 0
    same_weights(Weights(same.node, same.transitions), gradient, rtol=0)


def test_positions_without_annotation_teach_nothing():
    data = partial_data(np.random.default_rng(5), n_samples=5)
    blank = altered(
        data, labels=Labels.from_lists([[None] * len(data.labels)], list(data.labels.classes))
    )
    visits = blank.visits(ChainPieces(3).draw(blank.encoded.offsets, np.random.default_rng(0)))
    for edges in ("dense", "sparse"):
        weights = random_weights(np.random.default_rng(0), edges)
        value, gradient = LogLikelihood(blank).value_and_gradient(weights, visits)
        assert value == 0
        assert not any(a.any() for a in gradient.arrays())


# ------------------------------------------------------------------------- weights


def test_arrays_map_and_norm_reach_the_edges():
    weights = random_weights(np.random.default_rng(0), "sparse")
    assert len(weights.arrays()) == 3 and weights.arrays()[2] is weights.edge.values
    exact = sum(float((a**2).sum()) for a in weights.arrays())
    assert weights.squared_norm() == pytest.approx(exact, rel=1e-12)
    doubled = weights.map(lambda a: 2 * a)
    assert (doubled.edge.values == 2 * weights.edge.values).all()
    assert doubled.edge.pair is weights.edge.pair
    copy = weights.copy()
    copy.edge.values[:] = np.nan
    assert weights.finite() and not copy.finite()
    zero = weights.zeros_like(np.float32)
    assert zero.edge.values.dtype == np.float32 and not zero.edge.values.any()


def test_features_that_come_later_are_not_crossed():
    weights = random_weights(np.random.default_rng(0), "dense")
    grown = weights.grown(15)
    assert grown.edge.row.tolist() == [*weights.edge.row.tolist(), -1, -1, -1]
    assert grown.edge.row.dtype == np.int32
    assert grown.edge.values is weights.edge.values
    assert grown.edge.n_crossed == weights.edge.n_crossed == 10
