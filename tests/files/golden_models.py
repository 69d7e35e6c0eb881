"""Recipes of the golden files of ensembles, regressions, trackers and sparse models.

``python tests/files/golden_models.py NAME…`` makes files that are missing, with their answers in
``golden/answers.json``; a file that a release has written is never made again.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from trellis import ChainCRF, Corpus, MaxMargin
from trellis.cheap import TransferLearner
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
)
from trellis.regression import (
    GCRF,
    GLACER,
    KNN,
    NetworkLasso,
    Radius,
    TableRegressor,
    least_squares_boosting,
)
from trellis.tracking import (
    FlowTracker,
    FramePair,
    GraphMatching,
    HandSet,
    LocalClassifiers,
    NearestNeighbour,
    Objects,
    PairAnnotation,
)

FOLDER = Path(__file__).parents[1] / "golden"
ANSWERS = FOLDER / "answers.json"

# Everything by formula, so that it stays what it is whatever happens to generators.
T = np.arange(40.0)
X = np.column_stack([T % 7 / 7, T % 5 / 5, np.cos(T)])
Y = X[:, 0] ** 2 + 0.5 * X[:, 1] + 0.1 * np.sin(3 * T)
CLASSES = np.where(np.median(Y) < Y, "high", "low")
RING = np.zeros((40, 40))
RING[np.arange(40), (np.arange(40) + 1) % 40] = 1
RING = RING + RING.T

GOLD = [["a", "b", "a"], ["b", "a", "c"], ["b", "b", "a"], ["a", "c", "b"]] * 2
SAID = [
    [["a", "b", "b"], ["b", "b", "c"], ["b", "b", "a"], ["a", "a", "b"]] * 2,
    [["b", "b", "a"], ["b", "a", "a"], ["a", "b", "a"], ["a", "c", "c"]] * 2,
    [["a", "a", "a"], ["b", "a", "c"], ["b", "b", "b"], ["b", "c", "b"]] * 2,
]
SPANS = [["B-X", "I-X", "O"], ["O", "B-Y", "O"], ["B-Y", "B-X", "I-X"], ["O", "O", "B-X"]] * 2
SAID_SPANS = [
    [["B-X", "I-X", "O"], ["O", "B-X", "O"], ["B-Y", "B-X", "O"], ["O", "O", "B-X"]] * 2,
    [["B-X", "O", "O"], ["O", "B-Y", "O"], ["O", "B-X", "I-X"], ["B-Y", "O", "O"]] * 2,
    [["B-X", "I-X", "O"], ["O", "B-Y", "I-Y"], ["B-Y", "B-X", "I-X"], ["O", "O", "O"]] * 2,
]
LISTED = [[[(0, 2, "X")], [(1, 4, "Y"), (2, 3, "X")]], [[], [(1, 4, "Y")]], [[(0, 2, "X")], None]]
RAGGED = [[s[: 2 + (i + j) % 2] for i, s in enumerate(column)] for j, column in enumerate(SAID)]
WORDS = [["the", "cat", "sat"], ["a", "dog", "ran", "off"]] * 2
TAGS = [["D", "N", "V"], ["D", "N", "V", "P"]] * 2


def frame(t: int) -> Objects:
    n = np.arange(12)
    place = np.column_stack([2.5 * (n % 4) + t + np.sin(n * t) / 3, 2.5 * (n // 4) + 0.5 * t])
    return Objects(n + 1, place, {"area": 50.0 + 3 * n + t, "mean_intensity": 100.0 + n})


MOVES = PairAnnotation(tuple((i, i, "move") for i in range(1, 13)))
FILM = [FramePair("film", t, frame(t), frame(t + 1), MOVES) for t in range(4)]


def regression(model: Any, y: Any = Y, graph: Any = RING) -> tuple[Any, Callable[[Any], Any]]:
    fitted = model.fit(X, y, graph=graph)
    return fitted, lambda m: m.predict(X[:7], graph=None if graph is None else graph[:7, :7])


def histogram_trees() -> Any:
    return HistGradientBoostingRegressor(
        max_iter=2, max_leaf_nodes=3, min_samples_leaf=2, random_state=0
    )


def places(model: Any) -> tuple[Any, Callable[[Any], Any]]:
    """New rows, joined to those of training."""
    fitted = model.fit(X[7:], Y[7:], coords=X[7:, :2])
    return fitted, lambda m: np.concatenate(m.predict(X[:7], coords=X[:7, :2], return_std=True))


def known_nodes(model: Any) -> tuple[Any, Callable[[Any], Any]]:
    """One graph, two thirds of whose targets are known."""
    some = np.where(np.arange(len(Y)) % 3 == 0, np.nan, Y)
    fitted = model.fit(X, some, graph=RING)
    return fitted, lambda m: m.predict(X, graph=RING, observed=some)


TABLE = {
    "size": [None if i % 9 == 4 else 50.0 + 7 * (i % 11) for i in range(40)],
    "kind": ["flat", "house", "farm", ""] * 10,
    "city": [f"c{i % 13}" for i in range(40)],
    "sold": [f"{1 + i % 28}.{1 + i % 12}.202{i % 3}" for i in range(40)],
    "lon": (8 + X[:, 1] + T / 100).tolist(),
    "lat": (50 + X[:, 0] + T / 90).tolist(),
    "price": (100 * Y).tolist(),
}


def tabled() -> tuple[Any, Callable[[Any], Any]]:
    model = TableRegressor("price", base="linear", n_neighbors=3, random_state=0).fit(TABLE)
    return model, lambda m: m.predict({name: column[5:14] for name, column in TABLE.items()})


def votes(model: Any, said: Any = SAID, gold: Any = GOLD) -> tuple[Any, Callable[[Any], Any]]:
    return model.fit(said, gold), lambda m: m.predict(said)


def listed() -> tuple[Any, Callable[[Any], Any]]:
    model = SpanCombiner().fit(LISTED, [[(0, 2, "X")], [(1, 4, "Y")]])
    return model, lambda m: [[list(span) for span in spans] for spans in m.predict(LISTED)]


def guarded() -> tuple[Any, Callable[[Any], Any]]:
    """One good expert of four: the guard leaves the vote."""
    truth = [["abc"[(i * i + 3 * k) % 3] for k in range(6)] for i in range(60)]
    said = [
        [
            [y if (7 * i + 5 * k + 3 * j) % 11 < right else "abc"[(i + j * k) % 3]
             for k, y in enumerate(sample)]
            for i, sample in enumerate(truth)
        ]
        for j, right in enumerate((10, 9, 3, 2, 2))
    ]  # fmt: skip
    return GuardedVote().fit(said), lambda m: [m.chosen_, m.predict([s[:9] for s in said])]


def tracked(model: Any) -> tuple[Any, Callable[[Any], Any]]:
    return model.fit(FILM[:3]), lambda m: [
        [link.frame, link.source_id, link.target_id, link.kind]
        for link in m.predict(FILM[3:]).links
    ]


def transferred() -> tuple[Any, Callable[[Any], Any]]:
    data = {
        "a": Corpus.from_columns({"word": WORDS}, TAGS),
        "b": Corpus.from_columns({"word": WORDS[:2]}, TAGS[:2]),
    }
    model = TransferLearner(MaxMargin("word", l2=0.1), target="b").fit(data)
    return model, lambda m: [m.predict(WORDS), m.predict(WORDS, "a")]


def sparse() -> tuple[Any, Callable[[Any], Any]]:
    words = [[f"w{(7 * i + j) % 90}" for j in range(5)] for i in range(40)]
    tags = [["X" if int(w[1:]) % 9 else "Y" for w in s] for s in words]
    model = ChainCRF("word[-1..1]", l1=0.3, l2=0.0, solver="lbfgs", max_passes=30, random_state=0)
    return model.fit(words, tags), lambda m: m.predict(words[:9])


def packed() -> tuple[Any, Callable[[Any], Any]]:
    """A file with arrays that are narrow, by their gaps, and sparse."""
    words = [[f"w{(7 * i + 31 * j * j) % 300}" for j in range(5)] for i in range(90)]
    tags = [["UVWXYZ"[int(w[1:]) % 6] for w in s] for s in words]
    model = ChainCRF("word[-1..1]; word[-1] & word", l1=0.2, l2=0.0, max_passes=5, random_state=0)
    return model.fit(words, tags).compressed(keep=1), lambda m: m.predict(words[:9])


RECIPES: dict[str, Callable[[], tuple[Any, Callable[[Any], Any]]]] = {
    "chain_crf_v2_sparse": sparse,
    "chain_crf_v3_packed": packed,
    "gcrf_v1": lambda: regression(GCRF(make_pipeline(StandardScaler(), LinearRegression()))),
    "gcrf_v1_trees": lambda: regression(GCRF(least_squares_boosting(2, 0, max_leaf_nodes=4))),
    "gcrf_v2_places": lambda: places(
        GCRF([Ridge(), histogram_trees()], graph=[KNN(2), Radius(0.5)], random_state=0)
    ),
    "gcrf_v2_known": lambda: known_nodes(GCRF(Ridge(), random_state=0)),
    "glacer_v2_places": lambda: places(
        GLACER(2, 0.5, LinearRegression(), graph=KNN(2), random_state=0, max_swaps=1)
    ),
    "glacer_v1": lambda: regression(
        GLACER(2, 0.5, LinearRegression(), random_state=0, max_swaps=1)
    ),
    "glacer_v1_classes": lambda: regression(
        GLACER(2, 0.5, component=LogisticRegression(), random_state=0, max_swaps=1), CLASSES, None
    ),
    "network_lasso_v1": lambda: (
        NetworkLasso(max_iter=20).fit(X, Y, graph=RING, coords=X[:, :2]),
        lambda m: m.predict(X[:5], coords=X[:5, :2]),
    ),
    "table_regressor_v1": tabled,
    "weighted_majority_v1": lambda: votes(WeightedMajority(tie="label", short=1)),
    "weighted_majority_v1_paths": lambda: votes(
        WeightedMajority(automaton=PathAutomaton.restricted(3, 3, np.tri(3, dtype=bool)))
    ),
    "weighted_majority_v2_tied": lambda: votes(WeightedMajority(tie="label")),
    "weighted_majority_v2_family": lambda: votes(
        WeightedMajority("randomised", automaton=PathFamily.switching(3, 1), random_state=0)
    ),
    "follow_perturbed_leader_v2_tied": lambda: votes(
        FollowPerturbedLeader(tie="expert", random_state=0)
    ),
    "follow_perturbed_leader_v1": lambda: votes(FollowPerturbedLeader(random_state=0)),
    "follow_perturbed_leader_v3_family": lambda: votes(
        FollowPerturbedLeader(automaton=PathFamily.switching(3, 1), epsilon=9.0, random_state=0)
    ),
    "espboost_v1": lambda: votes(ESPBoost(n_rounds=4)),
    "espboost_v2_family": lambda: votes(
        ESPBoost(n_rounds=4, automaton=PathFamily.switching(3, 1), start="nothing")
    ),
    "forward_stepwise_v1": lambda: votes(ForwardStepwise(n_rounds=5, random_state=0)),
    "best_expert_v1": lambda: votes(BestExpert()),
    "majority_vote_v1": lambda: votes(MajorityVote(order="accuracy")),
    "rover_v1": lambda: votes(Rover()),
    "rerank_v1": lambda: votes(Rerank()),
    "log_linear_vote_v1": lambda: votes(LogLinearVote()),
    "stacking_v1": lambda: votes(Stacking(ChainCRF(max_passes=2, random_state=0), window=0)),
    "aligned_v1": lambda: votes(Aligned(MajorityVote()), RAGGED),
    "annotator_model_v1": lambda: votes(AnnotatorModel("dawid-skene", chain=True)),
    "guarded_vote_v1": guarded,
    "span_vote_v1": lambda: votes(SpanVote(), SAID_SPANS, SPANS),
    "span_combiner_v1": lambda: votes(SpanCombiner(), SAID_SPANS, SPANS),
    "span_combiner_v1_lists": listed,
    "consensus_v1": lambda: votes(Consensus(), RAGGED),
    "committee_v1": lambda: votes(Committee([MajorityVote(), BestExpert()])),
    "auto_combiner_v1": lambda: votes(AutoCombiner(["log-linear"], method="log-linear")),
    "transfer_v1": transferred,
    "nearest_neighbour_v1": lambda: tracked(NearestNeighbour()),
    "graph_matching_v1": lambda: tracked(GraphMatching(tolerance=0.4)),
    "flow_tracker_v1": lambda: tracked(FlowTracker(max_distance=8.0)),
    "hand_set_v1": lambda: tracked(HandSet(weights={"move": {"distance": -4.0, "bias": 1.0}})),
    "local_classifiers_v1": lambda: tracked(LocalClassifiers(n_trees=2)),
}


def plain(prediction: Any) -> Any:
    return prediction.tolist() if isinstance(prediction, np.ndarray) else prediction


def make(names: list[str]) -> None:
    answers = json.loads(ANSWERS.read_text()) if ANSWERS.exists() else {}
    for name in names or RECIPES:
        file = FOLDER / f"{name}.trellis"
        if not file.exists():
            model, predict = RECIPES[name]()
            model.save(file)
            answers[name] = plain(predict(model))
    lines = [f"{json.dumps(name)}: {json.dumps(answers[name])}" for name in sorted(answers)]
    ANSWERS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    make(sys.argv[1:])
