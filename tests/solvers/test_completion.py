"""Frank–Wolfe over completed labels: the optimum of complete ones, and J that never rises."""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pytest

from chain_problems import same_bits
from label_problems import COSTS, Enumerated
from margin_problems import make_problem
from trellis.errors import DataError
from trellis.problems import PartialObjective
from trellis.solvers import CompletedFrankWolfe, Watch, minimise_bundle, minimise_partial
from trellis.solvers.frank_wolfe import SparseDual

STRUCTURES = [
    ("chain", {}),
    ("tree", {"n_types": 2, "directed": False}),
    ("graph", {}),
    ("chain", {"rich": "sparse", "both": True}),
    ("tree", {"rich": "dense", "directed": False}),
    ("tree", {"rich": "sparse", "n_types": 2}),
]


def partial_of(seed, structure="chain", loss="bridge", weight=None, n_samples=8, **options):
    problem = Enumerated(seed, structure, n_samples=n_samples, **options).problem
    return PartialObjective(problem, loss, sample_weight=weight)


def height(objective, w, l2):
    return l2 * float(w @ w) + objective.value(w)


def flat(learner):
    """The best point in full precision."""
    return learner.state()["point"]


@pytest.mark.parametrize(("structure", "options"), STRUCTURES)
def test_complete_labels_are_learned_to_the_optimum(structure, options):
    problem = make_problem(2, structure, 6, longest=3, inference="exact", **options).problem
    objective = PartialObjective(problem, sample_weight=problem.sample_weight)
    learner = CompletedFrankWolfe(objective, l2=0.5, rng=np.random.default_rng(0))
    now = learner.run(max_passes=500, tol=0.01)
    assert (learner.stop_reason, learner.exact, learner.n_rounds) == ("gap", True, 1)
    wanted = minimise_bundle(objective.risk, objective.n_weights, l2=0.5, floor=0.0, tol=1e-5)
    assert learner.objective_value == pytest.approx(height(objective, flat(learner), 0.5))
    assert learner.objective_value - learner.gap <= wanted.objective * (1 + 1e-9)
    assert wanted.lower_bound <= learner.objective_value <= wanted.objective * 1.011
    bounds = [record.lower_bound for record in now.records]
    assert all(a <= b for a, b in itertools.pairwise(bounds))
    assert now.records[-1].gap == pytest.approx(learner.gap)
    assert [record.number for record in now.records] == list(range(1, len(now.records) + 1))


@pytest.mark.parametrize("loss", ["bridge", "latent-hinge"])
@pytest.mark.parametrize(("structure", "options"), STRUCTURES)
def test_partial_labels_never_raise_the_objective(structure, options, loss, monkeypatch):
    weight = np.array([1.0, 2, 0, 1, 0.5, 1, 1, 3])
    objective = partial_of(1, structure, loss, weight, cost=COSTS, inference="exact", **options)
    assert not objective.convex
    rounds = []
    begin = CompletedFrankWolfe._next_round

    def watched(self):
        rounds.append(height(objective, flat(self), 0.2))
        assert rounds[-1] == pytest.approx(self.objective_value)
        changed = begin(self)
        # The new surrogate touches J at the point whose labels were completed.
        surrogate = self._dual.loss.value(flat(self)) + 0.2 * flat(self) @ flat(self)
        assert surrogate == pytest.approx(rounds[-1], rel=1e-6)
        return changed

    monkeypatch.setattr(CompletedFrankWolfe, "_next_round", watched)
    learner = CompletedFrankWolfe(objective, l2=0.2, rng=np.random.default_rng(0))
    start = learner.objective_value
    assert start == pytest.approx(height(objective, flat(learner), 0.2))
    now = learner.run(max_passes=600, tol=0.01)
    heights = [start, *(record.objective for record in now.records)]
    assert all(b <= a for a, b in itertools.pairwise(heights))
    assert all(b <= a * (1 + 1e-9) for a, b in itertools.pairwise(rounds))
    assert len(rounds) == learner.n_rounds - 1
    assert learner.stop_reason == "eta" and learner.gap == np.inf
    assert now.records[-1].lower_bound is None
    assert learner.objective_value == pytest.approx(height(objective, flat(learner), 0.2))
    # The last surrogate was solved to the tolerance, and brought no more than that.
    surrogate = learner._dual.loss
    best = minimise_bundle(surrogate.risk, surrogate.n_weights, l2=0.2, floor=0.0, tol=1e-3)
    assert best.lower_bound >= learner.objective_value * 0.98
    last = learner.state()["round"][2]  # J at its start
    assert last - learner.objective_value <= 0.01 * learner.objective_value


@pytest.mark.parametrize("structure", ["chain", "tree"])
def test_planes_end_as_high(structure):
    """There are many stationary points; on average those of both ways are as good."""
    ratios = []
    for seed in range(15):
        objective = partial_of(seed, structure)
        learner = CompletedFrankWolfe(objective, l2=0.2, rng=np.random.default_rng(0))
        learner.run(max_passes=600, tol=0.01)
        planes = minimise_partial(objective, l2=0.2, tol=0.01, seed=0)
        ratios.append(learner.objective_value / planes.objective)
    assert min(ratios) > 0.5 and max(ratios) < 2.0
    assert np.median(ratios) == pytest.approx(1.0, abs=0.05)
    assert np.mean(np.log(ratios)) == pytest.approx(0.0, abs=0.1)


@pytest.mark.parametrize("structure", ["chain", "tree"])
def test_samples_of_which_nothing_is_known_teach_nothing(structure):
    """They are left out of J, whatever their weight."""
    e = Enumerated(3, structure, n_samples=8, known=0.15)
    objective = PartialObjective(e.problem)
    assert 0 < len(objective.samples) < e.n_samples
    learner = CompletedFrankWolfe(objective, l2=0.1, rng=np.random.default_rng(0))
    learner.run(max_passes=300, tol=0.01)
    assert learner.objective_value == pytest.approx(height(objective, flat(learner), 0.1))
    weight = np.ones(e.n_samples)
    weight[~e.problem.annotated] = 100.0
    heavy = CompletedFrankWolfe(
        PartialObjective(e.problem, sample_weight=weight), l2=0.1, rng=np.random.default_rng(0)
    )
    heavy.run(max_passes=300, tol=0.01)
    assert same_bits(learner.weights(), heavy.weights())


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize("structure", ["chain", "tree"])
def test_planes_get_where_the_kernel_gets_in_fewer_passes(structure, complete):
    """Where both exist, they bracket the same optimum; between rounds rewards are exchanged."""
    objective = partial_of(4, structure)
    if complete:
        problem = make_problem(4, structure, 8).problem
        objective = PartialObjective(problem, sample_weight=problem.sample_weight)
    visits = CompletedFrankWolfe(objective, l2=0.3, rng=np.random.default_rng(1))
    objective.problem.is_forest = False  # as if there were loops
    planes = CompletedFrankWolfe(objective, l2=0.3, rng=np.random.default_rng(1))
    assert visits.resumable and not planes.resumable
    assert type(planes._dual) is not type(visits._dual)
    a, b = (learner.run(max_passes=400, tol=0.02) for learner in (visits, planes))
    assert len(b.records) <= len(a.records)
    assert planes.objective_value == pytest.approx(height(objective, flat(planes), 0.3))
    if complete:
        assert planes.stop_reason == "gap"
        assert planes.objective_value - planes.gap <= visits.objective_value + 1e-9
        assert visits.objective_value - visits.gap <= planes.objective_value + 1e-9
    else:
        assert visits.n_rounds > 1 and planes.n_rounds > 1
        assert planes.objective_value <= 1.1 * visits.objective_value


@pytest.mark.parametrize("loss", ["bridge", "latent-hinge"])
@pytest.mark.parametrize("structure", ["chain", "tree"])
def test_a_run_goes_on_to_the_same_bits(structure, loss):
    objective = partial_of(5, structure, loss, n_samples=12)

    def learner():
        return CompletedFrankWolfe(objective, l2=0.3, rng=np.random.default_rng(7))

    whole, saved = learner(), []

    def save(progress):
        state = {key: a.copy() for key, a in whole.state().items()}
        saved.append((copy.deepcopy(progress), state))

    end = whole.run(max_passes=150, tol=1e-6, watch=Watch(save=save))
    assert len(saved) > 3
    assert len({state["round"][0] for _, state in saved}) > 1  # in several rounds
    for progress, state in saved:
        again = CompletedFrankWolfe(
            objective, l2=0.3, rng=np.random.default_rng(99)
        )  # numbers are the progress's
        again.restore(state)
        for a in state.values():
            a[...] = -1  # it is independent of what it was restored from
        late = again.run(max_passes=150, tol=1e-6, watch=Watch(progress))
        assert [r.objective for r in late.records] == [r.objective for r in end.records]
        assert same_bits(again.weights(), whole.weights())
        assert (again.n_rounds, again.stop_reason) == (whole.n_rounds, whole.stop_reason)
    fresh = learner()
    fresh.run(max_passes=150 - len(saved[0][0].records), tol=1e-6)
    assert not same_bits(fresh.weights(), whole.weights())  # the comparison can fail


def test_same_seed_same_bits():
    objective = partial_of(6, known=1.1)
    runs = []
    for seed in (0, 0, 1):
        runs.append(CompletedFrankWolfe(objective, l2=0.1, rng=np.random.default_rng(seed)))
        runs[-1].run(max_passes=5, tol=0.0)
    assert same_bits(runs[0].weights(), runs[1].weights())
    assert not same_bits(runs[0].weights(), runs[2].weights())


def test_patience_counts_looks_at_held_out_data():
    objective = partial_of(6)
    learner = CompletedFrankWolfe(objective, l2=0.01, rng=np.random.default_rng(0))
    given = iter([0.1, 0.5, 0.4, 0.3, 0.2, 0.1])
    seen = []
    watch = Watch(patience=2, dev_score=lambda weights: next(given), report=seen.append)
    now = learner.run(max_passes=500, tol=0.0, watch=watch)
    assert learner.stop_reason == "patience"
    scores = [r.dev_score for r in now.records if r.dev_score is not None]
    assert scores == [0.1, 0.5, 0.4, 0.3]
    assert seen == now.records


def test_an_interrupt_keeps_the_last_sweep():
    for known in (0.6, 1.1):
        objective = partial_of(0, known=known)
        learner = CompletedFrankWolfe(objective, l2=0.01, rng=np.random.default_rng(0))
        start = learner.objective_value

        def stop(record):
            if record.number == 3:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            learner.run(max_passes=100, tol=0.0, watch=Watch(report=stop))
        assert learner.stop_reason == "interrupted"
        assert learner.objective_value < start
        assert learner.objective_value == pytest.approx(height(objective, flat(learner), 0.01))


def test_limits_and_refusals():
    learner = CompletedFrankWolfe(partial_of(0), l2=0.01, rng=np.random.default_rng(0))
    now = learner.run(max_passes=2, tol=0.0)
    assert (learner.stop_reason, len(now.records)) == ("max_passes", 2)
    for loss in ("ramp", "max"):
        with pytest.raises(
            DataError, match="labels can be completed for the bridge and the latent"
        ):
            CompletedFrankWolfe(partial_of(0, loss=loss), l2=1.0, rng=np.random.default_rng(0))
    with pytest.raises(DataError, match="nothing is annotated: there is nothing to learn from"):
        CompletedFrankWolfe(partial_of(0, known=-1.0), l2=1.0, rng=np.random.default_rng(0))


@pytest.mark.parametrize("inference", ["exact", "lp"])
@pytest.mark.parametrize(("structure", "options"), STRUCTURES[2:])
def test_the_objective_of_all_is_the_sum_of_each(structure, options, inference):
    problem = make_problem(3, structure, 6, inference=inference, **options).problem
    objective = PartialObjective(problem, sample_weight=problem.sample_weight)
    dual = CompletedFrankWolfe(objective, l2=0.3, rng=np.random.default_rng(0))._dual
    w = np.random.default_rng(0).normal(0, 1, objective.n_weights)
    each = SparseDual(dual.loss.best, dual.loss.sample_weight, objective.n_weights, 0.3)
    assert dual.objective(w) == pytest.approx(each.objective(w), rel=1e-9)
    assert dual.exact == each.exact


def test_loops_that_are_not_solved_exactly_are_said():
    problem = make_problem(9, "graph", 4, inference="lp", directed=False).problem
    objective = PartialObjective(problem, sample_weight=problem.sample_weight)
    learner = CompletedFrankWolfe(objective, l2=0.001, rng=np.random.default_rng(0))
    learner.run(max_passes=20, tol=0.001)
    exact = make_problem(9, "graph", 4, inference="exact", directed=False).problem
    wanted = PartialObjective(exact, sample_weight=exact.sample_weight)
    # The bound holds for the true objective, exact or not.
    best = minimise_bundle(wanted.risk, wanted.n_weights, l2=0.001, floor=0.0, tol=1e-3)
    assert learner.objective_value - learner.gap <= best.objective * (1 + 1e-6)
    assert learner.objective_value >= best.lower_bound - 1e-6
