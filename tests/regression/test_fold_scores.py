"""Measures of predictions, against scikit-learn, and how often their intervals are right."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from trellis.regression.fold_scores import NORMAL_90, measured

RNG = np.random.default_rng(0)
Y = RNG.normal(size=300)
MEANS = {"a": Y + 0.5 * RNG.normal(size=300), "b": Y + 0.8 * RNG.normal(size=300)}
STDS = {"a": np.full(300, 0.5), "b": None}


def test_against_scikit_learn():
    found = measured(Y, MEANS, STDS, np.arange(300), reference="a", seconds={"a": 2.0})
    for name, mean in MEANS.items():
        of = found[name]
        assert of.rmse.value == pytest.approx(root_mean_squared_error(Y, mean))
        assert of.mae.value == pytest.approx(mean_absolute_error(Y, mean))
        assert of.r2.value == pytest.approx(r2_score(Y, mean))
        for measure in (of.rmse, of.mae, of.r2):
            assert measure.low < measure.value < measure.high
    within = np.abs(Y - MEANS["a"]) <= NORMAL_90 * 0.5
    assert found["a"].coverage.value == within.mean()
    assert found["a"].width == pytest.approx(2 * NORMAL_90 * 0.5)
    assert (found["b"].coverage, found["a"].more) == (None, None)
    assert np.isnan(found["b"].width) and np.isnan(found["b"].seconds)
    assert found["a"].seconds == 2.0
    ratio = found["b"].rmse.value / found["a"].rmse.value
    assert found["b"].more.value == pytest.approx(100 * (ratio - 1))
    assert found["b"].more.low > 0


def test_intervals_hold_the_truth_nine_times_in_ten():
    held = 0
    for trial in range(200):
        rng = np.random.default_rng(trial)
        y = rng.normal(size=120)
        of = measured(y, {"m": y - rng.normal(size=120)}, {"m": None}, np.arange(120),
                      reference="m")["m"]  # fmt: skip
        held += of.rmse.low <= 1.0 <= of.rmse.high
    assert 165 <= held <= 195


def test_rows_that_are_alike_make_intervals_wider():
    groups = np.repeat(np.arange(30), 10)
    error = np.repeat(RNG.normal(size=30), 10)
    means, stds = {"m": Y + error}, {"m": None}
    apart = measured(Y, means, stds, np.arange(300), reference="m")["m"].rmse
    together = measured(Y, means, stds, groups, reference="m")["m"].rmse
    assert together.value == apart.value
    assert together.high - together.low > 1.5 * (apart.high - apart.low)


def test_what_has_no_spread():
    of = measured(np.ones(4), {"m": np.ones(4)}, {"m": None}, np.zeros(4), reference="m")["m"]
    assert of.rmse.value == 0 and np.isnan(of.r2.value)
