"""Annotations as fixed variables: against enumeration, and every error."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracking_problems import CROWD, assignments, frame_pair, listed, objects
from trellis.errors import DataError, InfeasibleError
from trellis.tracking.annotation import (
    annotated_hypotheses,
    annotation_of,
    events_of,
    fixed_variables,
    links_of,
)
from trellis.tracking.hypotheses import Hypotheses, make_hypotheses
from trellis.tracking.objects import EVENTS, FramePair, Link, Objects, PairAnnotation


def test_choices_and_annotations_are_the_same():
    """Every assignment survives the way through its annotation, and no other one does."""
    h = make_hypotheses(CROWD, events=EVENTS, n_neighbors=3, max_distance=20.0)
    choices = list(assignments(h, 3, 3))
    assert len(choices) > 50
    seen = set()
    for chosen in choices:
        annotation = annotation_of(CROWD, h, chosen)
        assert annotation.complete
        seen.add(tuple(sorted(annotation.links)))
        fixed = fixed_variables(CROWD, h, annotation)
        assert fixed.dtype == np.int8
        np.testing.assert_array_equal(fixed, chosen)
        known = annotated_hypotheses(CROWD, annotation)
        assert listed(known) == listed(h.take(chosen))
        appear, disappear = events_of(CROWD, h, chosen)
        links = links_of(CROWD, h, chosen)
        assert {*appear} == {20, 21, 22} - {link.target_id for link in links}
        assert {*disappear} == {10, 11, 12} - {link.source_id for link in links}
    assert len(seen) == len(choices)


@given(st.data())
@settings(max_examples=40)
def test_partial_annotation_fixes_what_it_implies(data):
    """The assignments left are exactly those that hold everything that was told."""
    h = make_hypotheses(CROWD, events=EVENTS, n_neighbors=3, max_distance=20.0)
    choices = list(assignments(h, 3, 3))
    truth = data.draw(st.sampled_from(choices))
    told = truth & np.array(data.draw(st.lists(st.booleans(), min_size=len(h), max_size=len(h))))
    links = links_of(CROWD, h, told)
    appear, disappear = events_of(CROWD, h, told)
    annotation = PairAnnotation(
        tuple((link.source_id, link.target_id, link.kind) for link in links),
        tuple(disappear.tolist()),
        tuple(appear.tolist()),
    )
    fixed = fixed_variables(CROWD, h, annotation)
    np.testing.assert_array_equal(fixed == 1, told)
    for c in choices:
        fits = (c[fixed >= 0] == fixed[fixed >= 0]).all()
        assert fits == c[told].all()


def test_links_of_every_kind():
    pair = frame_pair([(0, 0), (9, 0), (11, 0), (20, 0)], [(-1, 0), (1, 0), (10, 0), (20, 0)])
    links = (
        (10, 20, "division"), (10, 21, "division"), (11, 22, "merge"), (12, 22, "merge"),
        (13, 23, "move"),
    )  # fmt: skip
    h = make_hypotheses(pair, events=EVENTS, max_distance=5.0)
    chosen = fixed_variables(pair, h, PairAnnotation(links)) == 1
    assert chosen.sum() == 3
    assert sorted(links_of(pair, h, chosen)) == sorted(Link("film", 3, *link) for link in links)


def test_nothing_is_known():
    h = make_hypotheses(CROWD, max_distance=20.0)
    assert (fixed_variables(CROWD, h, None) == -1).all()
    assert (fixed_variables(CROWD, h, PairAnnotation((), (), ())) == -1).all()


def test_annotation_outside_the_gates_is_added():
    annotation = PairAnnotation(((10, 22, "division"), (10, 20, "division")), (), ())
    pair = frame_pair([(0, 0), (1, 1)], [(0, 0), (1, 1), (50, 50)], annotation)
    far = ("division", (0,), (0, 2))
    with_it = make_hypotheses(pair, max_distance=5.0)
    without = make_hypotheses(pair, max_distance=5.0, annotated=False)
    assert far not in listed(without)
    assert [h for h in listed(with_it) if h != far] == listed(without)
    assert (
        listed(with_it)[np.flatnonzero(fixed_variables(pair, with_it, annotation) == 1)[0]] == far
    )
    with pytest.raises(
        InfeasibleError,
        match=r"'film', frame 3: .* division of source 10 to target 20 and 22 is not",
    ):
        fixed_variables(pair, without, annotation)


def test_known_appearance_is_named_when_missing():
    pair = frame_pair([], [(0, 0)])
    nothing = Hypotheses(np.zeros(0, np.int8), np.zeros((0, 2), int), np.zeros((0, 2), int))
    with pytest.raises(InfeasibleError, match="annotated appear of target 20 is not among"):
        fixed_variables(pair, nothing, PairAnnotation())


@pytest.mark.parametrize(
    ("links", "known", "message"),
    [
        ([(10, 20, "single_daughter")], None, "from 10 to 20 is of kind 'single_daughter'"),
        ([(99, 20, "move")], None, r"link \(99, 20, 'move'\) names object 99, .* the first frame"),
        ([(10, 99, "move")], None, r"names object 99, which is not in the second frame, 4"),
        ([], ((99,), ()), "known_sources names object 99"),
        ([], ((), (99,)), "known_targets names object 99"),
        (
            [(10, 20, "move"), (10, 21, "move")], None,
            "source 10 has two fates: a move to 20, a move to 21",
        ),
        ([(10, 20, "move"), (10, 20, "move")], None, "source 10 has two fates"),
        ([(10, 20, "division"), (10, 21, "split")], None, "source 10 has two fates"),
        ([(10, 20, "division"), (10, 21, "division"), (10, 22, "move")], None, "two fates"),
        ([(10, 20, "merge"), (11, 20, "merge"), (10, 21, "move")], None, "10 has two fates"),
        (
            [(10, 20, "move"), (11, 20, "move")], None,
            "target 20 has two pasts: a move from 10, a move from 11",
        ),
        ([(10, 20, "merge"), (11, 20, "move")], None, "target 20 has two pasts"),
        ([(10, 20, "division")], None, r"division of source 10 has the targets \[20\], not two"),
        ([(10, 20, "division"), (10, 20, "division")], None, r"targets \[20, 20\], not two"),
        ([(10, 20 + j, "division") for j in range(3)], None, r"targets \[20, 21, 22\], not two"),
        ([(10, 20, "merge")], None, r"merge into target 20 has the sources \[10\], not two"),
        ([(10 + i, 20, "merge") for i in range(3)], None, r"sources \[10, 11, 12\], not two"),
    ],
)  # fmt: skip
def test_contradictory_annotations(links, known, message):
    annotation = PairAnnotation(tuple(links), *(known or ()))
    h = make_hypotheses(CROWD, events=EVENTS, max_distance=20.0)
    with pytest.raises(DataError, match=rf"sequence 'film', frame 3: .*{message}"):
        fixed_variables(CROWD, h, annotation)


def test_ids_there_more_than_once():
    twins = Objects(np.array([7, 8, 8]), np.zeros((3, 2)))
    pair = FramePair("film", 3, twins, objects([]))
    with pytest.raises(DataError, match="source id 8 is there more than once"):
        annotated_hypotheses(pair, PairAnnotation())


def test_no_hypothesis_left():
    """A move takes the only past that target 21 could have had."""
    h = Hypotheses(
        np.zeros(2, dtype=np.int8), np.array([[0, -1], [0, -1]]), np.array([[0, -1], [1, -1]])
    )
    pair = frame_pair([(0, 0)], [(0, 0), (1, 0)])
    with pytest.raises(InfeasibleError, match=r"'film', frame 3: .*no hypothesis for target 21"):
        fixed_variables(pair, h, PairAnnotation(((10, 20, "move"),), (), ()))
    with pytest.raises(InfeasibleError, match="no hypothesis for source 10"):
        fixed_variables(pair, h.take(np.zeros(2, dtype=bool)), PairAnnotation((), (), ()))


def test_hypotheses_of_another_pair():
    h = make_hypotheses(CROWD, max_distance=20.0)
    with pytest.raises(DataError, match="of another pair: it has 1 sources and 3 targets"):
        fixed_variables(frame_pair([(0, 0)], [(0, 0)] * 3), h, PairAnnotation())


def test_bad_choices():
    h = make_hypotheses(CROWD, max_distance=20.0)
    with pytest.raises(DataError, match=rf"of bool of shape \({len(h)},\)"):
        links_of(CROWD, h, np.zeros(3, dtype=bool))
    with pytest.raises(DataError, match="array of int64"):
        events_of(CROWD, h, np.zeros(len(h), dtype=int))
    with pytest.raises(DataError, match="0 of the chosen hypotheses are about source 10, not one"):
        annotation_of(CROWD, h, np.zeros(len(h), dtype=bool))
    with pytest.raises(DataError, match="are about target 20, not one"):
        annotation_of(CROWD, h, h.kind == EVENTS.index("disappear"))
