"""One small fitted estimator of every kind that can be saved, and what it predicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder
from sklearn.tree import DecisionTreeRegressor

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
from trellis.corpus import Corpus
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
    PathAutomaton,
    PathFamily,
    Rerank,
    Rover,
    SpanCombiner,
    SpanVote,
    Stacking,
    WeightedMajority,
    as_outputs,
)
from trellis.regression import (
    GCRF,
    GLACER,
    KNN,
    Full,
    NetworkLasso,
    Radius,
    TableRegressor,
    knn_graph,
)
from trellis.tracking import (
    FlowTracker,
    GraphMatching,
    HandSet,
    LocalClassifiers,
    NearestNeighbour,
    TrackingModel,
)

__all__ = [
    "AWAKE",
    "EDGES",
    "EVERY",
    "FILM",
    "GOLD",
    "TAGS",
    "WORDS",
    "Made",
    "X",
    "Y",
    "new_samples",
]

Made = tuple[Any, Callable[[Any], Any]]

# ------------------------------------------------------------------------- linear models

WORDS = [["the", "cat", "sat"], ["a", "dog", "ran", "off"]] * 3
TAGS = [["D", "N", "V"], ["D", "N", "V", "P"]] * 3
EDGES = [[(i, i + 1) for i in range(len(s) - 1)] for s in WORDS]
NEW_WORDS = [["the", "dog", "sat"], ["a", "zebra"]]
NEW_EDGES = [[(0, 1), (1, 2)], [(0, 1)]]


def chain(model: Any) -> Made:
    """Fitted to sequences."""
    return model.fit(WORDS, TAGS), _labels


_FROM_TEXT = 'word; cluster(word)[-1..0]; variety(word, 1..2); dictionary(word, "names")'


def beside(model: Any) -> Made:
    """Fitted to sequences and what stands beside them: raw text and a dictionary."""
    lists = {"names": ["the cat", "dog"]}
    return model.fit(WORDS, TAGS, unlabelled=NEW_WORDS, dictionaries=lists), _labels


def attributes(model: Any) -> Made:
    """Fitted to sequences whose positions have named attributes."""
    X = [[{w: 1.0, "length": float(len(w))} for w in sample] for sample in WORDS]
    return model.fit(X, TAGS), _labels


def graph(model: Any, edge_types: Any = None) -> Made:
    """Fitted to trees, or graphs."""
    return model.fit(WORDS, TAGS, edges=EDGES, edge_types=edge_types), _labels


def new_samples(model: Any) -> tuple[Any, dict[str, Any]]:
    """Samples that such a model takes, and what comes with them."""
    if model.encoder_.kind == "attributes":
        return [[{w: 1.0, "length": 2.0} for w in sample] for sample in NEW_WORDS], {}
    if model.structure == "chain":
        return NEW_WORDS, {}
    types = {"edge_types": [["left"] * len(e) for e in NEW_EDGES]} if model.edge_types_ else {}
    return NEW_WORDS, {"edges": NEW_EDGES, **types}


def _labels(model: Any) -> Any:
    X, more = new_samples(model)
    return model.predict(X, **more)


# ------------------------------------------------------------------------- regression

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(60, 3))
Y = np.sin(6 * X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=60)
LABELS = np.where(Y.mean() < Y, "high", "low")
S = knn_graph(X[:, :2], 4)


def gcrf(model: Any, graph: Any = S) -> Made:
    """A regression with a standard deviation."""
    return model.fit(X, Y, graph=graph), lambda m: m.predict(X, graph=graph, return_std=True)


def glacer(model: Any, y: Any = Y, graph: Any = S) -> Made:
    """A mixture of regressions."""
    return model.fit(X, y, graph=graph), lambda m: m.predict(X, graph=graph, return_std=True)


def lasso(**options: Any) -> Made:
    """A model at each node."""
    model = NetworkLasso(max_iter=20, **options).fit(X, Y, graph=S, coords=X[:, :2])
    return model, lambda m: m.predict(X[:9] + 0.01, coords=X[:9, :2] + 0.01)


TABLE = {
    "size": X[:, 0], "kind": ["flat", "house", ""] * 20, "city": [f"c{i % 12}" for i in range(60)],
    "sold": [f"{1 + i % 28}.3.2020" for i in range(60)], "lat": 50 + X[:, 1], "lon": 8 + X[:, 2],
    "price": Y,
}  # fmt: skip


def tabled(model: Any, graph: Any = None) -> Made:
    """A regression of a plain table."""
    fitted = model.fit(TABLE, graph=graph)
    return fitted, lambda m: m.predict(TABLE, graph=graph, return_std=True)


# ------------------------------------------------------------------------- experts

GOLD = [["a", "b", "a"], ["b", "a", "c"], ["b", "b", "a"], ["a", "c", "b"]] * 3
SAID: list[list[list[Any]]] = [
    [["a", "b", "b"], ["b", "b", "c"], ["b", "b", "a"], ["a", "a", "b"]] * 3,
    [["b", "b", "a"], ["b", "a", "a"], ["a", "b", "a"], ["a", "c", "c"]] * 3,
    [["a", "a", "a"], ["b", None, "c"], ["b", "b", "b"], ["b", "c", "b"]] * 3,
]
AWAKE = [*SAID[:2], [[y or "a" for y in s] for s in SAID[2]]]
RAGGED = [[s[: 2 + (i + j) % 2] for i, s in enumerate(column)] for j, column in enumerate(AWAKE)]
SCHEME_GOLD = [["B", "I", "O"], ["O", "B", "I"]] * 4
SCHEME_SAID = [[["O", "I", "O"], ["O", "O", "I"]] * 4, [["B", "I", "O"], ["O", "I", "I"]] * 4]

LISTED = [
    [[(0, 2, "X")], [(1, 4, "Y"), (2, 3, "X")]],
    [[], [(1, 4, "Y")]],
    [[(0, 2, "X"), (0, 2, "Z")], None],
]
LISTED_GOLD = [[(0, 2, "X")], [(1, 4, "Y")]]


def votes(model: Any, said: Any = SAID, gold: Any = GOLD) -> Made:
    """Fitted to what experts said."""
    return model.fit(said, gold), lambda m: m.predict(said)


def with_scores() -> Any:
    """What experts said, with a share of each label."""
    said = as_outputs(AWAKE)
    shares = np.random.default_rng(1).dirichlet(np.ones(len(said.labels)), said.codes.shape)
    return replace(said, scores=shares.astype(np.float32))


# ------------------------------------------------------------------------- tracking

FILM = simulate_cells(12, 5, seed=0)


def tracked(model: Any) -> Made:
    """Fitted to the first frames of a film."""
    return model.fit(FILM[:3]), lambda m: m.predict(FILM[3:]).links


def transferred() -> Made:
    """One model for two data sets."""
    data = {
        "a": Corpus.from_columns({"word": WORDS}, TAGS),
        "b": Corpus.from_columns({"word": WORDS[:2]}, TAGS[:2]),
    }
    model = TransferLearner(MaxMargin("word", l2=0.1), target="b").fit(data)
    return model, lambda m: (m.predict(NEW_WORDS), m.predict(NEW_WORDS, "a"))


EVERY: dict[str, Callable[[], Made]] = {
    "ChainCRF": lambda: chain(ChainCRF("word", max_passes=2, random_state=0)),
    "ChainCRF, rich edges": lambda: chain(
        ChainCRF("word; word[-1]", rich_edges="both", max_passes=2, random_state=0)
    ),
    "ChainCRF, unlabelled text": lambda: beside(ChainCRF(_FROM_TEXT, max_passes=2, random_state=0)),
    "ChainCRF, attributes": lambda: attributes(ChainCRF(max_passes=2, random_state=0)),
    "ChainPerceptron": lambda: chain(ChainPerceptron("word", max_passes=2, random_state=0)),
    "TreeCRF": lambda: graph(TreeCRF("word", max_passes=2, random_state=0)),
    "TreePerceptron": lambda: graph(TreePerceptron("word", max_passes=2, random_state=0)),
    "GraphCRF": lambda: graph(GraphCRF("word", max_passes=2, random_state=0)),
    "GraphCRF, edge types": lambda: graph(
        GraphCRF("word", max_passes=2, random_state=0),
        [["left" if i % 2 else "right" for i in range(len(e))] for e in EDGES],
    ),
    "GraphPerceptron": lambda: graph(GraphPerceptron("word", max_passes=2, random_state=0)),
    "MaxMargin": lambda: chain(MaxMargin("word", max_passes=3, random_state=0)),
    "GCRF": lambda: gcrf(GCRF(LinearRegression())),
    "GCRF, places": lambda: gcrf(GCRF(Ridge(), graph=KNN(n_neighbors=4, columns=[0, 1])), None),
    "GCRF, as published": lambda: gcrf(GCRF(LinearRegression(), observed=False)),
    "GCRF, cv, two graphs": lambda: gcrf(
        GCRF([Ridge(), DecisionTreeRegressor(max_depth=3, random_state=0)], base_predictions="cv"),
        [S, Radius(0.2)],
    ),
    "GCRF, histogram trees": lambda: gcrf(
        GCRF(
            HistGradientBoostingRegressor(
                max_iter=4,
                max_leaf_nodes=6,
                min_samples_leaf=4,
                categorical_features=[2],
                early_stopping=True,
                random_state=0,
            )
        )
    ),
    "GCRF, encoders and neighbours": lambda: gcrf(
        GCRF(
            [
                make_pipeline(
                    SimpleImputer(add_indicator=True),
                    OneHotEncoder(drop="first", handle_unknown="ignore"),
                    Ridge(),
                ),
                make_pipeline(OrdinalEncoder(), LinearRegression()),
                KNeighborsRegressor(3, weights="distance"),
            ],
            base_predictions="in-sample",
        )
    ),
    "GCRF, precomputed": lambda: (
        GCRF("precomputed").fit(Y + 0.1, Y, graph=S),
        lambda m: m.predict(Y[:60], graph=S),
    ),
    "GLACER": lambda: glacer(GLACER(3, random_state=0, max_swaps=1)),
    "GLACER, linear": lambda: glacer(
        GLACER(3, base=LinearRegression(), graph=Full(0.5), random_state=0, max_swaps=1), graph=None
    ),
    "GLACER, classes": lambda: glacer(
        GLACER(3, component=LogisticRegression(), random_state=0, max_swaps=1), LABELS, None
    ),
    "TableRegressor": lambda: tabled(
        TableRegressor("price", base="linear", n_neighbors=4, random_state=0)
    ),
    "TableRegressor, areas, glacer": lambda: tabled(
        TableRegressor(
            "price",
            model=GLACER(3, base=LinearRegression(), max_swaps=1, random_state=0),
            random_state=0,
        ),
        S,
    ),
    "NetworkLasso": lasso,
    "NetworkLasso, columns": lambda: lasso(features=(0, 2), convex=False, weight="inverse"),
    "WeightedMajority": lambda: votes(WeightedMajority()),
    "WeightedMajority, by label": lambda: votes(WeightedMajority(tie="label", short=2)),
    "WeightedMajority, drawn": lambda: votes(
        WeightedMajority("randomised", tie="expert", random_state=3)
    ),
    "WeightedMajority, one": lambda: votes(WeightedMajority("cross-validation", beta=0.5)),
    "WeightedMajority, automaton": lambda: votes(
        WeightedMajority(automaton=PathAutomaton.restricted(3, 3, np.tri(3, dtype=bool))), AWAKE
    ),
    "WeightedMajority, family": lambda: votes(
        WeightedMajority(automaton=PathFamily.switching(3, 1), start="paths"), AWAKE
    ),
    "WeightedMajority, some rounds": lambda: votes(
        WeightedMajority("randomised", collection=[[1, 3]], random_state=3)
    ),
    "FollowPerturbedLeader, by expert": lambda: votes(
        FollowPerturbedLeader(tie="expert", random_state=0)
    ),
    "FollowPerturbedLeader": lambda: votes(FollowPerturbedLeader(random_state=0)),
    "FollowPerturbedLeader, automaton": lambda: votes(
        FollowPerturbedLeader(automaton=PathAutomaton.ngram(3, 3, 2), random_state=0), AWAKE
    ),
    "FollowPerturbedLeader, family": lambda: votes(
        FollowPerturbedLeader(automaton=PathFamily.switching(3, 1), random_state=0), AWAKE
    ),
    "FollowPerturbedLeader, one path of a family": lambda: votes(
        FollowPerturbedLeader(
            "cross-validation", automaton=PathFamily.staying(3, 2), random_state=0
        ),
        AWAKE,
    ),
    "ESPBoost": lambda: votes(ESPBoost(n_rounds=5)),
    "ESPBoost, family": lambda: votes(
        ESPBoost(n_rounds=5, automaton=PathFamily.switching(3, 1), start="nothing"), AWAKE
    ),
    "ESPBoost, automaton": lambda: votes(
        ESPBoost(n_rounds=5, automaton=PathAutomaton.ngram(3, 3, 2)), AWAKE
    ),
    "ESPBoost, by label": lambda: votes(ESPBoost(n_rounds=5, tie="label")),
    "ESPBoost, scheme": lambda: votes(
        ESPBoost(scheme="BIO", scoring="product"), SCHEME_SAID, SCHEME_GOLD
    ),
    "ESPBoost, real": lambda: votes(ESPBoost(base="real", n_rounds=4), with_scores()),
    "ForwardStepwise": lambda: votes(ForwardStepwise(n_rounds=7, random_state=0)),
    "ForwardStepwise, pairs": lambda: votes(
        ForwardStepwise(n_rounds=3, pairs=True, random_state=0)
    ),
    "BestExpert": lambda: votes(BestExpert(criterion="exact")),
    "MajorityVote": lambda: votes(MajorityVote(order="accuracy", short=2)),
    "Rover": lambda: votes(Rover()),
    "Rover, scores": lambda: votes(Rover(confidence="scores", pool="max"), with_scores()),
    "Rerank": lambda: votes(Rerank()),
    "Rerank, samples": lambda: votes(Rerank(unit="sample", weights="uniform")),
    "LogLinearVote": lambda: votes(LogLinearVote()),
    "SpanVote": lambda: votes(SpanVote(), SCHEME_SAID, SCHEME_GOLD),
    "SpanVote, lists": lambda: votes(SpanVote(k=2), LISTED, None),
    "SpanCombiner": lambda: votes(SpanCombiner(), SCHEME_SAID, SCHEME_GOLD),
    "SpanCombiner, lists": lambda: votes(SpanCombiner(), LISTED, LISTED_GOLD),
    "SpanCombiner, untaught": lambda: votes(SpanCombiner(scheme="BIO"), SCHEME_SAID, None),
    "Stacking": lambda: votes(Stacking(scheme="BIO"), SCHEME_SAID, SCHEME_GOLD),
    "Stacking, perceptron": lambda: votes(
        Stacking(ChainPerceptron(max_passes=2, random_state=0), window=0)
    ),
    "Aligned": lambda: votes(Aligned(WeightedMajority()), RAGGED),
    "Aligned, stacking": lambda: votes(
        Aligned(Stacking(MaxMargin(max_passes=2, random_state=0)), order="given"), RAGGED
    ),
    "Consensus": lambda: votes(Consensus(), RAGGED),
    "AnnotatorModel": lambda: votes(AnnotatorModel("dawid-skene")),
    "AnnotatorModel, chain": lambda: votes(AnnotatorModel(chain=True)),
    "GuardedVote": lambda: votes(GuardedVote()),
    "Committee": lambda: votes(Committee([MajorityVote(), LogLinearVote()])),
    "AutoCombiner": lambda: votes(AutoCombiner(["log-linear"], method="log-linear")),
    "AutoCombiner, words": lambda: votes(AutoCombiner(["rover"]), RAGGED),
    "AutoCombiner, spans": lambda: votes(AutoCombiner(), LISTED, LISTED_GOLD),
    "AutoCombiner, untaught": lambda: votes(AutoCombiner(), SCHEME_SAID, None),
    "TrackingModel": lambda: tracked(TrackingModel(knots=0)),
    "NearestNeighbour": lambda: tracked(NearestNeighbour()),
    "GraphMatching": lambda: tracked(GraphMatching(tolerance=0.4)),
    "FlowTracker": lambda: tracked(FlowTracker(max_distance=12.0)),
    "HandSet": lambda: tracked(HandSet(weights={"move": {"distance": -4.0, "bias": 1.0}})),
    "HandSet, default": lambda: tracked(HandSet()),
    "LocalClassifiers": lambda: tracked(LocalClassifiers(n_trees=3)),
    "TransferLearner": transferred,
}
"""Name to a function that fits the model and gives it with a function that predicts."""
