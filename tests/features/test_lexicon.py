"""Training words: the longest that starts, ends or goes on at a position, and who knows them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis import ChainCRF, load_model
from trellis.corpus import Corpus
from trellis.corpus.schemes import words_to_tags
from trellis.errors import DataError, TemplateError
from trellis.features import TemplateEncoder, Templates
from trellis.features.lexicon import LENGTHS, Lexicon

PARTS = ("start", "end", "inside")
SENTENCES = st.lists(
    st.lists(st.text("abc", min_size=1, max_size=6), max_size=4), min_size=1, max_size=5
)


def corpus_of(sentences):
    characters = [list("".join(words)) for words in sentences]
    return Corpus.from_columns({"char": characters}, [words_to_tags(words) for words in sentences])


def longest(text, known):
    """Lengths at all positions of a text, by looking for every stretch of it."""
    found = {part: [1] * len(text) for part in PARTS}
    for i in range(len(text)):
        for j in range(i + 2, len(text) + 1):
            if text[i:j] not in known:
                continue
            places = {"start": [i], "end": [j - 1], "inside": range(i + 1, j - 1)}
            for part, where in places.items():
                for k in where:
                    found[part][k] = max(found[part][k], j - i)
    return {part: [str(min(n, 5)) for n in lengths] for part, lengths in found.items()}


def lengths_of(lexicon, corpus, first=None):
    column = corpus.columns["char"]
    symbols = lexicon.symbols(column)[column.codes]
    codes = {part: lexicon.lengths(part, symbols, corpus.offsets, first) for part in PARTS}
    return {part: [LENGTHS[c] for c in found.tolist()] for part, found in codes.items()}


def joined(parts):
    return {part: [n for found in parts for n in found[part]] for part in PARTS}


@given(SENTENCES, SENTENCES)
def test_against_looking_everywhere(train, new):
    corpus, lexicon = corpus_of(new), Lexicon.from_corpus(corpus_of(train), "char")
    known = {word for words in train for word in words}
    assert lengths_of(lexicon, corpus) == joined([longest("".join(s), known) for s in new])


@given(SENTENCES)
def test_a_training_sample_knows_only_the_words_of_others(train):
    corpus = corpus_of(train)
    expected = []
    for s, words in enumerate(train):
        known = {word for i, other in enumerate(train) if i != s for word in other}
        expected.append(longest("".join(words), known))
    lexicon = Lexicon.from_corpus(corpus, "char")
    assert lengths_of(lexicon, corpus, first=0) == joined(expected)
    later = [lengths_of(lexicon, corpus[s : s + 1], first=s) for s in range(len(corpus))]
    assert joined(later) == joined(expected)
    lexicon.forget_samples()
    everything = {word for words in train for word in words}
    known_all = joined([longest("".join(words), everything) for words in train])
    assert lengths_of(lexicon, corpus, first=0) == known_all


def test_learning_hides_own_words_and_encoding_does_not(monkeypatch):
    corpus = corpus_of([["abc"], ["de"], ["de", "abd"]])
    monkeypatch.setattr("trellis.features.encoder._CHUNK", 1)  # each sample is a chunk
    encoder = TemplateEncoder(Templates.parse('lexicon(char, "start")'))
    learned = encoder.learn(corpus)
    names = [encoder.names(range(encoder.n_features))[i] for i in learned.indices]
    assert [name[-1] for name in names] == list("111" + "21" + "21111")
    # «3» was never met in training, so that it is no feature.
    assert len(encoder.encode(corpus).indices) == len("11" + "21" + "2111")
    again = TemplateEncoder(Templates.parse('lexicon(char, "start")'))
    twice = corpus_of([["abc"], ["abc"]])
    again.learn(twice)
    names = again.names(again.learn(corpus).indices)  # samples of another corpus hide nothing
    assert [name[-1] for name in names] == list("311" + "11" + "11111")


def test_partly_annotated_samples_have_no_known_words():
    corpus = corpus_of([["ab", "c"], ["ab"]])
    partly = corpus.with_labels([["B", "E", None], ["B", "E"]])
    assert Lexicon.from_corpus(partly, "char").words == ["ab"]
    unknown = corpus.with_labels([["B", "E", None], [None, None]])
    lexicon = Lexicon.from_corpus(unknown, "char")
    assert lexicon.words == []
    assert set(lengths_of(lexicon, corpus)["start"]) == {"1"}


def test_a_model_with_a_lexicon_comes_back_the_same(tmp_path):
    rng = np.random.default_rng(0)
    words = ["ab", "cab", "c", "abcab"]
    train = corpus_of([[words[i] for i in rng.integers(0, 4, 5)] for _ in range(30)])
    text = 'char; lexicon(char, "start") & char; lexicon(char, "end")[-1]; lexicon(char, "inside")'
    model = ChainCRF(text, random_state=0).fit(train)
    model.save(tmp_path / "m.trellis")
    again = load_model(tmp_path / "m.trellis")
    new = corpus_of([["cab", "abcab", "c"], ["ab"]])
    assert again.predict(new) == model.predict(new) == new.label_lists()
    assert (again.predict_marginals(new)[0] == model.predict_marginals(new)[0]).all()


@pytest.mark.parametrize(
    ("corpus", "message"),
    [
        (Corpus.from_columns({"char": [["a"]]}), "need a labelled training corpus"),
        (
            Corpus.from_columns({"char": [["a", "bc"]]}, [["S", "S"]]),
            "features of training words need a column of single characters; 'char' holds 'bc'",
        ),
    ],
)
def test_what_gives_no_lexicon(corpus, message):
    with pytest.raises(DataError, match=re.escape(message)):
        TemplateEncoder(Templates.parse('lexicon(char, "start")')).learn(corpus)


def test_lengths_cannot_be_compared():
    with pytest.raises(TemplateError, match="cannot be compared; combine them by &"):
        Templates.parse('lexicon(char, "start") == lexicon(char, "start")[1]')


@pytest.mark.parametrize("text", ["lexicon(char)", 'lexicon(char, "middle")', "lexicon(char, 2)"])
def test_what_a_lexicon_takes(text):
    with pytest.raises(TemplateError, match='lexicon takes "start", "end" or "inside"'):
        Templates.parse(text)
