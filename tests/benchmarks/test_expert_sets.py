"""Sets of experts: what they hold, that seeds settle them, and that answers are kept."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import expert_sets
from benchmarks.expert_sets import (
    ACCURACIES,
    DESIGNS,
    DEVELOPMENT,
    SETS,
    Dictionary,
    ExpertSet,
    code_word_taggers,
    conll2000_taggers,
    fields,
    jnlpba_taggers,
    letter_classifiers,
    movement_classifiers,
    n_taught,
    skewed,
    take,
    transcribed,
    weak_taggers,
)
from benchmarks.stand_ins import stand_ins
from trellis.experts import as_outputs

SHARE = 0.0125


@pytest.fixture(scope="module")
def data():
    """Small data in the files of the real ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRELLIS_DATA", stand_ins())
        yield


@pytest.mark.parametrize("make", [conll2000_taggers, jnlpba_taggers])
def test_weak_taggers_of_a_corpus(make, data, tmp_path):
    found = make(tmp_path, n=15, share=SHARE)
    assert len(found) == len(found.words) == len(found.outputs) == 15
    assert found.names == tuple(DESIGNS)
    assert [len(g) for g in found.gold] == [len(w) for w in found.words]
    assert [len(g) for g in found.gold] == found.outputs.lengths.tolist()
    assert (found.scheme, found.metric, found.aligned) == ("BIO", "span-f1", True)


def test_answers_are_kept_and_are_the_same(data, tmp_path, monkeypatch):
    first = conll2000_taggers(tmp_path / "one", n=15, share=SHARE)
    other = conll2000_taggers(tmp_path / "two", n=15, share=SHARE)
    another = conll2000_taggers(tmp_path / "one", n=15, seed=1, share=SHARE)
    monkeypatch.setattr(expert_sets, "load", None)  # nothing is read or trained again
    again = conll2000_taggers(tmp_path / "one", n=15, share=SHARE)
    for found in (other, again):
        assert np.array_equal(first.outputs.codes, found.outputs.codes)
        assert (first.gold, first.words) == (found.gold, found.words)
    assert another.words != first.words
    assert len([*(tmp_path / "one").iterdir()]) == 2


def test_kept_answers_are_no_pickles(data, tmp_path):
    conll2000_taggers(tmp_path, n=15, share=SHARE)
    (path,) = tmp_path.iterdir()
    with np.load(path, allow_pickle=False) as kept:
        assert {kept[key].dtype.kind for key in kept.files} == {"i", "U"}


def test_code_words(tmp_path):
    found = code_word_taggers(tmp_path, n=12, share=0.05)
    assert (len(found), len(found.names)) == (12, 7)
    assert {label for sample in found.gold for label in sample} <= {"B-code", "I-code", "O"}


def test_taggers_learn_from_sentences_of_their_own(monkeypatch):
    seen = []

    class Spy:
        def __init__(self, *_, **__):
            pass

        def fit(self, words, labels):
            assert words == labels
            seen.append([word for sentence in words for word in sentence])

    designs = {name: expert_sets.Design(Spy, d.features, d.n) for name, d in DESIGNS.items()}
    monkeypatch.setattr(expert_sets, "DESIGNS", designs)
    sentences = [[str(i)] for i in range(n_taught() + 5)]
    weak_taggers(sentences, sentences, seed=0)
    assert [len(words) for words in seen] == [design.n for design in DESIGNS.values()]
    assert len({word for words in seen for word in words}) == n_taught()
    with pytest.raises(ValueError, match="3 sentences for taggers that learn from"):
        weak_taggers(sentences[:3], sentences[:3], seed=0)


def test_designs_differ():
    assert len(DESIGNS) == 7
    assert len({(design.learner, design.features) for design in DESIGNS.values()}) == 7
    assert len({design.learner for design in DESIGNS.values()}) == 4
    assert all(200 <= design.n <= 500 for design in DESIGNS.values())


def test_dictionary():
    words = [["the", "dog", "barks"], ["a", "running", "dog"]]
    labels = [["B-NP", "I-NP", "B-VP"], ["B-NP", "I-NP", "I-NP"]]
    tagger = Dictionary().fit(words, labels)
    assert tagger.predict([["the", "running", "dog"], ["dog"], ["x", "hopping", "dog"]]) == [
        ["B-NP", "I-NP", "I-NP"],
        ["B-NP"],
        ["O", "B-NP", "I-NP"],
    ]


def test_skewed_experts_have_their_accuracies():
    found = skewed(n=4000)
    truth = np.array([label for sample in found.gold for label in sample])
    labels = np.array(found.outputs.labels)
    right = labels[found.outputs.codes] == truth[:, None]
    assert right.mean(axis=0) == pytest.approx(ACCURACIES, abs=0.012)
    joint = np.corrcoef(right.T) - np.eye(len(ACCURACIES))
    assert np.abs(joint).max() < 0.03  # errors are independent
    wrong = found.outputs.codes[~right[:, 0], 0] - np.searchsorted(labels, truth[~right[:, 0]])
    counts = np.bincount(wrong % 5, minlength=5)
    assert counts[0] == 0
    assert counts[1:] == pytest.approx(counts.sum() / 4, rel=0.06)
    assert np.array_equal(found.outputs.codes, skewed(n=4000).outputs.codes)
    assert not np.array_equal(found.outputs.codes, skewed(n=4000, seed=1).outputs.codes)


def test_take_and_answers():
    lists = [[["a"], ["b", "b"], None], [["a"], None, ["b"]]]
    assert take(lists, [2, 0]) == [[None, ["a"]], [["b"], ["a"]]]
    gold = [["a"], ["b", "b"], ["b"]]
    ragged = ExpertSet("toy", lists, gold, None, "exact")
    assert (ragged.aligned, ragged.names) == (False, ("expert 1", "expert 2"))
    assert ragged.answers(1) == [["a"], [], ["b"]]
    said = as_outputs(lists, names=["x", "y"])
    assert take(said, [2, 0]).codes.tolist() == [[-1, 1], [0, 0]]
    arrays = ExpertSet("toy", said, gold, None, "exact")
    assert (arrays.aligned, arrays.names) == (True, ("x", "y"))
    assert arrays.answers(0) == [["a"], ["b", "b"], ["b"]]  # the usual label where it is silent


def test_all_sets_are_there():
    assert set(DEVELOPMENT) < set(SETS)
    assert len(SETS) == 11


def test_fields_and_transcripts(data):
    made = fields(n=40)
    assert (made.outputs.lengths.tolist(), len(made.names)) == ([10] * 40, 5)
    heard = transcribed(n=8)
    assert (heard.aligned, heard.metric, len(heard.names)) == (False, "edit", 5)
    errors = [heard.score(heard.answers(j)) for j in range(5)]
    assert errors[0] > errors[-1] > 0


def test_movements(data):
    found = movement_classifiers(n=30)
    assert (len(found), len(found.names), found.metric) == (30, 7, "hamming")
    assert any(found.score(found.answers(j)) > 30 for j in range(7))
    assert all(label in found.outputs.labels for answer in found.gold for label in answer)


def test_letters(data):
    found = letter_classifiers(n=20, share=0.06)
    assert (len(found), len(found.names)) == (20, 7)
    assert set(map(len, found.gold)) == {1}
