"""Tracks of ground truth as links between labels."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from trellis.errors import DataError
from trellis.tracking.ctc_links import links_of_tracks


def rows(tmp_path, text, frames):
    (tmp_path / "man_track.txt").write_text(text)
    seen = {t: np.array(sorted(labels)) for t, labels in enumerate(frames)}
    table = links_of_tracks(tmp_path, {"": seen})
    columns = ("frame", "source_id", "target_id", "kind")
    return sorted(zip(*(table[name] for name in columns), strict=True))


def test_moves_divisions_and_renamed_tracks(tmp_path):
    text = "1 0 1 0\n2 2 3 1\n3 2 3 1\n4 0 0 0\n7 1 3 4\n"
    assert rows(tmp_path, text, [{1, 4}, {1, 7}, {2, 3, 7}, {2, 3, 7}]) == [
        (0, 0, 0, "move"),
        (0, 3, 6, "single_daughter"),
        (1, 0, 1, "division"),
        (1, 0, 2, "division"),
        (1, 6, 6, "move"),
        (2, 1, 1, "move"),
        (2, 2, 2, "move"),
        (2, 6, 6, "move"),
    ]


def test_missed_frames_and_late_daughters(tmp_path, caplog):
    text = "1 0 3 0\n2 5 5 1\n3 5 5 1\n4 0 5 0\n"
    frames = [{1, 4}, {4}, {1, 4}, {1, 4}, {4}, {2, 3, 4}]
    with caplog.at_level(logging.WARNING, "trellis"):
        found = rows(tmp_path, text, frames)
    assert [row for row in found if row[1] != 3] == [(0, 0, 0, "move"), (2, 0, 0, "move")]
    assert "2 parent(s) that end before their daughters begin: not annotated" in caplog.text
    table = links_of_tracks(tmp_path, {"": {t: np.array(sorted(f)) for t, f in enumerate(frames)}})
    steps = zip(table["frame"], table["frame_target"], table["source_id"], strict=True)
    assert [step for step in steps if step[2] == 0] == [(0, 2, 0), (2, 3, 0)]


@pytest.mark.parametrize(
    ("text", "frames", "message"),
    [
        ("1 0 1 0\n", [{1}, {1, 9}], "frame 1 has the label 9, but track 9 is not there; the tr"),
        ("1 1 2 0\n", [{1}, {1}], "frame 0 has the label 1, but track 1 is of frames 1 to 2"),
        (
            "1 0 0 0\n2 1 1 0\n",
            [{1}, {2}],
            "the tracks have no link: none of them is in two frames",
        ),
    ],
)
def test_tracks_of_other_images(tmp_path, text, frames, message):
    with pytest.raises(DataError, match=message):
        rows(tmp_path, text, frames)


def test_tracks_of_several_sequences(tmp_path):
    (tmp_path / "man_track.txt").write_text("1 0 1 0\n")
    frames = {0: np.array([1]), 1: np.array([1])}
    both = {"a": frames, "b": frames}
    with pytest.raises(DataError, match="has the tracks of one sequence, and there are 2; give a"):
        links_of_tracks(str(tmp_path), both)
    with pytest.raises(DataError, match="links has no tracks of sequence 'b'; it has a"):
        links_of_tracks({"a": tmp_path}, both)
    table = links_of_tracks({"a": tmp_path, "b": tmp_path}, both)
    assert table["sequence"] == ["a", "b"]
