"""JSON lines: columns, features, labels of all kinds, round trips, and every complaint."""

from __future__ import annotations

import gzip
import io
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.corpus import Corpus, Features, Labels, as_corpus, read_jsonl, write_jsonl
from trellis.corpus.jsonl import jsonl_lines
from trellis.errors import DataError

ODD = st.sampled_from('aé\n\t\0\u2028\ufeff"\\')
TEXT = st.text(ODD, max_size=3) | st.text(st.characters(exclude_categories=["Cs"]))
LABELS = st.none() | st.sampled_from(["X", "Y", ""]) | st.just(frozenset(["X", "Y"]))
VALUES = st.booleans() | TEXT | st.floats(width=32, allow_nan=False, allow_infinity=False)


def read(*records, **options):
    lines = [r if isinstance(r, str) else json.dumps(r) for r in records]
    return read_jsonl(io.StringIO("\n".join(lines)), **options)


def attributes(corpus):
    f = corpus.features
    values = np.ones(len(f.indices), np.float32) if f.values is None else f.values
    return [
        {f.names[f.indices[p]]: values[p] for p in range(*f.indptr[t : t + 2])}
        for t in range(corpus.n_positions)
    ]


def test_columns():
    corpus = read(
        {"word": ["a", "b"], "labels": ["X", None], "pos": ["P", "Q"]},
        "  \r",
        {"labels": [["X", "Y"]], "pos": ["P"], "word": ["c"]},
        {"word": [], "labels": [], "pos": []},
    )
    assert [s.columns for s in corpus] == [
        {"word": ["a", "b"], "pos": ["P", "Q"]},
        {"word": ["c"], "pos": ["P"]},
        {"word": [], "pos": []},
    ]
    assert corpus.label_lists() == [["X", None], [{"X", "Y"}], []]
    assert corpus.label_name == "labels"


def test_other_label_key():
    corpus = read({"word": ["a"], "ner": ["X"]}, label="ner")
    assert corpus.label_lists() == [["X"]]
    assert corpus.label_name == "ner"
    assert read({"features": [["a"]], "ner": ["X"]}, label="ner").label_name == "ner"
    assert read({"word": ["a"], "ner": ["X"]}).labels is None


def test_features():
    corpus = read(
        {"features": [{"w": "a", "cap": True, "len": 2}, ["b", "c"]], "labels": ["X", "Y"]},
        {"features": [], "labels": []},
    )
    assert attributes(corpus) == [{"w=a": 1, "cap": 1, "len": 2}, {"b": 1, "c": 1}]
    assert corpus.label_lists() == [["X", "Y"], []]


def test_compressed_with_a_mark(tmp_path):
    (tmp_path / "f").write_bytes(gzip.compress('\ufeff{"word": ["é"]}\r\n'.encode()))
    assert read_jsonl(tmp_path / "f")[0].columns == {"word": ["é"]}


def test_empty_file():
    assert len(read("")) == 0
    assert len(read("\n\n")) == 0


@given(st.lists(st.lists(st.tuples(TEXT, TEXT, LABELS), max_size=3), max_size=3), st.booleans())
def test_round_trip_of_columns(tmp_path_factory, samples, labelled):
    columns = {
        name: [[position[j] for position in sample] for sample in samples]
        for j, name in enumerate(["word", "a\nb"])
    }
    labels = [[position[2] for position in sample] for sample in samples]
    corpus = Corpus.from_columns(columns, labels if labelled else None)
    path = tmp_path_factory.mktemp("jsonl") / "f"
    write_jsonl(path, corpus)
    again = read_jsonl(path)
    assert [s.columns for s in again] == [s.columns for s in corpus]
    if labelled and samples:
        assert again.label_lists() == corpus.label_lists()
    else:
        assert again.labels is None


@settings(max_examples=30)
@given(
    st.lists(
        st.lists(st.dictionaries(TEXT, VALUES, max_size=3), max_size=3), min_size=1, max_size=4
    )
)
def test_round_trip_of_features(tmp_path_factory, samples):
    corpus = as_corpus(samples)
    path = tmp_path_factory.mktemp("jsonl") / "f"
    write_jsonl(path, corpus)
    again = read_jsonl(path)
    assert again.lengths.tolist() == corpus.lengths.tolist()
    assert attributes(again) == attributes(corpus)


def test_an_attribute_that_stands_twice_is_written_as_the_sum():
    assert jsonl_lines(as_corpus([[["a", "a", "b"]]])) == ['{"features": [{"a": 2.0, "b": true}]}']


def test_predictions():
    corpus = Corpus.from_columns({"word": [["a"], []]}, [[{"Y", "X"}], []])
    assert jsonl_lines(corpus, [["X"], ()]) == [
        '{"word": ["a"], "labels": [["X", "Y"]], "predicted": ["X"]}',
        '{"word": [], "labels": [], "predicted": []}',
    ]
    named = replace(corpus, label_name="ner")
    assert '"ner": [["X", "Y"]]' in jsonl_lines(named)[0]
    assert jsonl_lines(Corpus(np.zeros(1, np.int64)), []) == []


@pytest.mark.parametrize(
    ("records", "message"),
    [
        (["{"], "input, line 1: not JSON (Expecting property name"),
        ([{"word": ["a"]}, "", "nope"], "input, line 3: not JSON"),
        (["[" * 100_000], "input, line 1: not JSON ("),
        (['{"word": [' + "1" * 5000 + "]}"], "input, line 1: not JSON ("),
        (["[]"], "line 1: expected an object of lists"),
        ([{"word": "a"}], "line 1: expected an object of lists"),
        ([{}], "line 1: expected columns or features beside 'labels'"),
        ([{"labels": ["X"]}], "line 1: expected columns or features beside 'labels'"),
        (
            [{"word": ["a"]}, {"word": ["a"], "pos": ["b"]}],
            "line 2: keys word, pos; the first line has word",
        ),
        (
            [{"word": ["a"], "labels": ["X"]}, {"word": ["a"]}],
            "line 2: keys word; the first line has word, labels",
        ),
        (
            [{"word": ["a"], "labels": ["X", "Y"]}],
            "line 1: lists of different lengths {'word': 1, 'labels': 2}",
        ),
        (
            [{"features": [["a"]], "word": ["a"], "pos": ["b"]}],
            "line 1: 'features' and columns (word, pos) cannot stand together",
        ),
        ([{"word": ["a", 3]}], "line 1: 'word' holds 3; expected strings"),
        ([{"word": [["a"]]}], "line 1: 'word' holds ['a']; expected strings"),
        (
            [{"features": ["a"]}],
            "line 1: 'features' holds 'a'; expected objects or lists of strings",
        ),
        ([{"word": ["a"], "labels": [{}]}], "line 1: label {}; expected a string, a number, null"),
        ([{"word": ["a"], "labels": [[]]}], "line 1: label []; expected"),
        ([{"word": ["a"], "labels": [["X", None]]}], "line 1: label ['X', None]; expected"),
        ([{"features": [["a", 3]]}], "input: sample 0, position 0: attribute 3 is not a string"),
        (['{"features": [{"a": NaN}]}'], "input: sample 0, position 0: feature 'a' is nan"),
        ([{"features": [{"a": 10**400}]}], "input: sample 0, position 0: feature 'a' is inf"),
        (['{"word": ["\\ud800"]}'], "line 1: a string holds half of a surrogate pair"),
        (['{"\\uDC00": ["a"]}'], "line 1: a string holds half of a surrogate pair"),
    ],
)
def test_bad_files(records, message):
    with pytest.raises(DataError, match=re.escape(message)):
        read(*records)


def test_escaped_pairs_are_fine():
    assert read('{"word": ["\\ud83d\\ude00"]}')[0].columns == {"word": ["\U0001f600"]}


def test_not_text():
    with pytest.raises(DataError, match="input, line 2: not UTF-8 text; convert"):
        read_jsonl(io.BytesIO(b'{"word": ["a"]}\n{"word": ["\xff"]}\n'))
    with pytest.raises(DataError, match="input, line 1: a NUL byte"):
        read_jsonl(io.BytesIO(b'{"word": ["\0"]}\n'))


def corpus_of(*names, **options):
    return Corpus.from_columns({name: [["a"]] for name in names}, **options)


BOTH = replace(
    corpus_of("features"), features=Features(np.array([0, 0]), np.zeros(0, np.int32), None, [])
)


@pytest.mark.parametrize(
    ("corpus", "predicted", "message"),
    [
        (Corpus(np.array([0, 1])), None, "this corpus has no columns and no features to write"),
        (
            Corpus(np.array([0, 1]), labels=Labels.from_lists([["X"]])),
            None,
            "this corpus has no columns and no features to write",
        ),
        (corpus_of("w"), [], "corpus and predicted differ in number: 1 and 0 samples"),
        (corpus_of("w"), [["X", "Y"]], "sample 0: corpus has 1 positions, predicted has 2"),
        (corpus_of("w", "predicted"), [["X"]], "have the same name: w, predicted, predicted"),
        (corpus_of("labels", labels=[["X"]]), None, "have the same name: labels, labels"),
        (BOTH, None, "have the same name: features, features"),
        (corpus_of("\ud800"), None, "sample 0 holds half of a surrogate pair"),
    ],
)
def test_what_cannot_be_written_leaves_nothing_behind(tmp_path, corpus, predicted, message):
    with pytest.raises(DataError, match=re.escape(message)):
        write_jsonl(tmp_path / "f", corpus, predicted=predicted)
    assert list(tmp_path.iterdir()) == []
