r"""Dual decomposition: a labelling of high score and an upper bound on the best.

For any messages :math:`m` into the ends of the edges,

.. math::

    \max_y s(y) \;\le\; \sum_v \max_i \Big(n_v(i) + \sum_{w} m_{w \to v}(i)\Big)
      + \sum_{ab} \max_{i, j} \big(T_{ab}(i, j) - m_{b \to a}(i) - m_{a \to b}(j)\big),

since the messages cancel in every labelling. The least such bound is the value of the linear
relaxation (:mod:`~trellis.structures.relaxation`). It is approached by the sequential
tree-reweighted algorithm (TRW-S; Kolmogorov, *Convergent tree-reweighted message passing for energy
minimization*, PAMI 2006): block ascent along chains, whose bound never rises. It may stop a little
above the least bound. After each turn a labelling is decoded node by node and then improved one
label at a time. Where bound and score meet the labelling is the best; on forests they meet in the
first turn.

Where they do not meet, the labelling is improved by moves on random trees
(:mod:`trellis.kernels.tree_moves`). Messages also bound what can be reached with a certain label at
a certain node; labels that cannot keep up with the labelling found are in no best one. Often few
nodes are left with a choice, and other methods decide on those.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from trellis.arrays import Bools, Float64s, Int32s, Int64s, for_kernels
from trellis.structures.graph_potentials import GraphPotentials
from trellis.structures.message_graph import (
    MessageGraph,
    both_ways,
    labelling_scores,
    subset,
    supported,
)

__all__ = ["DualDecomposition", "dual_bound", "moved"]


@dataclass(eq=False)
class DualDecomposition:
    """Dual ascent on stacked graphs, which can be taken up again.

    The potentials must be arc consistent (:func:`~trellis.structures.message_graph.supported`),
    with a label left at every node. A score is -inf where no labelling was found.
    """

    p: GraphPotentials
    graph: MessageGraph
    state: Any
    """Messages, labels, scores and bounds (:class:`trellis.kernels.loopy.Ascent`)."""

    @classmethod
    def of(cls, p: GraphPotentials, graph: MessageGraph) -> Self:
        """Begin without messages."""
        from trellis.kernels.loopy import Ascent

        (n, n_labels), n_samples = p.node.shape, p.n_samples
        state = Ascent(
            np.zeros((2 * len(p.edges), n_labels)),
            np.zeros(n, np.int32),
            np.full(n_samples, -np.inf),
            np.full(n_samples, np.inf),
            np.full((n, n_labels), np.inf),
            np.full(n_samples, np.inf),
            np.full(n_samples, np.inf),
            np.zeros(n_samples, np.int64),
        )
        return cls(p, graph, state)

    def part(self, chosen: Bools) -> Self:
        """Some of the samples."""
        if chosen.all():
            return self
        q, rows, edges = subset(self.p, chosen)
        old, n_labels = self.state, q.node.shape[1]
        state = type(old)(
            old.messages.reshape(-1, 2, n_labels)[edges].reshape(-1, n_labels),
            old.labels[rows], old.scores[chosen], old.bounds[chosen], old.ceilings[rows],
            old.last[chosen], old.before[chosen], old.turns[chosen],
        )  # fmt: skip
        return type(self)(q, MessageGraph.of(q), state)

    def ascend(self, max_iterations: int, tolerance: Float64s) -> None:
        """Go on until there have been so many turns, or the gap is below the tolerance (S,)."""
        from trellis.kernels import loopy

        loopy.max_product(
            for_kernels(self.p.node), both_ways(self.p.pair), self.graph.arguments(self.p),
            self.graph.forest, max_iterations, tolerance, self.state,
        )  # fmt: skip

    def move(self, rounds: Int64s, tolerance: Float64s) -> None:
        """Improve the labellings by rounds (S,) of moves, until the gap is below the tolerance."""
        state = self.state
        labels, scores = moved(self.p, self.graph, state.labels, rounds, state.bounds, tolerance)
        state.labels[:], state.scores[:] = labels, scores

    def narrow(self, tolerance: Float64s) -> None:
        """Forbid the labels that no labelling better than those found can have."""
        state = self.state
        kept = state.ceilings >= (state.scores - tolerance)[self.p.owner][:, None]
        kept[np.arange(len(kept)), state.labels] = True
        self.p = supported(self.p.constrained(kept))


def moved(
    p: GraphPotentials,
    graph: MessageGraph,
    labels: Int32s,
    rounds: Int64s,
    bounds: Float64s,
    tolerance: Float64s,
) -> tuple[Int32s, Float64s]:
    """Improve labellings by rounds (S,) of moves on trees: labels (N,) and scores (S,).

    A sample is done when its score is within the tolerance (S,) of its bound (S,).
    """
    known = labelling_scores(p, labels)
    possible = np.isfinite(known)
    found = _moved(p, graph, labels, np.where(possible, rounds, 0), bounds, tolerance)
    for s in np.flatnonzero(~possible & (rounds > 0)).tolist():
        one, rows = slice(s, s + 1), p.rows(s)
        q = _priced(p.alone(s))
        layout = MessageGraph.of(q)
        found[rows] = _moved(q, layout, labels[rows], rounds[one], bounds[one], tolerance[one])
    scores = labelling_scores(p, found)
    worse = scores < known  # by rounding
    return np.where(worse[p.owner], labels, found), np.maximum(scores, known)


def _moved(
    p: GraphPotentials,
    graph: MessageGraph,
    labels: Int32s,
    rounds: Int64s,
    bounds: Float64s,
    tolerance: Float64s,
) -> Int32s:
    from trellis.kernels.tree_moves import move_trees

    scores = for_kernels(p.node), both_ways(p.pair)
    layout = graph.arguments(p)
    return move_trees(*scores, layout, for_kernels(labels), rounds, bounds, tolerance)


def _priced(p: GraphPotentials) -> GraphPotentials:
    """A sample in which what was forbidden costs more than all else together can bring.

    The better a labelling, the less of it that was forbidden.
    """
    allowed = np.isfinite(p.node), np.isfinite(p.pair)
    node, pair = np.where(allowed[0], p.node, 0.0), np.where(allowed[1], p.pair, 0.0)
    most = np.abs(node).max(axis=1).sum() + np.abs(pair).max(axis=(1, 2))[p.types].sum()
    price = -2.0 * most - 1.0
    return p.with_arrays(
        node=np.where(allowed[0], node, price), pair=np.where(allowed[1], pair, price)
    )


def dual_bound(p: GraphPotentials, into_first: Float64s, into_second: Float64s) -> float:
    """Bound of the only sample from messages (E, L) into the first and second ends of its edges."""
    node = p.node.copy()
    np.add.at(node, p.edges[:, 0], into_first)
    np.add.at(node, p.edges[:, 1], into_second)
    tables = p.pair[p.types] - into_first[:, :, None] - into_second[:, None, :]
    # A pair of labels counts only if both labels may be.
    allowed = np.isfinite(p.node)
    both = allowed[p.edges[:, 0]][:, :, None] & allowed[p.edges[:, 1]][:, None, :]
    tables[~both] = -np.inf
    return float(node.max(axis=1).sum() + tables.max(axis=(1, 2)).sum())
