"""Decoding with two models: the best labelling by the sum of both scores."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from rich_models import rich_scores
from sklearn.exceptions import NotFittedError

import trellis.models.scored_model as predictor
from chain_problems import in_scheme, toy_language
from trellis import ChainCRF, ChainPerceptron, DataError, InfeasibleError, TreeCRF
from trellis.models import RegularisedDecoder

X, Y = toy_language(40)
SAMPLES = [list(s) for s in itertools.product(["Ada", "the", "Zuse"], repeat=3)] + [["met"], []]
MODELS = {
    "plain": ChainCRF("word", max_passes=2, random_state=0),
    "simple": ChainCRF("word", piece_size=1, max_passes=2, random_state=0),
    "rich": ChainCRF("word; word[-1]", rich_edges="both", max_passes=2, random_state=0),
    "sparse": ChainCRF(
        "word[-1..1]", rich_edges=True, edge_pairs="observed", edge_negatives=1, max_passes=2,
        random_state=0,
    ),
    "perceptron": ChainPerceptron("word; bias", max_passes=1, random_state=0),
}  # fmt: skip


@pytest.fixture(scope="module")
def models():
    rng = np.random.default_rng(0)
    for model in MODELS.values():
        model.fit(X, Y)
        for array in model.weights_.arrays():  # far from agreeing
            array += rng.normal(size=array.shape).astype(array.dtype)
    return MODELS


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("rich", "simple"), ("plain", "rich"), ("plain", "simple"), ("sparse", "rich"),
        ("perceptron", "sparse"), ("rich", "rich"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("strength", [0, 0.5, 1.0, 3])
def test_the_best_by_the_sum_of_both_scores(models, first, second, strength):
    a, b = models[first], models[second]
    decoder = RegularisedDecoder(a, b, strength)
    changed = 0
    for sample, found in zip(SAMPLES, decoder.predict(SAMPLES), strict=True):
        one, other = rich_scores(a, sample), rich_scores(b, sample)
        total = {y: one[y] + strength * other[y] for y in one}
        assert total[tuple(found)] == pytest.approx(max(total.values()), abs=1e-3)
        changed += [found] != a.predict([sample])
    assert (changed > 0) == (strength > 0 and first != second)


def test_the_strength_is_one_unless_said(models):
    a, b = models["rich"], models["simple"]
    assert RegularisedDecoder(a, b).predict(SAMPLES) == RegularisedDecoder(a, b, 1).predict(SAMPLES)


def test_constraints(models):
    a, b = models["rich"], models["simple"]
    sample, sets = ["Ada", "the", "Ada"], [None, {"B-PER", "I-PER"}, "O"]
    (found,) = RegularisedDecoder(a, b).predict([sample], constraints=[sets])
    one, other = rich_scores(a, sample), rich_scores(b, sample)
    total = {y: one[y] + other[y] for y in one if y[1] != "O" and y[2] == "O"}
    assert total[tuple(found)] == pytest.approx(max(total.values()), abs=1e-3)


@pytest.mark.parametrize("ruled", [0, 1])
def test_the_scheme_of_either_model_holds(models, ruled):
    pair = [models["rich"], models["simple"]]
    pair[ruled] = type(pair[ruled])(**pair[ruled].get_params() | {"scheme": "BIO"}).fit(X, Y)
    pair[ruled].weights_ = models["rich" if ruled == 0 else "simple"].weights_
    for strength in (0.0, 1.0):
        decoder = RegularisedDecoder(*pair, strength)
        found = decoder.predict(SAMPLES)
        assert all(in_scheme("BIO", y) for y in found)
        for sample, y in zip(SAMPLES, found, strict=True):
            one, other = (rich_scores(m, sample) for m in pair)
            total = {k: one[k] + strength * other[k] for k in one if in_scheme("BIO", k)}
            assert total[tuple(y)] == pytest.approx(max(total.values()), abs=1e-3)
        with pytest.raises(InfeasibleError, match=r"sample 1 \(of 1 positions\) has no allowed"):
            decoder.predict([["a"], ["b"]], constraints=[[None], ["I-PER"]])


@pytest.mark.parametrize("block", [1, 50])
def test_blocks_change_nothing(models, monkeypatch, block):
    decoder = RegularisedDecoder(models["plain"], models["rich"])
    expected = decoder.predict(SAMPLES)
    monkeypatch.setattr(predictor, "_EDGES", block)
    monkeypatch.setattr(predictor, "_POSITIONS", 7)
    assert decoder.predict(SAMPLES) == expected


def test_nothing_to_predict(models):
    assert RegularisedDecoder(models["rich"], models["simple"]).predict([]) == []


# ------------------------------------------------------------------------- refusals


def test_models_must_be_fitted(models):
    for pair in ((ChainCRF(), models["rich"]), (models["rich"], ChainCRF())):
        with pytest.raises(NotFittedError, match="this ChainCRF is not fitted yet"):
            RegularisedDecoder(*pair)


def test_labels_must_be_the_same(models):
    other = ChainCRF(max_passes=1).fit([["a", "b"]], [["N", "V"]])
    with pytest.raises(DataError, match="the two models have different labels; train both on the"):
        RegularisedDecoder(models["rich"], other)


def test_models_must_be_of_chains(models):
    tree = TreeCRF("word", max_passes=1).fit([["a", "b"]], [["N", "V"]], edges=[[(0, 1)]])
    for other in (tree, TreeCRF(), 3, None, ChainCRF):
        for pair in ((other, models["rich"]), (models["rich"], other)):
            with pytest.raises(DataError, match="the two models must be chain models"):
                RegularisedDecoder(*pair)


@pytest.mark.parametrize("strength", [-0.1, float("nan"), float("inf"), 10**400, "1", None])
def test_strength(models, strength):
    with pytest.raises(DataError, match="strength must be a number of at least 0, got"):
        RegularisedDecoder(models["rich"], models["simple"], strength)


def test_schemes_that_contradict_each_other():
    x, y = [["a", "b"]], [["B-X", "L-X"]]
    wide = ChainCRF(scheme="BILOU", max_passes=1).fit(x, y)
    narrow = ChainCRF(max_passes=1).fit(x, y)
    decoder = RegularisedDecoder(wide, narrow)
    assert decoder.predict([["a", "b"]]) == [["B-X", "L-X"]]
    with pytest.raises(InfeasibleError, match=r"sample 0 \(of 1 positions\)"):
        decoder.predict([["a"]])
