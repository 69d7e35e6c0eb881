"""Scores of links, divisions and events, against counting them one by one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.errors import DataError
from trellis.tracking.objects import Link
from trellis.tracking.result import TrackEvent
from trellis.tracking.scores import EventKey, event_set, score_links, task_loss

some_links = st.lists(
    st.builds(
        Link,
        st.sampled_from(["", "a"]),
        st.integers(0, 1),
        st.integers(0, 2),
        st.integers(0, 3),
        st.sampled_from(["move", "division"]),
        st.just(None),
    ),
    max_size=8,
)
some_events = st.lists(
    st.builds(
        TrackEvent,
        st.just("a"),
        st.integers(0, 1),
        st.integers(0, 2),
        st.sampled_from(["appear", "disappear"]),
    ),
    max_size=4,
)


def divisions(links):
    parents = [link[:3] for link in links if link.kind == "division"]
    return [
        (p, sorted({k.target_id for k in links if k[:3] == p and k.kind == "division"}))
        for p in sorted(set(parents))
    ]


@settings(max_examples=30)
@given(some_links, some_links)
def test_counts_one_by_one(truth, predicted):
    scores = score_links(iter(truth), iter(predicted))
    ends = [sorted({link[:4] for link in links}) for links in (truth, predicted)]
    for score, true, found in (
        (scores.links, *ends),
        (scores.divisions, divisions(truth), divisions(predicted)),
    ):
        n = sum(one in true for one in found)
        assert (score.correct, score.support, score.predicted) == (n, len(true), len(found))
        assert score.precision == (n / len(found) if found else 0)
        assert score.recall == (n / len(true) if true else 0)


@settings(max_examples=30)
@given(some_links, some_links)
def test_swapping_truth_and_prediction(truth, predicted):
    one, other = score_links(truth, predicted), score_links(predicted, truth)
    for a, b in ((one.links, other.links), (one.divisions, other.divisions)):
        assert (a.precision, a.recall, a.f1) == (b.recall, b.precision, b.f1)


@settings(max_examples=30)
@given(some_links.filter(bool), some_events)
def test_perfect(links, events):
    scores = score_links(links, reversed(links))
    assert scores.links.f1 == 1
    assert scores.divisions.f1 == any(link.kind == "division" for link in links)
    assert task_loss(event_set(links, events), event_set(reversed(links), reversed(events))) == 0


@settings(max_examples=30)
@given(some_links.filter(bool), some_events, some_links, some_events)
def test_task_loss_of_vectors(links, events, other_links, other_events):
    truth, predicted = event_set(links, events), event_set(other_links, other_events)
    every = sorted(truth | predicted)
    y_true, y = ([event in chosen for event in every] for chosen in (truth, predicted))
    loss = sum(a != b for a, b in zip(y_true, y, strict=True)) / sum(y_true)
    assert task_loss(truth, predicted) == loss


def test_all_kinds_of_events():
    links = [
        Link("s", 0, 0, 4, "move"),
        Link("s", 0, 1, 6, "division"),
        Link("s", 0, 1, 5, "division"),
        Link("s", 0, 2, 7, "split"),
        Link("s", 0, 2, 8, "split"),
        Link("s", 0, 4, 9, "merge"),
        Link("s", 0, 3, 9, "merge"),
    ]
    events = [TrackEvent("s", 1, 3, "appear"), TrackEvent("s", 0, 9, "disappear")]
    assert event_set(links, events) == {
        EventKey("move", "s", 0, (0,), (4,)),
        EventKey("division", "s", 0, (1,), (5, 6)),
        EventKey("split", "s", 0, (2,), (7, 8)),
        EventKey("merge", "s", 0, (3, 4), (9,)),
        EventKey("appear", "s", 1, (), (3,)),
        EventKey("disappear", "s", 0, (9,), ()),
    }


def test_a_division_needs_both_daughters():
    truth = [Link("", 0, 0, j, "division") for j in (0, 1)]
    predicted = [Link("", 0, 0, j, "division") for j in (0, 2)]
    scores = score_links(truth, predicted)
    assert (scores.links.recall, scores.divisions.recall) == (0.5, 0.0)
    assert task_loss(event_set(truth), event_set(predicted)) == 2.0


def test_nothing_to_compare_with():
    with pytest.raises(DataError, match="truth has no events: there is nothing to compare with"):
        task_loss(set(), set())


def test_links_over_gaps_are_other_links():
    near, far = Link("", 0, 3, 4, "move"), Link("", 0, 3, 4, "move", 2)
    assert score_links([far], [near]).links.correct == 0
    assert score_links([far], [far]).links.f1 == 1
    late = [Link("", 0, 1, 5, "division"), Link("", 0, 1, 6, "division", 2)]
    assert score_links(late, late[::-1]).divisions.f1 == 1
    assert event_set(late) == {EventKey("division", "", 0, (1,), (5, 6), (0, 1))}
    assert score_links(late, [late[0], late[1]._replace(frame_target=1)]).divisions.correct == 0
