import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from studies.measured import empirical_margin_loss, exponential_loss
from trellis import theory
from trellis.errors import DataError

seeds = st.integers(0, 10**6)


def boost(seed, rounds=8, n=60):
    """AdaBoost-like rounds on random ±1 margins: errors, alphas, margins (T, N)."""
    rng = np.random.default_rng(seed)
    share = np.full(n, 1 / n)
    errors, alphas, rows = [], [], []
    for _ in range(rounds):
        pool = np.where(rng.random((10, n)) < 0.6, 1.0, -1.0)
        row = pool[(pool @ share).argmax()]
        error = share[row < 0].sum()
        if not 0 < error < 0.5:
            break
        alpha = 0.5 * math.log((1 - error) / error)
        share = share * np.exp(-alpha * row)
        share = share / share.sum()
        errors.append(error)
        alphas.append(alpha)
        rows.append(row)
    return errors, np.array(alphas), np.array(rows)


@settings(max_examples=30, deadline=None)
@given(seeds, st.floats(0, 1))
def test_theorem_5_bounds_the_margin_loss(seed, rho):
    errors, alphas, margins = boost(seed)
    if not errors:
        return
    loss = empirical_margin_loss(alphas, margins, rho)
    assert loss <= theory.boosting_margin_bound(errors, rho) + 1e-9


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_lemma_3_bounds_the_hamming_loss(seed):
    """Labels and base experts at random; H_Boost takes the label with the largest score."""
    rng = np.random.default_rng(seed)
    said = rng.integers(0, 4, (5, 50))
    gold = rng.integers(0, 4, 50)
    alphas = rng.random(5)
    scores = np.stack([(alphas[:, None] * (said == c)).sum(axis=0) for c in range(4)])
    hamming = (scores.argmax(axis=0) != gold).mean()
    margins = np.where(said == gold, 1.0, -1.0)
    assert hamming <= exponential_loss(alphas, margins) + 1e-12


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_the_product_of_normalisers_is_the_exponential_loss(seed):
    errors, alphas, margins = boost(seed)
    if errors:
        product = math.prod(2 * math.sqrt(e * (1 - e)) for e in errors)
        assert exponential_loss(alphas, margins) == pytest.approx(product)
        assert theory.boosting_margin_bound(errors, 0.0) == pytest.approx(product)


def test_theorem_4_holds_for_a_finite_class():
    """One position, two labels: held-out loss of random ensembles of four experts."""
    m = 100_000
    rng = np.random.default_rng(0)
    complexity = theory.massart_complexity(4 * 2, m)
    for _ in range(20):
        alphas = rng.random(4)
        quality = rng.uniform(0.55, 0.9, 4)
        train, test = (np.where(rng.random((4, m)) < quality[:, None], 1.0, -1.0) for _ in range(2))
        loss = ((alphas @ test) < 0).mean()
        margin = empirical_margin_loss(alphas, train, 0.3)
        assert loss <= theory.boosting_risk_bound(margin, 0.3, [2], [complexity], m)


def test_massart_is_above_the_complexity_of_random_functions():
    rng = np.random.default_rng(0)
    functions = rng.random((16, 50)) < 0.5
    signs = rng.choice([-1, 1], (50, 4000))
    complexity = (functions @ signs / 50).max(axis=0).mean()
    assert complexity <= theory.massart_complexity(16, 50)


def test_values_by_hand():
    assert theory.randomised_excess(5, 10, 200) == pytest.approx(
        2 * math.sqrt(10 * math.log(5) / 200) + 2 * math.sqrt(math.log(40) / 200)
    )
    assert theory.majority_vote_bound(0.7) == 1.0
    assert theory.boosting_risk_bound(0.1, 0.5, [3, 2], [0.01, 0.02], 50, 0.1) == pytest.approx(
        0.1 + 2 / (0.5 * 2) * (9 * 0.01 + 4 * 0.02) + math.sqrt(math.log(20) / 100)
    )
    eta = math.sqrt(8 * 3 / 100)
    assert theory.regret_bound(3, 100, eta) == pytest.approx(math.sqrt(100 * 3 / 2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: theory.randomised_excess(0, 10, 200),
            "n_experts must be a number of at least 1, got 0",
        ),
        (lambda: theory.randomised_excess(5, 10, 200, delta=1.0), "delta must be a number between"),
        (lambda: theory.regret_bound(1.0, 10, 0.0), "eta must be a positive"),
        (lambda: theory.regret_bound(-1.0, 10, 0.1), "log_experts must be"),
        (lambda: theory.hoeffding_deviation(0, 0.1), "n must be a positive"),
        (lambda: theory.majority_vote_bound(float("nan")), "randomised_loss"),
        (lambda: exponential_loss([1.0], [[1.0], [1.0]]), "one row for each"),
        (lambda: exponential_loss([-1.0], [[1.0]]), "non-negative"),
        (lambda: empirical_margin_loss([1.0], [[1.0]], -1), "rho must be"),
        (lambda: theory.boosting_margin_bound([0.5], 0.1), "ESPBoost stops"),
        (lambda: theory.massart_complexity(0, 10), "n_functions must be"),
        (lambda: theory.boosting_risk_bound(0.1, 0.5, [2], [], 10), "every position"),
    ],
)
def test_bad_values_are_refused(call, message):
    with pytest.raises(DataError, match=message):
        call()
