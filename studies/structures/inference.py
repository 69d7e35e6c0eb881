"""Inference on grids with learned scores: exact methods, relaxations and belief propagation.

«Gap» is the method's own bound less the score it found, «below best» the best score known less
that score, both relative to the number of nodes. Belief propagation takes the most probable label
of each node; it has no bound.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from studies.experiments import Computation, Experiment, Records
from studies.folder import Call
from studies.markdown import markdown
from studies.structures.grids import (
    FEATURES,
    IMAGES,
    grid_images,
)
from trellis import GraphCRF
from trellis.datasets import grid_edges
from trellis.structures import GraphPotentials, best, elimination_cost, marginals
from trellis.structures.max_flow import unfit_for_max_flow
from trellis.structures.message_graph import labelling_scores

__all__ = ["INFERENCE"]

_COUNTS: Mapping[str, Mapping[str, int]] = {
    "quick": {"digits": 5, "textures": 1, "random": 1},
    "default": {"digits": 50, "textures": 5, "random": 10},
    "full": {"digits": 200, "textures": 20, "random": 30},
}
_TITLES = {
    "digits": "digits, 2 labels",
    "textures": "textures, 4 labels",
    "random": "random tables, 10 × 10, 3 labels",
}
_METHODS = {
    "elimination": "elimination",
    "max-flow": "max-flow",
    "ilp": "integer program",
    "lp": "linear relaxation",
    "dual": "dual decomposition",
    "bp": "belief propagation",
}
_TIME_LIMIT = 30.0  # seconds of an integer program
_BUDGET = 10_000_000  # entries of elimination's tables


def _problems(task: str, protocol: str) -> list[Any]:
    """Scores of test images by a model of tree pieces, or random ones."""
    count = _COUNTS[protocol][task]
    if task == "random":
        rng = np.random.default_rng(0)
        edges = grid_edges(10, 10)
        return [
            GraphPotentials(
                rng.normal(size=(100, 3)),
                rng.normal(size=(len(edges), 3, 3)),
                edges,
                np.array([0, 100]),
            )
            for _ in range(count)
        ]
    train, test = grid_images(task, IMAGES[protocol][task])
    model = GraphCRF(FEATURES[task], piece_size=5.5, random_state=0).fit(train)
    some = test[:count]
    return [
        p.alone(s)
        for p, _ in model.potentials(some)
        if isinstance(p, GraphPotentials)
        for s in range(len(p.offsets) - 1)
    ]


def _compare(task: str, protocol: str) -> dict[str, Any]:
    problems = _problems(task, protocol)
    usable = list(_METHODS)
    if any(elimination_cost(p)[1][0] > _BUDGET for p in problems):
        usable.remove("elimination")
    if any(unfit_for_max_flow(p) for p in problems):
        usable.remove("max-flow")
    found: dict[str, list[tuple[float, float, bool, float]]] = {m: [] for m in usable}
    for p in problems:
        for method in usable:
            started = time.process_time()
            if method == "bp":
                labels = marginals(p, method="bp").node.argmax(axis=1).astype(np.int32)
                score, bound, exact = float(labelling_scores(p, labels)[0]), np.inf, False
            else:
                limit = _TIME_LIMIT if method == "ilp" else None
                decoded = best(p, method=method, time_limit=limit)
                score, bound = float(decoded.scores[0]), float(decoded.bounds[0])
                exact = bool(decoded.exact[0])
            seconds = time.process_time() - started
            found[method].append((score, bound, exact, seconds))
    known = [max(runs[i][0] for runs in found.values()) for i in range(len(problems))]
    n = len(problems[0].node)
    result: dict[str, Any] = {"n_problems": len(problems)}
    for method, runs in found.items():
        scores, bounds, proved, times = (np.array(column) for column in zip(*runs, strict=True))
        result[method] = {
            "gap": None if method == "bp" else float(np.mean(bounds - scores) / n),
            "below": float(np.mean(np.array(known) - scores) / n),
            "exact": float(proved.mean()),
            "seconds": float(times.mean()),
        }
    return result


def _calls(protocol: str) -> list[Call]:
    return [_COMPARED.call(title, protocol, task) for task, title in _TITLES.items()]


def _warm_compare(task: str, protocol: str) -> dict[str, Any]:
    # The first call of each method compiles it; with few problems that would be seen.
    square = np.array([[0, 1], [1, 2], [2, 3], [0, 3]])
    p = GraphPotentials(np.eye(4, 2), np.eye(2), square, np.array([0, 4]))
    for method in _METHODS:
        if method == "bp":
            marginals(p, method=method)
        else:
            best(p, method=method)
    return _compare(task, protocol)


_COMPARED = Computation("inference", _warm_compare)


def _report(protocol: str, records: Records) -> str:
    rows, sentences = [], []
    for task, title in _TITLES.items():
        record = _COMPARED.of(records, protocol, task)
        there = [m for m in _METHODS if m in record]
        for method in there:
            r = record[method]
            gap = "" if r["gap"] is None else f"{r['gap']:.5f}"
            exact = "" if method == "bp" else f"{100 * r['exact']:.0f} %"
            rows.append(
                [title, _METHODS[method], gap, f"{r['below']:.5f}", exact, _ms(r["seconds"])]
            )
        proving = {m: record[m]["seconds"] for m in there if record[m]["exact"] == 1}
        fastest = _METHODS[min(proving, key=lambda m: proving[m])] if proving else "none"
        graphs = "1 graph" if record["n_problems"] == 1 else f"{record['n_problems']} graphs"
        sentences.append(
            f"- {title} ({graphs}): the fastest method that proves all its labellings best is "
            f"{fastest}; the linear relaxation does so for "
            f"{100 * record['lp']['exact']:.0f} %, dual decomposition for "
            f"{100 * record['dual']['exact']:.0f} % in {_ratio(record)} of its time."
        )
    return "\n\n".join(
        [
            "Best labellings of grids by each method that can be used. «Gap» is the method's own "
            "bound less its score, «below best» the best score known less its score, both for "
            "each node; «exact» is the share of graphs whose labelling is proved best. Belief "
            "propagation takes the most probable label of each node, which need not be the best "
            "labelling, and has no bound. The random tables push in all directions; learned ones "
            "mostly make neighbours alike. CPU milliseconds a graph.",
            markdown(["grid", "method", "gap", "below best", "exact", "ms"], rows),
            "\n".join(sentences),
        ]
    )


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.1f}" if seconds < 0.1 else f"{1000 * seconds:,.0f}"


def _ratio(record: Mapping[str, Any]) -> str:
    return f"{record['dual']['seconds'] / record['lp']['seconds']:.2g}"


INFERENCE = Experiment("inference", "Exact, relaxed and approximate inference", _calls, _report)
