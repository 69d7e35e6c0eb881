"""Segmented text against the tags of its words."""

from __future__ import annotations

import bz2
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.corpus import read_segmented
from trellis.corpus.schemes import tags_to_words, words_to_tags
from trellis.errors import DataError

PLAIN = st.characters(exclude_categories=["Cs"], exclude_characters=" \t\r\n\0\ufeff")
ODD = st.sampled_from("一二é\u3000\u2028\U0001f600\x0b")
WORD = st.text(ODD, min_size=1, max_size=4) | st.text(PLAIN, min_size=1, max_size=4)
GAP = st.sampled_from([" ", "  ", "\t", " \t"])


@st.composite
def texts(draw):
    """Sentences as lists of words, and a text that writes them down."""
    sentences, text = [], draw(st.sampled_from(["", "\ufeff", "\ufeff\n"]))
    for words in draw(st.lists(st.lists(WORD, max_size=4), max_size=4)):
        line = draw(st.sampled_from(["", " "])) + draw(GAP).join(words) + draw(st.just("") | GAP)
        text += line + draw(st.sampled_from(["\n", "\r\n", "\n\n"]))
        if words:
            sentences.append(words)
    return sentences, text if draw(st.booleans()) else text.removesuffix("\n")


@given(texts())
def test_words_become_tagged_characters(case):
    sentences, text = case
    corpus = read_segmented(io.BytesIO(text.encode()))
    assert [s.columns["char"] for s in corpus] == [list("".join(words)) for words in sentences]
    assert corpus.label_lists() == [words_to_tags(words) for words in sentences]
    assert corpus.labels.classes == ("B", "E", "M", "S")
    for sample, words in zip(corpus, sentences, strict=True):
        assert tags_to_words(sample.columns["char"], sample.labels) == words


@given(texts())
def test_text_without_words(case):
    sentences, text = case
    corpus = read_segmented(io.StringIO(text), segmented=False)
    assert corpus.labels is None
    assert [s.columns["char"] for s in corpus] == [list("".join(words)) for words in sentences]


def test_compressed(tmp_path):
    (tmp_path / "f").write_bytes(bz2.compress("一二 三\n".encode()))
    assert read_segmented(tmp_path / "f").label_lists() == [["B", "E", "S"]]


def test_not_text(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"ab\n\nc \xff\n")
    with pytest.raises(DataError, match=f"{path}, line 3: not UTF-8 text; convert the file"):
        read_segmented(path)
    with pytest.raises(DataError, match="input, line 2: a NUL byte; this is not a text file"):
        read_segmented(io.BytesIO(b"ab\nc\0\n"))
