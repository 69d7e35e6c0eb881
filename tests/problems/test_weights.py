"""The matrices of weights fit each other, and the samples they are for."""

from __future__ import annotations

import numpy as np
import pytest

from trellis.errors import DataError
from trellis.problems import EdgeWeights, Weights


@pytest.mark.parametrize(
    ("node", "transitions"),
    [
        (np.zeros(2), np.zeros((2, 2))),
        (np.float64(0), np.zeros((2, 2))),
        (np.zeros((3, 2)), np.zeros((3, 3))),
        (np.zeros((3, 2)), np.zeros((2, 3))),
        (np.zeros((3, 2)), np.zeros(2)),
        (np.zeros((3, 2)), np.zeros((1, 1, 2, 2))),
    ],
)
def test_matrices_that_do_not_fit(node, transitions):
    with pytest.raises(DataError, match=r"weights have node .* and transitions .*; expected \(fea"):
        Weights(node, transitions)


def test_edges_are_edge_weights():
    assert Weights(np.zeros((3, 2)), np.zeros((4, 2, 2))).edge is None
    edge = EdgeWeights([0, -1, 1], [], [], np.zeros(8), both=False)
    assert Weights(np.zeros((3, 2)), np.zeros((2, 2)), edge).edge is edge
    with pytest.raises(DataError, match="edge must be None or an EdgeWeights, got 3"):
        Weights(np.zeros((3, 2)), np.zeros((2, 2)), 3)
