"""Single visits of the perceptron: when it updates, and by what."""

from __future__ import annotations

import numpy as np
import pytest

from trellis.corpus import Labels
from trellis.features import Encoded
from trellis.objectives import ChainData, ChainWeights, PerceptronLoss
from trellis.objectives.chain import Visits


def chain(labels, values=()) -> ChainData:
    """A chain over the labels A and B with a feature of its own at each position."""
    n = len(labels)
    encoded = Encoded(
        np.array([0, n]),
        np.arange(n + 1),
        np.arange(n, dtype=np.int32),
        np.array(values, np.float32),
    )
    return ChainData(encoded, Labels.from_lists([labels], "AB"), np.ones(1))


def visit(data: ChainData, weights: ChainWeights, *, count: float = 0.0, weight: float = 1.0):
    n = len(data.labels)
    sums = ChainWeights.zeros(n, 2, np.float64)
    once = Visits(np.array([0]), np.array([n]), np.array([weight]))
    wrong, after = PerceptronLoss(data).descend(weights, sums, count, once)
    assert after == count + 1
    return wrong, sums


def test_a_wrong_labelling_moves_the_weights_from_it_to_the_gold_one():
    w = ChainWeights.zeros(3, 2)
    wrong, sums = visit(chain(["A", "B", "B"]), w)  # zero weights find A A A
    assert wrong == 2
    assert w.node.tolist() == [[0, 0], [-1, 1], [-1, 1]]
    assert w.transitions.tolist() == [[-2, 1], [0, 1]]
    assert not sums.node.any()  # the first visit is in every average


def test_a_right_labelling_changes_nothing():
    w = ChainWeights(np.array([[1, 0], [0, 1]], np.float32), np.zeros((2, 2), np.float32))
    before = w.copy()
    wrong, sums = visit(chain(["A", "B"]), w)
    assert wrong == 0
    assert (w.node == before.node).all() and not w.transitions.any() and not sums.node.any()


def test_later_updates_count_for_less_in_the_average():
    w = ChainWeights.zeros(1, 2)
    _, sums = visit(chain(["B"]), w, count=4.0)
    assert w.node.tolist() == [[-1, 1]]
    assert sums.node.tolist() == [[-4, 4]]  # absent from the four averages before


def test_values_and_sample_weights_scale_the_step():
    w = ChainWeights.zeros(2, 2)
    wrong, _ = visit(chain(["B", "B"], values=[0.5, -3.0]), w, weight=2.0)
    assert wrong == 4
    assert w.node.tolist() == [[-1, 1], [6, -6]]
    assert w.transitions.tolist() == [[-2, 0], [0, 2]]


def test_under_partial_labels_the_goal_is_the_best_allowed_labelling():
    node = np.array([[1, 0], [0, 0], [2, 1]], np.float32)
    w = ChainWeights(node.copy(), np.array([[0, 0], [0, 3]], np.float32))
    # Best is B B B (1 + 6); allowed A at the end, so best allowed B B A (3 + 2).
    wrong, _ = visit(chain([None, {"A", "B"}, "A"]), w)
    assert wrong == 1
    assert (w.node - node).tolist() == [[0, 0], [0, 0], [1, -1]]
    assert w.transitions.tolist() == [[0, 0], [1, 2]]


@pytest.mark.parametrize("labels", [[None, None], [{"A", "B"}, None]])
def test_nothing_is_wrong_where_everything_is_allowed(labels):
    w = ChainWeights.zeros(2, 2)
    wrong, _ = visit(chain(labels), w)
    assert wrong == 0 and not w.node.any()


def test_the_count_is_left_where_an_interrupt_cannot_lose_it():
    data, state = chain(["B"]), np.zeros(1)
    once = Visits(np.array([0, 0]), np.array([1, 1]), np.ones(2))
    sums = ChainWeights.zeros(1, 2, np.float64)
    PerceptronLoss(data).descend(ChainWeights.zeros(1, 2), sums, 3.0, once, state=state)
    assert state.tolist() == [5.0]
