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
"""

from __future__ import annotations

import numpy as np

from trellis.arrays import Float64s, Int32s, Int64s, for_kernels
from trellis.structures.graph_potentials import GraphPotentials
from trellis.structures.message_graph import MessageGraph, both_ways

__all__ = ["dual_bound", "dual_decomposition", "improved"]


def dual_decomposition(
    p: GraphPotentials, graph: MessageGraph, max_iterations: int, tolerance: Float64s
) -> tuple[Int32s, Float64s, Float64s, Int64s]:
    """Labels (N,), scores (S,), bounds (S,) and numbers of turns (S,).

    The potentials must be arc consistent (:func:`~trellis.structures.message_graph.supported`),
    with a label left at every node. A score is -inf where no labelling was found.
    """
    from trellis.kernels import loopy

    return loopy.max_product(
        for_kernels(p.node), both_ways(p.pair), graph.arguments(p), graph.forest, max_iterations,
        tolerance,
    )  # fmt: skip


def improved(
    p: GraphPotentials, graph: MessageGraph, labels: Int32s, sweeps: int = 100
) -> tuple[Int32s, Float64s]:
    """Change one label at a time while the score rises: labels (N,) and scores (S,)."""
    from trellis.kernels import loopy

    node = for_kernels(p.node)
    return loopy.improve(node, both_ways(p.pair), graph.arguments(p), labels, sweeps)


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
