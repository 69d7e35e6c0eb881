"""Models with unlabelled text and dictionaries: files, streams, warm starts, runs taken up."""

from __future__ import annotations

import numpy as np
import pytest

from trellis import (
    ChainCRF,
    ChainPerceptron,
    Corpus,
    DataError,
    GraphCRF,
    MaxMargin,
    TreeCRF,
    load_model,
)
from trellis.cheap import ActiveLearner
from trellis.features import prepare
from trellis.models import Checkpoint

X = [["the", "cat", "sat"], ["a", "dog", "ran"], ["the", "dog", "sat"]] * 2
Y = [["D", "N", "V"]] * 6
RAW = [["the", "fox", "sat"], ["a", "fox", "ran"], ["a", "cat", "sat"], ["the", "hen", "ran"]] * 3
LISTS = {"pets": ["cat", "dog", "the hen"]}
KINDS = [ChainCRF, ChainPerceptron, MaxMargin]


def fitted(kind=ChainCRF, features="pos", **more):
    return kind(features, max_passes=3, random_state=0).fit(
        X, Y, unlabelled=RAW, dictionaries=LISTS, **more
    )


def names(model):
    return model.encoder_.names(range(model.n_features_))


def same(a, b):
    return all(
        np.array_equal(getattr(a.weights_, part), getattr(b.weights_, part))
        for part in ("node", "transitions")
    ) and names(a) == names(b)


@pytest.mark.parametrize("kind", KINDS)
def test_all_models_take_text(kind, tmp_path):
    model = fitted(kind)
    assert "fox" in model.encoder_.clusters["word"]
    assert any(name.startswith("cluster(word") for name in names(model))
    assert 'dictionary(word, "pets")=whole' in names(model)
    assert same(model, fitted(kind))
    model.save(tmp_path / "m")
    again = load_model(tmp_path / "m")
    new = [["the", "fox", "ran"], ["the", "hen"]]
    assert again.predict(new) == model.predict(new)
    assert same(model, again)
    assert again.encoder_.clusters == model.encoder_.clusters


@pytest.mark.parametrize("kind", [TreeCRF, GraphCRF])
def test_trees_and_graphs(kind):
    edges = [[(0, 1), (1, 2)]] * 6
    model = kind("word", max_passes=2, random_state=0)
    model.set_params(features="word; cluster(word)").fit(X, Y, edges=edges, unlabelled=RAW)
    assert "fox" in model.encoder_.clusters["word"]
    raw = [(sample, [(0, 1)]) for sample in RAW]
    other = kind("word; cluster(word)", max_passes=2, random_state=0)
    assert same(other.fit(X, Y, edges=edges, unlabelled=raw), model)


def test_without_text_nothing_changes():
    plain = ChainCRF("pos", max_passes=3, random_state=0).fit(X, Y)
    assert not any("cluster" in name for name in names(plain))
    assert plain.encoder_.clusters == {}


def test_labels_of_the_text_are_ignored():
    labelled = Corpus.from_columns({"word": RAW}, [["?"] * len(s) for s in RAW])
    model = ChainCRF("pos", max_passes=3, random_state=0)
    assert same(model.fit(X, Y, unlabelled=labelled, dictionaries=LISTS), fitted())
    assert model.classes_ == ("D", "N", "V")
    parts = [labelled[:5], labelled[5:]]
    assert same(model.fit(X, Y, unlabelled=parts, dictionaries=LISTS), fitted())


def test_tables_are_fixed_by_the_first_fit():
    model = fitted()
    clusters = dict(model.encoder_.clusters["word"])
    model.partial_fit([["a", "newt", "newt", "newt"]], [["D", "N", "N", "N"]])
    assert model.encoder_.clusters["word"] == clusters
    model.set_params(warm_start=True).fit(X[:2], Y[:2])
    assert model.encoder_.clusters["word"] == clusters
    streamed = ChainCRF("word; cluster(word)", random_state=0)
    streamed.partial_fit(X, Y).partial_fit(RAW, [["D", "N", "V"]] * len(RAW))
    assert "fox" not in streamed.encoder_.clusters["word"]


@pytest.mark.parametrize("given", [{"unlabelled": RAW}, {"dictionaries": LISTS}])
def test_what_comes_too_late(given, tmp_path):
    (name,) = given
    model = fitted().set_params(warm_start=True)
    with pytest.raises(DataError, match=f"{name}= cannot go with warm_start: .* by the first fit"):
        model.fit(X, Y, **given)
    assert model.predict([["the", "cat"]])
    prepared = prepare(Corpus.from_columns({"word": X}, Y), tmp_path / "f", "pos")
    with pytest.raises(DataError, match=f"give {name}= to trellis.features.prepare"):
        ChainCRF().fit(prepared, **given)


def test_prepared(tmp_path):
    corpus = Corpus.from_columns({"word": X}, Y)
    prepared = prepare(corpus, tmp_path / "f", "pos", unlabelled=RAW, dictionaries=LISTS)
    model = ChainCRF("pos", max_passes=3, random_state=0).fit(prepared)
    assert same(model, fitted())


def test_ready_features_are_refused():
    dicts = [[{"w": word} for word in sample] for sample in X]
    with pytest.raises(DataError, match="unlabelled= is for templates over columns"):
        ChainCRF().fit(dicts, Y, unlabelled=RAW)
    with pytest.raises(DataError, match="no template learns from unlabelled text"):
        ChainCRF("word").fit(X, Y, unlabelled=RAW)


def test_a_run_taken_up_ends_in_the_same_bits(tmp_path):
    file = tmp_path / "checkpoint"
    beside = {"unlabelled": RAW, "dictionaries": LISTS}

    class Once(Checkpoint):
        def save(self, progress, learner, best):
            super().save(progress, learner, best)
            if len(progress.records) == 2 and not progress.visited:
                raise KeyboardInterrupt

    settings = {"features": "pos", "max_passes": 4, "random_state": 0}
    with pytest.raises(KeyboardInterrupt):
        ChainCRF(**settings).fit(X, Y, checkpoint=Once(file), **beside)
    assert file.exists()
    resumed = ChainCRF(**settings).fit(X, Y, checkpoint=file, resume=True, **beside)
    assert same(resumed, ChainCRF(**settings).fit(X, Y, **beside))


def test_all_data_sets_of_a_learning_problem_are_text():
    model = ChainCRF("word; cluster(word); variety(word, 1..2)", random_state=0)
    problems = model.learning_problems({"known": (X, Y), "pool": RAW})
    assert "fox" in problems["known"].owner.encoder_.clusters["word"]
    learner = ActiveLearner(model, labels=["D", "N", "V"])
    for _ in range(3):
        learner.tell(learner.query(RAW), ["D", "N", "V"])
    assert "fox" in learner.finish().encoder_.clusters["word"]


def test_explained_by_name():
    model = fitted()
    assert "cluster(word" in str(model.explain([["the", "fox", "sat"]], n_features=50))
