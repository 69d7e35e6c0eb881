"""The best labelling of graphs with cycles, with a certificate; each method on its samples.

Left to itself, a search goes from cheap to dear. A few turns of dual decomposition prove the best
labelling of most graphs that were learned, and tell which labels the others may still have; with
those alone max-flow or elimination is tried. What they cannot do goes on with dual decomposition.
"""

from __future__ import annotations

import numpy as np

from trellis.arrays import Bools, Float64s, Int64s
from trellis.errors import DataError
from trellis.structures import elimination
from trellis.structures.dual_decomposition import DualDecomposition, moved
from trellis.structures.graph_potentials import GraphPotentials
from trellis.structures.max_flow import max_flow, unfit_for_max_flow
from trellis.structures.message_graph import MessageGraph, labelling_scores, subset, supported
from trellis.structures.message_passes import MessagePasses
from trellis.structures.relaxation import integer_program, linear_relaxation
from trellis.structures.results import Best

__all__ = ["Solver"]

_FIRST = 20  # turns of dual decomposition before other methods are tried
_LARGE = 200  # nodes from which max-flow is faster than these turns
_ROUNDS = 2  # of moves for each turn, which take about the same time


class Solver:
    """One search for the best: infeasible samples end with bound -inf instead of an error."""

    def __init__(
        self,
        p: GraphPotentials,
        budget: int,
        max_iterations: int,
        time_limit: float | None = None,
        mip_gap: float = 0.0,
        rounds: int | None = None,
    ) -> None:
        self.budget = budget
        self.max_iterations = max_iterations
        self.time_limit = time_limit
        self.mip_gap = mip_gap
        self.rounds = rounds
        self.p = supported(p)
        n_samples = p.n_samples
        self.labels = np.zeros(len(p.node), np.int32)
        self.scores = np.full(n_samples, -np.inf)
        self.bounds = np.full(n_samples, -np.inf)
        self.exact = np.zeros(n_samples, np.bool_)
        self.method = [""] * n_samples
        self.graph = MessageGraph.of(self.p)
        self.total = _total(self.p)
        # A gap that counts as none: so small, or what rounding makes of the sum of scores.
        self.tolerance = 1e-6 + 1e-12 * self.total
        empty = ~np.isfinite(self.p.node).any(axis=1)
        self.open = np.ones(n_samples, np.bool_)
        self.open[p.owner[empty]] = False
        self.order, self.edge_offsets = self.p.by_sample()

    def solve(self, method: str, exact: bool) -> Best:
        """Solve all samples; ``exact``: by the integer program where a gap is left."""
        if method == "auto":
            self.automatic()
        elif method == "elimination":
            chosen = np.flatnonzero(self.open).tolist()
            self.eliminate(chosen, elimination.plans_within(self.p, chosen, self.budget))
        elif method == "dual":
            self.messages(self.open, self.max_iterations, self.tolerance)
        else:
            for s in np.flatnonzero(self.open).tolist():
                if method == "max-flow":
                    reason = unfit_for_max_flow(self.part(s))
                    if reason:
                        raise DataError(
                            f'sample {s}: {reason}; method="max-flow" needs submodular scores of '
                            'two labels, use method="auto"'
                        )
                    self.flow(s)
                elif method == "lp":
                    self.relaxation(s)
                else:
                    self.integer(s)
        # A labelling must be found where one can be, also if nobody asked for the best.
        lost = np.isneginf(self.scores) & np.isfinite(self.bounds) & (method == "auto")
        for s in np.flatnonzero((self.open & ~self.exact & exact) | lost).tolist():
            if self.method[s] != "ilp":
                self.integer(s)
        self.scores[~self.open] = -np.inf
        self.bounds[~self.open] = -np.inf
        self.bounds = np.where(self.exact, self.scores, np.maximum(self.bounds, self.scores))
        return Best(self.labels, self.scores, self.bounds, self.exact, tuple(self.method))

    def automatic(self) -> None:
        """Solve each sample by the first method that can."""
        forests = self.open & self.graph.forest
        if forests.any():
            self.trees(forests)
        rest = self.open & ~forests
        self.flows(np.flatnonzero(rest & (np.diff(self.p.offsets) >= _LARGE)))
        rest &= ~self.exact
        # As long as elimination may come, the best is not to be missed for a small difference.
        terms = np.diff(self.p.offsets) + np.diff(self.edge_offsets)
        sharp = np.minimum(self.tolerance, (1e-9 / np.maximum(terms, 1) + 1e-12) * self.total)
        dual, samples = self.messages(rest, min(_FIRST, self.max_iterations), sharp)
        self.others(samples[~self.exact[samples]])
        left = ~self.exact[samples]
        if left.any():
            self.ascend(dual.part(left), samples[left], self.max_iterations, self.tolerance)
            self.others(samples[~self.exact[samples]])

    def others(self, samples: Int64s) -> None:
        """Solve what is left of samples by max-flow or elimination where that can be done."""
        self.flows(samples)
        left = samples[~self.exact[samples]].tolist()
        if not left:
            return
        plans = elimination.plans(self.p, left, self.budget)
        cheap = [(s, plan, cut) for s, (plan, cut) in zip(left, plans, strict=True) if plan]
        self.eliminate([s for s, *_ in cheap], [(plan, cut) for _, plan, cut in cheap])

    def flows(self, samples: Int64s) -> None:
        """Solve those samples by max-flow that are fit for it."""
        for s in samples.tolist():
            if not unfit_for_max_flow(self.part(s)):
                self.flow(s)

    def part(self, s: int) -> GraphPotentials:
        """Scores of one sample."""
        return self.p.part(s, self.order[self.edge_offsets[s] : self.edge_offsets[s + 1]])

    def trees(self, chosen: Bools) -> None:
        """Solve forests."""
        q, rows, _ = subset(self.p, chosen)
        passes = MessagePasses.of(q, "tree")
        assert passes is not None
        self.labels[rows], scores = passes.best()
        self.scores[chosen] = self.bounds[chosen] = scores
        self.exact[chosen] = True
        for s in np.flatnonzero(chosen).tolist():
            self.method[s] = "tree"

    def messages(
        self, chosen: Bools, turns: int, tolerance: Float64s
    ) -> tuple[DualDecomposition, Int64s]:
        """Solve samples by dual decomposition; returns it, to go on, and their numbers."""
        q, *_ = subset(self.p, chosen)
        dual = DualDecomposition.of(q, self.graph if chosen.all() else MessageGraph.of(q))
        samples = np.flatnonzero(chosen)
        self.ascend(dual, samples, turns, tolerance)
        return dual, samples

    def ascend(
        self, dual: DualDecomposition, samples: Int64s, turns: int, tolerance: Float64s
    ) -> None:
        """Go on with dual decomposition and moves, and forbid the labels that it rules out."""
        if len(samples) == 0:
            return
        near, before = tolerance[samples], dual.state.turns.copy()
        dual.ascend(turns, near)
        state = dual.state
        closed = state.bounds - state.scores <= near
        if not closed.all():
            rounds = _ROUNDS * (state.turns - before)
            if self.rounds is not None:  # all of them at the end
                most = np.full_like(rounds, self.rounds)
                rounds = most if turns == self.max_iterations else np.minimum(rounds, most)
            dual.move(rounds, near)
            dual.narrow(self.tolerance[samples])
            closed = state.bounds - state.scores <= near
        chosen = np.zeros(len(self.open), np.bool_)
        chosen[samples] = True
        rows = np.flatnonzero(chosen[self.p.owner])
        self.labels[rows] = state.labels
        self.scores[samples], self.bounds[samples] = state.scores, state.bounds
        self.exact[samples] = dual.graph.forest | closed
        for s in samples.tolist():
            self.method[s] = "dual"
        if not closed.all():
            node = self.p.node.copy()
            node[rows] = dual.p.node
            self.p = self.p.with_arrays(node=node)

    def eliminate(self, chosen: list[int], plans: list[tuple[elimination.Plan, bool]]) -> None:
        """Solve samples by elimination in these orders."""
        for group in elimination.groups(self.p, chosen, plans, self.budget):
            labels, scores = group.best()
            for s, y, score in zip(group.samples, labels, scores, strict=True):
                self.labels[self.p.rows(s)] = y
                self.scores[s] = self.bounds[s] = score
                self.exact[s] = True
                self.method[s] = "elimination"

    def flow(self, s: int) -> None:
        """Solve a sample by max-flow."""
        labels, score, bound = max_flow(self.part(s))
        self.labels[self.p.rows(s)] = labels
        self.scores[s], self.bounds[s] = score, bound
        self.exact[s] = bound - score <= self.tolerance[s]
        self.method[s] = "max-flow"

    def relaxation(self, s: int) -> None:
        """Solve a sample by the linear relaxation."""
        part = self.part(s)
        relaxed = linear_relaxation(part)
        self.method[s] = "lp"
        if relaxed is None:
            self.open[s] = False
            return
        bound = np.array([relaxed[1]])
        rounds = np.array([self.rounds if self.rounds is not None else _ROUNDS * _FIRST])
        near = self.tolerance[s : s + 1]
        labels, score = moved(part, MessageGraph.of(part), relaxed[0], rounds, bound, near)
        self.labels[self.p.rows(s)] = labels
        self.scores[s], self.bounds[s] = score[0], bound[0]
        self.exact[s] = bound[0] - score[0] <= near[0]

    def integer(self, s: int) -> None:
        """Solve a sample by the integer program."""
        if self.method[s] == "":  # a bound and a labelling in case the time does not suffice
            alone = np.zeros(len(self.open), np.bool_)
            alone[s] = True
            self.messages(alone, self.max_iterations, self.tolerance)
        self.method[s] = "ilp"
        part = self.part(s)
        solved = integer_program(part, self.time_limit, self.mip_gap)
        if solved is None:
            self.open[s] = False
            return
        labels, bound, finished = solved
        self.bounds[s] = min(self.bounds[s], bound)
        if labels is not None:
            score = labelling_scores(part, labels)[0]
            if score > self.scores[s]:
                self.labels[self.p.rows(s)] = labels
                self.scores[s] = score
        close = self.bounds[s] - self.scores[s] <= self.tolerance[s]
        self.exact[s] = close or (finished and self.mip_gap == 0)


def _total(p: GraphPotentials) -> Float64s:
    """Sum of the largest scores, taken positive, of all nodes and edges of each sample."""
    n_samples, sample = p.n_samples, p.owner
    size = np.where(np.isfinite(p.node), np.abs(p.node), 0.0).max(axis=1)
    tables = np.where(np.isfinite(p.pair), np.abs(p.pair), 0.0).max(axis=(1, 2), initial=0.0)
    total = np.zeros(n_samples)
    total += np.bincount(sample, size, n_samples)
    total += np.bincount(sample[p.edges[:, 0]], tables[p.types], n_samples)
    return total
