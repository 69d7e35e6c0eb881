"""Weights of samples: what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from trellis.corpus.sample_weights import sample_weights
from trellis.errors import DataError


def test_weights():
    assert sample_weights(None, 2).tolist() == [1, 1]
    assert sample_weights([0, 2], 2).tolist() == [0, 2]
    assert sample_weights([], 0).tolist() == []


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([0, 0], "sample_weight is 0 for every sample: give at least one a positive weight"),
        ([np.nan, 1], "must be finite and not negative"),
        ([np.inf, 1], "must be finite and not negative"),
        ([-1, 1], "must be finite and not negative"),
        ([1], r"must have shape \(2,\), got \(1,\)"),
        ([[1, 1]], r"must have shape \(2,\), got \(1, 2\)"),
        (["a", 1], "entries of sample_weight have dtype <U21; expected numbers"),
        ([1j, 1], "entries of sample_weight have dtype complex128; expected numbers"),
        ([[1], [1, 2]], "entries of sample_weight cannot be read as an array"),
        (np.ma.masked_array([1, 1], [True, False]), "entries of sample_weight have masked entries"),
        (1.0, r"must have shape \(2,\), got \(\)"),
    ],
)
def test_bad_weights(weights, message):
    with pytest.raises(DataError, match=message):
        sample_weights(weights, 2)
