"""Experts from models, classifiers and files."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from trellis import ChainCRF, ChainPerceptron
from trellis.errors import DataError
from trellis.experts import (
    ESPBoost,
    from_classifiers,
    from_models,
)

X = [["the", "cat", "sat"], ["the", "dog"]] * 3
Y = [["D", "N", "V"], ["D", "N"]] * 3


# ------------------------------------------------------------------ models and classifiers


def test_models_with_and_without_probabilities():
    crf = ChainCRF(random_state=0).fit(X, Y)
    perceptron = ChainPerceptron(random_state=0).fit(X, Y)
    outputs = from_models([crf, perceptron], X, names=["crf", "perceptron"])
    assert outputs.names == ("crf", "perceptron")
    assert outputs.scores is None
    assert outputs.lists(outputs.codes[:, 0]) == crf.predict(X)
    with_scores = from_models([crf, crf], X, scores=True)
    assert with_scores.scores.shape == (15, 2, 3)
    assert np.allclose(with_scores.scores[:, 0], np.concatenate(crf.predict_marginals(X)))
    assert ESPBoost(base="real").fit(with_scores, Y).predict(with_scores) == Y
    with pytest.raises(DataError, match="expert 1 is a ChainPerceptron, which has no predict_marg"):
        from_models([crf, perceptron], X, scores=True)


def test_models_that_know_different_labels():
    small = ChainCRF(random_state=0).fit([["the", "cat"]], [["D", "N"]])
    outputs = from_models([small, ChainCRF(random_state=0).fit(X, Y)], X, scores=True)
    assert outputs.labels == ("D", "N", "V")
    assert outputs.scores[:, 0, 2].tolist() == [0.0] * 15
    assert np.allclose(outputs.scores.sum(axis=2), 1, atol=1e-5)


def test_anything_that_predicts():
    class Rules:
        def predict(self, samples):
            return [["D" if word == "the" else "N" for word in sample] for sample in samples]

    assert from_models([Rules()], X[:1]).codes[:, 0].tolist() == [0, 1, 1]


def test_classifiers_of_arrays():
    rows = [np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[1.0, 0.0]])]
    tree = DecisionTreeClassifier(random_state=0).fit(np.concatenate(rows), [0, 1, 1])
    outputs = from_classifiers([tree], rows, scores=True)
    assert outputs.labels == ("0", "1")  # labels are strings
    assert outputs.lengths.tolist() == [2, 1]
    assert outputs.codes[:, 0].tolist() == [0, 1, 1]
    assert outputs.scores[:, 0].tolist() == [[1, 0], [0, 1], [0, 1]]


def test_classifiers_of_dicts():
    rows = [[{"word": word} for word in sample] for sample in X]
    model = make_pipeline(DictVectorizer(), LogisticRegression())
    model.fit([row for sample in rows for row in sample], [y for sample in Y for y in sample])
    outputs = from_classifiers([model], rows, names=["maxent"])
    assert outputs.lists(outputs.codes[:, 0]) == Y
    with pytest.raises(DataError, match="there are no samples"):
        from_classifiers([model], [])
    with pytest.raises(DataError, match="classifiers must be a list of classifiers, got "):
        from_classifiers([object()], rows)


def test_probabilities_of_the_wrong_shape():
    class Odd:
        classes_ = ("D", "N")

        def predict(self, rows):
            return ["D"] * len(rows)

        def predict_proba(self, rows):
            return np.ones((len(rows), 3))

    with pytest.raises(DataError, match=r"probabilities of shape .2, 3.: expected .2, 2."):
        from_classifiers([Odd()], [[[0], [1]]], scores=True)


class Answers:
    """A classifier that says the same of whatever it is asked."""

    classes_ = ("D", "N")

    def __init__(self, labels):
        self.labels = labels

    def predict(self, rows):
        return self.labels

    def predict_proba(self, rows):
        raise ValueError("trained without probabilities")


TREE = DecisionTreeClassifier().fit([[0.0], [1.0]], ["D", "N"])


@pytest.mark.parametrize(
    ("classifier", "samples", "scores", "message"),
    [
        (TREE, [[["a"]]], False, "classifier 0 cannot take these samples: could not convert str"),
        (TREE, [[[1.0, 2.0]]], False, "classifier 0 cannot take these samples: X has 2 features"),
        (DecisionTreeClassifier(), [[[1.0]]], False, "cannot take these samples: .* not fitted"),
        (TREE, [np.zeros((1, 1)), np.zeros((1, 2))], False, "the samples differ in their features"),
        (Answers(["D"]), [[[0], [1]]], False, r"classifier 0 gave 1 label\(s\) for 2 row\(s\)"),
        (Answers(["D"] * 3), [[[0], [1]]], False, r"gave 3 label\(s\) for 2 row\(s\)"),
        (Answers(3), [[[0]]], False, "labels of classifier 0 are of type int; expected a list"),
        (Answers(["D"]), [[[0]]], True, "classifier 0 cannot take .*: trained without probabilit"),
    ],
)
def test_classifiers_that_do_not_fit(classifier, samples, scores, message):
    with pytest.raises(DataError, match=message):
        from_classifiers([classifier], samples, scores=scores)
