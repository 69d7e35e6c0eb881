"""Weighted majority with weight pushing (WMWP), converted to a batch rule.

Exponential weights over path experts h (Takimoto and Warmuth 2003; Cortes, Kuznetsov and Mohri
2014), one training sample a round:

    p_{t+1}(h) ∝ p_t(h) β^{L(h(x_t), y_t)}

The loss is a sum over positions, so weights on edges suffice. On the complete automaton the p^l
paths fall into l independent choices and w(k, j) ∝ β^{mistakes of expert j at position k}; on any
other automaton the edge weights are multiplied by β^loss and pushed
(:class:`~trellis.experts.PathAutomaton`). Sharing weights between positions replaces «position» by
«context» and p^l by p^C path experts.

**Tied weights.** A weight that all positions share is charged with thousands of mistakes, and
β^mistakes soon leaves the best expert alone, the sooner the more is learned from. So for tied
weights the loss in the exponent is by default a *mean*: with G(c, j) the sum, over the n(c, j)
positions where expert j spoke in context c, of the mean loss of those awake less its own,

    w(c, j) = β^{-G(c, j) / (n(c, j) + 10)}

which if nobody sleeps and there is one context is β^{mean loss of j} up to a factor. β is the one
of a grid whose votes lost least, each sample predicted with the weights before it, if they lost
less than the plain vote (β = 1) by more than a standard error; else the plain vote answers.

Experts that sleep, and weights that depend on what an expert itself says, are *specialists*
(Freund, Schapire, Singer and Warmuth 1997): the weights of those awake are normalised, only they
are charged, and after each position they are rescaled to the total they had, so that an expert
neither wins nor loses by sleeping. If nobody sleeps this is the same as above.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s
from trellis.domains import number, one_of
from trellis.errors import CorruptModelError, DataError
from trellis.estimator import changed, fitted, parameter
from trellis.experts.automaton import PathAutomaton
from trellis.experts.learners import (
    Batch,
    EdgeLearner,
    FamilyLearner,
    Learner,
    Rounds,
    TableLearner,
)
from trellis.experts.online import OnlineCombiner, Strand, beats_vote
from trellis.experts.outputs import ExpertOutputs
from trellis.experts.path_family import PathFamily
from trellis.experts.tying import Tie, Tying
from trellis.files.stored import check_range, header_value, take

__all__ = ["WeightedMajority"]


# Rates η = log(1/β) of tied weights, for mean losses; the first one is the plain vote. They and the
# positions below, which count as ones where an expert was as good as the others, were chosen on
# made-up experts, aligned transcripts and weak taggers of CoNLL-2000.
_RATES = (0.0, 3.0, 10.0, 30.0, 100.0)
_PRIOR = 10.0


class _Table(TableLearner):
    """Exponential weights (C, p), initially all 1."""

    def __init__(self, tie: Tie, n_experts: int, eta: float, by_length: bool) -> None:
        super().__init__(tie, n_experts)
        self.eta = eta
        self.by_length = by_length

    def log_table(self) -> Float64s:
        return self.table

    def rounds(self, batch: Batch) -> Rounds:
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
        return Rounds(losses, _to_the_end(log_sum, last, self.table, self.n_rounds), np.zeros(0))


class _MeanLoss(Learner):
    """Weights β^(mean loss): ``table`` sums by how much what has a weight was better than others.

    ``spoken`` counts the positions of these sums.
    """

    eta: float
    spoken: Float64s

    def log_table(self) -> Float64s:
        log_weights: Float64s = self.eta * self.table / (self.spoken + _PRIOR)
        return log_weights

    def again(self) -> Self:
        new = super().again()
        new.spoken = np.zeros_like(self.spoken)
        return new

    def state(self) -> dict[str, Any]:
        return super().state() | {"spoken": self.spoken}

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        self.spoken = take(state, "spoken", np.float64, self.table.shape)
        check_range(self.spoken, 0, np.inf, "positions where an expert spoke")


class _Means(_MeanLoss, TableLearner):
    """Weights (C, p) of the experts in each context."""

    def __init__(self, tie: Tie, n_experts: int, eta: float) -> None:
        super().__init__(tie, n_experts)
        self.eta = eta
        self.spoken = np.zeros((0, n_experts))

    def rounds(self, batch: Batch) -> Rounds:
        from trellis.kernels.experts import mean_loss_majority

        assert batch.cells is not None
        n = len(batch.offsets) - 1
        losses = np.empty(n)
        vote_losses = np.empty(n if self.judged else 0)
        n_labels = int(batch.codes.max(initial=0)) + 1
        log_weights = self.log_table()
        log_sum = np.full(self.table.shape, -np.inf)
        last = np.full(self.table.shape, self.n_rounds, np.int64)
        mean_loss_majority(
            batch.offsets, batch.codes, batch.gold, batch.cells.context, batch.cells.row_of_code,
            batch.cells.by_label, batch.cost, self.eta, _PRIOR, self.n_rounds, self.table,
            self.spoken, log_weights, log_sum, last, losses, np.zeros(n_labels), vote_losses,
        )  # fmt: skip
        self.n_rounds += n
        return Rounds(losses, _to_the_end(log_sum, last, log_weights, self.n_rounds), vote_losses)

    def grow(self, n_rows: int) -> None:
        super().grow(n_rows)
        missing = n_rows - len(self.spoken)
        self.spoken = np.concatenate([self.spoken, np.zeros((missing, self.table.shape[1]))])


def _to_the_end(
    log_sum: Float64s, last: NDArray[np.int64], log_weights: Float64s, n_rounds: int
) -> Float64s:
    """Add to sums of weights up to the rounds ``last`` what has stayed the same since."""
    with np.errstate(divide="ignore"):
        total: Float64s = np.logaddexp(log_sum, log_weights + np.log(n_rounds - last))
    return total


class _Edges(EdgeLearner):
    """Exponential weights over the paths of an automaton."""

    def __init__(self, automaton: PathAutomaton, n_experts: int, eta: float, start: str) -> None:
        super().__init__(automaton, n_experts)
        self.eta = eta
        self.even_paths = start == "paths"
        self.table = self.at_start()

    def at_start(self) -> Float64s:
        return np.zeros(self.automaton.n_edges) if self.even_paths else -self.start_cost

    def log_table(self) -> Float64s:
        with np.errstate(divide="ignore"):
            return np.log(self.automaton.edge_marginals(self.table))

    def rounds(self, batch: Batch) -> Rounds:
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
            return Rounds(losses, np.log(total), np.zeros(0))


class _Moves(_MeanLoss, FamilyLearner):
    """Weights (M,) of moves."""

    def __init__(self, family: PathFamily, n_experts: int, eta: float, start: str) -> None:
        super().__init__(family, n_experts, start == "paths")
        self.eta = eta
        self.spoken = np.zeros(family.n_moves)

    def rounds(self, batch: Batch) -> Rounds:
        charged = batch.charged()
        awake = batch.codes >= 0
        # A sleeper is charged what those awake are on average, so that it gains nothing.
        gain = (charged * awake).sum(axis=1, keepdims=True)
        gain = gain / np.maximum(awake.sum(axis=1, keepdims=True), 1) - charged
        gain = np.where(awake, gain, 0.0)
        n = len(batch.offsets) - 1
        losses = np.empty(n)
        vote_losses = np.empty(n if self.judged else 0)
        log_sum = np.full(len(self.table), -np.inf)
        for s, part, net, move in self.samples(batch):
            log_weights = self.log_table()
            marginals = self.marginals(net.length, log_weights)
            at = net.position, net.expert
            losses[s] = marginals @ charged[part][at] / net.length
            if self.judged:
                vote_losses[s] = batch.path_loss(s, net, net.expert_marginals(marginals))
            log_sum = np.logaddexp(log_sum, log_weights)
            self.table = self.table + self.made(move, gain[part][at])
            self.spoken = self.spoken + self.made(move, awake[part][at])
        self.n_rounds += n
        return Rounds(losses, log_sum, vote_losses)


class WeightedMajority(OnlineCombiner):
    """Weighted majority over path experts (WMWP), with H_MVote, H_Rand or H_CV as the rule.

    Attributes
    ----------
    weights_ : float64
        Position: (l, p), rows sum to 1. Expert: (p,), sums to 1. Function: (C, p), rows, in the
        order of ``contexts_``, sum to 1. Label: (L, p) in the order of ``classes_``; 1 is the
        initial weight, and more than 1 means that the expert, when it said this label, did better
        than the ensemble.
        On a family of automata (M,): 1 is the weight of a move whose expert was as good as others.
    beta_ : float
        The β in fact; 1 is the plain vote.
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
        one_of("auto", "regret") | number(above=0, below=1),
        """Weights of experts that are wrong are multiplied by β. "auto": 0.95 as in the paper if
        each position or edge has its own weights; if weights are tied, the β of a grid whose votes
        did best on samples that they had not seen, β = 1 (the plain vote) unless another one is
        better by a standard error. "regret": the β for which the regret bound is least, given the
        number of samples (:meth:`fit` only).""",
        default="auto",
    )
    start: str = parameter(
        one_of("edges", "paths"),
        """The first distribution on an ``automaton``: uniform over the edges that leave each state,
        as in the paper, or uniform over paths, for which the regret bound has the log of their
        number.""",
        default="edges",
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

    @property
    def beta_(self) -> float:
        """The β in fact; 1 is the plain vote."""
        self._check_fitted()
        assert isinstance(self._learner, _Table | _MeanLoss | _Edges)
        eta = self._learner.eta
        if isinstance(self._learner, _Edges) and self.loss_scale == "1/l":
            eta *= self._learner.automaton.length
        return math.exp(-eta)

    def partial_fit(self, outputs: Any, gold: Any) -> WeightedMajority:
        """Go on learning from further samples, one round each; the first call starts afresh.

        Calls on parts of a sample, in order, give the same bits as :meth:`fit` on the whole if the
        first call meets samples that lead to the same ``tie_``.
        """
        if self.beta == "regret":
            raise DataError('beta="regret" depends on the number of samples; give a number instead')
        super().partial_fit(outputs, gold)
        return self

    def _new_learners(self, tie: Tie, n_experts: int, outputs: ExpertOutputs) -> list[Learner]:
        scale = self._scale(tie)
        length = float(outputs.lengths.mean())
        if (paths := self._restricted()) is not None:
            start = _Edges(paths, n_experts, 0.0, self.start)
            start.eta = self._eta(start.log_experts, len(outputs), length, scale == "1/l")
            start.eta /= paths.length if scale == "1/l" else 1
            return [start]
        if isinstance(self.automaton, PathFamily):
            rates = _RATES if self.beta == "auto" else (self._eta(0.0, 1, 1.0, False),)
            return [_Moves(self.automaton, n_experts, eta, self.start) for eta in rates]
        if scale == "mean" and self.beta == "auto":
            return [_Means(tie, n_experts, eta) for eta in _RATES]
        log_experts = math.log(2)
        if self.beta == "regret":
            tying = Tying(tie, n_experts)
            tying.cells(outputs, new=True)
            n_choices = n_experts * (tying.n_rows if tying.by_label else 1)
            n_rows = 1 if tying.by_label else tying.n_rows
            log_experts = n_rows * math.log(max(n_choices, 2))
        eta = self._eta(log_experts, len(outputs), length, scale == "1/l")
        if scale == "mean":
            return [_Means(tie, n_experts, eta)]
        return [_Table(tie, n_experts, eta, scale == "1/l")]

    def _rate(self) -> float | str:
        return self.beta

    def _check_together(self) -> None:
        super()._check_together()
        if self.beta == "regret" and self.loss_scale == "mean":
            raise DataError('beta="regret" is about sums of losses; use loss_scale "0/1" or "1/l"')

    def _eta(self, log_experts: float, n_rounds: int, length: float, by_length: bool) -> float:
        """Return log(1/β); "regret": minimise log N / η + η T / 8 for losses in [0, 1]."""
        if self.beta == "regret":
            eta = math.sqrt(8 * log_experts / n_rounds)
            return eta if by_length else eta / length
        return -math.log(0.95 if isinstance(self.beta, str) else self.beta)

    def _chosen(self, strands: Sequence[Strand]) -> int:
        if self.conversion == "randomised":  # no vote: by its own loss
            return int(np.argmin([strand.losses.mean() for strand in strands]))
        return beats_vote(strands)

    def _excess(self, delta: float) -> float | None:
        from trellis.theory.experts import hoeffding_deviation, regret_bound

        log_experts = self._learner.log_experts
        if log_experts is None or self.conversion == "cross-validation":
            return None
        if isinstance(self._learner, _MeanLoss):  # the rate falls as it learns
            return None
        assert isinstance(self._learner, _Table | _Edges)
        eta = self._learner.eta
        if isinstance(self._learner, _Edges):
            eta *= self._learner.automaton.length
        elif not self._learner.by_length:
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
        assert isinstance(self._learner, _Table | _MeanLoss | _Edges)
        state = super()._state() | {"eta": self._learner.eta, "lengths": list(self._lengths)}
        if isinstance(self._learner, TableLearner):
            state["scale"] = self._scale(self.tie_)
        if len(self._strands) > 1:
            state["rates"] = [
                strand.learner.eta
                for strand in self._strands
                if isinstance(strand.learner, _MeanLoss)
            ]
        return state

    def _blank_learners(self, tie: Tie, n_experts: int, state: Mapping[str, Any]) -> list[Learner]:
        eta = header_value(state, "eta", float, low=0)
        if (paths := self._restricted()) is not None:
            return [_Edges(paths, n_experts, eta, self.start)]
        family = self.automaton if isinstance(self.automaton, PathFamily) else None
        scale = "mean" if family is not None else self._stored_scale(state)
        if scale != "mean":
            return [_Table(tie, n_experts, eta, scale == "1/l")]
        rates = [eta]
        if "rates" in state:
            rates = header_value(state, "rates", list, items=float)
            if len(rates) < 2 or not all(0 <= rate < math.inf for rate in rates):
                raise CorruptModelError("the rates of learning are not numbers of at least 0")
        if family is not None:
            return [_Moves(family, n_experts, rate, self.start) for rate in rates]
        return [_Means(tie, n_experts, rate) for rate in rates]

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        lengths = header_value(state, "lengths", list, items=int)
        if len(lengths) != 2 or not 1 <= lengths[0] <= lengths[1]:
            raise CorruptModelError("the lengths of samples are not a least and a greatest one")
        self._lengths = (lengths[0], lengths[1])
