"""The span vote, and what span combiners share."""

import re
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toy_data import SAID_SPANS, SPANS
from trellis import load_model
from trellis.errors import CorruptModelError, DataError
from trellis.experts import MajorityVote, SpanCombiner, SpanVote, as_outputs, as_span_outputs
from trellis.experts.span_candidates import SpanCandidates
from trellis.experts.span_voting import f1_threshold, vote_probability

BOTH = pytest.mark.parametrize("combiner", [SpanVote(), SpanCombiner()], ids=["vote", "combiner"])
LISTED = [
    [[(0, 5, "PER")], [(3, 9, "LOC"), (3, 9, "LOC")]],
    [[(0, 5, "PER"), (2, 8, "ORG")], []],
    [None, [(3, 9, "LOC")]],
]
RIGHT = [[(0, 5, "PER")], [(3, 9, "LOC")]]


def said(*answers):
    return [[answer.split()] for answer in answers]


@pytest.mark.parametrize(
    ("k", "answer"),
    [
        ("majority", "O O O"),
        (1, "B-X I-X B-Y"),
        (2, "B-X I-X O"),
        (3, "O O O"),
        (0.5, "B-X I-X O"),
        (0.51, "O O O"),
        (0.25, "B-X I-X B-Y"),
        (9, "O O O"),
    ],
)
def test_as_many_as_are_needed(k, answer):
    outputs = said("B-X I-X O", "B-X I-X O", "B-X O B-Y", "O O O")
    assert SpanVote(k=k).fit(outputs).predict(outputs) == [answer.split()]


def test_a_third_of_three_is_one():
    outputs = said("B-X", "O", "O")
    assert SpanVote(k=1 / 3).fit(outputs).predict(outputs) == [["B-X"]]


def test_those_asleep_neither_vote_for_nor_against():
    outputs = [[["B-X"]], [["B-X"]], [["O"]], [None], [None]]
    assert SpanVote(k="majority").fit(outputs).predict(outputs) == [["B-X"]]
    assert SpanVote(k=0.6).fit(outputs).predict(outputs) == [["B-X"]]
    assert SpanVote(k=5).fit([[["B-X"]], [None]]).predict([[["B-X"]], [None]]) == [["B-X"]]


def test_among_equals_the_first_expert():
    outputs = said("B-X I-X O", "O B-X I-X")
    assert SpanVote().fit(outputs).predict(outputs) == [["B-X", "I-X", "O"]]
    assert SpanVote().fit(outputs[::-1]).predict(outputs[::-1]) == [["O", "B-X", "I-X"]]


def test_experts_that_find_little_are_believed_sooner():
    rng = np.random.default_rng(0)

    def experts(recall, n=400):
        return [[["B-X" if rng.random() < recall else "O"] for _ in range(n)] for _ in range(7)]

    assert SpanVote().fit(experts(0.2)).threshold_ < 0.27
    assert SpanVote().fit(experts(0.95)).threshold_ > 0.42


def test_of_a_few_sentences_half_of_the_experts_are_needed():
    tiny = [
        [["B-X", "O", "O"], ["O", "O"]],
        [["O", "B-Y", "O"], ["O", "O"]],
        [["O", "O", "O"], ["O", "B-X"]],
    ]
    outside = [["O", "O", "O"], ["O", "O"]]
    assert SpanVote().fit(tiny).predict(tiny) == outside
    assert SpanCombiner().fit(tiny).predict(tiny) == outside
    many = [answers * 30 for answers in tiny]  # now it is sure that they find a third each
    assert SpanVote().fit(many).predict(many)[0] == ["B-X", "B-Y", "O"]


@given(st.lists(st.integers(1, 20), min_size=1, max_size=7), st.integers(0, 3))
def test_above_the_threshold_is_the_best_answer(twentieths, missing):
    p = np.array(twentieths) / 20
    total = p.sum() + missing
    best = max(
        2 * sum(some) / (n + total)
        for n in range(1, len(p) + 1)
        for some in combinations(p.tolist(), n)
    )
    threshold = f1_threshold(p, missing)
    assert threshold == pytest.approx(best / 2)
    above = p[p >= threshold - 1e-12]
    assert 2 * above.sum() / (len(above) + total) == pytest.approx(best)


def test_without_candidates():
    outputs = said("O O", "O O")
    assert SpanVote().fit(outputs).predict(outputs) == [["O", "O"]]
    assert SpanCombiner().fit(outputs, [["O", "B-X"]]).predict(outputs) == [["O", "O"]]
    nothing = [[[], None], [[], []]]
    assert SpanVote().fit(nothing).predict(nothing) == [[], []]
    combiner = SpanCombiner().fit(nothing, [[], [(0, 1, "X")]])
    assert combiner.predict(nothing) == [[], []]
    assert combiner.classes_ == ("X",)


def test_where_all_agree_it_is_the_vote():
    outputs = [SPANS] * 3
    assert SpanVote().fit(outputs).predict(outputs) == MajorityVote().fit(outputs).predict(outputs)


@BOTH
def test_labels_that_nobody_says_are_written(combiner):
    outputs = said("I-X I-X O B-Y", "I-X I-X O O")  # begins without B, as conlleval reads it
    combiner.set_params(scheme="BIO")
    assert combiner.fit(outputs).predict(outputs)[0][:3] == ["B-X", "I-X", "O"]
    combiner.set_params(scheme="auto")


@pytest.mark.parametrize(
    ("scheme", "answers", "answer"),
    [
        ("BILOU", ("B-X L-X U-X", "B-X L-X O", "O U-X O"), "B-X L-X O"),
        ("IOBES", ("B-X E-X S-X", "B-X E-X O", "O S-X O"), "B-X E-X O"),
        ("BMES", ("B M E S", "B M E S", "S S S S"), "B M E S"),
    ],
)
def test_other_schemes(scheme, answers, answer):
    vote = SpanVote(k=2).fit(said(*answers))
    assert vote.scheme_.name == scheme
    assert vote.predict(said(*answers)) == [answer.split()]


def test_every_position_of_a_segmentation_is_in_a_word():
    outputs = said("B E S", "S B E", "B M E")
    assert SpanVote(k="majority").fit(outputs).predict(outputs) == [["S", "S", "S"]]


@BOTH
def test_confidence(combiner):
    combiner.fit(SAID_SPANS, SPANS)
    sure, tables = combiner.predict_confidence(SAID_SPANS), combiner.predict_proba(SAID_SPANS)
    spans = combiner.predict_spans(SAID_SPANS)
    for labels, level, table, found, said in zip(
        combiner.predict(SAID_SPANS), sure, tables, spans, zip(*SAID_SPANS, strict=True),
        strict=True,
    ):  # fmt: skip
        assert np.allclose(table.sum(axis=1), 1)
        assert np.allclose(
            level, [row[combiner.classes_.index(y)] for y, row in zip(labels, table, strict=True)]
        )
        for start, end, type_, probability in found:
            assert labels[start] == f"B-{type_}"
            agreed = [np.mean([y[t] == labels[t] for y in said]) for t in range(start, end)]
            assert np.allclose(level[start:end], (probability + np.array(agreed)) / 2)


def test_confidence_outside_of_spans():
    outputs = [[["O", "B-X", "O", None]], [["O", "O", "O", None]], [["O", "O", "O", None]]]
    vote = SpanVote(k="majority").fit(outputs)
    assert np.allclose(vote.predict_confidence(outputs)[0], [1, 2 / 3, 1, 0.5])


def test_confidence_of_a_single_label():
    outputs = [[["O", None]]]
    assert SpanVote().fit(outputs).predict_confidence(outputs)[0].tolist() == [1, 1]


@BOTH
def test_lists_of_spans(combiner, tmp_path):
    combiner.fit(LISTED, RIGHT)
    assert combiner.spans_
    assert combiner.scheme_ is None
    assert combiner.classes_ == ("LOC", "ORG", "PER")
    assert combiner.predict(LISTED) == RIGHT
    assert combiner.score(LISTED, RIGHT) == 1
    assert combiner.score(LISTED, [None, [(3, 9, "LOC"), (0, 1, "X")]]) == pytest.approx(2 / 3)
    assert combiner.score([[[]]] * 3, [[]]) == 1
    assert combiner.expert_losses_.tolist() == pytest.approx([0, 0.5, 0])
    combiner.save(tmp_path / "spans.trellis")
    loaded = load_model(tmp_path / "spans.trellis")
    assert loaded.predict_spans(LISTED) == combiner.predict_spans(LISTED)
    assert loaded.expert_losses_.tolist() == combiner.expert_losses_.tolist()


@BOTH
def test_lists_without_gold(combiner):
    combiner.fit(LISTED)
    assert combiner.predict(LISTED) == RIGHT
    assert combiner.expert_losses_.tolist() == pytest.approx([0, 0.5, 0])
    assert combiner.fit(LISTED, [None, None]).predict(LISTED) == RIGHT


@BOTH
def test_iterators_are_gone_through_once(combiner):
    combiner.fit(iter(LISTED), iter(RIGHT))
    assert combiner.predict(iter(LISTED)) == RIGHT
    assert combiner.fit(iter(SAID_SPANS), SPANS).predict(iter(SAID_SPANS)) == combiner.predict(
        SAID_SPANS
    )
    assert len(combiner.predict_confidence(iter(SAID_SPANS))) == len(SPANS)


def test_experts_are_recognised_by_name():
    outputs = as_span_outputs(LISTED, names=["a", "b", "c"])
    combiner = SpanCombiner().fit(outputs, RIGHT)
    turned = outputs.subset(["c", "a", "b"])
    assert combiner.predict_spans(turned) == combiner.predict_spans(outputs)
    labels = as_outputs(SAID_SPANS, names=["a", "b", "c"])
    combiner.fit(labels, SPANS)
    turned = labels.subset(["c", "a", "b"])
    assert combiner.predict_spans(turned) == combiner.predict_spans(labels)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: SpanVote().fit(said("a b", "b b")), "the labels (a, b) are not written in a tag"),
        (
            lambda: SpanVote().fit([[list("abcdef")]]),
            "the labels (a, b, c, d, e, ...) are not written in a tag scheme",
        ),
        (lambda: SpanVote(scheme="XYZ").fit(said("O")), "unknown tag scheme 'XYZ'"),
        (lambda: SpanVote().fit([[]]), "no samples to learn from"),
        (lambda: SpanVote().fit(as_span_outputs([[]])), "no samples to learn from"),
        (lambda: SpanVote().fit(LISTED).predict(said("O")), "trained on lists of spans, not label"),
        (
            lambda: SpanVote().fit(said("O")).predict(LISTED),
            "trained on label sequences, not lists",
        ),
        (lambda: SpanVote().fit(LISTED).predict(LISTED[:2]), "trained on 3 experts, here are 2"),
        (lambda: SpanVote().fit(LISTED).predict_proba(LISTED), "lists of spans have no positions"),
        (lambda: SpanVote().fit(LISTED).predict_confidence(LISTED), "have no positions"),
        (lambda: SpanVote().fit(LISTED).score(LISTED, None), "no samples to score"),
        (lambda: SpanVote().fit(LISTED, [[]]), "gold has 1 samples, the experts answer 2"),
        (lambda: SpanVote().fit(LISTED, 3), "gold: expected one label sequence a sample, got 3"),
        (lambda: SpanVote().fit(LISTED, [[(1, 1, "X")], []]), "gold, sample 0 (counted from 0)"),
        (lambda: SpanVote().fit(3), "outputs must hold, for each expert"),
        (
            lambda: SpanVote(k=0).fit(LISTED),
            "k must be 'auto', 'majority', a positive integer or a number above 0 and",
        ),
        (lambda: SpanVote(k=1.5).fit(LISTED), "k must be"),
        (lambda: SpanCombiner(l2=0).fit(LISTED), "l2 must be 'auto' or a positive number, got 0"),
    ],
)
def test_what_does_not_work(wrong, message):
    with pytest.raises(DataError, match=re.escape(message)):
        wrong()


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        (SpanVote, {"threshold": 2.0}, "'threshold' is 2.0, outside"),
        (SpanVote, {"spans": 1}, "'spans' is a int"),
        (SpanVote, {"scheme": "IOB9"}, "'scheme' is 'IOB9', one of"),
        (SpanCombiner, {"weights": np.zeros(3)}, "has shape"),
        (SpanCombiner, {"feature_types": ["X", "X"]}, "types of features must be distinct"),
        (SpanCombiner, {"l2": -1.0}, "'l2' is -1.0"),
    ],
)
def test_crafted_states(kind, change, message):
    model = kind().fit(SAID_SPANS, SPANS)
    with pytest.raises(CorruptModelError, match=re.escape(message)):
        kind()._restore_whole(model._state() | change)


def test_crafted_states_of_lists():
    model = SpanVote().fit(LISTED)
    for change in ({"losses": np.full(3, 2.0)}, {"types": ["X", "X"]}, {"experts": []}):
        with pytest.raises(CorruptModelError):
            SpanVote()._restore_whole(model._state() | change)


def test_a_scheme_that_was_named_is_kept(tmp_path):
    model = SpanVote(scheme="iob2").fit(SAID_SPANS)
    model.save(tmp_path / "vote.trellis")
    assert load_model(tmp_path / "vote.trellis").scheme_.name == "BIO"


def test_the_vote_leaves_some_doubt():
    candidates = SpanCandidates.of_spans(as_span_outputs([[[(0, 1, "X")]]] * 3 + [[[]]]))
    assert vote_probability(candidates).tolist() == [0.75]
    candidates = SpanCandidates.of_spans(as_span_outputs([[[(0, 1, "X")]]] * 3))
    assert vote_probability(candidates).tolist() == [0.875]
