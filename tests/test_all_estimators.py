"""Every public estimator: its parameters, scikit-learn's manners, and Trellis's own.

Its own: the same seed gives the same bits for any number of threads, data are never changed, and a
model that was pickled or saved predicts what it predicted.
"""

from __future__ import annotations

import copy
import inspect
import pickle
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

from parameters_page import PAGE, estimators, page
from toy_data import Toy, toys
from trellis import MaxMargin, load_model
from trellis.corpus import Corpus
from trellis.errors import DataError
from trellis.estimator import REQUIRED, parameters_of
from trellis.experts import Aligned, MajorityVote, Stacking
from trellis.regression import GCRF, KNN

ALL = estimators()
NO_FIT = {"KNN", "Full", "Radius", "ActiveLearner"}
"""Builders of graphs, and what learns from answers."""
TOYS = list(toys())
FITTED = pytest.mark.parametrize("name", TOYS)
EVERY = pytest.mark.parametrize("kind", ALL.values(), ids=ALL)
GIVEN = {
    "combiner": MajorityVote(),
    "members": [MajorityVote()],
    "model": MaxMargin(),
    "radius": 2.0,
    "target": "price",
}


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
        assert declared.help
        assert f"\n{declared.name} : {declared.domain.words}" in text


# ------------------------------------------------------------------------- fitted


@cache
def fitted(name: str) -> tuple[Toy, Any, Any]:
    """An estimator's toy, fitted, and what it predicts; nobody may change it."""
    toy = toys()[name]
    model = toy.fitted()
    return toy, model, toy.predicted(model)


def same(a: Any, b: Any) -> bool:
    """Whether two values are the same, to the bit."""
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if type(a).__module__.startswith("trellis."):
        return type(a) is type(b) and same(vars(a), vars(b))
    return bool(a == b or (a != a and b != b))  # NaN is NaN


def learned(model: Any) -> dict[str, Any]:
    """Weights and numbers that a model has learned."""
    kinds = (np.ndarray, int, float, str, bool)
    values = {
        name: getattr(value, "node", value)  # of Weights, those of nodes
        for name, value in vars(model).items()
        if name.endswith("_") and not name.startswith("_") and "seconds" not in name
    }
    return {name: value for name, value in values.items() if isinstance(value, kinds)}


def test_every_estimator_has_a_toy():
    assert set(TOYS) | NO_FIT == {name.partition(".")[2] for name in ALL}


@FITTED
def test_fit_returns_the_estimator_and_leaves_its_parameters(name):
    toy = toys()[name]
    before = repr(toy.model)
    assert toy.fitted() is toy.model
    assert repr(toy.model) == before


@FITTED
def test_what_is_not_fitted_says_so(name):
    toy = toys()[name]
    if name in ("NearestNeighbour", "GraphMatching", "FlowTracker", "HandSet", "LocalClassifiers"):
        with pytest.raises(DataError, match=r"fit"):
            toy.predicted(toy.model)
        return
    with pytest.raises(NotFittedError, match=f"this {name} is not fitted yet; call fit"):
        toy.predicted(toy.model)
    if hasattr(toy.model, "score"):
        with pytest.raises(NotFittedError):
            toy.model.score(*toy.fit, **toy.options)


@FITTED
def test_the_same_seed_gives_the_same_bits(name):
    toy, model, predicted = fitted(name)
    again = toy.fitted(clone(model))
    assert same(learned(again), learned(model))
    assert same(toy.predicted(again), predicted)


@pytest.mark.parametrize("name", [n for n in TOYS if "n_jobs" in toys()[n].model.get_params()])
def test_the_same_bits_for_any_number_of_threads(name):
    toy, model, _ = fitted(name)
    more = {"batch_size": 4} if "batch_size" in model.get_params() else {}
    one, two = (toy.fitted(clone(model).set_params(n_jobs=n, **more)) for n in (1, 2))
    assert same(learned(one), learned(two))
    assert same(toy.predicted(one), toy.predicted(two))


@FITTED
def test_data_are_not_changed(name):
    toy = toys()[name]
    before = copy.deepcopy((toy.fit, toy.predict, toy.options, toy.asked))
    toy.predicted(toy.fitted())
    assert same((toy.fit, toy.predict, toy.options, toy.asked), before)


@FITTED
def test_pickled_after_fit(name):
    toy, model, predicted = fitted(name)
    assert same(toy.predicted(pickle.loads(pickle.dumps(model))), predicted)
    assert same(toy.predicted(copy.deepcopy(model)), predicted)


@FITTED
def test_a_clone_has_learned_nothing(name):
    _, model, _ = fitted(name)
    twin = clone(model)
    assert not [n for n in vars(twin) if n.endswith("_") and not n.startswith("_")]
    assert repr(twin) == repr(model)


@FITTED
def test_saved_and_loaded(name, tmp_path: Path):
    toy, model, predicted = fitted(name)
    model.save(tmp_path / "model")
    assert same(toy.predicted(load_model(tmp_path / "model")), predicted)


@pytest.mark.parametrize("name", [n for n in TOYS if toys()[n].grid])
def test_a_search_by_scikit_learn(name):
    toy = toys()[name]
    search = GridSearchCV(toy.model, toy.grid, cv=2, error_score="raise", refit=True)
    best = search.fit(*toy.fit, **toy.options).best_estimator_
    assert set(search.best_params_) == set(toy.grid)
    assert same(toy.predicted(search), toy.predicted(best))


def test_equal_data_are_found_equal_and_others_not():
    """What the tests of this file rest on."""
    corpus = Corpus.from_columns({"word": [["a", "b"]]}, [["X", "Y"]])
    assert same(corpus, copy.deepcopy(corpus))
    assert not same(corpus, Corpus.from_columns({"word": [["a", "c"]]}, [["X", "Y"]]))
    assert not same([np.zeros(2)], [np.zeros(2, np.float32)])
    assert not same({"a": 1}, {"b": 1})


# ------------------------------------------------------------------------- together


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
