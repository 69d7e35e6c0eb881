"""Loss and expectations of one tree-shaped piece.

The piece is some places [start, end) of a :class:`~trellis.kernels.forest.Forest`. With node scores
s_v, edge scores S_e[first, second] and label sets Y_v the CRF loss is

    log Σ_y e^{s(y)} − log Σ_{y: y_v ∈ Y_v} e^{s(y)},
    s(y) = Σ_v s_v(y_v) + Σ_e S_e(y_first, y_second).

With E_v = e^{s_v − max} and A_v[y_p, y_v] = e^{S_e − max}, messages go up, then marginals down:

    b_v ∝ E_v ∘ Π_{children c} m_c,   m_v = A_v b_v (scaled to a maximum of 1),
    q_v = P_p / m_v,                  P_v = b_v ∘ (A_vᵀ q_v),   P(y_p, y_v) = A_v ∘ q_v b_vᵀ.

So every edge costs two products of a matrix and a vector, as on a chain. Edges that share a table
(``slot``) share A, and only outer products q_v b_vᵀ are summed for them. A piece whose scaling
underflows is done again in log space.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trellis.kernels._jit import allocating, fragment, inner
from trellis.kernels.chain_lattice import log_sum
from trellis.kernels.fast_exp import fast_exp
from trellis.kernels.forest import Forest
from trellis.kernels.visits import FULLY, NOTHING, PARTLY, LabelSets, Visits, annotation

__all__ = ["TreeSpace", "fill_table", "tree_loss", "tree_space"]

Array = np.ndarray[Any, Any]

# Planes of the workspace and of its tables.
NODE, UP, MESSAGE, PULL, GRADIENT, CHANCE = range(6)
N_WORK = 6
EXP, EXP_TRANSPOSED, RAW = range(3)


class TreeSpace(NamedTuple):
    """Room to work in on pieces of up to n nodes, of each thread.

    ``work`` (6, n, L) are rows of nodes; ``tables`` (3, slots, L, L) hold e^{S − max}, its
    transpose and S itself, ``peak`` (slots,) max S; ``slot`` (n,) is the table of the edge above
    each node. Only rich edges, each of which has a table of its own, need ``edge`` (n, L²), the
    gradient of their scores, each as it is stored.
    """

    work: Array
    tables: Array
    peak: Array
    slot: Array
    edge: Array


@allocating
def tree_space(W: Array, n_types: int, longest: int, rich: Any) -> TreeSpace:
    """Room for pieces of up to ``longest`` nodes."""
    n_labels = W.shape[1]
    n_slots = n_types if rich is None else longest
    n_edges = 0 if rich is None else longest
    return TreeSpace(
        np.empty((N_WORK, longest, n_labels), W.dtype),
        np.zeros((3, n_slots, n_labels, n_labels), W.dtype),
        np.zeros(n_slots, W.dtype),
        np.zeros(longest, np.int64),
        np.zeros((n_edges, n_labels * n_labels), W.dtype),
    )


@inner
def fill_table(space: TreeSpace, slot: int) -> None:
    """Refresh e^{S − max} and its transpose from S."""
    tables = space.tables
    n_labels = tables.shape[2]
    top = tables[RAW, slot, 0, 0]
    for i in range(n_labels):
        for j in range(n_labels):
            top = max(top, tables[RAW, slot, i, j])
    space.peak[slot] = top
    for i in range(n_labels):
        for j in range(n_labels):
            tables[EXP, slot, i, j] = fast_exp(tables[RAW, slot, i, j] - top)
    for i in range(n_labels):
        for j in range(n_labels):
            tables[EXP_TRANSPOSED, slot, j, i] = tables[EXP, slot, i, j]


@fragment
def tree_loss(
    sets: LabelSets,
    visits: Visits,
    k: int,
    forest: Forest,
    rich: Any,
    weight: float,
    space: TreeSpace,
    outer: Array,
    pairs: Array,
    c: int,
) -> float:
    """Loss of piece k, whose node scores are in work[NODE].

    work[GRADIENT] becomes ∂loss/∂node. With ``rich`` edges the gradients of their scores go to
    ``edge``; else they are added, weighted, to outer[c, slot] (still to be multiplied by
    e^{S − max}) and pairs[c, slot].
    """
    work, slot, edge = space.work, space.slot, space.edge
    _, parent, _, down, _ = forest
    start = visits.starts[k]
    base = visits.first[k]
    n = visits.ends[k] - start
    n_labels = work.shape[2]
    kind = annotation(sets, visits, k)
    for i in range(n):
        for j in range(n_labels):
            work[GRADIENT, i, j] = 0
        if rich is not None:
            for q in range(n_labels * n_labels):
                edge[i, q] = 0
    if kind == NOTHING:
        return 0.0
    loss = 0.0
    for constrained in range(2 if kind == PARTLY else 1):
        sign = 1.0 - 2.0 * constrained
        log_z = _marginals_of_tree(sets, forest, start, n, constrained == 1, space)
        if np.isfinite(log_z):
            for i in range(1, n):
                if parent[start + i] < 0:
                    continue
                if rich is None:
                    _add_outer(work, down[start + i], slot[i], i, sign * weight, outer, c)
                else:
                    _add_edge(work, space.tables, down[start + i], slot[i], i, sign, edge)
        else:
            log_z = _log_marginals_of_tree(
                sets, forest, start, n, constrained == 1, rich, sign, weight, space, pairs, c
            )
        loss += sign * log_z
        for i in range(n):
            for j in range(n_labels):
                work[GRADIENT, i, j] += work.dtype.type(sign) * work[CHANCE, i, j]
    if kind == FULLY:
        for i in range(n):
            y = sets.ids[visits.queue[base + i]]
            loss -= work[NODE, i, y]
            work[GRADIENT, i, y] -= 1
            if parent[start + i] >= 0:
                upper = sets.ids[visits.queue[base + parent[start + i] - start]]
                first = upper if down[start + i] else y
                second = y if down[start + i] else upper
                loss -= space.tables[RAW, slot[i], first, second]
                if rich is None:
                    pairs[c, slot[i], first, second] -= weight
                else:
                    edge[i, first * n_labels + second] -= 1
    return loss


@fragment
def _marginals_of_tree(
    sets: LabelSets, forest: Forest, start: int, n: int, constrained: bool, space: TreeSpace
) -> float:
    """Marginals into work[CHANCE]; b, m and q stay in the workspace. Returns log Z, or NaN."""
    work, tables, peak, slot, _ = space
    order, parent, _, down, _ = forest
    n_labels = work.shape[2]
    kind = work.dtype.type
    log_z = 0.0
    for i in range(n):
        top = -np.inf
        for j in range(n_labels):
            if not constrained or sets.table[sets.ids[order[start + i]], j]:
                top = max(top, work[NODE, i, j])
        for j in range(n_labels):
            work[UP, i, j] = fast_exp(kind(work[NODE, i, j] - top))
        if constrained:
            for j in range(n_labels):
                if not sets.table[sets.ids[order[start + i]], j]:
                    work[UP, i, j] = 0
        log_z += top
    for i in range(n - 1, -1, -1):
        total = kind(0)
        for j in range(n_labels):
            total += work[UP, i, j]
        if not (total > 1e-30 and total < 1e30):
            return np.nan
        share = kind(1) / total
        for j in range(n_labels):
            work[UP, i, j] *= share
        log_z += np.log(total)
        p = parent[start + i] - start
        if parent[start + i] < 0:
            continue
        plane = EXP_TRANSPOSED if down[start + i] else EXP
        k = slot[i]
        for j in range(n_labels):
            work[MESSAGE, i, j] = 0
        for y in range(n_labels):
            b = work[UP, i, y]
            for j in range(n_labels):
                work[MESSAGE, i, j] += b * tables[plane, k, y, j]
        top_m = kind(0)
        for j in range(n_labels):
            top_m = max(top_m, work[MESSAGE, i, j])
        if not top_m > 1e-30:
            return np.nan
        share = kind(1) / top_m
        most = kind(0)
        for j in range(n_labels):
            work[MESSAGE, i, j] *= share
            work[UP, p, j] *= work[MESSAGE, i, j]
            most = max(most, work[UP, p, j])
        log_z += np.log(top_m) + peak[k]
        if most < 1e-12:  # long before the product of many children's messages underflows
            if not most > 1e-36:
                return np.nan
            share = kind(1) / most
            for j in range(n_labels):
                work[UP, p, j] *= share
            log_z += np.log(most)
    for i in range(n):
        if parent[start + i] < 0:
            for j in range(n_labels):
                work[CHANCE, i, j] = work[UP, i, j]
            continue
        p = parent[start + i] - start
        plane = EXP if down[start + i] else EXP_TRANSPOSED
        k = slot[i]
        for j in range(n_labels):
            m = work[MESSAGE, i, j]
            work[PULL, i, j] = work[CHANCE, p, j] / m if m > 1e-30 else kind(0)
            work[CHANCE, i, j] = 0
        for y in range(n_labels):
            q = work[PULL, i, y]
            for j in range(n_labels):
                work[CHANCE, i, j] += q * tables[plane, k, y, j]
        total = kind(0)
        for j in range(n_labels):
            work[CHANCE, i, j] *= work[UP, i, j]
            total += work[CHANCE, i, j]
        # q also has the scale that made m's maximum 1: the sum tells it.
        if not (total > 1e-30 and total < 1e30):
            return np.nan
        share = kind(1) / total
        for j in range(n_labels):
            work[CHANCE, i, j] *= share
            work[PULL, i, j] *= share
    return log_z


@inner
def _add_outer(
    work: Array, down: bool, k: int, i: int, weight: float, outer: Array, c: int
) -> None:
    """outer[c, k] += weight · q bᵀ, as the edge is stored."""
    n_labels = work.shape[2]
    rows = PULL if down else UP
    columns = UP if down else PULL
    w = outer.dtype.type(weight)
    for a in range(n_labels):
        x = w * work[rows, i, a]
        for b in range(n_labels):
            outer[c, k, a, b] += x * work[columns, i, b]


@inner
def _add_edge(
    work: Array, tables: Array, down: bool, k: int, i: int, sign: float, edge: Array
) -> None:
    """edge[i] += sign · P(y_first, y_second)."""
    n_labels = work.shape[2]
    rows = PULL if down else UP
    columns = UP if down else PULL
    w = work.dtype.type(sign)
    for a in range(n_labels):
        x = w * work[rows, i, a]
        for b in range(n_labels):
            edge[i, a * n_labels + b] += x * work[columns, i, b] * tables[EXP, k, a, b]


@inner
def _score(tables: Array, k: int, down: bool, upper: int, lower: int) -> float:
    """Score of the labels of a parent and its child."""
    score: float = tables[RAW, k, upper, lower] if down else tables[RAW, k, lower, upper]
    return score


@allocating
def _log_marginals_of_tree(
    sets: LabelSets,
    forest: Forest,
    start: int,
    n: int,
    constrained: bool,
    rich: Any,
    sign: float,
    weight: float,
    space: TreeSpace,
    pairs: Array,
    c: int,
) -> float:
    """Log-space twin for pieces that underflow: marginals and pairs; returns log Z."""
    work, tables, _, slot, edge = space
    order, parent, _, down, _ = forest
    n_labels = work.shape[2]
    up = np.empty((n, n_labels), np.float64)
    message = np.zeros((n, n_labels), np.float64)
    outside = np.zeros((n, n_labels), np.float64)
    terms = np.empty(n_labels, np.float64)
    for i in range(n):
        for j in range(n_labels):
            ok = not constrained or sets.table[sets.ids[order[start + i]], j]
            up[i, j] = work[NODE, i, j] if ok else -np.inf
    log_z = 0.0
    for i in range(n - 1, -1, -1):
        p = parent[start + i] - start
        if parent[start + i] < 0:
            log_z += log_sum(up[i])
            continue
        for x in range(n_labels):
            for y in range(n_labels):
                terms[y] = _score(tables, slot[i], down[start + i], x, y) + up[i, y]
            message[i, x] = log_sum(terms)
            up[p, x] += message[i, x]
    for i in range(n):
        p = parent[start + i] - start
        if parent[start + i] >= 0:
            for y in range(n_labels):
                for x in range(n_labels):
                    # What comes to the parent from everywhere but this child.
                    rest = -np.inf
                    if message[i, x] > -np.inf:
                        rest = outside[p, x] + up[p, x] - message[i, x]
                    terms[x] = _score(tables, slot[i], down[start + i], x, y) + rest
                outside[i, y] = log_sum(terms)
        for j in range(n_labels):
            terms[j] = up[i, j] + outside[i, j]
        node_z = log_sum(terms)
        for j in range(n_labels):
            work[CHANCE, i, j] = np.exp(terms[j] - node_z)
        if parent[start + i] < 0:
            continue
        for x in range(n_labels):
            if message[i, x] == -np.inf:
                continue
            for y in range(n_labels):
                s = _score(tables, slot[i], down[start + i], x, y)
                both = outside[p, x] + up[p, x] - message[i, x] + s + up[i, y]
                chance = sign * np.exp(both - node_z)
                a = x if down[start + i] else y
                b = y if down[start + i] else x
                if rich is None:
                    pairs[c, slot[i], a, b] += weight * chance
                else:
                    edge[i, a * n_labels + b] += chance
    return log_z
