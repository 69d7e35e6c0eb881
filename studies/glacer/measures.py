"""Computations besides errors: refits and their time, and the coverage of intervals."""

from __future__ import annotations

import time
from typing import Any, Literal

import numpy as np
from scipy.stats import norm
from sklearn.base import clone

from studies.glacer.cases import Case
from studies.glacer.models import glacer_base, published_gcrf, published_glacer
from trellis.regression.baselines import unstructured
from trellis.regression.bases import one_thread, seeded

__all__ = ["CALIBRATED", "LEVEL", "PREDICTIONS", "run_calibration", "run_refits"]

LEVEL = 0.9
CALIBRATED = ("MLR", "SVM", "RF", "LSB")
"""Base models of the Gaussian CRFs whose intervals are looked at."""
PREDICTIONS: tuple[Literal["in-sample", "cv"], ...] = ("in-sample", "cv")
"""What their parameters are learnt from."""


def run_refits(case: Case, max_swaps: int | None) -> dict[str, Any]:
    """Refits and seconds of the start and of every swap of GLACER, M = 10 and η = 0.3."""
    train, _ = case.pair(0)
    with one_thread():
        started = time.perf_counter()
        model = published_glacer(glacer_base({}), 0, max_swaps=max_swaps)
        model.fit(train.X, train.y, graph=train.graph)
    return {
        "kind": "refits",
        "seconds": time.perf_counter() - started,
        "refits": [record.n_refits for record in model.history_],
        "pairs": [record.n_pairs for record in model.history_],
        "swap_seconds": [record.seconds for record in model.history_],
    }


def run_calibration(case: Case, repetition: int) -> dict[str, Any]:
    """Share of test targets inside 90 % intervals, their mean width and errors, by model.

    The base models themselves have errors only.
    """
    train, test = case.pair(repetition)
    factor = float(norm.ppf((1 + LEVEL) / 2))
    coverage: dict[str, float] = {}
    width: dict[str, float] = {}
    mse: dict[str, float] = {}
    gamma: dict[str, float] = {}

    def note(name: str, model: Any) -> None:
        mean, std = model.predict(test.X, graph=test.graph, return_std=True)
        coverage[name] = float(np.mean(np.abs(test.y - mean) <= factor * std))
        width[name] = float(np.mean(2 * factor * std))
        mse[name] = float(np.mean((mean - test.y) ** 2))

    with one_thread():
        bases = unstructured()
        for name in CALIBRATED:
            for how in PREDICTIONS:
                base = seeded(clone(bases[name]), repetition)
                model = published_gcrf(base, predictions=how)
                note(f"S-{name}, {how}", model.fit(train.X, train.y, graph=train.graph))
                gamma[f"S-{name}, {how}"] = float(model.beta_ / model.alpha_)
            plain = seeded(clone(bases[name]), repetition).fit(train.X, train.y)
            mse[name] = float(np.mean((plain.predict(test.X) - test.y) ** 2))
        glacer = published_glacer(glacer_base({}), repetition, max_swaps=0)
        note("GLACER before swaps", glacer.fit(train.X, train.y, graph=train.graph))
    return {
        "kind": "calibration",
        "coverage": coverage,
        "width": width,
        "mse": mse,
        "gamma": gamma,
    }
