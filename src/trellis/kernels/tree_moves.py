r"""Better labellings of graphs with cycles by exact moves on random induced trees.

A round draws a set of nodes between which the graph has no cycle: from a random node on it takes in
neighbours in random order as long as they touch the set once. Given the labels of all other nodes,
the best labels of the set are found at once by max-product, so no round lowers the score; about
three fifths of a grid change together, where changing one label at a time is stuck.

Where that is stuck, too, some rounds perturb the node scores by noise that fades, as simulated
annealing does, and some without noise follow. The nodes whose labels are then others than before
fall into connected parts; what the change of a part brings does not depend on the other parts, so
those that bring something are kept and the others undone (the partition crossover of Tinós, Whitley
& Chicano, 2015). Each spell of noise thus tries changes all over the graph at once. The noise is
measured in how much nodes prefer their label to the next one on average.

Random numbers start anew with every sample: its labels depend on nothing that it is stacked with.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from trellis.kernels._jit import inner, kernel
from trellis.kernels.loopy import Layout, Tables

__all__ = ["move_trees"]

Float64s = npt.NDArray[np.float64]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_SEED = 88_172_645_463_325_252
_PATIENCE = 8  # rounds without gain after which moves without noise are given up
_NOISY, _QUIET = 8, 8  # rounds of a spell
_HOT, _COLD = 0.4, 0.12  # noise at the begin and at the end of the noisy ones
_GUMBEL = -np.log(-np.log((np.arange(256) + 0.5) / 256))


class _Room(NamedTuple):
    """What a round works with, for all nodes: the conditional scores H (N, L), how many nodes of
    the set each one touches, the half edge it came by, whether it is in the set, and those in the
    set and those waiting to get in, as lists. ``state`` is that of the random numbers.
    """

    H: Float64s
    touches: Int32s
    came: Int64s
    inside: Bools
    order: Int64s
    waiting: Int64s
    state: npt.NDArray[np.uint64]
    out: Float64s


@inner
def _draw(state: npt.NDArray[np.uint64], n: int) -> int:
    """A number below n < 2^32, by Marsaglia's 64-bit xorshift."""
    x = state[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[0] = x
    return np.int64(((x >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))  # type: ignore[return-value]


@inner
def _take(root: int, filled: int, free: Bools, graph: Layout, room: _Room) -> int:
    """Take a tree around a root into the set; returns how many nodes the set then has."""
    room.waiting[0] = root
    room.came[root] = -1
    room.touches[root] = 1
    n_waiting = 1
    while n_waiting > 0:
        at = _draw(room.state, n_waiting)
        v = room.waiting[at]
        n_waiting -= 1
        room.waiting[at] = room.waiting[n_waiting]
        if room.touches[v] != 1:
            continue
        room.inside[v] = True
        room.order[filled] = v
        filled += 1
        for place in range(graph.start[v], graph.start[v + 1]):
            h = graph.into[place]
            w = graph.edges[h >> 1, 1 - (h & 1)]
            if room.inside[w] or not free[w]:
                continue
            room.touches[w] += 1
            if room.touches[w] == 1:
                room.came[w] = h ^ 1
                room.waiting[n_waiting] = w
                n_waiting += 1
    return filled


@inner
def _condition(
    v: int, node: Float64s, tables: Tables, graph: Layout, labels: Int32s, room: _Room
) -> None:
    """H_v: scores of the labels of v given those of its neighbours outside the set."""
    n_labels = node.shape[1]
    for i in range(n_labels):
        room.H[v, i] = node[v, i]
    for place in range(graph.start[v], graph.start[v + 1]):
        h = graph.into[place]
        e, side = h >> 1, h & 1
        w = graph.edges[e, 1 - side]
        if room.inside[w]:
            continue
        k = graph.types[e]
        if side == 0:
            for i in range(n_labels):
                room.H[v, i] += tables.turned[k, labels[w], i]
        else:
            for i in range(n_labels):
                room.H[v, i] += tables.stored[k, labels[w], i]


@inner
def _solve(filled: int, tables: Tables, graph: Layout, labels: Int32s, room: _Room) -> None:
    """Give the nodes of the set their best labels: messages to the roots, labels back."""
    n_labels = room.out.shape[0]
    out = room.out
    for at in range(filled - 1, -1, -1):
        v = room.order[at]
        h = room.came[v]
        if h < 0:
            continue
        e, side = h >> 1, h & 1
        w = graph.edges[e, 1 - side]
        table = tables.stored[graph.types[e]] if side == 0 else tables.turned[graph.types[e]]
        for j in range(n_labels):
            out[j] = table[0, j] + room.H[v, 0]
        for i in range(1, n_labels):
            a = room.H[v, i]
            for j in range(n_labels):
                x = table[i, j] + a
                out[j] = x if x > out[j] else out[j]
        for j in range(n_labels):
            room.H[w, j] += out[j]
    for at in range(filled):
        v = room.order[at]
        h = room.came[v]
        for i in range(n_labels):
            out[i] = room.H[v, i]
        if h >= 0:
            e, side = h >> 1, h & 1
            k, label = graph.types[e], labels[graph.edges[e, 1 - side]]
            if side == 0:
                for i in range(n_labels):
                    out[i] += tables.turned[k, label, i]
            else:
                for i in range(n_labels):
                    out[i] += tables.stored[k, label, i]
        best = 0
        for i in range(1, n_labels):
            if out[i] > out[best]:
                best = i
        labels[v] = best


@inner
def _score(s: int, node: Float64s, tables: Tables, graph: Layout, labels: Int32s) -> float:
    score = 0.0
    for v in range(graph.offsets[s], graph.offsets[s + 1]):
        score += node[v, labels[v]]
        for place in range(graph.start[v], graph.start[v + 1]):
            h = graph.into[place]
            if h & 1 == 0:
                e = h >> 1
                score += tables.stored[graph.types[e], labels[v], labels[graph.edges[e, 1]]]
    return score


@inner
def _preference(
    s: int, free: Bools, node: Float64s, tables: Tables, graph: Layout, labels: Int32s, room: _Room
) -> float:
    """How much free nodes prefer their best label to the second, on average."""
    total, n = 0.0, 0
    for v in range(graph.offsets[s], graph.offsets[s + 1]):
        room.inside[v] = False
    for v in range(graph.offsets[s], graph.offsets[s + 1]):
        if not free[v]:
            continue
        _condition(v, node, tables, graph, labels, room)
        first, second = -np.inf, -np.inf
        for i in range(node.shape[1]):
            x = room.H[v, i]
            if x > first:
                first, second = x, first
            elif x > second:
                second = x
        if second > -np.inf:
            total += first - second
            n += 1
    return total / n if n > 0 else 0.0


@inner
def _round(
    s: int,
    noise: float,
    free: Bools,
    node: Float64s,
    tables: Tables,
    graph: Layout,
    labels: Int32s,
    room: _Room,
) -> None:
    """Draw a set and give it its best labels, under noise."""
    first, stop = graph.offsets[s], graph.offsets[s + 1]
    for v in range(first, stop):
        room.touches[v] = 0
        room.inside[v] = False
    filled = 0
    shift = _draw(room.state, stop - first)
    for at in range(first, stop):
        v = at + shift if at + shift < stop else at + shift - (stop - first)
        if free[v] and room.touches[v] == 0:
            filled = _take(v, filled, free, graph, room)
    for at in range(filled):
        v = room.order[at]
        _condition(v, node, tables, graph, labels, room)
        if noise > 0.0:
            for i in range(node.shape[1]):
                room.H[v, i] += noise * _GUMBEL[_draw(room.state, 256)]
    _solve(filled, tables, graph, labels, room)


@inner
def _keep_gains(
    s: int,
    node: Float64s,
    tables: Tables,
    graph: Layout,
    labels: Int32s,
    trial: Int32s,
    room: _Room,
) -> None:
    """Keep the parts of a trial that bring something, in both labellings, and undo the others."""
    first, stop = graph.offsets[s], graph.offsets[s + 1]
    for v in range(first, stop):
        room.inside[v] = False
    for root in range(first, stop):
        if room.inside[root] or labels[root] == trial[root]:
            continue
        room.inside[root] = True
        room.order[0] = root
        filled, at = 1, 0
        gain = 0.0
        while at < filled:
            v = room.order[at]
            at += 1
            gain += node[v, trial[v]] - node[v, labels[v]]
            for place in range(graph.start[v], graph.start[v + 1]):
                h = graph.into[place]
                e, side = h >> 1, h & 1
                w = graph.edges[e, 1 - side]
                changed = labels[w] != trial[w]
                if changed and not room.inside[w]:
                    room.inside[w] = True
                    room.order[filled] = w
                    filled += 1
                k = graph.types[e]
                if side == 0:
                    gain += tables.stored[k, trial[v], trial[w]]
                    gain -= tables.stored[k, labels[v], labels[w]]
                elif not changed:  # else it counts at the other end
                    gain += tables.stored[k, labels[w], trial[v]]
                    gain -= tables.stored[k, labels[w], labels[v]]
        for place in range(filled):
            v = room.order[place]
            if gain > 0.0:
                labels[v] = trial[v]
            else:
                trial[v] = labels[v]


@kernel
def move_trees(
    node: Float64s,
    tables: Tables,
    graph: Layout,
    labels: Int32s,
    rounds: Int64s,
    bounds: Float64s,
    tolerance: Float64s,
) -> Int32s:
    """Improve labellings of finite score; returns their labels (N,).

    A sample is done after ``rounds`` (S,), or when its score is within ``tolerance`` (S,) of its
    bound. Others than the labels of finite node score are never taken.
    """
    n, n_labels = node.shape
    found = labels.copy()
    trial = labels.copy()
    free = np.zeros(n, np.bool_)
    for v in range(n):
        n_left = 0
        for i in range(n_labels):
            n_left += node[v, i] > -np.inf
        free[v] = n_left > 1
    room = _Room(
        np.empty((n, n_labels)),
        np.zeros(n, np.int32),
        np.empty(n, np.int64),
        np.zeros(n, np.bool_),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(1, np.uint64),
        np.empty(n_labels),
    )
    for s in range(graph.offsets.shape[0] - 1):
        room.state[0] = np.uint64(_SEED)
        score = _score(s, node, tables, graph, found)
        idle, at, unit = 0, 0, 0.0
        for done in range(1, rounds[s] + 1):
            if bounds[s] - score <= tolerance[s]:
                break
            climbing = idle < _PATIENCE
            noise = 0.0
            if not climbing and at < _NOISY:
                noise = unit * _HOT * (_COLD / _HOT) ** (at / (_NOISY - 1.0))
            _round(s, noise, free, node, tables, graph, trial, room)
            at += 1
            if climbing or at == _NOISY + _QUIET or done == rounds[s]:
                _keep_gains(s, node, tables, graph, found, trial, room)
                before, score = score, _score(s, node, tables, graph, found)
                at = 0
                if climbing:
                    idle = 0 if score > before else idle + 1
                    if idle == _PATIENCE:
                        unit = _preference(s, free, node, tables, graph, found, room)
    return found
