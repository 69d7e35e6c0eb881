"""Answers to samples that nobody has learned from."""

import numpy as np
import pytest

from trellis.experts import AnnotatorModel, BestExpert, Committee, LogLinearVote, SpanVote
from trellis.experts.committee import plurality
from trellis.experts.held_out import HeldOut
from trellis.experts.questions import Questions
from trellis.progress import Task

METHODS = {
    "best": BestExpert,
    "learned": LogLinearVote,
    "annotators": lambda: AnnotatorModel("dawid-skene"),
    "committee": lambda: Committee([BestExpert(), LogLinearVote()]),
    "span-vote": SpanVote,
}


def drawn(n, n_gold, seed=0):
    rng = np.random.default_rng(seed)
    gold = [rng.choice(["a", "b", "c"], 2).tolist() for _ in range(n)]
    said = [
        [[y if rng.random() < share else "a" for y in right] for right in gold]
        for share in (0.9, 0.6, 0.5)
    ]
    return Questions.of(said, [*gold[:n_gold], *[None] * (n - n_gold)])


def trial(questions, n_folds=3):
    return HeldOut(
        questions, n_folds, lambda name: METHODS[name](), ("annotators",), ("best", "learned")
    )


@pytest.mark.parametrize("name", ["learned", "annotators"])
def test_each_sample_is_answered_by_one_that_was_told_nothing_of_it(name):
    questions = drawn(20, 14)
    found = trial(questions).answers(name, Task("method", 1), 0)
    for i in range(14):
        gold = list(questions.gold)
        for k in range(i % 3, 14, 3):
            gold[k] = None
        # Those that learn from right answers alone do not even see the others.
        others = [k for k in range(20) if gold[k] is not None or name == "annotators"]
        rest = questions.take(np.array(others))
        combiner = METHODS[name]().fit(rest.outputs, [gold[k] for k in others])
        assert found[i] == combiner.predict(questions.take(np.array([i])).outputs)[0]


def test_fewer_samples_than_folds():
    assert len(trial(drawn(5, 2), 5).answers("learned", Task("method", 1), 0)) == 2


def test_a_committee_of_those_that_were_tried_is_not_taught_again():
    questions = drawn(20, 14)
    once, again = trial(questions), trial(questions)
    task = Task("method", 3)
    members = [once.answers(name, task, k) for k, name in enumerate(("best", "learned"))]
    together = once.answers("committee", task, 2)
    assert together == plurality(members)
    assert together == again.answers("committee", task, 0)  # whose members were not tried before
    sure = [held.raw_levels("committee", "labels", None, together) for held in (once, again)]
    for a, b in zip(sure[0].positions, sure[1].positions, strict=True):
        assert np.array_equal(a, b)
    assert sure[0].spans is None


def test_levels_are_those_of_the_combiners():
    questions = drawn(9, 9)
    held = trial(questions)
    found = held.answers("learned", Task("method", 1), 0)
    raw = held.raw_levels("learned", "labels", None, found)
    rest = questions.take(np.array([0, 2, 3, 5, 6, 8]))  # all but the second fold
    combiner = LogLinearVote().fit(rest.outputs, rest.gold)
    fold = questions.take(np.array([1, 4, 7])).outputs
    for i, levels in zip((1, 4, 7), combiner.predict_confidence(fold), strict=True):
        assert np.array_equal(raw.positions[i], levels)


def test_spans_have_levels_but_no_positions():
    said = [[[(0, 1, "X")], []], [[(0, 1, "X")], [(1, 2, "Y")]], [[(0, 1, "X")], []]]
    held = trial(Questions.of(said, [[(0, 1, "X")], []]), 2)
    found = held.answers("span-vote", Task("method", 1), 0)
    raw = held.raw_levels("span-vote", "spans", None, found)
    assert raw.positions is None
    assert [[span[:3] for span in spans] for spans in raw.spans] == found
