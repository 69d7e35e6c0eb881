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

from trellis.errors import DataError
from trellis.regression import default_bases, least_squares_boosting
from trellis.regression.bases import out_of_fold, predictions, seeded, trained


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
