"""The best labelling of graphs with cycles, with a certificate; each method on its samples."""

from __future__ import annotations

import numpy as np

from trellis.arrays import Bools, Float64s
from trellis.errors import DataError
from trellis.structures import elimination
from trellis.structures.dual_decomposition import dual_decomposition, improved
from trellis.structures.graph_potentials import GraphPotentials
from trellis.structures.max_flow import max_flow, unfit_for_max_flow
from trellis.structures.message_graph import MessageGraph, labelling_scores, subset, supported
from trellis.structures.message_passes import MessagePasses
from trellis.structures.relaxation import integer_program, linear_relaxation
from trellis.structures.results import Best

__all__ = ["Solver"]


class Solver:
    """One search for the best: infeasible samples end with bound -inf instead of an error."""

    def __init__(
        self,
        p: GraphPotentials,
        budget: int,
        max_iterations: int,
        time_limit: float | None = None,
        mip_gap: float = 0.0,
    ) -> None:
        self.budget = budget
        self.max_iterations = max_iterations
        self.time_limit = time_limit
        self.mip_gap = mip_gap
        self.p = supported(p)
        n_samples = p.n_samples
        self.labels = np.zeros(len(p.node), np.int32)
        self.scores = np.full(n_samples, -np.inf)
        self.bounds = np.full(n_samples, -np.inf)
        self.exact = np.zeros(n_samples, np.bool_)
        self.method = [""] * n_samples
        self.graph = MessageGraph.of(self.p)
        self.tolerance = _tolerance(self.p)
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
            self.messages(self.open)
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
        """Solve each sample by the first method that can be used."""
        forests = self.open & self.graph.forest
        self.trees(forests)
        loopy = np.flatnonzero(self.open & ~forests).tolist()
        plans = elimination.plans(self.p, loopy, self.budget)
        cheap = [(s, plan, cut) for s, (plan, cut) in zip(loopy, plans, strict=True) if plan]
        self.eliminate([s for s, *_ in cheap], [(plan, cut) for _, plan, cut in cheap])
        rest = self.open & ~forests
        rest[[s for s, *_ in cheap]] = False
        for s in np.flatnonzero(rest).tolist():
            if not unfit_for_max_flow(self.part(s)):
                self.flow(s)
                rest[s] = False
        self.messages(rest)

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

    def messages(self, chosen: Bools) -> None:
        """Solve samples by dual decomposition."""
        if not chosen.any():
            return
        q, rows, _ = subset(self.p, chosen)
        graph = self.graph if chosen.all() else MessageGraph.of(q)
        labels, scores, bounds, _ = dual_decomposition(
            q, graph, self.max_iterations, self.tolerance[chosen]
        )
        self.labels[rows] = labels
        self.scores[chosen] = scores
        self.bounds[chosen] = bounds
        self.exact[chosen] = graph.forest | (bounds - scores <= self.tolerance[chosen])
        for s in np.flatnonzero(chosen).tolist():
            self.method[s] = "dual"

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
        labels, score = improved(part, MessageGraph.of(part), relaxed[0])
        self.labels[self.p.rows(s)] = labels
        self.scores[s], self.bounds[s] = score[0], relaxed[1]
        self.exact[s] = relaxed[1] - score[0] <= self.tolerance[s]

    def integer(self, s: int) -> None:
        """Solve a sample by the integer program."""
        part = self.part(s)
        if self.method[s] == "":  # a bound and a labelling in case the time does not suffice
            alone = np.zeros(len(self.open), np.bool_)
            alone[s] = True
            self.messages(alone)
        self.method[s] = "ilp"
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


def _tolerance(p: GraphPotentials) -> Float64s:
    """Gap of each sample that counts as none: 1e-6, and rounding errors of the sum of scores."""
    n_samples, sample = p.n_samples, p.owner
    size = np.where(np.isfinite(p.node), np.abs(p.node), 0.0).max(axis=1)
    tables = np.where(np.isfinite(p.pair), np.abs(p.pair), 0.0).max(axis=(1, 2), initial=0.0)
    total = np.zeros(n_samples)
    total += np.bincount(sample, size, n_samples)
    total += np.bincount(sample[p.edges[:, 0]], tables[p.types], n_samples)
    return 1e-6 + 1e-12 * total
