"""A little data for every public estimator: what ``fit`` takes, and what ``predict`` takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trellis import (
    ChainCRF,
    ChainPerceptron,
    GraphCRF,
    GraphPerceptron,
    MaxMargin,
    TreeCRF,
    TreePerceptron,
)
from trellis.cheap import TransferLearner
from trellis.datasets import simulate_cells
from trellis.experts import (
    Aligned,
    AnnotatorModel,
    AutoCombiner,
    BestExpert,
    Committee,
    Consensus,
    ESPBoost,
    FollowPerturbedLeader,
    ForwardStepwise,
    GuardedVote,
    LogLinearVote,
    MajorityVote,
    Rerank,
    Rover,
    SpanCombiner,
    SpanVote,
    Stacking,
    WeightedMajority,
)
from trellis.regression import GCRF, GLACER, KNN, NetworkLasso, TableRegressor
from trellis.tracking import (
    FlowTracker,
    GraphMatching,
    HandSet,
    LocalClassifiers,
    NearestNeighbour,
    TrackingModel,
)

# ------------------------------------------------------------------------- labels

WORDS = [["the", "cat", "sat", "down"], ["a", "dog", "ran", "off"], ["cats", "sit", "down"]] * 3
TAGS = [["D", "N", "V", "P"], ["D", "N", "V", "P"], ["N", "V", "P"]] * 3
PATHS = [[(i, i + 1) for i in range(len(words) - 1)] for words in WORDS]
"""Edges that make a tree of each sample."""
LOOPS = [[*path, (len(path), 0)] for path in PATHS]
"""Edges that make a loop of each sample."""
EDGES = {"chain": None, "tree": PATHS, "graph": LOOPS}
NEW_WORDS = WORDS[:2]


def with_edges(samples: list[Any], edges: list[Any] | None) -> list[Any]:
    """Samples as scikit-learn can slice them: trees and graphs as pairs (features, edges)."""
    return samples if edges is None else list(zip(samples, edges, strict=True))


# ------------------------------------------------------------------------- numbers

_RNG = np.random.default_rng(0)
X = _RNG.uniform(size=(40, 3))
Y = np.sin(6 * X[:, 0]) + X[:, 1] + 0.1 * _RNG.normal(size=40)

TABLE = {
    "size": X[:, 0], "kind": ["flat", "house"] * 20, "lat": 50 + X[:, 1], "lon": 8 + X[:, 2],
    "price": Y,
}  # fmt: skip
NEW_TABLE = {name: column[:12] for name, column in TABLE.items() if name != "price"}

# ------------------------------------------------------------------------- experts

GOLD = [["a", "b", "a"], ["b", "a", "c"], ["b", "b", "a"], ["a", "c", "b"]] * 3
SAID = [
    [["a", "b", "b"], ["b", "b", "c"], ["b", "b", "a"], ["a", "a", "b"]] * 3,
    [["b", "b", "a"], ["b", "a", "a"], ["a", "b", "a"], ["a", "c", "c"]] * 3,
    [["a", "a", "a"], ["b", "a", "c"], ["b", "b", "b"], ["b", "c", "b"]] * 3,
]

SPANS = [["B-X", "I-X", "O"], ["O", "B-Y", "O"], ["B-Y", "B-X", "I-X"], ["O", "O", "B-X"]] * 3
SAID_SPANS = [
    [["B-X", "I-X", "O"], ["O", "B-X", "O"], ["B-Y", "B-X", "O"], ["O", "O", "B-X"]] * 3,
    [["B-X", "O", "O"], ["O", "B-Y", "O"], ["O", "B-X", "I-X"], ["B-Y", "O", "O"]] * 3,
    [["B-X", "I-X", "O"], ["O", "B-Y", "I-Y"], ["B-Y", "B-X", "I-X"], ["O", "O", "O"]] * 3,
]

# ------------------------------------------------------------------------- tracking

FILM = simulate_cells(12, 5, seed=0)


@dataclass(frozen=True)
class Toy:
    """An estimator that is not fitted, and its data.

    Parameters
    ----------
    model : estimator
        With as little work as possible, and a seed if it draws random numbers.
    fit, predict : tuples
        What these take by position.
    options, asked : dicts
        What ``fit`` and ``predict`` take by name.
    seen : callable
        What of a prediction is compared.
    grid : dict
        A grid to search, where scikit-learn can.
    """

    model: Any
    fit: tuple[Any, ...]
    predict: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)
    asked: dict[str, Any] = field(default_factory=dict)
    seen: Callable[[Any], Any] = lambda prediction: prediction
    grid: dict[str, list[Any]] = field(default_factory=dict)

    def fitted(self, model: Any = None) -> Any:
        """The model (or another one), fitted to the data."""
        return (self.model if model is None else model).fit(*self.fit, **self.options)

    def predicted(self, model: Any) -> Any:
        """What a fitted model predicts."""
        return self.seen(model.predict(*self.predict, **self.asked))


def labelling(model: Any, **grid: list[Any]) -> Toy:
    edges = EDGES[model.structure]
    data = with_edges(WORDS, edges)
    return Toy(model, (data, TAGS), (data[:2],), grid=grid)


def regression(model: Any, **grid: list[Any]) -> Toy:
    return Toy(model, (X, Y), (X[:12],), grid=grid)


def combining(model: Any) -> Toy:
    return Toy(model, (SAID, GOLD), (SAID,))


def tracking(model: Any, **grid: list[Any]) -> Toy:
    return Toy(model, (FILM[:3],), (FILM[3:],), seen=lambda found: found.links, grid=grid)


def toys() -> dict[str, Toy]:
    """Every public estimator that can be fitted, by name; new objects each time."""
    short = {"max_passes": 2, "random_state": 0}
    return {
        "ChainCRF": labelling(ChainCRF("word", **short), l2=[0.1, 1.0]),
        "TreeCRF": labelling(TreeCRF("word", **short), l2=[0.1, 1.0]),
        "GraphCRF": labelling(GraphCRF("word", **short), l2=[0.1, 1.0]),
        "ChainPerceptron": labelling(ChainPerceptron("word", **short), averaged=[True, False]),
        "TreePerceptron": labelling(TreePerceptron("word", **short), averaged=[True, False]),
        "GraphPerceptron": labelling(GraphPerceptron("word", **short), averaged=[True, False]),
        "MaxMargin": labelling(MaxMargin("word", **short), l2=[0.1, 1.0]),
        "GCRF": regression(GCRF(graph=KNN(n_neighbors=3), random_state=0), graph__n_neighbors=[2]),
        "GLACER": regression(
            GLACER(2, graph=KNN(n_neighbors=3), max_swaps=1, random_state=0), max_swaps=[1, 2]
        ),
        "NetworkLasso": Toy(
            NetworkLasso(max_iter=5), (X, Y), (X[:12],), {"graph": KNN(n_neighbors=3)}
        ),
        "TableRegressor": Toy(
            TableRegressor("price", base="linear", n_neighbors=3, random_state=0),
            (TABLE,),
            (NEW_TABLE,),
        ),
        "Aligned": combining(Aligned(MajorityVote())),
        "AnnotatorModel": combining(AnnotatorModel()),
        "AutoCombiner": combining(AutoCombiner(["log-linear"], n_folds=2)),
        "BestExpert": combining(BestExpert()),
        "Committee": combining(Committee([MajorityVote(), BestExpert()])),
        "Consensus": combining(Consensus()),
        "ESPBoost": combining(ESPBoost(n_rounds=3)),
        "FollowPerturbedLeader": combining(FollowPerturbedLeader(random_state=0)),
        "ForwardStepwise": combining(ForwardStepwise(n_rounds=3, random_state=0)),
        "GuardedVote": combining(GuardedVote()),
        "LogLinearVote": combining(LogLinearVote()),
        "MajorityVote": combining(MajorityVote()),
        "Rerank": combining(Rerank()),
        "Rover": combining(Rover()),
        "SpanCombiner": Toy(SpanCombiner(), (SAID_SPANS, SPANS), (SAID_SPANS,)),
        "SpanVote": Toy(SpanVote(), (SAID_SPANS, SPANS), (SAID_SPANS,)),
        "Stacking": combining(Stacking(ChainCRF(**short))),
        "WeightedMajority": combining(WeightedMajority(random_state=0)),
        "TrackingModel": tracking(TrackingModel(knots=0, random_state=0), l2=[0.1, 1.0]),
        "NearestNeighbour": tracking(NearestNeighbour()),
        "GraphMatching": tracking(GraphMatching()),
        "FlowTracker": tracking(FlowTracker()),
        "HandSet": tracking(HandSet()),
        "LocalClassifiers": tracking(LocalClassifiers(n_trees=3, random_state=0)),
        "TransferLearner": Toy(
            TransferLearner(MaxMargin("word", l2=0.1), target="b"),
            ({"a": (WORDS[:6], TAGS[:6]), "b": (WORDS[6:], TAGS[6:])},),
            (NEW_WORDS,),
        ),
    }
