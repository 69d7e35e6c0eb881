"""Learners on tables and on automata: what the on-line algorithms share.

A learner keeps weights as a table: (C, p) for contexts and experts
(:mod:`trellis.experts.tying`), or (E,) for the edges of an automaton that is not complete. It plays
one round a sample, tells the expected losses of any table, and votes with one.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from trellis.arrays import Float64s
from trellis.errors import DataError
from trellis.experts.automaton import PathAutomaton
from trellis.experts.outputs import ExpertOutputs
from trellis.experts.tying import Cells, Tie, Tying
from trellis.experts.voting import own_votes, vote
from trellis.files.stored import header_value, take

__all__ = ["Batch", "EdgeLearner", "EvenLearner", "Learner", "Rounds", "TableLearner"]


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

    def vote_loss(self, sample: int, weights: Float64s) -> float:
        """Return the mean loss of a vote with weights (p,) or (n, p) on one sample."""
        part = slice(int(self.offsets[sample]), int(self.offsets[sample + 1]))
        n_labels = int(max(self.codes[part].max(), self.gold[part].max())) + 1
        return self.loss_of(sample, vote(self.codes[part], weights, n_labels))

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

    def expected(self, batch: Batch, tables: Float64s) -> Float64s:
        """Return the expected loss of each sample under tables (C, p, K) or (E, K), (K, S)."""
        raise NotImplementedError  # abstract

    def label(
        self, outputs: ExpertOutputs, log_table: Float64s, rng: Generator | None, draw: bool
    ) -> NDArray[np.int32]:
        """Vote with these weights, or draw an expert a position; codes (N,), -1: all asleep."""
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
        self, outputs: ExpertOutputs, log_table: Float64s, rng: Generator | None, draw: bool
    ) -> NDArray[np.int32]:
        """Vote, or draw one expert a position by the weights of those awake."""
        table = self.tying.with_fallback(log_table)
        cells = self.tying.cells(outputs)
        experts = np.arange(outputs.n_experts)

        def weights(part: slice) -> Float64s:
            rows = cells.rows(outputs.codes, part)
            logs = np.where(outputs.codes[part] >= 0, table[rows, experts], -np.inf)
            best = logs.max(axis=1, keepdims=True)
            shares: Float64s = np.exp(logs - np.where(np.isfinite(best), best, 0.0))
            return shares

        if not draw:
            return vote(outputs.codes, weights, len(outputs.labels), rng)
        assert rng is not None
        answer = np.empty(outputs.n_positions, np.int32)
        for start in range(0, outputs.n_positions, 65536):
            part = slice(start, start + 65536)
            shares = weights(part)
            shares[shares.sum(axis=1) == 0] = 1.0
            shares = np.where(outputs.codes[part] >= 0, shares, 0.0)
            upto = shares.cumsum(axis=1)
            lot = rng.random((len(upto), 1)) * upto[:, -1:]
            pick = np.minimum((upto <= lot).sum(axis=1), outputs.n_experts - 1)
            answer[part] = outputs.codes[part][np.arange(len(upto)), pick]
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


class EdgeLearner(Learner):
    """What learners on the edges of an automaton share; all samples have its length."""

    even_paths = False  # whether the first distribution is uniform over paths

    def __init__(self, automaton: PathAutomaton, n_experts: int) -> None:
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

    def batch(self, outputs: ExpertOutputs, gold: NDArray[np.int32], cost: Float64s) -> Batch:
        """Prepare samples, which must have the automaton's length and experts that are awake."""
        self.check(outputs)
        return Batch(outputs.offsets, outputs.codes, gold, cost, None)

    def check(self, outputs: ExpertOutputs) -> None:
        """Refuse samples of another length, and experts that sleep."""
        self.automaton.check_samples(outputs.lengths, outputs.n_experts)
        if (outputs.codes < 0).any():
            raise DataError(
                "experts may not sleep on an automaton that is not complete: leaving edges out "
                "would break paths; fill the gaps or leave those experts out"
            )

    def edge_losses(self, batch: Batch) -> Float64s:
        """Return the loss of every edge for every sample, (E, S)."""
        shape = (-1, self.automaton.length, batch.codes.shape[1])
        losses = batch.losses().reshape(shape)
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

    def label(
        self, outputs: ExpertOutputs, log_table: Float64s, rng: Generator | None, draw: bool
    ) -> NDArray[np.int32]:
        """Best path under the log vote scores of what its edges say, or a path drawn."""
        self.check(outputs)
        net = self.automaton
        marginals = np.exp(log_table)
        answer = np.empty((len(outputs), net.length), np.int32)
        places = np.arange(net.length)
        codes = outputs.codes.reshape(len(outputs), net.length, outputs.n_experts)
        if draw:
            assert rng is not None
            paths = net.sample_pushed(marginals, len(outputs), rng)
            return codes[np.arange(len(outputs))[:, None], places, net.expert[paths]].ravel()
        table = np.zeros((net.length, outputs.n_experts))
        table[:, : net.n_experts] = net.expert_marginals(marginals)
        step = max(1, 1_000_000 // max(net.n_edges, len(outputs.labels) * net.length))
        for start in range(0, len(outputs), step):
            part = codes[start : start + step]
            flat = part.reshape(-1, outputs.n_experts)
            weights = np.tile(table, (len(part), 1))
            votes = own_votes(flat, weights, len(outputs.labels)).reshape(part.shape)
            with np.errstate(divide="ignore"):
                scores = np.log(votes[:, net.position, net.expert]).T
            if rng is not None:  # ties: a hair's breadth of noise, the same for equal answers
                lots = rng.random((len(flat), len(outputs.labels)))
                lot = np.take_along_axis(lots, flat, axis=1).reshape(part.shape)
                scores = scores + 1e-9 * lot[:, net.position, net.expert].T
            path = net.best_path(scores).T
            answer[start : start + step] = part[
                np.arange(len(part))[:, None], places, net.expert[path]
            ]
        return answer.ravel()
