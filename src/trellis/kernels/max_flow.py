r"""A maximal flow by two search trees that are kept from one augmenting path to the next.

Nodes 0..n-1 lie between a source and a sink. ``terminal[v]`` is what can still flow from the source
to v if positive, from v to the sink if negative. Arc ``2 e`` leads from the first end of edge e to
the second, ``2 e + 1`` back, so the arc the other way is ``h ^ 1``.

One tree grows from the source along arcs that are not full, one from the sink against them. Where
they touch there is an augmenting path; what is filled on it cuts *orphans* off the trees, and each
looks for a new parent in its tree or is set free with its children being orphans in turn. Marks of
when a node was last known to hang on its root, and how far below it, keep that search short (Boykov
& Kolmogorov, *An experimental comparison of min-cut/max-flow algorithms for energy minimization in
vision*, PAMI 2004). When neither tree can grow, that of the source is its side of a least cut.

Capacities are floats and may be infinite, as long as those at source and sink are not. Each path
fills an arc to the last bit, for a number less itself is 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from trellis.kernels._jit import inner, kernel

__all__ = ["least_cut"]

Float64s = npt.NDArray[np.float64]
Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# What a node hangs on, if not on an arc that leads to its parent: source or sink; a parent that it
# has lost; nothing.
_ROOT, _LOST, _NOTHING = -1, -2, -3
_FREE, _SINK, _SOURCE = -1, 0, 1
_FAR = 1 << 30


class _Trees(NamedTuple):
    """Both trees.

    ``side`` says which tree a node is in, ``parent`` the arc from it to its parent, ``depth`` how
    far below the root it was when the clock showed ``seen``. The nodes that may still grow wait in
    the ring ``active`` (``waits`` tells which), orphans in the ring ``lost``. ``counts`` are the
    first and the number of those waiting in each ring, and the clock.
    """

    side: Int8s
    parent: Int32s
    depth: Int32s
    seen: Int64s
    active: Int32s
    waits: Bools
    lost: Int32s
    counts: Int64s


@inner
def _activate(t: _Trees, v: int) -> None:
    if not t.waits[v]:
        t.waits[v] = True
        place = t.counts[0] + t.counts[1]
        n = t.active.shape[0]
        t.active[place if place < n else place - n] = v
        t.counts[1] += 1


@inner
def _orphan_first(t: _Trees, v: int) -> None:
    t.parent[v] = _LOST
    t.counts[2] = (t.counts[2] if t.counts[2] > 0 else t.lost.shape[0]) - 1
    t.lost[t.counts[2]] = v
    t.counts[3] += 1


@inner
def _orphan_last(t: _Trees, v: int) -> None:
    t.parent[v] = _LOST
    place = t.counts[2] + t.counts[3]
    n = t.lost.shape[0]
    t.lost[place if place < n else place - n] = v
    t.counts[3] += 1


@inner
def _grow(v: int, ends: Int32s, start: Int32s, out: Int32s, residual: Float64s, t: _Trees) -> int:
    """Take in the free neighbours of v; the arc to a neighbour in the other tree, or -1."""
    side = t.side[v]
    for place in range(start[v], start[v + 1]):
        h = int(out[place])
        if residual[h ^ (1 - side)] <= 0.0:  # towards the sink: along h, or against it
            continue
        w = ends[h ^ 1]
        if t.side[w] == _FREE:
            t.side[w] = side
            t.parent[w] = h ^ 1
            t.depth[w] = t.depth[v] + 1
            t.seen[w] = t.seen[v]
            _activate(t, w)
        elif t.side[w] != side:
            return h
        elif t.seen[w] <= t.seen[v] and t.depth[w] > t.depth[v] + 1:
            t.parent[w] = h ^ 1  # nearer to the root than before
            t.depth[w] = t.depth[v] + 1
            t.seen[w] = t.seen[v]
    return -1


@inner
def _augment(bridge: int, ends: Int32s, residual: Float64s, terminal: Float64s, t: _Trees) -> None:
    """Send what fits through an arc from the tree of the source to that of the sink."""
    most = residual[bridge]
    for side in range(2):
        v = ends[bridge ^ (1 - side)]
        while t.parent[v] != _ROOT:
            h = t.parent[v]
            most = min(most, residual[h ^ side])
            v = ends[h ^ 1]
        most = min(most, abs(terminal[v]))
    residual[bridge] -= most
    residual[bridge ^ 1] += most
    for side in range(2):
        v = ends[bridge ^ (1 - side)]
        while t.parent[v] != _ROOT:
            h = t.parent[v]
            residual[h ^ side] -= most
            residual[h ^ side ^ 1] += most
            if residual[h ^ side] <= 0.0:
                _orphan_first(t, v)
            v = ends[h ^ 1]
        terminal[v] -= most if side == _SOURCE else -most
        if terminal[v] == 0.0:
            _orphan_first(t, v)


@inner
def _depth(v: int, ends: Int32s, t: _Trees) -> int:
    """How far v is below its root; a large number if it hangs on an orphan."""
    clock = t.counts[4]
    steps = 0
    u = v
    while t.seen[u] != clock:
        steps += 1
        h = t.parent[u]
        if h == _ROOT:
            t.seen[u] = clock
            t.depth[u] = 1
            steps -= 1
            break
        if h == _LOST:
            return _FAR
        u = ends[h ^ 1]
    depth = int(steps + t.depth[u])
    u, below = v, depth
    while t.seen[u] != clock:  # the way is known from now on
        t.seen[u] = clock
        t.depth[u] = below
        below -= 1
        u = ends[t.parent[u] ^ 1]
    return depth


@inner
def _adopt(v: int, ends: Int32s, start: Int32s, out: Int32s, residual: Float64s, t: _Trees) -> None:
    """Find a parent for an orphan, nearest to the root, or set it free."""
    side = t.side[v]
    found, nearest = _NOTHING, _FAR
    for place in range(start[v], start[v + 1]):
        h = out[place]
        w = ends[h ^ 1]
        if residual[h ^ side] > 0.0 and t.side[w] == side:
            depth = _depth(w, ends, t)
            if depth < nearest:
                found, nearest = h, depth
    t.parent[v] = found
    if found != _NOTHING:
        t.seen[v] = t.counts[4]
        t.depth[v] = nearest + 1
        return
    t.side[v] = _FREE
    for place in range(start[v], start[v + 1]):
        h = out[place]
        w = ends[h ^ 1]
        if t.side[w] != side:
            continue
        if residual[h ^ side] > 0.0:
            _activate(t, w)
        if t.parent[w] == h ^ 1:
            _orphan_last(t, w)


@kernel
def least_cut(
    edges: Int64s, there: Float64s, back: Float64s, terminal: Float64s
) -> tuple[Bools, Float64s]:
    """Side of the source of a least cut (n,), and what is left at source and sink (n,).

    ``edges`` (E, 2) have capacities ``there`` from the first to the second end and ``back`` the
    other way; ``terminal`` (n,) has those from the source and, negative, to the sink.
    """
    n, n_edges = terminal.shape[0], edges.shape[0]
    left = terminal.copy()
    residual = np.empty(2 * n_edges)
    ends = np.empty(2 * n_edges, np.int32)
    start = np.zeros(n + 1, np.int32)
    for e in range(n_edges):
        residual[2 * e] = there[e]
        residual[2 * e + 1] = back[e]
        ends[2 * e] = edges[e, 0]
        ends[2 * e + 1] = edges[e, 1]
        start[edges[e, 0] + 1] += 1
        start[edges[e, 1] + 1] += 1
    for v in range(n):
        start[v + 1] += start[v]
    fill = start[:-1].copy()
    out = np.empty(2 * n_edges, np.int32)
    for h in range(2 * n_edges):
        out[fill[ends[h]]] = h
        fill[ends[h]] += 1

    t = _Trees(
        np.full(n, _FREE, np.int8),
        np.full(n, _NOTHING, np.int32),
        np.ones(n, np.int32),
        np.zeros(n, np.int64),
        np.empty(n, np.int32),
        np.zeros(n, np.bool_),
        np.empty(n, np.int32),
        np.zeros(5, np.int64),
    )
    for v in range(n):
        if left[v] != 0.0:
            t.side[v] = _SOURCE if left[v] > 0.0 else _SINK
            t.parent[v] = _ROOT
            _activate(t, v)
    while t.counts[1] > 0:
        v = t.active[t.counts[0]]
        bridge = -1
        if t.side[v] != _FREE:
            bridge = _grow(v, ends, start, out, residual, t)
        if bridge < 0:
            t.waits[v] = False
            t.counts[0] = t.counts[0] + 1 if t.counts[0] + 1 < n else 0
            t.counts[1] -= 1
            continue
        t.counts[4] += 1
        _augment(bridge ^ (1 - t.side[v]), ends, residual, left, t)
        while t.counts[3] > 0:
            orphan = t.lost[t.counts[2]]
            t.counts[2] = t.counts[2] + 1 if t.counts[2] + 1 < n else 0
            t.counts[3] -= 1
            _adopt(orphan, ends, start, out, residual, t)
    return t.side == _SOURCE, left
