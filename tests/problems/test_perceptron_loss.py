"""Single visits of the perceptron: when it updates, and by what."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chain_problems import altered, chain_problem
from trellis.corpus import Labels
from trellis.features import Encoded
from trellis.problems import EdgeWeights, LabelProblem, PerceptronLoss, Weights
from trellis.problems.visits import Visits


def chain(labels, values=()) -> LabelProblem:
    """A chain over the labels A and B with a feature of its own at each position."""
    n = len(labels)
    encoded = Encoded(
        np.array([0, n]),
        np.arange(n + 1),
        np.arange(n, dtype=np.int32),
        np.array(values, np.float32),
    )
    return chain_problem(encoded, Labels.from_lists([labels], "AB"), np.ones(1))


def visit(data: LabelProblem, weights: Weights, *, count: float = 0.0, weight: float = 1.0):
    n = len(data.labels)
    sums = weights.zeros_like(np.float64)
    once = Visits(np.array([0]), np.array([n]), np.array([weight]))
    state = np.array([count])
    wrong = PerceptronLoss(data).descend(weights, sums, once, state)
    assert state.tolist() == [count + 1]
    return wrong, sums


def test_a_wrong_labelling_moves_the_weights_from_it_to_the_gold_one():
    w = Weights.zeros(3, 2)
    wrong, sums = visit(chain(["A", "B", "B"]), w)  # zero weights find A A A
    assert wrong == 2
    assert w.node.tolist() == [[0, 0], [-1, 1], [-1, 1]]
    assert w.transitions.tolist() == [[-2, 1], [0, 1]]
    assert not sums.node.any()  # the first visit is in every average


def test_a_right_labelling_changes_nothing():
    w = Weights(np.array([[1, 0], [0, 1]], np.float32), np.zeros((2, 2), np.float32))
    before = w.copy()
    wrong, sums = visit(chain(["A", "B"]), w)
    assert wrong == 0
    assert (w.node == before.node).all() and not w.transitions.any() and not sums.node.any()


def test_later_updates_count_for_less_in_the_average():
    w = Weights.zeros(1, 2)
    _, sums = visit(chain(["B"]), w, count=4.0)
    assert w.node.tolist() == [[-1, 1]]
    assert sums.node.tolist() == [[-4, 4]]  # absent from the four averages before


def test_values_and_sample_weights_scale_the_step():
    w = Weights.zeros(2, 2)
    wrong, _ = visit(chain(["B", "B"], values=[0.5, -3.0]), w, weight=2.0)
    assert wrong == 4
    assert w.node.tolist() == [[-1, 1], [6, -6]]
    assert w.transitions.tolist() == [[-2, 0], [0, 2]]


def test_under_partial_labels_the_goal_is_the_best_allowed_labelling():
    node = np.array([[1, 0], [0, 0], [2, 1]], np.float32)
    w = Weights(node.copy(), np.array([[0, 0], [0, 3]], np.float32))
    # Best is B B B (1 + 6); allowed A at the end, so best allowed B B A (3 + 2).
    wrong, _ = visit(chain([None, {"A", "B"}, "A"]), w)
    assert wrong == 1
    assert (w.node - node).tolist() == [[0, 0], [0, 0], [1, -1]]
    assert w.transitions.tolist() == [[0, 0], [1, 2]]


@pytest.mark.parametrize("labels", [[None, None], [{"A", "B"}, None]])
def test_nothing_is_wrong_where_everything_is_allowed(labels):
    w = Weights.zeros(2, 2)
    wrong, _ = visit(chain(labels), w)
    assert wrong == 0 and not w.node.any()


def crossed(values, *, both: bool, pairs=None) -> EdgeWeights:
    """Edges of two features, the first not crossed; with pairs of labels if not all."""
    row = np.array([-1, 0], np.int32)
    n_rows = 2 if both else 1
    ptr, pair = np.zeros(0, np.int64), np.zeros(0, np.int32)
    if pairs is not None:
        ptr = np.arange(n_rows + 1, dtype=np.int64) * len(pairs)
        pair = np.tile(np.array(pairs, np.int32), n_rows)
    return EdgeWeights(row, ptr, pair, np.array(values, np.float32), both)


def test_rich_edges_move_like_transitions_for_the_features_of_their_end():
    w = Weights.zeros(2, 2)
    w.edge = crossed(np.zeros(8), both=True)
    wrong, sums = visit(chain(["B", "B"], values=[1.0, 0.5]), w, count=2.0)
    assert wrong == 2
    # The feature of position 1 is crossed, that of position 0 is not; nothing has it before.
    assert w.edge.values.tolist() == [-0.5, 0, 0, 0.5, 0, 0, 0, 0]
    assert sums.edge.values.tolist() == [-1, 0, 0, 1, 0, 0, 0, 0]


def test_rich_edges_may_belong_to_the_position_before():
    data = chain(["B", "B"])
    flipped = replace(data.encoded, indices=np.array([1, 0], np.int32))
    w = Weights.zeros(2, 2)
    w.edge = crossed(np.zeros(8), both=True)
    visit(altered(data, encoded=flipped), w)
    assert w.edge.values.tolist() == [0, 0, 0, 0, -1, 0, 0, 1]


def test_pairs_that_a_row_lacks_have_no_weight_to_move():
    w = Weights.zeros(2, 2)
    w.edge = crossed(np.zeros(2), both=False, pairs=[1, 3])
    visit(chain(["B", "B"]), w)
    assert w.edge.values.tolist() == [0, 1]  # B B gains, A A has no weight


def test_rich_edges_decide_the_path():
    w = Weights.zeros(2, 2)
    w.edge = crossed([0, 2], both=False, pairs=[1, 3])
    wrong, _ = visit(chain(["B", "B"]), w)
    assert wrong == 0 and w.edge.values.tolist() == [0, 2]


def test_paths_of_a_batch_are_found_with_the_same_weights():
    """One at a time, the first update makes the second visit right; together both are wrong."""
    data = chain(["B"])
    twice = Visits(np.array([0, 0]), np.array([1, 1]), np.ones(2))
    for batch_size, expected in ((1, 1.0), (2, 2.0)):
        w, state = Weights.zeros(1, 2), np.array([3.0])
        sums = w.zeros_like(np.float64)
        wrong = PerceptronLoss(data).descend(w, sums, twice, state, batch_size=batch_size)
        assert wrong == expected
        assert w.node.tolist() == [[-expected, expected]]
        late = 3 if batch_size == 1 else 3 + 4
        assert sums.node.tolist() == [[-late, late]]
        assert state.tolist() == [5.0]
