r"""Messages on stacked graphs: sum-product, and max-product with an upper bound.

The score of a labelling is :math:`s(y) = \sum_v n_v(y_v) + \sum_{ab} T_{ab}(y_a, y_b)`. Message
``2 e`` leads into the first end of edge e and ``2 e + 1`` into the second, so the message the other
way is ``h ^ 1``. With :math:`H_v = n_v + \sum_w m_{w \to v}`, node v sends

.. math::

    m_{v \to w}(j) = \log \sum_i \exp(T(i, j) + H_v(i) - m_{w \to v}(i))
    \quad\text{or}\quad
    \max_i\,(T(i, j) + \gamma_v (H_v(i) - \max H_v) - m_{w \to v}(i)),

each less its maximum. The first is belief propagation; the second, with
:math:`\gamma_v = 1 / \max(\text{earlier}, \text{later neighbours})`, the sequential tree-reweighted
algorithm (TRW-S; Kolmogorov, 2006), a block ascent in the dual of the linear relaxation. Both run
through the nodes in breadth-first order, backwards and forwards by turns, and send to the nodes
still to come. On a forest one such turn is exact.

The bound of one max-product pass is the sum of the maxima taken off, :math:`\max H_v` of the nodes
and those of the messages: :math:`\gamma_v` times what is left of :math:`H_v` moves into each of at
most :math:`1 / \gamma_v` edges, and the rest, which is not positive, is dropped. It holds for any
messages to start from.

A pass that follows one the other way tells more. When it comes to node v, :math:`H_v(i) - \max H_v`
is by how much the bound of that other pass falls if v must have label i: what the nodes before v
have sent anew can only be less, by the same inequalities, than what the other pass took for it. A
label that would bring the bound below the score of a labelling that is known is in no best one.

Forbidden labels have node score -inf and messages 0. Every label that is left must have a partner
at each neighbour (arc consistency), so all messages are finite.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from trellis.kernels._jit import kernel, ordered, subkernel

__all__ = [
    "Ascent",
    "Layout",
    "Tables",
    "beliefs",
    "breadth_first",
    "max_product",
    "sum_product",
]

Float64s = npt.NDArray[np.float64]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_SMALL = 1e-200  # sums of exponentials below it are taken anew in the logarithmic domain


class Layout(NamedTuple):
    """Stacked graphs laid out for passing messages.

    Sample s is the nodes ``offsets[s]:offsets[s + 1]``; ``order`` (N,) is their breadth-first order
    and ``rank`` (N,) the place of each in it. The messages into node v are
    ``into[start[v]:start[v + 1]]``. ``edges`` (E, 2) have the tables ``types`` (E,).
    """

    edges: Int64s
    types: Int64s
    offsets: Int64s
    order: Int64s
    rank: Int64s
    start: Int64s
    into: Int64s


class Tables(NamedTuple):
    """Tables of pairs of labels (K, L, L), as stored and transposed: read row by row both ways."""

    stored: Float64s
    turned: Float64s


@kernel
def breadth_first(
    edges: Int64s, offsets: Int64s, start: Int64s, into: Int64s
) -> tuple[Int64s, Int64s, Int64s]:
    """Order the nodes of each sample breadth-first.

    ``into[start[v]:start[v + 1]]`` are the messages into v. Returns the order (N,), the rank of
    each node in it (N,) and the number of connected components of each sample (S,).
    """
    n = offsets[-1]
    n_samples = offsets.shape[0] - 1
    order = np.empty(n, dtype=np.int64)
    rank = np.full(n, -1, dtype=np.int64)
    components = np.zeros(n_samples, dtype=np.int64)
    for s in range(n_samples):
        filled = offsets[s]
        read = offsets[s]
        for root in range(offsets[s], offsets[s + 1]):
            if rank[root] >= 0:
                continue
            components[s] += 1
            order[filled] = root
            rank[root] = filled
            filled += 1
            while read < filled:
                v = order[read]
                read += 1
                for h in into[start[v] : start[v + 1]]:
                    w = edges[h >> 1, 1 - (h & 1)]
                    if rank[w] < 0:
                        order[filled] = w
                        rank[w] = filled
                        filled += 1
    return order, rank, components


@subkernel
def _gather(v: int, node: Float64s, messages: Float64s, incoming: Int64s, out: Float64s) -> float:
    """Compute H_v and return its maximum."""
    n_labels = out.shape[0]
    for i in range(n_labels):
        out[i] = node[v, i]
    for h in incoming:
        for i in range(n_labels):
            out[i] += messages[h, i]
    top = -np.inf
    for i in range(n_labels):
        top = out[i] if out[i] > top else top
    return top


@subkernel
def _max_message(T: Float64s, g: Float64s, out: Float64s) -> None:
    """Compute out[j] = max over i of T[i, j] + g[i]."""
    n_labels = out.shape[0]
    for j in range(n_labels):
        out[j] = T[0, j] + g[0]
    for i in range(1, n_labels):
        a = g[i]
        for j in range(n_labels):
            x = T[i, j] + a
            out[j] = x if x > out[j] else out[j]


@ordered
def _exact_log_sum(T: Float64s, top_T: float, g: Float64s, top_g: float, j: int) -> float:
    top = -np.inf
    for i in range(g.shape[0]):
        top = max(top, (T[i, j] - top_T) + (g[i] - top_g))
    total = 0.0
    for i in range(g.shape[0]):
        total += np.exp((T[i, j] - top_T) + (g[i] - top_g) - top)
    log_sum: float = top + np.log(total)
    return log_sum


@subkernel
def _sum_message(
    T: Float64s, exp_T: Float64s, top_T: float, g: Float64s, x: Float64s, out: Float64s
) -> None:
    """Compute out[j] = log of the sum over i of exp(T[i, j] + g[i]), but for a constant.

    The constant, the maxima of T and g, is left out, as beside a large one small scores would be
    lost; x is room to work in.
    """
    n_labels = out.shape[0]
    top = -np.inf
    for i in range(n_labels):
        top = g[i] if g[i] > top else top
    for j in range(n_labels):
        x[j] = np.exp(g[j] - top)
        out[j] = 0.0
    for i in range(n_labels):
        a = x[i]
        for j in range(n_labels):
            out[j] += a * exp_T[i, j]
    for j in range(n_labels):
        out[j] = np.log(out[j]) if out[j] > _SMALL else _exact_log_sum(T, top_T, g, top, j)


@subkernel
def _settle(w: int, node: Float64s, out: Float64s) -> float:
    """Take the maximum off a message into w, put 0 at forbidden labels; return the maximum."""
    top = -np.inf
    for j in range(out.shape[0]):
        if node[w, j] > -np.inf and out[j] > top:
            top = out[j]
    for j in range(out.shape[0]):
        out[j] = out[j] - top if node[w, j] > -np.inf else 0.0
    return top


@kernel
def sum_product(
    node: Float64s,
    tables: Tables,
    exponentials: Tables,
    top: Float64s,
    graph: Layout,
    damping: Float64s,
    limits: Int64s,
    tolerance: float,
    messages: Float64s,
) -> tuple[Bools, Int64s]:
    """Pass messages (2E, L), in place, until none changes by more than the tolerance.

    ``exponentials`` are those of the tables less the maximum ``top`` (K,) of each. ``damping``
    (S,) is the share of the old message, ``limits`` (S,) are the most turns. Returns whether each
    sample converged in these turns, and how many it took.
    """
    edges, types, offsets, order, rank, start, into = graph
    n_samples = offsets.shape[0] - 1
    n_labels = node.shape[1]
    converged = np.zeros(n_samples, dtype=np.bool_)
    iterations = np.zeros(n_samples, dtype=np.int64)
    H = np.empty(n_labels)
    g = np.empty(n_labels)
    x = np.empty(n_labels)
    out = np.empty(n_labels)
    for s in range(n_samples):
        first, stop = offsets[s], offsets[s + 1]
        keep = damping[s]
        while iterations[s] < limits[s] and not converged[s]:
            iterations[s] += 1
            change = 0.0
            for turn in range(2):
                for step in range(first, stop):
                    v = order[step] if turn == 1 else order[first + stop - 1 - step]
                    incoming = into[start[v] : start[v + 1]]
                    _gather(v, node, messages, incoming, H)
                    for h in incoming:
                        e, side = h >> 1, h & 1
                        w = edges[e, 1 - side]
                        if (rank[w] > rank[v]) != (turn == 1):
                            continue
                        for i in range(n_labels):
                            g[i] = H[i] - messages[h, i]
                        k = types[e]
                        table = tables.stored[k] if side == 0 else tables.turned[k]
                        exp_table = exponentials.stored[k] if side == 0 else exponentials.turned[k]
                        _sum_message(table, exp_table, top[k], g, x, out)
                        _settle(w, node, out)
                        for j in range(n_labels):
                            old = messages[h ^ 1, j]
                            new = (1.0 - keep) * out[j] + keep * old
                            change = max(change, abs(new - old))
                            messages[h ^ 1, j] = new
            converged[s] = change <= tolerance
    return converged, iterations


@kernel
def beliefs(
    node: Float64s,
    pair: Float64s,
    exponentials: Float64s,
    tops: Float64s,
    graph: Layout,
    sample: Int64s,
    messages: Float64s,
) -> tuple[Float64s, Float64s, Float64s]:
    """Compute the marginals that sum-product messages stand for, and the Bethe log Z.

    ``sample`` (N,) is the sample of each node. Returns the node marginals (N, L), the pair
    marginals (E, L, L) and log Z = sum_v (1 - degree) log Z_v + sum_e log Z_e of each sample, with
    Z_v and Z_e the normalisers of the beliefs. ``exponentials`` are those of the tables ``pair``
    less the maxima ``tops`` (K,).
    """
    edges, types, offsets, _, _, start, into = graph
    n, n_labels = node.shape
    n_edges = edges.shape[0]
    node_marginals = np.zeros((n, n_labels))
    pair_marginals = np.zeros((n_edges, n_labels, n_labels))
    log_z = np.zeros(offsets.shape[0] - 1)
    H = np.empty((n, n_labels))
    for v in range(n):
        top = _gather(v, node, messages, into[start[v] : start[v + 1]], H[v])
        total = 0.0
        for i in range(n_labels):
            node_marginals[v, i] = np.exp(H[v, i] - top)
            total += node_marginals[v, i]
        for i in range(n_labels):
            node_marginals[v, i] /= total
        log_z[sample[v]] += (1.0 - (start[v + 1] - start[v])) * (top + np.log(total))
    g = np.empty((2, n_labels))
    x = np.empty((2, n_labels))
    for e in range(n_edges):
        scale = 0.0
        for side in range(2):
            v = edges[e, side]
            top = -np.inf
            for i in range(n_labels):
                g[side, i] = H[v, i] - messages[2 * e + side, i]
                top = max(top, g[side, i])
            for i in range(n_labels):
                g[side, i] -= top
                x[side, i] = np.exp(g[side, i])
            scale += top
        k = types[e]
        P = pair_marginals[e]
        total = 0.0
        for i in range(n_labels):
            for j in range(n_labels):
                P[i, j] = exponentials[k, i, j] * x[0, i] * x[1, j]
                total += P[i, j]
        scale += tops[k]
        if total < _SMALL:
            top = -np.inf
            for i in range(n_labels):
                for j in range(n_labels):
                    P[i, j] = (pair[k, i, j] - tops[k]) + g[0, i] + g[1, j]
                    top = max(top, P[i, j])
            scale += top
            total = 0.0
            for i in range(n_labels):
                for j in range(n_labels):
                    P[i, j] = np.exp(P[i, j] - top)
                    total += P[i, j]
        for i in range(n_labels):
            for j in range(n_labels):
                P[i, j] /= total
        log_z[sample[edges[e, 0]]] += scale + np.log(total)
    return node_marginals, pair_marginals, log_z


@subkernel
def _choose(
    v: int,
    node: Float64s,
    tables: Tables,
    graph: Layout,
    messages: Float64s,
    by_messages: bool,
    labels: Int32s,
    out: Float64s,
) -> int:
    """Pick the label of v given those of its neighbours; the later ones may speak by messages."""
    n_labels = out.shape[0]
    for i in range(n_labels):
        out[i] = node[v, i]
    for p in range(graph.start[v], graph.start[v + 1]):
        h = graph.into[p]
        e, side = h >> 1, h & 1
        w = graph.edges[e, 1 - side]
        if by_messages and graph.rank[w] > graph.rank[v]:
            for i in range(n_labels):
                out[i] += messages[h, i]
        elif side == 0:
            for i in range(n_labels):
                out[i] += tables.turned[graph.types[e], labels[w], i]
        else:
            for i in range(n_labels):
                out[i] += tables.stored[graph.types[e], labels[w], i]
    best = 0
    for i in range(1, n_labels):
        if out[i] > out[best]:
            best = i
    return best


@subkernel
def _climb(
    s: int,
    node: Float64s,
    tables: Tables,
    graph: Layout,
    messages: Float64s,
    labels: Int32s,
    out: Float64s,
    sweeps: int,
) -> float:
    """Change one label of sample s at a time while the score rises, and return the score."""
    first, stop = graph.offsets[s], graph.offsets[s + 1]
    for _ in range(sweeps):
        changed = False
        for v in range(first, stop):
            best = _choose(v, node, tables, graph, messages, False, labels, out)
            if out[best] > out[labels[v]]:
                labels[v] = best
                changed = True
        if not changed:
            break
    score = 0.0
    for v in range(first, stop):
        score += node[v, labels[v]]
        for p in range(graph.start[v], graph.start[v + 1]):
            h = graph.into[p]
            if h & 1 == 0:
                e = h >> 1
                score += tables.stored[graph.types[e], labels[v], labels[graph.edges[e, 1]]]
    return score


class Ascent(NamedTuple):
    """How far dual ascent has come, with room for all samples.

    ``messages`` (2E, L); the best labels found (N,), their ``scores`` (S,) and the least ``bounds``
    (S,). No labelling that has label i at node v has a higher score than ``ceilings`` (N, L) say.
    ``last`` (S,) is the bound of the last pass, ``before`` (S,) that of up to ten turns ago and
    ``turns`` (S,) how many there were.
    """

    messages: Float64s
    labels: Int32s
    scores: Float64s
    bounds: Float64s
    ceilings: Float64s
    last: Float64s
    before: Float64s
    turns: Int64s


@subkernel
def _cap(v: int, last: float, top: float, H: Float64s, ceilings: Float64s) -> None:
    """Lower the ceilings of v to what a pass tells."""
    for i in range(H.shape[0]):
        ceilings[v, i] = min(ceilings[v, i], last + (H[i] - top))


@kernel
def max_product(
    node: Float64s,
    tables: Tables,
    graph: Layout,
    forest: Bools,
    max_iterations: int,
    tolerance: Float64s,
    ascent: Ascent,
) -> None:
    """Pass max-product messages (TRW-S) and decode now and then; goes on from the ascent.

    A sample is done when bound and score are within ``tolerance`` (S,) of each other, when ten
    turns lowered the bound by less than that or a thousandth of the gap, or after
    ``max_iterations`` turns. ``forest`` (S,) tells which samples have no cycle.
    """
    edges, types, offsets, order, rank, start, into = graph
    messages, labels, scores, bounds, ceilings, last, before, turns = ascent
    n_labels = node.shape[1]
    decoded = labels.copy()
    H = np.empty(n_labels)
    g = np.empty(n_labels)
    out = np.empty(n_labels)
    for s in range(offsets.shape[0] - 1):
        first, stop = offsets[s], offsets[s + 1]
        while turns[s] < max_iterations:
            if bounds[s] - scores[s] <= tolerance[s]:
                break
            turns[s] += 1
            for turn in range(2):
                bound = 0.0
                for step in range(first, stop):
                    v = order[step] if turn == 1 else order[first + stop - 1 - step]
                    incoming = into[start[v] : start[v + 1]]
                    top = _gather(v, node, messages, incoming, H)
                    bound += top
                    if last[s] < np.inf:
                        _cap(v, last[s], top, H, ceilings)
                    later = 0
                    for h in incoming:
                        if rank[edges[h >> 1, 1 - (h & 1)]] > rank[v]:
                            later += 1
                    degree = start[v + 1] - start[v]
                    # A node of a forest has one earlier neighbour: it gets all there is.
                    gamma = 1.0
                    if degree > 0 and not (forest[s] and turn == 0):
                        gamma = 1.0 / max(later, degree - later)
                    for h in incoming:
                        e, side = h >> 1, h & 1
                        w = edges[e, 1 - side]
                        if (rank[w] > rank[v]) != (turn == 1):
                            continue
                        for i in range(n_labels):
                            g[i] = gamma * (H[i] - top) - messages[h, i]
                        k = types[e]
                        table = tables.stored[k] if side == 0 else tables.turned[k]
                        _max_message(table, g, out)
                        bound += _settle(w, node, out)
                        for j in range(n_labels):
                            messages[h ^ 1, j] = out[j]
                bounds[s] = min(bounds[s], bound)
                last[s] = bound
                # Labels cost half of a turn, and after some turns they hardly change.
                if turn == 1 or (turns[s] > 10 and turns[s] % 5 > 0):
                    continue
                for step in range(first, stop):
                    v = order[step]
                    decoded[v] = _choose(v, node, tables, graph, messages, True, decoded, out)
                sweeps = 0 if forest[s] else 3  # on a forest the decoded labels are the best
                score = _climb(s, node, tables, graph, messages, decoded, out, sweeps)
                if score > scores[s] or turns[s] == 1:
                    scores[s] = score
                    for v in range(first, stop):
                        labels[v] = decoded[v]
                if bounds[s] - scores[s] <= tolerance[s]:
                    break
            if turns[s] % 10 == 0:
                if before[s] - bounds[s] <= max(tolerance[s], 1e-3 * (bounds[s] - scores[s])):
                    break
                before[s] = bounds[s]
