"""Hypotheses: gates against brute force, every error."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracking_problems import CROWD, frame_pair, listed
from trellis.errors import DataError
from trellis.tracking.annotation import fixed_variables
from trellis.tracking.hypotheses import make_hypotheses
from trellis.tracking.objects import EVENTS, Objects, PairAnnotation


def enumerate_hypotheses(pair, events, k, max_distance):
    """The definition, object by object."""

    def nearest(points, others):
        for p in points:
            far = [(np.sqrt(((q - p) ** 2).sum()), j) for j, q in enumerate(others)]
            yield [j for d, j in sorted(far)[:k] if d <= max_distance]

    a, b = pair.source.position, pair.target.position
    found = {("appear", (), (j,)) for j in range(len(b))}
    found |= {("disappear", (i,), ()) for i in range(len(a))}
    for i, near in enumerate(nearest(a, b)):
        found |= {("move", (i,), (j,)) for j in near}
        for two in itertools.combinations(sorted(near), 2):
            found |= {("division", (i,), two), ("split", (i,), two)}
    for j, near in enumerate(nearest(b, a)):
        found |= {("move", (i,), (j,)) for i in near}
        found |= {("merge", two, (j,)) for two in itertools.combinations(sorted(near), 2)}
    return sorted(
        (h for h in found if h[0] in events), key=lambda h: (EVENTS.index(h[0]), h[1], h[2])
    )


POINTS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=7)
SUBSETS = st.sets(st.sampled_from(("division", "split", "merge"))).map(
    lambda more: tuple(e for e in EVENTS if e in more or e in ("move", "appear", "disappear"))
)


@given(POINTS, POINTS, SUBSETS, st.integers(1, 4), st.sampled_from([1.0, 2.0, 3.5, np.inf]))
@settings(max_examples=60)
def test_gates_are_as_defined(source, target, events, k, max_distance):
    """On a small grid, where many objects coincide or are at the same distance."""
    pair = frame_pair(source, target)
    h = make_hypotheses(pair, events=events, n_neighbors=k, max_distance=max_distance)
    assert listed(h) == enumerate_hypotheses(pair, events, k, max_distance)
    assert h.kind.dtype == np.int8
    assert h.source.dtype == h.target.dtype == np.int64


def test_gates_of_a_larger_crowd():
    rng = np.random.default_rng(5)
    pair = frame_pair(rng.random((60, 2)) * 100, rng.random((50, 2)) * 100)
    h = make_hypotheses(pair, events=EVENTS, n_neighbors=4, max_distance=25.0)
    assert listed(h) == enumerate_hypotheses(pair, EVENTS, 4, 25.0)


def test_many_objects_in_one_place():
    """More ties than the first question to the tree shows."""
    h = make_hypotheses(frame_pair([(1, 1)] * 40, [(1, 1)] * 50), n_neighbors=2, max_distance=1.0)
    moves = {(a[0], b[0]) for kind, a, b in listed(h) if kind == "move"}
    assert moves == {(i, j) for i in range(40) for j in range(50) if i < 2 or j < 2}


def test_target_finds_a_source_that_does_not_find_it():
    """Three targets are nearer to the source than the one whose only candidate it is."""
    pair = frame_pair([(0, 0)], [(1, 0), (0, 1), (3, 0)])
    h = make_hypotheses(pair, n_neighbors=2, max_distance=5.0)
    assert ("move", (0,), (2,)) in listed(h)
    assert ("division", (0,), (0, 2)) not in listed(h)


@given(POINTS, POINTS)
@settings(max_examples=30)
def test_covers(source, target):
    pair = frame_pair(source, target)
    n = len(source)
    h = make_hypotheses(pair, events=EVENTS, max_distance=3.0)
    covers = h.covers(n)
    assert covers.dtype == np.int32
    assert covers.shape == (len(h), 3)
    for row, (_, a, b) in zip(covers.tolist(), listed(h), strict=True):
        rows = [*a, *(n + j for j in b)]
        assert row == rows + [-1] * (3 - len(rows))


def test_empty_frames():
    assert len(make_hypotheses(frame_pair([], []), events=EVENTS, max_distance=1.0)) == 0
    pair = frame_pair([], [(0, 0)])
    assert listed(make_hypotheses(pair, events=EVENTS, max_distance=1.0)) == [("appear", (), (0,))]
    assert fixed_variables(pair, make_hypotheses(pair, max_distance=1.0), PairAnnotation()) == [1]


# ------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"events": ("move", "appear", "disappear", "fusion")}, "events must be a list of move"),
        ({"events": "move"}, "events must be a list of move"),
        ({"events": ("move", "division")}, "events must be a list with move, appear and"),
        ({"n_neighbors": 0}, "n_neighbors must be a positive integer, got 0"),
        ({"n_neighbors": 2.0}, "n_neighbors must be a positive integer, got 2.0"),
        ({"n_neighbors": True}, "n_neighbors must be a positive integer, got True"),
        ({"max_distance": 0.0}, "max_distance must be a positive number .*, got 0.0"),
        ({"max_distance": np.nan}, "max_distance must be a positive number .*, got nan"),
    ],
)
def test_bad_gates(options, message):
    with pytest.raises(DataError, match=message):
        make_hypotheses(CROWD, **{"max_distance": 5.0, **options})


def test_bad_positions():
    with pytest.raises(DataError, match="'film', frame 4: the centre of object 21 is not finite"):
        make_hypotheses(frame_pair([], [(0, 0), (np.nan, 0)]), max_distance=1.0)
    with pytest.raises(
        DataError, match=r"frame 3: the centre of object 10 is beyond 1e[+]150; meas"
    ):
        make_hypotheses(frame_pair([(1e200, 0)], []), max_distance=1.0)
    with pytest.raises(DataError, match=r"positions have shape \(2,\); expected \(2, 2\)"):
        Objects(np.arange(2), np.zeros(2))


def test_annotated_event_that_is_off():
    annotation = PairAnnotation(((10, 20, "split"), (10, 21, "split")))
    pair = frame_pair([(0, 0)], [(0, 0), (1, 1)], annotation)
    with pytest.raises(DataError, match="'film', frame 3: a split is annotated, but the events"):
        make_hypotheses(pair, max_distance=5.0)
