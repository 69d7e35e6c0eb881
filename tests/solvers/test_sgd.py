"""SGD on the log-likelihood: single steps against the exact gradient, and the optimum reached."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import trellis.kernels.crf as kernels
import trellis.problems.log_likelihood as objective_module
import trellis.solvers.passes as passes_module
import trellis.solvers.sgd as sgd_module
from chain_problems import (
    EXTREME,
    Problem,
    altered,
    brute_force,
    chain_problem,
    problems,
    random_data,
    same_bits,
    same_weights,
)
from rich_problems import partial_data, random_weights
from trellis.corpus import Labels
from trellis.decompose import ChainPieces, GraphPieces, WholeSamples
from trellis.errors import DataError
from trellis.features import Encoded
from trellis.problems import LabelProblem, LogLikelihood, Penalty, Weights
from trellis.problems.visits import Visits
from trellis.solvers import Passes, StochasticGradient, calibrate
from trellis.solvers.sgd import _PLACES


def naive_descent(
    data: LabelProblem,
    weights: Weights,
    visits: Visits,
    *,
    rate: float,
    decay: float,
    shrink: float,
    refresh: int,
    batch_size: int = 1,
) -> tuple[float, Weights]:
    """The steps as the kernel's documentation has them, with exact gradients and plain weights.

    Transitions wait for ``refresh`` positions; dense edges make them due after every batch.
    """
    loss = LogLikelihood(data)
    w = weights.map(lambda a: a.astype(float))
    dense = w.edge is not None and not w.edge.ptr.size
    waiting, pending, met, keep_all = np.zeros_like(w.transitions), 0, 0.0, 1.0
    for first in range(0, len(visits), batch_size):
        steps, keep = w.zeros_like(float), 1.0
        batch = visits[slice(first, first + batch_size)]
        for k in range(len(batch)):
            value, gradient = loss.value_and_gradient(w, batch[slice(k, k + 1)])
            met += value
            for total, part in zip(steps.arrays(), gradient.arrays(), strict=True):
                total += rate * part
            keep /= 1 + 2 * rate * shrink
            rate *= decay
        waiting += steps.transitions
        keep_all *= keep
        pending += int((batch.ends - batch.starts).sum())
        w.node[:] = keep * (w.node - steps.node)
        if w.edge is not None:
            w.edge.values[:] = keep * (w.edge.values - steps.edge.values)
        if pending >= refresh or dense or first + batch_size >= len(visits):
            w.transitions[:] = keep_all * (w.transitions - waiting)
            waiting[:], pending, keep_all = 0, 0, 1.0
    return met, w


def descend(
    data: LabelProblem, weights: Weights, visits: Visits, *, scale: float = 1.0, **options
) -> tuple[float, Weights, float]:
    """Loss met, true weights and scale after a descent from stored weights, which change."""
    state = np.array([scale, 0.0])
    met = LogLikelihood(data).descend(weights, visits, state, **options)
    assert state[1] == len(visits)
    scaled = iter([state[0], 1.0, state[0]])  # node, transitions, edges
    return met, weights.map(lambda a: a * next(scaled)), float(state[0])


def one_pass(learner, visits: Visits, number: int) -> float:
    """All visits of a pass at once; returns the objective."""
    met = learner.visit(visits, number, 0, len(visits))
    learner.end_window(number, len(visits), len(visits))
    return met + learner.end_pass(number)


@pytest.fixture
def refresh(monkeypatch):
    """Set the number of positions between two refreshes of the transitions."""
    return lambda n: monkeypatch.setattr(objective_module, "_REFRESH", n)


@given(problems(), st.floats(1e-3, 2.0))
def test_one_step_is_the_weights_less_rate_times_gradient(problem, rate):
    one = problem.visits[slice(0, 1)]
    exact, gradient = brute_force(replace(problem, visits=one))
    w = problem.weights.copy()
    met, w, scale = descend(problem.data, w, one, rate=rate, decay=0.5, shrink=0.0)
    assert scale == 1.0
    assert met == pytest.approx(exact, rel=1e-9, abs=1e-9)
    same_weights(
        w,
        Weights(
            problem.weights.node - rate * gradient.node,
            problem.weights.transitions - rate * gradient.transitions,
        ),
        rtol=1e-9,
        atol=1e-9,
    )


@given(problems(), st.floats(1e-3, 2.0), st.floats(0.0, 5.0))
def test_the_penalty_is_a_proximal_step(problem, rate, shrink):
    """w' minimises ‖w' − (w − rate · g)‖² / (2 · rate) + shrink · ‖w'‖²."""
    one = problem.visits[slice(0, 1)]
    _, gradient = brute_force(replace(problem, visits=one))
    w = problem.weights.copy()
    _, w, scale = descend(problem.data, w, one, rate=rate, decay=1.0, shrink=shrink)
    keep = 1 / (1 + 2 * rate * shrink)
    assert scale == pytest.approx(keep)
    same_weights(
        w,
        Weights(
            keep * (problem.weights.node - rate * gradient.node),
            keep * (problem.weights.transitions - rate * gradient.transitions),
        ),
        rtol=1e-9,
        atol=1e-9,
    )


@pytest.mark.parametrize("positions", [1, 5, 48, 10**6])
@pytest.mark.parametrize("real", [False, True])
def test_a_pass_is_the_steps_written_out(refresh, positions, real):
    refresh(positions)
    data = random_data(np.random.default_rng(1), real=real)
    data = altered(data, sample_weight=np.random.default_rng(2).uniform(0, 2, 20))
    rng = np.random.default_rng(3)
    visits = data.visits(ChainPieces(2.5).draw(data.encoded.offsets, rng))
    start = Weights(rng.normal(size=(12, 3)), rng.normal(size=(3, 3)))
    options = {"rate": 0.3, "decay": 0.98, "shrink": 0.01}
    expected = naive_descent(data, start, visits, refresh=positions, **options)
    met, w, scale = descend(data, start.copy(), visits, **options)
    assert met == pytest.approx(expected[0], rel=1e-9)
    assert 0 < scale < 1
    same_weights(w, expected[1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("positions", [1, 48])
@pytest.mark.parametrize("batch_size", [1, 2, 7, 40, 1000])
@pytest.mark.parametrize("edges", ["plain", "dense", "sparse"])
def test_batches_are_the_steps_written_out(refresh, edges, batch_size, positions):
    """Gradients at the weights before the batch, each with the rate of its piece, summed."""
    refresh(positions)
    data = partial_data(np.random.default_rng(1), n_samples=40, real=True)
    rng = np.random.default_rng(3)
    pieces = ChainPieces(2.5).draw(data.encoded.offsets, rng)
    visits = data.visits(pieces, rng.permutation(len(pieces)))
    start = random_weights(rng, edges)
    options = {"rate": 0.1, "decay": 0.98, "shrink": 0.01, "batch_size": batch_size}
    expected = naive_descent(data, start, visits, refresh=positions, **options)
    met, w, _ = descend(data, start.copy(), visits, **options)
    assert met == pytest.approx(expected[0], rel=1e-8)
    same_weights(w, expected[1], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("scale", [1e-3, 0.3, 7.0])
def test_scaled_weights_take_the_same_steps(scale):
    data = random_data(np.random.default_rng(1))
    rng = np.random.default_rng(3)
    visits = data.visits(WholeSamples().draw(data.encoded.offsets, rng))
    start = Weights(rng.normal(size=(12, 3)), rng.normal(size=(3, 3)))
    options = {"rate": 0.3, "decay": 0.98, "shrink": 0.02}
    stored = Weights(start.node / scale, start.transitions.copy())
    met, plain, _ = descend(data, start.copy(), visits, **options)
    met_scaled, scaled, _ = descend(data, stored, visits, scale=scale, **options)
    assert met == pytest.approx(met_scaled, rel=1e-10)
    same_weights(plain, scaled, rtol=1e-9, atol=1e-12)


def test_a_small_scale_is_folded_into_the_weights(refresh):
    """A strong penalty shrinks the scale below any float32 many times over."""
    refresh(1)
    data = random_data(np.random.default_rng(1), n_samples=40)
    visits = data.visits(ChainPieces(1).draw(data.encoded.offsets, np.random.default_rng(0)))
    options = {"rate": 0.5, "decay": 1.0, "shrink": 2.0}
    start = Weights(np.ones((12, 3)), np.ones((3, 3)))
    _, expected = naive_descent(data, start, visits, refresh=1, **options)
    for kind, tolerance in ((np.float64, 1e-9), (np.float32, 1e-5)):
        w = Weights(np.ones((12, 3), kind), np.ones((3, 3), kind))
        _, w, scale = descend(data, w, visits, **options)
        assert 1e-4 / 3 < scale <= 1  # one step divides by 3
        same_weights(w, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("edges", ["dense", "sparse"])
def test_a_small_scale_is_folded_into_the_edges(refresh, edges):
    refresh(1)
    data = random_data(np.random.default_rng(1), n_samples=40)
    visits = data.visits(ChainPieces(2).draw(data.encoded.offsets, np.random.default_rng(0)))
    options = {"rate": 0.5, "decay": 1.0, "shrink": 2.0, "batch_size": 2}
    start = random_weights(np.random.default_rng(0), edges)
    _, expected = naive_descent(data, start, visits, refresh=1, **options)
    _, w, scale = descend(data, start.copy(), visits, **options)
    assert 1e-4 / 9 < scale <= 1
    same_weights(w, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("real", [False, True])
@pytest.mark.parametrize("size", [None, 2.5])
def test_float32_stays_close_to_float64(real, size):
    data = random_data(np.random.default_rng(4), n_samples=200, real=real)
    part = WholeSamples() if size is None else ChainPieces(size)
    visits = data.visits(part.draw(data.encoded.offsets, np.random.default_rng(0)))
    ends = []
    for kind in (np.float32, np.float64):
        w = Weights.zeros(12, 3, kind)
        met, true, _ = descend(data, w, visits, rate=0.1, decay=0.999, shrink=1e-3)
        assert w.node.dtype == w.transitions.dtype == kind
        ends.append((met, true))
    assert ends[0][0] == pytest.approx(ends[1][0], rel=1e-5)
    same_weights(ends[0][1], ends[1][1], rtol=0, atol=1e-4)


@given(problems(numbers=EXTREME))
@settings(max_examples=30)
def test_float32_stays_finite_and_right_on_extreme_weights(problem):
    w = Weights(
        problem.weights.node.astype(np.float32), problem.weights.transitions.astype(np.float32)
    )
    one = problem.visits[slice(0, 1)]
    exact, gradient = brute_force(Problem(problem.data, w, one))
    before = w.copy()
    met, w, _ = descend(problem.data, w, one, rate=1.0)
    assert met == pytest.approx(exact, rel=1e-5, abs=1e-2)
    same_weights(
        w,
        Weights(before.node - gradient.node, before.transitions - gradient.transitions),
        rtol=1e-4,
        atol=1e-2,
    )


@pytest.mark.parametrize(("first", "stay"), [(-88.0, -30.0), (-100.0, -60.0)])
def test_float32_finds_a_label_that_underflows_at_first_and_wins_in_the_end(first, stay):
    """e^first underflows in float32, each step alone is harmless, and all-B comes close or wins."""
    n = 4
    encoded = Encoded(
        np.array([0, n]), np.arange(n + 1), np.arange(n, dtype=np.int32), np.zeros(0, np.float32)
    )
    data = chain_problem(encoded, Labels.from_lists([["B"] * n], "AB"), np.ones(1))
    w = Weights.zeros(n, 2)
    w.node[0, 1] = first
    w.transitions[:] = [[stay, -150.0], [stay, 0.0]]
    visits = Visits(np.array([0]), np.array([n]), np.ones(1))
    exact, gradient = brute_force(Problem(data, w, visits))
    before = w.copy()
    met, w, _ = descend(data, w, visits, rate=1.0)
    assert met == pytest.approx(exact, rel=1e-5, abs=1e-4)
    same_weights(
        w,
        Weights(before.node - gradient.node, before.transitions - gradient.transitions),
        rtol=1e-5,
        atol=1e-4,
    )


# ------------------------------------------------------------------------- passes


def test_the_rate_falls_by_decay_a_pass_smoothly(refresh):
    """At the k-th of N pieces of pass p the rate is r · β^(p + k/N), whatever the blocks."""
    refresh(1)
    data = random_data(np.random.default_rng(5))
    start = Weights.zeros(12, 3, np.float64)
    learner = StochasticGradient(
        LogLikelihood(data), start, learning_rate=0.4, decay=0.5, penalty=Penalty(l2=0.7)
    )
    rng = np.random.default_rng(0)
    expected = Weights.zeros(12, 3, np.float64)
    for number in range(3):
        visits = data.visits(ChainPieces(2.5).draw(data.encoded.offsets, rng))
        objective = one_pass(learner, visits, number)
        n = len(visits)
        met, expected = naive_descent(
            data,
            expected,
            visits,
            rate=0.4 * 0.5**number,
            decay=0.5 ** (1 / n),
            shrink=0.7 / n,
            refresh=1,
        )
        same_weights(learner.weights(), expected, rtol=1e-9, atol=1e-10)
        assert objective == pytest.approx(met + 0.7 * expected.squared_norm(), rel=1e-9)


def test_the_penalty_may_be_applied_once_a_pass(refresh):
    refresh(1)
    data = random_data(np.random.default_rng(5))
    learner = StochasticGradient(
        LogLikelihood(data),
        Weights.zeros(12, 3, np.float64),
        learning_rate=0.4,
        decay=0.5,
        penalty=Penalty(l2=0.7),
        l2_once=True,
    )
    expected = Weights.zeros(12, 3, np.float64)
    for number in range(2):
        visits = data.visits(WholeSamples().draw(data.encoded.offsets, np.random.default_rng(0)))
        objective = one_pass(learner, visits, number)
        met, after = naive_descent(
            data,
            expected,
            visits,
            rate=0.4 * 0.5**number,
            decay=0.5 ** (1 / len(visits)),
            shrink=0.0,
            refresh=1,
        )
        keep = 1 / (1 + 2 * 0.4 * 0.5 ** (number + 1) * 0.7)
        expected = Weights(keep * after.node, keep * after.transitions)
        same_weights(learner.weights(), expected, rtol=1e-9, atol=1e-10)
        assert objective == pytest.approx(met + 0.7 * expected.squared_norm(), rel=1e-9)


def test_l1_and_groups_are_applied_once_a_pass(refresh):
    """With the rate of the middle of the pass; what is reported has the whole penalty."""
    refresh(1)
    data = random_data(np.random.default_rng(5))
    groups = np.arange(12, dtype=np.int32) // 4
    penalty = Penalty(l2=0.7, l1=0.9, group_lasso=0.3, groups=groups)
    start = random_weights(np.random.default_rng(0), "sparse")
    learner = StochasticGradient(
        LogLikelihood(data), start.copy(), learning_rate=0.2, decay=0.5, penalty=penalty
    )
    expected = start
    for number in range(2):
        visits = data.visits(WholeSamples().draw(data.encoded.offsets, np.random.default_rng(0)))
        objective = one_pass(learner, visits, number)
        n = len(visits)
        options = {"rate": 0.2 * 0.5**number, "decay": 0.5 ** (1 / n), "shrink": 0.7 / n}
        met, expected = naive_descent(data, expected, visits, refresh=1, **options)
        penalty.proximal(expected, 0.2 * 0.5 ** (number + 0.5))
        same_weights(learner.weights(), expected, rtol=1e-8, atol=1e-9)
        assert objective == pytest.approx(met + penalty.value(expected), rel=1e-9)
    assert (learner.weights().edge.values == 0).any()


def test_blocks_take_the_same_steps(refresh, monkeypatch):
    """With transitions refreshed at every piece, dividing a pass changes nothing but roundings."""
    refresh(1)
    data = random_data(np.random.default_rng(5))
    ends = []
    for block in (1 << 17, 7):
        monkeypatch.setattr(passes_module, "BLOCK", block)
        start = Weights.zeros(12, 3, np.float64)
        learner = StochasticGradient(
            LogLikelihood(data), start, learning_rate=0.4, decay=0.5, penalty=Penalty(l2=0.7)
        )
        rng = np.random.default_rng(0)
        Passes(learner, ChainPieces(2.5), rng).run(max_passes=3, tol=0.0)
        ends.append(learner.weights())
    same_weights(*ends, rtol=1e-9, atol=1e-10)


def optimum(data: LabelProblem, visits: Visits, l2: float) -> float:
    """The least penalised loss, found by L-BFGS."""
    n_features, n_labels = 12, data.n_labels
    loss = LogLikelihood(data)

    def value(flat):
        m = flat.reshape(-1, n_labels)
        found, gradient = loss.value_and_gradient(Weights(m[:n_features], m[n_features:]), visits)
        slope = np.concatenate([gradient.node.ravel(), gradient.transitions.ravel()])
        return found + l2 * float(flat @ flat), slope + 2 * l2 * flat

    start = np.zeros((n_features + n_labels) * n_labels)
    done = minimize(
        value, start, jac=True, method="L-BFGS-B", options={"ftol": 1e-13, "gtol": 1e-8}
    )
    assert done.success
    return float(done.fun)


@pytest.mark.parametrize("l2_once", [False, True])
@pytest.mark.parametrize("piece_size", [None, 1])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_sgd_reaches_the_optimum_found_by_another_solver(l2_once, piece_size, kind):
    """Pieces of one position are the same in every draw, so they too have one optimum."""
    data = random_data(np.random.default_rng(6), n_samples=40)
    part = WholeSamples() if piece_size is None else ChainPieces(piece_size)
    visits = data.visits(part.draw(data.encoded.offsets, np.random.default_rng(0)))
    least = optimum(data, visits, l2=0.5)
    learner = StochasticGradient(
        LogLikelihood(data),
        Weights.zeros(12, 3, kind),
        learning_rate=0.2,
        decay=0.96,
        penalty=Penalty(l2=0.5),
        l2_once=l2_once,
    )
    rng = np.random.default_rng(0)
    Passes(learner, part, rng).run(max_passes=150, tol=-np.inf)
    w = learner.weights()
    value, _ = LogLikelihood(data).value_and_gradient(w, visits)
    reached = value + 0.5 * w.squared_norm()
    assert least <= reached * (1 + 1e-9)
    assert reached - least < 2e-4 * least


def test_a_fixed_rate_stays_near_the_optimum():
    data = random_data(np.random.default_rng(6), n_samples=40)
    visits = data.visits(WholeSamples().draw(data.encoded.offsets, np.random.default_rng(0)))
    least = optimum(data, visits, l2=0.5)
    learner = StochasticGradient(
        LogLikelihood(data),
        Weights.zeros(12, 3),
        learning_rate=0.02,
        decay=1.0,
        penalty=Penalty(l2=0.5),
    )
    rng = np.random.default_rng(0)
    records = Passes(learner, WholeSamples(), rng).run(max_passes=60, tol=-np.inf).records
    assert records[0].objective > records[-1].objective
    value, _ = LogLikelihood(data).value_and_gradient(learner.weights(), visits)
    assert value + 0.5 * learner.weights().squared_norm() < 1.02 * least


def averaged(data: LabelProblem, average_from: int | None, n_passes: int) -> StochasticGradient:
    """Steps at a rate that is too high to come to rest."""
    learner = StochasticGradient(
        LogLikelihood(data), Weights.zeros(12, 3), learning_rate=0.2, decay=1.0,
        penalty=Penalty(l2=0.5), average_from=average_from,
    )  # fmt: skip
    rng = np.random.default_rng(0)
    Passes(learner, WholeSamples(), rng).run(max_passes=n_passes, tol=-np.inf)
    return learner


def test_the_average_is_the_mean_of_the_weights_met(monkeypatch):
    met = []
    end_window = StochasticGradient.end_window

    def listening(self, number, visited, total):
        met.append((number, self._scaled().copy()))
        end_window(self, number, visited, total)

    monkeypatch.setattr(StochasticGradient, "end_window", listening)
    data = random_data(np.random.default_rng(6), n_samples=40)
    learner = averaged(data, 2, n_passes=5)
    assert len(met) == 5 * _PLACES
    late = [w for number, w in met if number >= 2]
    for name, mean in learner.weights().named().items():
        np.testing.assert_allclose(
            mean, np.mean([w.named()[name] for w in late], axis=0), rtol=1e-5, atol=1e-6
        )
    early = averaged(data, 5, n_passes=5)  # nothing to average yet: the last weights
    assert same_bits(early.weights(), met[-1][1])


def test_an_average_is_nearer_to_the_optimum_than_the_last_weights():
    data = random_data(np.random.default_rng(6), n_samples=40)
    visits = data.visits(WholeSamples().draw(data.encoded.offsets, np.random.default_rng(0)))
    least = optimum(data, visits, l2=0.5)

    def above(average_from: int | None) -> float:
        w = averaged(data, average_from, n_passes=40).weights()
        value, _ = LogLikelihood(data).value_and_gradient(w, visits)
        return value + 0.5 * w.squared_norm() - least

    assert 0 < above(10) < 0.1 * above(None)


def test_a_mean_of_less_than_nothing_is_refused():
    data = random_data(np.random.default_rng(6), n_samples=4)
    learner = averaged(data, 0, n_passes=1)
    state = learner.state() | {"n_met": np.array([-1])}
    with pytest.raises(DataError, match="a mean of less than no weights"):
        learner.restore(state)


def test_weight_two_is_a_duplicate_and_weight_zero_an_absence():
    """For the exact objective: same value, same gradient, same optimum."""
    data = random_data(np.random.default_rng(7), n_samples=4)
    weighted = altered(data, sample_weight=np.array([2.0, 1.0, 0.0, 1.0]))
    pieces = WholeSamples().draw(data.encoded.offsets, np.random.default_rng(0))
    by_weight = weighted.visits(pieces)
    by_hand = data.visits(pieces, np.array([0, 0, 1, 3]))
    rng = np.random.default_rng(1)
    w = Weights(rng.normal(size=(12, 3)), rng.normal(size=(3, 3)))
    values, gradients = zip(
        *(LogLikelihood(data).value_and_gradient(w, v) for v in (by_weight, by_hand)), strict=True
    )
    assert values[0] == pytest.approx(values[1], rel=1e-12)
    same_weights(*gradients, atol=1e-10)


# ------------------------------------------------------------------------- interrupts


def test_an_interrupt_leaves_the_weights_of_the_steps_taken(monkeypatch):
    """Ctrl-C strikes while the kernel runs, and is raised before its scale can be returned."""
    data = random_data(np.random.default_rng(5))
    visits = data.visits(WholeSamples().draw(data.encoded.offsets, np.random.default_rng(0)))
    options = {"learning_rate": 0.4, "decay": 0.5, "penalty": Penalty(l2=20.0)}
    learners = [
        StochasticGradient(LogLikelihood(data), Weights.zeros(12, 3), **options) for _ in range(2)
    ]
    one_pass(learners[0], visits, 0)
    real = kernels.crf_steps

    def interrupted(*arguments):
        real(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(kernels, "crf_steps", interrupted)
    with pytest.raises(KeyboardInterrupt):
        one_pass(learners[1], visits, 0)
    assert same_bits(learners[0].weights(), learners[1].weights())


# ------------------------------------------------------------------------- calibration


def rate_of(data: LabelProblem, pieces, seed: int, **options) -> float:
    """The calibrated rate of a model without rich edges."""
    types = () if data.structure == "chain" else (data.n_types,)
    like = Weights.zeros(data.n_features, data.n_labels)
    like.transitions = like.transitions.reshape(*types, data.n_labels, data.n_labels)
    return calibrate(data, pieces, np.random.default_rng(seed), like=like, **options)


def test_calibration_is_a_power_of_two_and_repeats_with_its_seed():
    data = random_data(np.random.default_rng(8), n_samples=100)
    rates = [rate_of(data, ChainPieces(2.5), seed, l2=1.0) for seed in (0, 0, 1)]
    assert rates[0] == rates[1]
    for rate in rates:
        assert np.log2(rate / 0.1) == pytest.approx(round(np.log2(rate / 0.1)))
        assert 1e-6 < rate < 2e3


def test_calibration_suits_the_size_of_the_features():
    """Features ten times as large want a rate a hundred times as small."""
    data = random_data(np.random.default_rng(8), n_samples=100, real=True)
    rates = []
    for factor in (1.0, 10.0, 100.0):
        encoded = replace(data.encoded, values=data.encoded.values * np.float32(factor))
        changed = altered(data, encoded=encoded)
        rates.append(rate_of(changed, WholeSamples(), 0, l2=0.0))
    for large, small in itertools.pairwise(rates):
        assert 16 <= large / small <= 512


def test_calibration_works_from_few_samples_and_from_one():
    data = random_data(np.random.default_rng(8), n_samples=50)
    assert rate_of(data, WholeSamples(), 0, l2=1.0, n_samples=3) > 0
    single = random_data(np.random.default_rng(8), n_samples=1)
    assert rate_of(single, WholeSamples(), 0, l2=1.0) > 0


def test_calibration_takes_no_rate_that_is_worse_than_nothing(monkeypatch):
    """Loss by rate as on large graphs: beyond those that diverge there are lower ones."""
    data = random_data(np.random.default_rng(0), n_samples=30)
    losses = {0.1: 40.0, 0.2: 50.0, 0.05: 45.0, 0.025: 60.0, 0.0125: 0.9, 0.00625: 0.5}

    def descend(self, weights, visits, state, *, rate, **more):
        size = self.at_zero(visits)
        return size * losses.get(round(rate, 6), 0.8)

    monkeypatch.setattr(LogLikelihood, "descend", descend)
    monkeypatch.setattr(sgd_module, "_SLOWEST", 1e-9)
    assert rate_of(data, WholeSamples(), 0, l2=0.0) == pytest.approx(0.00625)


def test_a_run_that_diverges_begins_again_at_a_lower_rate():
    data = random_data(np.random.default_rng(0), n_samples=30)
    start = Weights.zeros(data.n_features, data.n_labels)
    sgd = StochasticGradient(
        LogLikelihood(data), start, learning_rate=1e4, decay=1.0, penalty=Penalty(0.0)
    )
    passes = Passes(sgd, WholeSamples(), np.random.default_rng(0))
    passes.run(max_passes=5, tol=-1.0)
    assert "was too high" in passes.slowed_down and sgd.learning_rate < 1e4
    these = data.visits(WholeSamples().draw(data.offsets, np.random.default_rng(0)))
    value, _ = LogLikelihood(data).value_and_gradient(passes.weights(), these)
    assert value < LogLikelihood(data).at_zero(these)
    # Weights that were given are not thrown away.
    begun = start.map(lambda a: np.full_like(a, 0.1))
    kept = StochasticGradient(
        LogLikelihood(data), begun, learning_rate=1.0, decay=1.0, penalty=Penalty(0.0)
    )
    assert kept.limit(these) == np.inf


def test_calibration_learns_even_from_few_and_noisy_samples():
    """Labels at random: nothing helps to predict the next sample, so new samples are no guide."""
    data = random_data(np.random.default_rng(8), n_samples=30, n_labels=4)
    noise = Labels.from_codes(
        np.random.default_rng(0).integers(0, 4, len(data.labels)).astype(np.int32), list("ABCD")
    )
    noisy = altered(data, labels=noise)
    for seed in range(3):
        assert rate_of(noisy, WholeSamples(), seed, l2=0.01) > 0.01


def one_long(structure: str, n: int) -> LabelProblem:
    """One sample of n positions, each with a feature that tells its label most of the time."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, n)
    features = np.where(rng.random(n) < 0.8, labels, rng.integers(0, 3, n))
    encoded = Encoded(
        np.array([0, n]), np.arange(n + 1), features.astype(np.int32), np.zeros(0, np.float32)
    )
    edges = None
    if structure != "chain":
        edges = np.stack([np.arange(1, n), rng.integers(0, np.arange(1, n))], axis=1)
    known = Labels.from_codes(labels.astype(np.int32), list("ABC"))
    return LabelProblem(encoded, known, 3, structure=structure, edges=edges)


@pytest.mark.parametrize(
    ("structure", "n"), [("chain", 9000), ("chain", 100_000), ("tree", 30_000)]
)
def test_trials_of_long_samples_are_bounded(structure, n, monkeypatch):
    """No rate is tried on more than some positions, and the longer a sample, the lower it is."""
    data, visited = one_long(structure, n), []
    real = LogLikelihood.descend

    def counted(self, weights, these, *arguments, **options):
        visited.append(int((these.ends - these.starts).sum()))
        return real(self, weights, these, *arguments, **options)

    monkeypatch.setattr(LogLikelihood, "descend", counted)
    whole = WholeSamples() if structure == "chain" else GraphPieces(data.edges, None)
    rates = [rate_of(data, whole, seed, l2=0.1, unseen=True) for seed in (0, 0)]
    assert rates[0] == rates[1]
    assert 1e-8 < rates[0] < 0.1
    assert max(visited) <= 50_000
    assert sum(visited) <= 2_000_000
    # Taken as many short samples, the same positions have a higher rate.
    if structure == "chain":
        cuts = np.append(np.arange(0, n, 20), n)
        parts = altered(data, encoded=data.encoded.cut(cuts), sample_weight=None)
        assert rate_of(parts, WholeSamples(), 0, l2=0.1, unseen=True) > 10 * rates[0]


def test_trials_on_the_compact_copy_are_trials_on_the_data():
    for real in (False, True):
        data = random_data(np.random.default_rng(9), n_features=30, real=real)
        data = altered(data, sample_weight=np.random.default_rng(0).uniform(0.5, 2, 20))
        pieces = ChainPieces(2.5).draw(data.encoded.offsets, np.random.default_rng(0))
        some = data.visits(pieces, np.random.default_rng(1).permutation(len(pieces))[:9])
        compact, visits, zero = data.compact(some, Weights.zeros(30, 3))
        touched = {
            f
            for a, b in zip(some.starts, some.ends, strict=True)
            for f in data.encoded.indices[data.encoded.indptr[a] : data.encoded.indptr[b]]
        }
        assert compact.n_features == len(zero.node) == len(touched) < 30
        assert compact.n_samples == len(some)
        options = {"rate": 0.5, "decay": 1.0, "shrink": 0.01}
        met, _, _ = descend(data, Weights.zeros(30, 3, float), some, **options)
        tried, _, _ = descend(compact, zero.zeros_like(float), visits, **options)
        assert tried == pytest.approx(met, rel=1e-12)


@pytest.mark.parametrize("edges", ["dense", "sparse"])
def test_trials_have_the_rich_edges_of_the_features_they_meet(edges):
    data = random_data(np.random.default_rng(9), n_features=30)
    pieces = ChainPieces(2.5).draw(data.encoded.offsets, np.random.default_rng(0))
    some = data.visits(pieces, np.random.default_rng(1).permutation(len(pieces))[:9])
    like = random_weights(np.random.default_rng(0), edges, n_features=30)
    compact, visits, trial = data.compact(some, like)
    indptr, indices = data.encoded.indptr, data.encoded.indices
    met = zip(some.starts, some.ends, strict=True)
    used = np.unique(np.concatenate([indices[indptr[a] : indptr[b]] for a, b in met]))
    assert compact.rich is trial.edge
    assert not any(a.any() for a in trial.arrays())
    assert trial.edge.n_crossed == (like.edge.row[used] >= 0).sum() > 0
    # Given the weights of the model, the trial's own loss is that of the model.
    trial = trial.map(lambda a: a.astype(float))
    trial.node[:], trial.transitions[:] = like.node[used], like.transitions
    old, new = like.edge.rows(), trial.edge.rows()
    for back in range(2):
        for f, row in zip(used, trial.edge.row, strict=True):
            if row < 0:
                assert like.edge.row[f] < 0
                continue
            theirs = like.edge.row[f] + back * like.edge.n_crossed
            mine = row + back * trial.edge.n_crossed
            trial.edge.values[new[mine] : new[mine + 1]] = like.edge.values[
                old[theirs] : old[theirs + 1]
            ]
    value, _ = LogLikelihood(data).value_and_gradient(like, some)
    assert LogLikelihood(compact).value_and_gradient(trial, visits)[0] == pytest.approx(value)
    rate = calibrate(data, ChainPieces(2.5), np.random.default_rng(0), l2=1.0, like=like)
    assert 1e-4 < rate < 10
