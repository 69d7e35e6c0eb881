"""Spans that experts give: from labels and from lists, who gives each, and how others lie to it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.corpus.schemes import get_scheme
from trellis.errors import DataError
from trellis.experts import SpanOutputs, as_outputs, as_span_outputs
from trellis.experts.span_candidates import (
    AWAKE,
    CLASH,
    END,
    EXACT,
    EXTENT,
    OVERLAP,
    START,
    SpanCandidates,
    best_spans,
    holds_spans,
    label_spans,
)

TAGS = {
    "BIO": ["B-X", "I-X", "B-Y", "I-Y", "O"],
    "IOBES": ["B-X", "I-X", "E-X", "S-X", "S-Y", "O"],
    "BMES": ["B", "M", "E", "S"],
}
SPAN = st.tuples(st.integers(0, 5), st.integers(1, 3), st.sampled_from("XY")).map(
    lambda s: (s[0], s[0] + s[1], s[2])
)
LISTS = st.lists(
    st.tuples(*[st.one_of(st.none(), st.lists(SPAN, max_size=4))] * 3), min_size=1, max_size=3
).map(lambda samples: [list(column) for column in zip(*samples, strict=True)])


def marks(span, answer):
    """What an expert with these spans has for a candidate, from the definitions."""
    start, end, type_ = span
    found = EXACT if span in answer else 0
    for a, b, other in answer:
        if (a, b, other) == span or b <= start or end <= a:
            continue
        if other == type_:
            found |= OVERLAP | (START if a == start else 0) | (END if b == end else 0)
        else:
            found |= CLASH | (EXTENT if (a, b) == (start, end) else 0)
    return found


def check(candidates, answers, awake):
    """Whether candidates are those of the answers ``answers[j][i]``."""
    for i in range(len(answers[0])):
        part = slice(candidates.offsets[i], candidates.offsets[i + 1])
        spans = [
            (a, b, candidates.types[t])
            for a, b, t in zip(
                candidates.start[part].tolist(),
                candidates.end[part].tolist(),
                candidates.type[part].tolist(),
                strict=True,
            )
        ]
        assert spans == sorted({span for column in answers for span in column[i]})
        for span, row in zip(spans, candidates.agreement[part].tolist(), strict=True):
            for j, column in enumerate(answers):
                asleep = 0 if awake(j, i, span) else AWAKE
                assert row[j] == marks(span, column[i]) | (AWAKE ^ asleep)


@given(LISTS)
def test_candidates_of_lists(said):
    outputs = as_span_outputs(said)
    answers = [[spans or [] for spans in column] for column in said]
    check(SpanCandidates.of_spans(outputs), answers, lambda j, i, span: said[j][i] is not None)


@pytest.mark.parametrize("name", TAGS)
@given(data=st.data())
def test_candidates_of_labels(name, data):
    scheme, lengths = get_scheme(name), data.draw(st.lists(st.integers(1, 6), min_size=1))
    tag = st.sampled_from([*TAGS[name], None])
    said = [[data.draw(st.lists(tag, min_size=n, max_size=n)) for n in lengths] for _ in range(3)]
    outputs = as_outputs(said, labels=[*TAGS[name], *(["O"] if name == "BMES" else [])])
    answers = [
        [[(a, b, t) for t, a, b in scheme.spans([y or "O" for y in s])] for s in column]
        for column in said
    ]

    def awake(j, i, span):
        return None not in said[j][i][span[0] : span[1]]

    check(SpanCandidates.of_labels(outputs, scheme), answers, awake)
    assert label_spans(outputs.codes[:, 1], outputs, scheme) == answers[1]


def test_labels_are_read_in_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    said = [[list(rng.choice(TAGS["BIO"], 5)) for _ in range(9)] for _ in range(3)]
    outputs, bio = as_outputs(said), get_scheme("BIO")
    whole = SpanCandidates.of_labels(outputs, bio)
    monkeypatch.setattr("trellis.experts.span_candidates._BLOCK", 10)
    parts = SpanCandidates.of_labels(outputs, bio)
    for field in ("offsets", "start", "end", "type", "agreement"):
        assert np.array_equal(getattr(whole, field), getattr(parts, field))


def test_far_positions_are_told_apart(monkeypatch):
    said = [[[(0, 1 << 30, "X"), (5, 6, "Y")], [(3, 4, "X")]], [[(0, (1 << 30) - 1, "X")], []]]
    found = SpanCandidates.of_spans(as_span_outputs(said))
    monkeypatch.setattr("trellis.experts.span_candidates._MOST", 1 << 33)
    again = SpanCandidates.of_spans(as_span_outputs(said))
    assert found.end.tolist() == again.end.tolist() == [(1 << 30) - 1, 1 << 30, 6, 4]
    assert found.agreement.tolist() == again.agreement.tolist()


@given(LISTS, st.data())
def test_samples_are_taken(said, data):
    outputs = as_span_outputs(said)
    picked = data.draw(st.lists(st.integers(0, len(outputs) - 1), max_size=4))
    some = outputs.take(np.array(picked, np.int64))
    listed = as_span_outputs([[column[i] for i in picked] for column in said])
    ours = SpanCandidates.of_spans(some)
    theirs = SpanCandidates.of_spans(outputs).take(np.array(picked, np.int64))
    for field in ("offsets", "start", "end", "agreement"):
        assert np.array_equal(getattr(ours, field), getattr(theirs, field))
        assert np.array_equal(getattr(ours, field), getattr(SpanCandidates.of_spans(listed), field))


def test_experts_are_taken_by_name():
    said = as_span_outputs([[[(0, 1, "X")]], [None], [[(2, 3, "Y")]]], names=["a", "b", "c"])
    some = said.subset(["c", "a"])
    assert some.names == ("c", "a")
    assert some.expert.tolist() == [1, 0]
    assert as_span_outputs(some, names=["u", "v"]).names == ("u", "v")
    assert as_span_outputs(some) is some


def test_right_candidates():
    found = SpanCandidates.of_spans(as_span_outputs([[[(0, 2, "X"), (3, 4, "X")], [(0, 2, "X")]]]))
    assert found.right([[(0, 2, "X"), (3, 4, "new")], []]).tolist() == [True, False, False]


def test_the_best_spans_in_their_own_order():
    said = as_span_outputs([[[(0, 5, "X"), (1, 2, "X"), (3, 4, "Y"), (3, 4, "X")]]])
    found = SpanCandidates.of_spans(said)
    assert best_spans(found, np.array([2.5, 1.0, 2.0, 2.0])).tolist() == [False, True, True, False]
    assert best_spans(found, np.array([3.5, 1.0, 2.0, 2.0])).tolist() == [True, False, False, False]


@pytest.mark.parametrize(
    ("outputs", "answer"),
    [
        ([[None, [(0, 1, "X")]]], True),
        ([[[{"start": 0, "end": 1, "type": "X"}]]], True),
        ([[[]], [None]], True),
        ([[["O"]]], False),
        ([[[None, "O"]]], False),
        ([[None]], False),
        (["no"], False),
    ],
)
def test_spans_are_told_from_labels(outputs, answer):
    assert holds_spans(outputs) is answer
    assert isinstance(as_span_outputs([[[]]]), SpanOutputs)


@pytest.mark.parametrize(
    ("span", "message"),
    [
        ((2, 2, "X"), r"the span \(2, 2, 'X'\) must have 0 <= start < end"),
        ((-1, 2, "X"), r"the span \(-1, 2, 'X'\) must have 0 <= start < end"),
        ((0, 1 << 40, "X"), "must have 0 <= start < end <= 1073741824"),
        ((0.5, 2, "X"), "needs whole numbers for start and end and a string for its type"),
        ((0, True, "X"), "needs whole numbers"),
        ((0, 2, None), "needs whole numbers for start and end and a string for its type"),
        ({"start": 0, "end": 2}, "needs whole numbers for start and end and a string"),
        ((0, 2), r"expected spans \(start, end, type\), or dicts with these keys, got \(0, 2\)"),
        ("abc", r"expected spans \(start, end, type\)"),
    ],
)
def test_what_is_no_span(span, message):
    with pytest.raises(DataError, match=f"expert 2, sample 1 .counted from 0.: .*{message}"):
        as_span_outputs([[[], []], [[], [span]]])


@pytest.mark.parametrize("answer", ["spans", 3, {"start": 0, "end": 1, "type": "X"}])
def test_what_is_no_list_of_spans(answer):
    with pytest.raises(
        DataError, match=r"sample 0 .counted from 0.: expected a list of spans, got"
    ):
        as_span_outputs([[answer]])
