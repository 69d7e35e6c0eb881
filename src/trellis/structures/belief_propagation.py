r"""Belief propagation: marginals, exact on forests and approximate on graphs with cycles.

Node v tells its neighbour w what it makes of w's labels, from all it has heard but from w:

.. math::

    m_{v \to w}(j) = \log \sum_i \exp\Big(T_{vw}(i, j) + n_v(i)
        + \sum_{u \ne w} m_{u \to v}(i)\Big).

Nodes are visited breadth-first, backwards and forwards by turns, until no message changes any more
(not every graph with cycles gets there; damping, the share of the old message that is kept, helps).
The beliefs are the products of what arrives, and the Bethe approximation of the normaliser is

.. math::

    \log Z = \sum_v (1 - d_v) \log Z_v + \sum_{ab} \log Z_{ab},

where :math:`d_v` is the degree of v and :math:`Z_v` and :math:`Z_{ab}` are the normalisers of the
beliefs (Yedidia, Freeman & Weiss, *Constructing free-energy approximations and generalized belief
propagation algorithms*, 2005). On forests all of it is exact after one turn.
"""

from __future__ import annotations

import numpy as np

from trellis.arrays import for_kernels
from trellis.structures.graph_potentials import GraphPotentials
from trellis.structures.message_graph import MessageGraph, both_ways
from trellis.structures.results import Marginals

__all__ = ["belief_propagation"]


def belief_propagation(
    p: GraphPotentials,
    graph: MessageGraph,
    max_iterations: int,
    damping: float,
    tolerance: float,
) -> Marginals:
    """Marginals of nodes and pairs.

    The potentials must be arc consistent (:func:`~trellis.structures.message_graph.supported`),
    with a label left at every node.
    """
    from trellis.kernels import loopy

    top = p.pair.max(axis=(1, 2), initial=-np.inf)
    top[~np.isfinite(top)] = 0.0  # a table that forbids everything, of no edge
    exponentials = np.exp(p.pair - top[:, None, None])
    layout = graph.arguments(p)
    scores = for_kernels(p.node)
    messages, converged, iterations = loopy.sum_product(
        scores,
        both_ways(p.pair),
        both_ways(exponentials),
        top,
        layout,
        np.where(graph.forest, 0.0, damping),
        max_iterations,
        tolerance,
    )
    node, pair, log_z = loopy.beliefs(
        scores, for_kernels(p.pair), exponentials, top, layout, p.owner, messages
    )
    return Marginals(
        log_z,
        node,
        pair,
        exact=graph.forest,
        converged=converged | graph.forest,
        n_iterations=iterations,
    )
