"""Data, sizes and single computations of the study.

A *case* is a source of (training, test) pairs, one a repetition. What the paper leaves open:

- The generator's choices are those of ``GENERATOR``. All repetitions share one polynomial, since
  the printed intervals are too tight for ten different ones.
- A fraction of the training data is a random subset of its nodes with the edges among them; the
  test graph is always whole.
- Sacramento: 785 random houses to train and 200 to test, a graph for each, without edges between.
- Medicare: half and half, five nearest by the Manhattan distance of standardised attributes.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from studies.datasets import load_medicare, load_sacramento
from studies.folder import Call
from trellis.datasets import synthetic_graph_regression
from trellis.regression import GLACER, KNN, Full, RegressionData, least_squares_boosting
from trellis.regression.baselines import baselines, unstructured
from trellis.regression.bases import one_thread

__all__ = ["GENERATOR", "SIZES", "Case", "Size", "baseline_calls", "glacer_calls", "glacer_name"]

GENERATOR: Mapping[str, Any] = {
    "degree": 3,
    "interactions": True,
    "coefficients": (0.0, 0.3),
    "noise_variance": 1.0,
    "mean_degree": 10.0,
    "normalise": True,
    "coefficient_state": 0,
}

SACRAMENTO_TRAIN = 785


@dataclass(frozen=True)
class Size:
    """How much a protocol computes."""

    n: int  # nodes of the synthetic training and test graphs
    repetitions: int  # of the tables
    few: int  # repetitions of the side experiments
    max_swaps: int | None  # of GLACER
    components: tuple[int, ...]  # M of the parameter study
    refit_nodes: int  # nodes of the timing
    refit_swaps: int | None  # and its swaps


SIZES = {
    "quick": Size(150, 2, 1, 1, (5, 10), 150, 3),
    "default": Size(1000, 10, 5, None, (5, 10, 30), 3000, 5),
    "full": Size(3000, 10, 10, None, (5, 10, 30), 3000, None),
}


@dataclass(frozen=True)
class Case:
    """A source of training and test data."""

    kind: str  # "synthetic", "sacramento" or "medicare"
    n: int = 0  # nodes of a synthetic graph; of no meaning elsewhere
    fraction: float = 1.0  # of the training data
    # Differences from ``GENERATOR``, or from the graph of a real data set
    changes: tuple[tuple[str, Any], ...] = ()

    @property
    def key(self) -> str:
        """How the log calls it."""
        parts = [self.kind]
        if self.kind == "synthetic":
            parts.append(f"n={self.n}")
        parts.append(f"fraction={self.fraction:g}")
        return " ".join(parts + [f"{name}={value}" for name, value in self.changes])

    def pair(self, repetition: int) -> tuple[RegressionData, RegressionData]:
        """Training and test data of a repetition."""
        if self.kind == "synthetic":
            options = {**GENERATOR, **dict(self.changes)}
            train, test = synthetic_graph_regression(
                self.n, self.n, random_state=1000 + repetition, **options
            )
        else:
            data, n_train = _real(self.kind)
            if dict(self.changes).get("graph") == "with target":
                columns = np.column_stack([data.X, data.y])
                data = replace(data, coords=columns / columns.std(0))
            train, test = data.split(n_train, repetition)
            build = self._build(data.metric)
            train, test = train.with_graph(build), test.with_graph(build)
        if self.fraction < 1:
            n = len(train.y)
            chosen = np.random.default_rng(repetition).permutation(n)[: round(self.fraction * n)]
            train = train.subset(np.sort(chosen))
        return train, test

    def _build(self, metric: str) -> Any:
        kind: Any = metric
        if dict(self.changes).get("graph") == "full":
            return Full(metric=kind, threshold=1e-6)
        return KNN(metric=kind)


@lru_cache(maxsize=2)
def _real(kind: str) -> tuple[RegressionData, int]:
    if kind == "sacramento":
        return load_sacramento(), SACRAMENTO_TRAIN
    data = load_medicare()
    return data, len(data.y) // 2


# ------------------------------------------------------------------------------- computations


def baseline_calls(case: Case, repetitions: int) -> list[Call]:
    """All models but GLACER."""
    return [
        Call(f"{case.key} baselines {r}", f"{case.key}, baselines, {r + 1}", run_baselines,
             (case, r))
        for r in range(repetitions)
    ]  # fmt: skip


def glacer_calls(case: Case, repetitions: int, **options: Any) -> list[Call]:
    """GLACER with some options."""
    name = glacer_name(options)
    return [
        Call(f"{case.key} {name} {r}", f"{case.key}, {name}, {r + 1}", run_glacer,
             (case, r, options))
        for r in range(repetitions)
    ]  # fmt: skip


def glacer_name(options: Mapping[str, Any]) -> str:
    """How the log calls GLACER with some options; None for «no limit» is left out."""
    told = [f"{k}={v}" for k, v in sorted(options.items()) if v is not None]
    return " ".join(["GLACER", *told])


def run_baselines(case: Case, repetition: int) -> dict[str, Any]:
    """Errors and times of the baselines."""
    train, test = case.pair(repetition)
    table = baselines(coordinates=case.kind == "sacramento", glacer=False)
    found: dict[str, Any] = {"kind": "baselines", "mse": {}, "seconds": {}}
    with one_thread():
        for name, model in table.items():
            started = time.perf_counter()
            error = np.mean((model(train, test, repetition) - test.y) ** 2)
            found["mse"][name] = float(error)
            found["seconds"][name] = time.perf_counter() - started
    return found


def run_glacer(case: Case, repetition: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """Error, time and swaps of GLACER."""
    train, test = case.pair(repetition)
    with one_thread():
        started = time.perf_counter()
        model = GLACER(**glacer_options(options), n_jobs=1, random_state=repetition)
        model.fit(train.X, train.y, graph=train.graph)
        predictions = model.predict(test.X, graph=test.graph)
    history = model.history_
    return {
        "kind": "glacer",
        "mse": float(np.mean((predictions - test.y) ** 2)),
        "seconds": time.perf_counter() - started,
        "swaps": len(history) - 1,
        "r_obj": [history[0].r_obj, history[-1].r_obj],
        "r_emp": [history[0].r_emp, history[-1].r_emp],
        "dcorr": [history[0].dcorr, history[-1].dcorr],
    }


def glacer_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of GLACER: ``trees``, ``stumps`` and ``learner`` make its base model."""
    made = {k: v for k, v in options.items() if k not in ("trees", "stumps", "learner")}
    if "learner" in options:
        made["base"] = unstructured()[options["learner"]]
    else:
        leaves = 2 if options.get("stumps", False) else 11
        made["base"] = least_squares_boosting(options.get("trees", 10), max_leaf_nodes=leaves)
    return made
