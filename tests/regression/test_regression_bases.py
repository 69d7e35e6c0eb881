"""Base models: the default ones, copies trained on other folds, what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from trellis import load_model
from trellis.errors import DataError
from trellis.regression import GCRF, default_bases, least_squares_boosting
from trellis.regression.bases import bounds_of, out_of_fold, predictions, seeded, trained


def data(n=60):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + rng.normal(size=n)


def test_default_bases_take_gaps_and_are_the_same_every_time():
    X, y = data()
    X[::5, 1] = np.nan
    X[:, 2] = np.nan  # a column without any number
    first, again = (predictions(trained(default_bases(60, 3), X, y), X) for _ in range(2))
    assert first.shape == (60, 3) and np.isfinite(first).all()
    assert (first == again).all()


def test_many_rows_have_no_forest():
    assert len(default_bases(20_000)) == 3
    names = [type(model).__name__ for model in default_bases(20_001)]
    assert names == ["Pipeline", "Pipeline"]


def test_out_of_fold_by_hand():
    X, y = data(23)
    folds = KFold(4, shuffle=True, random_state=1)
    models = [Ridge(), DecisionTreeRegressor(random_state=0)]
    found = out_of_fold(models, X, y, folds)
    for k, model in enumerate(models):
        for train, test in folds.split(X):
            expected = clone(model).fit(X[train], y[train]).predict(X[test])
            np.testing.assert_array_equal(found[test, k], expected)


def test_training_leaves_prototypes_alone():
    X, y = data()
    prototype = LinearRegression()
    (model,) = trained([prototype], X, y)
    assert not hasattr(prototype, "coef_") and hasattr(model, "coef_")


def test_seeds_reach_every_part():
    model = seeded(make_pipeline(StandardScaler(), least_squares_boosting(3)), 7)
    assert model.steps[1][1].random_state == 7


def test_who_refuses_is_named():
    X, y = data()
    X[3, 1] = np.nan
    for call in (
        lambda: trained([Ridge()], X, y),
        lambda: out_of_fold([Ridge()], X, y, KFold(2)),
        lambda: predictions(trained([Ridge()], np.nan_to_num(X), y), X),
    ):
        with pytest.raises(DataError, match=r"the base model Ridge refuses the data: .*NaN"):
            call()


def test_a_row_unlike_all_others_is_not_told_what_nobody_saw(tmp_path):
    """A line would say 1,000 where the targets end at 2; one that was asked for may."""
    X, y = np.linspace(0, 2, 50)[:, None], np.linspace(0, 2, 50)
    far, where = np.array([[1000.0], [2.3]]), np.zeros((2, 2))
    places = np.random.default_rng(0).uniform(9, 10, size=(50, 2))
    model = GCRF(random_state=0).fit(X, y, coords=places)
    said = model._base_predictions(far)
    assert said.max() == bounds_of(y)[1] == 2.5
    assert said[1, 0] == pytest.approx(2.3, abs=0.01)  # a trend that goes on
    assert (model._nodes.R <= 2.5).all()
    model.save(tmp_path / "m.trellis")
    again = load_model(tmp_path / "m.trellis")
    assert (again.predict(far, coords=where) == model.predict(far, coords=where)).all()
    both = GCRF([LinearRegression(), None], random_state=0).fit(X, y, coords=places)
    assert both._base_predictions(far)[0] == pytest.approx([1000.0, 2.5, *said[0, 1:]])
