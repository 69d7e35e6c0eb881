"""Levels of confidence that mean what they say."""

import numpy as np
import pytest
from scipy.optimize import minimize

from trellis.experts.calibration import Calibration


@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_optimum(seed):
    rng = np.random.default_rng(seed)
    raw = rng.uniform(0.05, 0.99, 200)
    right = rng.random(200) < raw**2
    x = np.log(raw / (1 - raw))

    def loss(w):
        score = w[0] + w[1] * x
        return np.logaddexp(0, np.where(right, -score, score)).sum() + w[0] ** 2 + (w[1] - 1) ** 2

    found = Calibration.of(raw, right)
    other = minimize(loss, [0.0, 1.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-9})
    assert np.allclose([found.offset, found.slope], other.x, atol=1e-4)


def test_levels_are_what_they_say():
    rng = np.random.default_rng(0)
    raw = rng.uniform(0.5, 1.0, 20_000)
    odds = np.exp(0.5 * np.log(raw / (1 - raw)) - 0.3)  # the answers are too sure of themselves
    right = rng.random(20_000) < odds / (1 + odds)
    levels = Calibration.of(raw[:10_000], right[:10_000]).levels(raw[10_000:])
    truth = right[10_000:]
    for low in (0.5, 0.6, 0.7):
        inside = (levels >= low) & (levels < low + 0.1)
        assert abs(levels[inside].mean() - truth[inside].mean()) < 0.03


def test_extremes():
    raw = np.array([0.0, 1.0, 1.0, 1.0])
    found = Calibration.of(raw, np.array([False, True, True, False]))
    assert np.isfinite([found.offset, found.slope]).all()
    assert 0 < found.levels(raw).min() <= found.levels(raw).max() < 1
    assert Calibration.of(np.zeros(0), np.zeros(0, bool)) == Calibration()
    assert Calibration().levels(np.array([0.3]))[0] == pytest.approx(0.3)


@pytest.mark.parametrize("seed", range(20))
def test_it_is_the_optimum_where_most_answers_are_nearly_sure(seed):
    """All experts agree on most words, and some of these are wrong: whole Newton steps diverge."""
    rng = np.random.default_rng(seed)
    raw = rng.choice([3 / 7, 4 / 7, 5 / 7, 6 / 7, 15 / 16, 1.0], 6000, p=[0.02] * 5 + [0.9])
    right = rng.random(6000) < np.where(raw == 1, 0.99, rng.uniform(0.4, 0.9))
    inside = np.clip(raw, 1e-4, 1 - 1e-4)
    x = np.log(inside / (1 - inside))

    def loss(w):
        score = w[0] + w[1] * x
        return np.logaddexp(0, np.where(right, -score, score)).sum() + w[0] ** 2 + (w[1] - 1) ** 2

    found = Calibration.of(raw, right)
    assert loss([found.offset, found.slope]) <= minimize(loss, [0.0, 1.0]).fun + 1e-6
