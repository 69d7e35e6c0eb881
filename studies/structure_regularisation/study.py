"""The study of one task: which fits there are, and what is chosen from their results.

The fits come in stages, since a later one depends on what was chosen in an earlier:

1. ``baselines``: CRFs on whole sequences with each strength of L2 (WeightReg, with rich and with
   plain edges), L1 and group lasso; all perceptrons, which have nothing to choose but n′; the
   library's default;
2. ``pieces``: CRFs on mini-samples of each n′ with the L2 strength that stage 1 chose for the same
   edges (StructReg);
3. ``extensions``: mini-samples that overlap, of each n′ and overlap; two models decoded together,
   of which the complex one is WeightReg or StructReg as chosen and the simple one has no edges
   (n′ = 1) and the L2 strength chosen for plain ones;
4. ``finals``: the settings chosen, trained on all training data, several times where they are
   compared.

Choices are made on development scores, the mean over runs for perceptrons; of equals the first
wins, and larger pieces come first. The n′ of StructReg is one of the mini-sample sizes, even where
whole sequences score higher; the report then says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from studies.structure_regularisation.fits import Fit
from studies.structure_regularisation.methods import COMPARED, DEFAULT, METHODS, Family
from studies.structure_regularisation.protocol import FIXED, Protocol

__all__ = ["Outcome", "Result", "TaskStudy"]


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
        return self._all_runs(
            "WeightReg", "WeightReg, plain", "L1", "Group lasso", "WeightAvg", "WeightAvg, plain",
            "StructReg + WeightAvg", "StructReg + WeightAvg, plain", "Perceptron, last weights",
            DEFAULT,
        )  # fmt: skip

    def pieces(self) -> list[Fit]:
        """Stage 2; stage 1 must be there."""
        return self._all_runs("StructReg", "StructReg, plain")

    def extensions(self) -> list[Fit]:
        """Stage 3; stages 1 and 2 must be there."""
        return self._all_runs("StructReg, overlap", "Two models")

    def finals(self) -> list[Fit]:
        """Stage 4; all others must be there."""
        return [fit for method in METHODS for fit in self._final_runs(method)]

    def stages(self) -> tuple[Callable[[], list[Fit]], ...]:
        """Functions that give the fits of each stage, in order."""
        return (self.baselines, self.pieces, self.extensions, self.finals)

    def _all_runs(self, *methods: str) -> list[Fit]:
        return [run for m in methods for fit in self._settings(m) for run in self._runs(fit)]

    def _runs(self, fit: Fit) -> list[Fit]:
        return self._repeated(fit, self.protocol.runs if fit.model == "perceptron" else 1)

    def _final_runs(self, method: str) -> list[Fit]:
        """The chosen setting as it is compared: on all data, if the protocol says so."""
        part = "comparison" if self.protocol.retrain else "curves"
        final = replace(self.chosen(method).fit, part=part)
        if final.model == "perceptron" or method not in COMPARED:
            return self._runs(final)
        return self._repeated(final, self.protocol.crf_runs)

    @staticmethod
    def _repeated(fit: Fit, n: int) -> list[Fit]:
        return [replace(fit, run=run) for run in range(n)]

    def _settings(self, method: str) -> list[Fit]:
        """All settings of a method, in the order in which ties are decided."""
        p = self.protocol
        cut = [size for size in self.sizes if size is not None]
        rich = "plain" not in method

        def whole() -> Fit:
            """The CRF on whole sequences with the same edges, as chosen."""
            return self.chosen("WeightReg" if rich else "WeightReg, plain").fit

        settings: dict[str, Callable[[], list[Fit]]] = {
            "WeightReg": lambda: [self._crf(rich, l2=x) for x in p.l2],
            "L1": lambda: [self._crf(rich, l1=x) for x in p.l1],
            "Group lasso": lambda: [self._crf(rich, group_lasso=x) for x in p.group_lasso],
            "StructReg": lambda: [whole().with_params(piece_size=n) for n in cut],
            "StructReg, overlap": lambda: [
                whole().with_params(piece_size=n, overlap=k)
                for k in p.overlaps
                for n in cut
                if k < n
            ],
            "Two models": self._two_models,
            "Perceptron, last weights": lambda: [self._perceptron(rich, averaged=False)],
            "WeightAvg": lambda: [self._perceptron(rich)],
            "StructReg + WeightAvg": lambda: [self._perceptron(rich, piece_size=n) for n in cut],
            DEFAULT: lambda: [Fit(self.task, "curves", "default", {})],
        }
        return settings[method.removesuffix(", plain")]()

    def _crf(self, rich: bool, **penalty: float) -> Fit:
        params = FIXED["crf"] | self.protocol.crf | {"rich_edges": rich} | penalty
        return Fit(self.task, "curves", "crf", params)

    def _perceptron(self, rich: bool, **changes: Any) -> Fit:
        params = FIXED["perceptron"] | self.protocol.perceptron | {"rich_edges": rich} | changes
        return Fit(self.task, "curves", "perceptron", params)

    def _two_models(self) -> list[Fit]:
        simple = self.chosen("WeightReg, plain").fit.with_params(piece_size=1).params
        return [
            Fit(
                self.task, "curves", "two models",
                {
                    "complex": self.chosen(method).fit.params, "simple": simple,
                    "strengths": list(self.protocol.strengths),
                },
            )
            for method in ("WeightReg", "StructReg")
        ]  # fmt: skip

    # ------------------------------------------------------------------ their results

    def tried(self, method: str) -> list[Result]:
        """All settings of a method, in the order in which ties are decided."""
        found = []
        for fit in self._settings(method):
            runs = [self._records[run.key(self.facts)] for run in self._runs(fit)]
            if fit.model == "two models":  # one training serves for all strengths
                for i, strength in enumerate(fit.params["strengths"]):
                    decoded = [run | run["decoded"][i] for run in runs]
                    found.append(Result(fit.with_params(strengths=[strength]), decoded))
            else:
                found.append(Result(fit, runs))
        return found

    def chosen(self, method: str) -> Result:
        """The setting with the best development score."""
        return max(self.tried(method), key=lambda result: result.mean("dev"))

    def final(self, method: str) -> Result:
        """The chosen setting as it is compared: trained on all data, if the protocol says so."""
        fits = self._final_runs(method)
        return Result(fits[0], [self._records[fit.key(self.facts)] for fit in fits])

    def curve(self, family: Family) -> list[Result]:
        """Settings by n′, smallest first and whole sequences last."""
        return [*reversed(self.tried(family.pieces)), self.chosen(family.whole)]

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
