"""Tracks in parts without gaps: against the runs of frames that each object list has."""

from __future__ import annotations

import logging

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trellis.tracking import read_ctc, write_ctc
from trellis.tracking.gap_parts import without_gaps
from trellis.tracking.result import Track, TrackedObject, TrackingResult


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sets(st.integers(0, 8), min_size=1)), max_size=6)
)
def test_parts_are_runs(movie):
    tracks, objects, number = [], [], {"a": 0, "b": 0}
    for i, (sequence, frames) in enumerate(movie):
        number[sequence] += 1
        ended = [t.track for t in tracks if t.sequence == sequence and t.end < min(frames)]
        parent = ended[0] if ended else -1
        tracks.append(Track(sequence, number[sequence], min(frames), max(frames), parent))
        objects += [TrackedObject(sequence, t, i, number[sequence], 0.0, 0.0) for t in frames]
    tracks.sort()
    parts, moved = without_gaps(tracks, objects)
    assert [o._replace(track=0) for o in moved] == [o._replace(track=0) for o in objects]
    home = {(o.sequence, o.track): (o.sequence, o.id) for o in moved}
    names = {(p.sequence, p.track): p for p in parts}
    assert len(names) == len(parts)
    for key, part in names.items():
        own = sorted(o.frame for o in moved if (o.sequence, o.track) == key)
        assert own == list(range(part.begin, part.end + 1))
    for track in tracks:
        first = names[track.sequence, track.track]  # keeps its number
        assert first.begin == track.begin
        above = [n for n in parts if n.track == first.parent and n.sequence == track.sequence]
        if track.parent == -1:
            assert first.parent == -1
        else:
            (parent,) = (t for t in tracks if t[:2] == (track.sequence, track.parent))
            assert above[0].end == parent.end  # its last part
    for part in parts:
        if part.track > number[part.sequence]:  # a later part
            before = names[part.sequence, part.parent]
            assert home[part[:2]] == home[before[:2]]
            assert before.end < part.begin - 1


def test_written_in_parts_and_said(tmp_path, caplog):
    tracks = [Track("", 1, 0, 3, -1), Track("", 2, 0, 3, -1)]
    objects = [TrackedObject("", t, 1, 1, 0.0, 0.0) for t in (0, 1, 3)]
    objects += [TrackedObject("", t, 0, 2, 0.0, 0.0) for t in range(4)]
    masks = np.zeros((4, 2, 4), int)
    masks[:, 0], masks[[0, 1, 3], 1] = 1, 2
    with caplog.at_level(logging.WARNING, "trellis"):
        write_ctc(TrackingResult([], [], tracks, objects), tmp_path, masks={"": masks})
    assert read_ctc(tmp_path) == [
        Track("", 1, 0, 1, -1), Track("", 2, 0, 3, -1), Track("", 3, 3, 3, 1),
    ]  # fmt: skip
    assert "allows none; gaps: 1" in caplog.text
    last = (tmp_path / "mask003.tif").read_bytes()[-16:]
    assert np.frombuffer(last, "<u2").tolist() == [2] * 4 + [3] * 4
