"""What the experiments share: a timed fit, what was right, and comparisons in words.

Seconds are CPU seconds of one process. A model is fitted to a few samples beforehand, so that
compiling its kernels is not counted.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from trellis.corpus import Corpus
from trellis.evaluation import paired_bootstrap

__all__ = ["compared", "fitted", "right"]

_FIRST = 20  # samples of the fit that compiles the kernels


def fitted(model: Any, train: Corpus) -> dict[str, Any]:
    """Fit a model; returns CPU seconds, and passes where there are any."""
    few = train[:_FIRST]
    first = type(model)(**(model.get_params() | {"max_passes": 1}))
    first.fit(few).predict(few[:1])
    started = time.process_time()
    model.fit(train)
    seconds = time.process_time() - started
    return {"seconds": seconds, "passes": getattr(model, "n_passes_", None)}


def right(gold: Sequence[Sequence[Any]], predicted: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Accuracy, and for each sample a word of ones (right) and zeros.

    Examples
    --------
    >>> right([["N", "V"], ["N"]], [["N", "N"], ["N"]])
    {'accuracy': 0.6666666666666666, 'right': '10 1'}
    """
    words = [
        "".join("1" if a == b else "0" for a, b in zip(x, y, strict=True))
        for x, y in zip(gold, predicted, strict=True)
    ]
    total = sum(map(len, words))
    return {"accuracy": sum(w.count("1") for w in words) / total, "right": " ".join(words)}


def compared(
    name: str, a: Mapping[str, Any], baseline: str, b: Mapping[str, Any], n_resamples: int = 2000
) -> str:
    """Sentence on the accuracies of two records of the same samples, with a paired bootstrap."""
    found_a, found_b = a["right"].split(), b["right"].split()
    gold = ["1" * len(word) for word in found_a]
    test = paired_bootstrap(
        [list(w) for w in gold], [list(w) for w in found_a], [list(w) for w in found_b],
        "accuracy", n_resamples=n_resamples,
    )  # fmt: skip
    points = 100 * test.difference
    assert test.interval is not None
    low, high = (100 * end for end in test.interval)
    verdict = "significant" if test.p_value < 0.05 else "not significant"
    p_value = "p < 0.001" if test.p_value < 0.001 else f"p = {test.p_value:.2g}"
    than = "as many right as" if points == 0 else f"{abs(points):.2f} points {_side(points)}"
    return (
        f"{name} has {100 * test.score_a:.2f} %, {than} {baseline} "
        f"(95 % interval of the difference {low:+.2f} to {high:+.2f}; {verdict}, paired bootstrap "
        f"over {test.n:,} samples, {p_value})."
    )


def _side(points: float) -> str:
    return "more than" if points > 0 else "less than"
