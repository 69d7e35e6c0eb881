"""Proposition 5: printed values, directions, refusals, and a problem for which it is true."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from trellis.errors import DataError
from trellis.theory import sgd_iterations, sgd_learning_rate

GOOD = {"n": 20, "alpha": 2, "epsilon": 0.1, "c": 0.5, "q": 2.0, "kappa": 1.0}


@st.composite
def settings(draw) -> dict[str, float]:
    n = draw(st.floats(2, 100))
    c = draw(st.floats(1e-3, 1))
    return {
        "n": n,
        "alpha": 1 + draw(st.floats(0, 1)) * (n - 1),
        "epsilon": draw(st.floats(1e-4, 0.1)),
        "c": c,
        "q": c + draw(st.floats(0, 10)),
        "kappa": draw(st.floats(1, 10)),
        "beta": draw(st.floats(0.01, 1)),
    }


@given(settings(), st.floats(1, 1e4))
def test_as_printed(s, a0):
    rate = s["c"] * s["epsilon"] * s["beta"] * s["alpha"] ** 2
    rate /= s["q"] * s["kappa"] ** 2 * s["n"] ** 2
    t = s["q"] * s["kappa"] ** 2 * s["n"] ** 2 * math.log(s["q"] * a0 / s["epsilon"])
    t /= s["epsilon"] * s["beta"] * s["c"] ** 2 * s["alpha"] ** 2
    assert sgd_learning_rate(**s) == pytest.approx(rate)
    assert abs(sgd_iterations(**s, a0=a0) - max(0, t)) <= 1 + 1e-9 * abs(t)


@given(settings(), st.floats(1, 1e4), st.floats(1.01, 5))
def test_updates_fall_as_the_square_of_alpha(s, a0, factor):
    assume(s["alpha"] * factor <= s["n"])
    stronger = s | {"alpha": s["alpha"] * factor}
    here, there = sgd_iterations(**s, a0=a0), sgd_iterations(**stronger, a0=a0)
    assert abs(there - here / factor**2) <= 2 + 1e-12 * here  # beyond 2^53 ceilings round
    assert sgd_learning_rate(**stronger) == pytest.approx(sgd_learning_rate(**s) * factor**2)


def test_nothing_to_do_from_a_close_start():
    assert sgd_iterations(**GOOD, a0=0.04) == 0


def test_the_proposition_is_true_of_noisy_quadratics():
    """g_z(w) = (c/2)(w − z)² with z = ±1 and w kept in [−1, 1]: |∇g_z| ≤ 2c, minimiser 0."""
    c, epsilon = 0.5, 0.02
    setting = {"n": 1, "alpha": 1, "epsilon": epsilon, "c": c, "q": c, "kappa": 2 * c}
    rate, updates = sgd_learning_rate(**setting), sgd_iterations(**setting, a0=1.0)
    rng = np.random.default_rng(0)
    w = np.ones(500)  # as many independent runs
    for _ in range(updates):
        w = np.clip(w - rate * c * (w - rng.choice([-1.0, 1.0], w.size)), -1, 1)
    assert (c / 2 * w**2).mean() <= epsilon
    assert (c / 2 * w**2).mean() > epsilon / 100  # and the noise is really there


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n": 0}, "n must be a number of at least 1, got 0"),
        ({"alpha": 21}, r"alpha must lie in \[1, n\] = \[1, 20\], got 21"),
        ({"epsilon": 0}, "epsilon must be a positive number, got 0"),
        ({"c": -1}, "c must be a positive number, got -1"),
        ({"q": math.nan}, "q must be a positive number, got nan"),
        ({"kappa": 0}, "kappa must be a positive number, got 0"),
        ({"beta": 0}, "beta must be a number above 0 and of at most 1, got 0"),
        ({"beta": 1.5}, "beta must be a number above 0 and of at most 1, got 1.5"),
        ({"c": 3.0}, "c = 3.0 is larger than q = 2.0: no function is more curved"),
        (
            {"epsilon": 1e5},
            r"Proposition 5 needs eta \* c < 1, but the learning rate eta = 250 and c = 0.5 give "
            "125; use a smaller epsilon or beta",
        ),
    ],
)
def test_refusals(changed, message):
    with pytest.raises(DataError, match=message):
        sgd_learning_rate(**GOOD | changed)
    with pytest.raises(DataError, match=message):
        sgd_iterations(**GOOD | changed, a0=1.0)


def test_eta_times_c_of_exactly_one_is_refused():
    setting = {"n": 1, "alpha": 1, "epsilon": 1.0, "c": 1.0, "q": 1.0, "kappa": 1.0}
    assert sgd_learning_rate(**setting, beta=0.5) == 0.5
    with pytest.raises(DataError, match=r"eta \* c < 1"):
        sgd_learning_rate(**setting)


def test_further_refusals():
    with pytest.raises(DataError, match="a0 must be a positive number, got 0"):
        sgd_iterations(**GOOD, a0=0)
    with pytest.raises(DataError, match="the number of updates is too large for a float"):
        sgd_iterations(**GOOD | {"epsilon": 1e-300, "c": 1e-300}, a0=1.0)
