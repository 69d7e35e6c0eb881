r"""General graphs: the best labelling with a certificate, and how it can be found.

The scores are held in :class:`~trellis.structures.GraphPotentials`. What can be had depends on the
graph, and every result says what it is:

======================  =========================================================================
method                  what it gives
======================  =========================================================================
``"tree"``              best and marginals, exact, of forests; two passes of messages
``"elimination"``       best, marginals and samples, exact; the cost rises exponentially with the
                        treewidth (:mod:`~trellis.structures.elimination`)
``"max-flow"``          best, exact, of submodular scores with two labels
                        (:mod:`~trellis.structures.max_flow`)
``"dual"``              a labelling and an upper bound, by dual decomposition
                        (:mod:`~trellis.structures.dual_decomposition`)
``"lp"``                the same by the linear relaxation (:mod:`~trellis.structures.relaxation`)
``"ilp"``               best, exact, by an integer program; may take exponential time
``"bp"``                approximate marginals (:mod:`~trellis.structures.belief_propagation`)
======================  =========================================================================

An empty sample has one labelling, of score 0. A sample all of whose labellings are forbidden raises
:class:`~trellis.errors.InfeasibleError`, where the method can tell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trellis.arrays import Bools, Float64s, Int32s, Int64s
from trellis.errors import DataError
from trellis.structures import elimination
from trellis.structures.dual_decomposition import dual_decomposition, improved
from trellis.structures.graph_checks import (
    at_least,
    one_of,
    plans_within,
    require_feasible,
    require_forests,
)
from trellis.structures.graph_potentials import GraphPotentials
from trellis.structures.max_flow import max_flow, unfit_for_max_flow
from trellis.structures.message_graph import MessageGraph, labelling_scores, subset, supported
from trellis.structures.relaxation import integer_program, linear_relaxation

__all__ = ["GraphBest", "elimination_cost", "graph_best"]


_BEST = ("auto", "tree", "elimination", "max-flow", "dual", "lp", "ilp")


@dataclass(frozen=True, eq=False)
class GraphBest:
    """Labellings of high score, each with an upper bound on the best.

    Parameters
    ----------
    labels : int32, shape (N,)
        The labels, stacked as the node scores are.
    scores : float64, shape (S,)
        Their scores. ``-inf`` where ``"dual"`` or ``"lp"`` found no labelling that is allowed.
    bounds : float64, shape (S,)
        No labelling has a higher score than this. Equal to the score where that is exact.
    exact : bool, shape (S,)
        Whether the labelling is the best: whether its score is within 1e-6 (and rounding) of the
        bound.
    method : tuple of str, length S
        How each labelling was found.
    """

    labels: Int32s
    scores: Float64s
    bounds: Float64s
    exact: Bools
    method: tuple[str, ...]

    @property
    def gap(self) -> Float64s:
        """How much better than the labelling the best may be."""
        return self.bounds - self.scores


def graph_best(
    p: GraphPotentials,
    *,
    method: str = "auto",
    exact: bool = False,
    budget: int = 10_000_000,
    max_iterations: int = 200,
    time_limit: float | None = None,
    mip_gap: float = 0.0,
) -> GraphBest:
    """Find a labelling of high score of each sample, and how far from the best it can be.

    Parameters
    ----------
    p : GraphPotentials
        The scores.
    method : str
        ``"tree"``, ``"elimination"``, ``"max-flow"``, ``"dual"``, ``"lp"`` or ``"ilp"`` (see the
        table above), or ``"auto"``: for each sample the first of tree, elimination and max-flow
        that can be used, else dual.
    exact : bool
        Follow up ``"dual"``, ``"lp"`` and ``"auto"`` by the integer program where a gap is left.
    budget : int
        Most table entries that elimination may take for a sample, of 8 bytes each.
    max_iterations : int
        Most turns of dual decomposition.
    time_limit : float, optional
        Most seconds that the integer program may take for a sample; its gap is said if that was not
        enough.
    mip_gap : float
        Relative gap at which the integer program may stop.

    Returns
    -------
    GraphBest
        The labellings, scores, bounds, and whether they are exact.

    Raises
    ------
    DataError
        If the method cannot be used: ``"tree"`` on a cycle, ``"elimination"`` beyond the budget
        (the message says the cost), ``"max-flow"`` on scores that are not binary and submodular.
    InfeasibleError
        If a sample has no feasible labelling.

    Examples
    --------
    Three nodes of which each two like to differ, with two labels:

    >>> p = GraphPotentials(
    ...     [[0.0, 0.1], [0.0, 0.0], [0.0, 0.5]], [[-1.0, 0.0], [0.0, -1.0]],
    ...     [[0, 1], [1, 2], [0, 2]], [0, 3])
    >>> found = graph_best(p)
    >>> found.labels.tolist(), found.scores.tolist(), found.exact.tolist(), found.method
    ([1, 0, 1], [-0.4], [True], ('elimination',))

    The relaxation cannot know that one of the three edges must be dissatisfied:

    >>> relaxed = graph_best(p, method="lp")
    >>> relaxed.scores.tolist(), relaxed.bounds.round(6).tolist(), relaxed.exact.tolist()
    ([-0.4], [0.3], [False])
    """
    one_of(method, _BEST)
    at_least(budget, 1, "budget")
    at_least(max_iterations, 1, "max_iterations")
    if time_limit is not None and not time_limit > 0:
        raise DataError(f"time_limit is {time_limit}; it must be above 0 seconds, or None")
    if not mip_gap >= 0:
        raise DataError(f"mip_gap is {mip_gap}; it must be at least 0")
    found = Solver(p, budget, max_iterations, time_limit, mip_gap).solve(method, exact)
    require_feasible(p, found.bounds)
    return found


class Solver:
    """One call of graph_best: infeasible samples end with bound -inf instead of an error."""

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
        n_samples = len(p.offsets) - 1
        self.labels = np.zeros(len(p.node), np.int32)
        self.scores = np.full(n_samples, -np.inf)
        self.bounds = np.full(n_samples, -np.inf)
        self.exact = np.zeros(n_samples, np.bool_)
        self.method = [""] * n_samples
        self.graph = MessageGraph.of(self.p)
        self.tolerance = _tolerance(self.p)
        empty = ~np.isfinite(self.p.node).any(axis=1)
        self.open = np.ones(n_samples, np.bool_)
        self.open[np.searchsorted(p.offsets, np.flatnonzero(empty), side="right") - 1] = False
        self.order, self.edge_offsets = self.p.by_sample()

    def solve(self, method: str, exact: bool) -> GraphBest:
        if method == "auto":
            self.automatic()
        elif method == "tree":
            require_forests(self.graph)
            self.messages(self.open, "tree")
        elif method == "elimination":
            chosen = np.flatnonzero(self.open).tolist()
            self.eliminate(chosen, plans_within(self.p, chosen, self.budget))
        elif method == "dual":
            self.messages(self.open, "dual")
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
        return GraphBest(self.labels, self.scores, self.bounds, self.exact, tuple(self.method))

    def automatic(self) -> None:
        forests = self.open & self.graph.forest
        self.messages(forests, "tree")
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
        self.messages(rest, "dual")

    def part(self, s: int) -> GraphPotentials:
        return self.p.part(s, self.order[self.edge_offsets[s] : self.edge_offsets[s + 1]])

    def rows(self, s: int) -> slice:
        return slice(self.p.offsets[s], self.p.offsets[s + 1])

    def messages(self, chosen: Bools, name: str) -> None:
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
            self.method[s] = name

    def eliminate(self, chosen: list[int], plans: list[tuple[elimination.Plan, bool]]) -> None:
        for group in elimination.groups(self.p, chosen, plans, self.budget):
            labels, scores = group.best()
            for s, own, score in zip(group.samples, labels, scores, strict=True):
                self.labels[self.rows(s)] = own
                self.scores[s] = self.bounds[s] = score
                self.exact[s] = True
                self.method[s] = "elimination"

    def flow(self, s: int) -> None:
        labels, score, bound = max_flow(self.part(s), self.tolerance[s])
        self.labels[self.rows(s)] = labels
        self.scores[s], self.bounds[s] = score, bound
        self.exact[s] = bound - score <= self.tolerance[s]
        self.method[s] = "max-flow"

    def relaxation(self, s: int) -> None:
        part = self.part(s)
        found = linear_relaxation(part)
        self.method[s] = "lp"
        if found is None:
            self.open[s] = False
            return
        labels, score = improved(part, MessageGraph.of(part), found[0])
        self.labels[self.rows(s)] = labels
        self.scores[s], self.bounds[s] = score[0], found[1]
        self.exact[s] = found[1] - score[0] <= self.tolerance[s]

    def integer(self, s: int) -> None:
        part = self.part(s)
        if self.method[s] == "":  # a bound and a labelling in case the time does not suffice
            alone = np.zeros(len(self.open), np.bool_)
            alone[s] = True
            self.messages(alone, "dual")
        self.method[s] = "ilp"
        found = integer_program(part, self.time_limit, self.mip_gap)
        if found is None:
            self.open[s] = False
            return
        labels, bound, finished = found
        self.bounds[s] = min(self.bounds[s], bound)
        if labels is not None:
            score = labelling_scores(part, labels)[0]
            if score > self.scores[s]:
                self.labels[self.rows(s)] = labels
                self.scores[s] = score
        close = self.bounds[s] - self.scores[s] <= self.tolerance[s]
        self.exact[s] = close or (finished and self.mip_gap == 0)


def elimination_cost(p: GraphPotentials) -> tuple[Int64s, Float64s]:
    """Estimate what variable elimination would cost, without running it.

    Parameters
    ----------
    p : GraphPotentials
        The scores.

    Returns
    -------
    widths : int64, shape (S,)
        Width of the best order of elimination found: an upper bound on the treewidth of the graph.
    entries : float64, shape (S,)
        Number of entries of all tables, each of 8 bytes; time is proportional to it.

    Examples
    --------
    A cycle of four nodes with ten labels has treewidth 2:

    >>> p = GraphPotentials(
    ...     np.zeros((4, 10)), np.zeros((10, 10)), [[0, 1], [1, 2], [2, 3], [3, 0]], [0, 4])
    >>> widths, entries = elimination_cost(p)
    >>> widths.tolist(), entries.tolist()
    ([2], [2110.0])
    """
    plans = [plan for plan, _ in elimination.plans(p, range(len(p.offsets) - 1)) if plan]
    widths = np.array([plan.width for plan in plans], np.int64)
    return widths, np.array([float(plan.entries) for plan in plans])


def _tolerance(p: GraphPotentials) -> Float64s:
    """Gap of each sample that counts as none: 1e-6, and rounding errors of the sum of scores."""
    n_samples = len(p.offsets) - 1
    sample = np.repeat(np.arange(n_samples), np.diff(p.offsets))
    size = np.where(np.isfinite(p.node), np.abs(p.node), 0.0).max(axis=1)
    tables = np.where(np.isfinite(p.pair), np.abs(p.pair), 0.0).max(axis=(1, 2), initial=0.0)
    total = np.zeros(n_samples)
    total += np.bincount(sample, size, n_samples)
    total += np.bincount(sample[p.edges[:, 0]], tables[p.types], n_samples)
    return 1e-6 + 1e-12 * total
