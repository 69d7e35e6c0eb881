"""Follow the perturbed leader (FPL), converted to a batch rule.

In round t the path h_t is the shortest one under s_{1:t-1} + q_t: s sums the losses of each edge so
far, q_t is drawn anew in each round, uniformly from [0, 1/ε] for each edge (Kalai and Vempala
2005). On the complete automaton that is, at each position, the expert with the smallest perturbed
number of mistakes; with tied weights, in each context.

H_FPL votes with the shares of the paths h_t chosen by Γ that follow each expert; H_FPL-CV follows
the one path that did best on the samples after it.

An expert that sleeps at a position is charged what those awake are charged there on average; where
the leader sleeps, the rule falls back on an unweighted choice among those awake.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trellis.arrays import Float64s
from trellis.domains import function, number, one_of
from trellis.estimator import changed, parameter
from trellis.experts.automaton import PathAutomaton
from trellis.experts.learners import Batch, EdgeLearner, Learner, TableLearner
from trellis.experts.online import OnlineCombiner
from trellis.experts.tying import Tie
from trellis.files.stored import take

__all__ = ["FollowPerturbedLeader"]


class _Perturbed(Learner):
    """Sums of losses, perturbed in each round; «leaders» has a one for what is followed."""

    def _begin(self, seed: int | None) -> None:
        self.key = np.random.SeedSequence(seed).generate_state(2, np.uint64)

    def perturbation(self, scale: float) -> Float64s:
        """Noise of this round, the same whatever came in one call and what in another."""
        bits = np.random.Philox(key=self.key, counter=[0, 0, 0, self.n_rounds])
        noise: Float64s = scale * np.random.Generator(bits).random(self.table.shape)
        return noise

    def leaders(self) -> Float64s:
        """Return the table of what is followed in the next round, in zeros and ones."""
        raise NotImplementedError  # abstract

    def log_table(self) -> Float64s:
        return _log_share(self.leaders())

    def state(self) -> dict[str, Any]:
        return super().state() | {"key": self.key}

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        self.key = take(state, "key", np.uint64, (2,))


def _log_share(leaders: Float64s) -> Float64s:
    with np.errstate(divide="ignore"):
        return np.log(leaders)


class _Table(_Perturbed, TableLearner):
    """Cumulative losses (C, p) and one leader a row."""

    def __init__(self, tie: Tie, n_experts: int, scale: float | None, by_length: bool,
                 seed: int | None) -> None:  # fmt: skip
        TableLearner.__init__(self, tie, n_experts)
        self.fixed = scale
        self.by_length = by_length
        self._begin(seed)

    def leaders(self) -> Float64s:
        scale = 2.0 * self.table.size if self.fixed is None else self.fixed
        perturbed = self.table + self.perturbation(scale)
        chosen = np.zeros_like(self.table)
        chosen[np.arange(len(chosen)), perturbed.argmin(axis=1)] = 1.0
        return chosen

    def rounds(self, batch: Batch) -> tuple[Float64s, Float64s]:
        assert batch.cells is not None
        charged = batch.losses()
        awake = batch.codes >= 0
        count = awake.sum(axis=1, keepdims=True)
        mean = charged.sum(axis=1, keepdims=True) / np.maximum(count, 1)
        charged = np.where(awake, charged, np.where(count > 0, mean, 1.0))
        n = len(batch.offsets) - 1
        losses = np.empty(n)
        total = np.zeros_like(self.table)
        for s in range(n):
            begin, end = batch.offsets[s], batch.offsets[s + 1]
            chosen = self.leaders()
            total += chosen
            rows = batch.cells.context[begin:end]
            # A sleeping leader costs the mean of the others, which is an unweighted choice.
            losses[s] = (chosen[rows] * charged[begin:end]).sum() / (end - begin)
            step = charged[begin:end] / (end - begin) if self.by_length else charged[begin:end]
            np.add.at(self.table, rows, step)
            self.n_rounds += 1
        return losses, _log_share(total)


class _Edges(_Perturbed, EdgeLearner):
    """Cumulative losses of the edges of an automaton, and one path a round."""

    def __init__(self, automaton: PathAutomaton, n_experts: int, scale: float | None,
                 by_length: bool, seed: int | None) -> None:  # fmt: skip
        EdgeLearner.__init__(self, automaton, n_experts)
        self.scale = 2.0 * n_experts * automaton.length if scale is None else scale
        self.unit = 1 / automaton.length if by_length else 1.0
        self._begin(seed)

    def leaders(self) -> Float64s:
        perturbed = self.table + self.perturbation(self.scale)
        chosen = np.zeros_like(self.table)
        chosen[self.automaton.best_path(-perturbed)] = 1.0
        return chosen

    def rounds(self, batch: Batch) -> tuple[Float64s, Float64s]:
        edge_losses = self.edge_losses(batch)
        losses = np.empty(edge_losses.shape[1])
        total = np.zeros_like(self.table)
        for s, charged in enumerate(edge_losses.T):
            chosen = self.leaders()
            total += chosen
            losses[s] = chosen @ charged / self.automaton.length
            self.table = self.table + self.unit * charged
            self.n_rounds += 1
        return losses, _log_share(total)


class FollowPerturbedLeader(OnlineCombiner):
    """Follow the perturbed leader over path experts, with H_FPL or H_FPL-CV as the rule.

    Attributes
    ----------
    weights_ : float64
        Shares of the chosen paths that follow each expert: (l, p), (p,) or (C, p) as for
        :class:`WeightedMajority`.
    expected_loss_, gamma_, rounds_, round_losses_
        As for :class:`WeightedMajority`; the loss of a round is that of its path.

    Examples
    --------
    >>> from trellis.experts import FollowPerturbedLeader
    >>> gold = [["a", "b"], ["b", "a"], ["b", "b"], ["a", "a"]] * 10
    >>> first = [["a", "a"], ["b", "b"], ["b", "a"], ["a", "b"]] * 10
    >>> second = [["b", "b"], ["a", "a"], ["a", "b"], ["b", "a"]] * 10
    >>> combo = FollowPerturbedLeader(random_state=0).fit([first, second], gold)
    >>> combo.predict([[["a", "a"]], [["b", "b"]]])
    [['a', 'b']]
    """

    conversion = changed(
        domain=one_of("majority-vote", "cross-validation"),
        help="""H_FPL: vote with the shares of the paths of the rounds that minimise Γ. H_FPL-CV:
        follow the one path that did best on the samples after its round.""",
    )
    epsilon: float | str = parameter(
        one_of("auto") | number(above=0),
        """Perturbations are uniform on [0, 1/ε]; "auto": 0.5 / (p l), in which l is the number of
        contexts if weights are tied.""",
        default="auto",
    )
    tie = changed(
        domain=one_of("auto", "position", "expert") | function,
        help="""Which positions share weights, see :mod:`trellis.experts.tying`. "auto": by
        position if all samples of the first fit have one length, else one weight for each expert.
        Weights by label make no path to follow.""",
    )
    random_state = changed(help="Seed of the perturbations and of random ties.")

    def _new_learner(self, tie: Tie, n_experts: int) -> Learner:
        scale = None if isinstance(self.epsilon, str) else 1 / self.epsilon
        by_length = self.loss_scale == "1/l"
        if (paths := self._restricted()) is not None:
            return _Edges(paths, n_experts, scale, by_length, self.random_state)
        return _Table(tie, n_experts, scale, by_length, self.random_state)
