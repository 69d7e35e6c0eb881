"""The study of one task: which fits there are, and what is chosen from their results.

The fits come in stages, since a later one depends on what was chosen in an earlier:

1. ``baselines``: CRFs on whole sequences with each strength of L2 (WeightReg), L1 and group lasso;
   all perceptrons, which have nothing to choose but n′;
2. ``pieces``: CRFs on mini-samples of each n′ with the L2 strength chosen in stage 1 (StructReg);
3. ``finals``: the settings chosen, trained on all training data.

Choices are made on development scores, the mean over runs for perceptrons; of equals the first
wins, and larger pieces come first. The n′ of StructReg is one of the mini-sample sizes, even where
whole sequences score higher; the report then says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from studies.structure_regularisation.fits import Fit
from studies.structure_regularisation.protocol import Protocol

__all__ = ["METHODS", "Outcome", "Result", "TaskStudy"]

METHODS = {
    "WeightReg": "crf",
    "L1": "crf",
    "Group lasso": "crf",
    "StructReg": "crf",
    "Perceptron, last weights": "perceptron",
    "WeightAvg": "perceptron",
    "StructReg + WeightAvg": "perceptron",
}
"""The methods compared, and the model of each. The last two are averaged perceptrons."""


@dataclass(frozen=True)
class Result:
    """One setting and its runs: means over the runs, and the records they come from."""

    fit: Fit
    runs: list[dict[str, Any]]

    def values(self, name: str) -> list[float]:
        """A number of each run."""
        return [run[name] for run in self.runs]

    def mean(self, name: str) -> float:
        """Its mean."""
        return float(np.mean(self.values(name)))

    def sd(self, name: str) -> float:
        """Its standard deviation; 0 for a single run."""
        return float(np.std(self.values(name), ddof=1)) if len(self.runs) > 1 else 0.0


class TaskStudy:
    """Fits and choices of one task.

    Parameters
    ----------
    task : str
    protocol : Protocol
    facts : dict
        What the log says of the task's data.
    records : dict of str to dict
        The log's records by key.
    """

    def __init__(
        self,
        task: str,
        protocol: Protocol,
        facts: dict[str, Any],
        records: dict[str, dict[str, Any]],
    ) -> None:
        self.task, self.protocol, self.facts = task, protocol, facts
        self._records = records
        largest_first = tuple(sorted(protocol.piece_sizes, reverse=True))
        self.sizes: tuple[float | None, ...] = (None, *largest_first)

    # ------------------------------------------------------------------ the fits

    def baselines(self) -> list[Fit]:
        """Stage 1."""
        found = [self._crf(l2=x) for x in self.protocol.l2]
        found += [self._crf(l1=x) for x in self.protocol.l1]
        found += [self._crf(group_lasso=x) for x in self.protocol.group_lasso]
        found += [run for size in self.sizes for run in self._runs(self._perceptron(size))]
        return found + self._runs(self._perceptron(None, averaged=False))

    def pieces(self) -> list[Fit]:
        """Stage 2; stage 1 must be there."""
        best = self.chosen("WeightReg").fit
        return [best.with_params(piece_size=size) for size in self.sizes if size is not None]

    def finals(self) -> list[Fit]:
        """Stage 3; stages 1 and 2 must be there."""
        if not self.protocol.retrain:
            return []
        return [run for method in METHODS for run in self._runs(self._final(method))]

    def stages(self) -> tuple[Callable[[], list[Fit]], ...]:
        """Functions that give the fits of each stage, in order."""
        return (self.baselines, self.pieces, self.finals)

    def _crf(self, **penalty: float) -> Fit:
        strengths = {"l2": 0.0, "l1": 0.0, "group_lasso": 0.0} | penalty
        params = self.protocol.crf | strengths | {"piece_size": None}
        return Fit(self.task, "curves", "crf", params)

    def _perceptron(self, size: float | None, averaged: bool = True) -> Fit:
        params = self.protocol.perceptron | {"piece_size": size, "averaged": averaged}
        return Fit(self.task, "curves", "perceptron", params)

    def _runs(self, fit: Fit) -> list[Fit]:
        n = self.protocol.runs if fit.model == "perceptron" else 1
        return [Fit(fit.task, fit.part, fit.model, fit.params, run) for run in range(n)]

    def _final(self, method: str) -> Fit:
        chosen = self.chosen(method).fit
        part = "comparison" if self.protocol.retrain else "curves"
        return Fit(self.task, part, chosen.model, chosen.params)

    # ------------------------------------------------------------------ their results

    def result(self, fit: Fit) -> Result:
        """Result of a setting, all its runs."""
        return Result(fit, [self._records[run.key(self.facts)] for run in self._runs(fit)])

    def tried(self, method: str) -> list[Result]:
        """All settings of a method, in the order in which ties are decided."""
        p = self.protocol
        cut = [size for size in self.sizes if size is not None]
        fits: dict[str, Callable[[], list[Fit]]] = {
            "WeightReg": lambda: [self._crf(l2=x) for x in p.l2],
            "L1": lambda: [self._crf(l1=x) for x in p.l1],
            "Group lasso": lambda: [self._crf(group_lasso=x) for x in p.group_lasso],
            "StructReg": self.pieces,
            "Perceptron, last weights": lambda: [self._perceptron(None, averaged=False)],
            "WeightAvg": lambda: [self._perceptron(None)],
            "StructReg + WeightAvg": lambda: [self._perceptron(size) for size in cut],
        }
        return [self.result(fit) for fit in fits[method]()]

    def chosen(self, method: str) -> Result:
        """The setting with the best development score."""
        return max(self.tried(method), key=lambda result: result.mean("dev"))

    def final(self, method: str) -> Result:
        """The chosen setting as it is compared: trained on all data, if the protocol says so."""
        return self.result(self._final(method))

    def curve(self, model: str) -> list[Result]:
        """Settings by n′, smallest first and whole sequences last."""
        cut, whole = {
            "crf": ("StructReg", "WeightReg"),
            "perceptron": ("StructReg + WeightAvg", "WeightAvg"),
        }[model]
        return [*reversed(self.tried(cut)), self.chosen(whole)]

    @property
    def metric(self) -> str:
        """What scores are: "F1" or "accuracy"."""
        return "accuracy" if self.facts["scheme"] is None else "F1"


@dataclass(frozen=True)
class Outcome:
    """What a reproduction found: the studies of the tasks and the companions."""

    run: dict[str, Any]  # of the last run: protocol, tasks, versions, seconds
    studies: list[TaskStudy]  # one for each task
    # Records of stability and rate, with the ``task`` they were measured on
    companions: dict[str, dict[str, Any]]
