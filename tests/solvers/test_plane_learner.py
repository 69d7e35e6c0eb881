"""Cutting planes as a learner: the results of minimise_partial, records, scores and patience."""

from __future__ import annotations

import numpy as np
import pytest

from label_problems import Enumerated
from margin_problems import make_problem
from trellis.errors import DataError
from trellis.problems import PartialObjective
from trellis.solvers import Watch, minimise_partial
from trellis.solvers.plane_learner import PlaneLearner


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
def test_an_interrupt_keeps_what_was_found(make):
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
