"""The bundle method against quadratic and linear programs with all constraints written down."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from trellis.errors import DataError
from trellis.problems.cut import Cut
from trellis.solvers.bundle import Bundle
from trellis.solvers.planes import minimise_bundle


class Tiny:
    """A structured hinge risk small enough to be enumerated: pairs of labels on two positions."""

    def __init__(self, seed: int, n: int = 4, d: int = 3, n_labels: int = 2) -> None:
        rng = np.random.default_rng(seed)
        self.labellings = list(itertools.product(range(n_labels), repeat=2))
        self.psi = rng.normal(size=(n, len(self.labellings), d))  # features of each labelling
        self.gold = rng.integers(0, len(self.labellings), n)
        self.loss = np.array(
            [
                [sum(a != b for a, b in zip(y, self.labellings[g], strict=True))
                 for y in self.labellings]
                for g in self.gold
            ], float,
        )  # fmt: skip
        self.diff = self.psi - self.psi[np.arange(n), self.gold][:, None]
        self.d = d

    def risk(self, w):
        scores = self.loss + self.diff @ w
        y = scores.argmax(1)
        i = np.arange(len(y))
        return float(scores[i, y].sum()), self.diff[i, y].sum(0)

    def objective(self, w, l2, l1):
        return self.risk(w)[0] + l2 * w @ w + l1 * np.abs(w).sum()


def optimum_l2(p: Tiny, l2: float) -> float:
    n, k, d = p.diff.shape
    rows = np.concatenate([p.diff.reshape(n * k, d), -np.repeat(np.eye(n), k, 0)], 1)
    found = minimize(
        lambda z: (l2 * z[:d] @ z[:d] + z[d:].sum(), np.append(2 * l2 * z[:d], np.ones(n))),
        np.append(np.zeros(d), p.loss.max(1)), jac=True, method="SLSQP",
        constraints={"type": "ineq", "fun": lambda z: -rows @ z - p.loss.ravel(),
                     "jac": lambda z: -rows},
        options={"ftol": 1e-14, "maxiter": 1000},
    )  # fmt: skip
    return p.objective(found.x[:d], l2, 0.0)


def optimum_l1(p: Tiny, l1: float) -> float:
    n, k, d = p.diff.shape
    a = p.diff.reshape(n * k, d)
    rows = np.hstack([a, -a, -np.repeat(np.eye(n), k, 0)])
    cost = np.concatenate([np.full(2 * d, l1), np.ones(n)])
    return linprog(cost, rows, -p.loss.ravel()).fun


def check_records(found, p, optimum, l2, l1):
    lower = [r.lower_bound for r in found.records]
    assert all(a <= b + 1e-9 for a, b in itertools.pairwise(lower))
    objective = [r.objective for r in found.records]
    assert all(a >= b for a, b in itertools.pairwise(objective))
    for r in found.records:
        assert r.lower_bound <= optimum + 1e-6 * (1 + abs(optimum))
        assert r.objective >= optimum - 1e-6 * (1 + abs(optimum))
        assert r.gap == pytest.approx(r.objective - r.lower_bound, abs=1e-9)
    assert found.objective == pytest.approx(p.objective(found.weights, l2, l1), rel=1e-9)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 5000),
    l2=st.sampled_from([0.01, 0.3, 5.0]),
    floor=st.sampled_from([None, 0.0]),
    memory=st.sampled_from([None, 8]),
    step=st.sampled_from([0.2, 1.0]),
)
def test_l2_finds_the_optimum(seed, l2, floor, memory, step):
    p = Tiny(seed)
    found = minimise_bundle(
        p.risk, p.d, l2=l2, floor=floor, memory=memory, tol=1e-5, max_iterations=300, step=step
    )
    optimum = optimum_l2(p, l2)
    check_records(found, p, optimum, l2, 0.0)
    assert found.exact
    assert found.stop_reason == "gap"
    assert found.objective <= optimum * (1 + 1e-4) + 1e-9
    if memory is not None:
        assert len(found.bundle) <= memory + 1


@settings(max_examples=25)
@given(
    seed=st.integers(0, 5000),
    floor=st.sampled_from([None, 0.0]),
    memory=st.sampled_from([2, 3]),
)
def test_little_memory_keeps_the_bounds_and_gets_near(seed, floor, memory):
    p = Tiny(seed, n=10, d=5)
    found = minimise_bundle(
        p.risk, p.d, l2=1.0, floor=floor, memory=memory, tol=0.03, max_iterations=200
    )
    check_records(found, p, optimum_l2(p, 1.0), 1.0, 0.0)
    assert len(found.bundle) <= memory + 1
    assert found.stop_reason == "gap"


@settings(max_examples=25)
@given(
    seed=st.integers(0, 5000),
    l1=st.sampled_from([0.05, 0.5, 3.0]),
    memory=st.sampled_from([None, 6]),
    box=st.sampled_from([None, 1e3]),
)
def test_l1_finds_the_optimum(seed, l1, memory, box):
    p = Tiny(seed)
    found = minimise_bundle(
        p.risk, p.d, l1=l1, floor=0.0, memory=memory, tol=1e-6, max_iterations=200, box=box
    )
    optimum = optimum_l1(p, l1)
    check_records(found, p, optimum, 0.0, l1)
    if memory is None:
        assert found.stop_reason == "gap"
        assert found.objective <= optimum * (1 + 1e-5) + 1e-9


def test_l1_in_a_box_needs_no_floor():
    found = minimise_bundle(
        lambda w: (float(-2 * w[0] + w[1]), np.array([-2.0, 1.0])), 2, l1=0.5, box=3.0
    )
    assert found.weights.tolist() == [3.0, -3.0]
    assert found.objective == pytest.approx(-6.0 - 3.0 + 3.0)
    assert found.stop_reason == "gap"


@settings(max_examples=25)
@given(seed=st.integers(0, 1000), floor=st.sampled_from([None, 0.0]))
def test_linear_term_moves_the_optimum(seed, floor):
    p = Tiny(seed)
    v = np.random.default_rng(seed).normal(size=p.d)

    def tilted(w):
        value, slope = p.risk(w)
        return value + float(v @ w), slope + v

    a = minimise_bundle(p.risk, p.d, l2=0.3, linear=v, floor=floor, tol=1e-7)
    b = minimise_bundle(tilted, p.d, l2=0.3, tol=1e-7)
    assert a.objective == pytest.approx(b.objective, rel=1e-5, abs=1e-6)
    assert a.lower_bound <= b.objective + 1e-9
    assert b.lower_bound <= a.objective + 1e-9


def test_l1_with_a_linear_term():
    p = Tiny(3)
    v = np.array([0.3, -0.2, 0.1])
    found = minimise_bundle(p.risk, p.d, l1=0.5, linear=v, floor=0.0, tol=1e-8)
    far = minimise_bundle(p.risk, p.d, l1=0.5, linear=v, floor=0.0, box=1e3, tol=1e-8)
    assert found.stop_reason == far.stop_reason == "gap"
    assert found.objective == pytest.approx(far.objective, rel=1e-6)


def test_planes_are_kept_for_another_run():
    p = Tiny(7, n=30, d=8)
    first = minimise_bundle(p.risk, p.d, l2=0.5, floor=0.0, tol=1e-6)
    again = minimise_bundle(p.risk, p.d, l2=0.5, floor=0.0, tol=1e-6, bundle=first.bundle)
    assert len(again.records) <= 3 < len(first.records)
    assert again.objective == pytest.approx(first.objective, rel=1e-5)
    fresh = minimise_bundle(p.risk, p.d, l2=0.3, floor=0.0, tol=1e-6)
    other = minimise_bundle(p.risk, p.d, l2=0.3, floor=0.0, tol=1e-6, bundle=again.bundle)
    assert len(other.records) < len(fresh.records)
    assert other.objective == pytest.approx(fresh.objective, rel=1e-5)


@settings(max_examples=25)
@given(seed=st.integers(0, 1000), slack=st.floats(0.1, 1.0))
def test_inexact_oracle_bounds_the_true_objective(seed, slack):
    p = Tiny(seed)

    def loose(w):
        """The second best labelling of the first sample, and an upper bound that is too high."""
        scores = p.loss + p.diff @ w
        y = scores.argmax(1)
        y[0] = np.argsort(scores[0])[-2]
        i = np.arange(len(y))
        return Cut(float(scores.max(1).sum()) + slack, float(scores[i, y].sum()),
                   p.diff[i, y].sum(0))  # fmt: skip

    found = minimise_bundle(loose, p.d, l2=0.3, floor=0.0, tol=1e-6, max_iterations=300)
    optimum = optimum_l2(p, 0.3)
    assert not found.exact
    assert found.stop_reason in ("no progress", "max_iterations")
    assert found.gap >= slack * 0.999
    for r in found.records:
        assert r.lower_bound <= optimum + 1e-6
        assert r.objective >= optimum + slack - 1e-6


def test_stops_are_named():
    p = Tiny(2, n=20, d=6)
    short = minimise_bundle(p.risk, p.d, l2=0.1, floor=0.0, max_iterations=2)
    assert short.stop_reason == "max_iterations"
    assert len(short.records) == 2
    seen = []
    fine = minimise_bundle(p.risk, p.d, l2=0.1, floor=0.0, tol=0.0, report=seen.append)
    assert fine.stop_reason in ("gap", "no progress")
    assert seen == fine.records
    assert fine.gap <= 1e-8 * fine.objective


def test_start_is_the_first_point():
    asked = []

    def risk(w):
        asked.append(w.copy())
        return float(np.abs(w - 1).sum()), np.sign(w - 1)

    minimise_bundle(risk, 2, l2=1e-3, start=np.array([1.0, 1.0]), floor=0.0)
    assert asked[0].tolist() == [1.0, 1.0]


def fine(w):
    return 0.0, np.zeros_like(w)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"l2": 0.0}, "one of l2 and l1"),
        ({"l1": 1.0}, "one of l2 and l1"),
        ({"l2": -1.0}, "l2 must be a number of at least 0"),
        ({"linear": np.zeros(3)}, "linear have shape"),
        ({"start": np.zeros(3)}, "start have shape"),
        ({"bundle": Bundle(5)}, "one of 5 weights"),
        ({"memory": 1}, "memory must be"),
        ({"box": 0.0}, "box must be None or a positive number"),
        ({"l2": 0.0, "l1": 1.0, "rho": 2.0}, "rho is for l2; with l1 it must be inf, got 2.0"),
        ({"step": 0.0}, "step must be a number above 0 and of at most 1"),
        ({"step": 1.5}, "step must be a number above 0 and of at most 1"),
        ({"l2": 0.0, "l1": 1.0}, "unbounded: give a floor"),
        ({"l2": 0.0, "l1": 1.0, "floor": 0.0, "linear": np.ones(2)}, "unbounded: give a floor"),
        ({"risk": lambda w: (0.0, np.zeros(3))}, "slope of the risk must have shape"),
        ({"risk": lambda w: (np.nan, np.zeros(2))}, "not finite"),
        ({"risk": lambda w: Cut(0.0, 1.0, np.zeros(2))}, "lies above the bound"),
    ],
)
def test_bad_input(change, message):
    arguments = {"risk": fine, "n_weights": 2, "l2": 1.0} | change
    with pytest.raises(DataError, match=message):
        minimise_bundle(**arguments)


def test_failing_linear_program_is_reported(monkeypatch):
    import scipy.optimize

    class Failed:
        x = None
        message = "lost"

    monkeypatch.setattr(scipy.optimize, "linprog", lambda *a, **k: Failed())
    with pytest.raises(DataError, match="linear program of the bundle method failed: lost"):
        minimise_bundle(fine, 2, l1=1.0, floor=0.0, start=np.ones(2))
