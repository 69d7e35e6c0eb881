"""Edit distance against the plain recursion, and as a metric."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
