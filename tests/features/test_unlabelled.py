"""Which templates unlabelled text and dictionaries bring, and what they are refused for."""

from __future__ import annotations

import numpy as np
import pytest

from trellis.corpus import Corpus, as_corpus
from trellis.errors import DataError
from trellis.features import AttributeEncoder, Templates, prepare
from trellis.features.encoder import encoder_for, unlabelled_text

WORDS = Corpus.from_columns(
    {"word": [["the", "cat", "sat"]] * 3, "pos": [["D", "N", "V"]] * 3}, [["A", "B", "C"]] * 3
)
CHARACTERS = Corpus.from_columns({"char": [list("abab")] * 3}, [list("BEBE")] * 3)
MORE = [["a", "dog", "sat"]] * 3
LISTS = {"pets": ["cat", "dog"]}


def text_of(features, corpus, **beside):
    if "unlabelled" in beside:
        beside["unlabelled"] = unlabelled_text(beside["unlabelled"])
    return encoder_for(features, corpus, **beside).templates.text().split("\n")


@pytest.mark.parametrize("features", ["auto", None, "ner", "pos", "chunking"])
def test_clusters_are_added_to_sets_of_words(features):
    plain = text_of(features, WORDS)
    assert not any("cluster" in line or "dictionary" in line for line in plain)
    both = text_of(features, WORDS, unlabelled=MORE, dictionaries=LISTS)
    assert both[: len(plain)] == plain
    added = both[len(plain) :]
    lists = [f'dictionary(word, "pets"){at}' for at in ("[-1]", "", "[1]")]
    assert added[-3:] == lists
    assert added[:-3] and all(line.startswith("cluster(word") for line in added[:-3])
    assert text_of(features, WORDS, dictionaries=LISTS) == plain + lists


@pytest.mark.parametrize("features", ["auto", "wordseg"])
def test_contexts_are_added_to_sets_of_characters(features):
    plain = text_of(features, CHARACTERS)
    assert not any("variety" in line for line in plain)
    assert text_of(features, CHARACTERS, unlabelled=CHARACTERS) == [*plain, "variety(char, 2..4)"]


@pytest.mark.parametrize(
    "features", ["word; cluster(word)", ["cluster(word, 2)"], Templates.parse("cluster(word)")]
)
def test_nothing_is_added_to_templates(features):
    assert text_of(features, WORDS, unlabelled=MORE) == text_of(features, WORDS)


def test_without_them_the_text_is_the_training_text():
    alone = encoder_for("cluster(word); variety(word, 1..2)", WORDS)
    alone.learn(WORDS)
    assert set(alone.clusters["word"]) == {"the", "cat", "sat"}
    text = [as_corpus(MORE), as_corpus(MORE[:1])]
    more = encoder_for("cluster(word); variety(word, 1..2)", WORDS, text)
    more.learn(WORDS)
    assert set(more.clusters["word"]) == {"the", "cat", "sat", "a", "dog"}
    assert not more.unlabelled  # all is learned, and no text is kept
    learned = more.clusters["word"]
    more.learn(as_corpus([["dog", "dog", "new", "new", "new"]]))
    assert more.clusters["word"] is learned and "new" not in learned


def test_clusters_are_cut_to_their_first_bits():
    encoder = encoder_for("cluster(word, 1); cluster(word, 9); cluster(word)", WORDS)
    encoder.learn(WORDS)
    names = encoder.names(range(encoder.n_features))
    paths = encoder.clusters["word"]
    assert [n for n in names if n.startswith("cluster(word)=")] == [
        f"cluster(word)={paths[w]}" for w in ("the", "cat", "sat")
    ]
    assert {n for n in names if ", 1)" in n} == {f"cluster(word, 1)={b}" for b in "01"}
    assert {n[17:] for n in names if ", 9)" in n} == set(paths.values())


def test_the_number_of_clusters():
    encoder = encoder_for("clusters = 2; cluster(word)", WORDS)
    encoder.learn(WORDS)
    assert sorted(set(encoder.clusters["word"].values())) == ["0", "1"]


READY = as_corpus([[{"a": 1}], [{"b": True}]], [["X"], ["Y"]])


@pytest.mark.parametrize(
    ("features", "corpus", "beside", "words"),
    [
        ("auto", READY, {"unlabelled": MORE}, "unlabelled= is for templates .*brown_clusters"),
        ("auto", READY, {"unlabelled": [[{"a": 1}]]}, "is for templates .*brown_clusters"),
        ("auto", READY, {"dictionaries": LISTS}, "dictionaries= is for templates over columns"),
        ("word", WORDS, {"unlabelled": MORE}, "no template learns from unlabelled text; add a"),
        ("word", WORDS, {"dictionaries": LISTS}, "no template uses the dictionary 'pets'; add"),
        ("auto", WORDS, {"unlabelled": []}, "unlabelled= holds no text; leave it out"),
        ("auto", WORDS, {"unlabelled": [[], []]}, "unlabelled= holds no text; leave it out"),
        ("auto", WORDS, {"unlabelled": [[{"a": 1}]]}, "unlabelled= holds ready-made features"),
        ("auto", WORDS, {"unlabelled": [np.zeros((2, 3))]}, "unlabelled= holds ready-made"),
        ("auto", WORDS, {"unlabelled": 5}, "unlabelled=: expected a corpus or a list of samples"),
        ("auto", WORDS, {"dictionaries": {"pets": []}}, "dictionary 'pets' has no entries"),
    ],
)
def test_what_is_refused(features, corpus, beside, words):
    with pytest.raises(DataError, match=words):
        text_of(features, corpus, **beside)


def test_text_without_the_column():
    encoder = encoder_for("cluster(pos)", WORDS, unlabelled_text(MORE))
    with pytest.raises(DataError, match=r"text needs the column 'pos', .*; it has word"):
        encoder.learn(WORDS)


def test_an_attempt_that_is_refused_leaves_nothing():
    encoder = encoder_for("cluster(char); wordlist(char, 1..2)", CHARACTERS)
    with pytest.raises(DataError, match="labelled training corpus"):
        encoder.learn(Corpus.from_columns({"char": [["z"] * 3]}))
    encoder.learn(CHARACTERS)
    assert set(encoder.clusters["char"]) == {"a", "b"}
    assert encoder.names([0])[0].startswith("cluster(char)=")


def test_ready_features_need_neither():
    assert isinstance(encoder_for("auto", READY, None, {}), AttributeEncoder)


def test_prepared(tmp_path):
    made = prepare(WORDS, tmp_path / "f", "ner", unlabelled=MORE, dictionaries=LISTS)
    encoder = encoder_for("ner", WORDS, unlabelled_text(MORE), LISTS)
    assert np.array_equal(encoder.learn(WORDS).indices, made.encoded.indices)
    again = made.encoder_for("ner")
    assert again.clusters == encoder.clusters and "dog" in again.clusters["word"]
