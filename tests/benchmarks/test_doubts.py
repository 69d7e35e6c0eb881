"""How sure answers are: calibration errors, and mistakes that are found."""

import numpy as np
import pytest

from benchmarks.doubts import agreement, found, measure, off_by
from benchmarks.expert_sets import skewed
from trellis.experts import as_outputs


def test_calibration_error():
    rng = np.random.default_rng(0)
    sure = rng.uniform(0.5, 1.0, 200_000)
    right = rng.random(200_000) < sure
    assert off_by(sure, right) < 1
    assert off_by(np.clip(sure - 0.1, 0, 1), right) == pytest.approx(10, abs=0.5)
    assert off_by(np.full(10, 0.5), np.arange(10) < 7) == pytest.approx(50)  # ten groups of one


def test_mistakes_that_are_found():
    sure = np.linspace(0, 1, 100)
    right = np.arange(100) >= 20
    assert found(sure, right) == 50  # ten of twenty
    assert found(-sure, right) == 0
    many = np.arange(20_000) % 5 > 0
    assert found(np.zeros(20_000), many) == pytest.approx(10, abs=1)  # equals at random


def test_agreement():
    said = as_outputs([[["a", "b"]], [["a", "a"]], [["b", None]]])
    assert agreement([["a", "a"]], said).tolist() == pytest.approx([2 / 3, 1 / 2])


def test_measured():
    rows = measure(skewed(n=40), 10, 2)
    assert rows.shape == (2, 4)
    assert ((rows >= 0) & (rows <= 100)).all()
