"""The layer of tracks of napari."""

from __future__ import annotations

import numpy as np
import pytest

from trellis.errors import DataError
from trellis.tracking import assemble_tracks, read_detections, to_napari
from trellis.tracking.objects import Link

CELLS = {"frame": [0, 1, 1, 2], "id": [4, 1, 2, 1], "x": [0, 1, 2, 3], "y": [9, 8, 7, 6]}
LINKS = [
    Link("", 0, 4, 1, "division"), Link("", 0, 4, 2, "division"), Link("", 1, 1, 1, "move")
]  # fmt: skip


def test_rows_by_track_and_time():
    data, graph, properties = to_napari(assemble_tracks(read_detections(CELLS), LINKS))
    assert data.tolist() == [[1, 0, 9, 0], [2, 1, 8, 1], [2, 2, 6, 3], [3, 1, 7, 2]]
    assert graph == {2: [1], 3: [1]}
    assert properties["id"].tolist() == [4, 1, 1, 2]


def test_three_dimensions_and_nothing():
    deep = read_detections({**CELLS, "z": [5, 6, 7, 8]})
    data, _, _ = to_napari(assemble_tracks(deep, LINKS))
    assert data[0].tolist() == [1, 0, 5, 9, 0]
    data, graph, properties = to_napari(assemble_tracks([], []))
    assert (data.shape, graph, properties["id"].shape) == ((0, 4), {}, (0,))
    assert data.dtype == np.float64


def test_one_movie_a_layer():
    two = read_detections({**CELLS, "frame": [0, 1, 0, 1], "sequence": ["a", "a", "b", "b"]})
    with pytest.raises(DataError, match="a layer of napari holds one movie"):
        to_napari(assemble_tracks(two, []))
