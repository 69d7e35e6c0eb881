"""Features of hypotheses: all defaults against a slow computation, one hypothesis at a time."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.errors import DataError
from trellis.tracking.default_features import default_features
from trellis.tracking.features import EventFeature, Frame, event_features
from trellis.tracking.hypotheses import make_hypotheses
from trellis.tracking.objects import EVENTS, FramePair, Objects

KNOWN = (
    "area", "mean_intensity", "max_intensity", "eccentricity", "orientation", "major_axis",
    "minor_axis", "perimeter", "solidity",
)  # fmt: skip
EXTENT = (-1.0, -2.0, 9.0, 12.0)


def some_pair(seed, columns, n=5, m=6):
    """Few different values, so that zeros, equal values and coinciding centres occur."""
    rng = np.random.default_rng(seed)

    def frame(size):
        table = {name: rng.integers(0, 5, size).astype(float) for name in columns}
        return Objects(np.arange(size), rng.integers(0, 4, (size, 2)).astype(float), table)

    return FramePair("film", 2, frame(n), frame(m), extent=EXTENT)


# --------------------------------------------------------------------------- one object at a time


class One:
    """One object, or a whole frame of them reduced to its average."""

    def __init__(self, objects, row):
        self.x, self.y = objects.position[row].tolist()
        self.columns = {name: float(values[row]) for name, values in objects.columns.items()}


def change(a, b):
    """Normalised difference of two lists of numbers."""
    size = max(math.hypot(*a), math.hypot(*b))
    return math.dist(a, b) / size if size else 0.0


def even(a, b):
    return min(a, b) / max(a, b) if max(a, b) else 0.0


def lines(a, b):
    """Angle between two lines."""
    return abs(math.asin(min(1.0, abs(math.sin(a - b)))))


def quantity(name, columns):
    """The numbers that a name in a feature's name stands for."""
    if name == "area*mean_intensity":
        return [columns["area"] * columns["mean_intensity"]]
    if name == "axes":
        return [columns["major_axis"], columns["minor_axis"]]
    return [columns[name]]


def together(name, a, b):
    a, b = quantity(name, a.columns), quantity(name, b.columns)
    if name in ("area", "area*mean_intensity"):
        return [p + q for p, q in zip(a, b, strict=True)]
    if name == "max_intensity":
        return [max(a[0], b[0])]
    return [(p + q) / 2 for p, q in zip(a, b, strict=True)]


def frame_average(name, objects):
    rows = [quantity(name, One(objects, i).columns) for i in range(len(objects))]
    return [sum(column) / len(rows) for column in zip(*rows, strict=True)]


def slow_move(pair, name, i, j, moves):
    """Features of a move that depend on the other moves there might be."""
    x, y = pair.source.position, pair.target.position

    def length(move):
        return math.dist(x[move[0]], y[move[1]])

    if name != "off the flow":
        end = 0 if name.endswith("target") else 1
        return length((i, j)) - min(length(m) for m in moves if m[end] == (i, j)[end])
    shortest = {a: min((m for m in moves if m[0] == a), key=length) for a, _ in moves}
    steps = {
        a: [y[b] - x[a] for _, b in moves if _ == a and length((a, b)) == length(m)]
        for a, m in shortest.items()
    }
    if any(len(s) > 1 for s in steps.values()):
        return None  # which of several nearest is left open
    around = sorted(steps, key=lambda a: math.dist(x[a], x[i]))[:12]
    flow = np.median([steps[a][0] for a in around], axis=0)
    return math.dist(y[j] - x[i], flow)


def slow_value(pair, event, name, sources, targets, moves):
    a = [One(pair.source, i) for i in sources]
    b = [One(pair.target, j) for j in targets]
    if event == "move":
        (one,), (other,) = a, b
        if name.startswith("farther than") or name == "off the flow":
            return slow_move(pair, name, *sources, *targets, moves)
        if name == "distance":
            return math.hypot(one.x - other.x, one.y - other.y)
        if name == "orientation change":
            return lines(one.columns["orientation"], other.columns["orientation"])
        what = name.removesuffix(" change")
        return change(quantity(what, one.columns), quantity(what, other.columns))
    if event in ("appear", "disappear"):
        ((one,), frame) = (b, pair.target) if event == "appear" else (a, pair.source)
        if name == "border distance":
            return min(one.x + 1, one.y + 2, 9 - one.x, 12 - one.y)
        if name.startswith("relative "):
            what = name.removeprefix("relative ")
            average = frame_average(what, frame)[0]
            return one.columns[what] / average if average else math.nan
        what = name.removesuffix(" unlike the average")
        return change(quantity(what, one.columns), frame_average(what, frame))
    (one,), (p, q) = (b, a) if event == "merge" else (a, b)
    if name == "distance to the middle":
        return math.hypot(one.x - (p.x + q.x) / 2, one.y - (p.y + q.y) / 2)
    if name == "distance between":
        return math.hypot(p.x - q.x, p.y - q.y)
    if name.endswith(" evenness"):
        what = name.removesuffix(" evenness")
        return even(p.columns[what], q.columns[what])
    if name.endswith(" change"):
        what = name.removesuffix(" change")
        return change(quantity(what, one.columns), together(what, p, q))
    assert event == "division"
    away = [math.hypot(one.x - other.x, one.y - other.y) for other in (p, q)]
    if name.startswith("distance of"):
        return min(away) if name.endswith("nearer") else max(away)
    if name in ("area ratio", "larger daughter", "daughters' area"):
        areas = [p.columns["area"], q.columns["area"]]
        size = max(areas) if name == "larger daughter" else sum(areas)
        if name == "daughters' area":
            average = frame_average("area", pair.source)[0]
            return size / average if average else math.nan
        return size / one.columns["area"] if one.columns["area"] else math.nan
    if name == "angle":
        u, v = (p.x - one.x, p.y - one.y), (q.x - one.x, q.y - one.y)
        size = math.hypot(*u) * math.hypot(*v)
        return (u[0] * v[0] + u[1] * v[1]) / size if size else 0.0
    if name == "axis":
        if (p.x, p.y) == (q.x, q.y):
            return math.nan
        return lines(one.columns["orientation"], math.atan2(p.x - q.x, p.y - q.y))
    what = name.removeprefix("parent's ")
    if what == "eccentricity":
        if what in one.columns:
            return one.columns[what]
        return math.sqrt(1 - even(one.columns["major_axis"], one.columns["minor_axis"]) ** 2)
    average = frame_average(what, pair.source)[0]
    return one.columns[what] / average if average else math.nan


def check(pair, columns):
    h = make_hypotheses(pair, events=EVENTS, n_neighbors=3, max_distance=10.0)
    features = default_features(columns, EVENTS)
    arrays = event_features(pair, h, features)
    moves = [(int(a), int(b)) for a, b in zip(h.source[:, 0], h.target[:, 0], strict=True)]
    moves = [m for m, kind in zip(moves, h.kind, strict=True) if kind == EVENTS.index("move")]
    assert [len(a) for a in arrays] == np.bincount(h.kind, minlength=len(EVENTS)).tolist()
    for kind, event in enumerate(EVENTS):
        mine = [f for f in features if f.event == event]
        assert mine
        which = h.take(h.kind == kind)
        expected = [
            [
                slow_value(
                    pair, event, f.name, [i for i in a if i >= 0], [j for j in b if j >= 0], moves
                )
                for f in mine
            ]
            for a, b in zip(which.source, which.target, strict=True)
        ]
        expected = np.array(expected, object).reshape(len(which), len(mine))
        unknown = expected == None  # noqa: E711
        expected[unknown] = arrays[kind][unknown]
        expected = expected.astype(float)
        np.testing.assert_allclose(arrays[kind], expected, atol=1e-12)


@given(st.integers(0, 1000), st.sets(st.sampled_from((*KNOWN, "roundness", "mass"))))
@settings(max_examples=15)
def test_defaults_of_any_columns(seed, columns):
    columns = sorted(columns)
    check(some_pair(seed, columns, n=4, m=4), columns)


def test_defaults_of_all_columns():
    for seed in range(3):
        check(some_pair(seed, (*KNOWN, "roundness")), (*KNOWN, "roundness"))


def test_names():
    """Every measure of the original that a table of objects allows is there."""
    features = default_features((*KNOWN, "std"), EVENTS)
    names = {event: [f.name for f in features if f.event == event] for event in EVENTS}
    assert [f.event for f in features] == sorted((f.event for f in features), key=EVENTS.index)
    changes = ["area", "axes", "area*mean_intensity", "mean_intensity", "std"]
    for event in ("move", "split", "merge"):
        assert {f"{q} change" for q in changes} < {*names[event]}
    assert {
        "area*mean_intensity change", "angle", "parent's mean_intensity", "parent's eccentricity",
        "area evenness", "area change", "axis", "std change",
    } < {*names["division"]}  # fmt: skip
    for event in ("appear", "disappear"):
        assert {f"{q} unlike the average" for q in changes} | {"border distance"} < {*names[event]}


def test_centres_alone_suffice():
    names = [(f.event, f.name) for f in default_features([], EVENTS)]
    assert names == [
        ("move", "distance"), ("move", "farther than the nearest target"),
        ("move", "farther than the nearest source"), ("move", "off the flow"),
        ("division", "distance to the middle"), ("division", "distance between"),
        ("division", "angle"), ("division", "distance of the nearer"),
        ("division", "distance of the farther"),
        ("appear", "border distance"), ("disappear", "border distance"),
        ("split", "distance to the middle"), ("split", "distance between"),
        ("merge", "distance to the middle"), ("merge", "distance between"),
    ]  # fmt: skip


def test_symmetric_in_daughters_and_parts():
    columns = (*KNOWN, "roundness")
    pair = some_pair(4, columns)
    h = make_hypotheses(pair, events=EVENTS, max_distance=10.0)
    source, target = h.source.copy(), h.target.copy()
    for rows in (source, target):
        two = rows[:, 1] >= 0
        assert two.any()
        rows[two] = rows[two][:, ::-1]
    swapped = replace(h, source=source, target=target)
    features = default_features(columns, EVENTS)
    for a, b in zip(
        event_features(pair, h, features), event_features(pair, swapped, features), strict=True
    ):
        np.testing.assert_allclose(a, b, atol=1e-12)


def test_missing_measurements_are_nan_and_stay_local():
    pair = some_pair(1, ["area"])
    area = pair.source["area"] + 1.0  # no division by zero
    pair = replace(pair, source=replace(pair.source, columns={"area": area}))
    h = make_hypotheses(pair, events=EVENTS, max_distance=10.0)
    features = default_features(["area"], EVENTS)
    before = event_features(pair, h, features)
    area = pair.target["area"].copy()
    area[2] = np.nan
    lost = replace(pair, target=replace(pair.target, columns={"area": area}))
    after = event_features(lost, h, features)
    touched = (h.target == 2).any(axis=1)
    for kind, (a, b) in enumerate(zip(before, after, strict=True)):
        names = [f.name for f in features if f.event == EVENTS[kind]]
        # The parent of a division, and the parts of a merge, are sources.
        elsewhere = "evenness" if EVENTS[kind] == "merge" else "parent"
        about_area = np.array(["area" in name and elsewhere not in name for name in names])
        about_area |= np.array([name == "larger daughter" for name in names])
        gone = touched[h.kind == kind]
        assert np.isnan(b[np.ix_(gone, about_area)]).all()
        if EVENTS[kind] != "appear":  # the average has changed there
            np.testing.assert_array_equal(a[~gone], b[~gone])
        assert not np.isnan(b[~gone]).any()


def test_frame_average():
    table = {"area": np.array([2.0, np.nan, 4.0]), "lost": np.full(3, np.nan)}
    cells = Objects(np.arange(3), np.zeros((3, 2)), table)
    frame = Frame(cells, EXTENT)
    assert frame.average("area") == 3.0
    assert np.isnan(frame.average("lost"))
    assert np.isnan(Frame(cells.take(np.zeros(0, int)), EXTENT).average("area"))
    unbounded = FramePair("film", 0, cells, cells)
    arrays = event_features(
        unbounded,
        make_hypotheses(unbounded, max_distance=1.0),
        default_features([], ("appear",)),
    )
    assert np.isnan(arrays[EVENTS.index("appear")]).all()  # no border, no distance


# ---------------------------------------------------------------------------------- users' features


def test_functions_get_the_objects_of_their_hypotheses():
    pair = some_pair(3, ["area"])
    pair = replace(pair, target=replace(pair.target, ids=np.arange(100, 106)))
    h = make_hypotheses(pair, events=EVENTS, max_distance=10.0)
    seen = {}

    def spy(event, needs_frame=False):
        def values(*arguments):
            seen[event, needs_frame] = arguments
            return np.zeros(len(arguments[0]), dtype=int)

        return EventFeature(event, f"spy {needs_frame}", values, needs_frame)

    event_features(pair, h, [spy(event, needed) for event in EVENTS for needed in (False, True)])
    for (event, needed), arguments in seen.items():
        which = h.take(h.kind == EVENTS.index(event))
        ids = [pair.source.ids[rows] for rows in which.source.T if (rows >= 0).all()]
        ids += [pair.target.ids[rows] for rows in which.target.T if (rows >= 0).all()]
        end = event in ("appear", "disappear")
        assert len(arguments) == len(ids) + (needed or end)
        for objects, expected in zip(arguments, ids, strict=False):
            np.testing.assert_array_equal(objects.ids, expected)
        if needed or end:
            frame = arguments[-1]
            assert frame.objects is (pair.target if event in ("appear", "merge") else pair.source)
            assert frame.extent == EXTENT
    assert len(seen) == 12


def test_infinite_and_true_are_numbers():
    pair = some_pair(3, [])
    h = make_hypotheses(pair, max_distance=10.0)
    features = [
        EventFeature("appear", "inf", lambda target, frame: np.full(len(target), -np.inf)),
        EventFeature("appear", "true", lambda target, frame: target.ids > 2),
    ]
    table = event_features(pair, h, features)[EVENTS.index("appear")]
    assert np.isnan(table[:, 0]).all()
    assert table[:, 1].tolist() == [0, 0, 0, 1, 1, 1]


def test_nothing_is_called_for_nothing():
    def fails(*arguments):
        raise AssertionError

    empty = some_pair(0, [], n=0, m=0)
    h = make_hypotheses(empty, events=EVENTS, max_distance=1.0)
    features = [EventFeature(event, "f", fails) for event in EVENTS]
    assert [a.shape for a in event_features(empty, h, features)] == [(0, 1)] * 6


# ------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (lambda a, b: np.zeros(3), r"returned an array of shape \(3,\), not \(\d+,\)"),
        (lambda a, b: 1.0, r"returned an array of shape \(\), not"),
        (lambda a, b: np.array(["x"] * len(a)), "returned values of type <U1, not numbers"),
        (lambda a, b: [None] * len(a), "returned values of type object, not numbers"),
        (lambda a, b: a["volume"], r"failed: KeyError: 'volume' \(.* have the columns area\)"),
        (lambda a: a.ids, "failed: TypeError"),
    ],
)  # fmt: skip
def test_bad_functions(values, message):
    pair = some_pair(0, ["area"])
    h = make_hypotheses(pair, max_distance=10.0)
    with pytest.raises(DataError, match=f"'film', frame 2: feature 'mine' of move {message}"):
        event_features(pair, h, [EventFeature("move", "mine", values)])


def test_bad_definitions():
    with pytest.raises(DataError, match="event must be a string, got 3"):
        EventFeature(3, "f", len)
    with pytest.raises(DataError, match="feature 'f' of move: values is a int, not a function"):
        EventFeature("move", "f", 3)
    with pytest.raises(DataError, match="events must be a list of move"):
        default_features([], ("move", "fusion"))
    with pytest.raises(DataError, match="events must be a list of move"):
        default_features([], "move")
    pair = some_pair(0, [])
    with pytest.raises(DataError, match="feature 'f' is of the event 'fusion', not one of move"):
        event_features(
            pair, make_hypotheses(pair, max_distance=1.0), [EventFeature("fusion", "f", len)]
        )
    twice = default_features([], ("move",)) * 2
    with pytest.raises(DataError, match="two features of move with the name 'distance'"):
        event_features(pair, make_hypotheses(pair, max_distance=1.0), twice)
