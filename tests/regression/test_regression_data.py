"""Data of regression: parts of them, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from trellis import DataError
from trellis.datasets import synthetic_graph_regression


def test_parts():
    train, _ = synthetic_graph_regression(30, 10, random_state=0)
    some = train.subset([4, 1, 7])
    np.testing.assert_array_equal(some.X, train.X[[4, 1, 7]])
    assert some.graph.toarray()[0, 1] == train.graph.toarray()[4, 1]
    first, rest = train.split(20, 3)
    assert (len(first.y), len(rest.y)) == (20, 10)
    assert sorted([*first.y, *rest.y]) == sorted(train.y)
    with pytest.raises(DataError, match="n_train must be an integer from 1 to 29, got 30"):
        train.split(30)
    with pytest.raises(DataError, match="synthetic, training has no coordinates to make a graph"):
        train.with_graph()
