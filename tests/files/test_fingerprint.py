"""Fingerprints: equal for equal content, different for all else, the same in every process."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Lasso, Ridge

from trellis.corpus import Corpus, as_corpus, as_graph_corpus
from trellis.errors import DataError
from trellis.files import fingerprint
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
        ([1], [True]),
        ([b"a"], ["a"]),
        ([{1: "a"}], [{"1": "a"}]),
        ([Path("a")], [Path("b")]),
        ([len], [max]),
        ([partial(max, 1)], [partial(max, 2)]),
        ([Ridge(1.0)], [Ridge(2.0)]),
        ([Ridge()], [Lasso()]),
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


def test_fingerprint_of_anything_else_is_refused():
    @dataclass
    class Holder:
        what: object

    with pytest.raises(DataError, match="what holds object cannot be known again"):
        fingerprint([Holder(object())])


def test_several_things_are_a_list_of_them():
    assert fingerprint(1, "a") == fingerprint([1, "a"]) != fingerprint("a", 1)
    assert fingerprint(np.array(["a", "b"])) == fingerprint(["a", "b"])
    assert fingerprint({(1, 2): "x", 3: "y"}) == fingerprint({3: "y", (1, 2): "x"})
    assert fingerprint(Path("a")) == fingerprint("a")


def test_the_same_in_another_process():
    things = '{"b", "a"}, {"x": [1, 2.5], 3: None}, len, Ridge(), b"abc"'
    code = (
        "from sklearn.linear_model import Ridge\n"
        f"from trellis.files import fingerprint\nprint(fingerprint({things}))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == fingerprint(*eval(f"({things})"))


# ------------------------------------------------------------------ corpora


WORDS = st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=3), min_size=1, max_size=3)
DICTS = st.lists(
    st.lists(st.dictionaries(st.sampled_from("abc"), st.sampled_from([1, 2.5, "x"])), min_size=1),
    min_size=1,
    max_size=3,
)
LABELS = st.sampled_from(["A", "B", None, frozenset("AB"), frozenset("BC")])


@st.composite
def labelled(draw):
    samples = draw(st.one_of(WORDS, DICTS))
    return samples, [[draw(LABELS) for _ in s] for s in samples]


def said(samples, labels):
    """What a corpus keeps of samples: attributes in their order, which a dict's == ignores."""
    return [[t if isinstance(t, str) else list(t.items()) for t in s] for s in samples], labels


@given(labelled(), labelled())
def test_corpora_have_one_fingerprint_if_they_say_the_same(a, b):
    first, second = as_corpus(*a), as_corpus(*b)
    same = fingerprint(first) == fingerprint(second)
    assert same == (said(*a) == said(*b))
    assert fingerprint(first, None) != fingerprint(None, first)


@given(labelled())
def test_a_part_of_a_corpus_has_the_fingerprint_it_has_alone(a):
    samples, labels = a
    other = ["z"] if isinstance(samples[0][0], str) else [{"z": 1}]
    larger = as_corpus([other, *samples, other], [["Z"], *labels, [{"Z", "A"}]])
    assert fingerprint(larger[1:-1]) == fingerprint(as_corpus(*a))
