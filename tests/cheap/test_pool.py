"""Pools: samples by number, known again by what they hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from trellis.cheap.pool import Pool, fingerprint
from trellis.corpus import Corpus, as_graph_corpus
from trellis.errors import DataError
from trellis.tracking.objects import FramePair, Objects, PairAnnotation


def frame_pair(x):
    cells = Objects(np.array([1, 2]), np.array([[0.0, x], [1.0, 1.0]]), {"area": np.ones(2)})
    return FramePair("movie", 3, cells, cells, PairAnnotation(((1, 1, "move"),)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([["a", "b"]], [["a"], ["b"]]),
        (["ab"], ["a", "b"]),
        ([1], [1.0]),
        ([1], ["1"]),
        ([None], [False]),
        ([{"a": 1}], [{"a": 2}]),
        ([{"a", "b"}], [{"a", "c"}]),
        ([np.zeros(2)], [np.zeros(3)]),
        ([np.zeros(2)], [np.zeros(2, np.float32)]),
        ([np.array(["a", None], object)], [np.array(["b", None], object)]),
        ([frame_pair(0.0)], [frame_pair(0.5)]),
        (Corpus.from_columns({"word": [["a"]]}), Corpus.from_columns({"word": [["b"]]})),
        (
            as_graph_corpus([["a", "b"]], edges=[[(0, 1)]]),
            as_graph_corpus([["a", "b"]], edges=[[(1, 0)]]),
        ),
    ],
)
def test_different_samples_have_different_fingerprints(one, other):
    assert fingerprint(one) != fingerprint(other)


def test_equal_samples_have_equal_fingerprints():
    assert fingerprint([frame_pair(0.5)]) == fingerprint([frame_pair(0.5)])
    assert fingerprint([{"a": 1, "b": {"x", "y"}}]) == fingerprint([{"b": {"y", "x"}, "a": 1}])
    words = {"word": [["a"], ["b", "c"]]}
    one, other = Corpus.from_columns(words), Corpus.from_columns(words)
    assert fingerprint(one) == fingerprint(other)
    assert fingerprint(one[1]) == fingerprint(other[1]) != fingerprint(one[0])
    assert fingerprint([np.int64(1)]) == fingerprint([1])


def test_a_list_that_has_grown_is_another_pool():
    samples = [["a"], ["b"]]
    pool = Pool(samples)
    assert pool.is_same(samples) and pool.is_same([["a"], ["b"]]) and not pool.is_same(3)
    samples.append(["c"])
    assert not pool.is_same(samples)


def test_samples_with_labels():
    pool = Pool(([["a"], ["b"], ["c"]], [["X"], [None], None]))
    assert len(pool) == 3 and pool[1] == ["b"]


def test_fingerprint_of_anything_else_is_refused():
    @dataclass
    class Holder:
        what: object

    with pytest.raises(DataError, match="a pool that holds object cannot be known again"):
        fingerprint([Holder(object())])


@pytest.mark.parametrize("data", ["text", {"a": []}, 3])
def test_no_pool(data):
    with pytest.raises(DataError, match="a pool is a corpus or a list of samples, got"):
        Pool(data)


def test_empty_pool():
    with pytest.raises(DataError, match="the pool is empty; give at least one sample"):
        Pool([])
