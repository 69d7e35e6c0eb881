r"""Belief propagation: marginals, exact on forests and approximate on graphs with cycles.

Node v tells its neighbour w what it makes of w's labels, from all it has heard but from w:

.. math::

    m_{v \to w}(j) = \log \sum_i \exp\Big(T_{vw}(i, j) + n_v(i)
        + \sum_{u \ne w} m_{u \to v}(i)\Big).

Nodes are visited breadth-first, backwards and forwards by turns, until no message changes any more.
Not every graph with cycles gets there. Damping, the share of the old message that is kept, makes
such turns slower, but settles some messages that would go round for ever.
The beliefs are the products of what arrives, and the Bethe approximation of the normaliser is

.. math::

    \log Z = \sum_v (1 - d_v) \log Z_v + \sum_{ab} \log Z_{ab},

where :math:`d_v` is the degree of v and :math:`Z_v` and :math:`Z_{ab}` are the normalisers of the
beliefs (Yedidia, Freeman & Weiss, *Constructing free-energy approximations and generalized belief
propagation algorithms*, 2005). On forests all of it is exact after one turn.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from trellis.arrays import for_kernels
from trellis.structures.graph_potentials import GraphPotentials
from trellis.structures.message_graph import MessageGraph, both_ways
from trellis.structures.results import Marginals

__all__ = ["belief_propagation", "tell_unsettled"]


def belief_propagation(
    p: GraphPotentials,
    graph: MessageGraph,
    max_iterations: int,
    damping: Sequence[float],
    tolerance: float,
) -> Marginals:
    """Marginals of nodes and pairs.

    The potentials must be arc consistent (:func:`~trellis.structures.message_graph.supported`),
    with a label left at every node. The turns are shared out evenly among the values of
    ``damping``, from the first on: each goes on from the messages that did not settle before.
    """
    from trellis.kernels import loopy

    top = p.pair.max(axis=(1, 2), initial=-np.inf)
    top[~np.isfinite(top)] = 0.0  # a table that forbids everything, of no edge
    exponentials = np.exp(p.pair - top[:, None, None])
    layout = graph.arguments(p)
    scores = for_kernels(p.node)
    tables, turned = both_ways(p.pair), both_ways(exponentials)
    messages = np.zeros((2 * len(p.edges), p.node.shape[1]))
    converged, iterations = np.zeros(p.n_samples, np.bool_), np.zeros(p.n_samples, np.int64)
    left = max_iterations
    for i, share in enumerate(damping):
        turns = -(-left // (len(damping) - i))  # those left over go to the first
        left -= turns
        settled, taken = loopy.sum_product(
            scores,
            tables,
            turned,
            top,
            layout,
            np.where(graph.forest, 0.0, share),
            np.where(converged, 0, turns),
            tolerance,
            messages,
        )
        converged |= settled | graph.forest
        iterations += taken
        if converged.all():
            break
    node, pair, log_z = loopy.beliefs(
        scores, for_kernels(p.pair), exponentials, top, layout, p.owner, messages
    )
    return Marginals(
        log_z, node, pair, exact=graph.forest, converged=converged, n_iterations=iterations
    )


def tell_unsettled(n: int, total: int, what: str, stacklevel: int = 3) -> None:
    """Warn that the messages of n samples of so many did not settle, if there are any."""
    if n:
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            f"belief propagation did not converge on {n} of {total} graphs: {what}",
            ConvergenceWarning,
            stacklevel,
        )
