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

import copy

import numpy as np

from trellis.arrays import Float64s
from trellis.domains import function, number, one_of
from trellis.estimator import changed, parameter
from trellis.experts.automaton import PathAutomaton
from trellis.experts.learners import Batch, EdgeLearner, Learner, TableLearner
from trellis.experts.online import OnlineCombiner
from trellis.experts.outputs import ExpertOutputs
from trellis.experts.tying import Tie

__all__ = ["FollowPerturbedLeader"]


class _Noise:
    """Perturbations of round t, the same whatever came in one call and what in another."""

    def __init__(self, seed: int | None) -> None:
        self.key = np.random.SeedSequence(seed).generate_state(2, np.uint64)

    def draw(self, t: int, shape: tuple[int, ...]) -> Float64s:
        bits = np.random.Philox(key=self.key, counter=[0, 0, 0, t])
        return np.random.Generator(bits).random(shape)


def _log_share(leaders: Float64s) -> Float64s:
    with np.errstate(divide="ignore"):
        return np.log(leaders)


class _Table(TableLearner):
    """Cumulative losses (C, p) and one leader a row."""

    def __init__(self, tie: Tie, n_experts: int, scale: float | None, by_length: bool,
                 seed: int | None) -> None:  # fmt: skip
        super().__init__(tie, n_experts)
        self.fixed = scale
        self.by_length = by_length
        self.noise = _Noise(seed)
        self.summed = np.zeros((0, n_experts))
        self.n_rounds = 0

    def grow(self, n_rows: int) -> None:
        missing = n_rows - len(self.summed)
        self.summed = np.concatenate([self.summed, np.zeros((missing, self.summed.shape[1]))])

    def again(self) -> _Table:
        """Return the same learner before its first round."""
        new = copy.copy(self)
        new.summed = np.zeros_like(self.summed)
        new.n_rounds = 0
        return new

    def leaders(self) -> Float64s:
        """Return the leaders of the next round as a table of zeros and ones."""
        scale = 2.0 * self.summed.size if self.fixed is None else self.fixed
        perturbed = self.summed + scale * self.noise.draw(self.n_rounds, self.summed.shape)
        chosen = np.zeros_like(self.summed)
        chosen[np.arange(len(chosen)), perturbed.argmin(axis=1)] = 1.0
        return chosen

    def log_table(self) -> Float64s:
        return _log_share(self.leaders())

    def rounds(self, batch: Batch) -> tuple[Float64s, Float64s]:
        assert batch.cells is not None
        charged = batch.losses()
        awake = batch.codes >= 0
        count = awake.sum(axis=1, keepdims=True)
        mean = charged.sum(axis=1, keepdims=True) / np.maximum(count, 1)
        charged = np.where(awake, charged, np.where(count > 0, mean, 1.0))
        n = len(batch.offsets) - 1
        losses = np.empty(n)
        total = np.zeros_like(self.summed)
        for s in range(n):
            begin, end = batch.offsets[s], batch.offsets[s + 1]
            chosen = self.leaders()
            total += chosen
            rows = batch.cells.context[begin:end]
            # A sleeping leader costs the mean of the others, which is an unweighted choice.
            losses[s] = (chosen[rows] * charged[begin:end]).sum() / (end - begin)
            step = charged[begin:end] / (end - begin) if self.by_length else charged[begin:end]
            np.add.at(self.summed, rows, step)
            self.n_rounds += 1
        return losses, _log_share(total)


class _Edges(EdgeLearner):
    """Cumulative losses of the edges of an automaton, and one path a round."""

    def __init__(self, automaton: PathAutomaton, n_experts: int, scale: float | None,
                 by_length: bool, seed: int | None) -> None:  # fmt: skip
        super().__init__(automaton, n_experts)
        self.scale = 2.0 * n_experts * automaton.length if scale is None else scale
        self.unit = 1 / automaton.length if by_length else 1.0
        self.noise = _Noise(seed)
        self.summed = np.zeros(automaton.n_edges)
        self.n_rounds = 0

    def again(self) -> _Edges:
        """Return the same learner before its first round."""
        new = copy.copy(self)
        new.summed = np.zeros_like(self.summed)
        new.n_rounds = 0
        return new

    def leaders(self) -> Float64s:
        """Return the edges of the next round's path as zeros and ones."""
        perturbed = self.summed + self.scale * self.noise.draw(self.n_rounds, self.summed.shape)
        chosen = np.zeros_like(self.summed)
        chosen[self.automaton.best_path(-perturbed)] = 1.0
        return chosen

    def log_table(self) -> Float64s:
        return _log_share(self.leaders())

    def rounds(self, batch: Batch) -> tuple[Float64s, Float64s]:
        edge_losses = self.edge_losses(batch)
        losses = np.empty(edge_losses.shape[1])
        total = np.zeros_like(self.summed)
        for s, charged in enumerate(edge_losses.T):
            chosen = self.leaders()
            total += chosen
            losses[s] = chosen @ charged / self.automaton.length
            self.summed = self.summed + self.unit * charged
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

    def _new_learner(self, outputs: ExpertOutputs, tie: Tie) -> Learner:
        scale = None if isinstance(self.epsilon, str) else 1 / self.epsilon
        by_length = self.loss_scale == "1/l"
        if self.automaton is not None:
            if not self.automaton.is_complete:
                return _Edges(
                    self.automaton, outputs.n_experts, scale, by_length, self.random_state
                )
            EdgeLearner(self.automaton, outputs.n_experts)._check(outputs)
        return _Table(tie, outputs.n_experts, scale, by_length, self.random_state)

    def _new_table(self, tie: Tie, n_experts: int) -> TableLearner:
        return _Table(tie, n_experts, None, self.loss_scale == "1/l", self.random_state)

    def _new_edges(self, automaton: PathAutomaton, n_experts: int) -> EdgeLearner:
        return _Edges(automaton, n_experts, None, self.loss_scale == "1/l", self.random_state)
