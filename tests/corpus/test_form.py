"""Answers go back in the form that samples came in."""

import numpy as np
import pytest

from trellis.corpus import Corpus
from trellis.corpus.form import LISTS, Given, One
from trellis.errors import DataError


def test_lists_stay_lists():
    assert LISTS.labels([["A"], []]) == [["A"], []]
    chances = [np.ones((1, 2))]
    assert LISTS.chances(chances, ("A", "B")) is chances
    assert LISTS.label_lists((["A"], ["B"])) == [["A"], ["B"]]
    with pytest.raises(DataError, match="samples of limits are of type int; expected a list"):
        LISTS.label_lists(3, "limits")


def test_one_sample_comes_back_alone():
    form = One()
    assert form.labels([["A", "B"]]) == ["A", "B"]
    assert form.label_lists(["A", "B"]) == [["A", "B"]]
    assert form.chances([7], ("A",)) == 7


def test_labels_beside_samples_are_counted():
    given = Given(Corpus.from_columns({"word": [["a", "b"]]}))
    assert given.labelled([["X", None]]).tolist() == ["X", None]
    with pytest.raises(DataError, match="sample 0: X has 2 positions, y has 1"):
        given.labelled([["X"]])
