"""Span scores against conlleval's state machine; word segmentation against sets of boundaries."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.corpus.schemes import get_scheme, words_to_tags
from trellis.errors import DataError
from trellis.evaluation import PrecisionRecall, span_scores, word_segmentation_scores
from trellis.evaluation.spans import counts_of_systems, sample_counts


class ConllEval:
    """Counts of conlleval, token by token: it never builds a span, only watches both tags change.

    A chunk is correct if both sequences open a chunk of the same type at the same token and
    close it at the same token.
    """

    def __init__(self) -> None:
        self.correct: Counter[str] = Counter()
        self.found: Counter[str] = Counter()
        self.wanted: Counter[str] = Counter()
        self.tokens = self.right = 0

    @staticmethod
    def ends(before: tuple[str, str], now: tuple[str, str]) -> bool:
        if before[0] == "O":
            return False
        return now[0] in {"B", "O"} or before[1] != now[1]

    @staticmethod
    def starts(before: tuple[str, str], now: tuple[str, str]) -> bool:
        if now[0] == "O":
            return False
        return now[0] == "B" or before[0] == "O" or before[1] != now[1]

    def feed(self, gold: list[str], predicted: list[str]) -> None:
        outside = ("O", "")
        last_gold = last_predicted = outside
        both_open = False
        self.tokens += len(gold)
        for g, p in zip([*gold, None], [*predicted, None], strict=True):  # None: the blank line
            if g is not None and p is not None:
                self.right += g == p
            now_gold = outside if g is None else (g[0], g[2:])
            now_predicted = outside if p is None else (p[0], p[2:])
            if both_open:
                gold_ends = self.ends(last_gold, now_gold)
                predicted_ends = self.ends(last_predicted, now_predicted)
                if gold_ends and predicted_ends:
                    self.correct[last_gold[1]] += 1
                both_open = not (gold_ends or predicted_ends)
            gold_starts = self.starts(last_gold, now_gold)
            predicted_starts = self.starts(last_predicted, now_predicted)
            both_open |= gold_starts and predicted_starts and now_gold[1] == now_predicted[1]
            self.wanted[now_gold[1]] += gold_starts
            self.found[now_predicted[1]] += predicted_starts
            last_gold, last_predicted = now_gold, now_predicted

    @staticmethod
    def scores(correct: int, found: int, wanted: int) -> tuple[float, float, float]:
        precision = correct / found if found else 0.0
        recall = correct / wanted if wanted else 0.0
        total = precision + recall
        return precision, recall, 2 * precision * recall / total if total else 0.0


TAGS = ["O", "B-X", "I-X", "B-Y", "I-Y", "B", "I"]
PAIRS = st.lists(st.tuples(st.sampled_from(TAGS), st.sampled_from(TAGS)), max_size=10)


@settings(max_examples=60, deadline=None)
@given(st.lists(PAIRS, min_size=1, max_size=5), st.booleans())
def test_bio_equals_conlleval_also_on_invalid_sequences(
    samples: list[list[tuple[str, str]]], similar: bool
) -> None:
    gold = [[g for g, _ in sample] for sample in samples]
    predicted = [[p for _, p in sample] for sample in samples]
    if similar:  # random sequences seldom share a long span: redraw only every third label
        predicted = [
            [q if t % 3 == 0 else p for t, (p, q) in enumerate(zip(g, s, strict=True))]
            for g, s in zip(gold, predicted, strict=True)
        ]
    if not any(gold):
        with pytest.raises(DataError, match="all samples are empty"):
            span_scores(gold, predicted)
        return
    reference = ConllEval()
    for g, p in zip(gold, predicted, strict=True):
        reference.feed(g, p)
    scores = span_scores(gold, predicted)
    assert scores.accuracy == reference.right / reference.tokens
    assert scores.n_tokens == reference.tokens
    expected = reference.scores(
        reference.correct.total(), reference.found.total(), reference.wanted.total()
    )
    assert (scores.precision, scores.recall, scores.f1) == pytest.approx(expected)
    types = set(+(reference.found + reference.wanted))
    assert list(scores.by_type) == sorted(types)
    for name, score in scores.by_type.items():
        counts = reference.correct[name], reference.found[name], reference.wanted[name]
        assert (score.correct, score.predicted, score.support) == counts
        expected = reference.scores(*counts)
        assert (score.precision, score.recall, score.f1) == pytest.approx(expected)
    mean = sum(s.f1 for s in scores.by_type.values()) / max(len(types), 1)
    assert scores.macro_f1 == pytest.approx(mean)


@pytest.mark.parametrize("scheme", ["BIO", "BILOU", "IOBES", "BMES"])
def test_all_schemes_give_the_same_scores_for_the_same_spans(scheme: str) -> None:
    writes = get_scheme(scheme).labels_for
    gold = [writes([("X", 0, 2), ("Y", 2, 3), ("X", 4, 7)], 8), writes([], 2)]
    predicted = [writes([("X", 0, 2), ("X", 2, 3), ("X", 4, 6)], 8), writes([("Y", 0, 1)], 2)]
    scores = span_scores(gold, predicted, scheme)
    assert (scores.correct, scores.predicted, scores.support) == (1, 4, 3)
    assert scores.by_type["X"] == PrecisionRecall(correct=1, predicted=3, support=2)
    assert scores.by_type["Y"] == PrecisionRecall(correct=0, predicted=1, support=1)
    assert (scores.precision, scores.recall) == (1 / 4, 1 / 3)
    assert scores.f1 == pytest.approx(2 / 7)
    assert scores.macro_f1 == pytest.approx(0.2)


@st.composite
def samples_of_a_scheme(draw: st.DrawFn) -> tuple[str, list[list[list[str]]]]:
    """Three labellings of samples, some of them empty; the labels need not be valid."""
    scheme = draw(st.sampled_from(["BIO", "BILOU", "IOBES", "BMES"]))
    letters = get_scheme(scheme).reads.replace("O", "")
    label = st.sampled_from(["O", *letters, *(f"{c}-{t}" for c in letters for t in "XY")])
    lengths = draw(st.lists(st.integers(0, 5), min_size=1, max_size=4).filter(any))
    return scheme, [[draw(st.lists(label, min_size=n, max_size=n)) for n in lengths] for _ in "gab"]


@settings(max_examples=60)
@given(samples_of_a_scheme())
def test_counts_of_samples_are_those_of_sets_of_spans(
    case: tuple[str, list[list[list[str]]]],
) -> None:
    scheme, (gold, *systems) = case
    read = get_scheme(scheme).spans
    found = counts_of_systems(gold, [(system, "system") for system in systems], scheme)
    for counts, system in zip(found, systems, strict=True):
        for row, g, p in zip(counts.tolist(), gold, system, strict=True):
            in_gold, in_predicted = set(read(g)), set(read(p))
            assert row == [len(in_gold & in_predicted), len(in_predicted), len(in_gold)]


def test_counts_of_samples_that_are_no_lists() -> None:
    arrays = [np.array(["B-X", "I-X"]), np.array(["O"])]
    assert sample_counts(arrays, [("B-X", "I-X"), ("O",)], "BIO").tolist() == [[1, 1, 1], [0, 0, 0]]
    with pytest.raises(DataError, match="sample 0 of gold, labels are of type set"):
        sample_counts([{"O"}], [["O"]], "BIO")
    with pytest.raises(DataError, match="sample 1 of gold, position 0: label"):
        sample_counts([["O"], [["O"]]], [["O"], ["O"]], "BIO")


def test_strict_drops_invalid_spans() -> None:
    gold, predicted = [["B-X", "O"]], [["I-X", "O"]]
    assert span_scores(gold, predicted).f1 == 1.0
    assert span_scores(gold, predicted, strict=True).predicted == 0


def test_nothing_predicted_or_nothing_there_is_zero_not_nan() -> None:
    scores = span_scores([["B-X", "O"]], [["O", "O"]])
    assert (scores.precision, scores.recall, scores.f1, scores.macro_f1) == (0, 0, 0, 0)
    scores = span_scores([["O", "O"]], [["O", "O"]])
    assert (scores.precision, scores.recall, scores.f1, scores.macro_f1) == (0, 0, 0, 0)
    assert scores.by_type == {}
    assert "overall" in str(scores)


def test_types_never_seen_in_training_count_as_missed() -> None:
    scores = span_scores([["B-X", "I-NEW"]], [["B-X", "O"]])
    assert scores.by_type["NEW"] == PrecisionRecall(0, 0, 1)
    assert scores.recall == 0.5


def test_table_names_types_and_hides_the_only_empty_one() -> None:
    table = str(span_scores([["B-X", "B"]], [["B-X", "O"]]))
    assert [line.split()[0] for line in table.splitlines()[3:]] == ["overall", "(no", "X"]
    assert table.splitlines()[-1].split() == ["X", "100.00%", "100.00%", "100.00", "1", "1"]
    assert len(str(span_scores([["S"]], [["S"]], "BMES")).splitlines()) == 4


@pytest.mark.parametrize(
    ("gold", "predicted", "message"),
    [
        ([["O"], ["O", "O"]], [["O"], ["O"]], "sample 1 has 2 positions in gold but 1"),
        ([["O"]], [], "1 samples in gold but 0 in predicted"),
        ([], [], "there are no samples"),
        ([[]], [[]], "all samples are empty"),
        ([["O"], ["O", "NOUN"]], [["O"], ["O", "O"]], "sample 1 of gold, position 1: .*'NOUN'"),
        ([["O"]], [["X"]], "sample 0 of predicted, position 0: label 'X' does not fit .* BIO"),
        ([["O", None]], [["O", "O"]], "sample 0 of gold, position 1: label None"),
        (["O"], ["O"], "sample 0 of gold is 'O'"),
    ],
)
def test_bad_input(gold: list, predicted: list, message: str) -> None:
    with pytest.raises(DataError, match=message):
        span_scores(gold, predicted)


def test_bad_scheme() -> None:
    with pytest.raises(DataError, match="unknown tag scheme 'IOB9'"):
        span_scores([["O"]], [["O"]], "IOB9")


@st.composite
def segmentations(draw: st.DrawFn) -> list[list[str]]:
    """Two segmentations of one sentence."""
    sentence = draw(st.text("abc", max_size=10))
    cuts = [draw(st.lists(st.booleans(), min_size=10, max_size=10)) for _ in range(2)]
    found = []
    for cut in cuts:
        words: list[str] = []
        for i, char in enumerate(sentence):
            if i == 0 or cut[i]:
                words.append(char)
            else:
                words[-1] += char
        found.append(words)
    return found


@settings(deadline=None)
@given(st.lists(segmentations(), min_size=1, max_size=4), st.sets(st.text("abc", max_size=2)))
def test_segmentation_scores(samples: list[list[list[str]]], known: set[str]) -> None:
    gold = [g for g, _ in samples]
    predicted = [p for _, p in samples]
    if not any(gold):
        with pytest.raises(DataError, match="all samples are empty"):
            word_segmentation_scores(gold, predicted)
        return
    scores = word_segmentation_scores(gold, predicted, known)
    by_tags = span_scores(
        [words_to_tags(g) for g in gold], [words_to_tags(p) for p in predicted], "BMES"
    )
    assert (scores.precision, scores.recall, scores.f1) == (
        by_tags.precision,
        by_tags.recall,
        by_tags.f1,
    )

    def placed(words: list[str]) -> list[tuple[int, str]]:
        return [(len("".join(words[:i])), word) for i, word in enumerate(words)]

    hits: dict[bool, list[bool]] = {True: [], False: []}
    for g, p in samples:
        for place, word in placed(g):
            hits[word in known].append((place, word) in placed(p))
    for is_known, value in ((True, scores.iv_recall), (False, scores.oov_recall)):
        expected = sum(hits[is_known]) / len(hits[is_known]) if hits[is_known] else None
        assert value == expected
    assert scores.oov_rate == len(hits[False]) / scores.support


def test_segmentation_without_known_words_says_nothing_of_them() -> None:
    scores = word_segmentation_scores([["ab", "c"]], [["ab", "c"]])
    assert (scores.oov_rate, scores.oov_recall, scores.iv_recall) == (None, None, None)
    assert str(scores) == "words: 2; precision: 100.00%; recall: 100.00%; F1: 100.00"
    text = str(word_segmentation_scores([["ab", "c"]], [["ab", "c"]], {"c"}))
    assert text.endswith("OOV rate: 50.00%; OOV recall: 100.00%; IV recall: 100.00%")


@pytest.mark.parametrize(
    ("gold", "predicted", "known", "message"),
    [
        ([], [], None, "there are no samples"),
        ([[]], [[]], None, "all samples are empty"),
        ([["a"]], [], None, "1 samples in gold but 0 in predicted_words"),
        ([["a"], ["b"]], [["a"], ["c"]], None, "sample 1: .* do not join to the same sentence"),
        ([["a", ""]], [["a"]], None, "sample 0 of gold_words: word 1 is empty"),
        ([["a"]], ["a"], None, "sample 0 of predicted_words must be a list of words"),
        ([["a"]], [["a"]], "a", "known_words must be a collection of words"),
    ],
)
def test_bad_segmentation(gold: list, predicted: list, known: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        word_segmentation_scores(gold, predicted, known)  # type: ignore[arg-type]
