"""Loss and expectations of one tree-shaped piece.

The piece is the nodes [start, end) of arrays in which parents come before their children:
``parent`` is the index of a node's parent in the same arrays (−1 at the root), ``down`` says
whether the edge between them is stored from parent to child. With node scores s_v, edge scores
S_e[first, second] and label sets Y_v the CRF loss is

    log Σ_y e^{s(y)} − log Σ_{y: y_v ∈ Y_v} e^{s(y)},
    s(y) = Σ_v s_v(y_v) + Σ_e S_e(y_first, y_second).

With E_v = e^{s_v − max} and A_v[y_p, y_v] = e^{S_e − max}, messages go up, then marginals down:

    b_v ∝ E_v ∘ Π_{children c} m_c,   m_v = A_v b_v (scaled to a maximum of 1),
    q_v = P_p / m_v,                  P_v = b_v ∘ (A_vᵀ q_v),   P(y_p, y_v) = A_v ∘ q_v b_vᵀ.

So every edge costs two products of a matrix and a vector, as on a chain. Edges that share a table
(``slot``) share A, and only outer products q_v b_vᵀ are summed for them. A piece whose scaling
underflows is done again in log space.

``tables`` (3, slots, L, L) holds e^{S − max}, its transpose and S itself, ``peak`` (slots,) max S.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import subkernel
from trellis.kernels.chain_lattice import log_sum
from trellis.kernels.fast_exp import fast_exp

__all__ = ["fill_table", "tree_annotation", "tree_loss"]

Array = np.ndarray[Any, Any]

# Planes of the workspace (6, longest piece, L) and of the tables.
NODE, UP, MESSAGE, PULL, GRADIENT, CHANCE = range(6)
N_WORK = 6
EXP, EXP_TRANSPOSED, RAW = range(3)

FULLY, PARTLY, NOTHING = range(3)


@subkernel
def fill_table(tables: Array, peak: Array, slot: int) -> None:
    """Refresh e^{S − max} and its transpose from S."""
    n_labels = tables.shape[2]
    top = tables[RAW, slot, 0, 0]
    for i in range(n_labels):
        for j in range(n_labels):
            top = max(top, tables[RAW, slot, i, j])
    peak[slot] = top
    for i in range(n_labels):
        for j in range(n_labels):
            tables[EXP, slot, i, j] = fast_exp(tables[RAW, slot, i, j] - top)
    for i in range(n_labels):
        for j in range(n_labels):
            tables[EXP_TRANSPOSED, slot, j, i] = tables[EXP, slot, i, j]


@subkernel
def tree_annotation(label: Array, nodes: Array, start: int, end: int, n_labels: int) -> int:
    """Whether every node has one label, some sets are larger, or nothing is annotated."""
    full = 0
    single = 0
    for i in range(start, end):
        if label[nodes[i]] < n_labels:
            single += 1
        elif label[nodes[i]] == n_labels:
            full += 1
    if single == end - start:
        return FULLY
    if full == end - start:
        return NOTHING
    return PARTLY


@subkernel
def tree_loss(
    label: Array,
    table: Array,
    nodes: Array,
    parent: Array,
    down: Array,
    start: int,
    end: int,
    slot: Array,
    tables: Array,
    peak: Array,
    work: Array,
    weight: float,
    outer: Array,
    pairs: Array,
    c: int,
    edge_out: Array,
) -> float:
    """Loss of a piece whose node scores are in work[NODE]; slot[i] is the table of its i-th node.

    work[GRADIENT] becomes ∂loss/∂node. With ``edge_out`` (longest, L²) of positive length the
    gradients of the edges' scores go there, each as its edge is stored; else they are added,
    weighted, to outer[c, slot] (still to be multiplied by e^{S − max}) and pairs[c, slot].
    """
    n = end - start
    n_labels = work.shape[2]
    alone = edge_out.shape[0] > 0
    kind = tree_annotation(label, nodes, start, end, n_labels)
    for i in range(n):
        for j in range(n_labels):
            work[GRADIENT, i, j] = 0
        if alone:
            for q in range(n_labels * n_labels):
                edge_out[i, q] = 0
    if kind == NOTHING:
        return 0.0
    loss = 0.0
    for constrained in range(2 if kind == PARTLY else 1):
        sign = 1.0 - 2.0 * constrained
        log_z = _marginals_of_tree(
            label, table, nodes, parent, down, start, n, slot, tables, peak, work, constrained == 1
        )
        if np.isfinite(log_z):
            for i in range(1, n):
                if parent[start + i] < 0:
                    continue
                if alone:
                    _add_edge(work, tables, down[start + i], slot[i], i, sign, edge_out)
                else:
                    _add_outer(work, down[start + i], slot[i], i, sign * weight, outer, c)
        else:
            log_z = _log_marginals_of_tree(
                label, table, nodes, parent, down, start, n, slot, tables, work,
                constrained == 1, sign, weight, pairs, c, edge_out,
            )  # fmt: skip
        loss += sign * log_z
        for i in range(n):
            for j in range(n_labels):
                work[GRADIENT, i, j] += work.dtype.type(sign) * work[CHANCE, i, j]
    if kind == FULLY:
        for i in range(n):
            y = label[nodes[start + i]]
            loss -= work[NODE, i, y]
            work[GRADIENT, i, y] -= 1
            p = parent[start + i]
            if p >= 0:
                first = label[nodes[p]] if down[start + i] else y
                second = y if down[start + i] else label[nodes[p]]
                loss -= tables[RAW, slot[i], first, second]
                if alone:
                    edge_out[i, first * n_labels + second] -= 1
                else:
                    pairs[c, slot[i], first, second] -= weight
    return loss


@subkernel
def _marginals_of_tree(
    label: Array,
    table: Array,
    nodes: Array,
    parent: Array,
    down: Array,
    start: int,
    n: int,
    slot: Array,
    tables: Array,
    peak: Array,
    work: Array,
    constrained: bool,
) -> float:
    """Marginals into work[CHANCE]; b, m and q stay in the workspace. Returns log Z, or NaN."""
    n_labels = work.shape[2]
    kind = work.dtype.type
    log_z = 0.0
    for i in range(n):
        top = -np.inf
        for j in range(n_labels):
            if not constrained or table[label[nodes[start + i]], j]:
                top = max(top, work[NODE, i, j])
        for j in range(n_labels):
            work[UP, i, j] = fast_exp(kind(work[NODE, i, j] - top))
        if constrained:
            for j in range(n_labels):
                if not table[label[nodes[start + i]], j]:
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


@subkernel
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


@subkernel
def _add_edge(
    work: Array, tables: Array, down: bool, k: int, i: int, sign: float, edge_out: Array
) -> None:
    """edge_out[i] += sign · P(y_first, y_second)."""
    n_labels = work.shape[2]
    rows = PULL if down else UP
    columns = UP if down else PULL
    w = work.dtype.type(sign)
    for a in range(n_labels):
        x = w * work[rows, i, a]
        for b in range(n_labels):
            edge_out[i, a * n_labels + b] += x * work[columns, i, b] * tables[EXP, k, a, b]


@subkernel
def _log_marginals_of_tree(
    label: Array,
    table: Array,
    nodes: Array,
    parent: Array,
    down: Array,
    start: int,
    n: int,
    slot: Array,
    tables: Array,
    work: Array,
    constrained: bool,
    sign: float,
    weight: float,
    pairs: Array,
    c: int,
    edge_out: Array,
) -> float:
    """Log-space twin for pieces that underflow: marginals and pairs; returns log Z."""
    n_labels = work.shape[2]
    alone = edge_out.shape[0] > 0
    up = np.empty((n, n_labels), np.float64)
    message = np.zeros((n, n_labels), np.float64)
    outside = np.zeros((n, n_labels), np.float64)
    terms = np.empty(n_labels, np.float64)
    for i in range(n):
        for j in range(n_labels):
            ok = not constrained or table[label[nodes[start + i]], j]
            up[i, j] = work[NODE, i, j] if ok else -np.inf
    log_z = 0.0
    for i in range(n - 1, -1, -1):
        p = parent[start + i] - start
        if parent[start + i] < 0:
            log_z += log_sum(up[i])
            continue
        for x in range(n_labels):
            for y in range(n_labels):
                s = tables[RAW, slot[i], x, y] if down[start + i] else tables[RAW, slot[i], y, x]
                terms[y] = s + up[i, y]
            message[i, x] = log_sum(terms)
            up[p, x] += message[i, x]
    for i in range(n):
        p = parent[start + i] - start
        if parent[start + i] >= 0:
            for y in range(n_labels):
                for x in range(n_labels):
                    s = (
                        tables[RAW, slot[i], x, y] if down[start + i]
                        else tables[RAW, slot[i], y, x]
                    )  # fmt: skip
                    # What comes to the parent from everywhere but this child.
                    rest = -np.inf
                    if message[i, x] > -np.inf:
                        rest = outside[p, x] + up[p, x] - message[i, x]
                    terms[x] = s + rest
                outside[i, y] = log_sum(terms)
        here = up[i] + outside[i]
        own_z = log_sum(here)
        for j in range(n_labels):
            work[CHANCE, i, j] = np.exp(here[j] - own_z)
        if parent[start + i] < 0:
            continue
        for x in range(n_labels):
            if message[i, x] == -np.inf:
                continue
            for y in range(n_labels):
                s = tables[RAW, slot[i], x, y] if down[start + i] else tables[RAW, slot[i], y, x]
                both = outside[p, x] + up[p, x] - message[i, x] + s + up[i, y]
                chance = sign * np.exp(both - own_z)
                a = x if down[start + i] else y
                b = y if down[start + i] else x
                if alone:
                    edge_out[i, a * n_labels + b] += chance
                else:
                    pairs[c, slot[i], a, b] += weight * chance
    return log_z
