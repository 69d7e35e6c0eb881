"""Is StructReg better than the baseline, or was it luck? One test for each pair of methods.

The interval of the difference is always that of a paired bootstrap over sequences. The p-value is
the paper's t-test on the accuracies of the sequences where accuracy is the measure; for F1, where
the paper gives none, it is that of the bootstrap.

Several runs of one method count as one system: the sequence is the unit that is drawn, and what all
runs predicted on it stays together. (The runs of a sequence are put one after the other; where
spans are counted each is followed by an ``O``, so that no span runs on into the next. Where two
methods have different numbers of runs, those of each are repeated equally often, until there are
as many.)
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm
from typing import Any

import numpy as np

from studies.packing import unpack
from studies.structure_regularisation.study import Result, TaskStudy
from trellis.errors import DataError
from trellis.evaluation import paired_bootstrap, paired_t_test
from trellis.evaluation.accuracy import sample_counts

__all__ = ["Verdict", "compare"]

_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Verdict:
    """Outcome for a method against a baseline, on the test data."""

    task: str
    method: str
    baseline: str
    score: float  # means over runs, between 0 and 1
    baseline_score: float
    interval: tuple[float, float]  # 95 % interval of the difference
    p_value: float  # two-sided
    test: str  # the test that gave it
    n: int  # sequences

    @property
    def outcome(self) -> str:
        """By the interval: "higher", "lower", or "open" where it contains zero."""
        low, high = self.interval
        return "higher" if low > 0 else "lower" if high < 0 else "open"

    @property
    def gain(self) -> float:
        """Score of the method minus that of the baseline."""
        return self.score - self.baseline_score


def compare(study: TaskStudy, method: str, baseline: str) -> Verdict:
    """Test a method against a baseline, both as chosen on development data."""
    a, b = study.final(method), study.final(baseline)
    lengths, scheme = study.facts["lengths"], study.facts["scheme"]
    gold = unpack(study.facts["gold"], lengths)
    runs = lcm(len(a.runs), len(b.runs))
    between = [] if scheme is None else ["O"]
    systems = (
        [gold] * runs,
        *(_predictions(r, lengths) * (runs // len(r.runs)) for r in (a, b)),
    )
    truth, of_a, of_b = (_joined(system, between) for system in systems)
    drawn = paired_bootstrap(
        truth,
        of_a,
        of_b,
        "accuracy" if scheme is None else "f1",
        scheme=scheme or "BIO",
        n_resamples=study.protocol.resamples,
        confidence=_CONFIDENCE,
    )
    assert drawn.interval is not None
    p_value, test = drawn.p_value, drawn.test
    if scheme is None:
        shares = [_accuracies(gold, r, lengths) for r in (a, b)]
        try:
            outcome = paired_t_test(*shares, confidence=_CONFIDENCE)
            p_value, test = outcome.p_value, outcome.test
        except DataError:
            pass  # all differences are equal, t is not defined: the bootstrap's value stands
    return Verdict(
        study.task, method, baseline, a.mean("test"), b.mean("test"), drawn.interval, p_value,
        test, len(lengths),
    )  # fmt: skip


def _predictions(result: Result, lengths: list[int]) -> list[list[list[str]]]:
    return [unpack(run["predictions"], lengths) for run in result.runs]


def _joined(runs: list[list[list[str]]], between: list[str]) -> list[list[str]]:
    """The runs of each sequence, one after the other."""
    return [
        [label for labels in of_sequence for label in (*labels, *between)]
        for of_sequence in zip(*runs, strict=True)
    ]


def _accuracies(gold: Any, result: Result, lengths: list[int]) -> Any:
    """Accuracy on each sequence, mean over runs."""
    counts = [sample_counts(gold, predicted) for predicted in _predictions(result, lengths)]
    return np.mean([c[:, 0] / np.maximum(c[:, 1], 1) for c in counts], axis=0)
