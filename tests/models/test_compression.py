"""Compressed models: what is kept, what it does to predictions, and every complaint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich_models import switches
from sklearn.exceptions import NotFittedError

from trellis import (
    ChainCRF,
    ChainPerceptron,
    DataError,
    GraphCRF,
    GraphPerceptron,
    MaxMargin,
    TreeCRF,
    load_model,
)
from trellis.problems import Weights

X, Y = switches(60, n_labels=3, seed=1)
NEW, GOLD = switches(40, n_labels=3, seed=2)
PATH = [np.array([[i, i + 1] for i in range(len(x) - 1)]).reshape(-1, 2) for x in X]
NEW_PATH = [np.array([[i, i + 1] for i in range(len(x) - 1)]).reshape(-1, 2) for x in NEW]
QUICK: dict[str, Any] = {"max_passes": 3, "random_state": 0}
RICH = QUICK | {"rich_edges": True}
TEMPLATES = "word[-1..1]; suffix(word, 1..2); word[-1] & word; bias"
MODELS = {
    "crf": ChainCRF(TEMPLATES, **QUICK),
    "perceptron": ChainPerceptron(TEMPLATES, **QUICK),
    "max-margin": MaxMargin(TEMPLATES, **QUICK),
    "rich, observed pairs": ChainCRF(TEMPLATES, **RICH, edge_pairs="observed"),
    "rich, all pairs": ChainCRF(TEMPLATES, **RICH, edge_pairs="all"),
    "rich, both ends": ChainCRF(TEMPLATES, **QUICK, rich_edges="both", edge_pairs="observed"),
    "tree": TreeCRF(TEMPLATES, **QUICK),
    "graph": GraphCRF(TEMPLATES, **RICH),
    "graph perceptron": GraphPerceptron(TEMPLATES, **QUICK),
}


def on(model: Any, path: list[np.ndarray]) -> dict[str, Any]:
    return {} if model.structure == "chain" else {"edges": path}


def fitted(name: str) -> Any:
    model = MODELS[name]
    return model.fit(X, Y, **on(model, PATH))


def says(model: Any) -> dict[str, float]:
    """The largest weight of each feature, one by one."""
    weights, names = model.weights_, model.encoder_.names(np.arange(model.n_features_))
    found = {}
    for f, name in enumerate(names):
        found[name] = float(np.abs(weights.node[f]).max())
        edge = weights.edge
        if edge is not None and edge.row[f] >= 0:
            ends = edge.rows()
            for row in range(edge.row[f], edge.n_rows, edge.n_crossed):
                for value in edge.values[ends[row] : ends[row + 1]]:
                    found[name] = max(found[name], abs(float(value)))
    return found


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("share", [1.0, 0.5, 0.1])
def test_features_with_the_largest_weights_stay(tmp_path: Path, name: str, share: float) -> None:
    model = fitted(name)
    before = says(model)
    labels = model.predict(NEW, **on(model, NEW_PATH))
    small = model.compressed(keep=share, precision="float32")
    assert type(small) is type(model) and small.get_params() == model.get_params()
    after = says(small)
    assert len(after) == min(np.ceil(share * len(before)), sum(v > 0 for v in before.values()))
    assert all(after[feature] == before[feature] for feature in after)
    least = min(after.values())
    assert all(before[feature] <= least for feature in before.keys() - after.keys())
    assert before == says(model) and labels == model.predict(NEW, **on(model, NEW_PATH))
    small.save(tmp_path / "small")
    again = load_model(tmp_path / "small")
    predicted = small.predict(NEW, **on(model, NEW_PATH))
    assert again.predict(NEW, **on(model, NEW_PATH)) == predicted
    if share == 1:
        assert predicted == labels


@pytest.mark.parametrize(
    "name", ["crf", "rich, observed pairs", "rich, all pairs", "rich, both ends"]
)
def test_predictions_are_those_of_the_weights_that_stay(name: str) -> None:
    """The old features with weights set to zero predict the same."""
    model = fitted(name)
    for threshold in (0.05, 0.3, 0.6):
        small = model.compressed(threshold=threshold, precision="float32")
        say = np.array(list(says(model).values()))
        node = np.where(np.abs(model.weights_.node) < 0.1 * threshold, 0, model.weights_.node)
        node[say < threshold] = 0
        edge = model.weights_.edge
        if edge is not None:
            values, ends = edge.values.copy(), edge.rows()
            values[np.abs(values) < 0.1 * threshold] = 0
            for f in np.flatnonzero((say < threshold) & (edge.row >= 0)):
                for row in range(edge.row[f], edge.n_rows, edge.n_crossed):
                    values[ends[row] : ends[row + 1]] = 0
            edge = edge.like(values)
        cut = Weights(node, model.weights_.transitions, edge)
        corpus = model._corpus(NEW)
        assert small.n_features_ == (say >= threshold).sum()
        assert small.predict(NEW) == model.labellings(corpus, model._encode(corpus), cut)


def test_attributes(tmp_path: Path) -> None:
    samples = [[{"w": w, "n": len(w) / 3} for w in x] for x in X]
    model = ChainCRF(**QUICK).fit(samples, Y)
    small = model.compressed(keep=0.5)
    before, after = says(model), says(small)
    assert set(after) == set(sorted(before, key=before.__getitem__)[-len(after) :])
    small.save(tmp_path / "m")
    assert load_model(tmp_path / "m").predict(samples) == small.predict(samples)


def test_float16_is_the_nearest() -> None:
    model = fitted("rich, observed pairs")
    small = model.compressed(keep=1)
    assert small.weights_.node.dtype == np.float32
    rounded = model.weights_.transitions.astype(np.float16)
    assert np.array_equal(small.weights_.transitions, rounded)
    for name, value in says(small).items():
        assert value == np.float16(says(model)[name])


def test_small_files(tmp_path: Path) -> None:
    model = ChainCRF("word[-2..2]; word[-1..0] & word[0..1]", **QUICK).fit(
        [[f"{w}{i}" for w in x] for i, x in enumerate(X)], Y
    )
    sizes = []
    for k, small in enumerate([model, model.compressed(keep=1), model.compressed(keep=0.1)]):
        small.save(tmp_path / f"{k}")
        sizes.append((tmp_path / f"{k}").stat().st_size)
    assert sizes[1] < 0.9 * sizes[0] and sizes[2] < 0.4 * sizes[1]


@pytest.mark.parametrize("way", ["fit", "partial_fit"])
def test_what_was_forgotten_can_be_learned_again(way: str) -> None:
    for name in ("crf", "perceptron"):
        model = fitted(name)
        small = model.compressed(keep=0.2).set_params(warm_start=True)
        few = small.n_features_
        getattr(small, way)(X, Y)
        assert few < small.n_features_ == model.n_features_
        small.predict(NEW)


def test_a_model_of_zeros() -> None:
    model = fitted("crf")
    model.weights_ = model.weights_.map(np.zeros_like)
    small = model.compressed()
    assert small.n_features_ == 0
    assert small.predict(NEW) == model.predict(NEW)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep": 0}, "keep must be a number"),
        ({"keep": 1.5}, "keep must be a number"),
        ({"keep": "all"}, "keep must be a number"),
        ({"threshold": -1}, "threshold must be None or a number"),
        ({"precision": "float8"}, "precision must be 'float16' or 'float32'"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        fitted("crf").compressed(**options)


def test_weights_too_large_for_float16() -> None:
    model = fitted("crf")
    transitions = model.weights_.transitions.copy()
    transitions[0, 0] = 7e4
    model.weights_ = Weights(model.weights_.node, transitions)
    with pytest.raises(
        DataError, match=r"the largest weight, 7e\+04, is too large for float16; use"
    ):
        model.compressed()
    assert model.compressed(precision="float32").weights_.transitions[0, 0] == 7e4


def test_not_fitted() -> None:
    with pytest.raises(NotFittedError):
        ChainCRF().compressed()
