"""The CRF loss and its gradient against brute force, finite differences and convexity."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chain_problems import (
    EXTREME,
    ORDINARY,
    Problem,
    altered,
    brute_force,
    chain_problem,
    node_scores,
    problems,
    random_data,
    same_weights,
)
from trellis.corpus import Labels
from trellis.decompose import ChainPieces, WholeSamples
from trellis.features import Encoded
from trellis.problems import LabelProblem, LogLikelihood, Weights
from trellis.problems.visits import Visits


def evaluate(problem: Problem) -> tuple[float, Weights]:
    return LogLikelihood(problem.data).value_and_gradient(problem.weights, problem.visits)


@given(problems())
def test_value_and_gradient_are_those_of_enumeration(problem):
    value, gradient = evaluate(problem)
    exact, exact_gradient = brute_force(problem)
    assert value == pytest.approx(exact, rel=1e-10, abs=1e-10)
    same_weights(gradient, exact_gradient, rtol=1e-9, atol=1e-10)
    assert gradient.node.dtype == gradient.transitions.dtype == np.float64


@given(problems())
def test_zero_weights_cost_what_is_said(problem):
    loss = LogLikelihood(problem.data)
    zero = problem.weights.zeros_like(np.float64)
    value, _ = loss.value_and_gradient(zero, problem.visits)
    assert loss.at_zero(problem.visits) == pytest.approx(value, abs=1e-9)


@given(problems(numbers=EXTREME))
def test_extreme_weights_are_done_in_log_space(problem):
    value, gradient = evaluate(problem)
    exact, exact_gradient = brute_force(problem)
    assert value == pytest.approx(exact, rel=1e-12, abs=1e-9)
    same_weights(gradient, exact_gradient, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("labels", [["A", "B", "B"], [None, "B", {"A", "B"}]])
@pytest.mark.parametrize("start", [0.0, -1000.0])
def test_forbidding_scores_underflow_and_are_still_exact(labels, start):
    """From A every transition is 1000 below the largest, so the scaled sums vanish at once.

    With start = −1000 that happens to all labellings, else to the allowed ones alone.
    """
    data = one_chain(labels, n_labels=2)
    node = np.array([[1.0, start], [0.0, 2.0], [0.5, 0.0]])
    problem = Problem(
        data, Weights(node, np.array([[-1000.0, -999.5], [-998.0, 0.0]])), whole(data)
    )
    value, gradient = evaluate(problem)
    exact, exact_gradient = brute_force(problem)
    assert value == pytest.approx(exact, rel=1e-12, abs=1e-9)
    same_weights(gradient, exact_gradient, rtol=1e-9, atol=1e-9)


def one_chain(labels, n_labels: int) -> LabelProblem:
    """A chain with a feature of its own at each position."""
    n = len(labels)
    encoded = Encoded(
        np.array([0, n]), np.arange(n + 1), np.arange(n, dtype=np.int32), np.zeros(0, np.float32)
    )
    return chain_problem(encoded, Labels.from_lists([labels], "ABCD"[:n_labels]), np.ones(1))


def whole(data: LabelProblem) -> Visits:
    return data.visits(WholeSamples().draw(data.encoded.offsets, np.random.default_rng(0)))


def long_chain(n: int, first: float, stay: float) -> Problem:
    """Label B is nearly excluded by the first position, and A made costly by every transition."""
    data = one_chain(["B"] * n, n_labels=2)
    node = np.zeros((n, 2))
    node[0, 1] = first
    return Problem(data, Weights(node, np.array([[stay, -1e4], [stay, 0.0]])), whole(data))


def test_a_label_that_underflows_at_first_may_win_in_the_end():
    """e^first underflows, each step alone is harmless, and yet all-B beats all-A by 45."""
    value, gradient = evaluate(long_chain(14, first=-800.0, stay=-65.0))
    assert value == pytest.approx(0.0, abs=1e-9)  # all-B is the gold labelling
    assert np.isfinite(gradient.node).all()
    np.testing.assert_allclose(gradient.node, 0, atol=1e-9)


@given(problems(), st.integers(0, 2**32))
@settings(max_examples=30)
def test_gradient_is_the_slope_of_the_value(problem, seed):
    rng = np.random.default_rng(seed)
    w, step = problem.weights, 1e-5
    _, gradient = evaluate(problem)
    toward = Weights(rng.normal(size=w.node.shape), rng.normal(size=w.transitions.shape))
    slope = np.vdot(gradient.node, toward.node) + np.vdot(gradient.transitions, toward.transitions)
    ends = []
    for sign in (1, -1):
        moved = Weights(
            w.node + sign * step * toward.node,
            w.transitions + sign * step * toward.transitions,
        )
        ends.append(evaluate(replace(problem, weights=moved))[0])
    assert slope == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("size", [None, 1, 2.5])
def test_every_coordinate_of_the_gradient(size):
    data = random_data(np.random.default_rng(2), n_samples=4, n_features=5, real=True)
    part = WholeSamples() if size is None else ChainPieces(size)
    visits = data.visits(part.draw(data.encoded.offsets, np.random.default_rng(0)))
    rng = np.random.default_rng(1)
    flat = rng.normal(size=(5 + 3) * 3)

    def value(flat):
        m = flat.reshape(-1, 3)
        return LogLikelihood(data).value_and_gradient(Weights(m[:5], m[5:]), visits)

    _, gradient = value(flat)
    found = np.concatenate([gradient.node.ravel(), gradient.transitions.ravel()])
    for i in range(flat.size):
        ends = []
        for sign in (1, -1):
            moved = flat.copy()
            moved[i] += sign * 1e-5
            ends.append(value(moved)[0])
        assert found[i] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5, abs=1e-6)


@given(problems(partial=False), st.data())
def test_convex_along_every_segment_whole_or_cut(problem, drawn):
    """Decomposition keeps the problem convex (Sun 2014); partial labels would not."""
    shape = problem.weights.node.shape
    numbers = st.lists(ORDINARY, min_size=(shape[0] + shape[1]) * shape[1])
    other = np.array(drawn.draw(numbers)[: (shape[0] + shape[1]) * shape[1]])
    other = other.reshape(-1, shape[1])
    far = Weights(other[: shape[0]], other[shape[0] :])
    near = problem.weights

    def at(share: float) -> float:
        between = Weights(
            (1 - share) * near.node + share * far.node,
            (1 - share) * near.transitions + share * far.transitions,
        )
        return evaluate(replace(problem, weights=between))[0]

    first, last = at(0.0), at(1.0)
    for share in (0.25, 0.5, 0.8):
        assert at(share) <= (1 - share) * first + share * last + 1e-9


def test_pieces_of_one_position_are_independent_classifiers():
    data = random_data(np.random.default_rng(0), n_samples=6)
    rng = np.random.default_rng(1)
    weights = Weights(rng.normal(size=(12, 3)), rng.normal(size=(3, 3)))
    pieces = ChainPieces(1).draw(data.encoded.offsets, rng)
    value, gradient = LogLikelihood(data).value_and_gradient(weights, data.visits(pieces))
    scores = node_scores(data.encoded, weights.node)
    exact = np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(len(scores)), data.labels.ids]
    assert value == pytest.approx(exact.sum())
    assert not gradient.transitions.any()


def test_value_is_a_sum_over_pieces_in_any_order():
    data = random_data(np.random.default_rng(3))
    rng = np.random.default_rng(0)
    weights = Weights(rng.normal(size=(12, 3)), rng.normal(size=(3, 3)))
    visits = data.visits(ChainPieces(2.5).draw(data.encoded.offsets, rng))
    loss = LogLikelihood(data)
    total, gradient = loss.value_and_gradient(weights, visits)
    parts = [
        loss.value_and_gradient(weights, visits[slice(k, k + 1)])
        for k in rng.permutation(len(visits))
    ]
    assert total == pytest.approx(sum(value for value, _ in parts))
    same_weights(
        gradient,
        Weights(sum(g.node for _, g in parts), sum(g.transitions for _, g in parts)),
        atol=1e-10,
    )


def test_positions_without_annotation_alone_cost_nothing():
    data = one_chain([None, None, None], n_labels=3)
    weights = Weights(np.eye(3), np.arange(9.0).reshape(3, 3))
    value, gradient = LogLikelihood(data).value_and_gradient(weights, whole(data))
    assert value == 0.0
    assert not gradient.node.any() and not gradient.transitions.any()


def test_a_set_of_all_labels_costs_as_little_as_none():
    data = one_chain([{"A", "B"}, "A"], n_labels=2)
    same = one_chain([None, "A"], n_labels=2)
    weights = Weights(np.eye(2), np.arange(4.0).reshape(2, 2))
    values = [LogLikelihood(d).value_and_gradient(weights, whole(d))[0] for d in (data, same)]
    assert values[0] == pytest.approx(values[1])


def test_float32_weights_are_evaluated_in_float64():
    data = random_data(np.random.default_rng(3))
    weights = Weights(np.full((12, 3), 0.1, np.float32), np.eye(3, dtype=np.float32))
    wide = Weights(weights.node.astype(float), weights.transitions.astype(float))
    loss = LogLikelihood(data)
    narrow_value, narrow = loss.value_and_gradient(weights, whole(data))
    wide_value, exact = loss.value_and_gradient(wide, whole(data))
    assert narrow_value == wide_value
    same_weights(narrow, exact, rtol=0)


def test_empty_samples_cost_nothing():
    data = one_chain(["A", "B"], n_labels=2)
    encoded = replace(data.encoded, offsets=np.array([0, 0, 2, 2]))
    weights = Weights(np.eye(2), np.full((2, 2), 3.0))
    value, _ = LogLikelihood(data).value_and_gradient(weights, whole(data))
    padded = chain_problem(encoded, data.labels, np.ones(3))
    assert LogLikelihood(padded).value_and_gradient(weights, whole(padded))[0] == value


# ------------------------------------------------------------------------- weights


def test_weights_grow_with_zeros_and_keep_their_own():
    weights = Weights(np.ones((2, 3), np.float32), np.ones((3, 3), np.float32))
    grown = weights.grown(4)
    assert grown.node.tolist() == [[1, 1, 1], [1, 1, 1], [0, 0, 0], [0, 0, 0]]
    assert grown.node.dtype == np.float32 and grown.transitions is weights.transitions
    assert weights.grown(2) is weights and weights.grown(1) is weights


def test_a_copy_is_independent():
    weights = Weights.zeros(2, 3)
    copy = weights.copy()
    copy.node += 1
    copy.transitions += 1
    assert not weights.node.any() and not weights.transitions.any()


def test_squared_norm_is_exact_in_float64_whatever_the_size():
    rng = np.random.default_rng(0)
    node = rng.normal(size=(30_001, 5)).astype(np.float32)  # more than two chunks
    trans = rng.normal(size=(5, 5)).astype(np.float32)
    exact = (node.astype(float) ** 2).sum() + (trans.astype(float) ** 2).sum()
    assert Weights(node, trans).squared_norm() == pytest.approx(exact, rel=1e-12)
    assert Weights.zeros(0, 2).squared_norm() == 0.0


# ------------------------------------------------------------------------- visits


@given(st.lists(st.integers(1, 9), max_size=30), st.integers(1, 40))
def test_blocks_are_consecutive_and_of_about_the_size_asked(lengths, positions):
    ends = np.cumsum(lengths, dtype=np.int64)
    visits = Visits(ends - np.array(lengths, np.int64), ends, np.ones(len(lengths)))
    blocks = visits.blocks(positions)
    assert [k for block in blocks for k in range(len(lengths))[block]] == list(range(len(lengths)))
    for block in blocks:
        sizes = lengths[block]
        assert sizes and sum(sizes[:-1]) < positions + 9
    for block in blocks[:-1]:
        assert sum(lengths[block]) > positions - 9
    assert all(a.stop == b.start for a, b in itertools.pairwise(blocks))


def test_visits_follow_the_order_and_carry_the_weight_of_their_sample():
    data = random_data(np.random.default_rng(0), n_samples=3)
    data = altered(data, sample_weight=np.array([0.5, 1.0, 2.0]))
    pieces = ChainPieces(2).draw(data.encoded.offsets, np.random.default_rng(0))
    order = np.random.default_rng(1).permutation(len(pieces))
    visits = data.visits(pieces, order)
    assert len(visits) == len(pieces)
    for k, piece in enumerate(order):
        assert visits.starts[k] == pieces.offsets[piece]
        assert visits.ends[k] == pieces.offsets[piece + 1]
        assert visits.weights[k] == [0.5, 1.0, 2.0][pieces.sample[piece]]


@given(st.lists(st.integers(1, 9), max_size=30), st.integers(1, 8))
def test_the_largest_batch_is_found_by_adding_up(lengths, size):
    ends = np.cumsum(lengths, dtype=np.int64)
    visits = Visits(ends - np.array(lengths, np.int64), ends, np.ones(len(lengths)))
    batches = [range(k, min(k + size, len(lengths))) for k in range(0, len(lengths), size)]
    expected = max((sum(lengths[k] for k in batch) for batch in batches), default=0)
    assert visits.largest_batch(size) == expected
    squares = np.append(0, np.cumsum(np.arange(sum(lengths)) ** 2))
    most = max(
        (sum(squares[ends[k]] - squares[ends[k] - lengths[k]] for k in b) for b in batches),
        default=0,
    )
    assert visits.largest_batch(size, squares) == most


def test_visits_can_be_repeated():
    visits = Visits(np.array([0, 4]), np.array([4, 6]), np.array([1.0, 2.0])).repeated(3)
    assert visits.starts.tolist() == [0, 4] * 3
    assert visits.ends.tolist() == [4, 6] * 3
    assert visits.weights.tolist() == [1.0, 2.0] * 3


def test_no_visits_cost_nothing_and_change_nothing():
    data = random_data(np.random.default_rng(0))
    none = whole(data)[slice(0, 0)]
    value, gradient = LogLikelihood(data).value_and_gradient(Weights.zeros(12, 3), none)
    assert value == 0 and not gradient.node.any()
    w, state = Weights(np.ones((12, 3)), np.ones((3, 3))), np.array([0.5, 7.0])
    assert LogLikelihood(data).descend(w, none, state, rate=1.0, batch_size=3) == 0
    assert (w.node == 1).all() and (w.transitions == 1).all() and state.tolist() == [0.5, 7.0]
