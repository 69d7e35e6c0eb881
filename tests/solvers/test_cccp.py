"""The concave-convex procedure on small problems whose outputs and hidden parts are enumerated."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from trellis.errors import DataError
from trellis.problems.cut import Cut
from trellis.solvers.cccp import PlaneSurrogate, Tangent, minimise_cccp
from trellis.solvers.planes import minimise_bundle
from trellis.solvers.solution import Solution

VARIANTS = list(itertools.product([True, False], [True, False]))


class Latent:
    """Bridge losses of k labels with h hidden parts each; label 0 is annotated, its part is not.

    [p - r]_+ = max(p, r) - r, so that the reward is nowhere above the penalty.
    """

    def __init__(self, seed, n=12, k=3, h=2, d=3, noise=0.3):
        rng = np.random.default_rng(seed)
        true = rng.normal(size=d)
        self.phi = rng.normal(size=(n, k, 1, d)) + 0.5 * rng.normal(size=(n, k, h, d))
        scores = self.phi @ true + noise * rng.gumbel(size=(n, k, h))
        order = np.argsort(-scores.max(2), 1)
        self.phi = self.phi[np.arange(n)[:, None], order]
        self.n, self.d = n, d
        self.calls = 0

    def _parts(self, w):
        scores = self.phi @ w
        i = np.arange(self.n)
        rest = (scores[:, 1:] + 1.0).reshape(self.n, -1)
        y, z = rest.argmax(1), scores[:, 0].argmax(1)
        wrong = self.phi[:, 1:].reshape(self.n, -1, self.d)[i, y]
        return rest[i, y], wrong, scores[i, 0, z], self.phi[i, 0, z]

    def penalty(self, w):
        self.calls += 1
        p, wrong, r, right = self._parts(w)
        return float(np.maximum(p, r).sum()), np.where((p > r)[:, None], wrong, right).sum(0)

    def reward(self, w):
        _, _, r, right = self._parts(w)
        return float(r.sum()), right.sum(0)

    def objective(self, w, l2=0.0, l1=0.0):
        p, _, r, _ = self._parts(w)
        return l2 * w @ w + l1 * np.abs(w).sum() + np.maximum(p - r, 0).sum()


def surrogate_minimum(p, w, l2):
    """Least of the surrogate at w: SLSQP with a slack for each sample, or the dual bound."""
    _, slope = p.reward(w)
    rows = np.concatenate([p.phi[:, 1:].reshape(p.n, -1, p.d), p.phi[:, 0]], 1)
    k = rows.shape[1]
    loss = np.append(np.ones((p.n, k - p.phi.shape[2])), np.zeros((p.n, p.phi.shape[2])), 1)
    table = np.concatenate([rows.reshape(-1, p.d), -np.repeat(np.eye(p.n), k, 0)], 1)
    begin = np.append(w, (loss + rows @ w).max(1))
    found = minimize(
        lambda z: (l2 * z[: p.d] @ z[: p.d] + z[p.d :].sum() - slope @ z[: p.d],
                   np.append(2 * l2 * z[: p.d] - slope, np.ones(p.n))),
        begin, jac=True, method="SLSQP", options={"ftol": 1e-12, "maxiter": 500},
        constraints={"type": "ineq", "fun": lambda z: -table @ z - loss.ravel(),
                     "jac": lambda z: -table},
    )  # fmt: skip
    return found.fun


INNER = {"l2", "l1", "recycle", "reward_below", "box", "memory", "step", "max_iterations"}


def solve(penalty, reward, n_weights, *, start=None, adaptive=True, **options):
    """The procedure with cutting planes, all options in one place."""
    surrogate = PlaneSurrogate(
        penalty, reward, **{name: options.pop(name) for name in INNER & options.keys()}
    )
    if not adaptive:
        options["first_tol"] = options.get("tol", 1e-3)
    return minimise_cccp(surrogate, np.zeros(n_weights) if start is None else start, **options)


def begin(d):
    return np.random.default_rng(1).normal(size=d)


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 2000),
    l2=st.sampled_from([0.1, 1.0]),
    variant=st.sampled_from(VARIANTS),
    below=st.booleans(),
    memory=st.sampled_from([None, 10]),
    step=st.sampled_from([0.2, 1.0]),
)
def test_falls_to_a_stationary_point(seed, l2, variant, below, memory, step):
    p = Latent(seed)
    recycle, adaptive = variant
    w0 = begin(p.d)
    seen = []
    surrogate = PlaneSurrogate(
        p.penalty, p.reward, l2=l2, recycle=recycle, reward_below=below, memory=memory, step=step
    )
    found = minimise_cccp(
        surrogate, w0, first_tol=0.3 if adaptive else 1e-5, tol=1e-5, eta=1e-5, report=seen.append
    )
    assert found.stop_reason == "eta"
    assert found.exact
    assert seen == found.rounds
    assert found.n_planes == p.calls
    assert found.n_planes == sum(r.n_planes for r in found.rounds)
    values = [p.objective(w0, l2), *(r.objective for r in found.rounds)]
    assert all(a >= b for a, b in itertools.pairwise(values))
    assert found.objective == pytest.approx(p.objective(found.weights, l2), rel=1e-9)
    # No surrogate at the end is lower by more than the precision.
    least = surrogate_minimum(p, found.weights, l2)
    assert found.objective <= least * (1 + 3e-5) + 1e-6
    tols = [r.tol for r in found.rounds]
    assert tols[-1] == 1e-5
    assert tols[0] == (0.3 if adaptive else 1e-5)
    for w in np.random.default_rng(seed).normal(size=(30, p.d)) * 3:
        assert surrogate.bundle.height(w) <= p.penalty(w)[0] + 1e-9


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2000))
def test_all_variants_agree_where_the_problem_is_convex(seed):
    """One hidden part: the reward is linear, and J has one minimum."""
    p = Latent(seed, h=1)
    slope = p.reward(np.zeros(p.d))[1]
    best = minimise_bundle(p.penalty, p.d, l2=0.3, linear=-slope, tol=1e-6)
    for recycle, adaptive in VARIANTS:
        found = solve(
            p.penalty, p.reward, p.d, l2=0.3, recycle=recycle, adaptive=adaptive,
            start=begin(p.d), tol=1e-5, eta=1e-5, reward_below=True,
        )  # fmt: skip
        assert found.stop_reason == "eta"
        assert found.objective == pytest.approx(best.objective, rel=2e-5)


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2000), l2=st.sampled_from([0.05, 1.0]))
@example(seed=145, l2=0.05)  # through zero, where another tangent leads on
def test_is_a_minimum_in_one_dimension(seed, l2):
    """On a grid no point near or far has a lower surrogate."""
    p = Latent(seed, d=1, n=6)
    found = solve(
        p.penalty, p.reward, 1, l2=l2, start=begin(1), tol=1e-9, eta=1e-9, reward_below=True
    )
    w = found.weights[0]
    r, slope = p.reward(found.weights)

    def surrogate(x):
        x = np.array([x])
        return l2 * float(x @ x) + p.penalty(x)[0] - r - float(slope @ (x - w))

    assert surrogate(w) == pytest.approx(found.objective)
    near = w + np.linspace(-0.1, 0.1, 101)
    grid = np.append(np.linspace(-10, 10, 301), near)
    assert found.objective <= min(surrogate(x) for x in grid) + 1e-6


def test_recycling_and_adaptive_precision_need_fewer_planes():
    counts = dict.fromkeys(VARIANTS, 0)
    objectives = dict.fromkeys(VARIANTS, 0.0)
    for seed in range(3):
        p = Latent(seed, n=30, k=4, h=3, d=6)
        for recycle, adaptive in VARIANTS:
            found = solve(
                p.penalty, p.reward, p.d, l2=1.0, start=begin(p.d), recycle=recycle,
                adaptive=adaptive, reward_below=True,
            )  # fmt: skip
            counts[recycle, adaptive] += found.n_planes
            objectives[recycle, adaptive] += found.objective
    assert counts[True, True] < 0.7 * counts[False, False]
    assert counts[True, False] < counts[False, False]
    assert counts[True, True] < counts[False, True]
    assert max(objectives.values()) < 1.02 * min(objectives.values())


def test_free_plane_of_the_reward_bounds_the_surrogate_from_the_start():
    """With it the surrogate is known to be at least 0; without it the first planes say little."""
    p = Latent(0, n=30, k=4, d=8)
    w0 = begin(p.d)
    run = {"l2": 0.01, "start": w0, "max_rounds": 1, "max_iterations": 1}
    bounded = solve(p.penalty, p.reward, p.d, reward_below=True, **run)
    free = solve(p.penalty, p.reward, p.d, **run)
    assert bounded.rounds[0].gap <= p.objective(w0, 0.01) < free.rounds[0].gap


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2000), recycle=st.booleans(), box=st.sampled_from([None, 50.0]))
@example(seed=492, recycle=True, box=None)
def test_l1(seed, recycle, box):
    p = Latent(seed, n=8)
    l1 = 1.0
    found = solve(
        p.penalty, p.reward, p.d, l1=l1, start=begin(p.d), recycle=recycle, box=box,
        reward_below=box is None, tol=1e-6, eta=1e-6,
    )  # fmt: skip
    assert found.stop_reason == "eta"
    assert found.objective == pytest.approx(p.objective(found.weights, l1=l1), rel=1e-9)
    # The surrogate as a linear program with all constraints written down.
    _, slope = p.reward(found.weights)
    n, k, h, d = p.phi.shape
    a = p.phi.reshape(n, k * h, d)
    loss = np.tile(np.append(np.zeros(h), np.ones((k - 1) * h)), n)
    rows = np.hstack([a.reshape(-1, d), -a.reshape(-1, d), -np.repeat(np.eye(n), k * h, 0)])
    cost = np.concatenate([l1 - slope, l1 + slope, np.ones(n)])
    bounds = [(0, None)] * (2 * d) + [(None, None)] * n
    least = linprog(cost, rows, -loss, bounds=bounds).fun
    assert found.objective <= least * (1 + 1e-5) + 1e-6


def test_zero_objective_with_l1():
    """Nothing to learn: the objective is 0 at the start, and stays there."""
    found = solve(
        lambda w: (0.0, np.zeros(2)), lambda w: (0.0, np.zeros(2)), 2, l1=1.0, reward_below=True
    )
    assert found.weights.tolist() == [0, 0]
    assert found.objective == 0


def test_a_reward_with_an_offset():
    """R need not be homogeneous: J = l2 w^2 + |w - 3| - |w - 1|/2, with P >= R nowhere asked."""

    def penalty(w):
        return float(abs(w[0] - 3)), np.sign(w - 3)

    def reward(w):
        return float(abs(w[0] - 1)) / 2, np.sign(w - 1) / 2

    found = solve(penalty, reward, 1, l2=0.1, start=np.array([2.0]), tol=1e-9, eta=1e-9)
    grid = np.linspace(1, 5, 4001)
    J = 0.1 * grid**2 + abs(grid - 3) - abs(grid - 1) / 2
    assert found.objective == pytest.approx(J.min(), abs=1e-6)
    assert found.weights[0] == pytest.approx(grid[J.argmin()], abs=1e-3)


def test_inexact_oracles_keep_the_objective_from_rising():
    p = Latent(3)
    rng = np.random.default_rng(0)

    def penalty(w):
        value, slope = p.penalty(w)
        return Cut(value + 0.05, value - 0.02, slope)

    def reward(w):
        """Now and then a poor hidden part."""
        if rng.random() < 0.5:
            slope = p.phi[:, 0, 0].sum(0)
            return Cut(p.reward(w)[0], float(slope @ w), slope)
        return p.reward(w)

    found = solve(penalty, reward, p.d, l2=0.5, start=begin(p.d))
    assert not found.exact
    values = [r.objective for r in found.rounds]
    assert all(a >= b for a, b in itertools.pairwise(values))
    assert found.objective >= p.objective(found.weights, 0.5)


def test_stops_are_named():
    p = Latent(5, n=30, d=6)
    run = {"l2": 0.5, "start": begin(p.d), "tol": 1e-6, "eta": 1e-6}
    one = solve(p.penalty, p.reward, p.d, max_rounds=1, **run)
    assert one.stop_reason == "max_rounds"
    assert len(one.rounds) == 1
    few = solve(p.penalty, p.reward, p.d, adaptive=False, max_iterations=1, max_rounds=500, **run)
    assert few.stop_reason == "max_iterations"
    assert all(r.n_planes <= 2 for r in few.rounds)


@pytest.mark.parametrize("at", [1, 2, 15])
def test_interrupt_in_an_oracle(at):
    p = Latent(5, n=30, d=6)
    calls = 0

    def penalty(w):
        nonlocal calls
        calls += 1
        if calls == at:
            raise KeyboardInterrupt
        return p.penalty(w)

    w0 = begin(p.d)
    found = solve(penalty, p.reward, p.d, l2=0.5, start=w0, tol=1e-6)
    assert found.stop_reason == "interrupted"
    assert found.n_planes == at - 1
    if at == 1:
        assert found.objective == np.inf
        assert (found.weights == w0).all()
    else:  # an upper bound: the reward was not asked any more
        assert p.objective(found.weights, 0.5) <= found.objective + 1e-9
        assert found.objective <= p.objective(w0, 0.5) + 1e-9


def test_interrupt_between_rounds():
    p = Latent(5, n=30, d=6)

    def stop(record):
        if record.number == 2:
            raise KeyboardInterrupt

    found = solve(p.penalty, p.reward, p.d, l2=0.5, start=begin(p.d), report=stop)
    assert found.stop_reason == "interrupted"
    assert len(found.rounds) == 2
    assert found.objective == pytest.approx(p.objective(found.weights, 0.5))


class Halves:
    """Another inner solver: J = w^2 / 10 + |w - 3| - |w - 1| / 2 in one dimension, by bisection."""

    n_planes, exact = 0, True

    def tangent(self, w):
        slope = np.sign(w - 1) / 2
        return Tangent(slope, float(abs(w[0] - 1)) / 2 - float(slope @ w))

    def value(self, w, tangent):
        return 0.1 * float(w @ w) + float(abs(w[0] - 3)) - tangent.height(w)

    def begin(self, w, tangent):
        return self.value(w, tangent)

    def minimise(self, w, tangent, objective, tol):
        low, high = -10.0, 10.0
        while high - low > tol:
            self.n_planes += 1
            middle = (low + high) / 2
            rising = 0.2 * middle + np.sign(middle - 3) - tangent.slope[0] > 0
            low, high = (low, middle) if rising else (middle, high)
        new = np.array([low])
        if self.value(new, tangent) > objective:
            new = w
        return Solution(new, self.value(new, tangent), 0.0, "gap", True, [])


def test_any_solver_will_do():
    """The same stationary point as with planes, by a solver of one's own."""
    start = np.array([2.0])
    mine = Halves()
    found = minimise_cccp(mine, start, tol=1e-9, eta=1e-9)
    wanted = solve(
        lambda w: (float(abs(w[0] - 3)), np.sign(w - 3)),
        lambda w: (float(abs(w[0] - 1)) / 2, np.sign(w - 1) / 2),
        1, l2=0.1, start=start, tol=1e-9, eta=1e-9,
    )  # fmt: skip
    assert found.objective == pytest.approx(wanted.objective, abs=1e-7)
    assert found.stop_reason == "eta"
    assert found.n_planes == mine.n_planes == sum(r.n_planes for r in found.rounds)


def zero(w):
    return 0.0, np.zeros_like(w)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"l2": 0.0}, "one of l2 and l1"),
        ({"l1": 1.0}, "one of l2 and l1"),
        ({"l2": 0.0, "l1": 1.0}, "give a box, or reward_below"),
        ({"start": np.array([0.0, np.nan])}, "start hold nan at index 1"),
        ({"tol": -1.0}, "tol must be a number of at least 0"),
        ({"tol": 0.5}, "0 <= tol <= first_tol"),
        ({"factor": 1.0}, "factor must be a number between 0 and 1"),
        ({"eta": -1.0}, "eta must be a number of at least 0"),
        ({"max_rounds": 0}, "max_rounds must be a positive integer"),
        ({"max_iterations": 0}, "max_iterations must be a positive integer"),
        ({"step": 0.0}, "step must be a number above 0 and of at most 1"),
        ({"memory": 1}, "memory must be"),
        ({"reward": lambda w: (0.0, np.zeros(3))}, "slope of the risk must have shape"),
        ({"penalty": lambda w: (np.nan, np.zeros(2))}, "not finite"),
    ],
)
def test_bad_input(change, message):
    arguments = {"penalty": zero, "reward": zero, "n_weights": 2, "l2": 1.0} | change
    with pytest.raises(DataError, match=message):
        solve(**arguments)
