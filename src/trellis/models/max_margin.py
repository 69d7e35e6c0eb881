"""Max-margin learning (structured SVMs) on chains, trees and graphs.

    minimise  Ω(w) + Σ_i c_i (max_y [Δ(A_i, y) + s(x_i, y)] − max_{y ∈ A_i} s(x_i, y)),

Ω being l2 ‖w‖² or l1 ‖w‖₁ and A_i what is known of the labels of sample i.

The scores s are those of the CRFs, and so are predictions. With one label at each position the
losses are structured hinge losses; other losses of label sets are in
:mod:`trellis.problems.partial`. Frank–Wolfe goes over completed labels
(:mod:`trellis.solvers.completion`), planes are for all losses
(:mod:`trellis.solvers.partial_margin`), and steps for pieces and streams
(:mod:`trellis.problems.hinge_steps`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from trellis.corpus import Corpus
from trellis.domains import anything, nothing, number, one_of, whole
from trellis.errors import DataError, ParametersError
from trellis.estimator import changed, fitted, parameter, renamed, warn_of_old
from trellis.models.automatic import is_dense
from trellis.models.stochastic_model import StochasticModel
from trellis.problems import (
    PARTIAL_LOSSES,
    HingeSteps,
    LabelProblem,
    PartialObjective,
    Weights,
)
from trellis.problems.costs import check_cost
from trellis.solvers.completion import CompletedFrankWolfe
from trellis.solvers.partial_margin import PlaneLearner
from trellis.solvers.passes import Learner

__all__ = ["MaxMargin"]

# Passes of "sgd", and the share of ``tol``, which is about gaps, at which they end.
_STEPS, _STEP_TOL = 12, 1e-2
# Up to so many positions the optimum, and the proof that it is one, take a second.
_LITTLE_DATA = 2000
# What "auto" stands for: passes of Frank–Wolfe with complete and with partial labels; iterations
# of the bundle method, and rounds where it is not convex.
_PASSES, _PARTIAL_PASSES, _ITERATIONS, _ROUNDS = 200, 400, 1000, 50


class MaxMargin(StochasticModel):
    """Structured support vector machine on chains, trees or graphs.

    Attributes
    ----------
    classes_ : tuple
        The labels, sorted.
    edge_types_ : tuple of str
        The types of edges, sorted; empty if they have none.
    edge_encoder_ : AttributeEncoder or None
        The features of edges, if they have any.
    weights_ : Weights
        Node weights (F, L), transitions: (L, L) for chains, else (K, L, L), and weights of rich
        edges and features of edges if there are any.
    history_ : list of PassRecord
        What each pass, iteration or round brought.
    solver_ : str
        The solver used.
    objective_, gap_ : float
        The objective that was reached, and by how much the optimum may be lower; infinite if the
        objective is not convex, since then nothing is known of its optimum.
    exact_ : bool
        Whether all inference in training was exact.
    stop_reason_ : str
        "gap", "max_passes", "max_iterations", "no progress", "patience" or "interrupted"; with
        label sets also "eta" (a round of full precision brought next to nothing) and "max_rounds".

    Examples
    --------
    >>> from trellis import MaxMargin
    >>> X = [["the", "cat", "sat"], ["the", "dog", "ran"]] * 5
    >>> y = [["D", "N", "V"], ["D", "N", "V"]] * 5
    >>> svm = MaxMargin(l2=0.1, random_state=0).fit(X, y)
    >>> svm.predict([["the", "cat", "ran"]]), svm.stop_reason_
    ([['D', 'N', 'V']], 'gap')
    """

    kind: ClassVar[str] = "max-margin"

    l2: float | str = parameter(
        one_of("auto") | number(at_least=0),
        """Factor of ‖w‖² beside the sum of the losses; C of other programs is 1 / (2 l2). "auto":
        1, or 5 where features are dense (see :mod:`trellis.models.automatic`), 0 beside ``l1``.""",
        default="auto",
    )
    l1: float = parameter(
        number(at_least=0),
        "Factor of ‖w‖₁, in place of ``l2``; by planes, for up to some hundreds of weights.",
        default=0.0,
    )
    solver: str = parameter(
        one_of("auto", "frank-wolfe", "bundle", "sgd"),
        """Block-coordinate Frank–Wolfe (fast, also with many features), the bundle method (a small
        gap in fewer iterations, all losses, L1, rich edges), or stochastic steps (fastest, without
        a gap; pieces are redrawn in each pass, and training can go on from weights). "auto": steps
        for chains of more than 2,000 positions with sparse features (see
        :mod:`trellis.models.automatic`), unless ``tol`` asks for a gap; else Frank–Wolfe where it
        has a kernel or inference is not exact, else the bundle method.""",
        default="auto",
    )
    cost: Any = parameter(
        anything,
        """Task loss, the cost of predicting a label in place of another: "hamming", 1;
        ``cost[gold, predicted]`` in the order of ``classes_``; or a function of the gold labels of
        a sample and of ``classes_`` that returns the costs (n, L), if all labels are known. What
        is right costs 0.""",
        default="hamming",
    )
    loss: str = parameter(
        one_of(*PARTIAL_LOSSES),
        """Training loss where a position has a set of labels or none (see
        :mod:`trellis.problems.partial`); all but "max" make the objective non-convex. With one
        label at each position all but "ramp" are the usual hinge loss.""",
        default="bridge",
    )
    memory: int | None = parameter(
        nothing | whole(2),
        "Most planes that the bundle method keeps; None: as many as 64 MB hold.",
        default=None,
    )
    tol = changed(
        default=0.01,
        help="""Stop when the objective is known to be within this part of itself of the optimum,
        that of a round if it is not convex.""",
        domain=number(at_least=0),
    )
    max_passes = changed(
        help="""Most passes of Frank–Wolfe ("auto": 200; with label sets 400), iterations of the
        bundle method (1000), or its rounds if the objective is not convex (50); of "sgd" 8 to 50 if
        weights are averaged, by the size of the data, else 12."""
    )
    partial = renamed("loss")

    _steps_of: ClassVar = HingeSteps

    objective_: float = fitted()
    gap_: float = fitted()
    exact_: bool = fitted()

    def _under_current_names(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters under their names of today: ``loss`` was the task loss."""
        params = dict(params)
        loss = params.get("loss", "bridge")
        if not isinstance(loss, str) or loss == "hamming":
            warn_of_old("MaxMargin: the task loss is now called cost, partial is called loss", 4)
            params["cost"] = params.pop("loss")
        return super()._under_current_names(params)

    # ---------------------------------------------------------------- training

    def _check_together(self) -> None:
        super()._check_together()
        check_cost(self.cost)
        if not isinstance(self.l2, str) and (self.l2 > 0) == (self.l1 > 0):
            raise ParametersError(
                "one of l2 and l1 must be positive and the other 0, got {l2} and {l1}",
                l2=self.l2, l1=self.l1,
            )  # fmt: skip
        if self.solver in ("frank-wolfe", "sgd") and self.l1:
            raise ParametersError("{l1} needs {solver}", l1=self.l1, solver="bundle")
        if self.solver in ("frank-wolfe", "sgd") and not self._completes:
            raise ParametersError("{loss} needs {solver}", loss=self.loss, solver="bundle")
        if self.encoding == "iobes" and not self._is_hamming:
            raise ParametersError(
                "{encoding} needs {cost}: the costs are those of the labels given",
                encoding=self.encoding, cost="hamming",
            )  # fmt: skip
        if self.warm_start and self.solver != "sgd":
            raise ParametersError(
                "{warm_start} needs {solver}: others start from where their gap is known",
                warm_start=self.warm_start, solver="sgd",
            )  # fmt: skip

    @property
    def _is_hamming(self) -> bool:
        return isinstance(self.cost, str)

    def _is_refined(self, corpus: Corpus) -> bool:
        return self._is_hamming and super()._is_refined(corpus)

    @property
    def _completes(self) -> bool:
        """Whether the loss can be minimised by Frank–Wolfe."""
        return not self.l1 and PARTIAL_LOSSES[self.loss].reward == "compatible"

    @property
    def training_loss(self) -> str:
        """The loss that is minimised."""
        return self.loss

    @property
    def _cost(self) -> Any:
        return self.cost

    def penalty_strength(self, problem: LabelProblem) -> float:
        """The factor of ‖w‖²: that given, or what suits the features of a problem."""
        return 0.0 if self.l1 else super().penalty_strength(problem)

    def _learner(self, problem: LabelProblem, start: Weights, rng: np.random.Generator) -> Learner:
        self.l2_ = self.penalty_strength(problem)
        if self.solver == "sgd" or (self.solver == "auto" and self._is_for_steps(problem)):
            self.solver_ = "sgd"
            self._plan_passes(problem, _STEPS)
            self._find_rate(problem, start, rng)
            return self._passes(self._descent(problem, start), rng)
        if self.piece_size is not None:
            problem = problem.cut(self._partitioner(problem).draw(problem.offsets, rng))
        objective = PartialObjective(problem, self.loss, sample_weight=problem.sample_weight)
        # Rich edges have no dual kernel, and Frank–Wolfe without it is slow to come near; but the
        # planes of many loopy graphs take longer still.
        best = self._completes and not (problem.is_rich and problem.is_forest)
        fw = self.solver == "frank-wolfe" or (self.solver == "auto" and best)
        self.solver_ = "frank-wolfe" if fw else "bundle"
        self._auto_passes = _PASSES if objective.convex else _PARTIAL_PASSES
        if fw:
            return CompletedFrankWolfe(objective, l2=self.l2_, rng=rng)
        self._auto_passes = _ITERATIONS if objective.convex else _ROUNDS
        return PlaneLearner(
            objective, l2=self.l2_, l1=float(self.l1), memory=self.memory,
            seed=self.random_state,
        )  # fmt: skip

    def _is_for_steps(self, problem: LabelProblem) -> bool:
        """Whether steps predict as well as the optimum, so that only a gap would be missed."""
        return (
            len(problem.labels) > _LITTLE_DATA
            and self.structure == "chain"
            and self._completes
            and not self._is_asked("tol")
            and not is_dense(problem)
        )

    def _stream_learner(
        self, problem: LabelProblem, weights: Weights, rng: np.random.Generator
    ) -> Learner:
        if not self._completes:
            raise DataError("only hinge losses of label sets, with l2, are learned from a stream")
        return super()._stream_learner(problem, weights, rng)

    @property
    def _tol(self) -> float:
        return super()._tol * (_STEP_TOL if self.solver_ == "sgd" else 1.0)

    def _run(self, learner: Any, *more: Any, **keywords: Any) -> None:
        try:
            super()._run(learner, *more, **keywords)
        finally:
            met = self.history_[-1].objective if self.history_ else np.inf
            self.objective_ = getattr(learner, "objective_value", met)
            self.gap_, self.exact_ = (
                getattr(learner, "gap", np.inf),
                getattr(learner, "exact", True),
            )
