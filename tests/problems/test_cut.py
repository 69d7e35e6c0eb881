"""Answers of oracles of a risk: what is no value and slope of a plane below it is refused."""

from __future__ import annotations

import numpy as np
import pytest

from trellis.errors import DataError
from trellis.problems.cut import Cut, as_cut

W = np.zeros(2)


@pytest.mark.parametrize("answer", [(1.0, W), [1, [0, 0]], (np.float32(1), W), Cut(1, 1.0, W)])
def test_values_and_slopes_are_exact_cuts(answer):
    cut = as_cut(answer, W)
    assert (cut.upper, cut.lower, cut.slope.tolist()) == (1.0, 1.0, [0.0, 0.0])
    assert cut.exact


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "a risk returns its value and a slope, or a Cut"),
        (1.0, "a risk returns its value and a slope, or a Cut"),
        (np.zeros(2), "a risk returns its value and a slope, or a Cut"),
        ((1.0, W, W), "a risk returns its value and a slope, or a Cut"),
        (("1", W), "the risk or its slope is not finite"),
        ((None, W), "the risk or its slope is not finite"),
        ((np.nan, W), "the risk or its slope is not finite"),
        ((10**400, W), "the risk or its slope is not finite"),
        (Cut(np.inf, 1.0, W), "the risk or its slope is not finite"),
        ((1.0, [0.0, np.inf]), "the risk or its slope is not finite"),
        ((1.0, [0.0]), r"the slope of the risk must have shape \(2,\), got \(1,\)"),
        ((1.0, "ab"), "slope have dtype <U2; expected numbers"),
        (Cut(1.0, 2.0, W), r"the plane \(2.0\) lies above the bound of the risk \(1.0\)"),
    ],
)
def test_bad_input(answer, message):
    with pytest.raises(DataError, match=message):
        as_cut(answer, W)


@pytest.mark.parametrize("value", [np.nan, None, "1", 10**400])
def test_bounds_are_numbers(value):
    with pytest.raises(DataError, match=r"upper must be a number \(or inf\), got "):
        Cut(value, 0.0, W)
    with pytest.raises(DataError, match=r"lower must be a number \(or inf\), got "):
        Cut(0.0, value, W)
