"""Pools: samples by number, known again by what they hold."""

from __future__ import annotations

import pytest

from trellis.cheap.pool import Pool
from trellis.errors import DataError


def test_a_list_that_has_grown_is_another_pool():
    samples = [["a"], ["b"]]
    pool = Pool(samples)
    assert pool.is_same(samples) and pool.is_same([["a"], ["b"]]) and not pool.is_same(3)
    samples.append(["c"])
    assert not pool.is_same(samples)


def test_samples_with_labels():
    pool = Pool(([["a"], ["b"], ["c"]], [["X"], [None], None]))
    assert len(pool) == 3 and pool[1] == ["b"]


@pytest.mark.parametrize("data", ["text", {"a": []}, 3])
def test_no_pool(data):
    with pytest.raises(DataError, match="a pool is a corpus or a list of samples, got"):
        Pool(data)


def test_empty_pool():
    with pytest.raises(DataError, match="the pool is empty; give at least one sample"):
        Pool([])
