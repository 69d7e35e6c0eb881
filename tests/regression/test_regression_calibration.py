"""Standard deviations after residuals: the power of the model's variance, and the scale."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from trellis.regression import GCRF, KNN
from trellis.regression.calibration import (
    NORMAL_90,
    limit_of,
    scale_of,
    spread_in_regions,
    spread_of,
)


@pytest.mark.parametrize("power", [0.0, 0.3, 1.0])
def test_the_power_is_found(power):
    rng = np.random.default_rng(0)
    v = np.exp(rng.uniform(-2, 0, 5000))
    left = 0.7 * rng.normal(size=5000) * v ** (power / 2)
    c, p = spread_of(left, v)
    assert p == pytest.approx(power, abs=0.12)
    assert c == pytest.approx(0.7, rel=0.08)


def test_few_residuals_leave_it_where_the_model_has_it():
    rng = np.random.default_rng(1)
    v = np.exp(rng.uniform(-0.2, 0, 12))
    _, p = spread_of(rng.normal(size=12), v)
    assert p == pytest.approx(1, abs=0.2)
    assert spread_of(np.ones(5), np.full(5, 0.3))[1] == 1
    assert spread_of(np.zeros(5), np.full(5, 0.3)) == (0.0, 1.0)


def test_the_power_has_limits():
    v = np.exp(np.linspace(-3, 0, 1000))
    assert spread_of(v**3, v)[1] == 1.5
    assert spread_of(v**-2, v)[1] == 0


@pytest.mark.parametrize("power", [0.2, 1.0, 2.0])
def test_residuals_of_regions_say_how_fast_intervals_widen(power):
    rng = np.random.default_rng(4)
    near, far = np.exp(rng.uniform(-3, -2, 4000)), np.exp(rng.uniform(-1.5, 0, 4000))
    left, left_far = (0.6 * rng.normal(size=4000) * v ** (power / 2) for v in (near, far))
    c, p = spread_in_regions(left, near, left_far, far)
    assert p == pytest.approx(power, abs=0.12)
    assert c == pytest.approx(0.6, rel=0.15)
    held = np.abs(left_far) <= NORMAL_90 * c * far ** (p / 2)
    assert 0.9 <= np.mean(held) < 0.902


def test_the_power_of_regions_has_limits():
    v = np.linspace(0.1, 0.2, 100)
    assert spread_in_regions(np.ones(100), v, np.full(100, 0.1), 2 * v)[1] == 0
    assert spread_in_regions(np.ones(100), v, np.full(100, 1e6), 2 * v)[1] == 3
    assert spread_in_regions(np.zeros(100), v, np.zeros(100), 2 * v) == (0.0, 0.0)


def test_far_away_intervals_are_those_of_a_base_that_was_never_there():
    errors, far = np.full(10, 1.0), np.full(10, 2.0)
    assert limit_of(errors) * NORMAL_90 == pytest.approx(1.5)
    assert limit_of(errors, far) * NORMAL_90 == pytest.approx(2.5)
    assert limit_of(far, errors) * NORMAL_90 == pytest.approx(2.5)


def test_ninety_percent_of_residuals_are_held():
    rng = np.random.default_rng(2)
    left, v = rng.standard_t(3, 400), np.exp(rng.uniform(-1, 0, 400))
    c, p = spread_of(left, v)
    assert np.mean(np.abs(left) <= NORMAL_90 * c * np.sqrt(v**p)) == pytest.approx(0.9, abs=0.01)
    assert scale_of(left, v) * NORMAL_90 == pytest.approx(
        np.sort(np.abs(left) / np.sqrt(v))[360], rel=0.02
    )


def test_far_from_all_places_an_interval_is_no_wider_than_errors_are():
    """A field that neighbours tell little of: far away, the base is as wrong as it ever is."""
    rng = np.random.default_rng(3)
    n = 900
    where, X = rng.uniform(size=(n, 2)), rng.normal(size=(n, 2))
    y = X[:, 0] + 0.6 * np.sin(9 * where[:, 0]) + 0.8 * rng.normal(size=n)
    y[rng.uniform(size=n) < 0.03] += 5  # neighbours of these are told wrongly
    model = GCRF(Ridge(), graph=KNN(5), random_state=0).fit(X[:600], y[:600], coords=where[:600])
    _, near = model.predict(X[600:], coords=where[600:], return_std=True)
    _, far = model.predict(X[600:], coords=where[600:] + 50, return_std=True)
    assert (far > near.mean()).all()
    wrong = np.quantile(np.abs(y[600:] - model.predict_base(X[600:])), 0.9) / NORMAL_90
    assert far.max() < 1.7 * wrong
    assert far.max() <= model.std_limit_
    assert model.set_params(calibrate=False).fit(X, y, coords=where).std_power_ == 1


def test_few_smooth_targets_do_not_make_endless_intervals():
    """Neighbours that say nearly all leave tiny residuals, whatever they say of what is far."""
    place = np.linspace(0, 1, 30)[:, None]
    y = place[:, 0] ** 2
    model = GCRF(Ridge(), graph=KNN(2), random_state=0).fit(place, y, coords=place)
    _, std = model.predict(place, coords=place + 9, return_std=True)
    base = np.abs(model.predict_base(place) - y).max()
    assert (std <= 2 * base).all() and std.max() == model.std_limit_
