"""Random spanning trees of graphs, cut into connected pieces.

A tree grows from a random node over a random edge of its frontier at a time until its component is
spanned. Its n − 1 edges, in depth-first order, are then cut systematically: with a random start u
the k-th is cut if ⌊k q + u⌋ > ⌊(k − 1) q + u⌋, so each is cut with probability q, and cuts are
spread evenly. With q = (n / n′ − 1) / (n − 1) there are n / n′ pieces on average, of mean size n′;
on a path they are blocks of about n′ nodes with a short one at one end, as on chains.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import allocating, kernel, subkernel

__all__ = ["adjacency", "spanning_pieces"]

Array = np.ndarray[Any, Any]


@subkernel
def _uniform(state: Array) -> float:
    """Next number in [0, 1) of a splitmix64 generator: NumPy's would be a state of its own."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.float64(z >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@kernel
def adjacency(n: int, edges: Array) -> tuple[Array, Array]:
    """Edges at each node in CSR: bounds (n + 1,) and edge numbers (2 m,)."""
    bounds = np.zeros(n + 1, np.int64)
    for e in range(edges.shape[0]):
        bounds[edges[e, 0] + 1] += 1
        bounds[edges[e, 1] + 1] += 1
    for v in range(n):
        bounds[v + 1] += bounds[v]
    at = bounds[:-1].copy()
    around = np.empty(2 * edges.shape[0], np.int64)
    for e in range(edges.shape[0]):
        for end in range(2):
            v = edges[e, end]
            around[at[v]] = e
            at[v] += 1
    return bounds, around


@kernel
def spanning_pieces(
    offsets: Array, edges: Array, bounds: Array, around: Array, size: float, seed: int
) -> tuple[Array, Array, Array, Array, Array, Array, Array]:
    """Pieces of random spanning trees, of mean size ``size`` (infinite: whole components).

    Returns order (N,), the nodes piece by piece with parents first; parent (N,), their places in
    order, edge (N,) and down (N,) as in a Forest; tree (K + 1,), the bounds of the pieces; their
    samples (K,); and the piece of each node (N,).
    """
    n = offsets[offsets.size - 1]
    state = np.zeros(1, np.uint64)
    state[0] = np.uint64(seed)
    above = np.full(n, -1, np.int64)  # the edge to the parent
    grown = np.empty(n, np.int64)  # nodes of a tree in the order of growth
    preorder = np.empty(n, np.int64)
    piece = np.empty(n, np.int64)
    sample = np.empty(n, np.int64)
    frontier = np.empty(2 * edges.shape[0], np.int64)
    seen = np.zeros(n, np.bool_)
    child_start = np.zeros(n, np.int64)
    child_end = np.zeros(n, np.int64)
    children = np.empty(n, np.int64)
    stack = np.empty(n, np.int64)
    n_pieces = 0
    done = 0
    for s in range(offsets.size - 1):
        length = offsets[s + 1] - offsets[s]
        turn = np.int64(_uniform(state) * length)
        for step in range(length):  # start anywhere, then wherever nodes are left
            root: Any = offsets[s] + (turn + step) % length
            if seen[root]:
                continue
            # 1. Grow.
            seen[root] = True
            grown[0] = root
            size_now = 1
            n_frontier = 0
            v: Any = root
            while True:
                for p in range(bounds[v], bounds[v + 1]):
                    frontier[n_frontier] = around[p]
                    n_frontier += 1
                v = -1
                while v < 0 and n_frontier > 0:
                    i = np.int64(_uniform(state) * n_frontier)
                    e = frontier[i]
                    n_frontier -= 1
                    frontier[i] = frontier[n_frontier]
                    if not seen[edges[e, 0]]:
                        v = edges[e, 0]
                    elif not seen[edges[e, 1]]:
                        v = edges[e, 1]
                if v < 0:
                    break
                seen[v] = True
                above[v] = e
                grown[size_now] = v
                size_now += 1
            # 2. Children of each node, in the order of growth.
            for g in grown[:size_now]:
                child_end[g] = 0
            for g in grown[1:size_now]:
                child_end[_parent(edges, above, g)] += 1
            total: Any = 0
            for g in grown[:size_now]:
                child_start[g] = total
                total += child_end[g]
                child_end[g] = child_start[g]
            for g in grown[1:size_now]:
                up = _parent(edges, above, g)
                children[child_end[up]] = g
                child_end[up] += 1
            # 3. Cut, in depth-first order.
            q = 0.0
            if size_now > size:
                q = (size_now / size - 1.0) / (size_now - 1.0)
            u = _uniform(state)
            stack[0] = root
            top = 1
            k = 0
            while top > 0:
                top -= 1
                v = stack[top]
                sample[v] = s
                preorder[done] = v
                done += 1
                if v == root or np.floor(k * q + u) > np.floor((k - 1) * q + u):
                    above[v] = -1
                    piece[v] = n_pieces
                    n_pieces += 1
                else:
                    piece[v] = piece[_parent(edges, above, v)]
                k += 1
                for c in range(child_end[v] - 1, child_start[v] - 1, -1):
                    stack[top] = children[c]
                    top += 1
    return _by_piece(edges, preorder, piece, above, sample, n_pieces)


@subkernel
def _parent(edges: Array, above: Array, v: int) -> int:
    """The other end of the edge above a node."""
    end: int = edges[above[v], 0] + edges[above[v], 1] - v
    return end


@allocating
def _by_piece(
    edges: Array,
    preorder: Array,
    piece: Array,
    above: Array,
    sample: Array,
    n_pieces: int,
) -> tuple[Array, Array, Array, Array, Array, Array, Array]:
    n = preorder.size
    tree = np.zeros(n_pieces + 1, np.int64)
    for i in range(n):
        tree[piece[i] + 1] += 1
    for k in range(n_pieces):
        tree[k + 1] += tree[k]
    at = tree[:-1].copy()
    order = np.empty(n, np.int64)
    place = np.empty(n, np.int64)
    owner = np.empty(n_pieces, np.int64)
    for i in range(n):
        v = preorder[i]
        order[at[piece[v]]] = v
        place[v] = at[piece[v]]
        at[piece[v]] += 1
        owner[piece[v]] = sample[v]
    parent = np.full(n, -1, np.int64)
    edge = np.full(n, -1, np.int64)
    down = np.zeros(n, np.bool_)
    for i in range(n):
        if above[order[i]] >= 0:
            up = _parent(edges, above, order[i])
            parent[i] = place[up]
            edge[i] = above[order[i]]
            down[i] = edges[edge[i], 0] == up
    return order, parent, edge, down, tree, owner, piece
