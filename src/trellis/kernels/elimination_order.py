"""Greedy orders of elimination: which node is next, and what is then around it.

A node that is eliminated leaves its neighbours behind as a clique. The neighbours of every node are
held as a sorted list in one pool; a list that has outgrown its place moves to the end of the pool.
The next node is that of the lowest key (and then number): the key is the number itself, the size of
its table, or how many edges its clique would add. Nodes wait in a heap in which entries that no
longer hold stay until they come up.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from trellis.kernels._jit import inner, kernel, subkernel

__all__ = ["FILL", "GIVEN", "SIZE", "greedy_order"]

Float64s = npt.NDArray[np.float64]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

GIVEN, SIZE, FILL = 0, 1, 2


@inner
def _entries(v: int, sizes: Float64s, pool: Int32s, place: Int64s, length: Int64s) -> float:
    """Size of the table of a node and its neighbours."""
    product = sizes[v]
    for at in range(place[v], place[v] + length[v]):
        product *= sizes[pool[at]]
    return float(product)


@inner
def _fill(v: int, pool: Int32s, place: Int64s, length: Int64s) -> float:
    """How many edges are missing between the neighbours of a node, each counted twice."""
    first, stop = place[v], place[v] + length[v]
    missing = 0
    for at in range(first, stop):
        w = pool[at]
        missing += length[v] - 1
        i, j = first, place[w]
        end = place[w] + length[w]
        while i < stop and j < end:
            if pool[i] == pool[j]:
                missing -= 1
                i += 1
                j += 1
            elif pool[i] < pool[j]:
                i += 1
            else:
                j += 1
    return float(missing)


@inner
def _sift_up(keys: Float64s, nodes: Int32s, n: int, key: float, v: int) -> None:
    """Put an entry into a heap of n others."""
    at = n
    while at > 0:
        above = (at - 1) >> 1
        if keys[above] < key or (keys[above] == key and nodes[above] <= v):
            break
        keys[at], nodes[at] = keys[above], nodes[above]
        at = above
    keys[at], nodes[at] = key, v


@inner
def _sift_down(keys: Float64s, nodes: Int32s, n: int) -> None:
    """Take the first entry of a heap of n out of it."""
    key, v = keys[n - 1], nodes[n - 1]
    at = 0
    while True:
        below = 2 * at + 1
        if below >= n - 1:
            break
        other = below + 1
        if other < n - 1 and (
            keys[other] < keys[below]
            or (keys[other] == keys[below] and nodes[other] < nodes[below])
        ):
            below = other
        if key < keys[below] or (key == keys[below] and v <= nodes[below]):
            break
        keys[at], nodes[at] = keys[below], nodes[below]
        at = below
    keys[at], nodes[at] = key, v


@subkernel
def _longer(values: Int32s, least: int) -> Int32s:
    """The same numbers with room for more."""
    more = np.empty(max(least, 2 * values.shape[0]), values.dtype)
    more[: values.shape[0]] = values
    return more


@kernel
def greedy_order(
    sizes: Float64s, edges: Int64s, limit: float, kind: int
) -> tuple[float, Int32s, Int64s, Int32s]:
    """Eliminate nodes of given numbers of labels (n,).

    Returns the entries of all tables, or -1 as soon as there are more than the limit; the order
    (n,); and the neighbours of ``order[i]`` at its turn, ``around[start[i]:start[i + 1]]``.
    """
    n, n_edges = sizes.shape[0], edges.shape[0]
    place, length = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for e in range(n_edges):
        length[edges[e, 0]] += 1
        length[edges[e, 1]] += 1
    for v in range(1, n):
        place[v] = place[v - 1] + length[v - 1]
    room = length.copy()
    used = 2 * n_edges
    pool = np.empty(2 * used + 16, np.int32)
    length[:] = 0
    for e in range(n_edges):
        for side in range(2):
            v = edges[e, side]
            pool[place[v] + length[v]] = edges[e, 1 - side]
            length[v] += 1
    for v in range(n):
        pool[place[v] : place[v] + length[v]].sort()

    current = np.empty(n)
    keys, nodes = np.empty(2 * n + 16), np.empty(2 * n + 16, np.int32)
    waiting = 0
    for v in range(n):
        current[v] = v
        if kind == SIZE:
            current[v] = _entries(v, sizes, pool, place, length)
        elif kind == FILL:
            current[v] = _fill(v, pool, place, length)
        _sift_up(keys, nodes, waiting, current[v], v)
        waiting += 1

    order = np.empty(n, np.int32)
    start = np.zeros(n + 1, np.int64)
    around = np.empty(2 * n_edges + 16, np.int32)
    asked = np.full(n, -1, np.int64)  # the turn at which the key of a node was last looked at
    gone = np.zeros(n, np.bool_)
    merged = np.empty(n, np.int32)
    total = 0.0
    turn = 0
    while waiting > 0:
        key, v = keys[0], nodes[0]
        _sift_down(keys, nodes, waiting)
        waiting -= 1
        if gone[v] or current[v] != key:  # an entry that was replaced
            continue
        total += _entries(v, sizes, pool, place, length)
        if total > limit:
            return -1.0, order, start, around
        gone[v] = True
        order[turn] = v
        start[turn + 1] = start[turn] + length[v]
        if start[turn + 1] > around.shape[0]:
            around = _longer(around, start[turn + 1])
        clique = around[start[turn] : start[turn + 1]]
        for at in range(length[v]):
            clique[at] = pool[place[v] + at]
        for w in clique:
            # The neighbours of w and of v together, without these two.
            i, stop = place[w], place[w] + length[w]
            j, n_merged = 0, 0
            while i < stop or j < clique.shape[0]:
                if j == clique.shape[0] or (i < stop and pool[i] < clique[j]):
                    u = pool[i]
                    i += 1
                else:
                    u = clique[j]
                    if i < stop and pool[i] == u:
                        i += 1
                    j += 1
                if u not in (v, w):
                    merged[n_merged] = u
                    n_merged += 1
            if n_merged > room[w]:
                if used + n_merged > pool.shape[0]:
                    pool = _longer(pool, used + n_merged)
                place[w], room[w] = used, n_merged
                used += n_merged
            length[w] = n_merged
            for at in range(n_merged):
                pool[place[w] + at] = merged[at]
        for w in clique if kind != GIVEN else clique[:0]:
            for step in range(-1, length[w] if kind == FILL else 0):
                u = w if step < 0 else pool[place[w] + step]
                if asked[u] == turn:
                    continue
                asked[u] = turn
                if kind == FILL:
                    new = _fill(u, pool, place, length)
                else:
                    new = _entries(u, sizes, pool, place, length)
                if new == current[u]:
                    continue
                current[u] = new
                if waiting == keys.shape[0]:
                    more = np.empty(2 * waiting)
                    more[:waiting] = keys
                    keys, nodes = more, _longer(nodes, 2 * waiting)
                _sift_up(keys, nodes, waiting, new, u)
                waiting += 1
        turn += 1
    return total, order, start, around
