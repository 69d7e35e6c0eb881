"""Pieces made by hand: what does not fit together is refused."""

from __future__ import annotations

import pytest

from trellis.decompose import Pieces
from trellis.errors import DataError
from trellis.structures import Forest

EDGE = Forest.of([0, 2], [[0, 1]])
RISE = "offsets must rise, and be one more than the samples of the pieces"
FOREST = "nodes and offsets must be the order and the trees of the forest"


@pytest.mark.parametrize(
    ("offsets", "sample", "more", "message"),
    [
        ([0, 2, 2], [0, 1], {}, RISE),
        ([0, 2], [0, 1], {}, RISE),
        ([0, 1, 2], [1, 0], {}, "pieces must come in the order of their samples"),
        ([0, 2], [0], {"nodes": [0, 0]}, "nodes must hold each of the positions 0 to 1 once"),
        ([0, 2], [0], {"nodes": [1, 2]}, "nodes must hold each of the positions 0 to 1 once"),
        ([0, 2], [0], {"forest": EDGE}, FOREST),
        ([0, 2], [0], {"forest": EDGE, "nodes": [1, 0]}, FOREST),
        ([0, 1, 2], [0, 0], {"forest": EDGE, "nodes": [0, 1]}, FOREST),
        ([0, 2], [0], {"edges": [[0, 2]]}, r"edges hold 2 at index \(0, 1\); expected 0 to 1"),
        ([0, 2], [0], {"edges": [[0, 1]], "kept": [0, 1]}, r"kept have shape \(2,\); expected"),
        ([0, 2], [0], {"overlap": -1}, "overlap must be an integer of at least 0, got -1"),
    ],
)
def test_bad_input(offsets, sample, more, message):
    with pytest.raises(DataError, match=message):
        Pieces(offsets, sample, **more)


def test_pieces_of_a_forest_are_its_trees():
    assert len(Pieces([0, 2], [0], nodes=[0, 1], forest=EDGE)) == 1
