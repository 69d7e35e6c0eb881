"""Word-list features against their definition, word by word."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.corpus import Corpus
from trellis.corpus.schemes import words_to_tags
from trellis.errors import DataError
from trellis.features import TemplateEncoder, Templates
from trellis.features.wordlist import WordList

WORDS = st.sampled_from(["a", "b", "ab", "ba", "aab", "abab"])
SENTENCES = st.lists(st.lists(WORDS, min_size=1, max_size=5), min_size=1, max_size=10)


def corpus_of(sentences):
    return Corpus.from_columns(
        {"char": [list("".join(s)) for s in sentences]}, [words_to_tags(s) for s in sentences]
    )


def lists_of(sentences, high):
    """U and B as the paper defines them: seen more than twice."""
    single = Counter(word for s in sentences for word in s)
    double = Counter(pair for s in sentences for pair in pairwise(s))
    words = {w for w, n in single.items() if n > 2 and len(w) <= high}
    return words, {(a, b) for (a, b), n in double.items() if n > 2 and {a, b} <= words}


def expected(texts, words, pairs, low, high):
    """For each position the names of its features."""
    found = []
    for text in texts:

        def begins(i, n, text=text):
            return text[i : i + n] if i >= 0 and i + n <= len(text) else None

        def ends(i, n, text=text):
            return text[i - n + 1 : i + 1] if i - n + 1 >= 0 and i < len(text) else None

        for i in range(len(text)):
            names = []
            for n in range(low, high + 1):
                names += [f"starts={w}" for w in [begins(i, n)] if w in words]
                names += [f"ends={w}" for w in [ends(i, n)] if w in words]
            for n in range(1, high + 1):
                for m in range(1, high + 1):
                    before = (ends(i - 1, n), begins(i, m))
                    after = (ends(i, n), begins(i + 1, m))
                    names += [f"before={a}|{b}" for a, b in [before] if (a, b) in pairs]
                    names += [f"after={a}|{b}" for a, b in [after] if (a, b) in pairs]
            found.append(sorted(names))
    return found


def names_of(words, corpus):
    keys = words.keys(corpus)
    assert keys.shape == (words.n_columns, corpus.n_positions)
    assert keys.size == 0 or keys.max() < words.key_space
    return [sorted(words.name(int(k)) for k in column if k >= 0) for column in keys.T]


LENGTHS = st.tuples(st.integers(1, 3), st.integers(0, 2)).map(lambda p: (p[0], p[0] + p[1]))


@settings(max_examples=60)
@given(SENTENCES, st.lists(st.text("abx", max_size=8), max_size=3), LENGTHS)
def test_features(sentences, texts, lengths):
    low, high = lengths
    training = corpus_of(sentences)
    found = WordList.from_corpus(training, "char", low, high)
    words, pairs = lists_of(sentences, high)
    assert found.words == sorted(words)
    n = len(found.words)
    assert {(found.words[k // n], found.words[k % n]) for k in found.pairs.keys} == pairs
    joined = ["".join(s) for s in sentences]
    assert names_of(found, training) == expected(joined, words, pairs, low, high)
    new = Corpus.from_columns({"char": [list(text) for text in texts]})
    assert names_of(found, new) == expected(texts, words, pairs, low, high)


@settings(max_examples=30)
@given(SENTENCES, st.lists(st.text("abx", max_size=8), max_size=3), st.sampled_from([3, 1 << 16]))
def test_as_a_template(sentences, texts, chunk):
    encoder = TemplateEncoder(Templates.parse("wordlist(char, 2..3)"))
    with mock.patch("trellis.features.encoder._CHUNK", chunk):
        encoder.learn(corpus_of(sentences))
        encoded = encoder.encode(Corpus.from_columns({"char": [list(text) for text in texts]}))
    words, pairs = lists_of(sentences, 3)
    training = expected(["".join(s) for s in sentences], words, pairs, 2, 3)
    known = {name for row in training for name in row}
    names = encoder.names(encoded.indices)
    found = [sorted(names[a:b]) for a, b in pairwise(encoded.indptr)]
    assert found == [
        [f"wordlist {name}" for name in row if name in known]
        for row in expected(texts, words, pairs, 2, 3)
    ]


def test_nothing_crosses_the_end_of_a_sentence():
    sentences = [["ab", "c"]] * 3 + [["c", "ab"]] * 3
    found = WordList.from_corpus(corpus_of(sentences), "char", 1, 2)
    together = Corpus.from_columns({"char": [list("abcab")]})
    apart = Corpus.from_columns({"char": [list("a"), list("bc"), list("ab")]})
    assert names_of(found, together)[2] == ["after=c|ab", "before=ab|c", "ends=c", "starts=c"]
    assert names_of(found, apart) == [
        [],
        [],
        ["ends=c", "starts=c"],
        ["starts=ab"],
        ["ends=ab"],
    ]


def test_partly_annotated_sentences_are_left_out():
    sentences = [["ab", "c"]] * 3
    complete = corpus_of(sentences)
    labels = complete.label_lists()
    for unknown in (None, {"B", "S"}):
        partly = complete.with_labels([*labels[:2], ["B", unknown, "S"]])
        assert WordList.from_corpus(partly, "char", 1, 2).words == []
    assert WordList.from_corpus(complete, "char", 1, 2).words == ["ab", "c"]
    assert WordList.from_corpus(complete, "char", 1, 1).words == ["c"]


def test_typed_tags_are_fine():
    typed = corpus_of([["ab", "c"]] * 3).with_labels([["B-N", "E-N", "S-V"]] * 3)
    assert WordList.from_corpus(typed, "char", 1, 2).words == ["ab", "c"]


@pytest.mark.parametrize(
    ("corpus", "message"),
    [
        (Corpus.from_columns({"char": [["a"]]}), "need a labelled training corpus"),
        (
            Corpus.from_columns({"char": [["a", "bc"]]}, [["S", "S"]]),
            "features of training words need a column of single characters; 'char' holds 'bc'",
        ),
        (
            Corpus.from_columns({"char": [["a"], ["a", "b"]]}, [["S"], ["S", "X"]]),
            "features of training words, sample 1, position 1: label 'X' does not fit the tag",
        ),
        (
            Corpus.from_columns({"char": [["a"], ["a", "b"]]}, [["S"], ["O", "S"]]),
            "features of training words, sample 1, position 0: tag 'O' belongs to no word",
        ),
    ],
)
def test_what_gives_no_word_list(corpus, message):
    with pytest.raises(DataError, match=re.escape(message)):
        TemplateEncoder(Templates.parse("wordlist(char, 2..3)")).learn(corpus)
