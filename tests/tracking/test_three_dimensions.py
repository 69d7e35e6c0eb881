"""Objects in three dimensions, in everything that looks at where they are."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis import load_model
from trellis.datasets import simulate_cells
from trellis.errors import CorruptModelError, DataError
from trellis.files.container import read_container, write_container
from trellis.tracking import (
    FlowTracker,
    FramePair,
    GraphMatching,
    HandSet,
    Link,
    LocalClassifiers,
    NearestNeighbour,
    Objects,
    PairAnnotation,
    TrackingModel,
    assemble_tracks,
    make_hypotheses,
    patchify,
    read_detections,
)
from trellis.tracking.features import border_distance
from trellis.tracking.gates import learned_gate, usual_reach

# Some of the small movies have no division to learn from.
pytestmark = pytest.mark.filterwarnings("ignore:no division in:RuntimeWarning")

TRACKERS = [
    NearestNeighbour(),
    GraphMatching(),
    FlowTracker(),
    HandSet(),
    LocalClassifiers(n_trees=5, random_state=0),
    TrackingModel(),
]


def turned(objects, axes, z=0.0):
    """The objects with these axes in this order, of x, y and a constant z."""
    place = np.column_stack([objects.position, np.full(len(objects), z)])
    return Objects(objects.ids, place[:, axes], objects.columns)


def lifted(pair, z=0.0, axes=(0, 1, 2), bounds=None):
    low, high = bounds or (z, z)
    extent = np.array([*pair.extent[:2], low, *pair.extent[2:], high]).reshape(2, 3)[:, list(axes)]
    source, target = (turned(o, list(axes), z) for o in (pair.source, pair.target))
    return FramePair(
        pair.sequence, pair.frame, source, target, pair.annotation, tuple(extent.ravel())
    )


@given(seed=st.integers(0, 1000), z=st.sampled_from([0.0, 7.0, -2.5]))
@settings(max_examples=5, deadline=None)
@pytest.mark.parametrize("tracker", TRACKERS, ids=lambda tracker: type(tracker).__name__)
def test_a_flat_movie_is_tracked_as_in_the_plane(tracker, seed, z):
    pairs = simulate_cells(15, 5, lab="b", seed=seed)
    deep = [lifted(pair, z) for pair in pairs]
    flat, tall = (
        type(tracker)(**tracker.get_params(deep=False)).fit(movie[:3]).predict(movie)
        for movie in (pairs, deep)
    )
    assert flat.links == tall.links
    assert flat.events == tall.events
    assert flat.tracks == tall.tracks
    assert {seen.z for seen in tall.objects} == {z}
    assert [seen[:6] for seen in tall.objects] == [seen[:6] for seen in flat.objects]


@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_all_three_axes_count_alike(axes):
    """Nothing but orientations and patches knows which axis is which."""
    pairs = [
        replace(p, source=_without_turn(p.source), target=_without_turn(p.target))
        for p in simulate_cells(20, 5, seed=1)
    ]
    far = (-1e6, 1e6)
    upright, lying = ([lifted(p, 0.0, a, far) for p in pairs] for a in ((0, 1, 2), axes))
    assert learned_gate(upright) == pytest.approx(learned_gate(lying))
    assert usual_reach(upright) == pytest.approx(usual_reach(lying))
    for tracker in (FlowTracker(12.0), GraphMatching(12.0), NearestNeighbour(12.0)):
        assert tracker.predict(upright).links == tracker.predict(lying).links
    models = [TrackingModel(l2=1.0).fit(movie[:3]).predict(movie) for movie in (upright, lying)]
    assert models[0].links == models[1].links


def _without_turn(objects):
    kept = {name: v for name, v in objects.columns.items() if name != "orientation"}
    return Objects(objects.ids, objects.position, kept)


def test_depth_tells_cells_apart():
    """Two cells one above the other, which change places as seen from above."""
    before = Objects([0, 1], [[5.0, 5.0, 0.0], [6.0, 5.0, 30.0]])
    after = Objects([0, 1], [[5.0, 5.0, 30.0], [6.0, 5.0, 0.0]])
    pair = FramePair("film", 0, before, after)
    links = NearestNeighbour(max_distance=5.0).predict([pair]).links
    assert [(link.source_id, link.target_id) for link in links] == [(0, 1), (1, 0)]
    h = make_hypotheses(pair, max_distance=5.0, n_neighbors=1)
    assert h.target[h.kind == 0][:, 0].tolist() == [1, 0]


def test_distance_to_the_border_of_a_volume():
    points = np.array([[1.0, 5.0, 5.0], [5.0, 5.0, 9.5], [5.0, 4.0, 5.0]])
    box = (0.0, 0.0, 0.0, 10.0, 10.0, 10.0)
    assert border_distance(points, box).tolist() == [1.0, 0.5, 4.0]
    slice_ = (0.0, 0.0, 5.0, 10.0, 10.0, 5.0)
    assert border_distance(points, slice_).tolist() == [1.0, 5.0, 4.0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Objects([1], [[1.0]]), r"positions have shape \(1, 1\); expected \(1, 2\)"),
        (lambda: Objects([1], np.zeros((1, 4))), r"positions have shape \(1, 4\); expected"),
        (
            lambda: FramePair("a", 4, Objects([], []), Objects([], np.zeros((0, 3)))),
            "sequence 'a', frame 4: the centres of source have 2 coordinates, those of target 3",
        ),
        (
            lambda: lifted_none(extent=(0, 0, 1, 1)),
            r"extent must be six numbers, the least x, y, z and the greatest, got \(0, 0, 1, 1\)",
        ),
        (
            lambda: make_hypotheses(
                FramePair("a", 0, *[Objects([3], [[0.0, 0.0, np.nan]])] * 2), max_distance=1.0
            ),
            "centre of object 3 is not finite; remove the object or give its x and y and z",
        ),
        (
            lambda: patchify([FramePair("a", 0, *[Objects([3], [[0.0, 0.0, np.nan]])] * 2)]),
            "a centre is not finite; remove the object or give its x and y and z",
        ),
    ],
)
def test_bad_places(make, message):
    with pytest.raises(DataError, match=message):
        make()


def lifted_none(**given):
    none = Objects([], np.zeros((0, 3)))
    return FramePair("", 0, none, none, **given)


def test_a_field_without_border():
    none = Objects([], np.zeros((0, 2)))
    assert FramePair("", 0, none, none).extent == (-np.inf, -np.inf, np.inf, np.inf)
    assert lifted_none().extent == (*[-np.inf] * 3, *[np.inf] * 3)
    assert lifted_none().dimensions == 3


def test_a_column_z_is_read():
    table = {"frame": [0, 1], "id": [0, 0], "x": [1, 2], "y": [3, 4], "z": [5, 9], "area": [6, 7]}
    (pair,) = read_detections(table)
    assert pair.source.position.tolist() == [[1, 3, 5]]
    assert pair.extent == (1, 3, 5, 2, 4, 9)
    assert list(pair.source.columns) == ["area"]
    (flat,) = read_detections({**table, "z": ["", ""]})
    assert flat.dimensions == 2
    with pytest.raises(DataError, match="row 1, column 'z': the value is missing"):
        read_detections({**table, "z": [5, ""]})


def test_tracks_are_written_with_z(tmp_path):
    pair = FramePair("", 0, Objects([0], [[1.0, 2.0, 3.0]]), Objects([0], [[1.0, 2.0, 4.0]]))
    result = assemble_tracks([pair], [Link("", 0, 0, 0, "move")])
    result.write(tmp_path / "t.csv")
    with (tmp_path / "t.csv").open() as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["sequence", "frame", "id", "x", "y", "z", "track", "parent"]
    assert rows[2] == ["", "1", "0", "1.0", "2.0", "4.0", "1", "-1"]


def test_the_nearer_part_is_so_in_depth():
    whole = Objects([0], [[0.0, 0.0, 0.0]])
    parts = Objects([0, 1], [[1.0, 0.0, 9.0], [2.0, 0.0, 0.0]])
    links = [Link("", 0, 0, j, "split") for j in (0, 1)]
    result = assemble_tracks([FramePair("", 0, whole, parts)], links)
    assert [(o.id, o.track) for o in result.objects if o.frame == 1] == [(0, 2), (1, 1)]


def test_patches_go_through_the_whole_depth():
    cells = Objects([0, 1, 2], [[1.0, 1.0, 0.0], [2.0, 1.0, 90.0], [9.0, 1.0, 50.0]])
    note = PairAnnotation(tuple((i, i, "move") for i in range(3)))
    pair = FramePair("", 0, cells, cells, note, (0.0, 0.0, 0.0, 10.0, 5.0, 100.0))
    for movie in (pair, replace(pair, extent=())):
        left, right = patchify([movie], 5.0)
        assert left.source.ids.tolist() == [0, 1]
        assert left.annotation.complete
        assert right.source.ids.tolist() == [2]


def test_the_part_to_ask_for_is_near_in_depth():
    rng = np.random.default_rng(0)
    place = np.column_stack([rng.random((12, 2)), np.arange(12) * 10.0])
    cells = Objects(np.arange(12), place)
    pairs = [FramePair("", 0, cells, cells)]
    problem = TrackingModel(prior=None, max_distance=15.0).learning_problems({"": pairs})[""]
    part = problem.weakest_part(0, np.random.default_rng(1).normal(size=problem.n_weights), 8)
    heights = np.concatenate([place, place])[part][:, 2]
    assert np.ptp(heights) < 90


@pytest.mark.parametrize("model", [TrackingModel(), HandSet(), LocalClassifiers(n_trees=3)])
def test_a_model_of_the_plane_refuses_volumes_and_the_reverse(tmp_path, model):
    flat = simulate_cells(15, 4, seed=0)
    deep = [lifted(pair, 1.0, bounds=(0.0, 2.0)) for pair in flat]
    for learned, others, words in ((flat, deep, ("3", "2")), (deep, flat, ("2", "3"))):
        fitted = type(model)(**model.get_params(deep=False)).fit(learned)
        fitted.save(tmp_path / "m.trellis")
        message = "in {} dimensions, those that the model was trained with in {}".format(*words)
        for one in (fitted, load_model(tmp_path / "m.trellis")):
            assert one.predict(learned).links
            with pytest.raises(DataError, match=message):
                one.predict(others)
    with pytest.raises(DataError, match=r"frame 0 is in 3 dimensions, .* in 2; learn from pairs"):
        model.fit([*flat, *deep])


def test_files_without_dimensions_are_of_the_plane(tmp_path):
    """As those of before; and other numbers are refused."""
    pairs = simulate_cells(15, 4, seed=0)
    path = tmp_path / "m.trellis"
    model = TrackingModel().fit(pairs)
    model.save(path)
    header, arrays = read_container(path)
    del header["dimensions"]
    write_container(path, header, arrays)
    assert load_model(path).predict(pairs).links == model.predict(pairs).links
    write_container(path, {**header, "dimensions": 4}, arrays)
    with pytest.raises(CorruptModelError, match="dimensions"):
        load_model(path)
