"""How strongly to transfer: factors of single weights, and the choice by cross-validation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import check_grad
from toy_problem import ToyModel, ToyProblem, toy_data

from trellis import ChainCRF, load_model
from trellis.cheap.related_models import RelatedModels
from trellis.cheap.training import _regulariser, train, train_domains
from trellis.cheap.transfer import TransferLearner
from trellis.cheap.transfer_choice import _chosen, choose_related
from trellis.datasets import simulate_cells
from trellis.errors import CorruptModelError, DataError
from trellis.problems.log_objective import LogObjective
from trellis.problems.partial import PartialObjective
from trellis.solvers.planes import minimise_bundle
from trellis.tracking import EVENTS, TrackingModel

_RNG = np.random.default_rng(5)
BASE = _RNG.normal(size=10)
FAR = _RNG.normal(size=10)
RHO = np.where(np.arange(10) < 4, 0.05, 0.7)  # of each weight


def domain(n, *, seed, true, known=1.0):
    """Chains with labels, of which a share is known."""
    inputs, labels, _ = toy_data(n, seed=seed, true=true, longest=3)
    rng = np.random.default_rng(seed)
    hidden = [[y if rng.random() < known else None for y in said] for said in labels]
    return list(zip(inputs, hidden, strict=True))


SOURCE = domain(14, seed=1, true=BASE)
NEAR = domain(8, seed=2, true=BASE + 0.5 * _RNG.normal(size=10))
OTHER = domain(24, seed=3, true=FAR)


def bare(samples):
    return [x for x, _ in samples]


def objectives(*sets):
    return [PartialObjective(ToyProblem(samples)) for samples in sets]


def cost(found, l2, rho, parts):
    """(1.9) with a factor of each weight."""
    value = l2 * found.shared @ found.shared
    value += sum((rho * np.square(w - found.shared)).sum() for w in found.weights)
    return value + sum(part.value(w) for part, w in zip(parts, found.weights, strict=True))


# ---------------------------------------------------------------------- factors of single weights


def test_planes_with_a_factor_of_each_weight_solve_the_substituted_problem():
    """(w, sqrt(rho) (w_d - w)) are the weights of a plain problem."""
    l2, parts = 0.4, objectives(SOURCE, NEAR, OTHER)
    n, D = 10, 3

    def risk(z):
        total, slope = 0.0, np.zeros((1 + D, n))
        shared, own = z[:n] / np.sqrt(l2), z[n:].reshape(D, n) / np.sqrt(RHO)
        for d, part in enumerate(parts):
            cut = part.risk(shared + own[d])
            total += cut.upper
            slope[0] += cut.slope / np.sqrt(l2)
            slope[1 + d] = cut.slope / np.sqrt(RHO)
        return total, slope.ravel()

    best = minimise_bundle(risk, n * (1 + D), l2=1.0, floor=0.0, tol=1e-5)
    found = train(parts, l2=l2, rho=RHO, tol=1e-5)
    assert found.objective == pytest.approx(best.objective, rel=1e-4)
    assert found.objective == pytest.approx(cost(found, l2, RHO, parts), rel=1e-9)
    again = train(parts, l2=l2, rho=RHO, start=found.weights, tol=1e-5)
    assert again.objective == pytest.approx(found.objective, rel=1e-4)


def test_rounds_of_partial_losses_know_the_factors():
    parts = objectives(
        domain(10, seed=1, true=BASE, known=0.6), domain(6, seed=2, true=FAR, known=0.6)
    )
    assert not any(part.convex for part in parts)
    found = train(parts, l2=0.3, rho=RHO, tol=1e-3)
    assert found.objective == pytest.approx(cost(found, 0.3, RHO, parts), rel=1e-9)
    # With complete annotation a tangent is the reward itself, and rounds find the optimum.
    parts = objectives(SOURCE, OTHER)
    once = train(parts, l2=0.3, rho=RHO, tol=1e-4).objective
    for part in parts:
        part.convex = False
    assert train(parts, l2=0.3, rho=RHO, tol=1e-4).objective == pytest.approx(once, rel=5e-4)


def test_smooth_losses_with_a_factor_of_each_weight():
    x = np.random.default_rng(1).normal(size=(3, 10))
    for rho in (0.7, RHO):

        def value(flat, rho=rho):
            return _regulariser(flat.reshape(3, 10), 0.3, rho)[0]

        def slope(flat, rho=rho):
            return _regulariser(flat.reshape(3, 10), 0.3, rho)[1].ravel()

        assert check_grad(value, slope, x.ravel()) < 1e-5
    data = {"a": ([["a", "b"], ["b"]], [["X", "Y"], ["Y"]]), "b": ([["a"]], [["Y"]])}
    problems = ChainCRF("word").learning_problems(data)
    parts = [LogObjective(problem) for problem in problems.values()]
    rho = np.where(np.arange(parts[0].n_weights) < 2, 0.02, 1.0)
    found = train(parts, l2=0.1, rho=rho, tol=1e-6)

    def objective(weights):
        fixed = found.shared
        apart = 0.1 * fixed @ fixed + (rho * np.square(weights - fixed)).sum()
        return apart + sum(
            part.value_and_gradient(w)[0] for part, w in zip(parts, weights, strict=True)
        )

    assert found.objective == pytest.approx(objective(found.weights), rel=1e-6)
    for _ in range(20):
        moved = found.weights + 0.05 * np.random.default_rng(2).normal(size=found.weights.shape)
        assert objective(moved) > found.objective
    begun = train(parts, l2=0.1, rho=rho, start=found.weights, tol=1e-6)
    assert begun.objective == pytest.approx(found.objective, rel=1e-6)


def test_loose_weights_differ_more():
    named = dict(zip("ab", objectives(SOURCE, OTHER), strict=True))
    loose = np.arange(4)

    def apart(looseness):
        _, weights = train_domains(
            named, l2=0.3, rho=2.0, loose=loose, looseness=looseness, tol=1e-4
        )
        return np.abs(weights["a"] - weights["b"])[loose].sum()

    assert apart(0.01) > 1.5 * apart(1.0)
    parts = list(named.values())
    pull = np.where(np.arange(10) < 4, 0.02, 2.0)
    found, _ = train_domains(named, l2=0.3, rho=2.0, loose=loose, looseness=0.01)
    np.testing.assert_array_equal(found.weights, train(parts, l2=0.3, rho=pull).weights)


def test_a_domain_without_annotation_keeps_the_balance_of_the_source():
    """Its weights are those of the source, times one number."""
    source, new = objectives(SOURCE, bare(NEAR))
    found, weights = train_domains(
        {"a": source, "new": new}, l2=0.3, rho=2.0, loose=np.arange(4), looseness=0.01
    )
    np.testing.assert_allclose(weights["new"], found.weights[0] * 2.0 / 2.3)


def test_what_is_annotated_in_part_is_first_completed_by_what_is_annotated_in_full():
    whole, part = objectives(SOURCE, domain(10, seed=2, true=BASE, known=0.5))
    seen = []
    reward = part.reward

    def noted(w):
        seen.append(w.copy())
        return reward(w)

    part.reward = noted
    train([whole, part], l2=0.3, rho=0.5)
    begin = minimise_bundle(whole.risk, 10, l2=0.3, floor=0.0, tol=0.05).weights
    np.testing.assert_allclose(seen[0], begin, atol=1e-12)


# ---------------------------------------------------------------------- the choice


def learner(**options):
    return TransferLearner(ToyModel(l2=0.3), **{"target": "b", **options})


def test_without_annotation_of_the_target_it_is_the_source_model():
    data = {"a": SOURCE, "b": bare(NEAR)}
    found = learner().fit(data)
    source = learner(strategy="all-source").fit(data)
    assert (found.strategy_, found.rho_) == ("all-source", np.inf)
    np.testing.assert_array_equal(found.weights_["b"], source.weights_["b"])


def test_without_another_domain_it_is_the_target_alone():
    found = learner().fit({"b": NEAR})
    assert found.rho_ == 0
    alone = learner(strategy="all-target").fit({"b": NEAR})
    np.testing.assert_array_equal(found.weights_["b"], alone.weights_["b"])


def test_one_sample_cannot_be_held_out():
    found = learner().fit({"a": SOURCE, "b": NEAR[:1] + bare(NEAR[1:])})
    assert found.strategy_ == "all-source"
    both = learner(target=None).fit({"a": SOURCE[:1], "b": NEAR[:1]})
    assert both.strategy_ == "transfer" and both.rho_ == np.inf


def test_another_target_is_learned_without_the_source_and_a_like_one_with_it():
    far = learner().fit({"a": SOURCE, "b": OTHER})
    assert far.strategy_ == "transfer" and far.rho_ < np.inf
    like = learner().fit({"a": SOURCE, "b": domain(5, seed=9, true=BASE)})
    assert like.strategy_ == "transfer" and like.rho_ > 0
    test = domain(60, seed=11, true=FAR)
    wrong = {}
    for name, options in (("auto", {}), ("source", {"strategy": "all-source"})):
        said = learner(**options).fit({"a": SOURCE, "b": OTHER}).predict(bare(test))
        wrong[name] = np.mean(np.concatenate(said) != np.concatenate([y for _, y in test]))
    assert wrong["auto"] < wrong["source"]


def test_where_the_others_know_better_the_target_alone_is_no_choice(monkeypatch):
    def last_is_best(models, counted, sources, rhos, n_folds, tol):
        return np.repeat([[1.0], [0.5]], [len(rhos), 1], axis=0) * np.ones(9)

    monkeypatch.setattr("trellis.cheap.transfer_choice._held_out", last_is_best)
    problems = {"a": ToyProblem(SOURCE), "b": ToyProblem(OTHER)}
    models = RelatedModels(problems, "bridge", 0.3)
    assert choose_related(models, "b", 0.01) == (True, 0.0)
    assert choose_related(replace(models, outdone=True), "b", 0.01) == (True, 2.5)


def test_without_a_target_all_domains_count():
    apart = TransferLearner(ToyModel(l2=0.3)).fit({"a": domain(24, seed=1, true=BASE), "b": OTHER})
    assert apart.rho_ < np.inf and apart.strategy_ == "transfer"
    data = {"a": domain(24, seed=1, true=BASE), "b": OTHER, "new": bare(NEAR)}
    new = TransferLearner(ToyModel(l2=0.3)).fit(data)
    assert new.rho_ > 0  # at 0 nothing would be learned of it
    np.testing.assert_array_equal(new.weights_["new"], new.shared_)


def test_the_choice_is_deterministic():
    data = {"a": SOURCE, "b": OTHER}
    first, second = (learner().fit(data) for _ in range(2))
    assert first.rho_ == second.rho_
    np.testing.assert_array_equal(first.weights_["b"], second.weights_["b"])


def test_only_what_is_surely_better_takes_the_place_of_the_usual_factor():
    def best(*losses, rhos=(np.inf, 25.0, 2.5)):
        return _chosen(np.array(losses, float), rhos)

    assert best([1, 1, 1, 1], [0, 1, 1, 2], [1, 1, 1, 1]) == 2
    assert best([1, 2, 2], [1, 2, 1], [5, 6, 5]) == 1
    assert best([1, 1], [1, 1], [1, 1]) == 2 and best([0, 0], [1, 1], [1, 1]) == 0
    unsure = [2, 5, 4], [3, 7, 4]  # better, but for the target alone not surely enough
    assert best(*unsure, rhos=(np.inf, 2.5)) == 0
    assert best(*unsure, rhos=(0, 2.5)) == 1


def test_nothing_annotated_at_all():
    with pytest.raises(DataError, match="no domain has an annotated sample"):
        learner().fit({"a": bare(SOURCE), "b": bare(NEAR)})


@pytest.mark.parametrize("part", [0, -1, 1.5, "all"])
def test_the_part_of_biases_is_checked(part):
    with pytest.raises(DataError, match="bias_rho must be a number above 0 and of at most 1"):
        learner(bias_rho=part).fit({"a": SOURCE, "b": NEAR})


# ---------------------------------------------------------------------- cells


def test_few_pairs_of_cells_are_divided_so_that_some_can_be_held_out():
    a, b = (simulate_cells(90, 3, lab=lab, seed=i) for i, lab in enumerate("ab"))
    one = [b[0], *(replace(pair, annotation=None) for pair in b[1:])]
    model = TrackingModel(EVENTS, max_distance=40.0)
    problems = model.learning_problems({"a": a, "b": one})
    seen = []
    models = RelatedModels(problems, "bridge", 1.0, 0.1)
    divide = type(problems["b"]).divided

    def noted(problem):
        seen.append(divide(problem))
        return seen[-1]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(type(problems["b"]), "divided", noted)
        learns, rho = choose_related(models, "b", 0.05)
    assert len(seen) == 1 and seen[0].annotated.sum() > 1
    assert isinstance(learns, bool) and rho >= 0


# ---------------------------------------------------------------------- files


def test_what_was_chosen_is_in_the_file(tmp_path):
    from trellis import MaxMargin

    a = ([["we", "can", "fish"], ["we", "fish"]] * 3, [["N", "V", "V"], ["N", "V"]] * 3)
    b = ([["a", "can", "rusts"]], [["D", "N", "V"]])
    found = TransferLearner(MaxMargin("word", l2=0.1), target="b").fit({"a": a, "b": b})
    found.save(tmp_path / "m.trellis")
    loaded = load_model(tmp_path / "m.trellis")
    assert (loaded.rho_, loaded.strategy_) == (found.rho_, found.strategy_)
    assert (found.rho_, found.strategy_) == (np.inf, "all-source")


def test_rho_of_a_file_is_a_number():
    with pytest.raises(CorruptModelError, match="rho is not a number"):
        state = {"shared": np.zeros(2), "objective": 1.0, "rho": "much", "strategy": "transfer"}
        TransferLearner(ToyModel())._restore(state)
