"""Answers of methods to samples that they have not learned from, by cross-validation.

The first S samples have right answers; sample i is in fold i mod K. For each fold a method learns
from all samples but is told nothing of those in the fold, and answers these. What was fitted is
kept, so that the method that is chosen in the end can be asked how sure it was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.experts.calibration import RawLevels
from trellis.experts.committee import Committee
from trellis.experts.questions import Questions
from trellis.progress import Task

__all__ = ["HeldOut"]


class HeldOut:
    """Methods, tried on samples that they have not learned from.

    Parameters
    ----------
    questions : Questions
        Those with right answers come first.
    n_folds : int
    new : function
        Makes a combiner of the name of a method.
    alone : tuple of str
        Methods that learn from answers without right ones, too.
    committee : tuple of str
        The methods that sit in the method "committee", in this order; they must be tried before it.
    """

    def __init__(
        self,
        questions: Questions,
        n_folds: int,
        new: Callable[[str], Any],
        alone: tuple[str, ...],
        committee: tuple[str, ...],
    ) -> None:
        self.questions, self._new = questions, new
        self._alone, self._members = alone, committee
        n = len(questions.labelled)
        self.gold = questions.gold[:n]
        """The right answers to the samples that are answered."""
        self._folds = [np.arange(k, n, n_folds) for k in range(min(n_folds, n))]
        self._outputs = [questions.take(held).outputs for held in self._folds]
        self._fitted: dict[str, list[Any]] = {}

    def answers(self, name: str, task: Task, number: int) -> list[Any]:
        """Answers of a method, the number-th of a task."""
        fitted: list[Any] = []
        for k, held in enumerate(self._folds):
            task.at(number + k / len(self._folds), f"{name}, fold {k + 1} of {len(self._folds)}")
            fitted.append(self._taught(name, k, held))
        self._fitted[name] = fitted
        return self._in_order([
            combiner.predict(outputs)
            for combiner, outputs in zip(fitted, self._outputs, strict=True)
        ])  # fmt: skip

    def raw_levels(self, name: str, kind: str, scheme: str | None, answers: list[Any]) -> RawLevels:
        """How sure a method says that it is of its answers, which are known already."""
        parts = [
            RawLevels.of(combiner, outputs, kind, scheme, [answers[i] for i in held])
            for combiner, outputs, held in zip(
                self._fitted[name], self._outputs, self._folds, strict=True
            )
        ]
        positions, spans = ([getattr(p, n) for p in parts] for n in ("positions", "spans"))
        return RawLevels(
            None if positions[0] is None else self._in_order(positions),
            None if spans[0] is None else self._in_order(spans),
        )

    def _taught(self, name: str, k: int, held: NDArray[np.int64]) -> Any:
        if name == "committee" and all(member in self._fitted for member in self._members):
            return Committee.of_fitted([self._fitted[member][k] for member in self._members])
        rest = self.questions.without(held, everything=name in self._alone)
        return self._new(name).fit(rest.outputs, rest.gold)

    def _in_order(self, parts: list[list[Any]]) -> list[Any]:
        """What was found for the samples of each fold, in the order of the samples."""
        found: list[Any] = [None] * len(self.gold)
        for held, part in zip(self._folds, parts, strict=True):
            for i, one in zip(held.tolist(), part, strict=True):
                found[i] = one
        return found
