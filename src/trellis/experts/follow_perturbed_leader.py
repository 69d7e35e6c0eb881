"""Follow the perturbed leader (FPL), converted to a batch rule.

In round t the path h_t is the shortest one under s_{1:t-1} + q_t: s sums the losses of each edge so
far, q_t is drawn anew in each round, uniformly from [0, 1/ε] for each edge (Kalai and Vempala
2005). On the complete automaton that is, at each position, the expert with the smallest perturbed
number of mistakes; with tied weights, in each context.

H_FPL votes with the shares of the paths h_t chosen by Γ that follow each expert; H_FPL-CV follows
the one path that did best on the samples after it.

Losses of tied weights are thousands of mistakes, beside which noise of [0, 2 p] is nothing: the
same leader is followed in all rounds. So where positions share weights, *mean* losses are perturbed
by default, with noise of a width that is chosen by how well the votes predict.

On a :class:`~trellis.experts.PathFamily` noise and losses are on the moves, tied over positions and
lengths. The leader of round t is a path for every length l, the shortest one under

    s_{1:t-1}(m) + q_t(m)

with the *mean* loss s(m) of expert j(m) over the positions so far at which m was possible. A sample
of l positions is answered by the best path of the family under the shares of the leaders h_t(l)
that follow each expert at each position. The perturbed losses of up to 256 rounds are kept for
that; in longer streams the first of each block of 2, 4, 8, ... rounds stands for its block. On the
complete family this is one weight for each expert.

An expert that sleeps at a position is charged what those awake are charged there on average; where
the leader sleeps, the rule falls back on an unweighted choice among those awake.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s
from trellis.domains import function, number, one_of
from trellis.errors import CorruptModelError, DataError
from trellis.estimator import changed, parameter
from trellis.experts.automaton import PathAutomaton
from trellis.experts.conversions import Candidates, Leaders, Suffixes
from trellis.experts.learners import (
    Batch,
    EdgeLearner,
    EvenFamilyLearner,
    EvenLearner,
    FamilyLearner,
    Learner,
    Rounds,
    TableLearner,
)
from trellis.experts.online import OnlineCombiner
from trellis.experts.outputs import ExpertOutputs
from trellis.experts.path_family import PathFamily
from trellis.experts.tying import Tie
from trellis.files.stored import check_range, header_value, take

__all__ = ["FollowPerturbedLeader"]


# Widths 1/ε of the noise that is added to mean losses.
_WIDTHS = (1.0, 0.3, 0.1, 0.03, 0.01)


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
    """Cumulative losses (C, p) and one leader a row.

    ``noise`` is the width of the perturbation, None for 2 p C; ``scale`` that of the losses.
    """

    def __init__(self, tie: Tie, n_experts: int, noise: float | None, scale: str,
                 seed: int | None) -> None:  # fmt: skip
        TableLearner.__init__(self, tie, n_experts)
        self.noise = noise
        self.scale = scale
        self.seen = np.zeros(0)  # positions of each context
        self.followed = np.zeros((0, n_experts))  # rounds that followed each expert
        self._begin(seed)

    def leaders(self) -> Float64s:
        noise = 2.0 * self.table.size if self.noise is None else self.noise
        losses = self.table
        if self.scale == "mean":
            losses = losses / np.maximum(self.seen, 1)[:, None]
        perturbed = losses + self.perturbation(noise)
        chosen = np.zeros_like(self.table)
        chosen[np.arange(len(chosen)), perturbed.argmin(axis=1)] = 1.0
        return chosen

    def rounds(self, batch: Batch) -> Rounds:
        assert batch.cells is not None
        charged = batch.charged()
        n = len(batch.offsets) - 1
        losses = np.empty(n)
        vote_losses = np.empty(n if self.judged else 0)
        total = np.zeros_like(self.table)
        for s in range(n):
            begin, end = batch.offsets[s], batch.offsets[s + 1]
            rows = batch.cells.context[begin:end]
            if self.judged:
                vote_losses[s] = batch.vote_loss(s, 1.0 + self.followed[rows])
            chosen = self.leaders()
            total += chosen
            self.followed += chosen
            # A sleeping leader costs the mean of the others, which is an unweighted choice.
            losses[s] = (chosen[rows] * charged[begin:end]).sum() / (end - begin)
            step = charged[begin:end] / (end - begin if self.scale == "1/l" else 1)
            np.add.at(self.table, rows, step)
            np.add.at(self.seen, rows, 1.0)
            self.n_rounds += 1
        return Rounds(losses, _log_share(total), vote_losses)

    def grow(self, n_rows: int) -> None:
        super().grow(n_rows)
        missing = n_rows - len(self.seen)
        self.seen = np.concatenate([self.seen, np.zeros(missing)])
        self.followed = np.concatenate([self.followed, np.zeros((missing, self.table.shape[1]))])

    def again(self) -> Self:
        new = super().again()
        new.seen, new.followed = np.zeros_like(self.seen), np.zeros_like(self.followed)
        return new

    def state(self) -> dict[str, Any]:
        return super().state() | {"seen": self.seen, "followed": self.followed}

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        if "seen" in state:  # else a file of an earlier version, which does not need them
            self.seen = take(state, "seen", np.float64, self.seen.shape)
            self.followed = take(state, "followed", np.float64, self.table.shape)
            check_range(self.seen, 0, np.inf, "positions of contexts")
            check_range(self.followed, 0, np.inf, "rounds that follow an expert")


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

    def rounds(self, batch: Batch) -> Rounds:
        edge_losses = self.edge_losses(batch)
        losses = np.empty(edge_losses.shape[1])
        total = np.zeros_like(self.table)
        for s, charged in enumerate(edge_losses.T):
            chosen = self.leaders()
            total += chosen
            losses[s] = chosen @ charged / self.automaton.length
            self.table = self.table + self.unit * charged
            self.n_rounds += 1
        return Rounds(losses, _log_share(total), np.zeros(0))


class _Followed(NamedTuple):
    """Path experts to vote with: scores of moves (K, M), and for how many rounds each counts.

    ``prior``: there is also a round for each expert, spread evenly over the paths.
    """

    scores: Float64s
    counts: NDArray[np.int64]
    prior: bool


class _Moves(_Perturbed, FamilyLearner):
    """Losses of the moves of a family, and one path of each length a round.

    ``seen`` counts the positions where a move was possible, ``kept`` holds the perturbed mean
    losses of the rounds, as scores, and ``lengths`` how many samples of each length there were.
    """

    def __init__(self, family: PathFamily, n_experts: int, noise: float, seed: int | None) -> None:
        FamilyLearner.__init__(self, family, n_experts, even_paths=False)
        self.noise = noise
        self.seen = np.zeros(family.n_moves)
        self.kept = Leaders()
        self.lengths: dict[int, int] = {}
        self._even: dict[int, Float64s] = {}  # what does not change, of each length
        self._begin(seed)

    def log_table(self) -> Float64s:
        """Return the scores of moves under which the leaders of the next round are best."""
        scores: Float64s = -(self.table / np.maximum(self.seen, 1) + self.perturbation(self.noise))
        return scores

    def weights(self, log_table: Float64s) -> Float64s:
        return log_table  # only their order counts

    def rounds(self, batch: Batch) -> Rounds:
        charged = batch.charged()
        n = len(batch.offsets) - 1
        losses = np.empty(n)
        vote_losses = np.empty(n if self.judged else 0)
        total = np.zeros_like(self.table)
        for s, part, net, move in self.samples(batch):
            length = net.length
            if self.judged:
                vote_losses[s] = batch.path_loss(s, net, self.votes(length, self.followed(0)))
            scores = self.log_table()
            path = self.family.best_paths(scores[None], length)[0]
            losses[s] = charged[part][np.arange(length), self.family.expert[path]].sum() / length
            total += self.made(path) / length
            self.table = self.table + self.made(move, charged[part][net.position, net.expert])
            self.seen = self.seen + self.made(move)
            self.kept.add(scores)
            self.lengths[length] = self.lengths.get(length, 0) + 1
            self.n_rounds += 1
        return Rounds(losses, _log_share(total), vote_losses)

    def followed(self, start: int) -> _Followed:
        """Return the leaders of the rounds from ``start`` on."""
        if not self.kept.n_rounds:
            return _Followed(np.zeros((0, len(self.table))), np.zeros(0, np.int64), self.judged)
        return _Followed(*self.kept.since(start), self.judged)

    def votes(self, length: int, followed: _Followed) -> Float64s:
        """Return the share of the path experts that follow each expert at each position, (l, p)."""
        p = self.family.n_experts
        experts = self.family.expert[self.family.best_paths(followed.scores, length)]
        cells = np.arange(length) * p + experts
        times = np.repeat(followed.counts, length).astype(np.float64)
        votes: Float64s = np.bincount(cells.ravel(), times, length * p).astype(np.float64)
        votes = votes.reshape(length, p)
        total = float(followed.counts.sum())
        if followed.prior:
            if length not in self._even:
                self._even[length] = p * self.shares(length, np.zeros_like(self.table))
            votes = votes + self._even[length]
            total += p
        return votes / total

    def moved(self, scores: Float64s) -> Float64s:
        """Return the share of positions at which a path expert makes each move, (M,).

        It is the mean over the samples so far.
        """
        total = np.zeros_like(self.table)
        for length, times in self.lengths.items():
            total += self.made(self.family.best_paths(scores[None], length)[0]) * (times / length)
        return total / self.n_rounds

    def lost(self, batch: Batch, followed: _Followed) -> float:
        """Return the mean loss of following any of the path experts."""
        charged = batch.charged()
        losses = [
            (self.votes(net.length, followed) * charged[part, : self.family.n_experts]).sum()
            / net.length
            for _, part, net, _ in self.samples(batch)
        ]
        return float(np.mean(losses))

    def expected(self, batch: Batch, tables: Float64s) -> Float64s:
        """Return the loss of each sample under scores of moves (M, K), as (K, S)."""
        charged = batch.charged()
        losses = np.empty((tables.shape[-1], len(batch.offsets) - 1))
        for s, part, net, _ in self.samples(batch):
            experts = self.family.expert[self.family.best_paths(tables.T, net.length)]
            losses[:, s] = charged[part][np.arange(net.length), experts].sum(axis=1) / net.length
        return losses

    def again(self) -> Self:
        new = super().again()
        new.seen, new.kept, new.lengths = np.zeros_like(self.seen), Leaders(), {}
        return new

    def state(self) -> dict[str, Any]:
        return super().state() | {
            "seen": self.seen,
            "kept": self.kept.state(),
            "lengths": np.array(sorted(self.lengths.items()), np.int64),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        self.seen = take(state, "seen", np.float64, self.table.shape)
        check_range(self.seen, 0, np.inf, "positions of moves")
        self.kept.restore(header_value(state, "kept", dict), self.table.shape)
        lengths = take(state, "lengths", np.int64, (None, 2))
        check_range(lengths, 1, 2**31, "lengths of samples")
        self.lengths = dict(lengths.tolist())
        if not self.n_rounds == self.kept.n_rounds == sum(self.lengths.values()):
            raise CorruptModelError("the leaders and lengths are not those of the rounds")


class FollowPerturbedLeader(OnlineCombiner):
    """Follow the perturbed leader over path experts, with H_FPL or H_FPL-CV as the rule.

    Attributes
    ----------
    weights_ : float64
        Shares of the chosen paths that follow each expert: (l, p), (p,) or (C, p) as for
        :class:`WeightedMajority`. On a family of automata (M,): mean share of the positions of a
        sample at which they make each move.
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
        one_of("auto", "paper") | number(above=0),
        """Perturbations are uniform on [0, 1/ε]. "paper": ε = 0.5 / (p l), in which l is the number
        of contexts if weights are tied. "auto": the same if each position or edge has its own
        weights; if weights are tied, mean losses are perturbed, with the ε of a grid whose votes
        did best on samples that they had not seen, and the plain vote answers unless they are
        better by a standard error (H_FPL-CV has no vote: it takes the largest ε).""",
        default="auto",
    )
    tie = changed(
        domain=one_of("auto", "position", "expert") | function,
        help="""Which positions share weights, see :mod:`trellis.experts.tying`. "auto": by
        position if all samples of the first fit have one length, else one weight for each expert.
        Weights by label make no path to follow.""",
    )
    random_state = changed(help="Seed of the perturbations and of random ties.")

    def _new_learners(self, tie: Tie, n_experts: int, outputs: ExpertOutputs) -> list[Learner]:
        return self._learners(tie, n_experts, self._scale(tie))

    def _learners(self, tie: Tie, n_experts: int, scale: str) -> list[Learner]:
        noise = None if isinstance(self.epsilon, str) else 1 / self.epsilon
        seed = self.random_state
        if (paths := self._restricted()) is not None:
            return [_Edges(paths, n_experts, noise, scale == "1/l", seed)]
        family = self.automaton if isinstance(self.automaton, PathFamily) else None
        widths: tuple[float | None, ...] = (noise,)
        judged = False
        if (scale == "mean" or family is not None) and self.epsilon == "auto":
            # H_FPL-CV follows one path: there is no vote to judge.
            judged = self.conversion != "cross-validation"
            widths = _WIDTHS if judged else _WIDTHS[-1:]
        if family is not None:
            even: list[Learner] = [EvenFamilyLearner(family, n_experts, even_paths=False)]
            perturbed: list[Learner] = [
                _Moves(family, n_experts, width, seed) for width in widths if width is not None
            ]
        else:
            even = [EvenLearner(tie, n_experts)]
            perturbed = [_Table(tie, n_experts, width, scale, seed) for width in widths]
        return even + perturbed if judged else perturbed

    def _choose(self, batch: Batch) -> None:
        super()._choose(batch)
        learner = self._learner
        if learner.judged and self._by_suffixes() and isinstance(learner, _Table | _Moves):
            # What was judged: the shares of all rounds so far, and one round for each expert.
            if isinstance(learner, _Table):
                followed = 1 + learner.followed
                self._log_table = np.log(followed / followed.sum(axis=1, keepdims=True))
            else:
                self._log_table = self._moved_in_all()
            self.rounds_ = np.arange(len(self._losses))
            self.gamma_ = float(self.gammas()[0])
            self.expected_loss_ = float(self._losses.mean())
        elif isinstance(learner, _Moves) and self.conversion == "cross-validation":
            self._members = [self._log_table]
            self._log_table = _log_share(learner.moved(self._log_table))
        elif isinstance(learner, _Moves) and not self._by_suffixes():
            self._members = self._each_of(batch, self.rounds_)

    def _moved_in_all(self) -> Float64s:
        """Log of the shares of moves in all rounds, and in one for each expert, evenly spread."""
        learner, (even, own) = self._learner, (self._strands[0].blocks, self._blocks)
        assert isinstance(learner, _Moves)
        assert isinstance(even, Suffixes)
        assert isinstance(own, Suffixes)
        prior = math.log(learner.family.n_experts) + even.log_average(0)
        rounds = math.log(learner.n_rounds) + own.log_average(0)
        total: Float64s = np.logaddexp(prior, rounds)
        return total - math.log(learner.family.n_experts + learner.n_rounds)

    def _followed(self, learner: _Moves) -> _Followed:
        """The path experts that vote."""
        if self._members is not None:
            return _Followed(
                np.stack(self._members), np.ones(len(self._members), np.int64), prior=False
            )
        return learner.followed(int(self.rounds_[0]))

    def _label(self, outputs: ExpertOutputs) -> NDArray[np.int32]:
        learner = self._learner
        if not isinstance(learner, _Moves):
            return super()._label(outputs)
        followed = self._followed(learner)
        rng = np.random.default_rng(self.random_state) if self.ties == "random" else None
        return learner.voted(outputs, lambda length: learner.votes(length, followed), rng)

    def _mean_loss(self, batch: Batch, tables: list[Float64s], counts: NDArray[np.int64]) -> float:
        learner = self._learner
        if not isinstance(learner, _Moves):
            return super()._mean_loss(batch, tables, counts)
        return learner.lost(batch, self._followed(learner))

    def _rate(self) -> float | str:
        return self.epsilon

    def _check_together(self) -> None:
        super()._check_together()
        if self.epsilon == "paper" and self.loss_scale == "mean":
            raise DataError('epsilon="paper" is for sums of losses; use loss_scale "0/1" or "1/l"')

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        if not isinstance(self._learner, _Moves):
            return
        if self._members is None and not self._learner.kept.n_rounds:
            raise CorruptModelError("the file lacks the leaders of its rounds")
        scores = list(self._members or [])
        for strand in self._strands:
            if isinstance(strand.learner, _Moves):
                scores += strand.learner.kept.tables
            if isinstance(strand.blocks, Candidates):
                scores += strand.blocks.tables
        if not all(np.isfinite(table).all() for table in scores):
            raise CorruptModelError("the scores of moves are not numbers")

    def _blank_learners(self, tie: Tie, n_experts: int, state: Mapping[str, Any]) -> list[Learner]:
        return self._learners(tie, n_experts, self._stored_scale(state))

    def _state(self) -> dict[str, Any]:
        state = super()._state()
        if self._restricted() is None and not isinstance(self.automaton, PathFamily):
            state["scale"] = self._scale(self.tie_)
        return state
