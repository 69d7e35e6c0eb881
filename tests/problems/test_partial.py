"""Losses of partial annotations against enumeration, and what is said of them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from label_problems import STRUCTURES, Enumerated
from trellis.errors import DataError
from trellis.problems.partial import PARTIAL_LOSSES, PartialLoss, PartialObjective
from trellis.solvers import minimise_bundle

ALL = [
    PartialLoss(p, r) for p in ("all", "incompatible") for r in ("all", "compatible", "mean")
]  # the named ones and two more


def loss_by_enumeration(e, w, loss):
    """Loss of each sample as the definition has it; 0 where nothing is known."""
    found = e.values(w, loss.penalty, True) - e.values(w, loss.reward)
    return np.where(e.problem.annotated, np.maximum(found, 0.0), 0.0)


@pytest.mark.parametrize("loss", ALL, ids=str)
def test_value_and_parts(loss):
    for (structure, options), seed in itertools.product(STRUCTURES[:4], range(3)):
        e = Enumerated(seed, structure, known=0.5, **options)
        objective = PartialObjective(e.problem, loss)
        w = 2 * e.weights()
        expected = loss_by_enumeration(e, w, loss)
        np.testing.assert_allclose(objective.losses(w), expected[objective.samples], atol=1e-5)
        assert objective.value(w) == pytest.approx(expected.sum(), abs=1e-5)
        cut = objective.penalty(w)
        above, slope = cut.upper, cut.slope
        below, back = objective.reward(w)
        assert above - below == pytest.approx(expected.sum(), abs=1e-5)
        for other in (e.weights(), -w, w + 0.1 * e.weights()):  # planes lie below both parts
            step = other - w
            assert objective.penalty(other).upper >= above + slope @ step - 1e-5
            assert objective.reward(other)[0] >= below + back @ step - 1e-5


def test_bridge_and_latent_hinge_are_the_same_function():
    """By their definitions, too: with and without the incompatible outputs."""
    for seed, (structure, options) in enumerate(STRUCTURES):
        e = Enumerated(seed, structure, known=0.7, **options)
        for w in (e.weights(), 3 * e.weights(), 0 * e.weights()):
            bridge = loss_by_enumeration(e, w, PARTIAL_LOSSES["bridge"])
            latent = loss_by_enumeration(e, w, PARTIAL_LOSSES["latent-hinge"])
            np.testing.assert_allclose(bridge, latent, atol=1e-6)
            found = e.problem.maxima(w, "incompatible", loss=True).values
            right = e.problem.maxima(w, "compatible").values
            every = e.problem.maxima(w, "all", loss=True).values
            np.testing.assert_allclose(np.maximum(found, right), every, atol=1e-6)


def test_bridge_asks_for_no_incompatible_outputs(monkeypatch):
    e = Enumerated(0)
    asked = []
    maxima = e.problem.maxima
    monkeypatch.setattr(
        e.problem,
        "maxima",
        lambda w, space, **more: asked.append(space) or maxima(w, space, **more),
    )
    objective = PartialObjective(e.problem, "bridge")
    objective.penalty(e.weights())
    objective.reward(e.weights())
    assert asked == ["all", "compatible"]


@pytest.mark.parametrize("loss", ["bridge", "max"])
def test_only_samples_that_are_open_are_searched_again(loss, monkeypatch):
    """The features of a complete annotation, and of a mean, are the same for every w."""
    e = Enumerated(6, known=0.6)
    assert e.problem.complete.tolist() == [True, False, False]
    weight = np.array([1.0, 2.0, 0.5])
    objective = PartialObjective(e.problem, loss, sample_weight=weight)
    space = objective.loss.reward
    asked = []
    maxima = e.problem.maxima

    def watched(w, space, *, loss=False, samples=None):
        asked.append(None if samples is None else samples.tolist())
        return maxima(w, space, loss=loss, samples=samples)

    monkeypatch.setattr(e.problem, "maxima", watched)
    for _ in range(2):
        w = e.weights()
        value, slope = objective.reward(w)
        reward = maxima(w, space)
        assert value == pytest.approx(weight @ reward.values, abs=1e-12)
        np.testing.assert_allclose(slope, reward.features(weight), atol=1e-12)
        slope[:] = np.nan  # nobody else's
    assert asked == ([[0], [1, 2], [1, 2]] if loss == "bridge" else [[0, 1, 2]])


def test_samples_and_weights():
    e = Enumerated(4, known=0.8)
    w = e.weights()
    weight = np.array([1.0, 2.0, 0.5])
    each = loss_by_enumeration(e, w, PARTIAL_LOSSES["bridge"])
    some = PartialObjective(e.problem, samples=np.array([2, 1]), sample_weight=weight)
    assert some.value(w) == pytest.approx(weight[1:] @ each[1:])
    above, below = some.penalty(w).upper, some.reward(w)[0]
    assert above - below == pytest.approx(some.value(w))
    with pytest.raises(DataError, match=r"sample_weight must have shape \(3,\), got \(2,\)"):
        PartialObjective(e.problem, sample_weight=weight[:2])


def test_samples_nothing_is_known_of_are_left_out():
    e = Enumerated(0, known=0.0)
    for loss in PARTIAL_LOSSES:
        objective = PartialObjective(e.problem, loss)
        assert len(objective.samples) == 0
        assert objective.value(e.weights()) == 0
        assert not objective.penalty(e.weights()).slope.any()


def test_convex():
    part = Enumerated(1, known=0.5)
    whole = Enumerated(1, known=0.0)
    for s, known in enumerate(whole.lists):
        whole.problem.annotate(s, ["a"] * len(known))
    assert [PartialObjective(part.problem, loss).convex for loss in PARTIAL_LOSSES] == [
        False, False, False, True,
    ]  # fmt: skip
    assert [PartialObjective(whole.problem, loss).convex for loss in PARTIAL_LOSSES] == [
        True, True, False, True,
    ]  # fmt: skip
    with pytest.raises(DataError, match="the losses are not convex"):
        PartialObjective(part.problem).risk(part.weights())


@pytest.mark.parametrize("loss", ["max", PartialLoss("all", "mean")], ids=str)
def test_risk_can_be_minimised(loss):
    e = Enumerated(7, known=0.6)
    objective = PartialObjective(e.problem, loss)
    found = minimise_bundle(objective.risk, e.problem.n_weights, l2=0.1, floor=0.0, tol=1e-4)
    assert found.stop_reason == "gap"
    w = found.weights
    value = objective.risk(w).upper
    assert value == pytest.approx(objective.value(w), abs=1e-9)
    best = 0.1 * w @ w + value
    for _ in range(20):
        near = w + 0.1 * e.weights()
        assert 0.1 * near @ near + objective.value(near) >= best - 1e-3


def test_bad_losses():
    e = Enumerated(0)
    with pytest.raises(DataError, match=r"one of bridge, latent-hinge, ramp, max or"):
        PartialObjective(e.problem, "hinge")
    with pytest.raises(DataError, match="the penalty space must be 'all' or 'incompatible'"):
        PartialLoss("mean", "all")
    with pytest.raises(DataError, match="the reward space must be 'all', 'compatible' or 'mean'"):
        PartialLoss("all", "incompatible")
