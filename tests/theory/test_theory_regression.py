"""Objective and bound of generalisation-aware regression."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis import DataError
from trellis.theory import (
    MutualStability,
    bias_variance_objective,
    mutual_stability,
    true_risk_bound,
)
from trellis.theory.regression import _boxes, _intervals, _variation


def dcorr_by_definition(L, Z):
    """Eq. (8) as it is printed."""

    def centred(v):
        d = np.linalg.norm(v[:, None] - v[None, :], axis=2)
        return d - d.mean(0) - d.mean(1)[:, None] + d.mean()

    a, b = centred(L[:, None]), centred(Z)
    below = np.sqrt((a * a).mean() * (b * b).mean())
    return np.sqrt(max((a * b).mean(), 0) / below) if below > 0 else 0.0


@settings(max_examples=25)
@given(st.integers(0, 1000), st.integers(2, 20), st.integers(1, 3))
def test_objective_is_the_printed_one(seed, n, k):
    rng = np.random.default_rng(seed)
    L, Z = rng.random(n), rng.standard_normal((n, k))
    expected = np.sqrt(L.mean() ** 2 + dcorr_by_definition(L, Z) ** 2)
    assert bias_variance_objective(L, Z) == pytest.approx(expected, rel=1e-9)


def test_variation_by_hand():
    a, b = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    assert _variation(a, b) == 0
    assert _variation(a, a) == pytest.approx(0.5)
    # joint (1/2, 1/4; 0, 1/4), margins (3/4, 1/4) and (1/2, 1/2): ½ (1/8 · 4)
    assert _variation(np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1])) == pytest.approx(0.25)


def test_cells_have_equal_counts():
    rng = np.random.default_rng(0)
    assert np.bincount(_intervals(rng.random(64), 4)).tolist() == [16] * 4
    assert np.bincount(_boxes(rng.random((64, 2)), 3)).tolist() == [8] * 8
    assert _intervals(np.array([1.0, 1.0, 1.0, 2.0]), 4).tolist() == [0, 0, 0, 1]


def test_stability_falls_with_dependence():
    rng = np.random.default_rng(1)
    z = rng.random((2000, 1))
    noise = rng.random(2000)
    found = [mutual_stability((1 - t) * noise + t * z[:, 0], z) for t in (0.0, 0.3, 0.7, 1.0)]
    values = [f.stability for f in found]
    assert values == sorted(values, reverse=True)
    assert values[0] > 0.97
    assert values[-1] < 0.01
    assert found[0].variation == pytest.approx(found[0].chance, rel=0.3)
    assert found[0].cells == (8, 8)
    again = mutual_stability(noise, z)
    assert again == mutual_stability(noise, z)


def test_constant_losses_are_stable():
    z = np.arange(50.0)
    found = mutual_stability(np.full(50, 0.5), z)
    assert found.stability == 1.0
    assert found.cells[0] == 1


def test_bound():
    assert true_risk_bound(0.3, 1.0) == pytest.approx(0.3)
    assert true_risk_bound(0.3, MutualStability(0.9, 0.2, 0.1, (4, 4))) == pytest.approx(0.4)


def test_refusals():
    z = np.arange(4.0)

    def refused(message, function, *arguments, **options):
        with pytest.raises(DataError, match=re.escape(message)):
            function(*arguments, **options)

    refused("losses and examples have shapes (3,) and (4, 1)", mutual_stability, z[:3] / 9, z)
    refused("losses must lie in [0, 1]", bias_variance_objective, z, z)
    refused("example 1 is not finite", mutual_stability, z / 9, [0.0, np.nan, 1.0, 2.0])
    refused("examples have no column", bias_variance_objective, z / 9, np.empty((4, 0)))
    refused("n_exchanges must be a positive integer", mutual_stability, z / 9, z, n_exchanges=0)
    refused("cells must lie between 2 and 4", mutual_stability, z / 9, z, cells=(2, 5))
    refused("empirical_risk must be a number of at least 0, got -1", true_risk_bound, -1, 0.5)
    refused("stability must lie in [0, 1], got 2", true_risk_bound, 0.1, 2)
