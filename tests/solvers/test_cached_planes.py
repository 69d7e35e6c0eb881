"""Frank–Wolfe with cached planes: the dual only rises, bounds the optimum, and fits its weights."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from label_problems import Enumerated
from margin_problems import make_problem
from trellis.problems import HingeLoss, PartialObjective
from trellis.solvers import cached_planes, minimise_bundle
from trellis.solvers.cached_planes import CachedPlanes, _Sample

STRUCTURES = [("graph", {}), ("graph", {"directed": False}), ("tree", {"rich": "dense"})]


def check_point(dual: CachedPlanes) -> None:
    """Shares are distributions, and the weights are those of the planes in use."""
    w = np.zeros(len(dual.weights()))
    for c, sample in zip(dual.loss.sample_weight, dual._samples, strict=True):
        assert (sample.alpha >= 0).all() and sample.alpha.sum() == pytest.approx(1)
        np.testing.assert_allclose(sample.products, sample.rows @ sample.rows.T, atol=1e-9)
        w[sample.index] += c / (2 * dual.l2) * (sample.alpha @ sample.rows)
    np.testing.assert_allclose(w, dual.weights(), atol=1e-9)


@pytest.mark.parametrize(("structure", "options"), STRUCTURES)
@pytest.mark.parametrize("most", [2, 3, 10])
def test_the_dual_rises_to_the_optimum(structure, options, most, monkeypatch):
    monkeypatch.setattr(cached_planes, "_PLANES", most)
    problem = make_problem(2, structure, 7, longest=3, inference="exact", **options).problem
    weight = np.array([1.0, 0.5, 2.0, 0.0, 1.0, 1.0, 3.0])
    objective = PartialObjective(problem, sample_weight=weight)
    best = minimise_bundle(objective.risk, objective.n_weights, l2=0.5, floor=0.0, tol=1e-7)
    dual = CachedPlanes(HingeLoss(problem, sample_weight=weight), 0.5)
    rng, values = np.random.default_rng(0), [dual.dual()]
    for _ in range(60):
        dual.sweep(rng.permutation(7))
        check_point(dual)
        values.append(dual.dual())
        assert all(len(sample.rows) <= most for sample in dual._samples)
    assert all(b >= a - 1e-9 * abs(a) for a, b in itertools.pairwise(values))
    assert values[-1] <= best.objective * (1 + 1e-9)
    assert values[-1] == pytest.approx(best.objective, rel=1e-3 if most == 10 else 2e-2)
    assert dual.objective(dual.weights()) >= best.lower_bound - 1e-9
    assert dual.exact


@given(st.integers(0, 1000))
@settings(max_examples=30)
def test_rewards_can_be_exchanged(seed):
    problem = Enumerated(seed, "graph", n_samples=4).problem
    rng = np.random.default_rng(seed)
    golds = [
        np.array([rng.choice(np.flatnonzero(row)) for row in problem.allowed(problem.batch())])
        for _ in range(3)
    ]
    dual = CachedPlanes(HingeLoss(problem, golds[0], np.array([1.0, 2.0, 0.0, 0.5])), 0.2)
    for gold in golds:
        dual.reward(gold)
        check_point(dual)
        assert dual.dual() <= dual.objective(dual.weights()) + 1e-9
        dual.sweep(rng.permutation(4))
        check_point(dual)
    np.testing.assert_array_equal(dual.loss.gold, golds[-1])


def test_little_memory_is_kept_to(monkeypatch):
    monkeypatch.setattr(cached_planes, "_MEMORY", 0)
    problem = make_problem(3, "graph", 6).problem
    dual = CachedPlanes(HingeLoss(problem), 0.3)
    for _ in range(5):
        dual.sweep(np.arange(6))
    check_point(dual)
    assert max(len(sample.rows) for sample in dual._samples) == 2


@given(st.integers(0, 1000), st.integers(2, 6))
@settings(max_examples=30)
def test_planes_with_other_weights_take_the_room_of_those_not_in_use(seed, most):
    rng = np.random.default_rng(seed)
    sample, w, l2 = _Sample(), np.zeros(60), 0.3
    value = 0.0
    for _ in range(20):
        index = np.sort(rng.choice(60, rng.integers(1, 8), replace=False))
        sample.add(index, rng.normal(size=len(index)), float(rng.integers(0, 5)), most)
        assert len(sample.rows) <= most and sample.alpha.sum() == pytest.approx(1)
        sample.ascend(w, 1 / (2 * l2))
        there = np.zeros(60)
        there[sample.index] = sample.alpha @ sample.rows / (2 * l2)
        np.testing.assert_allclose(there, w, atol=1e-9)
        np.testing.assert_allclose(sample.products, sample.rows @ sample.rows.T, atol=1e-9)
        before, value = value, float(sample.alpha @ sample.losses - l2 * (w @ w))
        assert value >= before - 1e-9
