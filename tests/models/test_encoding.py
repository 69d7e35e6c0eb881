"""Labels refined inside: when, what is learned, and that what is asked and answered stays BIO."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from rich_models import same_model

import trellis.models.automatic as automatic
from chain_problems import labelling_scores, states_of, toy_language
from trellis import ChainCRF, ChainPerceptron, DataError, MaxMargin, load_model
from trellis.errors import CorruptModelError
from trellis.files.container import read_container, write_container
from trellis.models import RegularisedDecoder

X, Y = toy_language(60)
X_NEW, Y_NEW = toy_language(20, seed=1)
KINDS = pytest.mark.parametrize("kind", [ChainCRF, ChainPerceptron, MaxMargin])
STATES = ("B-PER", "E-PER", "I-PER", "O", "S-PER")


def ends(n: int, seed: int = 0):
    """One span after the other, of one to three words of which only the last one tells."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        lengths = rng.integers(1, 4, 4)
        X.append([word for k in lengths for word in ["x"] * (k - 1) + ["end"]])
        y.append([label for k in lengths for label in ["B"] + ["I"] * (k - 1)])
    return X, y


@KINDS
def test_predictions_are_in_the_labels_given(kind):
    model = kind(encoding="iobes", random_state=0).fit(X, Y)
    assert model.states_ == STATES and model.classes_ == ("B-PER", "I-PER", "O")
    assert model.state_labels == ("B-PER", "I-PER", "I-PER", "O", "B-PER")
    assert model.weights_.node.shape[1] == len(STATES)
    assert model.score(X_NEW, Y_NEW, metric="accuracy") > 0.97
    assert {label for s in model.predict(X_NEW) for label in s} <= set(model.classes_)


@KINDS
def test_auto_needs_spans_with_a_middle(kind, monkeypatch):
    words, labels = ends(20)
    n = sum(pair == ("I", "I") for s in labels for pair in itertools.pairwise(s))
    for limit, states in ((n, ("B", "E", "I", "S")), (n + 1, ("B", "I"))):
        monkeypatch.setattr(automatic, "_MIDDLES", limit)
        assert kind(max_passes=1).fit(words, labels).states_ == states
    assert kind(encoding="given", max_passes=1).fit(words, labels).states_ == ("B", "I")


@KINDS
def test_auto_needs_to_know_what_follows(kind, monkeypatch):
    """Samples without labels do no harm, single labels here and there do."""
    monkeypatch.setattr(automatic, "_MIDDLES", 1)
    words, labels = ends(20)
    rng = np.random.default_rng(0)
    samples = [s if i % 4 == 0 else [None] * len(s) for i, s in enumerate(labels)]
    single = [[y if rng.random() < 0.25 else None for y in s] for s in labels]
    for known, states in ((samples, ("B", "E", "I", "S")), (single, ("B", "I"))):
        assert kind(max_passes=1).fit(words, known).states_ == states


@KINDS
def test_auto_leaves_other_labels_as_they_are(kind, monkeypatch):
    monkeypatch.setattr(automatic, "_MIDDLES", 0)
    one = [["B" if label[0] == "B" else "O" for label in s] for s in Y]
    tags = [[label.replace("-PER", "") + "x" for label in s] for s in Y]
    for labels in (one, tags, [states_of(s) for s in Y]):
        model = kind(max_passes=1).fit(X, labels)
        assert model.states_ == model.classes_


@KINDS
def test_labels_that_are_not_bio_cannot_be_refined(kind):
    with pytest.raises(
        DataError, match=r"only labels in BIO .* can be refined, not A, B; leave encoding"
    ):
        kind(encoding="iobes").fit([["a", "b"]], [["A", "B"]])


def test_it_learns_how_spans_end():
    """That a span is over is told by its last word, which no label of BIO can say to the next."""
    train, test = ends(50), ends(50, seed=1)
    given, inside = (
        ChainCRF("word", encoding=e, solver="lbfgs", random_state=0).fit(*train).score(*test)
        for e in ("given", "iobes")
    )
    assert given < 0.9 and inside == 1.0


def test_the_weights_are_those_of_the_states_as_labels():
    X, Y = ends(30)
    options = {"solver": "lbfgs", "random_state": 0}
    inside = ChainCRF("word", encoding="iobes", **options).fit(X, Y)
    outside = ChainCRF("word", **options).fit(X, [states_of(s) for s in Y])
    assert inside.states_ == outside.classes_
    assert same_model(inside.weights_, outside.weights_)


def test_partial_labels():
    rng = np.random.default_rng(0)
    few = [[label if rng.random() < 0.4 else None for label in s] for s in Y]
    model = ChainCRF(encoding="iobes", random_state=0).fit(X, few)
    assert model.score(X_NEW, Y_NEW) > 0.9
    sets = [[{label, "O"} if i % 3 else label for i, label in enumerate(s)] for s in Y]
    assert ChainCRF(encoding="iobes", random_state=0).fit(X, sets).classes_ == model.classes_


@KINDS
def test_model_files(kind, tmp_path):
    model = kind("word; word[-1]", encoding="iobes", max_passes=3, random_state=0).fit(X, Y)
    model.save(tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert again.states_ == model.states_ and again.predict(X_NEW) == model.predict(X_NEW)
    header, arrays = read_container(tmp_path / "m")
    assert header["refined"] is True
    header["refined"] = False  # then there are too many columns
    write_container(tmp_path / "m", header, arrays)
    with pytest.raises(CorruptModelError, match="array 'node' has shape"):
        load_model(tmp_path / "m")


def test_a_file_that_says_more_than_its_labels_allow(tmp_path):
    ChainCRF("word", max_passes=1).fit([["a", "b"]], [["A", "B"]]).save(tmp_path / "m")
    header, arrays = read_container(tmp_path / "m")
    header["refined"] = True
    write_container(tmp_path / "m", header, arrays)
    with pytest.raises(CorruptModelError, match="its labels cannot be refined, but are said to be"):
        load_model(tmp_path / "m")


@KINDS
def test_a_stream_and_a_warm_start_keep_the_states(kind):
    options = {"solver": "sgd"} if kind is MaxMargin else {}
    model = kind("word", encoding="iobes", warm_start=True, random_state=0, **options).fit(X, Y)
    model.fit(X[:20], Y[:20])
    assert model.states_ == STATES
    model.partial_fit(X, Y)
    assert model.states_ == STATES and model.score(X_NEW, Y_NEW, metric="accuracy") > 0.8
    stream = kind("word", encoding="iobes", random_state=0, **options)
    for a, b in itertools.pairwise([0, 30, 60]):
        stream.partial_fit(X[a:b], Y[a:b])
    assert stream.states_ == STATES and stream.score(X_NEW, Y_NEW, metric="accuracy") > 0.75


def test_rich_edges_and_pieces():
    options = {"rich_edges": True, "piece_size": 2.5, "random_state": 0}
    model = ChainCRF("word; word[-1]", encoding="iobes", **options).fit(X, Y)
    assert model.score(X_NEW, Y_NEW, metric="accuracy") > 0.97


def test_explanations_are_of_labels():
    model = ChainCRF("word; word[-1]", encoding="iobes", random_state=0).fit(X, Y)
    sample = X_NEW[0]
    told = model.explain([sample])
    assert [p.label for p in told.positions] == model.predict([sample])[0]
    (chances,) = model.predict_marginals([sample])
    for t, p in enumerate(told.positions):
        assert p.rival in set(model.classes_) - {p.label}
        assert p.probability == pytest.approx(chances[t, model.classes_.index(p.label)])


@pytest.mark.parametrize("strength", [0.0, 0.5])
def test_two_models(strength):
    rich, simple = (
        ChainCRF("word", encoding="iobes", piece_size=n, max_passes=2, random_state=0).fit(X, Y)
        for n in (None, 1)
    )
    for sample in (["Ada", "met"], ["Zuse", "Ada", "Ada"]):
        a, b = labelling_scores(rich, sample), labelling_scores(simple, sample)
        best = max(a, key=lambda y: a[y] + strength * b[y])
        assert RegularisedDecoder(rich, simple, strength).predict([sample]) == [list(best)]


def test_two_models_of_different_encodings():
    a, b = (ChainCRF(encoding=e, max_passes=1).fit(X, Y) for e in ("iobes", "given"))
    with pytest.raises(DataError, match="the labels of one model are refined inside"):
        RegularisedDecoder(a, b)


def test_costs_are_those_of_the_labels_given(monkeypatch):
    cost = 1.0 - np.eye(3)
    with pytest.raises(DataError, match="encoding='iobes' needs cost='hamming'"):
        MaxMargin(encoding="iobes", cost=cost).fit(X, Y)
    monkeypatch.setattr(automatic, "_MIDDLES", 0)
    model = MaxMargin(cost=cost, max_passes=2).fit(X, Y)
    assert model.states_ == model.classes_
    with pytest.raises(DataError, match="encoding='iobes' is for structure='chain'"):
        MaxMargin(encoding="iobes", structure="tree").fit([["a"]], [["B"]], edges=[[]])
