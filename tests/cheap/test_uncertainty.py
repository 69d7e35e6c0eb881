"""Uncertainties, and the rule to stop asking."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.cheap.uncertainty import (
    LARGEST,
    StoppingRule,
    convergence,
    robust_mean,
    uncertainty,
    vote_entropy,
)
from trellis.errors import DataError


@given(st.lists(st.floats(-200, 700), min_size=1, max_size=20))
@settings(max_examples=30)
def test_uncertainty_is_the_exponential_of_the_negated_margin(margins):
    np.testing.assert_allclose(uncertainty(margins), [math.exp(-m) for m in margins], rtol=1e-12)


def test_uncertainty_is_cut_off_so_that_averages_stay_finite():
    q = uncertainty([-np.inf, -1e4, 1e4, np.inf])
    assert q.tolist() == [LARGEST, LARGEST, 0.0, 0.0]
    assert np.isfinite(np.full(10**6, LARGEST).mean())


def test_margins_that_are_not_numbers_are_refused():
    with pytest.raises(DataError, match="margins must be numbers, got NaN"):
        uncertainty([0.0, np.nan])


def brute_force_robust_mean(values):
    ordered = sorted(values)

    def quantile(share):
        place = share * (len(ordered) - 1)
        below = math.floor(place)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (place - below) * (ordered[above] - ordered[below])

    low, high = quantile(0.1), quantile(0.9)
    kept = [v for v in ordered if low - 1e-12 <= v <= high + 1e-12] or ordered
    return sum(kept) / len(kept)


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=30))
@settings(max_examples=30)
def test_robust_mean_drops_what_lies_beyond_the_quantiles(values):
    assert robust_mean(values) == pytest.approx(brute_force_robust_mean(values), abs=1e-9)


@given(st.lists(st.integers(0, 50), min_size=0, max_size=12), st.integers(1, 6))
@settings(max_examples=30)
def test_convergence_compares_the_last_two_windows(history, window):
    eta = convergence(history, window)
    if len(history) <= window:
        assert eta is None
        return
    expected = abs(
        brute_force_robust_mean(history[-window:])
        - brute_force_robust_mean(history[-window - 1 : -1])
    )
    assert eta == pytest.approx(expected, abs=1e-9)


def test_the_rule_waits_for_a_whole_window_and_one_more():
    rule = StoppingRule()
    assert not rule([0.25] * 80)
    assert rule([0.25] * 81)
    assert not rule(np.linspace(1.0, 0.0, 81))
    assert StoppingRule(window=2, threshold=0.5)([1.0, 1.0, 0.0])  # at the threshold


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"window": 0}, "window must be a positive integer, got 0"),
        ({"window": 2.5}, "window must be a positive integer, got 2.5"),
        ({"threshold": -1.0}, "threshold must be a number of at least 0"),
        ({"threshold": float("nan")}, "threshold must be a number of at least 0"),
    ],
)
def test_parameters_of_the_rule_are_checked(parameters, message):
    with pytest.raises(DataError, match=message):
        StoppingRule(**parameters)


@given(st.lists(st.lists(st.integers(-1, 3), min_size=3, max_size=3), min_size=1, max_size=8))
@settings(max_examples=30)
def test_vote_entropy_against_counting(rows):
    expected = []
    for row in rows:
        said = [code for code in row if code >= 0]
        shares = [said.count(code) / len(said) for code in set(said)]
        entropy = -sum(p * math.log(p) for p in shares)
        expected.append(entropy / math.log(len(said)) if len(said) > 1 else 0.0)
    np.testing.assert_allclose(vote_entropy(np.array(rows)), expected, atol=1e-12)


def test_vote_entropy_of_two_experts_is_their_disagreement():
    codes = np.array([[0, 1], [2, 2], [1, 0]])
    assert vote_entropy(codes).tolist() == [1.0, 0.0, 1.0]
