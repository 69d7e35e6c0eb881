"""Kinds of events: the six, and those of one's own wherever the six can be."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from tracking_problems import CROWD, assignments, frame_pair, listed
from trellis import load_model
from trellis.cheap import ActiveLearner, TransferLearner
from trellis.datasets import Lab, simulate_cells
from trellis.errors import CorruptModelError, DataError
from trellis.files.container import read_container, write_container
from trellis.structures.assignment import AssignmentSpace, kbest_assignments
from trellis.structures.mean_assignment import mean_assignment
from trellis.tracking import (
    EVENTS,
    EventFeature,
    EventKind,
    FlowTracker,
    FramePair,
    HandSet,
    Link,
    LocalClassifiers,
    Neighbours,
    Objects,
    PairAnnotation,
    TrackEvent,
    TrackingModel,
    annotated_events,
    assemble_tracks,
    default_features,
    event_set,
    make_hypotheses,
    patchify,
    read_detections,
    score_links,
    task_loss,
)
from trellis.tracking.annotation import annotated_hypotheses, annotation_of, fixed_variables
from trellis.tracking.event_kinds import KINDS, all_kinds, own_kinds
from trellis.tracking.features import event_features
from trellis.tracking.guesses import Guesses, flow_guesses


class Turn(EventKind):
    """A cell that is changed in a frame."""

    name = "turn"


class Bud(EventKind):
    name, n_targets = "bud", 2
    daughters = True


def apart(first, second):
    return np.hypot(*(first.position - second.position).T)


def apart_of_two(first, second, one):
    return apart(first, second)


@dataclass(frozen=True)
class Fusion(EventKind):
    """Two cells that are near become one for good."""

    reach: float = np.inf
    name, n_sources = "fusion", 2
    daughters = True

    def hypotheses(self, near):
        sources, targets = super().hypotheses(near)
        close = apart(*(near.pair.source.take(rows) for rows in sources.T)) < self.reach
        return sources[close], targets[close]

    def features(self, columns):
        mine = EventFeature("fusion", "apart", lambda first, second, one: apart(first, second))
        return [*super().features(columns), mine]


class PricedFusion(Fusion):
    def price(self, first, second, one, *, frame, gate):
        middle = (first.position + second.position) / 2
        total = first["area"] + second["area"]
        away = np.hypot(*(middle - one.position).T) / gate
        return 0.3 + away + np.abs(one["area"] - total) / total


USUAL = ("move", "division", "appear", "disappear")
OWN = (*EVENTS, Turn(), Bud(), Fusion())
LAB = Lab(
    name="fusing", crowding=0.4, fusion=0.05, over_segmentation=0.0, under_segmentation=0.0,
)  # fmt: skip
TRAIN, TEST = simulate_cells(80, 8, lab=LAB, seed=1), simulate_cells(80, 5, lab=LAB, seed=2)


@pytest.fixture(scope="module")
def model():
    return TrackingModel([*USUAL, Fusion(25.0)]).fit(TRAIN)


def told(pair, kinds):
    """The pair with the links of these kinds alone, of everything else nothing."""
    links = tuple(link for link in pair.annotation.links if link[2] in kinds)
    return replace(pair, annotation=PairAnnotation(links, (), ()))


# ------------------------------------------------------------------------------------- the kinds


def test_the_six():
    assert tuple(kind.name for kind in KINDS) == EVENTS
    shapes = {kind.name: (kind.n_sources, kind.n_targets) for kind in KINDS}
    assert shapes == {
        "move": (1, 1), "division": (1, 2), "appear": (0, 1), "disappear": (1, 0),
        "split": (1, 2), "merge": (2, 1),
    }  # fmt: skip
    assert [kind.name for kind in KINDS if kind.daughters] == ["division"]
    assert [kind.name for kind in KINDS if not kind.usual] == ["split", "merge"]
    assert {kind.name for kind in KINDS if kind.price is None} == {"split", "merge"}


def test_kinds_are_equal_by_class_and_fields():
    assert Turn() == Turn()
    assert Fusion(2.0) == Fusion(2.0) != Fusion(3.0)
    assert repr(Fusion(2.0)) == "Fusion(reach=2.0)"
    assert own_kinds(["move", Turn(), KINDS[0], Turn()]) == (Turn(),)
    assert all_kinds(OWN)[6:] == (Turn(), Bud(), Fusion())


def kind_with(**parts):
    return type("Odd", (EventKind,), parts)()


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        ([kind_with()], "kinds with a name; Odd has none"),
        ([kind_with(name=3)], "kinds with a name; Odd has none"),
        ([kind_with(name=" ")], "kinds with a name; Odd has none"),
        ([kind_with(name="single_daughter")], "no other meaning in tables, unlike 'single_"),
        ([kind_with(name="None")], "no other meaning in tables, unlike 'None'"),
        ([kind_with(name="move")], "kinds of different names; there are two of 'move'"),
        ([Turn(), kind_with(name="turn")], "kinds of different names; there are two of 'turn'"),
        ([Fusion(1.0), Fusion(2.0)], "kinds of different names; there are two of 'fusion'"),
        ([kind_with(name="death", n_targets=0)], "an object alone can only appear or disappear"),
        ([kind_with(name="mix", n_sources=2, n_targets=2)], "up to three objects at a time"),
        ([kind_with(name="ring", n_sources=0, n_targets=2)], "n_sources = 0 and n_targets = 2"),
        ([kind_with(name="odd", daughters="yes")], "daughters of Odd must be True or False"),
        ([kind_with(name=f"k{i}") for i in range(101)], "at most 100 kinds of your own, got 101"),
        ([Fusion], "events must be .*kinds of your own, got"),
        (["fusion"], "events must be .*kinds of your own, got"),
    ],
)
def test_kinds_that_cannot_be(kinds, message):
    with pytest.raises(DataError, match=message):
        TrackingModel([*USUAL, *kinds]).fit(TRAIN)
    with pytest.raises(DataError, match=message):
        make_hypotheses(CROWD, events=[*USUAL, *kinds], max_distance=5.0)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (lambda near: near.groups(2, 1)[0], "Odd.hypotheses does not give two arrays"),
        (lambda near: near.pair.nothing, "frame 3: Odd.hypotheses failed: AttributeError"),
        (lambda near: near.groups(1, 1), r"sources of Odd.hypotheses have shape \(\d+, 1\)"),
        (lambda near: ([[0, 3]], [[0]]), "sources of Odd.hypotheses hold 3 at .*expected 0 to 2"),
        (lambda near: ([[0, -1]], [[0]]), "sources of Odd.hypotheses hold -1"),
        (lambda near: ([[0, 1]], [[0.5]]), "targets of Odd.hypotheses have dtype float64"),
        (lambda near: ([[1, 1]], [[0]]), "sources of Odd.hypotheses have an object twice"),
        (lambda near: ([[1, 0]], [[0], [1]]), "gives 1 rows of sources, 2 of targets"),
    ],
)
def test_hypotheses_that_cannot_be(found, message):
    odd = kind_with(name="odd", n_sources=2, hypotheses=lambda self, near: found(near))
    with pytest.raises(DataError, match=message):
        make_hypotheses(CROWD, events=[*USUAL, odd], max_distance=5.0)


def test_neighbours_that_cannot_be():
    onward, back = np.array([[0], [1], [2]]), np.array([[0], [1], [-1]])
    near = Neighbours(CROWD, onward, back)
    with pytest.raises(DataError, match="no groups of 2 sources and 2 targets"):
        near.groups(2, 2)
    with pytest.raises(DataError, match=r"onward neighbours have shape \(2, 1\)"):
        Neighbours(CROWD, onward[:2], back)
    with pytest.raises(DataError, match="back neighbours hold 3 at"):
        Neighbours(CROWD, onward, back + 3)
    with pytest.raises(DataError, match="pair must be a FramePair"):
        Neighbours(None, onward, back)


def test_sources_may_be_given_in_any_order():
    odd = kind_with(
        name="odd", n_sources=2, hypotheses=lambda self, near: ([[2, 0], [0, 2]], [[1], [1]])
    )
    h = make_hypotheses(CROWD, events=[*USUAL, odd], max_distance=0.1)
    assert [event for event in listed(h) if event[0] == "odd"] == [("odd", (0, 2), (1,))]


def test_features_that_are_not_of_the_kind():
    odd = kind_with(name="odd", features=lambda self, columns: [EventFeature("move", "f", len)])
    with pytest.raises(DataError, match=r"Odd.features gives .* no EventFeature of 'odd'"):
        default_features([], [*USUAL, odd])
    with pytest.raises(DataError, match="feature 'f' is of the event 'turn', not one of move"):
        TrackingModel(features=[EventFeature("turn", "f", len)]).fit(TRAIN)


# ------------------------------------------------------------------------------------ hypotheses


@given(
    n=st.integers(0, 3), m=st.integers(0, 3), k=st.integers(1, 4), seed=st.integers(0, 1000),
)  # fmt: skip
def test_hypotheses_are_those_of_the_same_shape(n, m, k, seed):
    """Own kinds come after the six, which are as if there were no others."""
    rng = np.random.default_rng(seed)
    pair = frame_pair(rng.uniform(0, 10, (n, 2)), rng.uniform(0, 10, (m, 2)))
    found = listed(make_hypotheses(pair, events=OWN, n_neighbors=k, max_distance=6.0))
    six = listed(make_hypotheses(pair, events=EVENTS, n_neighbors=k, max_distance=6.0))
    assert found[: len(six)] == six
    alike = {"turn": "move", "bud": "split", "fusion": "merge"}
    own = [(mine, *event[1:]) for mine, of in alike.items() for event in six if event[0] == of]
    assert found[len(six) :] == own


@given(seed=st.integers(0, 10_000), n=st.integers(0, 2), m=st.integers(0, 2))
@settings(max_examples=60)
def test_assignments_with_kinds_of_the_same_objects(seed, n, m):
    """Best, k best and mean against all assignments; three kinds join the same two objects."""
    rng = np.random.default_rng(seed)
    pair = frame_pair(rng.uniform(0, 9, (n, 2)), rng.uniform(0, 9, (m, 2)))
    more = kind_with(name="twist")
    h = make_hypotheses(pair, events=[*OWN, more], max_distance=8.0)
    choices = list(assignments(h, n, m))
    every = np.array(choices).reshape(len(choices), len(h))
    space = AssignmentSpace(h.covers(n), [0, len(h)], [0, n + m])
    scores = rng.normal(size=len(h))
    fixed = np.where(every[rng.integers(len(every))] & (rng.random(len(h)) < 0.3), 1, -1)
    fits = every[every[:, fixed == 1].all(axis=1)]
    values = np.sort(fits @ scores)[::-1]
    ranked = kbest_assignments(space, scores, min(4, len(fits)), fixed=fixed)
    np.testing.assert_allclose([one.values[0] for one in ranked], values[: len(ranked)])
    for one in ranked:
        assert (one.chosen == fits).all(axis=1).any()
    mean = mean_assignment(space, fixed)
    assert mean.exact.all()
    np.testing.assert_allclose(mean.shares, fits.mean(axis=0), atol=1e-12)


@given(seed=st.integers(0, 1000))
def test_annotations_there_and_back(seed):
    rng = np.random.default_rng(seed)
    pair = frame_pair(rng.uniform(0, 9, (2, 2)), rng.uniform(0, 9, (3, 2)))
    h = make_hypotheses(pair, events=OWN, max_distance=9.0)
    every = list(assignments(h, 2, 3))
    chosen = every[rng.integers(len(every))]
    note = annotation_of(pair, h, chosen)
    assert PairAnnotation.from_dict(json.loads(json.dumps(note.as_dict()))) == note
    assert listed(annotated_hypotheses(pair, note, h.kinds)) == listed(h.take(chosen))
    assert ((fixed_variables(pair, h, note) == 1) == chosen).all()


def test_what_is_annotated_is_a_hypothesis_though_the_kind_would_not_think_so():
    note = PairAnnotation(((10, 20, "fusion"), (12, 20, "fusion")), (), ())
    pair = replace(CROWD, annotation=note)
    events = [*USUAL, Fusion(0.0)]
    assert ("fusion", (0, 2), (0,)) in listed(make_hypotheses(pair, events=events, max_distance=5))
    with pytest.raises(DataError, match=r"kind 'fusion', not move, .*given as an object in events"):
        make_hypotheses(pair, max_distance=5)
    half = replace(pair, annotation=PairAnnotation(note.links[:1], (), ()))
    with pytest.raises(DataError, match=r"the fusion into target 20 has the sources \[10\], not"):
        make_hypotheses(half, events=events, max_distance=5)


# --------------------------------------------------------------------------------------- features


def test_features_of_a_kind_get_its_objects_and_the_frame_of_the_one():
    seen = {}

    def spy(event):
        def values(*given):
            seen[event] = [len(part) for part in given[:-1]], len(given[-1].objects)
            return np.zeros(len(given[0]))

        return EventFeature(event, "spy", values, needs_frame=True)

    h = make_hypotheses(CROWD, events=OWN, max_distance=5.0)
    event_features(CROWD, h, [spy(name) for name in ("turn", "bud", "fusion")])
    number = Counter(kind for kind, *_ in listed(h))
    assert {event: len(parts) for event, (parts, _) in seen.items()} == {
        "turn": 2, "bud": 3, "fusion": 3,
    }  # fmt: skip
    assert all(set(parts) == {number[event]} for event, (parts, _) in seen.items())
    assert default_features([], [Turn()])[0].event == "turn"


def test_default_features_are_pickled_though_they_are_lambdas():
    features = default_features(["area"], [*USUAL, Fusion(3.0)])
    again = pickle.loads(pickle.dumps(features))
    assert [(f.event, f.name) for f in again] == [(f.event, f.name) for f in features]
    h = make_hypotheses(TEST[0], events=[*USUAL, Fusion(3.0)], max_distance=30.0, annotated=False)
    for one, two in zip(*(event_features(TEST[0], h, f) for f in (features, again)), strict=True):
        np.testing.assert_array_equal(one, two)


# ----------------------------------------------------------------------------------------- tracks


def film(*frames):
    return [
        FramePair("", t, *(Objects(np.arange(len(x)), np.c_[x, np.zeros(len(x))]) for x in two))
        for t, two in enumerate(itertools.pairwise(frames))
    ]


class Merging(EventKind):
    name, n_sources = "melt", 2


class Parting(EventKind):
    name, n_targets = "part", 2


class Rebirth(EventKind):
    name = "rebirth"
    daughters = True


@pytest.mark.parametrize(
    ("kind", "frames", "expected"),
    [
        (Fusion(), ([0, 5], [1]), [(1, 0, 0, -1), (2, 0, 0, -1), (3, 1, 1, 1)]),
        (Merging(), ([0, 5], [4]), [(1, 0, 0, -1), (2, 0, 1, -1)]),
        (Bud(), ([0], [1, 5]), [(1, 0, 0, -1), (2, 1, 1, 1), (3, 1, 1, 1)]),
        (Parting(), ([5], [1, 6]), [(1, 0, 1, -1), (2, 1, 1, -1)]),
        (Turn(), ([5], [1]), [(1, 0, 1, -1)]),
        (Rebirth(), ([5], [1]), [(1, 0, 0, -1), (2, 1, 1, 1)]),
    ],
)
def test_how_tracks_go_on(kind, frames, expected):
    links = [
        Link("", 0, a, b, kind.name) for a in range(len(frames[0])) for b in range(len(frames[1]))
    ]
    tracks = assemble_tracks(film(*frames), links, kinds=[kind]).tracks
    assert [track[1:] for track in tracks] == expected


def test_links_of_kinds_that_nobody_told_of():
    links = [Link("", 0, 0, 0, "fusion"), Link("", 0, 1, 0, "fusion")]
    with pytest.raises(DataError, match="unknown kind of link 'fusion'; known are move, division"):
        assemble_tracks(film([0, 1], [0]), links)
    with pytest.raises(DataError, match="object 0 of frame 1 has two pasts, 0 and 1"):
        assemble_tracks(
            film([0, 1], [0]), [links[0], Link("", 0, 1, 0, "turn")], kinds=[Fusion(), Turn()]
        )


# ----------------------------------------------------------------------------------------- scores


def test_events_are_gathered_whatever_their_kind():
    links = [Link("", 0, 7, 1, "fusion"), Link("", 0, 8, 1, "fusion")]
    links += [Link("", 0, 9, b, "bud") for b in (4, 3)] + [Link("", 0, 5, 5, "turn")]
    found = event_set(links, [TrackEvent("", 1, 6, "appear")])
    assert {(e.kind, e.sources, e.targets) for e in found} == {
        ("fusion", (7, 8), (1,)), ("bud", (9,), (3, 4)), ("turn", (5,), (5,)), ("appear", (), (6,)),
    }  # fmt: skip
    scores = score_links(links, [*links[:2], Link("", 0, 9, 3, "move")])
    assert scores.links.recall == 3 / 5
    assert {k: (s.correct, s.predicted, s.support) for k, s in scores.kinds.items()} == {
        "division": (0, 0, 0), "bud": (0, 0, 1), "fusion": (1, 1, 1), "move": (0, 1, 0),
        "turn": (0, 0, 1),
    }  # fmt: skip
    assert [line.split()[0] for line in str(scores).splitlines()[1:]] == [
        "links", "divisions", "bud", "fusion", "turn",
    ]  # fmt: skip


# ---------------------------------------------------------------------------------------- reading


CELLS = {"frame": [0, 0, 1, 1], "id": [0, 1, 0, 1], "x": [0, 3, 1, 9], "y": [0, 0, 0, 0]}
FUSED = {"frame": [0, 0], "source_id": [0, 1], "target_id": [0, 0], "kind": ["fusion"] * 2}


def test_tables_of_links():
    for events in ([Fusion()], [*USUAL, Fusion()]):
        (pair,) = read_detections(CELLS, FUSED, events=events)
        assert pair.annotation.links == ((0, 0, "fusion"), (1, 0, "fusion"))
        assert pair.annotation.complete
    one = {name: values[:1] for name, values in FUSED.items()}
    (pair,) = read_detections(CELLS, one, events=[Fusion()], complete=False)
    assert pair.annotation.links == ()  # the other may be missing
    one["kind"] = ["turn"]
    (pair,) = read_detections(CELLS, one, events=[Turn()])
    assert pair.annotation.links == ((0, 0, "turn"),)


def test_links_to_later_frames():
    """Of one of two cells that fuse, a frame is missed."""
    links = [
        Link("", 0, 0, 0, "move"), Link("", 1, 0, 0, "fusion"), Link("", 0, 1, 0, "fusion", 2),
    ]  # fmt: skip
    tracks = assemble_tracks(film([0, 3], [0], [1]), links, kinds=[Fusion()]).tracks
    assert [track[1:] for track in tracks] == [(1, 0, 1, -1), (2, 0, 0, -1), (3, 2, 2, 1)]
    (event,) = (event for event in event_set(links) if event.kind == "fusion")
    assert (event.sources, event.targets, event.gaps) == ((1, 0), (0,), (1, 0))


def test_tables_of_links_of_other_kinds():
    with pytest.raises(DataError, match=r"unknown kind 'fusion'; known are move, .*in events"):
        read_detections(CELLS, FUSED)
    with pytest.raises(DataError, match=r"two pasts.*call all of them merge or fusion"):
        read_detections(CELLS, {**FUSED, "kind": ["fusion", "merge"]}, events=[Fusion()])
    with pytest.raises(DataError, match=r"events must be a list of move, .*got 'fusion'"):
        read_detections(CELLS, FUSED, events="fusion")
    with pytest.raises(DataError, match="kinds with a name"):
        read_detections(CELLS, FUSED, events=[EventKind()])


# ----------------------------------------------------------------------------------------- models


def test_a_model_learns_the_kind(model):
    assert model.events_ == (*USUAL, "fusion")
    names = model.coefficients()["fusion"]
    assert any(name.startswith("apart >") for name in names)
    assert any(name.startswith("area change >") for name in names)
    truth, events = annotated_events(TEST)
    result = model.predict(TEST)
    scores = score_links(truth, result.links)
    assert scores.kinds["fusion"].support >= 5
    assert scores.kinds["fusion"].f1 > 0.6
    begun = {(t.sequence, t.begin) for t in result.tracks if t.parent >= 0}
    fused = [link for link in result.links if link.kind == "fusion"]
    assert {(link.sequence, link.frame_target) for link in fused} <= begun
    loss = model.task_loss(TEST)
    assert 0 <= loss < 0.3
    pair_losses = [
        task_loss(event_set(*annotated_events([pair])), event_set(r.links, r.events))
        for pair in TEST
        for r in [model.predict([pair])]
    ]
    assert loss == pytest.approx(np.mean(pair_losses))
    assert task_loss(event_set(truth, events), event_set(result.links, result.events)) < 0.3


def test_the_kind_changes_nothing_where_it_is_not_known():
    """A model with a kind for which there are no hypotheses says what the model without says."""
    nowhere = kind_with(name="nowhere", hypotheses=lambda self, near: ([], []))
    four = [told(pair, ("move", "division")) for pair in TRAIN]
    plain, more = (TrackingModel(events).fit(four) for events in (USUAL, [*USUAL, nowhere]))
    assert plain.predict(TEST) == more.predict(TEST)
    np.testing.assert_allclose(plain.weights_, more.weights_[: len(plain.weights_)], atol=1e-6)


def test_copies(model):
    twin = clone(model)
    assert twin.events == model.events
    assert repr(twin) == repr(model)
    assert "Fusion(reach=25.0)" in repr(model)
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert again.predict(TEST) == model.predict(TEST)
    np.testing.assert_array_equal(twin.fit(TRAIN).weights_, model.weights_)


def test_k_best_differ_in_events(model):
    (ranked,) = model.predict_kbest(TEST[:1], 4)
    scores = [score for _, score in ranked]
    assert scores == sorted(scores, reverse=True)
    assert len({frozenset(links) for links, _ in ranked} | {()}) > 2


def test_features_of_ones_own_for_a_kind_of_ones_own():
    mine = EventFeature("fusion", "how far", apart_of_two)
    found = TrackingModel([*USUAL, Fusion()], features=[mine], knots=0, max_iter=5).fit(TRAIN)
    assert list(found.coefficients()["fusion"])[-2:] == ["how far", "bias"]


def test_partial_annotations_patches_and_pieces():
    own = [*USUAL, Fusion(25.0)]
    patches = patchify(TRAIN, objects=12, events=own)
    kinds = Counter(kind for p in patches for *_, kind in p.annotation.links)
    assert kinds["fusion"] > 5
    found = TrackingModel(own).fit(patches)
    assert found.score(TEST) > 0.9
    with pytest.raises(DataError, match="kind 'fusion', not move"):
        patchify(TRAIN, objects=12)
    problem = found.learning_problems({"": [told(pair, ("fusion",)) for pair in TRAIN]})[""]
    assert problem.n_known == sum(k == "fusion" for p in TRAIN for *_, k in p.annotation.links) / 2
    assert problem.divided(12).n_samples > len(TRAIN)


def test_answers_of_an_annotator():
    learner = ActiveLearner(TrackingModel([*USUAL, Fusion(25.0)]), random_state=0)
    pool = [replace(pair, annotation=None) for pair in TRAIN]
    for _ in range(3):
        i = learner.query(pool)
        learner.tell(i, TRAIN[i].annotation)
    assert "fusion" in learner.model_.events_
    assert learner.model_.score(TEST) > 0.85


def test_transfer_between_data_sets():
    data = {"a": TRAIN[:4], "b": TRAIN[4:6]}
    transfer = TransferLearner(TrackingModel([*USUAL, Fusion(25.0)]), target="b").fit(data)
    found = score_links(annotated_events(TEST)[0], transfer.predict(TEST).links)
    assert found.kinds["fusion"].f1 > 0.5


# ---------------------------------------------------------------------------------------- guesses


def test_a_kind_with_a_price_is_guessed_and_one_without_is_not():
    bare = [replace(pair, annotation=None) for pair in TRAIN]
    guessed = {
        type(kind): Counter(
            link[2] for p in flow_guesses(bare, [*USUAL, kind]) for link in p.annotation.links
        )
        for kind in (Fusion(25.0), PricedFusion(25.0))
    }
    assert guessed[Fusion]["fusion"] == 0
    assert guessed[PricedFusion]["fusion"] > 10
    scores = score_links(
        annotated_events(TRAIN)[0],
        annotated_events(flow_guesses(bare, [*USUAL, PricedFusion(25.0)]))[0],
    )
    assert scores.kinds["fusion"].f1 > 0.5


def test_what_the_flow_tracker_cannot_guess_is_counted():
    def problem(kind):
        return TrackingModel([*USUAL, kind]).learning_problems({"": TRAIN})[""]

    def learn():
        raise InterruptedError

    plain, priced = (problem(kind) for kind in (Fusion(25.0), PricedFusion(25.0)))
    with pytest.raises(InterruptedError):  # there is enough to compare
        Guesses(plain, np.arange(7), 1.0).outdone_by([plain], learn)
    assert not Guesses(priced, np.arange(7), 1.0).outdone_by([priced], learn)


@pytest.mark.parametrize(
    ("price", "message"),
    [
        (lambda a, b: np.full(len(a) + 1, 1.0), r"prices of odd have shape"),
        (lambda a, b: np.full(len(a), np.nan), "prices of odd hold nan"),
    ],
)
def test_prices_that_cannot_be(price, message):
    odd = kind_with(name="odd", price=lambda self, a, b, frame, gate: price(a, b))
    with pytest.raises(DataError, match=message):
        flow_guesses([CROWD], [*USUAL, odd])


# --------------------------------------------------------------------------------- other trackers


def test_trackers_with_features():
    events = [*USUAL, Fusion(25.0)]
    truth = annotated_events(TEST)[0]
    forest = LocalClassifiers(events=events, n_trees=20, random_state=0).fit(TRAIN)
    assert forest.events_ == (*USUAL, "fusion")
    assert score_links(truth, forest.predict(TEST).links).kinds["fusion"].f1 > 0.3
    weights = {"move": {"distance": -4.0}, "fusion": {"area change": -4.0, "bias": 0.5}}
    by_hand = HandSet(events=events, weights=weights).fit(TRAIN)
    assert "fusion" in {link.kind for link in by_hand.predict(TEST).links}
    with pytest.raises(DataError, match=r"weights of 'fusion'; known events: move, .*merge$"):
        HandSet(weights=weights).fit([told(pair, ("move",)) for pair in TRAIN])


def test_trackers_that_know_nothing_of_it_learn_how_far_objects_move():
    assert FlowTracker().fit(TRAIN).gate == FlowTracker().fit(
        [told(pair, ("move", "division")) for pair in TRAIN]
    ).gate  # fmt: skip


def test_other_trackers_with_it_are_not_saved(tmp_path):
    forest = LocalClassifiers(events=[*USUAL, Fusion()], n_trees=2, random_state=0).fit(TRAIN[:2])
    with pytest.raises(DataError, match="Fusion"):
        forest.save(tmp_path / "m.trellis")
    assert not (tmp_path / "m.trellis").exists()


# ------------------------------------------------------------------------------------ model files


def test_model_files_take_the_kind_again(model, tmp_path):
    path = tmp_path / "m.trellis"
    model.save(path)
    again = TrackingModel.load(path, events=[Fusion(25.0)])
    assert again.predict(TEST) == model.predict(TEST)
    assert again.coefficients() == model.coefficients()
    assert again.events == tuple(model.events)
    np.testing.assert_array_equal(clone(again).fit(TRAIN).weights_, model.weights_)
    again.save(tmp_path / "n.trellis")
    assert (tmp_path / "n.trellis").read_bytes() == path.read_bytes()
    the_whole_list = TrackingModel.load(path, events=[*USUAL, Fusion(25.0)])
    assert the_whole_list.predict(TEST) == model.predict(TEST)


def test_names_in_any_script(tmp_path):
    fused = kind_with(name="融合, «a»", n_sources=2)
    pairs = [
        replace(pair, annotation=PairAnnotation(tuple(
            (a, b, fused.name if kind == "fusion" else kind) for a, b, kind in pair.annotation.links
        )))
        for pair in TRAIN[:3]
    ]  # fmt: skip
    model = TrackingModel([*USUAL, fused], max_iter=3).fit(pairs)
    model.save(tmp_path / "m.trellis")
    again = TrackingModel.load(tmp_path / "m.trellis", events=[fused])
    assert again.predict(TEST) == model.predict(TEST)
    assert fused.name in again.events_


def test_three_dimensions():
    def deep(objects):
        z = np.zeros((len(objects), 1))
        return Objects(objects.ids, np.hstack([objects.position, z]), objects.columns)

    def flat(pair):
        extent = (*pair.extent[:2], 0.0, *pair.extent[2:], 0.0)
        return replace(pair, source=deep(pair.source), target=deep(pair.target), extent=extent)

    kind = kind_with(name="fusion", n_sources=2, daughters=True)
    model = TrackingModel([*USUAL, kind]).fit([flat(pair) for pair in TRAIN])
    found = model.predict([flat(pair) for pair in TEST])
    assert score_links(annotated_events(TEST)[0], found.links).kinds["fusion"].f1 > 0.6


def test_model_files_without_the_kind(model, tmp_path):
    path = tmp_path / "m.trellis"
    model.save(path)
    said = (
        r"events of its user, which files do not hold: fusion; read it with "
        r"TrackingModel.load\(path, events=...\)"
    )
    with pytest.raises(DataError, match=said):
        load_model(path)
    for events, got in (((), "none"), ([Bud()], r"'bud' \(1 to 2\)"), (["move"], "none")):
        with pytest.raises(DataError, match=rf"user, 'fusion' \(2 to 1\); give .* got {got}"):
            TrackingModel.load(path, events=events)
    other_shape = kind_with(name="fusion", n_targets=2)
    with pytest.raises(DataError, match=r"'fusion' \(2 to 1\); give .* got 'fusion' \(1 to 2\)"):
        TrackingModel.load(path, events=[other_shape])
    without = kind_with(name="fusion", n_sources=2)
    with pytest.raises(DataError, match="the feature 'apart' of fusion, which the Odd given in"):
        TrackingModel.load(path, events=[without])
    with pytest.raises(DataError, match="events must be a list"):
        TrackingModel.load(path, events="fusion")


def test_model_files_with_features_and_events_of_ones_own(tmp_path):
    mine = EventFeature("fusion", "how far", apart_of_two)
    model = TrackingModel([*USUAL, Fusion()], features=[mine], max_iter=3).fit(TRAIN)
    path = tmp_path / "m.trellis"
    model.save(path)
    with pytest.raises(DataError, match=r"features of its user, .*: fusion how far, and events of"):
        load_model(path)
    with pytest.raises(DataError, match="features of its user"):
        TrackingModel.load(path, events=[Fusion()])
    again = TrackingModel.load(path, events=[Fusion()], features=[mine])
    assert again.predict(TEST) == model.predict(TEST)


def test_models_inside_models_say_what_is_missing(tmp_path):
    transfer = TransferLearner(TrackingModel([*USUAL, Fusion(25.0)], max_iter=2), target="b")
    transfer.fit({"a": TRAIN[:2], "b": TRAIN[2:4]})
    with pytest.raises(DataError, match="has events of your own, which files do not hold"):
        transfer.save(tmp_path / "t.trellis")


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ([["fusion"]], "an event of its user is not a name and two numbers"),
        ([["fusion", 2.5, 1]], "an event of its user is not a name and two numbers"),
        ([["fusion", 3, 1]], "n_sources = 3"),
        ([["move", 1, 1]], "two of 'move'"),
        ([["blur", 1, 1]], "events must be"),
        ("fusion", "'own_events' is a str"),
    ],
)
def test_damaged_files(model, tmp_path, own, message):
    path = tmp_path / "m.trellis"
    model.save(path)
    header, arrays = read_container(path)
    write_container(path, {**header, "own_events": own}, arrays)
    with pytest.raises(CorruptModelError, match=message):
        TrackingModel.load(path, events=[Fusion(25.0)])


def test_files_of_the_six_have_no_word_of_it(tmp_path):
    model = TrackingModel(max_iter=2).fit([told(pair, ("move", "division")) for pair in TRAIN])
    model.save(tmp_path / "m.trellis")
    header, _ = read_container(tmp_path / "m.trellis")
    assert "own_events" not in header
    assert list(header["preconditioner"]["quantiles"]) == sorted(EVENTS)
