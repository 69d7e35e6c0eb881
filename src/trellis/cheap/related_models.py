r"""Data sets that share a model in part, their losses, and what is guessed at in them.

The losses of a domain in (1.9) (:mod:`trellis.cheap.transfer`) are those of what is annotated and,
where the model guesses at the rest (``TrackingModel(prior="flow")``), of its guesses:

.. math:: L_d(w) = \sum_{n \text{ annotated}} \ell(x_n, y^*_n; w)
    + \alpha_d \sum_{n \text{ guessed}} \ell(x_n, \hat y_n; w).

They weigh the less the more is annotated here or, less so, in the other domains
(:mod:`trellis.tracking.guesses`). A second model learns from the guesses of the first. Guesses at a
target are left out where a model of the other domains outdoes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from trellis.arrays import Float64s, Int64s
from trellis.cheap.training import objective_of, train_domains
from trellis.problems.partial import PartialLoss
from trellis.tracking.guesses import share_of_regulariser

__all__ = ["ROUGH_TOL", "RelatedModels"]

ROUGH_TOL = 0.05
"""Precision of models that are only compared."""


@dataclass(frozen=True)
class RelatedModels:
    """Data sets that share a model in part, and what to learn them by.

    Parameters
    ----------
    problems : dict of str to Problem
        The data sets.
    loss : str or PartialLoss
        Training loss.
    l2 : float
        Factor of the squared norm of the shared weights.
    bias_rho : float
        Part of rho that draws biases together.
    guesses : dict of str to Guesses, optional
        What is guessed at in those that are not annotated in full.
    outdone : bool
        Whether there would be guesses at the target, but the other data sets know better.
    """

    problems: Mapping[str, Any]
    loss: str | PartialLoss
    l2: float
    bias_rho: float = 1.0
    guesses: Mapping[str, Any] = field(default_factory=dict)
    outdone: bool = False

    def guessing(
        self, model: Any, names: Sequence[str], target: str | None, tol: float
    ) -> RelatedModels:
        """Return the same with a model's guesses at the data sets that are learned from."""
        known = {name: self.problems[name].n_known for name in names}
        guesses = {
            name: model.guesses(self.problems[name], sum(known.values()) - known[name])
            for name in names
        }
        found = {name: one for name, one in guesses.items() if one is not None}
        sources = [name for name in names if name != target and known[name]]

        def source_weights() -> Float64s:
            objectives = {name: self.objective(name) for name in sources}
            return self.learn(objectives, np.inf, max(tol, ROUGH_TOL))[1][sources[0]]

        related = [self.problems[name] for name in sources]
        mine = None if target is None else found.get(target)
        outdone = mine is not None and mine.outdone_by(related, source_weights)
        if outdone:
            found = {name: one for name, one in found.items() if name != target}
        return replace(self, guesses=found, outdone=outdone)

    def is_known(self, name: str) -> bool:
        """Whether anything of a data set is annotated or guessed."""
        return name in self.guesses or bool(self.problems[name].annotated.any())

    def learn_all(
        self, names: Sequence[str], rho: float, tol: float
    ) -> tuple[Any, dict[str, Float64s]]:
        """Learn by the losses of these data sets, guesses among them."""
        guesses = {name: self.guesses.get(name) for name in names}
        if not any(guesses.values()):
            return self.learn({name: self.objective(name) for name in names}, rho, tol)
        n_events = sum(
            self.problems[name].n_known if one is None else one.n_events
            for name, one in guesses.items()
        )
        lighter = replace(self, l2=self.l2 * share_of_regulariser(n_events))
        first = {
            name: self.objective(name) if one is None else one.by_flow(self.loss)
            for name, one in guesses.items()
        }
        _, weights = lighter.learn(first, rho, tol)
        again = {
            name: first[name] if one is None else one.by_model(weights[name], self.loss)
            for name, one in guesses.items()
        }
        return lighter.learn(again, rho, tol, weights)

    def learn(
        self,
        objectives: Mapping[str, Any],
        rho: float,
        tol: float,
        start: Mapping[str, Float64s] | None = None,
    ) -> tuple[Any, dict[str, Float64s]]:
        """Learn by the losses of all data sets, or of some: what was learned, and the weights."""
        loose = getattr(next(iter(self.problems.values())), "bias_columns", None)
        return train_domains(
            objectives, l2=self.l2, rho=rho, loose=loose, looseness=self.bias_rho, start=start,
            tol=tol,
        )  # fmt: skip

    def objective(self, name: str, samples: Int64s | None = None) -> Any:
        """The losses of a data set, or of some of its samples."""
        return objective_of(self.problems[name], self.loss, samples)
