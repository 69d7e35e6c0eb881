"""Learners on tables and on automata: what the on-line algorithms share.

A learner keeps weights as a table: (C, p) for contexts and experts
(:mod:`trellis.experts.tying`), (E,) for the edges of an automaton that is not complete, or (M,) for
the moves of a family of automata. It plays one round a sample, tells the expected losses of any
table, and votes with one.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from trellis.arrays import Float64s
from trellis.experts.automaton import PathAutomaton
from trellis.experts.outputs import ExpertOutputs
from trellis.experts.path_family import PathFamily
from trellis.experts.tying import Cells, Tie, Tying
from trellis.experts.voting import own_votes, vote
from trellis.files.stored import header_value, take

__all__ = [
    "Batch",
    "EdgeLearner",
    "EvenFamilyLearner",
    "EvenLearner",
    "FamilyLearner",
    "Learner",
    "PathLearner",
    "Rounds",
    "TableLearner",
    "by_length",
    "drawn_paths",
    "path_vote",
]


@dataclass(frozen=True, eq=False)
class Batch:
    """Samples as a learner sees them: ``cells`` are the rows of a table (None: edges)."""

    offsets: NDArray[np.int64]
    codes: NDArray[np.int32]
    gold: NDArray[np.int32]
    cost: Float64s
    cells: Cells | None

    def part(self, first: int, after: int) -> Batch:
        """Return some of the samples."""
        begin, end = int(self.offsets[first]), int(self.offsets[after])
        cells = self.cells
        if cells is not None and not cells.by_label:
            cells = Cells(cells.context[begin:end], cells.row_of_code, False)
        return Batch(
            self.offsets[first : after + 1] - begin, self.codes[begin:end], self.gold[begin:end],
            self.cost, cells,
        )  # fmt: skip

    def losses(self) -> Float64s:
        """Return the loss of every expert at every position, (N, p); 0 where it sleeps."""
        codes = np.maximum(self.codes, 0)
        if self.cost.size:
            losses: Float64s = self.cost[self.gold[:, None], codes]
        else:
            losses = (codes != self.gold[:, None]).astype(np.float64)
        return np.where(self.codes >= 0, losses, 0.0)

    def charged(self) -> Float64s:
        """Return the losses (N, p) with that of a sleeper the mean of those awake, 1 if none is."""
        losses = self.losses()
        awake = self.codes >= 0
        count = awake.sum(axis=1, keepdims=True)
        mean = losses.sum(axis=1, keepdims=True) / np.maximum(count, 1)
        charged: Float64s = np.where(awake, losses, np.where(count > 0, mean, 1.0))
        return charged

    def vote_loss(self, sample: int, weights: Float64s) -> float:
        """Return the mean loss of a vote with weights (p,) or (n, p) on one sample."""
        part = slice(int(self.offsets[sample]), int(self.offsets[sample + 1]))
        n_labels = int(max(self.codes[part].max(), self.gold[part].max())) + 1
        return self.loss_of(sample, vote(self.codes[part], weights, n_labels))

    def path_loss(self, sample: int, net: PathAutomaton, shares: Float64s) -> float:
        """Return the mean loss on one sample of the best path under votes (l, p)."""
        part = slice(int(self.offsets[sample]), int(self.offsets[sample + 1]))
        n_labels = int(max(self.codes[part].max(), self.gold[part].max())) + 1
        said = path_vote(net, shares, self.codes[None, part], n_labels, None)[0]
        return self.loss_of(sample, said)

    def loss_of(self, sample: int, said: NDArray[np.int32]) -> float:
        """Return the mean loss of an answer (n,) to one sample; that of no answer (-1) is 1."""
        right = self.gold[self.offsets[sample] : self.offsets[sample + 1]]
        wrong = self.cost[right, said] if self.cost.size else said != right
        return float(np.where(said >= 0, wrong, 1.0).mean())


@dataclass(frozen=True, eq=False)
class Rounds:
    """What some rounds came to.

    Attributes
    ----------
    losses : float64 (n,)
        Expected loss of each sample under the weights p_t that had not seen it.
    log_sum : float64 (C, p) or (E,)
        Log of Σ_t p_t.
    vote_losses : float64 (n,) or (0,)
        Loss of the vote with the weights that had not seen the sample, if the learner is asked.
    """

    losses: Float64s
    log_sum: Float64s
    vote_losses: Float64s


class Learner:
    """On-line learning over path experts.

    Attributes
    ----------
    table : float64 (C, p) or (E,)
        What the rounds so far have left: log weights, or sums of losses.
    n_rounds : int
        Rounds so far.
    judged : bool
        Whether rounds also tell the loss of the vote.
    """

    judged = False

    def __init__(self, start: Float64s) -> None:
        self.table = start
        self.n_rounds = 0

    def batch(self, outputs: ExpertOutputs, gold: NDArray[np.int32], cost: Float64s) -> Batch:
        """Prepare samples for the methods below; the table grows if need be."""
        raise NotImplementedError  # abstract

    def rounds(self, batch: Batch) -> Rounds:
        """Play one round a sample."""
        raise NotImplementedError  # abstract

    def log_table(self) -> Float64s:
        """Return the log of the weights p_t of the next round, (C, p) or (E,)."""
        raise NotImplementedError  # abstract

    def weights(self, log_table: Float64s) -> Float64s:
        """Return the weights of a table, as :meth:`expected` wants them."""
        weights: Float64s = np.exp(log_table)
        return weights

    def expected(self, batch: Batch, tables: Float64s) -> Float64s:
        """Return the expected loss of each sample under weights (C, p, K) or (E, K), (K, S)."""
        raise NotImplementedError  # abstract

    def label(
        self, outputs: ExpertOutputs, log_table: Float64s, rng: Generator | None
    ) -> NDArray[np.int32]:
        """Vote with these weights, ties at random if ``rng``; codes (N,), -1: all asleep."""
        raise NotImplementedError  # abstract

    def follow_drawn(
        self, outputs: ExpertOutputs, log_tables: list[Float64s], lots: NDArray[np.int64],
        rng: Generator,
    ) -> NDArray[np.int32]:  # fmt: skip
        """Draw a path for each sample, by table ``lots[s]``, and follow it; codes (N,)."""
        raise NotImplementedError  # abstract

    @property
    def log_experts(self) -> float | None:
        """Log of the number of path experts, None if they are not what is learned about."""
        raise NotImplementedError  # abstract

    def at_start(self) -> Float64s:
        """The table before the first round, of the size it has now."""
        return np.zeros_like(self.table)

    def again(self) -> Self:
        """Return the same learner before its first round."""
        new = copy.copy(self)
        new.table, new.n_rounds = self.at_start(), 0
        return new

    def state(self) -> dict[str, Any]:
        """What a model file holds of it: what it goes on from."""
        return {"table": self.table, "n_rounds": self.n_rounds}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Undo :meth:`state`, checking everything."""
        self.table = take(state, "table", np.float64, self.table.shape)
        self.n_rounds = header_value(state, "n_rounds", int, low=0)


class TableLearner(Learner):
    """What learners with a table of contexts and experts share."""

    def __init__(self, tie: Tie, n_experts: int) -> None:
        super().__init__(np.zeros((0, n_experts)))
        self.tying = Tying(tie, n_experts)
        self.slept = False

    @property
    def log_experts(self) -> float | None:
        """C log p, unless weights depend on what an expert says or experts sleep."""
        if self.tying.by_label or self.slept:
            return None
        return self.tying.n_rows * math.log(self.tying.visits.shape[1])

    def batch(self, outputs: ExpertOutputs, gold: NDArray[np.int32], cost: Float64s) -> Batch:
        """Prepare samples, with rows for their contexts."""
        cells = self.tying.learn(outputs)
        self.slept = self.slept or bool((outputs.codes < 0).any())
        self.grow(self.tying.n_rows)
        return Batch(outputs.offsets, outputs.codes, gold, cost, cells)

    def follow(self, other: TableLearner) -> None:
        """Have the contexts of another learner, which has prepared the samples."""
        self.tying, self.slept = other.tying, other.slept
        self.grow(self.tying.n_rows)

    def grow(self, n_rows: int) -> None:
        """Make room for more contexts."""
        missing = n_rows - len(self.table)
        self.table = np.concatenate([self.table, np.zeros((missing, self.table.shape[1]))])

    def expected(self, batch: Batch, tables: Float64s) -> Float64s:
        """Return the expected loss of each sample under tables (C, p, K), as (K, S)."""
        from trellis.kernels.experts import expected_losses

        assert batch.cells is not None
        losses = np.zeros((tables.shape[-1], len(batch.offsets) - 1))
        expected_losses(
            batch.offsets, batch.codes, batch.gold, batch.cells.context, batch.cells.row_of_code,
            batch.cells.by_label, batch.cost, np.ascontiguousarray(tables), losses,
        )  # fmt: skip
        return losses

    def label(
        self, outputs: ExpertOutputs, log_table: Float64s, rng: Generator | None
    ) -> NDArray[np.int32]:
        """Vote with the weights of those awake."""
        table = self.tying.with_fallback(log_table)
        cells = self.tying.cells(outputs)
        experts = np.arange(outputs.n_experts)

        def weights(part: slice) -> Float64s:
            rows = cells.rows(outputs.codes, part)
            logs = np.where(outputs.codes[part] >= 0, table[rows, experts], -np.inf)
            best = logs.max(axis=1, keepdims=True)
            shares: Float64s = np.exp(logs - np.where(np.isfinite(best), best, 0.0))
            return shares

        return vote(outputs.codes, weights, len(outputs.labels), rng)

    def follow_drawn(
        self, outputs: ExpertOutputs, log_tables: list[Float64s], lots: NDArray[np.int64],
        rng: Generator,
    ) -> NDArray[np.int32]:  # fmt: skip
        """Follow one expert in each context of a sample, drawn by the weights.

        The experts of a context are put in order by a race: j arrives after a time that is
        exponential with the rate w(c, j), and the first that is awake at a position is followed
        there. So at every position each of those awake has its share of their weights. By label,
        an expert runs once a sample, at the rate of what it says at the position.
        """
        tables = np.stack([self.tying.with_fallback(table) for table in log_tables])
        cells = self.tying.cells(outputs)
        answer = np.empty(outputs.n_positions, np.int32)
        sample = np.repeat(np.arange(len(outputs)), outputs.lengths)
        p, n_rows = outputs.n_experts, tables.shape[1]
        for start in range(0, len(outputs), 4096):
            first, after = outputs.offsets[[start, min(len(outputs), start + 4096)]]
            part = slice(first, after)
            codes, rows = outputs.codes[part], cells.rows(outputs.codes, slice(first, after))
            run = sample[part]
            if not cells.by_label:
                run = run * n_rows + rows[:, 0]
            races, inverse = np.unique(run, return_inverse=True)
            times = rng.exponential(size=(len(races), p))[inverse]
            logs = tables[lots[sample[part], None], rows, np.arange(p)]
            with np.errstate(divide="ignore"):
                arrival = np.where(codes >= 0, np.log(times) - logs, np.inf)
            # Nobody awake has any weight: an unweighted choice.
            none = ~np.isfinite(arrival).any(axis=1)
            arrival[none] = np.where(codes[none] >= 0, np.log(times[none]), np.inf)
            answer[part] = codes[np.arange(len(codes)), arrival.argmin(axis=1)]
        return answer


class EvenLearner(TableLearner):
    """Equal weights whatever happens: the plain vote."""

    def log_table(self) -> Float64s:
        """Return the log of equal weights."""
        return np.zeros_like(self.table)

    def rounds(self, batch: Batch) -> Rounds:
        """Play one round a sample."""
        n = len(batch.offsets) - 1
        losses = self.expected(batch, np.ones((*self.table.shape, 1)))[0]
        votes = np.array([batch.vote_loss(s, np.ones(batch.codes.shape[1])) for s in range(n)])
        self.n_rounds += n
        return Rounds(losses, np.full(self.table.shape, math.log(n)), votes)


class PathLearner(Learner):
    """What learners on the paths of automata share: votes and draws."""

    def net(self, length: int) -> PathAutomaton:
        """Return the automaton of samples of one length."""
        raise NotImplementedError  # abstract

    def marginals(self, length: int, log_table: Float64s) -> Float64s:
        """Return the edge marginals of samples of one length."""
        raise NotImplementedError  # abstract

    def check(self, outputs: ExpertOutputs) -> None:
        """Refuse samples to which there is no path."""
        raise NotImplementedError  # abstract

    def batch(self, outputs: ExpertOutputs, gold: NDArray[np.int32], cost: Float64s) -> Batch:
        """Prepare samples, to all of which there must be a path."""
        self.check(outputs)
        return Batch(outputs.offsets, outputs.codes, gold, cost, None)

    def shares(self, length: int, log_table: Float64s) -> Float64s:
        """Return the chance of following each expert at each position, (l, p)."""
        return self.net(length).expert_marginals(self.marginals(length, log_table))

    def label(
        self, outputs: ExpertOutputs, log_table: Float64s, rng: Generator | None
    ) -> NDArray[np.int32]:
        """Best path under the log vote scores of what its edges say."""
        return self.voted(outputs, lambda length: self.shares(length, log_table), rng)

    def voted(
        self, outputs: ExpertOutputs, shares: Callable[[int], Float64s], rng: Generator | None
    ) -> NDArray[np.int32]:
        """Vote with the weights (l, p) that a function gives for each length."""
        self.check(outputs)
        answer = np.empty(outputs.n_positions, np.int32)
        for length, _, places in by_length(outputs.offsets):
            answer[places] = path_vote(
                self.net(length), shares(length), outputs.codes[places], len(outputs.labels), rng
            )
        return answer

    def follow_drawn(
        self, outputs: ExpertOutputs, log_tables: list[Float64s], lots: NDArray[np.int64],
        rng: Generator,
    ) -> NDArray[np.int32]:  # fmt: skip
        """Follow a path drawn by the weights of the table of each sample."""
        self.check(outputs)
        answer = np.empty(outputs.n_positions, np.int32)
        for length, samples, places in by_length(outputs.offsets):
            for lot in np.unique(lots[samples]):
                drawn = places[lots[samples] == lot]
                marginals = self.marginals(length, log_tables[lot])
                answer[drawn] = drawn_paths(self.net(length), marginals, outputs.codes[drawn], rng)
        return answer


class EdgeLearner(PathLearner):
    """What learners on the edges of an automaton share; all samples have its length."""

    even_paths = False  # whether the first distribution is uniform over paths

    def __init__(self, automaton: PathAutomaton, n_experts: int) -> None:
        automaton.check_experts(n_experts)
        self.automaton = automaton
        _, inverse, count = np.unique(automaton.origin, return_inverse=True, return_counts=True)
        self.start_cost: Float64s = np.log(count[inverse])
        super().__init__(np.zeros(automaton.n_edges))

    @property
    def log_experts(self) -> float:
        """The most that -log p_1(h) can be for a path h: log N if p_1 is uniform."""
        if self.even_paths:
            return math.log(self.automaton.n_paths)
        # The start is uniform over the edges that leave a state, so paths differ in their share.
        path = self.automaton.best_path(self.start_cost)
        return float(self.start_cost[path].sum())

    def net(self, length: int) -> PathAutomaton:
        """Return the automaton."""
        return self.automaton

    def marginals(self, length: int, log_table: Float64s) -> Float64s:
        """Return the weights themselves."""
        return self.weights(log_table)

    def check(self, outputs: ExpertOutputs) -> None:
        """Refuse samples of another length, and an expert that is not there."""
        self.automaton.check_samples(outputs.lengths, outputs.n_experts)

    def edge_losses(self, batch: Batch) -> Float64s:
        """Return the loss of every edge for every sample, (E, S)."""
        shape = (-1, self.automaton.length, batch.codes.shape[1])
        losses = batch.charged().reshape(shape)
        edges: Float64s = losses[:, self.automaton.position, self.automaton.expert].T
        return edges

    def expected(self, batch: Batch, tables: Float64s) -> Float64s:
        """Return the expected loss of each sample under edge marginals (E, K), as (K, S)."""
        shares = tables / self._mass(tables)
        losses: Float64s = shares.T @ self.edge_losses(batch) / self.automaton.length
        return losses

    def _mass(self, tables: Float64s) -> Float64s:
        """Return the total at the first position, which is that of every position."""
        total: Float64s = tables[self.automaton.position == 0].sum(axis=0)
        return total


class FamilyLearner(PathLearner):
    """What learners on the moves of a family of automata share; log weights are (M,).

    A path of a sample weighs the product of the weights of its moves, and that of the first
    distribution, which is uniform over the edges that leave a state or over paths.
    """

    def __init__(self, family: PathFamily, n_experts: int, even_paths: bool) -> None:
        family.check_experts(n_experts)
        super().__init__(np.zeros(family.n_moves))
        self.family = family
        self.even_paths = even_paths

    @property
    def log_experts(self) -> float | None:
        """Path experts of different lengths are not of one class."""
        return None

    def net(self, length: int) -> PathAutomaton:
        """Return the family unrolled."""
        return self.family.unrolled(length)[0]

    def check(self, outputs: ExpertOutputs) -> None:
        """Refuse samples of a length that the family has no path of."""
        for length in np.unique(outputs.lengths).tolist():
            self.family.unrolled(length)

    def marginals(self, length: int, log_table: Float64s) -> Float64s:
        """Return the edge marginals of samples of one length, of log weights (M, ...)."""
        net, move = self.family.unrolled(length)
        logs = log_table[move]
        if not self.even_paths:
            start = np.log(np.bincount(net.origin, minlength=net.n_states)[net.origin])
            logs = logs - start.reshape(-1, *[1] * (logs.ndim - 1))
        return net.edge_marginals(logs)

    def expected(self, batch: Batch, tables: Float64s) -> Float64s:
        """Return the expected loss of each sample under weights of moves (M, K), as (K, S)."""
        charged = batch.charged()
        losses = np.empty((tables.shape[-1], len(batch.offsets) - 1))
        with np.errstate(divide="ignore"):
            logs = np.log(tables)
        for length, samples, places in by_length(batch.offsets):
            net = self.net(length)
            marginals = self.marginals(length, logs)
            for s, part in zip(samples.tolist(), places, strict=True):
                losses[:, s] = charged[part][net.position, net.expert] @ marginals / length
        return losses

    def samples(
        self, batch: Batch
    ) -> Iterator[tuple[int, slice, PathAutomaton, NDArray[np.int64]]]:
        """Samples one by one: number, positions, automaton, and the moves of its edges."""
        for s, (begin, end) in enumerate(pairwise(batch.offsets.tolist())):
            yield s, slice(begin, end), *self.family.unrolled(end - begin)

    def made(self, move: NDArray[np.int64], weights: NDArray[Any] | None = None) -> Float64s:
        """Sum weights of edges (None: one each) over the edges of each move, (M,)."""
        total: Float64s = np.bincount(move, weights, self.family.n_moves).astype(np.float64)
        return total


class EvenFamilyLearner(FamilyLearner):
    """Equal weights whatever happens; what it tells of weights is the share of each move.

    That is the mean share of the positions of a sample at which a path makes the move.
    """

    def log_table(self) -> Float64s:
        """Return the log of equal weights."""
        return np.zeros_like(self.table)

    def rounds(self, batch: Batch) -> Rounds:
        """Play one round a sample."""
        n = len(batch.offsets) - 1
        losses = self.expected(batch, np.ones((len(self.table), 1)))[0]
        votes = np.empty(n)
        total = np.zeros_like(self.table)
        for s, part, net, move in self.samples(batch):
            length = part.stop - part.start
            marginals = self.marginals(length, self.log_table())
            votes[s] = batch.path_loss(s, net, net.expert_marginals(marginals))
            total += self.made(move, marginals) / length
        self.n_rounds += n
        with np.errstate(divide="ignore"):
            return Rounds(losses, np.log(total), votes)

    def shares(self, length: int, log_table: Float64s) -> Float64s:
        """Return the chances of equal weights, (l, p)."""
        return super().shares(length, self.log_table())

    def expected(self, batch: Batch, tables: Float64s) -> Float64s:
        """Return the expected loss of each sample under equal weights, (K, S)."""
        return super().expected(batch, np.ones_like(tables))


def by_length(
    offsets: NDArray[np.int64],
) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.int64]]]:
    """Lengths, the samples that have them, and their positions (S, l)."""
    lengths = np.diff(offsets)
    for length in np.unique(lengths).tolist():
        samples = np.flatnonzero(lengths == length)
        yield length, samples, offsets[samples][:, None] + np.arange(length)


def path_vote(
    net: PathAutomaton,
    shares: Float64s,
    codes: NDArray[np.int32],
    n_labels: int,
    rng: Generator | None,
) -> NDArray[np.int32]:
    """Answers (S, l) of the best paths under the log vote scores of what edges say.

    ``codes`` is (S, l, p), and ``shares`` are the weights of the experts at each position, (l, p)
    or fewer if the automaton speaks of fewer. An edge whose expert sleeps has the mean score of
    those awake and the most voted label; where all sleep the answer is -1.
    """
    n_experts = codes.shape[2]
    answer = np.empty(codes.shape[:2], np.int32)
    table = np.zeros((net.length, n_experts))
    table[:, : shares.shape[1]] = shares
    step = max(1, 1_000_000 // max(net.n_edges, n_labels * net.length))
    for start in range(0, len(codes), step):
        part = codes[start : start + step]
        flat = part.reshape(-1, n_experts)
        votes = own_votes(flat, np.tile(table, (len(part), 1)), n_labels)
        awake = flat >= 0
        lots = np.zeros(flat.shape)
        if rng is not None:  # ties: a hair's breadth of noise, the same for equal answers
            draws = rng.random((len(flat), n_labels))
            lots = np.take_along_axis(draws, np.maximum(flat, 0), axis=1)
        if not awake.all():
            count = np.maximum(awake.sum(axis=1, keepdims=True), 1)
            mean = np.where(awake, votes, 0.0).sum(axis=1, keepdims=True) / count
            winner = np.take_along_axis(flat, votes.argmax(axis=1)[:, None], axis=1)
            votes = np.where(awake, votes, np.where(awake.any(axis=1, keepdims=True), mean, 1.0))
            flat = np.where(awake, flat, winner)
        with np.errstate(divide="ignore"):
            scores = np.log(votes) + 1e-9 * lots
        path = net.best_path(scores.reshape(part.shape)[:, net.position, net.expert].T).T
        said = flat.reshape(part.shape)
        answer[start : start + step] = said[
            np.arange(len(part))[:, None], np.arange(net.length), net.expert[path]
        ]
    return answer


def drawn_paths(
    net: PathAutomaton, marginals: Float64s, codes: NDArray[np.int32], rng: Generator
) -> NDArray[np.int32]:
    """Answers (S, l) of paths drawn by their marginals; for a sleeper, of any that is awake."""
    experts = net.expert[net.sample_pushed(marginals, len(codes), rng)]
    if (codes < 0).any():
        other = np.where(codes >= 0, rng.random(codes.shape), -1.0).argmax(axis=2)
        own = np.take_along_axis(codes, experts[..., None], axis=2)[..., 0]
        experts = np.where(own >= 0, experts, other)
    answer: NDArray[np.int32] = np.take_along_axis(codes, experts[..., None], axis=2)[..., 0]
    return answer
