"""scikit-learn manners: parameters, clones, searches, errors of use; and reproducibility."""

from __future__ import annotations

import copy
import hashlib
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from chain_problems import same_bits, toy_language
from trellis import ChainCRF, ChainPerceptron, Corpus, DataError

X, Y = toy_language(40)
BOTH = pytest.mark.parametrize("kind", [ChainCRF, ChainPerceptron])


@BOTH
def test_parameters_are_those_of_init_stored_unchanged(kind):
    given = ["word", "word[-1]"]
    model = kind(features=given, piece_size=2.5, random_state=3)
    params = model.get_params()
    assert params["features"] is given and params["piece_size"] == 2.5
    assert params == model.get_params(deep=False)
    assert kind(**params).get_params() == params
    for name, value in params.items():
        assert getattr(model, name) is value


@BOTH
def test_set_params_sets_and_refuses(kind):
    model = kind()
    assert model.set_params(piece_size=4, max_passes=2) is model
    assert (model.piece_size, model.max_passes) == (4, 2)
    with pytest.raises(DataError, match=rf"{kind.__name__} has no parameter 'nope'; it has feat"):
        model.set_params(nope=1)


@BOTH
def test_repr_shows_what_differs_from_the_defaults(kind):
    name = kind.__name__
    assert repr(kind()) == f"{name}()"
    assert repr(kind(piece_size=2.5, scheme="BIO")) == f"{name}(piece_size=2.5, scheme='BIO')"
    assert repr(kind(features=np.array(["word"]))).startswith(f"{name}(features=array(")
    assert eval(repr(kind(tol=0.5, random_state=1))).get_params()["tol"] == 0.5


@BOTH
def test_clone_copies_parameters_and_nothing_learned(kind):
    model = kind(piece_size=2.5, max_passes=2, random_state=0).fit(X, Y)
    twin = clone(model)
    assert twin is not model and twin.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        twin.predict(X)
    assert same_bits(twin.fit(X, Y).weights_, model.weights_)


@BOTH
def test_everything_that_needs_a_fit_says_so(kind, tmp_path):
    model = kind()
    uses = {
        "predict": lambda: model.predict(X),
        "predict_kbest": lambda: model.predict_kbest(X, 2),
        "score": lambda: model.score(X, Y),
        "explain": lambda: model.explain(X[:1]),
        "save": lambda: model.save(tmp_path / "m.trellis"),
    }
    if kind is ChainCRF:
        uses["predict_marginals"] = lambda: model.predict_marginals(X)
        uses["predict_spans"] = lambda: model.predict_spans(X)
        uses["sample"] = lambda: model.sample(X)
        uses["entropy"] = lambda: model.entropy(X)
    for use in uses.values():
        with pytest.raises(NotFittedError, match=f"this {kind.__name__} is not fitted yet"):
            use()
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    check_is_fitted(model.fit(X, Y))
    assert not list(tmp_path.iterdir())


@BOTH
@pytest.mark.parametrize("form", ["lists", "corpus"])
def test_grid_search(kind, form):
    samples = X if form == "lists" else Corpus.from_columns({"word": X}, Y)
    labels = Y if form == "lists" else None
    grid = {"piece_size": [None, 2.5], "max_passes": [1, 5]}
    if kind is ChainCRF:
        grid["l2"] = [0.1, 100.0]
    model = kind(random_state=0, **({"decay": 0.75} if kind is ChainCRF else {}))
    search = GridSearchCV(model, grid, cv=3, error_score="raise")
    search.fit(samples, labels)
    assert search.best_score_ > 0.95
    assert search.best_params_["max_passes"] == 5
    if kind is ChainCRF:
        assert search.best_params_["l2"] == 0.1
    assert search.predict(X) == search.best_estimator_.predict(X)


def test_lists_and_corpus_are_split_alike():
    corpus = Corpus.from_columns({"word": X}, Y)
    model = ChainCRF(max_passes=2, random_state=0)
    by_lists = cross_val_score(model, X, Y, cv=3)
    by_corpus = cross_val_score(model, corpus, cv=3)
    assert by_lists.tolist() == by_corpus.tolist()


def test_sample_weights_are_split_with_the_samples():
    weights = np.linspace(0.5, 2, len(X))
    search = GridSearchCV(ChainCRF(random_state=0), {"l2": [1.0]}, cv=2, error_score="raise")
    search.fit(X, Y, sample_weight=weights)
    assert search.best_score_ > 0.8


def test_it_is_the_last_step_of_a_pipeline():
    class Lower:
        def fit(self, X, y=None):
            return self

        def transform(self, X):
            return [[word.lower() for word in sample] for sample in X]

    pipe = Pipeline([("lower", Lower()), ("crf", ChainCRF(random_state=0))])
    pipe.set_params(crf__l2=0.1).fit(X, Y)
    assert pipe.predict([["ADA", "MET"]]) == [["B-PER", "O"]]


def test_tags_are_not_those_of_a_classifier():
    """A classifier's folds are stratified by label, which lists of labels cannot be."""
    assert not is_classifier(ChainCRF())


@BOTH
def test_copies_and_pickles_of_a_fitted_model_predict_alike(kind):
    """Parallel searches send estimators to other processes."""
    model = kind("word; suffix(word, 2); ngrams(word, 2..3)", random_state=0).fit(X, Y)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert twin.predict(X) == model.predict(X)
        assert same_bits(twin.weights_, model.weights_)


# ------------------------------------------------------------------------- reproducibility


PROGRAM = """
import sys
sys.path[:0] = sys.argv[1:]
from test_estimator_manners import fingerprints
print(*fingerprints())
"""


def fingerprints() -> list[str]:
    """Hashes of the weights of four models, from sets and dicts whose order is not fixed."""
    sets = [[{f"w={w}", f"s={w[-1]}", "all"} for w in s] for s in X]
    partial = [[{"B-PER", "I-PER"} if label != "O" else "O" for label in s] for s in Y]
    models = [
        ChainCRF(piece_size=2.5, max_passes=3, random_state=0).fit(X, Y),
        ChainCRF(max_passes=3, random_state=0).fit(sets, partial),
        ChainPerceptron(max_passes=3, random_state=0).fit(sets, partial),
        ChainCRF(random_state=0).partial_fit(X, Y).partial_fit(X, Y),
    ]
    return [
        hashlib.sha256(m.weights_.node.tobytes() + m.weights_.transitions.tobytes()).hexdigest()
        for m in models
    ]


def test_another_process_learns_the_same_bits():
    here = fingerprints()
    assert here == fingerprints()
    environment = os.environ | {"PYTHONHASHSEED": "12345"}
    folder = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), str(folder.parent)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == here
