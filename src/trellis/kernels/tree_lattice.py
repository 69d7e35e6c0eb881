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
from trellis.kernels.lanes import at_least, load, padded, store
from trellis.kernels.row_products import (
    add_scaled,
    copy_row,
    exponentiate_table,
    multiply_row,
    relative_exponentials,
    row_max,
    row_sum,
    row_times,
    scale_row,
)
from trellis.kernels.visits import FULLY, NOTHING, PARTLY, LabelSets, Visits, annotation

__all__ = ["TreeSpace", "fill_table", "tree_loss", "tree_space"]

Array = np.ndarray[Any, Any]

# Planes of the workspace and of its tables.
NODE, UP, MESSAGE, PULL, GRADIENT, CHANCE = range(6)
N_WORK = 6
EXP, EXP_TRANSPOSED, RAW = range(3)


class TreeSpace(NamedTuple):
    """Room to work in on pieces of up to n nodes, of each thread.

    With rows of L labels padded to P, ``work`` (6, n, P) are those of nodes (−inf beyond the labels
    for the scores, else 0); ``tables`` (3, slots, P, P) hold e^{S − max}, its transpose and S,
    ``peak`` (slots,) max S; ``slot`` (n,) is the table of the edge above each node. Only rich
    edges, each of which has a table of its own, need ``edge`` (n, L²), the gradient of their
    scores, each as it is stored.
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
    width = padded(n_labels)
    n_slots = n_types if rich is None else longest
    n_edges = 0 if rich is None else longest
    work = np.zeros((N_WORK, longest, width), W.dtype)
    for i in range(longest):
        for j in range(n_labels, width):
            work[NODE, i, j] = -np.inf
    return TreeSpace(
        work,
        np.zeros((3, n_slots, width, width), W.dtype),
        np.zeros(n_slots, W.dtype),
        np.zeros(longest, np.int64),
        np.zeros((n_edges, n_labels * n_labels), W.dtype),
    )


@inner
def fill_table(space: TreeSpace, slot: int, n_labels: int) -> None:
    """Refresh e^{S − max} and its transpose from S."""
    tables = space.tables
    _, n_slots, _, width = tables.shape
    raw, to, turned = RAW * n_slots + slot, EXP * n_slots + slot, EXP_TRANSPOSED * n_slots + slot
    size = width * width
    space.peak[slot] = exponentiate_table(
        tables, raw * size, width, n_labels, tables, to * size, turned * size
    )


@fragment
def tree_loss(
    sets: LabelSets,
    visits: Visits,
    k: int,
    forest: Forest,
    rich: Any,
    weight: float,
    n_labels: int,
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
    kind_of = work.dtype.type
    size = work.shape[1] * work.shape[2]
    gradient, chance = GRADIENT * size, CHANCE * size
    for constrained in range(2 if kind == PARTLY else 1):
        sign = 1.0 - 2.0 * constrained
        log_z = _marginals_of_tree(sets, forest, start, n, constrained == 1, n_labels, space)
        if np.isfinite(log_z):
            for i in range(1, n):
                if parent[start + i] < 0:
                    continue
                if rich is None:
                    _add_outer(work, down[start + i], slot[i], i, sign * weight, n_labels, outer, c)
                else:
                    _add_edge(work, space.tables, down[start + i], slot[i], i, sign, n_labels, edge)
        else:
            log_z = _log_marginals_of_tree(
                sets, forest, start, n, constrained == 1, rich, sign, weight, n_labels, space,
                pairs, c,
            )  # fmt: skip
        loss += sign * log_z
        for i in range(n):
            to = i * work.shape[2]
            add_scaled(work, gradient + to, work.shape[2], kind_of(sign), work, chance + to)
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
    sets: LabelSets,
    forest: Forest,
    start: int,
    n: int,
    constrained: bool,
    n_labels: int,
    space: TreeSpace,
) -> float:
    """Marginals into work[CHANCE]; b, m and q stay in the workspace. Returns log Z, or NaN."""
    work, tables, peak, slot, _ = space
    order, parent, _, down, _ = forest
    width = work.shape[2]
    size = work.shape[1] * width
    node, up, message, pull, chance = (
        NODE * size,
        UP * size,
        MESSAGE * size,
        PULL * size,
        CHANCE * size,
    )
    n_slots, area = tables.shape[1], width * width
    kind = work.dtype.type
    zero, one = kind(0), kind(1)
    log_z = 0.0
    for i in range(n):
        if constrained:
            row = sets.ids[order[start + i]]
            top = kind(-np.inf)
            for j in range(n_labels):
                if sets.table[row, j]:
                    top = max(top, work[NODE, i, j])
            for j in range(n_labels):
                e = fast_exp(min(work[NODE, i, j] - top, zero))
                work[UP, i, j] = e if sets.table[row, j] else zero
            log_z += top
        else:
            at = i * width
            log_z += relative_exponentials(work, node + at, width, work, up + at)
    for i in range(n - 1, -1, -1):
        at = i * width
        mass = row_sum(work, up + at, width)
        if not (mass > 1e-30 and mass < 1e30):
            return np.nan
        scale_row(work, up + at, width, one / mass, work, up + at)
        log_z += np.log(mass)
        p = parent[start + i] - start
        if parent[start + i] < 0:
            continue
        plane = EXP_TRANSPOSED if down[start + i] else EXP
        k = slot[i]
        table = (plane * n_slots + k) * area
        row_times(work, up + at, tables, table, n_labels, work, message + at)
        top_m = row_max(work, message + at, width)
        if not top_m > 1e-30:
            return np.nan
        scale_row(work, message + at, width, one / top_m, work, message + at)
        above = up + p * width
        multiply_row(work, above, work, message + at, width, work, above)
        most = row_max(work, above, width)
        log_z += np.log(top_m) + peak[k]
        if most < 1e-12:  # long before the product of many children's messages underflows
            if not most > 1e-36:
                return np.nan
            scale_row(work, above, width, one / most, work, above)
            log_z += np.log(most)
    for i in range(n):
        at = i * width
        if parent[start + i] < 0:
            copy_row(work, up + at, width, work, chance + at)
            continue
        p = parent[start + i] - start
        plane = EXP if down[start + i] else EXP_TRANSPOSED
        k = slot[i]
        for j in range(0, width, 8):
            m = load(work, message + at + j)
            q = load(work, chance + p * width + j) / m
            store(work, pull + at + j, at_least(m, kind(1e-30), q))
        table = (plane * n_slots + k) * area
        row_times(work, pull + at, tables, table, n_labels, work, chance + at)
        multiply_row(work, chance + at, work, up + at, width, work, chance + at)
        # q also has the scale that made m's maximum 1: the sum tells it.
        mass = row_sum(work, chance + at, width)
        if not (mass > 1e-30 and mass < 1e30):
            return np.nan
        scale_row(work, chance + at, width, one / mass, work, chance + at)
        scale_row(work, pull + at, width, one / mass, work, pull + at)
    return log_z


@inner
def _add_outer(
    work: Array,
    down: bool,
    k: int,
    i: int,
    weight: float,
    n_labels: int,
    outer: Array,
    c: int,
) -> None:
    """outer[c, k] += weight · q bᵀ, as the edge is stored."""
    rows = PULL if down else UP
    columns = UP if down else PULL
    w = outer.dtype.type(weight)
    width = work.shape[2]
    at = (columns * work.shape[1] + i) * width
    to = (c * outer.shape[1] + k) * width * width
    for a in range(n_labels):
        add_scaled(outer, to + a * width, width, w * work[rows, i, a], work, at)


@inner
def _add_edge(
    work: Array,
    tables: Array,
    down: bool,
    k: int,
    i: int,
    sign: float,
    n_labels: int,
    edge: Array,
) -> None:
    """edge[i] += sign · P(y_first, y_second)."""
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
    n_labels: int,
    space: TreeSpace,
    pairs: Array,
    c: int,
) -> float:
    """Log-space twin for pieces that underflow: marginals and pairs; returns log Z."""
    work, tables, _, slot, edge = space
    order, parent, _, down, _ = forest
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
