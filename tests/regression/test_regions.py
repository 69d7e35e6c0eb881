"""Regions that are left out: what a model says there that never saw them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from trellis.regression import GCRF, KNN
from trellis.regression.calibration import NORMAL_90
from trellis.regression.folds import blocked_folds, map_cells
from trellis.regression.regions import Weights, errors_in_regions

NO_BOUNDS = np.array([[-np.inf, np.inf]])


def town(n, seed, rough=6.0):
    rng = np.random.default_rng(seed)
    where, X = rng.uniform(0, 10, (n, 2)), rng.normal(size=(n, 2))
    y = X[:, 0] + np.sin(rough * where[:, 0] / 10) + 0.1 * rng.normal(size=n)
    return where, X, y


def weights_of(model):
    a, gamma = model._mixture()
    return Weights(a, model.rho_, gamma, model._alone)


def test_errors_are_those_of_models_that_never_saw_the_region():
    """By hand: a model of the other rows, at the scale of all, asked about those of the region."""
    where, X, y = town(120, 0)
    model = GCRF(LinearRegression(), graph=KNN(4), random_state=0).fit(X, y, coords=where)
    R, weights = model._nodes.R, weights_of(model)
    found = errors_in_regions(
        [LinearRegression()], NO_BOUNDS, X, y, R, model._graphs, weights, random_state=3
    )
    fold, _ = blocked_folds(where, 5, n_cells=10, random_state=3)
    joining, factor = model._graphs.joinings[0], model._graphs.factors[0]
    mean, v, base = [], [], []
    for number in range(5):
        kept, left = fold != number, fold == number
        says = LinearRegression().fit(X[kept], y[kept]).predict(X[left])
        W = joining.builder.links(where[left], where[kept]).toarray() * factor * weights.gamma[0]
        w, rho = W.sum(axis=1), weights.rho[0]
        near = W @ (y[kept] - rho * R[kept, 0])
        mean.append(y[left] - (says + w * rho * says + near) / (1 + w))
        v.append(1 / (1 + w))
        base.append(y[left] - says)
    assert found is not None
    np.testing.assert_allclose(found.model, np.concatenate(mean))
    np.testing.assert_allclose(found.v, np.concatenate(v))
    np.testing.assert_allclose(found.base, np.concatenate(base))


def test_precomputed_base_predictions_stay_as_they_are():
    where, X, y = town(90, 1)
    model = GCRF("precomputed", graph=KNN(4), random_state=0).fit(X[:, 0], y, coords=where)
    found = errors_in_regions(
        [], NO_BOUNDS, X[:, 0], y, X[:, :1], model._graphs, weights_of(model), random_state=0
    )
    assert found is not None
    assert np.sort(found.base) == pytest.approx(np.sort(y - X[:, 0]))


def test_many_nodes_have_more_and_smaller_regions_of_which_two_folds_are_enough():
    where, _, y = town(6000, 2)
    R = np.zeros((6000, 1))
    model = GCRF("precomputed", graph=KNN(4), random_state=0).fit(R, y, coords=where)
    found = errors_in_regions([], NO_BOUNDS, R, y, R, model._graphs, weights_of(model), 0)
    assert found is not None
    fold, cell = blocked_folds(where, 5, n_cells=35, random_state=0)
    assert len(np.unique(cell)) == 35 == round(np.sqrt(6000 / 5))
    assert len(found.model) == np.sum(fold < 2)


@pytest.mark.parametrize("cut", ["one town", "one place", "three places"])
def test_maps_without_regions_are_calibrated_by_neighbours_alone(cut):
    where, X, y = town(60, 3)
    if cut == "one town":  # nearly all in one cell
        where = where * 1e-3
        where[:9] = 1000 * np.arange(1, 10)[:, None]
    else:
        where = np.repeat(where[: 1 if cut == "one place" else 3], 60, axis=0)[:60]
    model = GCRF(Ridge(), graph=KNN(4), random_state=0).fit(X, y, coords=where)
    found = errors_in_regions(
        [Ridge()], NO_BOUNDS, X, y, model._nodes.R, model._graphs, weights_of(model), 0
    )
    if cut != "one town":
        assert found is None
    else:  # the fold with most rows is no region
        assert found is not None and len(found.model) == 9
    _, std = model.predict(X, coords=where, return_std=True)
    assert np.isfinite(std).all() and (std > 0).all()


def test_a_base_that_wants_many_rows_can_be_learnt_from_few():
    where, X, y = town(15, 4)
    model = GCRF(KNeighborsRegressor(5), graph=KNN(2), random_state=0).fit(X, y, coords=where)
    assert np.isfinite(model.predict(X, coords=where)).all()


def test_intervals_hold_in_regions_where_nobody_has_been():
    covered = []
    for seed in range(8):
        where, X, y = town(500, 10 + seed, rough=12.0)
        unknown = map_cells(where, 10, random_state=seed) < 2
        known = ~unknown
        model = GCRF(Ridge(), random_state=0).fit(X[known], y[known], coords=where[known])
        mean, std = model.predict(X[unknown], coords=where[unknown], return_std=True)
        covered.append(np.mean(np.abs(y[unknown] - mean) < NORMAL_90 * std))
    assert 0.84 < np.mean(covered) < 0.96


def test_a_base_that_cannot_do_without_a_region():
    """A district is in one region only, and the encoder wants to have seen it."""
    where, _, y = town(200, 6)
    district = np.floor(where / 2.5) @ [1, 4]
    base = make_pipeline(OneHotEncoder(), Ridge())
    model = GCRF(base, random_state=0)
    with pytest.warns(UserWarning, match="a region left out the base model Pipeline refuses"):
        model.fit(district[:, None], y, coords=where)
    _, std = model.predict(district[:, None], coords=where, return_std=True)
    assert np.isfinite(std).all() and (std > 0).all()


def test_cells_of_very_many_points_are_made_of_some(monkeypatch):
    where = np.random.default_rng(0).uniform(size=(3000, 2))
    monkeypatch.setattr("trellis.regression.folds._MANY", 500)
    cells = map_cells(where, 10)
    sizes = np.bincount(cells)
    assert len(sizes) == 10 and sizes.min() > 100
    one = where[cells == 0]
    assert np.ptp(one, axis=0).max() < 0.8
