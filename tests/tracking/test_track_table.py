"""Tracks of a table of objects as links: against tracks that are written, and what is refused."""

from __future__ import annotations

import csv

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.errors import DataError
from trellis.tracking import annotated_events, assemble_tracks, read_detections
from trellis.tracking.objects import Link


def table(*rows):
    names = ("frame", "track", "parent", "x", "y")
    full = [(*(*row, -1)[:3], i, 0) for i, row in enumerate(rows)]
    return dict(zip(names, zip(*full, strict=True), strict=True))


def links(objects):
    return annotated_events(read_detections(objects, objects))[0]


def test_parents_gaps_and_objects_of_no_track():
    objects = table(
        (0, 1), (1, 1), (3, 1),  # missed in frame 2
        (4, 2, 1), (4, 3, 1), (5, 3, 1),
        (2, -1), (2, float("nan")), (5, 4, 4), (5, 5, 0),
    )  # fmt: skip
    assert {link[1:] for link in links(objects)} == {
        (0, 0, 0, "move", 1), (1, 0, 0, "move", 3), (3, 0, 0, "division", 4),
        (3, 0, 1, "division", 4), (4, 1, 0, "move", 5),
    }  # fmt: skip


def test_a_track_may_be_called_0():
    objects = table((0, 0), (1, 0), (2, 1, 0), (2, 2, 0))
    assert sorted(link.kind for link in links(objects)) == ["division", "division", "move"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [(0, 1), (1, 1), (1, 1)],
            r"row 2: track 1 is already in frame 1 \(links, row 1\); an object more",
        ),
        ([(0, 1), (1, 2, 7)], "row 1: there is no track 7 to be the parent of track 2"),
        ([(0, 1), (1, 2, 1), (2, 2, 3), (0, 3)], "row 2: track 2 has two parents, 1 and 3"),
        ([(1, 1), (0, 2, 1)], "row 1: the parent 1 of track 2 has no object before frame 0"),
        ([(0, 1), (1, 0.5)], "column 'track': a track is called by a whole number up to"),
        ([(0, 1), (1, 1e300)], "column 'track': a track is called by a whole number up to"),
    ],
)
def test_tracks_that_cannot_be(rows, message):
    with pytest.raises(DataError, match=message):
        links(table(*rows))


def test_a_table_of_neither():
    objects = table((0, 1), (1, 1))
    with pytest.raises(DataError, match="links has no column 'source_id', only frame, x; expected"):
        read_detections(objects, {"frame": [0], "x": [1]})
    with pytest.raises(DataError, match="links has no column 'target_id'"):
        read_detections(objects, {"frame": [0], "source_id": [1]})


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_written_tracks_are_truth(tmp_path_factory, data):
    """A random forest of tracks: its links, through a written file, are its links again."""
    n = data.draw(st.integers(2, 5))
    sizes = [data.draw(st.integers(1, 4)) for _ in range(n)]
    objects = {
        "frame": [t for t, size in enumerate(sizes) for _ in range(size)],
        "id": [3 * i for size in sizes for i in range(size)],
        "x": [10.0 * i for size in sizes for i in range(size)],
        "y": [float(t) for t, size in enumerate(sizes) for _ in range(size)],
    }
    pairs = read_detections(objects)
    made = []
    for t in range(n - 1):
        free = [3 * i for i in range(sizes[t + 1])]
        for i in range(sizes[t]):
            k = min(data.draw(st.integers(0, 2)), len(free))
            targets = [free.pop() for _ in range(k)]
            kind = "division" if k == 2 else "move"
            made += [Link("", t, 3 * i, target, kind) for target in targets]
    result = assemble_tracks(pairs, made)
    path = tmp_path_factory.mktemp("tracks") / "tracks.csv"
    result.write(path)
    again, _ = annotated_events(read_detections(path, path))
    assert set(again) == set(made)
    with path.open() as file:
        assert next(csv.reader(file))[:3] == ["sequence", "frame", "id"]
