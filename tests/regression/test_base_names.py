"""Base models by name: those that take gaps as they are, the others with what fills them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from trellis.errors import DataError
from trellis.regression.base_names import BASES, named_base, taking_gaps
from trellis.regression.bases import one_thread

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
Y = 1e5 + 1e4 * X[:, 0]
GAPS = X.copy()
GAPS[::9, 1] = np.nan


@pytest.mark.parametrize("name", [*BASES, "Lars", "TheilSenRegressor", "ExtraTreeRegressor"])
def test_every_base_learns_from_gaps_and_large_targets(name):
    with one_thread():
        learns(name)


def learns(name):
    model = named_base(name, 0)
    found = clone(model).fit(GAPS, Y).predict(GAPS)
    assert found.shape == (80,)
    if name != "mean":
        assert np.corrcoef(found, Y)[0, 1] > 0.8
    assert (clone(model).fit(GAPS, Y).predict(GAPS) == found).all()  # one seed, one answer


def test_names_are_forgiving():
    assert repr(named_base("Extra_Trees", 0)) == repr(named_base("extra-trees", 0))
    assert repr(named_base(" Ridge", 0)) != repr(named_base("hgb", 0))


def test_filled_only_where_it_must_be():
    tree = named_base("DecisionTreeRegressor")
    assert taking_gaps(tree) is tree
    model = taking_gaps(LinearRegression())
    assert model.fit(GAPS, Y).predict(GAPS) == pytest.approx(Y, rel=1e-3)

    class Own:
        """Not quite one of scikit-learn."""

        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.zeros(len(X))

    assert taking_gaps(Own()).steps[0][0] == "simpleimputer"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("HistGradientBostingRegressor", "near to it: HistGradientBoostingRegressor"),
        ("forrest", "near to it: forest"),
        ("zzzzzz", "known are hgb, ridge, linear"),
        ("MultiTaskLasso", "no base model is called 'MultiTaskLasso'"),
        ("LogisticRegression", "no base model is called 'LogisticRegression'"),
        ("StackingRegressor", "StackingRegressor needs parameters of its own"),
    ],
)
def test_what_is_refused(name, message):
    with pytest.raises(DataError, match=re.escape(message)):
        named_base(name)
