"""Max-margin training of annotations, complete or partial: which solver, and what it finds."""

from __future__ import annotations

import numpy as np
import pytest

from label_problems import Enumerated
from margin_problems import make_problem
from trellis.errors import DataError
from trellis.problems.partial import PartialObjective
from trellis.solvers import Watch
from trellis.solvers.cccp import PlaneSurrogate, minimise_cccp
from trellis.solvers.partial_margin import PlaneLearner, minimise_partial
from trellis.solvers.perceptron_partial import partial_perceptron
from trellis.solvers.planes import minimise_bundle
from trellis.solvers.start import start_weights


def objective_of(seed=0, loss="bridge", complete=False):
    problem = Enumerated(seed).problem
    if complete:
        best = problem.maxima(np.zeros(problem.n_weights), "compatible").labels
        for i in range(problem.n_samples):
            own = best[problem.offsets[i] : problem.offsets[i + 1]]
            problem.annotate(i, [problem.classes[j] for j in own])
    return PartialObjective(problem, loss)


def regularised(objective, w, l2=0.0, l1=0.0):
    return objective.value(w) + l2 * w @ w + l1 * np.abs(w).sum()


@pytest.mark.parametrize(("l2", "l1"), [(0.3, 0.0), (0.0, 0.3)])
def test_convex_losses_are_minimised_to_a_gap(l2, l1):
    objective = objective_of(complete=True)
    assert objective.convex
    found = minimise_partial(objective, l2=l2, l1=l1, tol=1e-3)
    assert found.objective == pytest.approx(regularised(objective, found.weights, l2, l1))
    assert found.gap <= 1e-3 * found.objective
    assert (found.stop_reason, found.exact) == ("gap", True)
    assert found.n_planes == len(found.records)
    assert found.records[-1].objective == pytest.approx(found.objective)
    direct = minimise_bundle(objective.risk, objective.n_weights, l2=l2, l1=l1, floor=0.0, tol=1e-5)
    assert found.objective - found.gap <= direct.objective <= found.objective + 1e-9


def test_the_loss_of_means_is_convex_for_partial_annotations():
    objective = objective_of(loss="max")
    found = minimise_partial(objective, l2=0.5)
    assert found.gap < np.inf
    rng = np.random.default_rng(0)
    for w in found.weights + 0.1 * rng.normal(size=(5, objective.n_weights)):
        assert regularised(objective, w, 0.5) >= found.objective - found.gap


@pytest.mark.parametrize(("l2", "l1"), [(0.3, 0.0), (0.0, 0.3)])
def test_partial_annotations_never_end_higher_than_the_start(l2, l1):
    objective = objective_of()
    assert not objective.convex
    found = minimise_partial(objective, l2=l2, l1=l1, seed=0)
    assert found.gap == np.inf
    assert found.stop_reason == "eta"
    assert found.objective == pytest.approx(regularised(objective, found.weights, l2, l1))
    start = partial_perceptron(objective.problem, passes=10, seed=0)
    assert found.objective <= regularised(objective, start, l2, l1)
    heights = [record.objective for record in found.records]
    assert heights == sorted(heights, reverse=True)


def test_where_it_starts_and_how():
    """All that can be said goes to the procedure unchanged."""
    objective = objective_of(3)
    start = np.random.default_rng(0).normal(size=objective.n_weights)
    seen = []
    found = minimise_partial(
        objective, l2=0.2, start=start, limit=3, recycle=False, adaptive=False, tol=0.05,
        report=seen.append,
    )  # fmt: skip
    surrogate = PlaneSurrogate(
        objective.penalty, objective.reward, l2=0.2, recycle=False, reward_below=True
    )
    direct = minimise_cccp(surrogate, start, first_tol=0.05, tol=0.05, eta=0.05, max_rounds=3)
    np.testing.assert_array_equal(found.weights, direct.weights)
    assert found.n_planes == direct.n_planes
    assert seen == found.records
    assert [record.number for record in seen] == list(range(1, len(seen) + 1))


def test_limits():
    found = minimise_partial(objective_of(complete=True), l2=0.01, limit=2, tol=1e-9)
    assert (found.stop_reason, len(found.records)) == ("max_iterations", 2)
    assert found.gap > 0
    found = minimise_partial(objective_of(), l2=0.01, limit=1)
    assert (found.stop_reason, len(found.records)) == ("max_rounds", 1)


def test_few_planes_do():
    objective = objective_of(complete=True)
    all_of_them = minimise_partial(objective, l2=0.3, tol=1e-2)
    few = minimise_partial(objective, l2=0.3, tol=1e-2, memory=8)
    assert few.objective == pytest.approx(all_of_them.objective, rel=2e-2)


def test_an_interrupt_keeps_what_was_found():
    for complete in (True, False):
        objective = objective_of(complete=complete)

        def stop(record):
            if record.number == 2:
                raise KeyboardInterrupt

        found = minimise_partial(objective, l2=0.001, tol=1e-9, report=stop)
        assert found.stop_reason == "interrupted"
        assert np.isfinite(found.objective)
        assert found.weights.any()


def test_same_seed_same_bits():
    one, two = (minimise_partial(objective_of(), l2=0.3, seed=5).weights for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_nothing_to_learn_from():
    objective = PartialObjective(Enumerated(0, known=0.0).problem)
    with pytest.raises(DataError, match="nothing is annotated: there is nothing to learn from"):
        minimise_partial(objective, l2=1.0)


def known_nodes(problem):
    return np.flatnonzero(problem.labels.allowed().sum(axis=1) == 1)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_start_is_the_model_of_the_known_nodes_alone(weighted):
    problem = objective_of().problem
    weight = np.arange(1.0, problem.n_samples + 1) if weighted else np.ones(problem.n_samples)
    objective = PartialObjective(problem, sample_weight=weight)
    w = start_weights(objective, 0.3)
    given = minimise_partial(objective, l2=0.3, start=w)
    assert np.array_equal(minimise_partial(objective, l2=0.3).weights, given.weights)
    # By another solver: the loss of the nodes whose label is known, each by itself.
    alone, nodes = problem.apart(), known_nodes(problem)
    owner = np.searchsorted(problem.offsets, np.arange(alone.n_samples), side="right") - 1
    known = PartialObjective(alone, samples=nodes, sample_weight=weight[owner])
    best = minimise_bundle(known.risk, alone.n_weights, l2=0.3, floor=0.0, tol=1e-6).objective
    assert not problem.weights(w).transitions.any()  # there are no edges
    assert best <= 0.3 * w @ w + known.value(w[: alone.n_weights]) <= 1.1 * best


def test_the_ramp_loss_starts_from_a_perceptron():
    objective = objective_of(loss="ramp")
    w = partial_perceptron(objective.problem, passes=10, seed=0)
    given = minimise_partial(objective, l2=0.3, start=w)
    assert np.array_equal(minimise_partial(objective, l2=0.3, seed=0).weights, given.weights)


# ---------------------------------------------------------------- as a learner


def complete(n_samples=8, **options):
    problem = make_problem(2, "chain", n_samples, **options).problem
    return PartialObjective(problem, sample_weight=problem.sample_weight)


def partial(loss="bridge", **options):
    return PartialObjective(Enumerated(0, n_samples=8, **options).problem, loss)


@pytest.mark.parametrize("penalty", [{"l2": 0.3, "l1": 0.0}, {"l2": 0.0, "l1": 0.3}])
@pytest.mark.parametrize(
    "make", [complete, partial, lambda: partial("ramp"), lambda: partial("max", rich="sparse")]
)
def test_it_finds_what_the_solver_finds(make, penalty):
    learner = PlaneLearner(make(), **penalty, seed=3)
    seen = []
    now = learner.run(max_passes=30, tol=0.01, watch=Watch(report=seen.append))
    wanted = minimise_partial(make(), **penalty, tol=0.01, limit=30, seed=3)
    assert (learner.objective_value, learner.gap) == (wanted.objective, wanted.gap)
    assert (learner.stop_reason, learner.exact) == (wanted.stop_reason, wanted.exact)
    weights = learner.problem.weights(wanted.weights)
    for a, b in zip(learner.weights().arrays(), weights.arrays(), strict=True):
        np.testing.assert_array_equal(a, b.astype(np.float32))
    assert seen == now.records
    assert [r.objective for r in now.records] == [r.objective for r in wanted.records]
    if learner.partial.convex:
        assert [r.lower_bound for r in now.records] == [r.lower_bound for r in wanted.records]
    else:
        assert all(r.gap == np.inf for r in now.records)


def test_held_out_scores_are_those_of_the_best_point_so_far():
    objective = complete()
    learner = PlaneLearner(objective, l2=0.1, l1=0.0)
    heights = []

    def score(weights):
        w = np.concatenate([a.ravel() for a in weights.arrays()]).astype(np.float64)
        heights.append(0.1 * w @ w + objective.value(w))
        return -heights[-1]

    now = learner.run(max_passes=25, tol=1e-4, watch=Watch(dev_score=score))
    np.testing.assert_allclose(heights, [r.objective for r in now.records], rtol=1e-4)
    assert [r.dev_score for r in now.records] == [-h for h in heights]


def test_patience_ends_a_run_with_all_it_knows():
    objective = complete()
    learner = PlaneLearner(objective, l2=0.1, l1=0.0)
    given = iter([0.1, 0.5, 0.4, 0.3, 0.2])
    now = learner.run(
        max_passes=100, tol=0.0, watch=Watch(patience=2, dev_score=lambda weights: next(given))
    )
    assert (learner.stop_reason, len(now.records)) == ("patience", 4)
    assert learner.objective_value == now.records[-1].objective
    assert learner.gap == now.records[-1].gap < np.inf
    w = np.concatenate([a.ravel() for a in learner.weights().arrays()]).astype(np.float64)
    assert 0.1 * w @ w + objective.value(w) == pytest.approx(learner.objective_value, rel=1e-4)


def test_rounds_are_not_scored():
    with pytest.raises(DataError, match="cannot be scored between rounds of planes; leave it out"):
        PlaneLearner(partial(), l2=0.1, l1=0.0).run(
            max_passes=5, tol=0.1, watch=Watch(dev_score=lambda weights: 0.0)
        )


@pytest.mark.parametrize("make", [complete, partial])
def test_an_interrupted_learner_keeps_what_was_found(make):
    learner = PlaneLearner(make(), l2=0.001, l1=0.0)

    def stop(record):
        if record.number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learner.run(max_passes=50, tol=1e-9, watch=Watch(report=stop))
    assert learner.stop_reason == "interrupted"
    assert np.isfinite(learner.objective_value)
    assert learner.weights().node.any()


def test_it_cannot_be_taken_up():
    learner = PlaneLearner(complete(), l2=0.1, l1=0.0)
    assert not learner.resumable
    assert learner.state() == {}
    learner.restore({})
    learner.run(max_passes=3, tol=0.1)
    few = PlaneLearner(complete(), l2=0.1, l1=0.0, memory=5)
    few.run(max_passes=200, tol=0.01)
    assert few.gap <= 0.01 * few.objective_value
