"""Where a person should look first."""

from itertools import groupby

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.experts import as_outputs
from trellis.experts.doubts import Doubt, label_doubts, span_doubts, word_doubts


def slow_label_doubts(answers, levels, columns):
    """Position by position."""
    for i, (answer, level) in enumerate(zip(answers, levels, strict=True)):
        said = [column[i] or [None] * len(answer) for column in columns]
        differ = [any(one[k] not in (None, y) for one in said) for k, y in enumerate(answer)]
        for disputed, run in groupby(range(len(answer)), key=differ.__getitem__):
            places = list(run)
            if disputed:
                told = [
                    ""
                    if not any(one[k] for k in places)
                    else " ".join(one[k] or "" for k in places)
                    for one in said
                ]
                text = " ".join(answer[k] for k in places)
                sure = min(level[k] for k in places)
                yield Doubt(i, places[0], places[-1] + 1, text, sure, tuple(told))


@settings(max_examples=30)
@given(st.integers(0, 10**6))
def test_doubts_about_labels(seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 5, rng.integers(1, 5))

    def draw(labels, n):
        return [labels[k] for k in rng.integers(0, len(labels), n)]

    answers = [draw(["a", "b", "z"], n) for n in lengths]
    columns = [
        [None if rng.random() < 0.2 else draw(["a", "b", None], n) for n in lengths]
        for _ in range(rng.integers(1, 4))
    ]
    columns[0][0] = draw(["a"], lengths[0])
    columns = [
        [draw(["a"], n) if i and all(c[i] is None for c in columns) else one
         for i, (one, n) in enumerate(zip(column, lengths, strict=True))]
        for column in columns
    ]  # fmt: skip
    levels = [rng.random(n) for n in lengths]
    found = list(label_doubts(answers, levels, as_outputs(columns)))
    assert found == list(slow_label_doubts(answers, levels, columns))


def test_a_run_ends_with_its_sample():
    said = as_outputs([[["a"], ["a"]], [["b"], ["b"]]])
    found = list(label_doubts([["a"], ["a"]], [np.ones(1), np.ones(1)], said))
    assert [(d.sample, d.start, d.end) for d in found] == [(0, 0, 1), (1, 0, 1)]


def test_all_agree():
    said = as_outputs([[["a", "b"]], [["a", None]]])
    assert list(label_doubts([["a", "b"]], [np.ones(2)], said)) == []


def test_doubts_about_words():
    columns = [[["a", "b"], ["c"], ["d"]], [["a"], None, []]]
    levels = [np.array([0.2, 0.6]), np.array([0.9]), np.zeros(0)]
    first, last = word_doubts([["a", "b"], ["c"], []], levels, columns)
    assert (first.sample, first.start, first.end, first.answer) == (0, 0, 2, "a b")
    assert abs(first.confidence - 0.4) < 1e-12
    assert first.said == ("a b", "a")
    assert (last.sample, last.answer, last.confidence, last.said) == (2, "", 0.0, ("d", ""))


def test_doubts_about_spans():
    columns = [[[(0, 2, "X"), (3, 4, "Y")]], [[(0, 2, "X")]], [None], [[(0, 2, "X"), (3, 5, "Y")]]]
    found = list(span_doubts([[(0, 2, "X", 0.9), (3, 4, "Y", 0.6)]], columns))
    assert [(d.start, d.end, d.answer) for d in found] == [(3, 4, "Y"), (3, 5, "-")]
    assert found[0].said == ("Y", "-", "", "-")
    assert found[0].confidence == 0.6
    assert 0.5 < found[1].confidence < 1  # one of three gives it: probably it is none
