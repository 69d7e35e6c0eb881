"""L-BFGS: what it reports, where it stops, and that it can be interrupted and taken up."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import trellis.solvers.lbfgs as lbfgs_module
from chain_problems import random_data, same_bits, same_weights
from rich_problems import partial_data, random_weights
from trellis.decompose import ChainPieces, WholeSamples
from trellis.problems import LogLikelihood, Penalty, Weights
from trellis.solvers import LimitedMemoryBFGS, Progress, Watch, convergence_value

DATA = random_data(np.random.default_rng(6), n_samples=40)
VISITS = DATA.visits(WholeSamples().draw(DATA.encoded.offsets, np.random.default_rng(0)))
GROUPS = np.arange(12, dtype=np.int32) // 3
ALL = {"max_passes": 500, "tol": 1e-12}


def solver(penalty: Penalty, start: Weights | None = None, **options) -> LimitedMemoryBFGS:
    start = Weights.zeros(12, 3) if start is None else start
    return LimitedMemoryBFGS(LogLikelihood(DATA), start, VISITS, penalty=penalty, **options)


def objective(penalty: Penalty, weights: Weights) -> float:
    return LogLikelihood(DATA).value_and_gradient(weights, VISITS)[0] + penalty.value(weights)


@pytest.mark.parametrize(
    "penalty", [Penalty(l2=0.5), Penalty(l1=0.8), Penalty(l2=0.1, l1=0.5)], ids=str
)
def test_a_record_is_the_penalised_objective_of_its_iteration(penalty):
    mine = solver(penalty, Weights.zeros(12, 3, float))
    seen = []

    def report(record):
        seen.append((record, objective(penalty, mine.weights())))

    now = mine.run(max_passes=8, tol=0.0, watch=Watch(report=report))
    assert [r for r, _ in seen] == now.records
    assert [r.number for r in now.records] == list(range(1, 9))
    for record, exact in seen:
        # The parts u and v of a weight may both be positive on the way: never below the truth.
        assert record.objective >= exact * (1 - 1e-9)
        assert record.objective == pytest.approx(exact, rel=1e-9 if not penalty.l1 else 0.2)
    objectives = [r.objective for r in now.records]
    assert objectives == sorted(objectives, reverse=True)
    assert [r.change for r in now.records] == [
        convergence_value(objectives[: k + 1]) for k in range(8)
    ]


def test_the_weights_keep_the_type_they_came_in():
    mine = solver(Penalty(l2=0.5))
    mine.run(max_passes=3, tol=0.0)
    assert mine.weights().node.dtype == np.float32
    assert mine.state()["point"].dtype == np.float64  # nothing is lost between legs


def test_several_drawings_count_with_their_mean():
    parts = [VISITS[slice(0, 25)], VISITS[slice(10, 40)], VISITS]
    mine = LimitedMemoryBFGS(
        LogLikelihood(DATA), Weights.zeros(12, 3, float), parts, penalty=Penalty(l2=0.5)
    )
    now = mine.run(**ALL)
    w = mine.weights()
    found = [LogLikelihood(DATA).value_and_gradient(w, part) for part in parts]
    mean = sum(value for value, _ in found) / 3 + 0.5 * w.squared_norm()
    assert now.records[-1].objective == pytest.approx(mean, rel=1e-9)
    assert mine.objective_at(w) == pytest.approx(mean, rel=1e-9)
    for i, array in enumerate(w.arrays()):
        slope = sum(gradient.arrays()[i] for _, gradient in found) / 3
        assert np.allclose(slope + 2 * 0.5 * array, 0, atol=1e-3)


@pytest.mark.parametrize("observed", [False, True])
def test_the_penalty_may_draw_to_weights_other_than_zero(observed):
    centre = Weights.zeros(12, 3, float).map(lambda a: np.full_like(a, 0.7))
    options = {"centre": centre, "observed": observed}
    mine = solver(Penalty(l2=0.5), Weights.zeros(12, 3, float), **options)
    now = mine.run(**ALL)
    w = mine.weights()
    value, gradient = LogLikelihood(DATA).value_and_gradient(w, VISITS)
    free = [a != 0 for a in w.arrays()] if observed else [a == a for a in w.arrays()]
    for slope, array, may in zip(gradient.arrays(), w.arrays(), free, strict=True):
        assert np.allclose((slope + 2 * 0.5 * (array - 0.7))[may], 0, atol=1e-3)
    away = sum(
        float(np.square(a - 0.7)[may].sum()) for a, may in zip(w.arrays(), free, strict=True)
    )
    assert now.records[-1].objective == pytest.approx(value + 0.5 * away, rel=1e-9)
    far = solver(Penalty(l2=1e6), Weights.zeros(12, 3, float), centre=centre)
    far.run(**ALL)
    assert all(np.allclose(a, 0.7, atol=1e-3) for a in far.weights().arrays())


# ------------------------------------------------------------------------- reasons to stop


def test_the_reason_is_the_tolerance():
    mine = solver(Penalty(l2=0.5))
    now = mine.run(max_passes=500, tol=1e-2)
    assert mine.stop_reason == "tol"
    more = solver(Penalty(l2=0.5)).run(max_passes=500, tol=1e-6)
    assert len(now.records) < len(more.records) < 500
    last = now.records[-2:]
    assert (last[0].objective - last[1].objective) / last[1].objective < 1e-2


def test_the_reason_is_the_gradient():
    mine = solver(Penalty(l2=5.0), Weights.zeros(12, 3, float))
    mine.run(max_passes=500, tol=0.0)
    assert mine.stop_reason == "gradient"
    _, slope = mine.objective.value_and_gradient(mine.weights(), VISITS)
    w = mine.weights()
    for g, a in zip(slope.arrays(), w.arrays(), strict=True):
        assert abs(g + 10 * a).max() < 1e-5


def test_the_reason_is_the_number_of_iterations():
    mine = solver(Penalty(l2=0.5))
    assert len(mine.run(max_passes=4, tol=0.0).records) == 4
    assert mine.stop_reason == "max_passes"


def test_no_iterations_change_nothing():
    start = random_weights(np.random.default_rng(0), "plain")
    mine = solver(Penalty(l2=0.5), start)
    assert mine.run(max_passes=0, tol=0.0).records == []
    assert same_bits(mine.weights(), start)


@pytest.mark.parametrize("scores", [[0.1, 0.5, 0.4, 0.3, 0.2], [-2.0, 0.0, -1.0, -1.5, -1.6]])
def test_the_reason_is_patience(scores):
    """A score of zero is a score."""
    mine = solver(Penalty(l2=0.5))
    given = iter(scores)
    asked = []

    def dev_score(weights):
        asked.append(weights.copy())
        return next(given)

    now = mine.run(max_passes=500, tol=0.0, watch=Watch(dev_score=dev_score, patience=2))
    assert [r.dev_score for r in now.records] == scores[:4]
    assert mine.stop_reason == "patience"
    assert same_bits(asked[-1], mine.weights())


# ------------------------------------------------------------------------- legs


def test_a_run_goes_on_to_the_same_bits_from_the_start_of_a_leg(monkeypatch):
    monkeypatch.setattr(lbfgs_module, "LEG", 5)
    for penalty in (Penalty(l2=0.1), Penalty(l1=0.3)):
        whole = solver(penalty, Weights.zeros(12, 3, float))
        saved = []

        def save(progress, whole=whole, saved=saved):
            state = {key: a.copy() for key, a in whole.state().items()}
            saved.append((copy.deepcopy(progress), state))

        end = whole.run(max_passes=18, tol=0.0, watch=Watch(save=save))
        assert [len(p.records) for p, _ in saved[:3]] == [5, 10, 15]
        for progress, state in saved[:3]:
            again = solver(penalty, Weights.zeros(12, 3, float))
            again.restore(state)
            found = again.run(max_passes=18, tol=0.0, watch=Watch(progress))
            assert [r.objective for r in found.records] == [r.objective for r in end.records]
            assert same_bits(again.weights(), whole.weights())


def test_legs_reach_the_same_optimum(monkeypatch):
    ends = []
    for leg in (100, 7):
        monkeypatch.setattr(lbfgs_module, "LEG", leg)
        mine = solver(Penalty(l2=0.2), Weights.zeros(12, 3, float))
        mine.run(**ALL)
        ends.append(mine.weights())
    same_weights(*ends, rtol=0, atol=1e-4)


# ------------------------------------------------------------------------- interrupts


class Interrupted(LogLikelihood):
    """Ctrl-C at the n-th evaluation."""

    def __init__(self, data, at: int) -> None:
        super().__init__(data)
        self.left = at

    def value_and_gradient(self, weights, visits, into=None):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return super().value_and_gradient(weights, visits, into)


@pytest.mark.parametrize("penalty", [Penalty(l2=0.5), Penalty(l1=0.5)], ids=str)
def test_an_interrupt_leaves_the_best_point_so_far(penalty):
    mine = LimitedMemoryBFGS(
        Interrupted(DATA, 9), Weights.zeros(12, 3, float), VISITS, penalty=penalty
    )
    now = Progress()
    with pytest.raises(KeyboardInterrupt):
        mine.run(max_passes=500, tol=0.0, watch=Watch(now))
    assert 3 < len(now.records) < 9
    w = mine.weights()
    assert w.finite()
    assert objective(penalty, w) == pytest.approx(now.records[-1].objective, rel=0.05)
    assert objective(penalty, w) < objective(penalty, Weights.zeros(12, 3, float)) * 0.95


# ------------------------------------------------------------------------- group lasso


def group_slopes(mine: LimitedMemoryBFGS, penalty: Penalty):
    """Norms of the weights, gradient norms of the smooth part, reach of the penalty, by group."""
    w = mine.weights()
    _, slope = LogLikelihood(mine.problem).value_and_gradient(w, mine.drawings[0])
    for g, a in zip(slope.arrays(), w.arrays(), strict=True):
        g += 2 * penalty.l2 * a
    norms, sizes = penalty.group_norms(w)
    reach = penalty.group_lasso * np.sqrt(sizes)
    # ∇f + reach · w / ‖w‖ of the groups that are not zero
    pull = penalty.spread(w, np.where(norms > 0, reach / np.maximum(norms, 1e-300), 0.0))
    rest = slope.copy()
    for r, p, a in zip(rest.arrays(), pull, w.arrays(), strict=True):
        r += p.reshape(a.shape) * a
    return norms, penalty.group_norms(slope)[0], reach, penalty.group_norms(rest)[0]


@pytest.mark.parametrize(
    ("edges", "strength"), [("plain", 0.3), ("plain", 3.0), ("sparse", 0.3), ("sparse", 1.0)]
)
def test_group_lasso_ends_where_its_conditions_hold(edges, strength):
    start = random_weights(np.random.default_rng(0), edges)
    penalty = Penalty(l2=0.01, group_lasso=strength, groups=GROUPS)
    mine = solver(penalty, start.zeros_like(float))
    now = mine.run(max_passes=2000, tol=1e-13)
    norms, slopes, reach, rest = group_slopes(mine, penalty)
    zero = norms == 0
    assert (slopes[zero] <= reach[zero] * (1 + 2e-3) + 1e-9).all()
    assert (rest[~zero] < 0.02 * reach[~zero]).all()
    if strength == 1.0:
        assert zero[:4].any() or zero.sum() > 1
    if strength == 3.0:
        assert zero.sum() >= 5
    assert now.records[-1].objective == pytest.approx(objective(penalty, mine.weights()), rel=1e-3)


@pytest.mark.parametrize("observed", [False, True])
def test_a_group_within_reach_of_both_penalties_is_zero(observed):
    """What L1 leaves of the gradient of free weights must be beyond the lasso's reach."""
    data = random_data(np.random.default_rng(6), n_samples=5) if observed else DATA
    visits = data.visits(WholeSamples().draw(data.encoded.offsets, np.random.default_rng(0)))
    l1, strength = (0.0, 0.9) if observed else (1.0, 1.5)
    penalty = Penalty(l1=l1, group_lasso=strength, groups=GROUPS)
    start = Weights.zeros(12, 3, float)
    mine = LimitedMemoryBFGS(LogLikelihood(data), start, visits, penalty=penalty, observed=observed)
    mine.run(max_passes=2000, tol=1e-13)
    w = mine.weights()
    norms, sizes = penalty.group_norms(w)
    _, slope = LogLikelihood(data).value_and_gradient(w, visits)
    if observed:
        slope.node[~seen_with(data)] = 0
    left = slope.map(lambda a: np.sign(a) * np.maximum(abs(a) - l1, 0))
    pull = penalty.group_norms(left)[0]
    reach = strength * np.sqrt(sizes)
    filled = sizes > 0
    assert (norms[filled & (pull < 0.98 * reach)] == 0).all()
    assert (pull[norms == 0] <= reach[norms == 0] * 1.01).all()
    assert (norms == 0)[filled].any() and (norms > 0).any()


# ------------------------------------------------------------------------- observed weights


def seen_with(data) -> np.ndarray:
    e, seen = data.encoded, np.zeros((12, 3), bool)
    for t, allowed in enumerate(data.labels.allowed()):
        if not allowed.all():
            seen[e.indices[e.indptr[t] : e.indptr[t + 1]]] |= allowed
    return seen


@pytest.mark.parametrize("penalty", [Penalty(l2=0.3), Penalty(l1=0.3)], ids=str)
def test_weights_never_observed_stay_zero_and_the_others_are_optimal(penalty):
    data = partial_data(np.random.default_rng(1), n_samples=5)
    seen = seen_with(data)
    assert 3 < (~seen).sum() < 20
    visits = data.visits(ChainPieces(3).draw(data.encoded.offsets, np.random.default_rng(0)))
    mine = LimitedMemoryBFGS(
        LogLikelihood(data),
        Weights.zeros(12, 3, float),
        visits,
        penalty=penalty,
        observed=True,
    )
    mine.run(max_passes=1000, tol=1e-14)
    w = mine.weights()
    assert not w.node[~seen].any()
    _, slope = LogLikelihood(data).value_and_gradient(w, visits)
    for g, a, free in zip(slope.arrays(), w.arrays(), (seen, np.ones((3, 3), bool)), strict=True):
        g, a = g[free] + 2 * penalty.l2 * a[free], a[free]
        on = abs(a) > 1e-6
        np.testing.assert_allclose(g[on], -penalty.l1 * np.sign(a[on]), atol=2e-4)
        assert (abs(g[~on]) <= penalty.l1 + 2e-4).all()
    if penalty.l2:
        assert (abs(slope.node[~seen]) > 1e-3).any()  # free, they would have moved


def test_rich_edges_are_optimised_too():
    start = random_weights(np.random.default_rng(0), "sparse").zeros_like(float)
    mine = solver(Penalty(l2=0.3), start, observed=True)
    mine.run(max_passes=1000, tol=1e-14)
    w = mine.weights()
    _, slope = LogLikelihood(DATA).value_and_gradient(w, VISITS)
    np.testing.assert_allclose(slope.edge.values, -0.6 * w.edge.values, atol=2e-4)
    assert w.edge.values.any()
