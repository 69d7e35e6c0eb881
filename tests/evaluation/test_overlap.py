"""GLEU and the word error rate: cases counted by hand, and n-grams counted one by one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.errors import DataError
from trellis.evaluation import edit_distance, gleu, sentence_gleu, word_error_rate

SEQUENCE = st.lists(st.sampled_from("abc"), max_size=7)


def counted(gold: list[str], answer: list[str], longest: int) -> float:
    """Cross out common n-grams, one after the other."""
    ours, theirs = (
        [tuple(s[i : i + n]) for n in range(1, longest + 1) for i in range(len(s) - n + 1)]
        for s in (gold, answer)
    )
    left, common = list(theirs), 0
    for ngram in ours:
        if ngram in left:
            left.remove(ngram)
            common += 1
    return (
        min(common / len(ours), common / len(theirs)) if ours and theirs else float(ours == theirs)
    )


@given(SEQUENCE, SEQUENCE, st.integers(1, 5))
def test_against_counting(gold: list[str], answer: list[str], longest: int) -> None:
    found = sentence_gleu(gold, answer, longest)
    assert found == pytest.approx(counted(gold, answer, longest))
    assert found == sentence_gleu(answer, gold, longest)
    assert (found == 1) == (gold == answer)


@pytest.mark.parametrize(
    ("gold", "answer", "expected"),
    [
        ("a b c d", "a b c d", 1.0),
        ("a b c", "a b c d", 6 / 10),  # 3 + 2 + 1 of 4 + 3 + 2 + 1
        ("the the the", "the", 1 / 6),
        ("a b", "b a", 2 / 3),
        ("a b c d e", "a x c d e", 7 / 14),  # 4 + 2 + 1 + 0 of 5 + 4 + 3 + 2
        ("a", "b", 0.0),
        ("a", "", 0.0),
        ("", "", 1.0),
    ],
)
def test_by_hand(gold: str, answer: str, expected: float) -> None:
    assert sentence_gleu(gold.split(), answer.split()) == pytest.approx(expected)


def test_mean_of_sentences() -> None:
    assert gleu([["a", "b"], ["a"]], [["b", "a"], ["a"]]) == pytest.approx((2 / 3 + 1) / 2)
    assert gleu([["a", "b"], ["a"]], [["b", "a"], ["a"]], longest=1) == 1
    assert gleu(["ab"], ["ab"]) == 1


@given(st.lists(st.tuples(SEQUENCE, SEQUENCE), min_size=1))
def test_word_error_rate(pairs: list[tuple[list[str], list[str]]]) -> None:
    gold, answers = ([pair[k] for pair in pairs] for k in (0, 1))
    words = sum(map(len, gold))
    if words:
        edits = sum(edit_distance(a, b) for a, b in pairs)
        assert word_error_rate(gold, answers) == edits / words
    else:
        with pytest.raises(DataError, match="gold has no words"):
            word_error_rate(gold, answers)


def test_long_sentences_count_more() -> None:
    assert word_error_rate([["a"] * 9, ["b"]], [["a"] * 9, ["c", "d"]]) == 0.2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([["a"]], []), "gold has 1 samples, there are 0 answers"),
        (([], []), "no samples to score"),
        ((3, [["a"]]), "gold must be a list of samples, got 3"),
        (([["a"]], None), "answers must be a list of samples, got None"),
    ],
)
def test_bad_input(arguments: Any, message: str) -> None:
    for score in (gleu, word_error_rate):
        with pytest.raises(DataError, match=message):
            score(*arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1], ["a"]), r"gold must be a string or a list of strings, got \[1\]"),
        ((["a"], None), "answer must be a string or a list of strings, got None"),
        ((["a"], ["a"], 0), "longest must be a positive integer, got 0"),
    ],
)
def test_bad_sentences(arguments: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        sentence_gleu(*arguments)
