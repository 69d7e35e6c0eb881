"""Computations besides errors: refits and their time, and the coverage of intervals."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.base import clone

from studies.glacer.cases import Case
from trellis.regression import GCRF, GLACER
from trellis.regression.baselines import unstructured
from trellis.regression.bases import one_thread, seeded

__all__ = ["CALIBRATED", "LEVEL", "run_calibration", "run_refits"]

LEVEL = 0.9
CALIBRATED = ("MLR", "SVM", "RF", "LSB")
"""Base models of the Gaussian CRFs whose intervals are looked at."""


def run_refits(case: Case, max_swaps: int | None, n_jobs: int) -> dict[str, Any]:
    """Refits and seconds of the start and of every swap of GLACER, M = 10 and η = 0.3."""
    train, _ = case.pair(0)
    with one_thread():
        started = time.perf_counter()
        model = GLACER(10, 0.3, max_swaps=max_swaps, n_jobs=n_jobs, random_state=0)
        model.fit(train.X, train.y, graph=train.graph)
    return {
        "kind": "refits",
        "n_jobs": n_jobs,
        "seconds": time.perf_counter() - started,
        "refits": [record.n_refits for record in model.history_],
        "pairs": [record.n_pairs for record in model.history_],
        "swap_seconds": [record.seconds for record in model.history_],
    }


def run_calibration(case: Case, repetition: int) -> dict[str, Any]:
    """Share of test targets inside 90 % intervals, and their mean width, by model."""
    train, test = case.pair(repetition)
    factor = float(norm.ppf((1 + LEVEL) / 2))
    coverage: dict[str, float] = {}
    width: dict[str, float] = {}

    def note(name: str, model: Any) -> None:
        mean, std = model.predict(test.X, graph=test.graph, return_std=True)
        coverage[name] = float(np.mean(np.abs(test.y - mean) <= factor * std))
        width[name] = float(np.mean(2 * factor * std))

    with one_thread():
        bases = unstructured()
        for name in CALIBRATED:
            for how in ("in-sample", "cv"):
                base = seeded(clone(bases[name]), repetition)
                model = GCRF(base, base_predictions=how, random_state=0)
                note(f"S-{name}, {how}", model.fit(train.X, train.y, graph=train.graph))
        glacer = GLACER(n_jobs=1, max_swaps=0, random_state=repetition)
        note("GLACER before swaps", glacer.fit(train.X, train.y, graph=train.graph))
    return {"kind": "calibration", "coverage": coverage, "width": width}
