"""Edit distance against the plain recursion, and as a metric."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.errors import DataError
from trellis.evaluation import edit_distance, normalised_edit_distance

SEQUENCE = st.lists(st.sampled_from(["AA", "B", "K"]), max_size=7)


def recursive(a: tuple[str, ...], b: tuple[str, ...]) -> int:
    @cache
    def distance(i: int, j: int) -> int:
        if i == 0 or j == 0:
            return i + j
        return min(
            distance(i - 1, j) + 1,
            distance(i, j - 1) + 1,
            distance(i - 1, j - 1) + (a[i - 1] != b[j - 1]),
        )

    return distance(len(a), len(b))


@settings(deadline=None)
@given(SEQUENCE, SEQUENCE)
def test_against_the_recursion(a: list[str], b: list[str]) -> None:
    assert edit_distance(a, b) == recursive(tuple(a), tuple(b))


def tabled(a: list[str] | str, b: list[str] | str) -> int:
    """The same, row by row."""
    row = list(range(len(b) + 1))
    for i, symbol in enumerate(a, 1):
        above, row = row, [i]
        for j, other in enumerate(b, 1):
            row.append(min(row[-1] + 1, above[j] + 1, above[j - 1] + (symbol != other)))
    return row[-1]


@st.composite
def long_pairs(draw: Any) -> tuple[list[str], list[str]]:
    """Of up to 200 symbols, few or many distinct; often one is an edited copy of the other."""
    rng = random.Random(draw(st.integers(0, 2**32)))
    symbols = [str(i) for i in range(draw(st.sampled_from([1, 2, 3, 20, 300])))]
    n, m = draw(st.tuples(*[st.sampled_from([0, 1, 29, 30, 31, 60, 63, 64, 65, 128, 200])] * 2))
    a, b = ([rng.choice(symbols) for _ in range(k)] for k in (n, m))
    if draw(st.booleans()):
        b = list(a)
        for _ in range(draw(st.integers(0, 12))):
            place = rng.randint(0, len(b))
            b[place : place + rng.randint(0, 2)] = [rng.choice(symbols)] * rng.randint(0, 2)
    return a, b


@settings(deadline=None)
@given(long_pairs())
def test_long_sequences_against_the_table(pair: tuple[list[str], list[str]]) -> None:
    """Sets of rows cross the words of which integers are made."""
    a, b = pair
    assert edit_distance(a, b) == tabled(a, b)


@settings(deadline=None)
@given(st.text(max_size=90), st.text(max_size=90))
def test_strings_are_sequences_of_characters(a: str, b: str) -> None:
    assert edit_distance(a, b) == tabled(a, b) == edit_distance(list(a), list(b))


def test_very_long_sequences() -> None:
    """The known distance of 20,000 symbols from 20,000 others, some shifted and some changed."""
    rng = random.Random(0)
    a = [str(rng.randrange(50)) for _ in range(20_000)]
    assert edit_distance(a, a[7:] + ["new"] * 7) == 14
    changed = list(a)
    for i in range(0, len(a), 100):
        changed[i] = "new"
    assert edit_distance(a, changed) == 200
    assert edit_distance(a, ["new"] * 20_000) == 20_000


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([["A"]], ["A"], r"a must be a string or a list of strings, got \[\['A'\]\]"),
        (["A"], [1], r"b must be a string or a list of strings, got \[1\]"),
        (None, ["A"], "a must be a string or a list of strings, got None"),
        (["A"], b"A", "b must be a string or a list of strings, got b'A'"),
    ],
)
def test_what_is_no_sequence_of_strings(a: Any, b: Any, message: str) -> None:
    for distance in (edit_distance, normalised_edit_distance):
        with pytest.raises(DataError, match=message):
            distance(a, b)


@settings(deadline=None)
@given(SEQUENCE, SEQUENCE, SEQUENCE)
def test_is_a_metric_within_its_bounds(a: list[str], b: list[str], c: list[str]) -> None:
    d = edit_distance(a, b)
    assert (d == 0) == (a == b)
    assert d == edit_distance(b, a)
    assert d <= edit_distance(a, c) + edit_distance(c, b)
    assert abs(len(a) - len(b)) <= d <= max(len(a), len(b))
    assert 0.0 <= normalised_edit_distance(a, b) <= 1.0
    assert normalised_edit_distance(a, b) * max(len(a), len(b)) == pytest.approx(d)


def test_empty_sequences() -> None:
    assert edit_distance([], []) == 0
    assert edit_distance([], ["A", "B"]) == 2
    assert normalised_edit_distance([], []) == 0.0
    assert normalised_edit_distance(["A"], []) == 1.0
