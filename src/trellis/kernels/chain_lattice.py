"""Loss and expectations of one piece of a chain (a run of consecutive positions).

A piece with node scores s_t(y), transitions T and allowed label sets Y_t has the CRF loss

    log Σ_y e^{s(y)} − log Σ_{y: y_t ∈ Y_t} e^{s(y)},   s(y) = Σ_t s_t(y_t) + Σ_t T[y_{t-1}, y_t];

a gold label is a set of one. Both sums and their expectations come from a scaled forward–backward
pass (α normalised at every position by c_t, V = E ∘ β / c):

    α_t ∝ E_t ∘ (Uᵀ α_{t-1}),    β_{t-1} = U V_t,    P_t = α_t ∘ β_t

with E = e^{s − row maximum} and U = e^{T − max T}. Expected transition counts are
U ∘ Σ_t α_{t-1} V_tᵀ, so only outer products are summed here and U is multiplied in once for many
pieces. A piece whose scaling underflows is done again in log space.

``label`` (N,) holds ids of rows of the label-set table (R, L): the first L rows are the single
labels, row L is the full set.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import subkernel
from trellis.kernels.fast_exp import fast_exp

__all__ = ["annotation", "exponentiate", "piece_loss"]

Array = np.ndarray[Any, Any]

# Rows of the workspace ``work`` (7, longest piece, L) and of ``tables`` (3, L, L). Passing two
# arrays instead of ten is what keeps calls for short pieces cheap.
NODE, POTENTIAL, ALPHA, BETA, SCALED, GRADIENT, TARGET = range(7)
U, U_TRANSPOSED, OUTER = range(3)
N_WORK, N_TABLES = 7, 3

# How much of a piece is annotated.
FULLY, PARTLY, NOTHING = range(3)


@subkernel
def exponentiate(T: Array, tables: Array) -> float:
    """Refresh U = e^{T − max T} and its transpose; returns max T."""
    n_labels = T.shape[0]
    t_max: float = T.max()
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
    pairs: Array,
) -> float:
    """Loss of the piece [start, end) whose node scores are in work[NODE].

    work[GRADIENT] becomes ∂loss/∂node (unweighted); weight · ∂loss/∂T is added to tables[OUTER]
    (still to be multiplied by U) and to ``pairs``.
    """
    n = end - start
    n_labels = T.shape[0]
    P = work[GRADIENT]
    kind = annotation(label, start, end, n_labels)
    if kind == NOTHING:
        for t in range(n):
            for j in range(n_labels):
                P[t, j] = 0
        return 0.0
    loss = 0.0
    # First over all labellings, then over the allowed ones: one call in a loop, because two calls
    # would be inlined twice and double the time to compile.
    for constrained in range(2 if kind == PARTLY else 1):
        sign = 1 - 2 * constrained
        into = TARGET if constrained else GRADIENT
        loss += sign * _expectations(
            T, t_max, label, start, end, table, constrained == 1, sign * weight,
            work, tables, pairs, into,
        )  # fmt: skip
    if kind == PARTLY:
        Q = work[TARGET]
        for t in range(n):
            for j in range(n_labels):
                P[t, j] -= Q[t, j]
        return loss
    node = work[NODE]
    gold = 0.0
    for t in range(n):
        y = label[start + t]
        gold += node[t, y]
        P[t, y] -= 1
        if t > 0:
            before = label[start + t - 1]
            gold += T[before, y]
            pairs[before, y] -= weight
    return loss - gold


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
    pairs: Array,
    into: int,
) -> float:
    """Marginals of one piece into work[into], weighted transitions as in piece_loss; log Z."""
    n = end - start
    n_labels = T.shape[0]
    node = work[NODE]
    E = work[POTENTIAL]
    log_z = 0.0
    zero = node.dtype.type(0)
    for t in range(n):
        top = node.dtype.type(-np.inf)
        if constrained:
            row = label[start + t]
            for j in range(n_labels):
                if table[row, j]:
                    top = max(top, node[t, j])
            for j in range(n_labels):
                e = fast_exp(min(node[t, j] - top, zero))
                E[t, j] = e if table[row, j] else zero
        else:
            for j in range(n_labels):
                top = max(top, node[t, j])
            for j in range(n_labels):
                E[t, j] = fast_exp(node[t, j] - top)
        log_z += top
    alpha = work[ALPHA]
    beta = work[BETA]
    V = work[SCALED]
    P = work[into]
    log_c = _forward_backward(E, tables[U], tables[U_TRANSPOSED], n, alpha, beta, V)
    if np.isnan(log_c):
        S = np.empty((n, n_labels), np.float64)
        for t in range(n):
            for j in range(n_labels):
                ok = not constrained or table[label[start + t], j]
                S[t, j] = node[t, j] if ok else -np.inf
        return _log_forward_backward(S, T, P, pairs, weight)
    for t in range(n):
        for j in range(n_labels):
            P[t, j] = alpha[t, j] * beta[t, j]
    _add_outer_products(alpha, V, n, weight, tables[OUTER])
    return log_z + log_c + (n - 1) * t_max


@subkernel
def _forward_backward(
    E: Array, M: Array, M_transposed: Array, n: int, alpha: Array, beta: Array, V: Array
) -> float:
    """Scaled forward–backward; returns Σ_t log c_t, or NaN when a position underflows."""
    n_labels = M.shape[0]
    log_c = 0.0
    for t in range(n):
        if t == 0:
            for j in range(n_labels):
                alpha[0, j] = E[0, j]
        else:
            _times(alpha[t - 1], M, alpha[t])
            for j in range(n_labels):
                alpha[t, j] *= E[t, j]
        c = alpha.dtype.type(0)
        for j in range(n_labels):
            c += alpha[t, j]
        if not c > 1e-30:
            return np.nan
        inverse = alpha.dtype.type(1) / c
        for j in range(n_labels):
            alpha[t, j] *= inverse
            V[t, j] = E[t, j] * inverse
        log_c += np.log(np.float64(c))
    for j in range(n_labels):
        beta[n - 1, j] = 1
    for t in range(n - 1, 0, -1):
        for j in range(n_labels):
            V[t, j] *= beta[t, j]
        _times(V[t], M_transposed, beta[t - 1])
    return log_c


@subkernel
def _times(x: Array, M: Array, out: Array) -> None:
    """Out = x M, four rows at a time: a quarter of the loads and stores of ``out``."""
    n_labels = M.shape[0]
    for j in range(n_labels):
        out[j] = 0
    i = 0
    while i + 4 <= n_labels:
        x0 = x[i]
        x1 = x[i + 1]
        x2 = x[i + 2]
        x3 = x[i + 3]
        for j in range(n_labels):
            out[j] += x0 * M[i, j] + x1 * M[i + 1, j] + x2 * M[i + 2, j] + x3 * M[i + 3, j]
        i += 4
    while i < n_labels:
        x0 = x[i]
        for j in range(n_labels):
            out[j] += x0 * M[i, j]
        i += 1


@subkernel
def _add_outer_products(alpha: Array, V: Array, n: int, weight: float, outer: Array) -> None:
    """Outer += weight · Σ_t α_{t-1} V_tᵀ, four positions at a time."""
    n_labels = outer.shape[0]
    w = outer.dtype.type(weight)
    t = 1
    while t + 4 <= n:
        for i in range(n_labels):
            x0 = w * alpha[t - 1, i]
            x1 = w * alpha[t, i]
            x2 = w * alpha[t + 1, i]
            x3 = w * alpha[t + 2, i]
            for j in range(n_labels):
                outer[i, j] += x0 * V[t, j] + x1 * V[t + 1, j] + x2 * V[t + 2, j] + x3 * V[t + 3, j]
        t += 4
    while t < n:
        for i in range(n_labels):
            x0 = w * alpha[t - 1, i]
            for j in range(n_labels):
                outer[i, j] += x0 * V[t, j]
        t += 1


@subkernel
def _log_forward_backward(S: Array, T: Array, P: Array, pairs: Array, weight: float) -> float:
    """Log-space twin for pieces that underflow: marginals into P, transitions into pairs; log Z."""
    n, n_labels = S.shape
    terms = np.empty(n_labels, np.float64)
    a = np.empty((n, n_labels), np.float64)
    b = np.zeros((n, n_labels), np.float64)
    for j in range(n_labels):
        a[0, j] = S[0, j]
    for t in range(1, n):
        for j in range(n_labels):
            for i in range(n_labels):
                terms[i] = a[t - 1, i] + T[i, j]
            a[t, j] = S[t, j] + _log_sum(terms)
    for t in range(n - 1, 0, -1):
        for i in range(n_labels):
            for j in range(n_labels):
                terms[j] = T[i, j] + S[t, j] + b[t, j]
            b[t - 1, i] = _log_sum(terms)
    log_z = _log_sum(a[n - 1])
    for t in range(n):
        for j in range(n_labels):
            P[t, j] = np.exp(a[t, j] + b[t, j] - log_z)
            if t > 0:
                for i in range(n_labels):
                    both = a[t - 1, i] + T[i, j] + S[t, j] + b[t, j]
                    pairs[i, j] += weight * np.exp(both - log_z)
    return log_z


@subkernel
def _log_sum(x: Array) -> float:
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
