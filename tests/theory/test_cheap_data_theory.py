"""Theorem 1.1 of learning from partial annotations, and the steps of its proof."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from trellis.errors import DataError
from trellis.solvers.planes import minimise_bundle
from trellis.theory import cheap_data as theory

SIZES = {"mu": 1.5, "feature_bound": 2.0, "loss_max": 0.5, "n_outputs": 4, "n_partial": 3}


@given(
    n=st.integers(1, 10**6),
    mu=st.floats(0, 10),
    bound=st.floats(0, 10),
    loss=st.floats(0.01, 10),
    outputs=st.integers(1, 50),
    partial=st.integers(1, 50),
    delta=st.floats(0.001, 0.5),
)
def test_theorem_is_what_its_steps_give(n, mu, bound, loss, outputs, partial, delta):
    size = mu * bound + loss
    printed = size * (8 * partial * outputs + math.sqrt(2 * math.log(2 / delta))) / math.sqrt(n)
    got = theory.partial_annotation_bound(n, mu, bound, loss, outputs, partial, delta)
    assert got == pytest.approx(printed, rel=1e-12)
    steps = 4 * theory.rademacher_bridge(n, mu, bound, loss, outputs, partial)
    assert got == pytest.approx(steps + size * math.sqrt(2 * math.log(2 / delta) / n), rel=1e-12)
    corrected = theory.partial_annotation_bound(
        n, mu, bound, loss, outputs, partial, delta, "corrected"
    )
    more = mu * bound * math.sqrt(2 * math.log(2 / delta) / n)
    assert corrected == pytest.approx(printed + more, rel=1e-12)
    for variant in ("printed", "corrected"):
        logs = math.log(outputs), math.log(partial)
        log = theory.log_partial_annotation_bound(n, mu, bound, loss, *logs, delta, variant)
        plain = theory.partial_annotation_bound(
            n, mu, bound, loss, outputs, partial, delta, variant
        )
        assert math.exp(log) == pytest.approx(plain, rel=1e-9)


def test_astronomical_numbers_of_outputs():
    log = theory.log_partial_annotation_bound(10**6, 1.0, 1.0, 1.0, 5000.0, 6000.0)
    assert log == pytest.approx(11000 + math.log(16) - math.log(1000))
    assert theory.log_partial_annotation_bound(5, 0.0, 1.0, 0.0, 2.0, 2.0) == -math.inf


@given(excess=st.floats(0.05, 100), delta=st.floats(0.01, 0.5), variant=st.booleans())
def test_samples_needed_is_the_inverse(excess, delta, variant):
    name = ("printed", "corrected")[variant]
    n = theory.samples_needed(excess, **SIZES, delta=delta, variant=name)
    bound = theory.partial_annotation_bound(n, **SIZES, delta=delta, variant=name)
    assert bound <= excess * (1 + 1e-12)
    if n > 1:
        fewer = theory.partial_annotation_bound(n - 1, **SIZES, delta=delta, variant=name)
        assert fewer > excess * (1 - 1e-12)


def bridge_losses(w, phi, compatible, loss):
    """Losses (n,) of outputs with features phi (n, k, d), enumerated."""
    scores = phi @ w
    rest = np.where(compatible, -np.inf, scores + loss).max(1)
    return np.maximum(rest - np.where(compatible, scores, -np.inf).max(1), 0.0)


def test_the_largest_loss_is_more_than_printed():
    """Opposite features: 2 mu B + loss_max is attained."""
    phi = np.array([[[3.0], [-3.0]]])
    got = bridge_losses(np.array([2.0]), phi, np.array([[False, True]]), np.array([[0.7, 0.0]]))
    assert got.tolist() == [2 * 2 * 3 + 0.7]
    assert got[0] > 2 * 3 + 0.7


def exact_complexity(values):
    """Rademacher complexity of finitely many functions, values (F, n), over all signs."""
    n = values.shape[1]
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=n)))
    return float((values @ signs.T).max(0).mean()) / n


@settings(max_examples=20)
@given(seed=st.integers(0, 1000))
def test_complexities_are_bounded_on_small_samples(seed):
    rng = np.random.default_rng(seed)
    n, k, d, mu, loss_max = 6, 4, 2, 1.5, 2.0
    phi = rng.normal(size=(n, k, d))
    largest = np.linalg.norm(phi, axis=-1).max()
    annotations = np.array([[True, False, False, False], [False, True, True, False]])
    said = rng.integers(0, 2, n)
    compatible = annotations[said]
    loss = np.where(compatible, 0.0, loss_max)
    angles = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    weights = np.concatenate(
        [r * mu * np.stack([np.cos(angles), np.sin(angles)], 1) for r in (0.0, 0.3, 1.0)]
    )
    linear = np.stack([phi[:, 0] @ w for w in weights])
    assert exact_complexity(linear) <= theory.rademacher_kernel_class(n, mu, largest)
    losses = np.stack([bridge_losses(w, phi, compatible, loss) for w in weights])
    assert exact_complexity(losses) <= theory.rademacher_bridge(n, mu, largest, loss_max, k, 2)
    difference = [
        np.where(compatible, -np.inf, phi @ w + loss).max(1)
        - np.where(compatible, phi @ w, -np.inf).max(1)
        for w in weights
    ]
    structured = theory.rademacher_structured(n, mu, largest, loss_max, k, 2)
    assert exact_complexity(np.stack(difference)) <= structured


def test_excess_risk_stays_below_the_bound():
    """A distribution over five samples, weights in [-mu, mu]: both minima by a grid."""
    rng = np.random.default_rng(0)
    phi = rng.uniform(-1, 1, size=(5, 2, 1))
    compatible = np.array([[True, False]] * 5)
    loss = np.array([[0.0, 1.0]] * 5)
    grid = np.linspace(-2, 2, 401)
    table = np.stack([bridge_losses(np.array([w]), phi, compatible, loss) for w in grid])
    expected = table.mean(1)
    bound = theory.partial_annotation_bound(200, 2.0, 1.0, 1.0, 2, 1, 0.05, "corrected")
    for _ in range(50):
        drawn = rng.integers(0, 5, 200)
        best = int(table[:, drawn].mean(1).argmin())
        assert expected[best] - expected.min() <= bound


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 1000))
def test_penalty_and_radius_are_the_same_problem_on_a_path(seed):
    """One compatible output, so that the loss is convex and SLSQP can solve the other problem."""
    rng = np.random.default_rng(seed)
    n, k, d = 8, 3, 2
    phi = rng.normal(size=(n, k, d))
    diff = phi - phi[:, :1]
    loss = np.append(np.zeros((n, 1)), np.ones((n, k - 1)), 1)

    def risk(w):
        scores = loss + diff @ w
        y = scores.argmax(1)
        i = np.arange(n)
        return float(scores[i, y].mean()), diff[i, y].mean(0)

    rows = np.concatenate([diff.reshape(-1, d), -np.repeat(np.eye(n), k, 0)], 1)
    norms, losses = [], []
    for l2 in (0.03, 0.1, 0.5):
        w = minimise_bundle(risk, d, l2=l2, floor=0.0, tol=1e-10).weights
        mu = float(np.linalg.norm(w))
        assert mu <= theory.radius_of(l2, risk(np.zeros(d))[0]) * (1 + 1e-9)
        within = minimize(
            lambda z: z[d:].mean(), np.append(np.zeros(d), np.ones(n)), method="SLSQP",
            constraints=[
                {"type": "ineq", "fun": lambda z: -rows @ z - loss.ravel()},
                {"type": "ineq", "fun": lambda z, mu=mu: mu**2 - z[:d] @ z[:d]},
            ],
            options={"ftol": 1e-12, "maxiter": 500},
        )  # fmt: skip
        assert risk(w)[0] == pytest.approx(within.fun, abs=1e-4)
        norms.append(mu)
        losses.append(risk(w)[0])
    assert all(a >= b - 1e-6 for a, b in itertools.pairwise(norms))
    assert all(a <= b + 1e-6 for a, b in itertools.pairwise(losses))


@pytest.mark.parametrize(
    ("function", "change", "message"),
    [
        ("partial_annotation_bound", {"n": 0}, "n must be a positive"),
        ("partial_annotation_bound", {"mu": -1.0}, "mu must be a number of at least 0"),
        ("partial_annotation_bound", {"feature_bound": math.inf}, "feature_bound must be"),
        ("partial_annotation_bound", {"loss_max": -1.0}, "loss_max must be"),
        ("partial_annotation_bound", {"n_outputs": 0}, "n_outputs must be a number of at least 1"),
        ("partial_annotation_bound", {"n_partial": 0.5}, "n_partial must be"),
        ("partial_annotation_bound", {"delta": 1.0}, "delta must be a number between 0 and 1"),
        ("partial_annotation_bound", {"variant": "best"}, "variant must be 'printed' or"),
        ("samples_needed", {"excess": 0.0}, "excess must be a positive"),
        ("samples_needed", {"excess": 1.0, "n_outputs": 1e200}, "more samples than can be counted"),
    ],
)
def test_bad_input(function, change, message):
    first = {"n": 10} if function == "partial_annotation_bound" else {"excess": 1.0}
    with pytest.raises(DataError, match=message):
        getattr(theory, function)(**(first | SIZES | change))


def test_bad_logarithms_and_radii():
    with pytest.raises(DataError, match="log_outputs must be"):
        theory.log_partial_annotation_bound(5, 1.0, 1.0, 1.0, -1.0, 2.0)
    with pytest.raises(DataError, match="variant must be"):
        theory.log_partial_annotation_bound(5, 1.0, 1.0, 1.0, 1.0, 2.0, variant="best")
    with pytest.raises(DataError, match="l2 must be a positive"):
        theory.radius_of(0.0, 1.0)
    with pytest.raises(DataError, match="loss_at_zero must be"):
        theory.radius_of(1.0, -1.0)
