"""What experts answer, of whatever kind, and what is right."""

import numpy as np
import pytest

from trellis.errors import DataError
from trellis.experts import as_outputs
from trellis.experts.methods import kind_of
from trellis.experts.questions import Questions

LABELS = [[["a", "b"], ["a"], None], [["b", None], ["b"], ["c"]]]
WORDS = [[["a", "b"], ["a"], None], [["b"], [], ["c", "c", "c"]]]


def test_kinds():
    assert kind_of([[["a", "b"], None], [["a", "b"], ["a"]]]) == "labels"
    assert kind_of([[["a", "b"]], [["a"]]]) == "words"
    assert kind_of([[[]], [[]]]) == "words"
    assert kind_of([[[]], [[(0, 1, "X")]]]) == "spans"
    assert kind_of([[None], [[None, "a"]]]) == "labels"


def test_labels_are_laid_out_and_come_back_as_lists():
    asked = Questions.of(LABELS, [None, ["d"], None])
    assert asked.kind == "labels"
    assert asked.columns == [[["a", "b"], ["a"], [None]], [["b", None], ["b"], ["c"]]]
    assert asked.labels == ["a", "b", "c", "d"]
    assert asked.labelled.tolist() == [1]
    assert Questions.of(as_outputs(LABELS)).columns == asked.columns


@pytest.mark.parametrize("outputs", [LABELS, WORDS])
def test_some_samples(outputs):
    asked = Questions.of(outputs, [["x", "y"], None, ["z"]], names=["one", "two"])
    part = asked.take(np.array([2, 0]))
    assert len(part) == 2
    assert part.gold == [["z"], ["x", "y"]]
    assert part.names == ("one", "two")
    assert part.columns[1] == [asked.columns[1][2], asked.columns[1][0]]


@pytest.mark.parametrize("outputs", [LABELS, WORDS])
def test_right_answers_are_hidden(outputs):
    asked = Questions.of(outputs, [["x", "y"], ["a"], None])
    every = asked.without(np.array([0]), everything=True)
    assert every.gold == [None, ["a"], None]
    assert every.columns == asked.columns
    assert asked.without(np.array([0]), everything=False).gold == [["a"]]
    assert asked.gold[0] == ["x", "y"]  # nothing was changed


@pytest.mark.parametrize(
    ("samples", "answers", "taken"),
    [(3, 100, [2, 0, 1]), (2, 100, [2, 0]), (3, 10, [2, 0]), (1, 1, [2, 0])],
)
def test_only_so_many(samples, answers, taken):
    # The third has three positions, the first two: ten answers of two experts.
    asked = Questions.of(WORDS)
    assert asked.some(np.array([2, 0, 1]), samples, answers).tolist() == taken


@pytest.mark.parametrize(
    ("outputs", "gold", "kind", "message"),
    [
        (as_outputs(LABELS), None, "words", "outputs that are laid out are labels"),
        (LABELS, [["a"]], "auto", "gold has 1 samples, the experts answer 3"),
        ([[], []], None, "words", "no samples"),
    ],
)
def test_errors(outputs, gold, kind, message):
    with pytest.raises(DataError, match=message):
        Questions.of(outputs, gold, kind)
