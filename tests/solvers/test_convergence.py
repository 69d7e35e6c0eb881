"""The stopping value, against the authors' program written out step by step."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.solvers import convergence_value


class AuthorsProgram:
    """Keeps up to ten earlier objectives; drops the oldest before it divides by their number."""

    def __init__(self) -> None:
        self.kept: list[float] = []

    def value(self, objective: float) -> float | None:
        found = None
        if len(self.kept) > 1:
            oldest = self.kept[0]
            if len(self.kept) == 10:
                self.kept.pop(0)
            found = (oldest - objective) / len(self.kept) / abs(objective)
        self.kept.append(objective)
        return found


@given(st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=40))
def test_it_is_the_value_of_the_authors_program(objectives):
    program = AuthorsProgram()
    for p, objective in enumerate(objectives, 1):
        expected = program.value(objective)
        assert convergence_value(objectives[:p]) == (
            None if expected is None else pytest.approx(expected, rel=1e-12)
        )


def test_nothing_is_said_before_the_third_pass():
    assert convergence_value([]) is None
    assert convergence_value([5.0]) is None
    assert convergence_value([5.0, 4.0]) is None
    assert convergence_value([6.0, 5.0, 4.0]) == (6 - 4) / 2 / 4


def test_the_window_is_ten_passes_but_the_divisor_nine():
    falling = [float(100 - p) for p in range(30)]
    assert convergence_value(falling[:10]) == pytest.approx((100 - 91) / 9 / 91)
    assert convergence_value(falling[:11]) == pytest.approx((100 - 90) / 9 / 90)
    assert convergence_value(falling[:12]) == pytest.approx((99 - 89) / 9 / 89)


def test_a_rising_objective_is_negative_and_an_objective_of_zero_is_done():
    assert convergence_value([1.0, 2.0, 3.0]) == pytest.approx(-1 / 3)
    assert convergence_value([9.0, 4.0, 0.0]) == 0.0
    assert convergence_value([-10.0, -11.0, -12.0]) == pytest.approx(1 / 12)


def test_an_objective_that_is_not_a_number_does_not_count_as_converged():
    assert math.isnan(convergence_value([9.0, 4.0, math.nan]))
