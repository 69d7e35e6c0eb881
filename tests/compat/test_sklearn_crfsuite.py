"""The drop-in for sklearn-crfsuite: estimator, measures and scorers, in scikit-learn's tools."""

from __future__ import annotations

import inspect
import itertools
import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, cross_val_score
from sklearn.utils.validation import check_is_fitted

from trellis import load_model
from trellis.compat import sklearn_crfsuite
from trellis.compat.pycrfsuite import ItemSequence, Trainer
from trellis.compat.sklearn_crfsuite import CRF, metrics, scorers
from trellis.compat.sklearn_crfsuite.trainer import LinePerIterationTrainer
from trellis.errors import DataError, ParameterError

ALGORITHMS = ["lbfgs", "l2sgd", "ap", "pa", "arow"]
WORDS = [["the", "old", "cat"], ["an", "ox"], ["the", "dog", "sleeps"], ["an", "ox", "sleeps"]]
TAGS = [["D", "A", "N"], ["D", "N"], ["D", "N", "V"], ["D", "N", "V"]]


def items(words):
    return [
        {"bias": 1.0, "w": word, "long": len(word) > 3, "ends": [word[-1:], word[-2:]]}
        for word in words
    ]


X = [items(words) for words in WORDS] * 6
Y = TAGS * 6


@pytest.fixture(scope="module")
def crf() -> CRF:
    return CRF("lbfgs", c2=0.1, all_possible_transitions=True).fit(X, Y)


# ------------------------------------------------------------------------- fitting


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm(algorithm):
    crf = CRF(algorithm).fit(X, Y)
    assert crf.score(X, Y) == 1.0
    assert [list(y) for y in crf.predict(X)] == Y
    assert crf.predict_single(X[0]) == Y[0]
    for sequence, chances in zip(X, crf.predict_marginals(X), strict=True):
        assert len(chances) == len(sequence)
        for here in chances:
            assert list(here) == crf.classes_ and sum(here.values()) == pytest.approx(1, abs=1e-6)
    again = pickle.loads(pickle.dumps(crf))
    assert again.predict_marginals_single(X[0]) == crf.predict_marginals_single(X[0])


def test_shapes_are_those_of_numpy(crf):
    """As in sklearn-crfsuite: an array of lists, of two dimensions if all lengths agree."""
    assert crf.predict(X).shape == (24,) and crf.predict(X[:1]).shape == (1, 3)
    assert crf.predict(X).dtype == object and isinstance(crf.predict(X)[0], list)
    assert (crf.predict(X[:1]) == Y[0]).all()
    assert crf.predict([]).shape == (0,) and crf.predict_marginals([]).shape == (0,)
    assert crf.predict_marginals(X)[0] == crf.predict_marginals_single(X[0])


def test_parameters_are_those_of_the_peer():
    text = """algorithm min_freq all_possible_states all_possible_transitions c1 c2 max_iterations
        num_memories epsilon period delta linesearch max_linesearch calibration_eta calibration_rate
        calibration_samples calibration_candidates calibration_max_trials pa_type c error_sensitive
        averaging variance gamma verbose model_filename keep_tempfiles trainer_cls"""
    expected = text.split()
    theirs = list(inspect.signature(CRF).parameters.values())[: len(expected)]
    assert [p.name for p in theirs] == expected
    assert all(p.kind is p.POSITIONAL_OR_KEYWORD for p in theirs)
    assert {p.default for p in theirs} == {None, False}
    assert set(CRF().get_params()) == {*expected, "exact", "random_state"}


@pytest.mark.parametrize(
    "given",
    [
        {"num_memories": 3, "epsilon": 1e-4, "period": 5, "delta": 1e-3, "max_linesearch": 5,
         "linesearch": "Backtracking", "max_iterations": 50, "min_freq": 0, "c1": 0.01,
         "exact": True},
        {"algorithm": "l2sgd", "calibration_eta": 0.2, "calibration_rate": 3.0,
         "calibration_samples": 100, "calibration_candidates": 5, "calibration_max_trials": 6,
         "c2": 0.1, "period": 5, "delta": 1e-3},
        {"algorithm": "pa", "pa_type": 2, "c": 2.0, "error_sensitive": False, "averaging": False},
        {"algorithm": "arow", "variance": 2.0, "gamma": 0.5, "epsilon": 0.0},
        {"algorithm": "ap", "max_iterations": 20, "epsilon": 0.0, "all_possible_states": True},
        {"algorithm": "passive-aggressive", "keep_tempfiles": True},
    ],
)  # fmt: skip
def test_every_parameter_is_taken(given):
    assert CRF(**given).fit(X, Y).score(X, Y) == 1.0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"algorithm": "foo"}, "algorithm must be None, 'lbfgs'"),
        ({"c1": -1}, "c1 must be None or a number of at least 0, got -1"),
        ({"pa_type": 3}, "pa_type must be None or"),
        ({"linesearch": "x"}, "linesearch must be None"),
        ({"max_iterations": 0}, "max_iterations must be None or a positive integer"),
    ],
)
def test_parameters_that_cannot_be(given, message):
    with pytest.raises(ParameterError, match=message):
        CRF(**given).fit(X, Y)


def test_a_parameter_of_another_algorithm():
    with pytest.raises(ValueError, match="Parameter not found: c1"):
        CRF("l2sgd", c1=0.1).fit(X, Y)


def test_what_cannot_be_fitted():
    with pytest.raises(ValueError, match="X and y differ in number: 24 and 23 samples"):
        CRF().fit(X, Y[:-1])
    with pytest.raises(ValueError, match="items and labels differ"):
        CRF().fit([X[0]], [["D"]])
    with pytest.raises(ValueError, match="nothing to learn from"):
        CRF().fit([], [])
    with pytest.raises(ValueError, match="Pass both X_dev and y_dev"):
        CRF().fit(X, Y, X)
    with pytest.raises(ValueError, match="X_dev and y_dev differ in number"):
        CRF().fit(X, Y, X, Y[:3])
    with pytest.raises(TypeError, match="the value of 'w' is None"):
        CRF().fit([[{"w": None}]], [["A"]])
    with pytest.raises(TypeError, match="a label is 1; expected a string"):
        CRF().fit([[{"w": "a"}]], [[1]])


def test_unfitted():
    crf = CRF()
    for name in ("tagger_", "size_", "classes_", "num_attributes_", "attributes_",
                 "state_features_", "transition_features_", "training_log_"):  # fmt: skip
        assert getattr(crf, name) is None
    for call in (crf.predict, crf.predict_marginals):
        with pytest.raises(NotFittedError, match="this CRF is not fitted yet"):
            call(X)
    for call in (crf.predict_single, crf.predict_marginals_single):
        with pytest.raises(NotFittedError):
            call(X[0])
    with pytest.raises(NotFittedError):
        crf.score(X, Y)
    with pytest.raises(NotFittedError):
        check_is_fitted(crf)


def test_forms_of_data(crf):
    """Any iterables of sequences, items that were worked out, arrays of labels."""
    labels = [np.array(y) for y in Y]
    for data in (iter(X), map(ItemSequence, X), tuple(X), np.array([*X, None], object)[:-1]):
        twin = clone(crf).fit(data, iter(labels), iter(X[:2]), iter(Y[:2]))
        assert twin.state_features_ == crf.state_features_
    assert [list(y) for y in crf.predict(map(ItemSequence, X))] == Y


def test_fitting_anew_forgets():
    crf = CRF().fit(X, Y)
    crf.fit([[["a"], ["b"]]] * 3, [["P", "Q"]] * 3)
    assert crf.classes_ == ["P", "Q"] and set(crf.attributes_) == {"a", "b"}


# ------------------------------------------------------------------------- what was learned


def test_attributes(crf):
    assert crf.classes_ == ["D", "A", "N", "V"]  # in order of appearance
    assert crf.num_attributes_ == len(crf.attributes_) == len(set(crf.attributes_))
    assert {"bias", "w:the", "long", "ends:at"} <= set(crf.attributes_)
    assert crf.size_ > 1000
    assert crf.state_features_["w:the", "D"] > 0 and crf.transition_features_["D", "N"] > 0
    assert len(crf.transition_features_) == 16
    for weights, first in ((crf.state_features_, crf.attributes_),
                           (crf.transition_features_, crf.classes_)):  # fmt: skip
        assert all(type(w) is float and w for w in weights.values())
        assert all(a in first and b in crf.classes_ for a, b in weights)
    check_is_fitted(crf)


def test_the_weights_are_the_model(crf):
    """Scores made of the named weights alone predict what the model predicts."""
    (labels,) = crf.predict(X[1:2])
    state, step, names = crf.state_features_, crf.transition_features_, crf.classes_

    def score(y):
        each = zip(ItemSequence(X[1]).items(), y, strict=True)
        here = sum(v * state.get((a, label), 0.0) for item, label in each for a, v in item.items())
        return here + sum(step.get(pair, 0.0) for pair in itertools.pairwise(y))

    scores = {(a, b): score((a, b)) for a in names for b in names}
    assert max(scores, key=scores.__getitem__) == tuple(labels)
    share = np.exp(scores["D", "N"]) / sum(np.exp(list(scores.values())))
    crf.tagger_.set(X[1])
    assert crf.tagger_.probability(["D", "N"]) == pytest.approx(share, rel=1e-4)


def test_labels_that_only_sets_name():
    X = [[["a"], ["b"]], [["c"], ["a"]]] * 5
    crf = CRF().fit(X, [["Q", {"P", "Q"}], [None, "Q"]] * 5)
    assert crf.classes_ == ["Q", "P"]


# ------------------------------------------------------------------------- held-out data, logs


def test_held_out_data():
    crf = CRF().fit(X, Y, X[:4], Y[:4])
    last = crf.training_log_.last_iteration
    assert last["item_accuracy"] == 1 and last["avg_f1"] == 1
    assert {y: s.ref for y, s in last["scores"].items()} == {"D": 4, "A": 1, "N": 4, "V": 2}
    assert crf.training_log_.iterations[0]["loss"] > last["loss"]


@pytest.mark.parametrize("dev", [False, True])
def test_verbose(capsys, dev):
    CRF(verbose=True).fit(X, Y, *((X, Y) if dev else ()))
    out = capsys.readouterr().out
    assert "Iter 1" in out and "loss=" in out
    assert ("Support" in out and "F1=" in out) is dev
    CRF().fit(X, Y)
    assert capsys.readouterr().out == ""


def test_a_trainer_of_ones_own():
    class Mine(Trainer):
        made = 0

        def train(self, *args, **named):
            Mine.made += 1
            super().train(*args, **named)

    crf = CRF(trainer_cls=Mine).fit(X, Y)
    assert Mine.made == 1 and crf.score(X, Y) == 1
    assert issubclass(LinePerIterationTrainer, Trainer)


# ------------------------------------------------------------------------- files


def test_files(tmp_path):
    path = tmp_path / "model"
    unread = CRF(model_filename=path)
    with pytest.raises(FileNotFoundError):
        unread.predict(X)
    crf = CRF(model_filename=str(path)).fit(X, Y)
    assert load_model(path).classes_ == ("A", "D", "N", "V")
    again = CRF(model_filename=path)
    assert again.score(X, Y) == 1 and again.classes_ == ["A", "D", "N", "V"]
    assert again.size_ == path.stat().st_size
    assert again.state_features_ == crf.state_features_
    assert again.predict_marginals_single(X[0])[0] == crf.predict_marginals_single(X[0])[0]
    path.unlink()
    assert pickle.loads(pickle.dumps(crf)).score(X, Y) == 1


def test_joblib(crf, tmp_path):
    joblib.dump(crf, tmp_path / "crf")
    for mode in (None, "r"):
        again = joblib.load(tmp_path / "crf", mmap_mode=mode)
        assert again.classes_ == crf.classes_ and (again.predict(X) == crf.predict(X)).all()


# ------------------------------------------------------------------------- scikit-learn


def test_copies(crf):
    twin = clone(crf)
    assert twin.get_params() == crf.get_params() and twin.tagger_ is None
    assert repr(twin) == "CRF(algorithm='lbfgs', all_possible_transitions=True, c2=0.1)"
    assert "c2" in crf._repr_html_()
    assert twin.set_params(c1=0.5).c1 == 0.5
    with pytest.raises(DataError, match="CRF has no parameter 'nope'"):
        twin.set_params(nope=1)


def test_searches():
    scorer = make_scorer(metrics.flat_f1_score, average="weighted", labels=["N", "V"])
    grid = GridSearchCV(
        CRF("lbfgs"), {"c1": [0.0, 0.01], "c2": [0.01, 100.0]}, cv=3, scoring=scorer
    )
    assert grid.fit(X, Y).best_params_["c2"] == 0.01
    assert grid.best_estimator_.score(X, Y) == 1
    random = RandomizedSearchCV(
        CRF("lbfgs", max_iterations=50), {"c2": [0.01, 1.0, 10.0]}, n_iter=2, cv=2, random_state=0,
        scoring=scorers.flat_accuracy,
    )  # fmt: skip
    assert random.fit(X, Y).best_score_ > 0.9
    assert cross_val_score(CRF(), X, Y, cv=3, scoring=scorers.sequence_accuracy).mean() == 1


# ------------------------------------------------------------------------- measures

A = [["x", "z", "y"], ["x", "x"]]
B = [["y", "z", "y"], ["x", "y"]]


def test_measures():
    assert metrics.flat_accuracy_score(A, B) == 0.6
    assert metrics.flat_precision_score(A, B, average="micro") == 0.6
    assert metrics.flat_recall_score(A, B, average="micro") == 0.6
    f1 = metrics.flat_f1_score(A, B, average="macro")
    assert f1 == pytest.approx(2 / 3)
    assert metrics.flat_fbeta_score(A, B, beta=1, average="macro") == f1
    assert metrics.flat_fbeta_score(A, B, 2, average="macro") != f1
    report = metrics.flat_classification_report(A, B, labels=["x", "y"], digits=3)
    assert "0.500" in report and " z " not in report
    assert metrics.flat_classification_report(A, B, output_dict=True)["z"]["support"] == 1


def test_whole_sequences():
    score = metrics.sequence_accuracy_score
    assert score(A, B) == 0 and score([], []) == 0
    assert score([[1, 2], [3], [4]], [[1, 2], [4], [4]]) == pytest.approx(2 / 3)
    assert score([[1, 2], [3, 4]], [[1, 2], [3, 5]]) == 0.5  # also where all lengths agree
    assert score(np.array(A, object), np.array(A, object)) == 1


def test_names():
    assert sklearn_crfsuite.CRF is CRF and sklearn_crfsuite.metrics is metrics
    assert "CRF" in sklearn_crfsuite.__all__
