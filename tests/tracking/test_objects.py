"""Objects, pairs of frames and links made by hand: what is none is refused with its words."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from trellis.errors import DataError
from trellis.tracking.objects import (
    FramePair,
    Link,
    Objects,
    PairAnnotation,
    checked_events,
    checked_links,
    checked_pairs,
)

NONE = Objects([], np.empty((0, 2)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: checked_links(7), "links must be a list, got 7"),
        (lambda: checked_links("ab"), "links must be a list, got 'ab'"),
        (lambda: checked_links({"a": 1}), "links must be a list, got {'a': 1}"),
        (lambda: checked_links(np.array(7)), "links must be a list, got a number"),
        (lambda: checked_links([7]), "7 is not a link"),
        (lambda: checked_links([("", 0, 1, 2)]), r"\('', 0, 1, 2\) is not a link"),
        (lambda: checked_links([("", 0, 1, 2.5, "move")]), "is not a link"),
        (lambda: checked_events(None), "events must be a list, got None"),
        (lambda: checked_events([("", 0, 1, 2)]), r"\('', 0, 1, 2\) is not an event"),
        (lambda: checked_pairs(3), "pairs must be a list, got 3"),
        (lambda: checked_pairs([3]), r"pairs must be a list of frame pairs, got \[3\]"),
        (lambda: PairAnnotation(3), "links must be a list, got 3"),
        (lambda: PairAnnotation([(1, 2)]), r"\(1, 2\) is not a link of an annotation"),
        (lambda: PairAnnotation((), np.array(1)), "known_sources must be a list, got a number"),
        (lambda: PairAnnotation((), None, ["a"]), r"known_targets must be a tuple of ids, got"),
        (lambda: FramePair("", 0, NONE, NONE, extent=(0, 0, 1)), "extent must be four numbers"),
        (lambda: FramePair("", 0, NONE, NONE, extent=3), "extent must be four numbers, got 3"),
        (
            lambda: FramePair("", 0, NONE, NONE, extent=(0, 0, 1, 10**400)),
            r"extent must be four numbers, got \(0, 0, 1, 1000",
        ),
        (lambda: FramePair("", 0, NONE, None), "target must be an Objects, got None"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(DataError, match=message):
        make()


def test_lists_of_any_kind():
    rows = [("film", 0, 1, 2, "move")]
    assert checked_links(iter(rows)) == [Link(*rows[0])]
    assert checked_links(np.empty(0)) == []
    assert checked_events((("film", 0, 1, "appear"),)) == [("film", 0, 1, "appear")]


def test_an_extent_of_long_integers_is_one_of_floats():
    pair = FramePair("", 0, NONE, NONE, extent=(0, 0, 10**30, 10**30))
    assert pair.extent == (0.0, 0.0, 1e30, 1e30)
    assert all(isinstance(edge, float) for edge in pair.extent)


def test_links_over_gaps():
    assert Link("", 2, 0, 1, "move") == Link("", 2, 0, 1, "move", 3)
    assert [Link("", 2, 0, 1, "move", t).gap for t in (None, 3, 5)] == [0, 0, 2]
    assert checked_links([("", 2, 0, 1, "move", 4)])[0].frame_target == 4
    assert pickle.loads(pickle.dumps(Link("", 2, 0, 1, "move", 4))).gap == 1
    for target in (2, 1):
        with pytest.raises(DataError, match="its target is not in a later frame"):
            checked_links([("", 2, 0, 1, "move", target)])
