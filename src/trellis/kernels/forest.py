"""Rooted forests as kernels take them, and the depth-first order of their nodes in linear time.

Edges (E, 2) join nodes 0..N-1. Every tree gets its node of lowest number as root; the children of
a node come in the order of their edges. Nothing is checked here but cycles.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from trellis.kernels._jit import kernel

__all__ = ["Forest", "depth_first"]

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Forest(NamedTuple):
    """Nodes in an order in which each comes after its parent.

    At each place of the order: the node, the place of its parent (−1 at a root), the edge to it
    (−1), and whether the parent is the first end of that edge. ``types`` (E,) is the table of pair
    scores of each edge.
    """

    order: Int64s
    parent: Int64s
    edge: Int64s
    down: Bools
    types: Int64s


@kernel
def depth_first(
    n_nodes: int, edges: Int64s
) -> tuple[int, Int64s, Int64s, Int64s, Bools, Int64s, int]:
    """Return (bad, order, parent, edge, down, tree, n_trees) as :class:`Forest` holds them.

    ``bad`` is the first edge found to close a cycle (the other arrays then mean nothing), or -1.
    Only the first ``n_trees + 1`` entries of ``tree`` count.
    """
    n_edges = edges.shape[0]
    # Adjacency in compressed rows, by counting: ``half`` h = 2 e + side is edge e seen from the
    # end ``edges[e, side]``.
    start = np.zeros(n_nodes + 1, np.int64)
    for e in range(n_edges):
        start[edges[e, 0] + 1] += 1
        start[edges[e, 1] + 1] += 1
    for v in range(n_nodes):
        start[v + 1] += start[v]
    fill = start[:-1].copy()
    half = np.empty(2 * n_edges, np.int64)
    for e in range(n_edges):
        for side in range(2):
            v = edges[e, side]
            half[fill[v]] = 2 * e + side
            fill[v] += 1

    order = np.empty(n_nodes, np.int64)
    parent = np.empty(n_nodes, np.int64)
    edge = np.empty(n_nodes, np.int64)
    down = np.zeros(n_nodes, np.bool_)
    tree = np.zeros(n_nodes + 1, np.int64)
    n_trees = 0
    seen = np.zeros(n_nodes, np.bool_)
    # A node waits with the place of its parent in the order and the half edge it came by.
    waiting = np.empty((n_nodes, 3), np.int64)
    placed = 0
    for root in range(n_nodes):
        if seen[root]:
            continue
        seen[root] = True
        waiting[0, 0] = root
        waiting[0, 1] = waiting[0, 2] = -1
        n_waiting = 1
        while n_waiting > 0:
            n_waiting -= 1
            v = waiting[n_waiting, 0]
            came = waiting[n_waiting, 2]
            order[placed] = v
            parent[placed] = waiting[n_waiting, 1]
            edge[placed] = came // 2 if came >= 0 else -1
            down[placed] = came >= 0 and came % 2 == 0
            for at in range(start[v + 1] - 1, start[v] - 1, -1):
                h = half[at]
                if came >= 0 and h // 2 == came // 2:
                    continue
                u = edges[h // 2, 1 - h % 2]
                if seen[u]:
                    return h // 2, order, parent, edge, down, tree, n_trees
                seen[u] = True
                waiting[n_waiting, 0] = u
                waiting[n_waiting, 1] = placed
                waiting[n_waiting, 2] = h
                n_waiting += 1
            placed += 1
        n_trees += 1
        tree[n_trees] = placed
    return -1, order, parent, edge, down, tree, n_trees
