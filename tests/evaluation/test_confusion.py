"""Confusion matrix: counts, order of the classes, what is skipped."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.errors import DataError
from trellis.evaluation import confusion, token_accuracy

LABEL = st.sampled_from(["A", "B", "C", "D"])


@settings(deadline=None)
@given(st.lists(st.lists(st.tuples(LABEL, LABEL), min_size=1, max_size=6), min_size=1, max_size=4))
def test_counts(samples: list[list[tuple[str, str]]]) -> None:
    gold = [[g for g, _ in s] for s in samples]
    predicted = [[p for _, p in s] for s in samples]
    result = confusion(gold, predicted)
    flat = [pair for sample in samples for pair in sample]
    assert result.classes == tuple(sorted({label for pair in flat for label in pair}))
    for i, a in enumerate(result.classes):
        for j, b in enumerate(result.classes):
            assert result.matrix[i, j] == flat.count((a, b))
    assert np.trace(result.matrix) / len(flat) == token_accuracy(gold, predicted)
    mistakes = result.most_confused(100)
    assert {(a, b): n for a, b, n in mistakes} == {
        (a, b): flat.count((a, b)) for a, b in flat if a != b
    }
    counts = [n for _, _, n in mistakes]
    assert counts == sorted(counts, reverse=True)
    assert result.most_confused(1) == mistakes[:1]
    assert result.most_confused(0) == []


def test_order_of_classes_and_labels_outside_them() -> None:
    result = confusion([["new", "B", "A"]], [["A", "B", "B"]], np.array(["B", "A", "unused"]))
    assert result.classes == ("B", "A", "unused", "new")
    assert result.matrix.tolist() == [[1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0]]
    assert result.most_confused() == [("A", "B", 1), ("new", "A", 1)]


def test_unannotated_positions_are_skipped_and_sets_of_one_are_labels() -> None:
    result = confusion([[None, {"A", "B"}, {"A"}]], [["A", "A", "B"]])
    assert result.classes == ("A", "B")
    assert result.matrix.tolist() == [[0, 1], [0, 0]]


def test_table_of_few_labels_and_list_of_many() -> None:
    assert str(confusion([["A", "long"]], [["long", "long"]])).splitlines() == [
        "gold  A  long",
        "   A  0     1",
        "long  0     1",
    ]
    labels = [f"L{i:02}" for i in range(30)]
    text = str(confusion([labels], [["L00"] * 30]))
    assert text.startswith("30 labels; most frequent mistakes")
    assert "1  L01 -> L00" in text
    assert len(text.splitlines()) == 11


@pytest.mark.parametrize(
    ("gold", "predicted", "classes", "message"),
    [
        ([], [], None, "there are no samples"),
        ([["A"]], [["A", "B"]], None, "sample 0 has 1 positions in gold but 2 in predicted"),
        ([[None, {"A", "B"}]], [["A", "A"]], None, "no position of gold has exactly one label"),
        ([[{}]], [["A"]], None, "sample 0, position 0 of gold"),
        ([["A"]], [["A"]], ["A", "B", "B"], "classes names 'B' twice"),
    ],
)
def test_bad_input(gold: list, predicted: list, classes: list | None, message: str) -> None:
    with pytest.raises(DataError, match=message):
        confusion(gold, predicted, classes)
