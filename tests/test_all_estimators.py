"""Every public estimator: its parameters, and scikit-learn's manners."""

from __future__ import annotations

import copy
import inspect
import pickle

import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

from parameters_page import PAGE, estimators, page
from trellis import MaxMargin
from trellis.errors import DataError
from trellis.estimator import REQUIRED, parameters_of
from trellis.experts import Aligned, MajorityVote, Stacking
from trellis.regression import GCRF, KNN

ALL = estimators()
EVERY = pytest.mark.parametrize("kind", ALL.values(), ids=ALL)
GIVEN = {"combiner": MajorityVote(), "model": MaxMargin(), "radius": 2.0}


def made(kind):
    """An estimator with nothing but what it must be given."""
    declared = parameters_of(kind).values()
    return kind(**{p.name: GIVEN[p.name] for p in declared if p.default is REQUIRED})


def test_all_are_found():
    assert len(ALL) >= 30
    assert {"models.ChainCRF", "experts.Rover", "cheap.ActiveLearner"} <= set(ALL)


@EVERY
def test_parameters_are_those_of_the_constructor(kind):
    names = list(inspect.signature(kind).parameters)
    model = made(kind)
    assert list(model.get_params(deep=False)) == names == list(parameters_of(kind))
    for name, value in model.get_params(deep=False).items():
        assert getattr(model, name) is value
    with pytest.raises(DataError, match=f"{kind.__name__} has no parameter 'nope'"):
        model.set_params(nope=1)


@EVERY
def test_defaults_are_in_their_domains(kind):
    for declared in parameters_of(kind).values():
        if declared.default is not REQUIRED:
            declared.domain.check(declared.name, declared.default)


@EVERY
def test_copies(kind):
    model = made(kind)
    for twin in (clone(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert repr(twin) == repr(model)
    assert f"{kind.__name__}" in model._repr_html_()


@EVERY
def test_the_docstring_has_every_parameter(kind):
    text = inspect.getdoc(kind)
    assert text.count("Parameters\n---") == (1 if parameters_of(kind) else 0)
    for declared in parameters_of(kind).values():
        if declared.help:
            assert f"\n{declared.name} : {declared.domain.words}" in text


def test_parameters_of_estimators_inside_estimators():
    model = GCRF(base=Ridge(), graph=KNN(3)).set_params(base__alpha=2.0, graph__n_neighbors=4)
    assert (model.base.alpha, model.graph.n_neighbors) == (2.0, 4)
    assert Stacking(base=MaxMargin()).get_params()["base__l2"] == MaxMargin().l2
    assert (
        Aligned(MajorityVote()).set_params(combiner__order="accuracy").combiner.order == "accuracy"
    )


def test_a_search_over_an_inner_parameter():
    X, y = [[float(i), i % 3.0] for i in range(24)], [float(i) for i in range(24)]
    grid = {"base__alpha": [1e-6, 1e6], "graph__n_neighbors": [2, 3]}
    search = GridSearchCV(GCRF(base=Ridge(), graph=KNN()), grid, cv=2, error_score="raise")
    assert search.fit(X, y).best_params_["base__alpha"] == 1e-6


def test_the_page_of_parameters_is_made_from_the_declarations():
    assert PAGE.read_text(encoding="utf-8") == page(), "run python tests/parameters_page.py"
