"""Every two services go together, for every loss, structure and annotation, or are refused.

The page «What works with what» has each service alone; what breaks is mostly found in pairs.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from trellis import (
    ChainCRF,
    ChainPerceptron,
    GraphCRF,
    GraphPerceptron,
    MaxMargin,
    TreeCRF,
    TreePerceptron,
    load_model,
)
from trellis.corpus import as_corpus, as_graph_corpus
from trellis.errors import DataError
from trellis.features import prepare

pytestmark = pytest.mark.extras

KINDS = {
    "crf": {"chain": ChainCRF, "tree": TreeCRF, "graph": GraphCRF},
    "perceptron": {"chain": ChainPerceptron, "tree": TreePerceptron, "graph": GraphPerceptron},
}
SOLVERS: dict[str, tuple[str, dict[str, Any]]] = {
    "CRF": ("crf", {}),
    "CRF, adf": ("crf", {"solver": "adf"}),
    "CRF, lbfgs": ("crf", {"solver": "lbfgs"}),
    "perceptron": ("perceptron", {}),
    "max-margin": ("max-margin", {}),
    "max-margin, bundle": ("max-margin", {"solver": "bundle"}),
    "max-margin, sgd": ("max-margin", {"solver": "sgd"}),
    "max-margin, ramp": ("max-margin", {"loss": "ramp"}),
    "max-margin, l1": ("max-margin", {"l1": 0.5, "l2": 0.0}),
}
PARAMETERS: dict[str, dict[str, Any]] = {
    "pieces": {"piece_size": 1.5},
    "rich edges": {"rich_edges": "both"},
    "observed pairs": {"rich_edges": True, "edge_pairs": "observed"},
    "threads": {"n_jobs": 2, "batch_size": 3},
    "warm start": {"warm_start": True},
}
SERVICES = (*PARAMETERS, "edge types", "weights", "dev", "checkpoint", "prepared", "stream")
REFUSALS = (
    "needs solver='sgd'",
    "a run of this solver cannot be taken up in the middle",
    "held-out data cannot be scored between rounds of planes",
    "only hinge losses of label sets, with l2, are learned from a stream",
    "a prepared corpus is for fit alone",
)


@dataclass
class Data:
    """Samples with labels, edges and types of edges."""

    structure: str
    X: list[Any] = field(default_factory=list)
    y: list[list[Any]] = field(default_factory=list)
    edges: list[Any] = field(default_factory=list)
    types: list[Any] = field(default_factory=list)

    def corpus(self, typed: bool):
        if self.structure == "chain":
            return as_corpus(self.X, self.y)
        return as_graph_corpus(self.X, self.y, self.edges, self.types if typed else None)


def draw(rng: np.random.Generator, structure: str, annotation: str, n: int) -> Data:
    data = Data(structure)
    for _ in range(n):
        labels: list[Any] = rng.choice(list("ABC"), rng.integers(3, 6)).tolist()
        data.X.append([[f"is {label}", f"noise {rng.integers(3)}"] for label in labels])
        parent = {j: int(rng.integers(0, j)) if structure == "tree" else j - 1 for j in range(1, 6)}
        edges = [(parent[j], j) for j in range(1, len(labels))]
        data.edges.append([*edges, (0, len(labels) - 1)] if structure == "graph" else edges)
        data.types.append([("s", "t")[k % 2] for k in range(len(data.edges[-1]))])
        other = {"sets": lambda label: {label, "A"}, "none": lambda _: None}.get(annotation)
        data.y.append([other(a) if other and rng.random() < 0.4 else a for a in labels])
    return data


def attempt(make, pair: tuple[str, ...], data: Data, held_out: Data, folder) -> None:
    """Train with two services, predict, save, load, and predict the same."""
    model = make(**{k: v for name in pair for k, v in PARAMETERS.get(name, {}).items()})
    typed, chain = "edge types" in pair, data.structure == "chain"
    known: dict[str, Any] = {} if chain else {"edges": data.edges}
    known |= {"edge_types": data.types} if typed else {}
    fit: dict[str, Any] = {}
    X: Any = data.X
    y: Any = data.y
    if "weights" in pair:
        fit["sample_weight"] = np.r_[0.0, np.ones(len(X) - 1)]
    if "prepared" in pair:
        X, y, known = prepare(X, folder / "prepared", y=y, **known), None, {}
    if "stream" in pair:
        for _ in range(2):
            model.partial_fit(X, y, **known, **fit)
    else:
        if "dev" in pair:
            fit["dev"] = held_out.corpus(typed)
            model.set_params(patience=1)
        if "checkpoint" in pair:
            fit["checkpoint"] = folder / "checkpoint"
        for _ in range(2 if "warm start" in pair else 1):
            model.fit(X, y, **known, **fit)
    new: dict[str, Any] = {} if chain else {"edges": held_out.edges}
    new |= {"edge_types": held_out.types} if typed else {}
    model.save(folder / "model")
    again = load_model(folder / "model")
    assert again.predict(held_out.X, **new) == model.predict(held_out.X, **new)
    assert len(model.predict_kbest(held_out.X, 2, **new)) == len(held_out.X)
    if isinstance(model, ChainCRF | TreeCRF | GraphCRF):
        for table in model.predict_marginals(held_out.X, **new):
            np.testing.assert_allclose(table.sum(axis=1), 1.0, atol=1e-6)


@pytest.mark.parametrize("annotation", ["complete", "sets", "none"])
@pytest.mark.parametrize("structure", ["chain", "tree", "graph"])
@pytest.mark.parametrize("name", SOLVERS)
def test_pairs_of_services(name, structure, annotation, tmp_path):
    kind, parameters = SOLVERS[name]
    parameters = {"max_passes": 4, "random_state": 0, **parameters}
    rng = np.random.default_rng(1)
    data, held_out = draw(rng, structure, annotation, 9), draw(rng, structure, "complete", 4)

    def make(**more):
        if kind == "max-margin":
            return MaxMargin(structure=structure, **parameters, **more)
        return KINDS[kind][structure](**parameters, **more)

    services = [s for s in SERVICES if structure != "chain" or s != "edge types"]
    worked = 0
    for pair in itertools.combinations(services, 2):
        if set(pair) == {"stream", "dev"} or set(pair) == {"stream", "checkpoint"}:
            continue  # partial_fit has no such arguments
        try:
            attempt(make, pair, data, held_out, tmp_path)
            worked += 1
        except DataError as error:
            assert any(words in str(error) for words in REFUSALS), f"{pair}: {error}"
    assert worked >= 10
