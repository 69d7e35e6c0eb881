"""Precision and recall of the surest answers: against scikit-learn, by hand, and errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis import ChainCRF
from trellis.errors import DataError
from trellis.evaluation import precision_recall_curve, span_scores

GOLD = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-PER"]]
SPANS = [
    [("PER", 0, 2, 0.9), ("PER", 2, 3, 0.4), ("LOC", 3, 4, 0.3)],
    [("LOC", 1, 2, 0.4)],
]


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=1, max_size=30))
def test_as_scikit_learn(answers):
    """One label against the rest, ties included."""
    from sklearn.metrics import average_precision_score
    from sklearn.metrics import precision_recall_curve as theirs

    if not any(right for _, right in answers):
        answers.append((3, True))
    chance = np.array([c / 9 for c, _ in answers])
    right = np.array([r for _, r in answers])
    marginals = np.column_stack([chance, 1 - chance])
    gold = ["yes" if r else "no" for r in right]
    found = precision_recall_curve([gold], [marginals], classes=["yes", "no"], label="yes")
    assert found.average_precision == pytest.approx(average_precision_score(right, chance))
    precision, recall, threshold = theirs(right, chance)
    np.testing.assert_allclose(found.precision[::-1], precision[:-1])
    np.testing.assert_allclose(found.recall[::-1], recall[:-1])
    np.testing.assert_allclose(found.threshold[::-1], threshold)
    assert found.support == right.sum()


def test_spans():
    curve = precision_recall_curve(GOLD, SPANS)
    assert curve.threshold.tolist() == [0.9, 0.4, 0.3]
    assert curve.precision.tolist() == [1.0, 1 / 3, 1 / 2]
    assert curve.recall.tolist() == [1 / 3, 1 / 3, 2 / 3]
    assert curve.support == 3
    assert curve.average_precision == pytest.approx(1 / 3 + 1 / 3 * 1 / 2)
    assert str(curve) == ("average precision: 0.5000; all answers: precision 0.5000, recall 0.6667")


def test_spans_of_a_type_and_gold_as_spans():
    gold = [[("PER", 0, 2), ("LOC", 3, 4)], [("PER", 1, 2)]]
    assert precision_recall_curve(gold, SPANS).recall.tolist() == [1 / 3, 1 / 3, 2 / 3]
    person = precision_recall_curve(GOLD, SPANS, label="PER")
    assert person.precision.tolist() == [1.0, 0.5]
    assert person.support == 2
    assert precision_recall_curve(GOLD, SPANS, label="PER", scheme="BIO").support == 2


def test_a_span_is_found_once():
    twice = [[("PER", 0, 2, 0.9), ("PER", 0, 2, 0.8)], []]
    assert precision_recall_curve(GOLD, twice).precision.tolist() == [1.0, 0.5]


def test_nothing_is_found():
    curve = precision_recall_curve(GOLD, [[], []])
    assert curve.average_precision == 0.0
    assert len(curve.recall) == 0
    assert str(curve) == "average precision: 0.0000"


def test_labels_with_confidences():
    found = [[("A", 0.9), ("B", 0.5), ("A", 0.1)]]
    curve = precision_recall_curve([["A", "A", None]], found)
    assert curve.precision.tolist() == [1.0, 0.5]
    assert curve.support == 2
    only = precision_recall_curve([["A", "B", {"B"}]], found, label="B")
    assert (only.precision.tolist(), only.support) == ([1.0], 2)


def test_most_probable_label_of_marginals():
    marginals = [np.array([[0.9, 0.1], [0.3, 0.7]])]
    curve = precision_recall_curve([["A", "A"]], marginals, classes=["A", "B"])
    assert curve.threshold.tolist() == [0.9, 0.7]
    assert curve.recall.tolist() == [0.5, 0.5]


def test_all_spans_of_a_model_have_the_scores_of_its_labels():
    X, y = [["Ann", "of", "Rome"], ["in", "Rome"]] * 4, [["B-P", "O", "B-L"], ["O", "B-L"]] * 4
    crf = ChainCRF("word", random_state=0).fit(X, y)
    test = [["Bob", "of", "Rome", "in"]]
    gold = [["B-P", "O", "B-L", "O"]]
    curve = precision_recall_curve(gold, crf.predict_spans(test))
    scores = span_scores(gold, crf.predict(test))
    assert curve.precision[-1] == pytest.approx(scores.precision)
    assert curve.recall[-1] == pytest.approx(scores.recall)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: precision_recall_curve(GOLD, SPANS[:1]), "2 samples in gold but 1 in found"),
        (lambda: precision_recall_curve(GOLD, SPANS, label="ORG"), "gold has no 'ORG' to be found"),
        (lambda: precision_recall_curve([["O", "O"]], [[]]), "follow no tag scheme"),
        (lambda: precision_recall_curve([["x"]], [[("x", 0, 1, 0.5)]]), "follow no tag scheme"),
        (lambda: precision_recall_curve(GOLD, [[("PER", 1)], []]), "sample 0 has 4 positions in"),
        (lambda: precision_recall_curve(GOLD, [[("P", 0, 1)], []]), r"expected \(label, confid"),
        (
            lambda: precision_recall_curve(GOLD, [[("P", 0, 1, np.nan)], []]),
            "is no finite number",
        ),
        (lambda: precision_recall_curve([["a"]], [np.ones((1, 2))]), "say by classes what col"),
        (
            lambda: precision_recall_curve([["a"]], [np.ones((1, 2))], classes=["a"]),
            r"marginals of sample 0 have shape \(1, 2\); expected \(1, 1\)",
        ),
        (
            lambda: precision_recall_curve([["a"]], [[[1.0]]], classes=["a"], label="b"),
            "label 'b' is none of the classes",
        ),
        (lambda: precision_recall_curve([["a"]], [[[1.0]]], classes=[]), "classes is empty"),
        (lambda: precision_recall_curve([[None]], [[[1.0]]], classes=["a"]), "nothing that could"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(DataError, match=message):
        call()
