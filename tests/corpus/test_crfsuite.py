r"""CRFsuite's text format: values, escapes, round trips, and every complaint."""

from __future__ import annotations

import gzip
import io
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.corpus import Corpus, Features, Labels, as_corpus, read_crfsuite, write_crfsuite
from trellis.errors import DataError


def attributes(corpus):
    f = corpus.features
    values = np.ones(len(f.indices), np.float32) if f.values is None else f.values
    return [
        [(f.names[f.indices[p]], values[p]) for p in range(*f.indptr[t : t + 2])]
        for t in range(corpus.n_positions)
    ]


def read(text):
    return read_crfsuite(io.StringIO(text))


def test_labels_attributes_and_values():
    corpus = read("N\tw=cat\tlen:3\tw=cat\nV\n\n\nN\tlen:-0.5\tw=cat:1\t\t\n")
    assert corpus.label_lists() == [["N", "V"], ["N"]]
    assert attributes(corpus) == [
        [("w=cat", 1), ("len", 3), ("w=cat", 1)],
        [],
        [("len", -0.5), ("w=cat", 1)],
    ]


def test_indicators_need_no_values():
    assert read("N\ta\tb:1\tc:1.0\n").features.values is None


def test_extreme_values(tmp_path):
    largest, smallest = np.finfo(np.float32).max, np.float32(1e-45)
    corpus = as_corpus([[{"a": largest, "b": -largest, "c": smallest}]], [["X"]])
    write_crfsuite(tmp_path / "f", corpus)
    again = read_crfsuite(tmp_path / "f")
    assert attributes(again) == [[("a", largest), ("b", -largest), ("c", smallest)]]


def test_escapes():
    corpus = read("N\ta\\:b\t\\\\:2\tc\\d\te\\\n")
    assert attributes(corpus) == [[("a:b", 1), ("\\", 2), ("c\\d", 1), ("e\\", 1)]]


def test_compressed_with_a_mark_and_carriage_returns(tmp_path):
    (tmp_path / "f").write_bytes(gzip.compress("\ufeffN\té b:2\r\n\r\nV\ta".encode()))
    corpus = read_crfsuite(tmp_path / "f")
    assert corpus.label_lists() == [["N"], ["V"]]
    assert attributes(corpus) == [[("é b", 2)], [("a", 1)]]


def test_empty_file():
    assert len(read("")) == 0
    assert read("\n \n").label_lists() == []


PLAIN = st.characters(exclude_categories=["Cs"], exclude_characters="\t\r\n\0")
ODD = st.sampled_from("a:\\é \u2028\ufeff=")
TEXT = st.text(ODD, min_size=1, max_size=4) | st.text(PLAIN, min_size=1)
VALUES = st.sampled_from([1.0, 0.0, -2.5]) | st.floats(
    width=32, allow_nan=False, allow_infinity=False
)


@given(
    st.lists(
        st.lists(
            st.tuples(TEXT.filter(str.strip), st.dictionaries(TEXT, VALUES, max_size=3)),
            min_size=1,
            max_size=3,
        ),
        max_size=3,
    )
)
def test_round_trip(tmp_path_factory, samples):
    corpus = as_corpus(
        [[position for _, position in sample] for sample in samples],
        [[label for label, _ in sample] for sample in samples],
    )
    if not samples:
        corpus = as_corpus([[]], [[]]).take([])
    path = tmp_path_factory.mktemp("crfsuite") / "f"
    write_crfsuite(path, corpus)
    again = read_crfsuite(path)
    assert again.label_lists() == corpus.label_lists()
    assert attributes(again) == attributes(corpus)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("N\ta\n\n\ta\n", "line 3: the label (first field) is empty"),
        ("N\ta\nN\ta\tb:x\n", "line 2: attribute 'b:x': 'x' after the colon is no number"),
        ("N\ta:b:2\n", r"'b:2' after the colon is no number (write a literal colon as \:)"),
        ("N\ta:\n", "attribute 'a:': '' after the colon is no number"),
        ("N\ta:nan\n", "line 1: attribute 'a:nan': the value must be a finite float32"),
        ("N\ta:-inf\n", "attribute 'a:-inf': the value must be a finite float32"),
        ("N\ta:1e39\n", "attribute 'a:1e39': the value must be a finite float32"),
        ("\nN\t:3\n", "line 2: attribute ':3': the name is empty"),
        ("N\ta\0\n", "line 1: a NUL byte"),
    ],
)
def test_bad_files(text, message):
    with pytest.raises(DataError, match=re.escape(message)):
        read(text)


def test_not_utf8():
    for data in (b"N\ta\nN\tb\xff\n", b"N\ta\n\xffN\tb\n"):
        with pytest.raises(DataError, match="input, line 2: not UTF-8 text"):
            read_crfsuite(io.BytesIO(data))


def corpus_of(label, *names):
    features = Features(
        np.array([0, len(names)]), np.arange(len(names), dtype=np.int32), None, names
    )
    return Corpus(np.array([0, 1]), features=features, labels=Labels.from_lists([[label]]))


@pytest.mark.parametrize(
    ("corpus", "message"),
    [
        (Corpus.from_columns({"word": [["a"]]}, [["X"]]), "needs features and labels"),
        (as_corpus([[["a"]]]), "needs features and labels"),
        (corpus_of(None, "a"), "CRFsuite's format needs one label at every position"),
        (corpus_of({"X", "Y"}, "a"), "CRFsuite's format needs one label at every position"),
        (corpus_of("", "a"), "the label column holds '', which CRFsuite's format cannot"),
        (corpus_of("X\tY", "a"), r"the label column holds 'X\tY'"),
        (corpus_of("X", "a", ""), "the list of attributes holds ''"),
        (corpus_of("X", "a\tb"), r"the list of attributes holds 'a\tb'"),
        (corpus_of("X", "a\n"), r"the list of attributes holds 'a\n'"),
        (corpus_of("X", "\ud800"), r"the list of attributes holds '\ud800'"),
        (corpus_of("  "), "a label of nothing but spaces cannot be written without attributes"),
    ],
)
def test_what_cannot_be_written_leaves_nothing_behind(tmp_path, corpus, message):
    with pytest.raises(DataError, match=re.escape(message)):
        write_crfsuite(tmp_path / "f", corpus)
    assert list(tmp_path.iterdir()) == []


def test_attributes_that_do_not_occur_do_not_matter(tmp_path):
    whole = as_corpus([[["a"]], [["b\tc"]]], [["X"], ["Y"]])
    write_crfsuite(tmp_path / "f", whole[:1])
    assert (tmp_path / "f").read_text() == "X\ta\n\n"
