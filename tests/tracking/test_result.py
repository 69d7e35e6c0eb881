"""Tracks from links, against following every object by hand."""

from __future__ import annotations

import csv
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.errors import DataError
from trellis.tracking.link_chances import LinkChance
from trellis.tracking.objects import FramePair, Link, Objects, PairAnnotation
from trellis.tracking.result import (
    Track,
    TrackedObject,
    TrackEvent,
    annotated_events,
    assemble_tracks,
)


def movie(*frames, sequence="", first=0):
    """Frame pairs of objects on a line: positions of each frame, ids from 0."""
    objects = [
        Objects(np.arange(len(x)), np.stack([np.array(x, float), np.zeros(len(x))], axis=1))
        for x in frames
    ]
    return [
        FramePair(sequence, first + t, objects[t], objects[t + 1]) for t in range(len(frames) - 1)
    ]


def rows(tracks):
    return [track[1:] for track in tracks]


def test_moves_and_divisions():
    pairs = movie([0, 5], [0, 1, 5], [2, 7], first=3)
    links = [
        *[Link("", 3, 0, j, "division") for j in (1, 0)],
        Link("", 3, 1, 2, "move"),
        Link("", 4, 1, 0, "move"),
    ]
    events = [TrackEvent("", 5, 1, "appear")]
    result = assemble_tracks(pairs, iter(links), iter(events))
    assert rows(result.tracks) == [
        (1, 3, 3, -1),
        (2, 3, 4, -1),
        (3, 4, 4, 1),
        (4, 4, 5, 1),
        (5, 5, 5, -1),
    ]
    assert [o.track for o in result.objects] == [1, 2, 3, 4, 2, 4, 5]
    assert result.objects[-1] == TrackedObject("", 5, 1, 5, 7.0, 0.0)
    assert (result.links, result.events) == (links, events)


def test_split_goes_on_in_the_nearer_part():
    links = [Link("", 0, 0, j, "split") for j in (0, 1)]
    assert rows(assemble_tracks(movie([4], [0, 5]), links).tracks) == [(1, 0, 1, -1), (2, 1, 1, -1)]
    assert [o.track for o in assemble_tracks(movie([4], [0, 5]), links).objects] == [1, 2, 1]
    assert [o.track for o in assemble_tracks(movie([4], [3, 5]), links).objects] == [1, 1, 2]


def test_merge_goes_on_from_the_nearer_source():
    links = [Link("", 0, i, 0, "merge") for i in (0, 1)]
    assert rows(assemble_tracks(movie([0, 5], [4]), links).tracks) == [(1, 0, 0, -1), (2, 0, 1, -1)]
    assert [o.track for o in assemble_tracks(movie([3, 5], [4]), links).objects] == [1, 2, 1]


def test_each_sequence_counts_from_one():
    pairs = [*movie([0], [0], sequence="b"), *movie([0, 1], [0], sequence="a")]
    tracks = assemble_tracks(pairs, [Link("b", 0, 0, 0, "move")]).tracks
    assert [(t.sequence, t.track) for t in tracks] == [("a", 1), ("a", 2), ("a", 3), ("b", 1)]


def test_patches_of_a_frame_are_one_frame():
    (pair,) = movie([0, 9], [0, 9])
    patches = [
        FramePair("", 0, pair.source.take(rows), pair.target.take(rows))
        for rows in ([1], [0], [0, 1])
    ]
    result = assemble_tracks(patches, [Link("", 0, i, i, "move") for i in (0, 1)])
    assert rows(result.tracks) == [(1, 0, 1, -1), (2, 0, 1, -1)]


@pytest.mark.parametrize(
    ("links", "message"),
    [
        (
            [Link("", 0, 0, 0, "hop")],
            "object 0 of frame 0: unknown kind of link 'hop'; known are move",
        ),
        (
            [Link("", 0, 0, 9, "move")],
            "object 9 of frame 1 has a link, but is not among the objects",
        ),
        ([Link("a", 0, 0, 0, "move")], "object 0 of frame 0 of sequence 'a' has a link"),
        (
            [Link("", 0, 0, 0, "move"), Link("", 0, 1, 0, "move")],
            "object 0 of frame 1 has two pasts, 0 and 1; remove one of the links",
        ),
        (
            [Link("", 0, 0, 1, "move"), Link("", 0, 0, 0, "division")],
            "object 0 of frame 0 has two fates, 0 and 1; remove one of the links",
        ),
    ],
)
def test_links_that_cannot_be(links, message):
    with pytest.raises(DataError, match=message):
        assemble_tracks(movie([0, 1], [0, 1]), links)


@settings(max_examples=40)
@given(st.data())
def test_tracks_of_random_movies(data):
    """Every object is in the track that following its past leads to."""
    sizes = data.draw(st.lists(st.integers(1, 5), min_size=2, max_size=5))
    pairs = movie(*(data.draw(st.permutations(range(n))) for n in sizes))
    links = []
    past = {}
    for t in range(len(sizes) - 1):
        free = list(data.draw(st.permutations(range(sizes[t + 1]))))
        for i in range(sizes[t]):
            kind = data.draw(st.sampled_from(["move", "division", "none"]))
            n = {"move": 1, "division": 2, "none": 0}[kind]
            if n <= len(free):
                for j in [free.pop() for _ in range(n)]:
                    links.append(Link("", t, i, j, kind))
                    past[t + 1, j] = (t, i), kind
    result = assemble_tracks(pairs, data.draw(st.permutations(links)))
    track = {(o.frame, o.id): o.track for o in result.objects}
    members = {}
    for key, number in track.items():
        members.setdefault(number, []).append(key)
    assert len(track) == sum(sizes)
    assert [t.track for t in result.tracks] == list(range(1, len(members) + 1))
    begins = []
    for t in result.tracks:
        own = sorted(members[t.track])
        assert [frame for frame, _ in own] == list(range(t.begin, t.end + 1))
        before, kind = past.get(own[0], (None, "none"))
        assert t.parent == (track[before] if kind == "division" else -1)
        assert kind != "move"
        assert all(past[b] == (a, "move") for a, b in pairwise(own))
        begins.append(own[0])
    assert begins == sorted(begins)


def test_what_annotations_say():
    (pair,) = movie([0, 1, 2], [0, 1])
    link = (0, 1, "move")
    for note, expected in [
        (None, ([], [])),
        (PairAnnotation((link,), (), ()), ([Link("", 0, *link)], [])),
        (
            PairAnnotation((link,), (2, 0), None),
            (
                [Link("", 0, *link)],
                [TrackEvent("", 0, 2, "disappear"), TrackEvent("", 1, 0, "appear")],
            ),
        ),
        (
            PairAnnotation(),
            (
                [],
                [TrackEvent("", 0, i, "disappear") for i in range(3)]
                + [TrackEvent("", 1, j, "appear") for j in range(2)],
            ),
        ),
    ]:
        assert annotated_events([FramePair("", 0, pair.source, pair.target, note)]) == expected


def test_written_table(tmp_path):
    pairs = movie([0.1], [0.25, 3], sequence='a "b", c')
    links = [Link(pairs[0].sequence, 0, 0, j, "division") for j in (0, 1)]
    assemble_tracks(pairs, links).write(tmp_path / "tracks.csv")
    with (tmp_path / "tracks.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [
            ["sequence", "frame", "id", "x", "y", "track", "parent"],
            [pairs[0].sequence, "0", "0", "0.1", "0.0", "1", "-1"],
            [pairs[0].sequence, "1", "0", "0.25", "0.0", "2", "1"],
            [pairs[0].sequence, "1", "1", "3.0", "0.0", "3", "1"],
        ]
    assert Track("", 1, 0, 0, -1)._fields == ("sequence", "track", "begin", "end", "parent")


def test_tracks_go_on_over_gaps():
    """An object that is missed for a frame or two is in one track all the same."""
    pairs = movie([0, 5], [5], [0, 5], [1, 5])
    links = [
        Link("", 0, 0, 0, "move", 2),
        Link("", 0, 1, 0, "move"),
        Link("", 1, 0, 1, "move"),
        Link("", 2, 0, 0, "division", 3),
        Link("", 2, 0, 1, "division", 3),
    ]
    result = assemble_tracks(pairs, links)
    assert rows(result.tracks) == [(1, 0, 2, -1), (2, 0, 2, -1), (3, 3, 3, 1), (4, 3, 3, 1)]
    assert [(o.frame, o.id) for o in result.objects if o.track == 1] == [(0, 0), (2, 0)]
    with pytest.raises(DataError, match="object 0 of frame 2 has two pasts, 0 of frame 0 and 0 of"):
        assemble_tracks(pairs, [*links[:2], Link("", 1, 0, 0, "move")])


def test_probabilities_are_a_column(tmp_path):
    pairs = movie([0, 5, 50], [1, 6, 90])
    links = [Link("", 0, 0, 0, "merge"), Link("", 0, 1, 0, "merge")]
    chances = [LinkChance(p, p, None, 0.1, (1, 2), 0.05) for p in (0.75, 0.25)]
    result = assemble_tracks(pairs, links, chances=chances)
    assert result.probabilities == [0.75, 0.25]
    result.write(tmp_path / "tracks.csv")
    with (tmp_path / "tracks.csv").open(newline="") as file:
        header, *lines = csv.reader(file)
    assert header[-2:] == ["parent", "probability"]
    assert [line[-1] for line in lines] == ["", "", "", "0.25", "", ""]  # the less probable one
    with pytest.raises(DataError, match="there are 2 links and 1 chances"):
        assemble_tracks(pairs, links, chances=chances[:1])
