"""The metrics of ``score``, ``dev=``, ``tune`` and scorers, against plain counts."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import GridSearchCV, cross_val_score

from trellis import ChainCRF
from trellis.errors import DataError
from trellis.evaluation import scorer, span_scores, token_accuracy
from trellis.evaluation.held_out import METRICS, held_out_score, metric_name, scoring_scheme

BIO = ["B-X", "I-X", "B-Y", "O"]
PAIRS = st.lists(
    st.lists(st.tuples(st.sampled_from(BIO), st.sampled_from(BIO)), min_size=1, max_size=5),
    min_size=1, max_size=4,
)  # fmt: skip
X = [["in", "New", "York"], ["Ada", "met"]] * 4
Y = [["O", "B-X", "I-X"], ["B-Y", "O"]] * 4


HALVES = [(slice(4, 8), slice(4)), (slice(4), slice(4, 8))]


def split(pairs):
    return tuple([[pair[k] for pair in sample] for sample in pairs] for k in (0, 1))


@given(PAIRS)
def test_metrics_are_what_others_count(pairs):
    gold, found = split(pairs)
    flat = list(itertools.chain(*gold)), list(itertools.chain(*found))
    spans = span_scores(gold, found, "BIO")
    if any(label != "O" for label in flat[0] + flat[1]):
        assert held_out_score(gold, found, "BIO", "f1") == pytest.approx(spans.f1)
    assert held_out_score(gold, found, None, "accuracy") == pytest.approx(accuracy_score(*flat))
    for metric, average in (("macro_f1", "macro"), ("weighted_f1", "weighted")):
        expected = f1_score(*flat, average=average, zero_division=0)
        assert held_out_score(gold, found, None, metric) == pytest.approx(expected)
    right = np.mean([g == p for g, p in zip(gold, found, strict=True)])
    assert held_out_score(gold, found, None, "sequences") == pytest.approx(right)


@given(PAIRS, st.data())
def test_a_weight_is_a_number_of_copies(pairs, data):
    gold, found = split(pairs)
    n = data.draw(st.lists(st.integers(0, 3), min_size=len(gold), max_size=len(gold)))
    if not any(n):
        return
    copies = [i for i, times in enumerate(n) for _ in range(times)]
    more = [gold[i] for i in copies], [found[i] for i in copies]
    for metric in METRICS[1:]:
        weighted = held_out_score(gold, found, "BIO", metric, np.array(n, float))
        assert weighted == pytest.approx(held_out_score(*more, "BIO", metric)), metric


def test_auto_is_about_spans_where_there_are_some():
    assert held_out_score([["B-X", "I-X"]], [["B-X", "O"]], "BIO") == 0.0
    assert held_out_score([["B-X", "I-X"]], [["B-X", "O"]], None) == 0.5
    assert held_out_score([["O"]], [["O"]], "BIO") == 1.0  # nothing to find, nothing found
    assert metric_name("auto", "BIO") == "span F1" and metric_name("sequences", None) == "sequences"


def test_a_part_of_the_labels_does_not_change_the_metric():
    assert scoring_scheme(None, BIO, [["O"]], ["O"]) == "BIO"
    assert scoring_scheme(None, BIO, [["E-X"]], ["E-X"]) is None
    assert scoring_scheme(None, BIO, [[None]], []) is None
    assert scoring_scheme(None, [0, 1], [[0]], [0]) is None


def test_sets_and_gaps():
    gold, found = [["A", None, {"A", "B"}]], [["A", "B", "B"]]
    assert held_out_score(gold, found, None) == token_accuracy(gold, found) == 1.0
    assert held_out_score(gold, found, None, "macro_f1") == 1.0
    assert held_out_score([[{"A", "B"}, "A"]], [["C", "A"]], None, "macro_f1") == 1.0


def test_score_of_a_model():
    crf = ChainCRF(random_state=0).fit(X, Y)
    wrong = [["O", "B-X", "O"], ["B-Y", "O"]]
    assert crf.predict(X[:2]) == Y[:2]
    assert crf.score(X[:2], wrong) == 0.5  # spans
    assert crf.score(X[:2], wrong, metric="accuracy") == 0.8
    assert crf.score(X[:2], wrong, metric="sequences") == 0.5
    assert crf.score(X[:2], wrong, [0.0, 1.0]) == 1.0
    assert crf.score(X[:1], [["O", None, "I-X"]]) == 1.0  # not all labels: positions
    tags = ChainCRF(random_state=0).fit(X, [[0, 1, 0], [1, 1]] * 4)
    assert tags.score(X[:1], [[0, 1, 1]]) == pytest.approx(2 / 3)
    with pytest.raises(DataError, match="metric='f1' is about spans, but the labels follow no tag"):
        tags.score(X[:1], [[0, 1, 1]], metric="f1")
    with pytest.raises(DataError, match="metric must be 'auto'"):
        crf.score(X, Y, metric="f2")


def test_dev_and_score_agree():
    crf = ChainCRF(random_state=0, max_passes=3).fit(X, Y, dev=(X, Y))
    best = max(record.dev_score for record in crf.history_)
    assert crf.score(X, Y) == best


def test_scorers_of_scikit_learn():
    crf = ChainCRF(random_state=0, max_passes=2)
    for metric in METRICS:
        scores = cross_val_score(crf, X, Y, cv=2, scoring=scorer(metric))
        by_hand = cross_val_score(
            crf, X, Y, cv=2, scoring=lambda m, A, b, k=metric: m.score(A, b, metric=k)
        )
        assert scores.tolist() == by_hand.tolist()
    search = GridSearchCV(crf, {"l2": [0.1, 1.0]}, cv=2, scoring=scorer("accuracy"), n_jobs=2)
    assert 0 <= search.fit(X, Y).best_score_ <= 1
    with pytest.raises(DataError, match="metric must be"):
        scorer("f2")
