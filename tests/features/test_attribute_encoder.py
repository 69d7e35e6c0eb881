"""Named attributes: matched by name, scaled by their root mean square."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.corpus import Corpus, Features, as_corpus
from trellis.errors import DataError
from trellis.features import AttributeEncoder
from trellis.features.encoded import Encoded, drop_unknown

VALUES = st.sampled_from([True, 1, 0, 2.5, -3, 1e-3])
SAMPLES = st.lists(
    st.lists(st.dictionaries(st.sampled_from("abcde"), VALUES, max_size=4), max_size=3),
    min_size=1,
    max_size=3,
)


def rows(encoder, encoded):
    names = encoder.names(encoded.indices)
    values = encoded.values if encoded.values.size else np.ones(len(names), np.float32)
    return [
        dict(zip(names[a:b], values[a:b].tolist(), strict=True))
        for a, b in zip(encoded.indptr[:-1], encoded.indptr[1:], strict=True)
    ]


def scales_of(samples, known):
    """Root mean squares of attributes not yet known, over the positions that have them."""
    found = dict(known)
    for name in "abcde":
        values = [p[name] for s in samples for p in s if name in p]
        if values and name not in known:
            square = sum(v * v for v in values) / len(values)
            found[name] = math.sqrt(square) if square > 0 else 1.0
    return found


def expected(samples, scales):
    return [
        pytest.approx({k: v / scales[k] for k, v in p.items() if k in scales}, rel=1e-6)
        for s in samples
        for p in s
    ]


@given(SAMPLES, SAMPLES, SAMPLES)
def test_learn_and_encode(first, second, test):
    encoder, scales = AttributeEncoder(), {}
    for samples in (first, second):
        before = encoder.names(range(encoder.n_features))
        encoded = encoder.learn(as_corpus(samples))
        scales = scales_of(samples, scales)
        assert rows(encoder, encoded) == expected(samples, scales)
        assert encoder.names(range(len(before))) == before
        assert set(encoder.names(range(encoder.n_features))) == set(scales)
        assert encoded.values.dtype == np.float32
    assert rows(encoder, encoder.encode(as_corpus(test))) == expected(test, scales)
    assert encoder.n_features == len(scales)


def test_indicators_stay_as_they_are():
    encoder = AttributeEncoder()
    encoded = encoder.learn(as_corpus([[["a", "b"], ["b", "b"]]]))
    assert encoded.indices.tolist() == [0, 1, 1, 1]
    assert encoded.values.size == 0
    assert encoder.encode(as_corpus([[["x"], ["b", "x", "a"]]])).indices.tolist() == [1, 0]


def test_indicators_of_an_attribute_that_had_numbers():
    encoder = AttributeEncoder()
    encoder.learn(as_corpus([[{"a": 4, "b": True}]]))
    encoded = encoder.encode(as_corpus([[["a", "x", "b"]]]))
    assert rows(encoder, encoded) == [{"a": 0.25, "b": 1}]


def test_only_attributes_that_occur_are_learned():
    corpus = as_corpus([[["a"]], [["b"]]])
    encoder = AttributeEncoder()
    encoder.learn(corpus[1:])
    assert encoder.names(range(encoder.n_features)) == ["b"]


@given(SAMPLES, st.data())
def test_parts_of_a_corpus_are_encoded_as_the_same_by_itself(samples, data):
    corpus = as_corpus([*samples, [dict.fromkeys("vwxyzabcde", 3.0)]])
    part = data.draw(st.lists(st.integers(0, len(samples) - 1), max_size=3))
    alone = as_corpus([samples[i] for i in part])
    encoders = AttributeEncoder(), AttributeEncoder()
    for known in (corpus, corpus.take(part)):
        encoded = encoders[0].learn(known), encoders[1].learn(known)
        assert rows(encoders[0], encoded[0]) == rows(encoders[1], encoded[1])
        found = encoders[0].encode(corpus.take(part)), encoders[1].encode(alone)
        assert rows(encoders[0], found[0]) == rows(encoders[1], found[1])
    learned, by_itself = AttributeEncoder(), AttributeEncoder()
    first, second = learned.learn(corpus.take(part)), by_itself.learn(alone)
    assert rows(learned, first) == rows(by_itself, second)


def test_a_name_that_stands_twice_is_one_attribute():
    names = ["a", "b", "a"]
    features = Features(np.array([0, 3]), np.arange(3, dtype=np.int32), None, names)
    encoder = AttributeEncoder()
    encoded = encoder.learn(Corpus(np.array([0, 1]), features=features))
    assert encoded.indices.tolist() == [0, 1, 0]
    assert encoder.n_features == len(encoder.scale) == 2


def test_spare_scales_of_an_interrupted_lesson_do_no_harm():
    encoder = AttributeEncoder()
    encoder.learn(as_corpus([[{"a": 2}]]))
    encoder.scale = np.append(encoder.scale, np.float32(8))
    assert rows(encoder, encoder.encode(as_corpus([[{"b": 3, "a": 4}]]))) == [{"a": 2}]
    encoded = encoder.learn(as_corpus([[{"a": 2, "c": 5, "b": 3}]]))
    assert rows(encoder, encoded) == [{"a": 1, "b": 1, "c": 1}]


def test_columns_are_not_features():
    encoder = AttributeEncoder()
    words = Corpus.from_columns({"word": [["a"]]})
    for use in (encoder.learn, encoder.encode):
        with pytest.raises(DataError, match="this model learned from ready-made features"):
            use(words)
    for offsets in ([0], [0, 0]):
        encoded = encoder.encode(Corpus(np.array(offsets)))
        assert encoded.indptr.tolist() == [0]
        assert encoded.indices.size == 0


@given(st.lists(st.lists(st.integers(-1, 3))), st.booleans())
def test_drop_unknown(ids, valued):
    flat = np.array([i for row in ids for i in row], np.int32)
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in ids])]).astype(np.int64)
    values = np.arange(len(flat), dtype=np.float32) if valued else np.zeros(0, np.float32)
    found = drop_unknown(Encoded.made(np.array([0, len(ids)]), indptr, flat, values))
    kept = [[i for i in row if i >= 0] for row in ids]
    assert [
        found.indices[a:b].tolist()
        for a, b in zip(found.indptr[:-1], found.indptr[1:], strict=True)
    ] == kept
    if valued:
        assert found.values.tolist() == np.flatnonzero(flat >= 0).tolist()


def test_groups_are_the_names_before_the_equals_sign():
    encoder = AttributeEncoder(["w=a", "n", "w=b=c", "w", "n=1", "=x", "v"])
    assert encoder.groups().tolist() == [0, 1, 0, 0, 1, 2, 3]
    assert encoder.groups().dtype == np.int32
    assert encoder.crossed().tolist() == [False] * 7
    assert AttributeEncoder().groups().tolist() == AttributeEncoder().crossed().tolist() == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["a", "b", "a"],), "names must differ, and scales be positive"),
        ((["a", "b"], [1.0, 0.0]), "names must differ, and scales be positive"),
        ((["a"], [-1.0]), "names must differ, and scales be positive"),
        ((["a"], [np.nan]), "scale hold nan at index 0; expected finite numbers"),
        ((["a"], [1.0, 1.0]), r"scale have shape \(2,\); expected \(1,\)"),
        (("ab",), "names must be a list of strings, got 'ab'"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(DataError, match=message):
        AttributeEncoder(*arguments)
