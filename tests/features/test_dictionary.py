"""Dictionaries: the longest entries from left to right, and lists that cannot be used."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.corpus import Column, Corpus
from trellis.errors import DataError
from trellis.features import TemplateEncoder, Templates
from trellis.features.dictionary import PLACES, Dictionary, given_dictionaries
from trellis.features.trie import Trie

WORDS = st.sampled_from(["a", "b", "c", "New", "York"])
ENTRIES = st.lists(st.lists(WORDS, min_size=1, max_size=3), max_size=6)


def places(sentence, entries):
    """The places of all positions, by looking for every entry at every position."""
    found, i = [], 0
    while i < len(sentence):
        here = [e for e in entries if sentence[i : i + len(e)] == list(e)]
        n = max(map(len, here), default=0)
        if n == 0:
            found.append(None)
        elif n == 1:
            found.append("whole")
        else:
            found += ["begin", *["inside"] * (n - 2), "end"]
        i += max(n, 1)
    return found


@given(st.lists(st.lists(WORDS, max_size=7), min_size=1, max_size=4), ENTRIES)
def test_against_looking_everywhere(sentences, entries):
    corpus = Corpus.from_columns({"word": sentences})
    column = corpus.columns["word"]
    dictionary = Dictionary(entries)
    marks = dictionary.marks(dictionary.symbols(column)[column.codes], corpus.offsets)
    expected = [place for s in sentences for place in places(s, entries)]
    assert [None if m < 0 else PLACES[m] for m in marks.tolist()] == expected


@given(ENTRIES)
def test_a_trie_holds_its_sequences(entries):
    trie, nodes = Trie.of(entries)
    spelled = {0: []}
    for e, key in enumerate(trie.keys.tolist()):
        parent, symbol = divmod(key, trie.radix)
        spelled[e + 1] = [*spelled[parent], trie.symbols[symbol]]
    assert [spelled[node] for node in nodes.tolist()] == entries
    again = Trie(trie.symbols, trie.keys)
    assert len(again) == len(trie) == len(spelled)


def test_in_templates():
    corpus = Corpus.from_columns({"word": [["in", "New", "York", "or", "Oslo"]]})
    text = 'dictionary(word, "c"); dictionary(word, "c")[-1] & word; '
    text += 'dictionary(word, "c") == dictionary(word, "c")[2]'
    encoder = TemplateEncoder(Templates.parse(text), (), {"c": ["New York", "York", "Oslo"]})
    encoded = encoder.learn(corpus)
    names = encoder.names(encoded.indices)
    assert names == [
        'dictionary(word, "c")=begin',
        'dictionary(word, "c")=end', 'dictionary(word, "c")[-1]=begin & word=York',
        'dictionary(word, "c")[-1]=end & word=or',
        'dictionary(word, "c")=whole',
    ]  # fmt: skip
    again = encoder.encode(Corpus.from_columns({"word": [["York"], ["New"]]}))
    assert encoder.names(again.indices) == ['dictionary(word, "c")=whole']


def test_entries_of_characters():
    column = Column.from_strings(list("我爱北京"))
    assert Dictionary.for_column(["北京", "中 国", " "], column).entries == [
        ("北", "京"),
        ("中", "国"),
    ]
    words = Column.from_strings(["我", "北京"])
    assert Dictionary.for_column(["北京", "中 国"], words).entries == [("北京",), ("中", "国")]


def test_from_files(tmp_path):
    (tmp_path / "cities").write_text("Oslo\n\n New York \r\n", encoding="utf-8")
    expected = {"a": ["Oslo", "New York"], "b": ["x", "y"]}
    assert given_dictionaries({"a": tmp_path / "cities", "b": {"y", "x"}}) == expected
    assert given_dictionaries({"a": str(tmp_path / "cities"), "b": ("x", " ", "y")}) == expected
    assert given_dictionaries(None) == {}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["Oslo"], "dictionaries must be a dict of names and lists of entries, got \\['Oslo'\\]"),
        ({3: ["Oslo"]}, "the name of a dictionary is 3; expected a string"),
        ({"c": 3}, "dictionary 'c' is 3; expected a list of entries, or the path"),
        ({"c": {"Oslo": 1}}, "dictionary 'c' is .*; expected a list of entries"),
        ({"c": b"Oslo"}, "dictionary 'c' is b'Oslo'; expected a list of entries"),
        ({"c": ["Oslo", ("New", "York")]}, "dictionary 'c', entry 1 is .*; expected a string"),
        ({"c": ["", " "]}, "dictionary 'c' has no entries; give it some, or leave it out"),
    ],
)
def test_what_is_refused(given, words):
    with pytest.raises(DataError, match=words):
        given_dictionaries(given)


def test_a_dictionary_that_is_not_given():
    encoder = TemplateEncoder(Templates.parse('word; dictionary(word, "c")'))
    with pytest.raises(DataError, match="the templates name the dictionary 'c', which is not"):
        encoder.learn(Corpus.from_columns({"word": [["a"]]}))
