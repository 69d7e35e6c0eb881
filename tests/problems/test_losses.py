"""Additive losses: what they cost, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from trellis.problems.losses import additive_costs, check_loss, gold_labels

from trellis.corpus import Labels
from trellis.errors import DataError

GOLD = np.array([1, 0, 1])
OFFSETS = np.array([0, 2, 3])
NAMES = ("a", "b")


def costs(loss):
    return additive_costs(loss, GOLD, OFFSETS, NAMES).dense().tolist()


def test_hamming():
    assert costs("hamming") == [[1, 0], [0, 1], [1, 0]]


def test_matrix_is_indexed_by_gold_then_predicted():
    assert costs([[0, 2], [3, 0]]) == [[3, 0], [0, 2], [3, 0]]


def test_function_sees_the_labels_of_a_sample():
    seen = []

    def loss(y, classes):
        seen.append((y, classes))
        return [[0.0 if c == label else len(y) for c in classes] for label in y]

    assert costs(loss) == [[2, 0], [0, 2], [1, 0]]
    assert seen == [(["b", "a"], NAMES), (["b"], NAMES)]


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        ("zero-one", 'loss must be "hamming"'),
        (None, 'loss must be "hamming"'),
        (3.0, 'loss must be "hamming"'),
        ([["x"]], 'loss must be "hamming"'),
        (np.zeros((2, 3)), 'loss must be "hamming"'),
        (np.zeros((3, 3)), r"loss has shape \(3, 3\); there are 2 labels"),
        ([[0, np.inf], [1, 0]], "not finite"),
        ([[0, 1], [1, 2]], r"loss\[1, 1\] is 2.0; the right label \('b'\) must cost 0"),
        (lambda y, classes: 1.0, "not additive: for sample 0 it gave 1.0"),
        (lambda y, classes: np.zeros((7, 2)), r"not additive: .* an array of shape \(7, 2\)"),
        (lambda y, classes: "no" * 40, "not additive: for sample 0 it gave 'nono.*…"),
        (lambda y, classes: np.full((len(y), 2), np.nan), "not additive"),
        (lambda y, classes: np.ones((len(y), 2)), "sample 0, position 0: the loss gives the right"),
    ],
)
def test_refused(loss, message):
    with pytest.raises(DataError, match=message):
        costs(loss)


def test_check_loss_lets_pass_what_may_fit():
    for loss in ("hamming", np.zeros((4, 4)), len):
        check_loss(loss)


def test_every_position_needs_one_label():
    assert gold_labels(Labels.from_lists([["a", "b"], ["a"]]), OFFSETS).tolist() == [0, 1, 0]
    with pytest.raises(DataError, match="sample 1, position 0 is not annotated"):
        gold_labels(Labels.from_lists([["a", "b"], [None]]), OFFSETS)
    with pytest.raises(DataError, match=r"sample 0, position 1 has a set of labels.*ChainCRF"):
        gold_labels(Labels.from_lists([["a", {"a", "b"}], ["a"]]), OFFSETS)
