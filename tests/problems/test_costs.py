"""Task losses that are sums over positions: what they cost, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from trellis.corpus import Labels
from trellis.errors import DataError
from trellis.problems.costs import additive_costs, check_cost

LABELS = Labels.from_lists([["b", "a"], ["b"]])
OFFSETS = np.array([0, 2, 3])
NAMES = ("a", "b")


def costs(cost, labels=LABELS):
    return additive_costs(cost, labels, OFFSETS).dense().tolist()


def test_hamming():
    assert costs("hamming") == [[1, 0], [0, 1], [1, 0]]


def test_matrix_is_indexed_by_gold_then_predicted():
    assert costs([[0, 2], [3, 0]]) == [[3, 0], [0, 2], [3, 0]]


def test_function_sees_the_labels_of_a_sample():
    seen = []

    def cost(y, classes):
        seen.append((y, classes))
        return [[0.0 if c == label else len(y) for c in classes] for label in y]

    assert costs(cost) == [[2, 0], [0, 2], [1, 0]]
    assert seen == [(["b", "a"], NAMES), (["b"], NAMES)]


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        ("zero-one", 'cost must be "hamming"'),
        (None, 'cost must be "hamming"'),
        (3.0, 'cost must be "hamming"'),
        ([["x"]], 'cost must be "hamming"'),
        (np.zeros((2, 3)), 'cost must be "hamming"'),
        (np.zeros((3, 3)), r"cost has shape \(3, 3\); there are 2 labels"),
        ([[0, np.inf], [1, 0]], "not finite"),
        ([[0, 1], [1, 2]], r"cost\[1, 1\] is 2.0; the right label \('b'\) must cost 0"),
        (lambda y: 1.0, r"the cost cannot be called with labels and classes: .* but 2 were given"),
        (int, "the cost cannot be called with labels and classes: 'tuple' object cannot"),
        (lambda y, classes: 1.0, "not additive: for sample 0 it gave 1.0"),
        (lambda y, classes: np.zeros((7, 2)), r"not additive: .* an array of shape \(7, 2\)"),
        (lambda y, classes: "no" * 40, "not additive: for sample 0 it gave 'nono.*…"),
        (lambda y, classes: np.full((len(y), 2), np.nan), "not additive"),
        (lambda y, classes: np.ones((len(y), 2)), "sample 0, position 0: the cost gives the right"),
    ],
)
def test_refused(cost, message):
    with pytest.raises(DataError, match=message):
        costs(cost)


def test_check_lets_pass_what_may_fit():
    for cost in ("hamming", np.zeros((4, 4)), len):
        check_cost(cost)


def test_of_a_set_the_cheapest_label_counts():
    names, offsets = ("a", "b", "c"), np.array([0, 3])
    labels = Labels.from_lists([[{"a", "c"}, None, "b"]], names)
    matrix = np.array([[0.0, 2, 5], [3, 0, 4], [7, 1, 0]])
    found = additive_costs(matrix, labels, offsets).dense().tolist()
    assert found == [[0, 1, 0], [0, 0, 0], [3, 0, 4]]
    plain = additive_costs("hamming", labels, offsets)
    assert plain.dense(slice(2)).tolist() == [[0, 1, 0], [0] * 3]


@pytest.mark.parametrize("unsure", [None, {"a", "b"}])
def test_a_function_needs_one_label_at_each_position(unsure):
    labels = Labels.from_lists([["a", "b"], [unsure]], ["a", "b", "c"])
    with pytest.raises(DataError, match="a cost that is a function needs one label at each"):
        costs(lambda y, classes: np.zeros((len(y), 2)), labels)
