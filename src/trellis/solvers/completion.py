r"""Max-margin training by Frank–Wolfe over completed labels.

Losses of label sets are differences of convex functions (:mod:`trellis.problems.partial`),

.. math:: J(w) = \lambda \lVert w\rVert^2
    + \sum_i c_i \Bigl(\max_y [\Delta(A_i, y) + s(x_i, y)] - \max_{y \in A_i} s(x_i, y)\Bigr) .

A round of the concave-convex procedure replaces the reward by its tangent at the present weights:
the labels are *completed* by the best labelling :math:`g_i` that what is known allows. What is left
is a structured hinge loss with :math:`g_i` rewarded, convex, which block-coordinate Frank–Wolfe
minimises (:mod:`trellis.solvers.frank_wolfe`). J never rises: it touches the surrogate at the
present weights and lies below it elsewhere, and a round that finds no better point changes nothing.

The dual point is kept from round to round: its losses do not depend on what is rewarded, and its
weights only move by :math:`\sum_i c_i (\Phi(g_i') - \Phi(g_i)) / 2\lambda`. The first rounds are
solved to a coarse gap, since their surrogate is soon to be replaced. With complete labels there is
one round, and its gap is that of J.

Where a round ends depends on where the first one starts (:mod:`trellis.solvers.start`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s
from trellis.domains import generator, instance, number
from trellis.errors import DataError
from trellis.features.encoded import subset
from trellis.files.stored import check_range
from trellis.problems import HingeDual, HingeLoss, LabelProblem, PartialObjective, Weights
from trellis.solvers.cached_planes import CachedPlanes
from trellis.solvers.frank_wolfe import MAX_COUNT, FrankWolfeRun
from trellis.solvers.passes import Learner, Progress, Watch, check_run
from trellis.solvers.start import start_weights

__all__ = ["CompletedFrankWolfe"]


# Relative gaps of the first round, and what it is multiplied by after each.
_FIRST, _FACTOR = 0.1, 0.3
# Passes between looks at the objective; most passes of a round.
_LOOK, _ROUND = 10, 100


class CompletedFrankWolfe(Learner):
    """Frank–Wolfe on hinge losses of completed labels; a learner of all samples at once.

    Parameters
    ----------
    objective : PartialObjective
        "bridge" or "latent-hinge" losses. Chains and trees without rich edges have a kernel; others
        keep labellings and use them again (:mod:`trellis.solvers.cached_planes`).
    l2 : float
        Factor of ||w||², positive.
    rng : numpy.random.Generator
        Source of the orders of visiting.

    Attributes
    ----------
    objective_value, gap : float
        J of the best point, and by how much the optimum may be lower: infinite unless all labels
        are known.
    n_rounds : int
        Number of rounds that were begun.

    Examples
    --------
    >>> from trellis.corpus import as_corpus
    >>> from trellis.features import AttributeEncoder
    >>> corpus = as_corpus([[["a"], ["b"]], [["b"], ["a"]]], [["X", None], ["Y", None]])
    >>> problem = LabelProblem(AttributeEncoder().learn(corpus), corpus.labels, 2)
    >>> learner = CompletedFrankWolfe(
    ...     PartialObjective(problem), l2=0.1, rng=np.random.default_rng(0)
    ... )
    >>> progress = learner.run(max_passes=500, tol=0.01)
    >>> learner.stop_reason, learner.exact
    ('eta', True)
    """

    unbounded: tuple[str, ...] = ("run_numbers",)  # nothing is known of the optimum at first

    def __init__(self, objective: PartialObjective, *, l2: float, rng: np.random.Generator) -> None:
        instance(PartialObjective).check("objective", objective)
        number(above=0).check("l2", l2)
        generator.check("rng", rng)
        problem = objective.problem
        instance(LabelProblem).check("objective.problem", problem)
        assert isinstance(problem, LabelProblem)
        if objective.loss.reward != "compatible":
            raise DataError("labels can be completed for the bridge and the latent hinge loss only")
        if not len(objective.samples):
            raise DataError("nothing is annotated: there is nothing to learn from")
        self.partial, self.problem, self.l2 = objective, problem, l2
        self.resumable = problem.is_forest and not problem.is_rich  # else there is no kernel
        self.n_rounds = 1
        weight = np.zeros(problem.n_samples)
        weight[objective.samples] = objective.sample_weight
        start = np.zeros(problem.n_weights) if objective.convex else start_weights(objective, l2)
        loss = HingeLoss(problem, self._completed(start), weight)
        self._dual = HingeDual(loss, l2) if self.resumable else CachedPlanes(loss, l2)
        self._run = FrankWolfeRun(self._dual, rng)
        self.objective_value, self._w = np.inf, start
        self._keep(start)
        self._before = self.objective_value  # J at the start of the round

    @property
    def gap(self) -> float:
        """By how much the optimum may be lower."""
        return self._run.gap if self.partial.convex else np.inf

    @property
    def exact(self) -> bool:
        """Whether all inference was exact."""
        return self._dual.exact

    def _completed(self, w: Float64s) -> NDArray[np.int64]:
        """The best labels that are compatible with what is known."""
        problem = self.problem
        if problem.complete.all():
            return problem.gold()
        labels: Any = problem.maxima(w, "compatible")
        completed: NDArray[np.int64] = labels.labels
        return completed

    def _keep(self, w: Float64s) -> None:
        """Keep a point if J is lower there."""
        value = self._run.objective
        if not self.partial.convex:
            value = self.l2 * float(w @ w) + self.partial.value(w)
        if value < self.objective_value:
            self.objective_value, self._w = value, w

    def run(self, *, max_passes: int, tol: float, watch: Watch | None = None) -> Progress:
        """Sweep until the gap (and, between rounds, J) changes by at most ``tol`` of itself."""
        check_run(max_passes, tol, watch)
        watch = Watch() if watch is None else watch
        now = watch.progress
        if now.generator:
            self._run.rng.bit_generator.state = now.generator
        self.stop_reason = "max_passes"
        try:
            while len(now.records) < max_passes:
                number, clock = len(now.records) + 1, time.perf_counter()
                in_round = self._run.passes + 1
                look = number == max_passes or in_round % _LOOK == 0
                moved = self._run.sweep(look)
                if look or not moved:
                    self._keep(self._run.weights)
                seconds = time.perf_counter() - clock
                now.generator = dict(self._run.rng.bit_generator.state)
                if watch.record(
                    self, self.objective_value, seconds, scored=look or not moved,
                    lower_bound=self._run.lower_bound if self.partial.convex else None,
                ):  # fmt: skip
                    self.stop_reason = "patience"
                    break
                precision = tol
                if not self.partial.convex:
                    precision = max(_FIRST * _FACTOR ** (self.n_rounds - 1), tol)
                solved = (look or not moved) and self._run.gap <= precision * self._run.objective
                if self.partial.convex:
                    if solved or not moved:
                        self.stop_reason = "gap" if solved else "no progress"
                        break
                elif solved or not moved or in_round == _ROUND:
                    fall = self._before - self.objective_value
                    rests = precision <= tol and fall <= tol * abs(self.objective_value)
                    if not self._next_round() and rests:
                        self.stop_reason = "eta"
                        break
                if look:
                    watch.save(now)
        except KeyboardInterrupt:
            self.stop_reason = "interrupted"
            self._run.look()
            self._keep(self._run.weights)
            raise
        return now

    def _next_round(self) -> bool:
        """Complete the labels anew, by the best weights; whether any of them changed."""
        self.n_rounds += 1
        self._before = self.objective_value
        completed = self._completed(self._w)
        changed = not np.array_equal(completed, self._dual.loss.gold)
        self._dual.reward(completed)
        self._run.begin()
        return changed

    def weights(self) -> Weights:
        """The best weights met, in float32."""
        return self.problem.weights(self._w).map(lambda a: a.astype(np.float32))

    def state(self) -> dict[str, NDArray[Any]]:
        """The dual point, the run, the labels that are rewarded, and the best point."""
        return {
            **{f"dual_{name}": array for name, array in self._dual.state().items()},
            **{f"run_{name}": array for name, array in self._run.state().items()},
            "gold": self._dual.loss.gold,
            "point": self._w,
            "round": np.array([self.n_rounds, self.objective_value, self._before]),
        }

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take up a state."""
        check_range(state["gold"], 0, self.problem.n_labels, "labels that are rewarded")
        check_range(state["round"][:1], 1, MAX_COUNT, "rounds")
        self._dual.loss = self._dual.loss.rewarding(np.array(state["gold"]))
        self._dual.restore(subset(state, "dual_"))
        self._run.restore(subset(state, "run_"))
        self._w = np.array(state["point"])
        rounds, self.objective_value, self._before = state["round"].tolist()
        self.n_rounds = int(rounds)
