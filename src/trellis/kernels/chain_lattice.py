"""Loss and expectations of one piece of a chain (a run of consecutive positions).

A piece with node scores s_t(y), transitions T and allowed label sets Y_t has the CRF loss

    log Σ_y e^{s(y)} − log Σ_{y: y_t ∈ Y_t} e^{s(y)},   s(y) = Σ_t s_t(y_t) + Σ_t T[y_{t-1}, y_t];

a gold label is a set of one. Both sums and their expectations come from a scaled forward–backward
pass (α normalised at every position by c_t, V = E ∘ β / c):

    α_t ∝ E_t ∘ (Uᵀ α_{t-1}),    β_{t-1} = U V_t,    P_t = α_t ∘ β_t

with E = e^{s − row maximum} and U = e^{T − max T}. Expected transition counts are
U ∘ Σ_t α_{t-1} V_tᵀ, so only outer products are summed here and U is multiplied in once for many
pieces (those of chunk c, in outer[c]). A piece whose scaling underflows is done again in log space.

``label`` (N,) holds ids of rows of the label-set table (R, L): the first L rows are the single
labels, row L is the full set.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import subkernel
from trellis.kernels.fast_exp import fast_exp

__all__ = ["annotation", "exponentiate", "log_sum", "piece_loss"]

Array = np.ndarray[Any, Any]

# Planes of the workspace ``work`` (7, longest piece, L) and of ``tables`` (2, L, L).
NODE, POTENTIAL, ALPHA, BETA, SCALED, GRADIENT, TARGET = range(7)
U, U_TRANSPOSED = range(2)
N_WORK, N_TABLES = 7, 2

# How much of a piece is annotated.
FULLY, PARTLY, NOTHING = range(3)


@subkernel
def exponentiate(T: Array, tables: Array) -> float:
    """Refresh U = e^{T − max T} and its transpose; returns max T."""
    n_labels = T.shape[0]
    t_max: float = T[0, 0]
    for i in range(n_labels):
        for j in range(n_labels):
            t_max = max(t_max, T[i, j])
    for i in range(n_labels):
        for j in range(n_labels):
            tables[U, i, j] = fast_exp(T[i, j] - t_max)
    for i in range(n_labels):
        for j in range(n_labels):
            tables[U_TRANSPOSED, j, i] = tables[U, i, j]
    return t_max


@subkernel
def annotation(label: Array, start: int, end: int, n_labels: int) -> int:
    """Whether every position has one label, some sets are larger, or nothing is annotated."""
    full = 0
    single = 0
    for t in range(start, end):
        if label[t] < n_labels:
            single += 1
        elif label[t] == n_labels:
            full += 1
    if single == end - start:
        return FULLY
    if full == end - start:
        return NOTHING
    return PARTLY


@subkernel
def piece_loss(
    T: Array,
    t_max: float,
    label: Array,
    start: int,
    end: int,
    table: Array,
    weight: float,
    work: Array,
    tables: Array,
    outer: Array,
    pairs: Array,
    c: int,
    hits: Any,
    shares: Any,
) -> float:
    """Loss of the piece [start, end) whose node scores are in work[NODE].

    work[GRADIENT] becomes ∂loss/∂node (unweighted); weight · ∂loss/∂T is added to outer[c]
    (still to be multiplied by U) and to pairs[c]. With sparse edges (``hits`` is not None, see
    :mod:`trellis.kernels.sparse_edges`) the hits' ∂loss/∂δ goes to their gradient; ``shares`` are
    (begin, count, gold), where the hits of each position are.
    """
    n = end - start
    n_labels = T.shape[0]
    kind = annotation(label, start, end, n_labels)
    if kind == NOTHING:
        for t in range(n):
            for j in range(n_labels):
                work[GRADIENT, t, j] = 0
            if hits is not None:
                for h in range(shares[0][t], shares[0][t] + shares[1][t]):
                    hits[4][h] = 0
        return 0.0
    loss = 0.0
    # First over all labellings, then over the allowed ones: one call in a loop, because two calls
    # would be inlined twice and double the time to compile.
    for constrained in range(2 if kind == PARTLY else 1):
        sign = 1 - 2 * constrained
        into = TARGET if constrained else GRADIENT
        loss += sign * _expectations(
            T, t_max, label, start, end, table, constrained == 1, sign * weight,
            work, tables, outer, pairs, c, into, hits, shares,
        )  # fmt: skip
    if kind == PARTLY:
        for t in range(n):
            for j in range(n_labels):
                work[GRADIENT, t, j] -= work[TARGET, t, j]
        return loss
    gold = 0.0
    for t in range(n):
        y = label[start + t]
        gold += work[NODE, t, y]
        work[GRADIENT, t, y] -= 1
        if t > 0:
            before = label[start + t - 1]
            gold += T[before, y]
            pairs[c, before, y] -= weight
            if hits is not None and shares[2][t] >= 0:
                gold += hits[2][shares[2][t]]
                hits[4][shares[2][t]] -= 1
    return loss - gold


# The functions below index ``work`` and ``tables`` directly. Slices would read better, but each
# makes a counted reference, which costs more than the arithmetic of a short piece.


@subkernel
def _expectations(
    T: Array,
    t_max: float,
    label: Array,
    start: int,
    end: int,
    table: Array,
    constrained: bool,
    weight: float,
    work: Array,
    tables: Array,
    outer: Array,
    pairs: Array,
    chunk: int,
    into: int,
    hits: Any,
    shares: Any,
) -> float:
    """Marginals of one piece into work[into], weighted transitions as in piece_loss; log Z."""
    n = end - start
    n_labels = T.shape[0]
    zero = work.dtype.type(0)
    one = work.dtype.type(1)
    log_z = 0.0
    product = 1.0
    lost = False
    for t in range(n):
        top = work.dtype.type(-np.inf)
        if constrained:
            row = label[start + t]
            for j in range(n_labels):
                if table[row, j]:
                    top = max(top, work[NODE, t, j])
            for j in range(n_labels):
                e = fast_exp(min(work[NODE, t, j] - top, zero))
                work[POTENTIAL, t, j] = e if table[row, j] else zero
        else:
            for j in range(n_labels):
                top = max(top, work[NODE, t, j])
            for j in range(n_labels):
                work[POTENTIAL, t, j] = fast_exp(work[NODE, t, j] - top)
        if t == 0:
            for j in range(n_labels):
                work[ALPHA, 0, j] = work[POTENTIAL, 0, j]
        else:
            _times(work, ALPHA, t - 1, tables, U, ALPHA, t)
            if hits is not None:
                for h in range(shares[0][t], shares[0][t] + shares[1][t]):
                    work[ALPHA, t, hits[1][h]] += work[ALPHA, t - 1, hits[0][h]] * hits[3][h]
                for j in range(n_labels):  # rounding may leave less than nothing
                    work[ALPHA, t, j] = max(work[ALPHA, t, j], zero)
            for j in range(n_labels):
                work[ALPHA, t, j] *= work[POTENTIAL, t, j]
        c = zero
        for j in range(n_labels):
            c += work[ALPHA, t, j]
        if not 1e-15 < c < 1e30:  # underflow, or a sparse edge too large
            lost = True
            break
        inverse = one / c
        for j in range(n_labels):
            work[ALPHA, t, j] *= inverse
            work[SCALED, t, j] = work[POTENTIAL, t, j] * inverse
        log_z += top
        product *= c  # one logarithm for many positions
        if not 1e-200 < product < 1e200:
            log_z += np.log(product)
            product = 1.0
    for j in range(n_labels):
        work[BETA, n - 1, j] = 1
        work[into, n - 1, j] = work[ALPHA, n - 1, j]
    for t in range(0 if lost else n - 1, 0, -1):
        for j in range(n_labels):
            work[SCALED, t, j] *= work[BETA, t, j]
        _times(work, SCALED, t, tables, U_TRANSPOSED, BETA, t - 1)
        cancelled = zero
        if hits is not None:
            for h in range(shares[0][t], shares[0][t] + shares[1][t]):
                x = hits[3][h] * work[SCALED, t, hits[1][h]]
                work[BETA, t - 1, hits[0][h]] += x
                cancelled -= work[ALPHA, t - 1, hits[0][h]] * min(x, zero)
            for j in range(n_labels):
                work[BETA, t - 1, j] = max(work[BETA, t - 1, j], zero)
        future = zero
        for j in range(n_labels):
            work[into, t - 1, j] = work[ALPHA, t - 1, j] * work[BETA, t - 1, j]
            future += work[BETA, t - 1, j]
        # What α lost to underflow is below 1e-38 / c, but a large β would make it count. And where
        # sparse edges take away far more than they leave (which is 1), roundings are left.
        if not (future < 1e15 and cancelled < 1e3):
            lost = True
            break
    if lost:
        return _log_forward_backward(
            T, label, start, table, constrained, work, n, into, pairs, chunk, weight,
            hits, shares,
        )  # fmt: skip
    _add_outer_products(work, outer, chunk, n, weight)
    if hits is not None:
        source, target, _, extra, gradient, _ = hits
        for t in range(1, n):
            for h in range(shares[0][t], shares[0][t] + shares[1][t]):
                i = source[h]
                j = target[h]
                both = work[ALPHA, t - 1, i] * work[SCALED, t, j]
                here = both * (tables[U, i, j] + extra[h])
                gradient[h] = gradient[h] - here if constrained else here
                pairs[chunk, i, j] += weight * (both * extra[h])
    total: float = log_z + np.log(product) + (n - 1) * t_max
    return total


@subkernel
def _times(
    work: Array, source: int, row: int, tables: Array, matrix: int, target: int, target_row: int
) -> None:
    """work[target] = work[source] · tables[matrix] for one row each, four matrix rows at a time."""
    n_labels = tables.shape[1]
    x0 = work[source, row, 0]
    for j in range(n_labels):
        work[target, target_row, j] = x0 * tables[matrix, 0, j]
    i = 1
    while i + 4 <= n_labels:
        x0 = work[source, row, i]
        x1 = work[source, row, i + 1]
        x2 = work[source, row, i + 2]
        x3 = work[source, row, i + 3]
        for j in range(n_labels):
            work[target, target_row, j] += (
                x0 * tables[matrix, i, j]
                + x1 * tables[matrix, i + 1, j]
                + x2 * tables[matrix, i + 2, j]
                + x3 * tables[matrix, i + 3, j]
            )
        i += 4
    while i < n_labels:
        x0 = work[source, row, i]
        for j in range(n_labels):
            work[target, target_row, j] += x0 * tables[matrix, i, j]
        i += 1


@subkernel
def _add_outer_products(work: Array, outer: Array, chunk: int, n: int, weight: float) -> None:
    """outer[chunk] += weight · Σ_t α_{t-1} V_tᵀ, four positions at a time."""
    n_labels = outer.shape[1]
    w = outer.dtype.type(weight)
    t = 1
    while t + 4 <= n:
        for i in range(n_labels):
            x0 = w * work[ALPHA, t - 1, i]
            x1 = w * work[ALPHA, t, i]
            x2 = w * work[ALPHA, t + 1, i]
            x3 = w * work[ALPHA, t + 2, i]
            for j in range(n_labels):
                outer[chunk, i, j] += (
                    x0 * work[SCALED, t, j]
                    + x1 * work[SCALED, t + 1, j]
                    + x2 * work[SCALED, t + 2, j]
                    + x3 * work[SCALED, t + 3, j]
                )
        t += 4
    while t < n:
        for i in range(n_labels):
            x0 = w * work[ALPHA, t - 1, i]
            for j in range(n_labels):
                outer[chunk, i, j] += x0 * work[SCALED, t, j]
        t += 1


@subkernel
def _log_forward_backward(
    T: Array,
    label: Array,
    start: int,
    table: Array,
    constrained: bool,
    work: Array,
    n: int,
    into: int,
    pairs: Array,
    chunk: int,
    weight: float,
    hits: Any,
    shares: Any,
) -> float:
    """Log-space twin for pieces that underflow: marginals into work[into]; returns log Z."""
    n_labels = T.shape[0]
    S = np.empty((n, n_labels), np.float64)
    for t in range(n):
        for j in range(n_labels):
            ok = not constrained or table[label[start + t], j]
            S[t, j] = work[NODE, t, j] if ok else -np.inf
    edge = np.empty((n, n_labels, n_labels), np.float64)
    for t in range(n):
        edge[t] = T
        if hits is not None:
            for h in range(shares[0][t], shares[0][t] + shares[1][t]):
                edge[t, hits[0][h], hits[1][h]] += hits[2][h]
    terms = np.empty(n_labels, np.float64)
    a = np.empty((n, n_labels), np.float64)
    b = np.zeros((n, n_labels), np.float64)
    for j in range(n_labels):
        a[0, j] = S[0, j]
    for t in range(1, n):
        for j in range(n_labels):
            for i in range(n_labels):
                terms[i] = a[t - 1, i] + edge[t, i, j]
            a[t, j] = S[t, j] + log_sum(terms)
    for t in range(n - 1, 0, -1):
        for i in range(n_labels):
            for j in range(n_labels):
                terms[j] = edge[t, i, j] + S[t, j] + b[t, j]
            b[t - 1, i] = log_sum(terms)
    log_z = log_sum(a[n - 1])
    for t in range(n):
        for j in range(n_labels):
            work[into, t, j] = np.exp(a[t, j] + b[t, j] - log_z)
            if t > 0:
                for i in range(n_labels):
                    both = a[t - 1, i] + edge[t, i, j] + S[t, j] + b[t, j]
                    pairs[chunk, i, j] += weight * np.exp(both - log_z)
        if hits is not None:
            for h in range(shares[0][t], shares[0][t] + shares[1][t]):
                i = hits[0][h]
                j = hits[1][h]
                here = np.exp(a[t - 1, i] + edge[t, i, j] + S[t, j] + b[t, j] - log_z)
                hits[4][h] = hits[4][h] - here if constrained else here
    return log_z


@subkernel
def log_sum(x: Array) -> float:
    """Log Σ e^x, −inf if all are."""
    top = -np.inf
    for i in range(x.size):
        top = max(top, x[i])
    if top == -np.inf:
        return top
    total = 0.0
    for i in range(x.size):
        total += np.exp(x[i] - top)
    result: float = top + np.log(total)
    return result
