"""The joint bundle method against the plain one on the stacked problem, and its limits."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from trellis.errors import DataError
from trellis.problems.cut import Cut
from trellis.solvers.bundle import Bundle
from trellis.solvers.planes import minimise_bundle


class Domain:
    """A structured hinge risk of n samples with k enumerated outputs; the first is gold."""

    def __init__(self, seed, n=5, k=4, d=3):
        rng = np.random.default_rng(seed)
        psi = rng.normal(size=(n, k, d)) + 0.5
        self.diff = psi - psi[:, :1]
        self.loss = np.append(np.zeros((n, 1)), rng.integers(1, 4, (n, k - 1)), 1)

    def __call__(self, w):
        scores = self.loss + self.diff @ w
        y = scores.argmax(1)
        i = np.arange(len(y))
        return float(scores[i, y].sum()), self.diff[i, y].sum(0)


def minimise_jointly(risks, n_weights, *, floor=0.0, **options):
    return minimise_bundle(risks, n_weights, floor=floor, **options)


def domains(seed, n_domains, **size):
    return [Domain(1000 * seed + d, **size) for d in range(n_domains)]


def objective(risks, shared, weights, l2, rho):
    value = l2 * shared @ shared + sum(rho * np.square(w - shared) for w in weights).sum()
    return value + sum(r(w)[0] for r, w in zip(risks, weights, strict=True))


def stacked(risks, d, l2, rho, tol):
    """The same problem as a plain one: z = (w, sqrt(rho / l2) (w_d - w)), l2 |z|^2."""
    scale = np.sqrt(l2 / rho)

    def risk(z):
        parts = z.reshape(-1, d)
        answers = [r(parts[0] + scale * u) for r, u in zip(risks, parts[1:], strict=True)]
        slopes = [a[1] for a in answers]
        return sum(a[0] for a in answers), np.concatenate(
            [np.sum(slopes, 0), *(scale * s for s in slopes)]
        )

    found = minimise_bundle(risk, d * (1 + len(risks)), l2=l2, floor=0.0, tol=tol)
    parts = found.weights.reshape(-1, d)
    return found, parts[0], parts[0] + scale * parts[1:]


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 300),
    n_domains=st.sampled_from([1, 2, 5]),
    l2=st.sampled_from([0.05, 1.0]),
    rho=st.sampled_from([0.01, 0.3, 10.0]),
    floor=st.sampled_from([0.0, None]),
    step=st.sampled_from([0.2, 1.0]),
)
def test_equals_the_stacked_problem(seed, n_domains, l2, rho, floor, step):
    risks = domains(seed, n_domains)
    found = minimise_jointly(
        risks, 3, l2=l2, rho=rho, floor=floor, tol=1e-7, step=step, max_iterations=300
    )
    plain, _, _ = stacked(risks, 3, l2, rho, 1e-7)
    assert found.stop_reason == "gap"
    assert found.exact
    assert found.shared.shape == (3,)
    assert found.weights.shape == (n_domains, 3)
    assert found.objective == pytest.approx(plain.objective, rel=1e-6)
    assert found.objective == pytest.approx(
        objective(risks, found.shared, found.weights, l2, rho), rel=1e-9
    )
    # Stationarity in the shared weights, which the planes do not touch.
    pulls = rho * (found.weights - found.shared).sum(0)
    np.testing.assert_allclose(l2 * found.shared, pulls, atol=1e-9)
    for r in found.records:
        assert r.lower_bound <= plain.objective * (1 + 1e-9)
        assert r.objective >= plain.lower_bound * (1 - 1e-9)
        assert r.gap == pytest.approx(r.objective - r.lower_bound, abs=1e-9)
    pairs = list(itertools.pairwise(found.records))
    assert all(a.lower_bound <= b.lower_bound for a, b in pairs)
    assert all(a.objective >= b.objective for a, b in pairs)


def test_against_all_constraints_written_down():
    """SLSQP on w, w_1, w_2 and a slack for each sample."""
    risks, d, l2, rho = domains(4, 2, n=3), 3, 0.2, 0.4
    rows = np.zeros((2 * 12, 3 * d + 6))
    for i, r in enumerate(risks):
        rows[12 * i : 12 * (i + 1), d * (1 + i) : d * (2 + i)] = r.diff.reshape(12, d)
        rows[12 * i : 12 * (i + 1), 3 * d + 3 * i : 3 * d + 3 * i + 3] = -np.repeat(np.eye(3), 4, 0)
    losses = np.concatenate([r.loss.ravel() for r in risks])

    def primal(z):
        w, own = z[:d], z[d : 3 * d].reshape(2, d)
        return l2 * w @ w + rho * ((own - w) ** 2).sum() + z[3 * d :].sum()

    begin = np.append(np.zeros(3 * d), np.full(6, 4.0))
    best = minimize(
        primal, begin, method="SLSQP", options={"ftol": 1e-13, "maxiter": 1000},
        constraints={"type": "ineq", "fun": lambda z: -rows @ z - losses, "jac": lambda z: -rows},
    )  # fmt: skip
    found = minimise_jointly(risks, d, l2=l2, rho=rho, tol=1e-8)
    assert found.objective == pytest.approx(best.fun, rel=1e-5)
    np.testing.assert_allclose(found.shared, best.x[:d], atol=1e-2)
    np.testing.assert_allclose(found.weights.ravel(), best.x[d : 3 * d], atol=1e-2)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 300), n_domains=st.integers(1, 4))
def test_limits_of_rho(seed, n_domains):
    risks = domains(seed, n_domains)

    def union(w):
        answers = [r(w) for r in risks]
        return sum(a[0] for a in answers), np.sum([a[1] for a in answers], 0)

    one = minimise_bundle(union, 3, l2=0.3, floor=0.0, tol=1e-7)
    bound = minimise_jointly(risks, 3, l2=0.3, rho=np.inf, tol=1e-7)
    assert bound.objective == pytest.approx(one.objective, rel=1e-6)
    assert (bound.weights == bound.shared).all()
    nearly = minimise_jointly(risks, 3, l2=0.3, rho=1e7, tol=1e-7)
    assert nearly.objective == pytest.approx(one.objective, rel=1e-4)
    np.testing.assert_allclose(nearly.weights, bound.weights, atol=0.02)

    alone = [minimise_bundle(r, 3, l2=0.3, floor=0.0, tol=1e-7) for r in risks]
    apart = minimise_jointly(risks, 3, l2=0.3, rho=0, tol=1e-7)
    assert apart.stop_reason == "gap"
    assert apart.objective == pytest.approx(sum(a.objective for a in alone), rel=1e-6)
    assert (apart.shared == 0).all()
    for w, a in zip(apart.weights, alone, strict=True):
        np.testing.assert_allclose(w, a.weights, atol=0.02)
    # Between the limits: less free than the domains apart with no regulariser, freer than one w.
    middle = minimise_jointly(risks, 3, l2=0.3, rho=0.3, tol=1e-7)
    assert middle.lower_bound <= bound.objective


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 300),
    n_domains=st.sampled_from([1, 2, 4]),
    l2=st.sampled_from([0.05, 1.0]),
    rho=st.lists(st.sampled_from([0.02, 0.3, 4.0]), min_size=3, max_size=3),
)
def test_a_factor_of_each_weight_equals_the_stacked_problem(seed, n_domains, l2, rho):
    risks, rho = domains(seed, n_domains), np.array(rho)
    found = minimise_jointly(risks, 3, l2=l2, rho=rho, tol=1e-7, max_iterations=300)
    plain, _, _ = stacked(risks, 3, l2, rho, 1e-7)
    assert found.objective == pytest.approx(plain.objective, rel=1e-5)
    assert found.objective == pytest.approx(
        objective(risks, found.shared, found.weights, l2, rho), rel=1e-9
    )
    few = minimise_jointly(risks, 3, l2=l2, rho=rho, tol=1e-5, memory=8 * n_domains)
    assert few.objective == pytest.approx(plain.objective, rel=1e-4)


def test_equal_factors_are_one_factor_and_infinite_ones_hold_a_weight():
    risks = domains(3, 3)
    one = minimise_jointly(risks, 3, l2=0.2, rho=0.7, tol=1e-7)
    each = minimise_jointly(risks, 3, l2=0.2, rho=np.full(3, 0.7), tol=1e-7)
    np.testing.assert_allclose(each.weights, one.weights, atol=1e-9)
    held = minimise_jointly(risks, 3, l2=0.2, rho=np.array([0.7, np.inf, 0.7]), tol=1e-7)
    nearly = minimise_jointly(risks, 3, l2=0.2, rho=np.array([0.7, 1e7, 0.7]), tol=1e-7)
    assert np.ptp(held.weights[:, 1]) == 0 and np.ptp(held.weights[:, 0]) > 0
    assert held.objective == pytest.approx(nearly.objective, rel=1e-4)
    begun = minimise_jointly(
        risks, 3, l2=0.2, rho=np.array([0.7, np.inf, 0.7]), start=one.weights, tol=1e-7
    )
    assert begun.objective == pytest.approx(held.objective, rel=1e-6)
    bound = minimise_jointly(risks, 3, l2=0.2, rho=np.full(3, np.inf), tol=1e-7)
    union = minimise_jointly(risks, 3, l2=0.2, rho=np.inf, tol=1e-7)
    assert bound.objective == pytest.approx(union.objective, rel=1e-6)


@pytest.mark.parametrize(
    ("rho", "message"),
    [
        (np.array([1.0, 0.0, 1.0]), "rho, if there is one of each weight, must be positive"),
        (np.array([1.0, np.nan, 1.0]), "rho, if there is one of each weight, must be positive"),
        (np.ones(2), "rho"),
    ],
)
def test_factors_of_weights_are_checked(rho, message):
    with pytest.raises(DataError, match=message):
        minimise_jointly(domains(1, 2), 3, l2=1.0, rho=rho)


@pytest.mark.parametrize("rho", [1e-3, 0.05, 2.0, 1e4])
def test_one_domain_alone_has_the_harmonic_regulariser(rho):
    """tau = l2 rho / (l2 + rho), which vanishes with rho."""
    (risk,) = domains(11, 1)
    l2 = 0.4
    found = minimise_jointly([risk], 3, l2=l2, rho=rho, tol=1e-9)
    alone = minimise_bundle(risk, 3, l2=l2 * rho / (l2 + rho), floor=0.0, tol=1e-9)
    assert found.objective == pytest.approx(alone.objective, rel=1e-7)
    np.testing.assert_allclose(found.weights[0], alone.weights, atol=1e-2)
    np.testing.assert_allclose(found.shared, found.weights[0] * rho / (l2 + rho), atol=1e-2)


def test_small_rho_is_as_good_as_no_regulariser():
    """With rho to 0 the objective goes to the sum of the least risks, not to that of rho=0."""
    risks = domains(2, 2, n=12)
    small = minimise_jointly(risks, 3, l2=1.0, rho=1e-6, tol=1e-6)
    free = sum(minimise_bundle(r, 3, l2=1e-6, floor=0.0, tol=1e-6).objective for r in risks)
    apart = minimise_jointly(risks, 3, l2=1.0, rho=0, tol=1e-6)
    assert small.objective == pytest.approx(free, rel=1e-3)
    assert small.objective < 0.99 * apart.objective


def test_planes_are_kept_for_another_rho():
    risks = domains(5, 3, n=20, d=6)
    first = minimise_jointly(risks, 6, l2=0.5, rho=0.5, tol=1e-5)
    fresh = minimise_jointly(risks, 6, l2=0.5, rho=0.4, tol=1e-5)
    again = minimise_jointly(risks, 6, l2=0.5, rho=0.4, tol=1e-5, bundle=first.bundle)
    assert len(again.records) < len(fresh.records)
    assert again.objective == pytest.approx(fresh.objective, rel=2e-5)
    rng = np.random.default_rng(0)
    for w in rng.normal(size=(20, 6)):
        heights = again.bundle.slopes @ w + again.bundle.offsets
        for height, d in zip(heights, again.bundle.domains, strict=True):
            assert height <= risks[d](w)[0] + 1e-9


@pytest.mark.parametrize("rho", [0, 0.3, np.inf])
def test_little_memory_keeps_the_bounds_and_gets_near(rho):
    risks = domains(8, 3, n=10, d=5)
    whole = minimise_jointly(risks, 5, l2=0.5, rho=rho, tol=1e-6)
    found = minimise_jointly(risks, 5, l2=0.5, rho=rho, tol=0.02, memory=7)
    assert found.stop_reason == "gap"
    assert len(found.bundle) <= 7 + 3 < len(whole.bundle)
    assert all(r.lower_bound <= whole.objective + 1e-6 for r in found.records)
    assert found.objective <= 1.03 * whole.objective
    for w in np.random.default_rng(0).normal(size=(20, 5)):
        heights = found.bundle.heights(np.tile(w, (3, 1)))
        for height, d in zip(heights, found.bundle.domains, strict=True):
            assert height <= risks[d](w)[0] + 1e-9


@pytest.mark.parametrize("rho", [0, 0.3, np.inf])
def test_linear_terms_move_the_optimum(rho):
    risks = domains(9, 2)
    v = np.random.default_rng(2).normal(size=(2, 3))

    def tilted(d):
        return lambda w: (risks[d](w)[0] + float(v[d] @ w), risks[d](w)[1] + v[d])

    run = {"l2": 0.3, "rho": rho, "tol": 1e-7}
    a = minimise_jointly(risks, 3, linear=v, **run)
    b = minimise_jointly([tilted(0), tilted(1)], 3, floor=None, **run)
    assert a.stop_reason == b.stop_reason == "gap"
    assert a.objective == pytest.approx(b.objective, rel=1e-6)
    np.testing.assert_allclose(a.weights, b.weights, atol=1e-2)


@pytest.mark.parametrize("rho", [0, 0.3, np.inf])
def test_start_is_the_first_point_with_the_best_shared_weights(rho):
    risks = domains(9, 2)
    start = np.random.default_rng(2).normal(size=(2, 3))
    if rho == np.inf:
        start[1] = start[0]
    found = minimise_jointly(risks, 3, l2=0.3, rho=rho, start=start, max_iterations=1)
    np.testing.assert_array_equal(found.weights, start)
    if rho == 0.3:
        value = objective(risks, found.shared, start, 0.3, rho)
        assert found.objective == pytest.approx(value)
        for step in 1e-3 * np.random.default_rng(3).normal(size=(20, 3)):
            assert objective(risks, found.shared + step, start, 0.3, rho) > value


def test_inexact_oracle_keeps_a_true_gap():
    risks = domains(6, 2)

    def loose(w):
        value, slope = risks[0](w)
        return Cut(value + 0.5, value - 0.1, slope)

    exact = minimise_jointly(risks, 3, l2=0.3, rho=0.3, tol=1e-7)
    found = minimise_jointly([loose, risks[1]], 3, l2=0.3, rho=0.3, tol=1e-7)
    assert not found.exact
    assert found.stop_reason == "no progress"
    assert found.lower_bound <= exact.objective <= found.objective - 0.5 + 1e-6


def test_stops_are_named():
    risks = domains(7, 2, n=20, d=6)
    short = minimise_jointly(risks, 6, l2=0.1, rho=0.1, max_iterations=2)
    assert short.stop_reason == "max_iterations"
    assert len(short.records) == 2

    def stop(record):
        if record.number == 3:
            raise KeyboardInterrupt

    halted = minimise_jointly(risks, 6, l2=0.1, rho=0.1, report=stop)
    assert halted.stop_reason == "interrupted"
    assert len(halted.records) == 3
    assert halted.objective == pytest.approx(
        objective(risks, halted.shared, halted.weights, 0.1, 0.1)
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"risks": []}, "at least one risk"),
        ({"l2": 0.0}, "l2 must be a"),
        ({"l2": np.inf}, "l2 must be a"),
        ({"rho": -1.0}, "rho must be a number of at least 0"),
        ({"rho": np.nan}, "rho must be a number of at least 0"),
        ({"step": 0.0}, "step must be a number above 0 and of at most 1"),
        ({"bundle": Bundle(5)}, "one of 5 weights"),
        ({"bundle": Bundle(2, 3)}, "one of 3 domains, but the number of risks is 1"),
        ({"memory": 1}, "memory must be None or at least 2"),
        ({"linear": np.zeros(2)}, r"linear have shape \(2,\); expected \(1, 2\)"),
        ({"start": np.zeros((2, 2))}, r"start have shape \(2, 2\); expected \(1, 2\)"),
        ({"risks": [lambda w: (0.0, np.zeros(3))]}, "slope of the risk must have shape"),
        ({"risks": [lambda w: (np.nan, np.zeros(2))]}, "not finite"),
    ],
)
def test_bad_input(change, message):
    arguments = {
        "risks": [lambda w: (0.0, np.zeros(2))], "n_weights": 2, "l2": 1.0, "rho": 1.0
    } | change  # fmt: skip
    with pytest.raises(DataError, match=message):
        minimise_jointly(**arguments)
