"""Weighted majority with weight pushing (WMWP), converted to a batch rule.

Exponential weights over path experts h (Takimoto and Warmuth 2003; Cortes, Kuznetsov and Mohri
2014), one training sample a round:

    p_{t+1}(h) ∝ p_t(h) β^{L(h(x_t), y_t)}

The loss is a sum over positions, so weights on edges suffice. On the complete automaton the p^l
paths fall into l independent choices and w(k, j) ∝ β^{mistakes of expert j at position k}; on any
other automaton the edge weights are multiplied by β^loss and pushed
(:class:`~trellis.experts.PathAutomaton`). Sharing weights between positions replaces «position» by
«context» and p^l by p^C path experts.

Experts that sleep, and weights that depend on what an expert itself says, are *specialists*
(Freund, Schapire, Singer and Warmuth 1997): the weights of those awake are normalised, only they
are charged, and after each position they are rescaled to the total they had, so that an expert
neither wins nor loses by sleeping. If nobody sleeps this is the same as above.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s
from trellis.domains import number, one_of
from trellis.errors import CorruptModelError, DataError
from trellis.estimator import changed, fitted, parameter
from trellis.experts.automaton import PathAutomaton
from trellis.experts.learners import Batch, EdgeLearner, Learner, TableLearner
from trellis.experts.online import OnlineCombiner
from trellis.experts.outputs import ExpertOutputs
from trellis.experts.tying import Tie, Tying
from trellis.files.stored import header_value

__all__ = ["WeightedMajority"]


class _Table(TableLearner):
    """Exponential weights (C, p), initially all 1."""

    eta = 0.0  # set before the first round

    def __init__(self, tie: Tie, n_experts: int, by_length: bool) -> None:
        super().__init__(tie, n_experts)
        self.by_length = by_length

    def log_table(self) -> Float64s:
        return self.table

    def rounds(self, batch: Batch) -> tuple[Float64s, Float64s]:
        from trellis.kernels.experts import weighted_majority

        assert batch.cells is not None
        n = len(batch.offsets) - 1
        losses = np.empty(n)
        log_sum = np.full(self.table.shape, -np.inf)
        last = np.full(self.table.shape, self.n_rounds, np.int64)
        weighted_majority(
            batch.offsets, batch.codes, batch.gold, batch.cells.context, batch.cells.row_of_code,
            batch.cells.by_label, batch.cost, self.eta, self.by_length, self.n_rounds,
            self.table, log_sum, last, losses,
        )  # fmt: skip
        self.n_rounds += n
        with np.errstate(divide="ignore"):
            rest = self.table + np.log(self.n_rounds - last)
        return losses, np.logaddexp(log_sum, rest)


class _Edges(EdgeLearner):
    """Exponential weights over the paths of an automaton."""

    eta = 0.0  # set before the first round

    def __init__(self, automaton: PathAutomaton, n_experts: int) -> None:
        super().__init__(automaton, n_experts)
        self.table = self.at_start()

    def at_start(self) -> Float64s:
        return -self.start_cost

    def log_table(self) -> Float64s:
        with np.errstate(divide="ignore"):
            return np.log(self.automaton.edge_marginals(self.table))

    def rounds(self, batch: Batch) -> tuple[Float64s, Float64s]:
        edge_losses = self.edge_losses(batch)
        losses = np.empty(edge_losses.shape[1])
        total = np.zeros(len(self.table))
        for s, charged in enumerate(edge_losses.T):
            pushed = self.automaton.push(self.table)
            marginals = self.automaton.pushed_marginals(np.exp(pushed))
            losses[s] = marginals @ charged / self.automaton.length
            total += marginals
            self.table = pushed - self.eta * charged
        self.n_rounds += len(losses)
        with np.errstate(divide="ignore"):
            return losses, np.log(total)


class WeightedMajority(OnlineCombiner):
    """Weighted majority over path experts (WMWP), with H_MVote, H_Rand or H_CV as the rule.

    Attributes
    ----------
    weights_ : float64
        Position: (l, p), rows sum to 1. Expert: (p,), sums to 1. Function: (C, p), rows, in the
        order of ``contexts_``, sum to 1. Label: (L, p) in the order of ``classes_``; 1 is the
        initial weight, and more than 1 means that the expert, when it said this label, did better
        than the ensemble.
    expected_loss_ : float
        Mean loss of H_Rand over the rounds chosen, each under weights that had not seen the sample
        (the first term of Γ); for H_CV the loss on the samples after the chosen round.
    gamma_ : float
        The value that was minimised.
    rounds_ : int64
        The rounds chosen, from 0.
    round_losses_ : float64 (T,)
        Expected loss of each round.
    tie_, contexts_, edge_weights_, classes_, expert_names_, expert_losses_
        See the base classes.

    Notes
    -----
    Positions beyond the longest sample of training, labels and contexts it did not have, take each
    expert's mean weight. Where every expert sleeps the answer is the most frequent label.

    Examples
    --------
    The first expert knows the first position, the second the second.

    >>> from trellis.experts import WeightedMajority
    >>> gold = [["a", "b"], ["b", "a"], ["b", "b"], ["a", "a"]] * 10
    >>> first = [["a", "a"], ["b", "b"], ["b", "a"], ["a", "b"]] * 10
    >>> second = [["b", "b"], ["a", "a"], ["a", "b"], ["b", "a"]] * 10
    >>> combo = WeightedMajority(beta=0.8).fit([first, second], gold)
    >>> combo.predict([[["a", "a"]], [["b", "b"]]])
    [['a', 'b']]
    >>> combo.weights_.round(2).tolist()
    [[0.97, 0.03], [0.03, 0.97]]
    """

    beta: float | str = parameter(
        one_of("auto") | number(above=0, below=1),
        """Weights of experts that are wrong are multiplied by β. "auto": the β for which the
        regret bound is least, given the number of samples (:meth:`fit` only).""",
        default=0.95,
    )
    tie = changed(
        help="""Which positions share weights, see :mod:`trellis.experts.tying`. "auto": by
        position if all samples of the first fit have one length, else one weight for each expert
        and label."""
    )
    random_state = changed(
        help="""Seed of H_Rand and of random ties; the same seed, the same answers at every
        call."""
    )
    _lengths: tuple[int, int] = fitted()

    _TIED = "label"

    def partial_fit(self, outputs: Any, gold: Any) -> WeightedMajority:
        """Go on learning from further samples, one round each; the first call starts afresh.

        Calls on parts of a sample, in order, give the same bits as :meth:`fit` on the whole if the
        first call meets samples that lead to the same ``tie_``.
        """
        if self.beta == "auto":
            raise DataError('beta="auto" depends on the number of samples; give a number instead')
        super().partial_fit(outputs, gold)
        return self

    def _new_learner(self, tie: Tie, n_experts: int) -> Learner:
        if (paths := self._restricted()) is not None:
            return _Edges(paths, n_experts)
        return _Table(tie, n_experts, self.loss_scale == "1/l")

    def _start(self, outputs: ExpertOutputs) -> None:
        """Set η of the learner."""
        learner = self._learner
        if isinstance(learner, _Edges):
            length = learner.automaton.length
            eta = self._eta(math.log(learner.automaton.n_paths), len(outputs), float(length))
            learner.eta = eta / length if self.loss_scale == "1/l" else eta
            return
        assert isinstance(learner, _Table)
        log_experts = math.log(2)
        if self.beta == "auto":
            tying = Tying(learner.tying.tie, outputs.n_experts)
            tying.cells(outputs, new=True)
            n_choices = outputs.n_experts * (tying.n_rows if tying.by_label else 1)
            n_rows = 1 if tying.by_label else tying.n_rows
            log_experts = n_rows * math.log(max(n_choices, 2))
        learner.eta = self._eta(log_experts, len(outputs), float(outputs.lengths.mean()))

    def _eta(self, log_experts: float, n_rounds: int, length: float) -> float:
        """Return log(1/β); "auto" is the minimiser of log N / η + η T / 8 for losses in [0, 1]."""
        if not isinstance(self.beta, str):
            return -math.log(self.beta)
        eta = math.sqrt(8 * log_experts / n_rounds)
        return eta if self.loss_scale == "1/l" else eta / length

    def _excess(self, delta: float) -> float | None:
        from trellis.theory.experts import hoeffding_deviation, regret_bound

        log_experts = self._learner.log_experts
        if log_experts is None or self.conversion == "cross-validation":
            return None
        assert isinstance(self._learner, _Table | _Edges)
        eta = self._learner.eta
        if isinstance(self._learner, _Edges):
            eta *= self._learner.automaton.length
        elif self.loss_scale == "0/1":
            if self._lengths[0] != self._lengths[1]:
                return None
            eta *= self._lengths[1]
        n_rounds = len(self._losses)
        regret = regret_bound(log_experts, n_rounds, eta) / n_rounds
        return regret + 2 * hoeffding_deviation(n_rounds, delta / 2)

    def _learn(self, outputs: ExpertOutputs, gold: NDArray[np.int32], fresh: bool) -> None:
        low, high = int(outputs.lengths.min()), int(outputs.lengths.max())
        before = (low, high) if fresh else self._lengths
        self._lengths = (min(low, before[0]), max(high, before[1]))
        super()._learn(outputs, gold, fresh)

    def _state(self) -> dict[str, Any]:
        assert isinstance(self._learner, _Table | _Edges)
        return super()._state() | {"eta": self._learner.eta, "lengths": list(self._lengths)}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        assert isinstance(self._learner, _Table | _Edges)
        self._learner.eta = header_value(state, "eta", float, low=0)
        lengths = header_value(state, "lengths", list, items=int)
        if len(lengths) != 2 or not 1 <= lengths[0] <= lengths[1]:
            raise CorruptModelError("the lengths of samples are not a least and a greatest one")
        self._lengths = (lengths[0], lengths[1])
