r"""Max-flow: the best labelling of submodular graphs of two labels a node.

Let every node have at most two labels left, 0 and 1 in their natural order. A table is submodular
if it likes its ends to agree, :math:`T(0, 0) + T(1, 1) \ge T(0, 1) + T(1, 0)`. The score is then a
constant less the value of a cut between a source (on the side of the nodes labelled 0) and a sink:

.. math::

    T(y_a, y_b) = k - u_a y_a - u_b y_b - x\,[y_a = 0, y_b = 1] - x'\,[y_a = 1, y_b = 0],
    \qquad x, x' \ge 0,

and the least cut is found by a maximal flow (Kolmogorov & Zabih, *What energy functions can be
minimized via graph cuts?*, PAMI 2004). A forbidden pair has infinite capacity. The
value of the flow that :mod:`trellis.kernels.max_flow` finds bounds the score, its cut is the
labelling, and both meet but for rounding.
"""

from __future__ import annotations

import numpy as np

from trellis.arrays import Float64s, Int32s, Int64s, for_kernels
from trellis.structures.graph_potentials import GraphPotentials
from trellis.structures.message_graph import labelling_scores

__all__ = ["max_flow", "unfit_for_max_flow"]


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


def max_flow(p: GraphPotentials) -> tuple[Int32s, float, float]:
    """Labels, score and bound of one sample that is fit (:func:`unfit_for_max_flow`)."""
    from trellis.kernels.max_flow import least_cut

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

    # Cutting source -> v labels v with 1, cutting v -> sink labels it with 0. A node of one label
    # costs the same on both sides, so nothing of it flows.
    edges = for_kernels(p.edges)
    zeros, left = least_cut(edges, np.maximum(forward, 0.0), backward, rise)
    flow = np.maximum(rise, 0.0).sum() - np.maximum(left, 0.0).sum()
    y = np.where(zeros, labels[:, 0], labels[:, 1]).astype(np.int32)
    return y, float(labelling_scores(p, y)[0]), float(-constant - flow)
