"""Links to later frames than the next: gaps of annotations, and what is no link of the model."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.errors import DataError
from trellis.tracking import FlowTracker, TrackingModel
from trellis.tracking.annotation import annotated_hypotheses
from trellis.tracking.annotation_extent import n_annotated_events
from trellis.tracking.objects import EVENTS, FramePair, Link, Objects, PairAnnotation
from trellis.tracking.patches import patchify
from trellis.tracking.problem import as_annotation
from trellis.tracking.reading import read_detections
from trellis.tracking.result import annotated_events, assemble_tracks


def table(*counts):
    """So many objects in each frame, in a row."""
    rows = [(t, i) for t, n in enumerate(counts) for i in range(n)]
    frame, ids = zip(*rows, strict=True)
    return {"frame": frame, "id": ids, "x": [10 * i for i in ids], "y": [0] * len(ids)}


def links(*rows, **more):
    names = ("frame", "source_id", "target_id", "frame_target", "kind")
    return dict(zip(names, zip(*rows, strict=True), strict=False)) | more


def test_a_gap_is_kept_and_its_ends_disappear_and_appear():
    pairs = read_detections(table(2, 1, 2), links((0, 0, 0, 1), (0, 1, 1, 2), (1, 0, 0, None)))
    first, second = (pair.annotation for pair in pairs)
    assert first == PairAnnotation(((0, 0, "move"),), gaps=((1, 1, 2),))
    assert second == PairAnnotation(((0, 0, "move"),))
    told, events = annotated_events(pairs)
    assert [link[1:] for link in told] == [
        (0, 0, 0, "move", 1), (1, 0, 0, "move", 2), (0, 1, 1, "move", 2),
    ]  # fmt: skip
    assert events == []
    kinds = [EVENTS[kind] for kind in annotated_hypotheses(pairs[0], first).kind]
    assert sorted(kinds) == ["disappear", "move"]
    tracks = assemble_tracks(pairs, told).tracks
    assert [track[1:] for track in tracks] == [(1, 0, 2, -1), (2, 0, 2, -1)]


def test_a_gap_alone_says_nothing_of_others_unless_links_are_complete():
    objects, rows = table(2, 2, 2), links((0, 1, 1, 2))
    first, second = (p.annotation for p in read_detections(objects, rows, complete=False))
    assert first == PairAnnotation((), (1,), (), ((1, 1, 2),))
    assert second == PairAnnotation((), (), (1,))
    first, second = (p.annotation for p in read_detections(objects, rows))
    assert first == PairAnnotation((), gaps=((1, 1, 2),))
    assert second == PairAnnotation((), (), (1,))


def test_a_frame_of_which_all_objects_were_missed():
    objects = {"frame": [0, 1, 3, 4], "id": [0] * 4, "x": [0, 1, 3, 4], "y": [0] * 4}
    pairs = read_detections(objects, links((0, 0, 0, 1), (1, 0, 0, 3), (3, 0, 0, 4)))
    assert [(p.frame, len(p.source), len(p.target)) for p in pairs] == [
        (0, 1, 1), (1, 1, 0), (2, 0, 1), (3, 1, 1),
    ]  # fmt: skip
    (track,) = assemble_tracks(pairs, annotated_events(pairs)[0]).tracks
    assert (track.begin, track.end) == (0, 4)
    for tracker in (TrackingModel(), FlowTracker()):
        assert tracker.fit(pairs).predict(pairs).links


@pytest.mark.parametrize("complete", [True, False])
def test_divisions_and_merges_over_gaps(caplog, complete):
    rows = links(
        (0, 0, 0, 1, "division"), (0, 0, 0, 2, "division"),  # one daughter is seen later
        (0, 1, 1, 2, "division"), (0, 1, 2, 2, "division"),  # both are
        (1, 2, 3, 2, "merge"), (0, 3, 3, 2, "merge"),  # one source was last seen before
    )  # fmt: skip
    with caplog.at_level(logging.WARNING, "trellis"):
        first, second = read_detections(table(4, 3, 4), rows, complete=complete)
    assert first.annotation.links == ((0, 0, "move"),)
    assert second.annotation.links == ((2, 3, "move"),)
    assert first.annotation.gaps == second.annotation.gaps == ()
    known = annotated_hypotheses(first, first.annotation)
    gone = known.source[known.kind == EVENTS.index("disappear"), 0]
    assert gone.tolist() == [1, 3] if not complete else {1, 3} <= set(gone.tolist())
    assert "4 link(s) of divisions, splits or merges to a later frame than the next" in caplog.text


def test_a_late_link_alone_of_another_kind(caplog):
    objects, rows = table(1, 1, 1), links((0, 0, 0, 2, "division"))
    with caplog.at_level(logging.WARNING, "trellis"):
        pairs = read_detections(objects, rows)
    assert pairs[0].annotation.gaps == ((0, 0, 2),)
    assert "1 division(s), split(s) or merge(s) with one link: moves" in caplog.text
    pairs = read_detections(objects, rows, complete=False)
    assert [pair.annotation for pair in pairs] == [None, None]
    assert "1 division(s), split(s) or merge(s) with one link only: not annotated" in caplog.text
    single = links((0, 0, 0, 2, "single_daughter"))
    assert read_detections(objects, single, complete=False)[0].annotation.gaps == ((0, 0, 2),)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (links((0, 0, 0, 0)), "row 0: frame_target 0 is not after frame 0"),
        (links((0, 0, 0, 1.5)), "column 'frame_target': '1.5' is not a whole number"),
        (links((0, 0, 5, 2)), "target_id 5 is not in frame 2 of objects; correct the link or add"),
        (links((0, 5, 0, 2)), "source_id 5 is not in frame 0 of objects"),
        (links((0, 0, 0, 9)), "target_id 0 is not in frame 9 of objects"),
        (
            links((0, 0, 0, 2), (0, 0, 0, 2)),
            r"row 1: the link 0 -> 0 is already there \(links, row 0\); remove one",
        ),
    ],
)
def test_late_links_that_cannot_be(rows, message):
    with pytest.raises(DataError, match=message):
        read_detections(table(1, 1, 1), rows)


def test_a_link_over_too_many_frames():
    objects = {"frame": [0, 1, 10**9], "id": [0] * 3, "x": [0, 1, 3], "y": [0] * 3}
    with pytest.raises(DataError, match="passes over more than 1000 frames without objects"):
        read_detections(objects, links((1, 0, 0, 10**9)))


@pytest.mark.parametrize(
    ("gaps", "known", "message"),
    [
        (((9, 0, 2),), (), "the gap from 9 to 0 of frame 2 names object 9, which is not in"),
        (((0, 0, 1),), (), "the gap from 0 to 0 of frame 1 is none; call it a link"),
        (((0, 0, 2),), ((0, 0, "move"),), "is a second fate of source 0; remove its links or it"),
        (((0, 0, 2), (0, 0, 3)), (), "source 0 has two gaps; remove one of them"),
    ],
)
def test_gaps_that_contradict(gaps, known, message):
    cells = Objects(np.arange(2), np.zeros((2, 2)))
    with pytest.raises(DataError, match=message):
        annotated_hypotheses(FramePair("", 0, cells, cells), PairAnnotation(known, gaps=gaps))


def test_annotations_with_gaps_are_written_and_cut():
    note = PairAnnotation((), (), (), [[1, 0, 2]])
    assert as_annotation(note.as_dict()) == note
    assert "gaps" not in PairAnnotation().as_dict()
    with pytest.raises(DataError, match="is not a gap of an annotation"):
        PairAnnotation(gaps=((1, 2),))
    cells = Objects(np.arange(2), np.array([[1.0, 1.0], [9.0, 1.0]]))
    pair = FramePair("", 0, cells, cells, note, (0.0, 0.0, 10.0, 5.0))
    assert n_annotated_events([pair]) == 1
    left, right = patchify([pair], 5.0)
    assert left.annotation.gaps == ()
    assert right.annotation == PairAnnotation((), None, (), ((1, 0, 2),))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_tracks_with_missed_objects_come_back(data):
    """Tracks as lists of the frames they are seen in, against what is read of their links."""
    seen = data.draw(
        st.lists(st.sets(st.integers(0, 6), min_size=1, max_size=6), min_size=1, max_size=5)
    )
    seen.append({0, 1})  # two frames in a row, which a movie must have
    objects = [(t, i) for i, frames in enumerate(seen) for t in frames]
    rows = [
        (t, i, i, u)
        for i, frames in enumerate(seen)
        for t, u in zip(sorted(frames), sorted(frames)[1:], strict=False)
    ]
    frame, ids = zip(*data.draw(st.permutations(objects)), strict=True)
    made = {"frame": frame, "id": ids, "x": ids, "y": frame}
    pairs = read_detections(made, links(*data.draw(st.permutations(rows))))
    told, events = annotated_events(pairs)
    assert {link.ends for link in told} == {Link("", t, i, j, "", u).ends for t, i, j, u in rows}
    tracks = assemble_tracks(pairs, told).tracks
    whole = [(min(frames), max(frames)) for frames in seen]
    if {t for t, _ in objects} == set(range(max(frame) + 1)):  # no frame without a neighbour
        assert sorted((track.begin, track.end) for track in tracks) == sorted(whole)
    for event in events:
        first = event.frame == min(seen[event.id])
        assert first if event.kind == "appear" else event.frame == max(seen[event.id])
    for pair in pairs:
        if pair.annotation is not None:
            annotated_hypotheses(pair, pair.annotation)  # holds together
