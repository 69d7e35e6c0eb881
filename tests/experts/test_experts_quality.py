"""Scores as functions of sums over samples."""

import numpy as np
import pytest

from trellis.errors import DataError
from trellis.evaluation import span_scores
from trellis.experts.quality import Quality

GOLD = [["B-X", "I-X", "O"], ["O", "B-Y"]]
SAID = [["B-X", "O", "O"], ["O", "B-Y"]]


def of(metric, gold, said, scheme=None):
    quality = Quality(metric, scheme)
    return float(quality.score(quality.counts(gold, said).sum(axis=0)))


def test_scores():
    assert of("hamming", GOLD, SAID) == pytest.approx(80)
    assert of("exact", GOLD, SAID) == pytest.approx(50)
    assert of("span-f1", GOLD, SAID, "BIO") == pytest.approx(50)
    assert of("span-f1", GOLD, SAID, "BIO") == pytest.approx(
        100 * span_scores(GOLD, SAID, "BIO").f1
    )
    assert of("edit", [["a", "b"], ["c", "d"]], [["a"], ["c", "d"]]) == pytest.approx(25)


def test_spans_by_themselves():
    gold = [[(0, 2, "X")], [(1, 2, "Y")]]
    said = [[(0, 2, "X", 0.9), (3, 4, "X", 0.5)], []]
    assert of("span-f1", gold, said) == pytest.approx(50)


def test_less_may_be_better():
    assert Quality("edit").sign == -1
    assert Quality("exact").sign == 1


def test_nothing_to_count():
    assert of("span-f1", [["O"]], [["O"]], "BIO") == 0
    assert Quality("hamming").score(np.zeros((2, 2))).tolist() == [0, 0]


def test_unknown_metric():
    with pytest.raises(DataError, match="metric is 'bleu': expected hamming, span-f1, exact, edit"):
        Quality("bleu")
