r"""Max-flow: the best labelling of submodular graphs of two labels a node.

Let every node have at most two labels left, 0 and 1 in their natural order. A table is submodular
if it likes its ends to agree, :math:`T(0, 0) + T(1, 1) \ge T(0, 1) + T(1, 0)`. The score is then a
constant less the value of a cut between a source (on the side of the nodes labelled 0) and a sink:

.. math::

    T(y_a, y_b) = k - u_a y_a - u_b y_b - x\,[y_a = 0, y_b = 1] - x'\,[y_a = 1, y_b = 0],
    \qquad x, x' \ge 0,

and the least cut is found by a maximal flow (Kolmogorov & Zabih, *What energy functions can be
minimized via graph cuts?*, PAMI 2004). A forbidden pair has infinite capacity.

SciPy's flows are integers below :math:`2^{31}`. Capacities are therefore scaled and rounded *down*,
so that the flow is one of the real network and its value is a true bound. What rounding left is
found by further rounds in the residual network, scaled by the gap that is still open: since no
more than the gap can flow, larger capacities are cut off at it, infinite ones too.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from trellis.arrays import Float64s, Int32s, Int64s
from trellis.structures.graph_potentials import GraphPotentials
from trellis.structures.message_graph import labelling_scores

__all__ = ["max_flow", "unfit_for_max_flow"]


_MOST = 2**30 - 2  # twice this is below the largest of SciPy's integers
_ROUNDS = 6


def unfit_for_max_flow(p: GraphPotentials) -> str:
    """Say why the arc-consistent scores of one sample are not binary and submodular, or ''."""
    allowed = np.isfinite(p.node)
    many = np.flatnonzero(allowed.sum(axis=1) > 2)
    if len(many) > 0:
        return f"node {many[0]} has {allowed[many[0]].sum()} labels to choose from, not two"
    _, _, excess, size = _corners(p)
    against = np.flatnonzero(excess < -1e-12 * size)
    if len(against) > 0:
        a, b = p.edges[against[0]]
        return f"the edge between nodes {a} and {b} likes its ends to differ: it is not submodular"
    return ""


def _corners(p: GraphPotentials) -> tuple[Int64s, Float64s, Float64s, Float64s]:
    """Two labels of each node, the four scores of each edge, and how much it likes agreement.

    The corners are -T(0,0), -T(0,1), -T(1,0), -T(1,1). A node of one label has it twice.
    """
    allowed = np.isfinite(p.node)
    last = p.node.shape[1] - 1 - allowed[:, ::-1].argmax(axis=1)
    labels = np.stack([allowed.argmax(axis=1), last], axis=1)
    a, b = labels[p.edges[:, 0]], labels[p.edges[:, 1]]
    corners = -p.pair[p.types[:, None, None], a[:, :, None], b[:, None, :]].reshape(-1, 4)
    c00, c01, c10, c11 = corners.T
    agree, differ = c00 + c11, c01 + c10
    with np.errstate(invalid="ignore"):  # inf - inf: both forbidden, which nothing can agree on
        excess = np.where(np.isinf(agree), -np.inf, differ - agree)
    fixed = (a[:, 0] == a[:, 1]) | (b[:, 0] == b[:, 1])
    excess[fixed] = 0.0
    size = np.where(np.isfinite(corners), np.abs(corners), 0.0).max(axis=1, initial=1.0)
    return labels, corners, excess, size


def max_flow(p: GraphPotentials, tolerance: float) -> tuple[Int32s, float, float]:
    """Labels, score and bound of one sample that is fit (:func:`unfit_for_max_flow`)."""
    labels, corners, excess, _ = _corners(p)
    n = len(labels)
    unary = -p.node[np.arange(n)[:, None], labels]  # the cost of each node's two labels
    rise = unary[:, 1] - unary[:, 0]
    constant = unary[:, 0].sum()
    c00, c01, c10, c11 = corners.T
    # All four corners are met exactly by each of these; which one is finite depends on the edge.
    with np.errstate(invalid="ignore"):
        by_c10 = np.isfinite(c10)
        rise_a = np.where(by_c10, c10 - c00, np.where(np.isfinite(c01), c11 - c01, c11 - c00))
        rise_b = np.where(by_c10, c11 - c10, np.where(np.isfinite(c01), c01 - c00, 0.0))
        forward = np.where(by_c10, excess, np.where(np.isfinite(c01), 0.0, np.inf))
    backward = np.where(by_c10, 0.0, np.inf)
    np.add.at(rise, p.edges[:, 0], rise_a)
    np.add.at(rise, p.edges[:, 1], rise_b)
    constant += c00.sum()
    constant += np.minimum(rise, 0.0).sum()

    # Cutting source -> v labels v with 1, cutting v -> sink labels it with 0.
    source, sink = n, n + 1
    every = np.arange(n)
    tails = np.concatenate([np.full(n, source), every, p.edges[:, 0]])
    heads = np.concatenate([every, np.full(n, sink), p.edges[:, 1]])
    # A node of one label costs the same on both sides, so nothing of it flows.
    there = np.concatenate([np.maximum(rise, 0.0), np.maximum(-rise, 0.0), np.maximum(forward, 0)])
    back = np.concatenate([np.zeros(2 * n), backward])
    flow, zeros = _least_cut(tails, heads, there, back, source, sink, tolerance)
    y = np.where(zeros[:n], labels[:, 0], labels[:, 1]).astype(np.int32)
    return y, float(labelling_scores(p, y)[0]), float(-constant - flow)


def _least_cut(
    tails: Int64s,
    heads: Int64s,
    there: Float64s,
    back: Float64s,
    source: int,
    sink: int,
    tolerance: float,
) -> tuple[float, npt.NDArray[np.bool_]]:
    """Value of a flow, and the nodes on the source's side of a cut of at most its value.

    ``there`` are the capacities from tails to heads, ``back`` those the other way.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow

    n = max(source, sink) + 1
    out, into = tails == source, heads == sink
    flow = np.zeros(len(tails))
    value = 0.0
    gap = min(there[out].sum(), there[into].sum())
    side = np.ones(n, np.bool_)
    side[sink] = False
    for _ in range(_ROUNDS):
        gap = max(gap, 1e-200)  # also if nothing can flow the cut is still to be found
        forward = _scaled(there - flow, gap)
        backward = _scaled(back + flow, gap)
        capacities = csr_array(
            (
                np.concatenate([forward, backward]),
                (np.concatenate([tails, heads]), np.concatenate([heads, tails])),
            ),
            shape=(n, n),
        )
        capacities.sum_duplicates()
        solved = maximum_flow(capacities, source, sink).flow
        flow += solved[tails, heads] * (gap / _MOST)
        value = float(flow[out].sum())
        residual = capacities - solved
        residual.eliminate_zeros()
        side[:] = False
        side[breadth_first_order(residual, source, return_predecessors=False)] = True
        leaving = there[side[tails] & ~side[heads]].sum() + back[~side[tails] & side[heads]].sum()
        gap = float(leaving - value)
        if gap <= tolerance:
            break
    return value, side


def _scaled(capacities: Float64s, most: float) -> Int32s:
    """Capacities as integers, rounded down; what exceeds the flow there can be is never used up."""
    # Rounding in the sums may leave a capacity a little below zero.
    scaled = np.floor(np.clip(capacities, 0.0, most) * (_MOST / most)).astype(np.int32)
    return np.where(capacities > most, np.int32(_MOST + 1), scaled)
