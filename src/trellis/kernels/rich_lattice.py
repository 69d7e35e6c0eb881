"""Loss and expectations of one piece of a chain whose edge scores differ from edge to edge.

The loss is that of :mod:`trellis.kernels.chain_lattice` with

    s(y) = Σ_t s_t(y_t) + Σ_{t ≥ 1} S_t(y_{t-1}, y_t).

Scaled forward–backward, with E_t = e^{s_t − max s_t} and U_t = e^{S_t − max S_t}:

    α_t ∝ E_t ∘ (U_tᵀ α_{t-1}),  V_t = E_t ∘ β_t / c_t,  β_{t-1} = U_t V_t,
    P(y_{t-1} = i, y_t = j) = α_{t-1}(i) U_t(i, j) V_t(j).

U_t is replaced in place by the pair marginals. A piece whose scaling underflows is done again in
log space.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import subkernel
from trellis.kernels.chain_lattice import (
    ALPHA,
    BETA,
    GRADIENT,
    NODE,
    NOTHING,
    PARTLY,
    POTENTIAL,
    SCALED,
    TARGET,
    annotation,
    log_sum,
)
from trellis.kernels.fast_exp import fast_exp

__all__ = ["rich_piece_loss"]

Array = np.ndarray[Any, Any]


@subkernel
def rich_piece_loss(
    label: Array,
    start: int,
    end: int,
    table: Array,
    work: Array,
    edge: Array,
    pairs: Array,
) -> float:
    """Loss of the piece [start, end) with node scores work[NODE] and edge scores edge[1:].

    work[GRADIENT] becomes ∂loss/∂node and edge[1:] is replaced by ∂loss/∂edge. ``pairs``
    (2, longest piece, L²) is scratch.
    """
    n = end - start
    n_labels = work.shape[2]
    n_pairs = n_labels * n_labels
    kind = annotation(label, start, end, n_labels)
    if kind == NOTHING:
        for t in range(n):
            for j in range(n_labels):
                work[GRADIENT, t, j] = 0
            for q in range(n_pairs):
                edge[t, q] = 0
        return 0.0
    loss = 0.0
    for constrained in range(2 if kind == PARTLY else 1):
        into = TARGET if constrained else GRADIENT
        log_z = _rich_expectations(
            label, start, n, table, constrained == 1, work, edge, pairs, constrained, into
        )
        loss += (1 - 2 * constrained) * log_z
    if kind == PARTLY:
        for t in range(n):
            for j in range(n_labels):
                work[GRADIENT, t, j] -= work[TARGET, t, j]
            for q in range(n_pairs):
                edge[t, q] = pairs[0, t, q] - pairs[1, t, q]
        return loss
    gold = 0.0
    for t in range(n):
        y = label[start + t]
        gold += work[NODE, t, y]
        work[GRADIENT, t, y] -= 1
        if t > 0:
            q = label[start + t - 1] * n_labels + y
            gold += edge[t, q]
            for p in range(n_pairs):
                edge[t, p] = pairs[0, t, p]
            edge[t, q] -= 1
    return loss - gold


@subkernel
def _rich_expectations(
    label: Array,
    start: int,
    n: int,
    table: Array,
    constrained: bool,
    work: Array,
    edge: Array,
    pairs: Array,
    plane: int,
    into: int,
) -> float:
    """Marginals into work[into], pair marginals into pairs[plane, 1:]; returns log Z."""
    n_labels = work.shape[2]
    zero = work.dtype.type(0)
    one = work.dtype.type(1)
    log_z = 0.0
    product = 1.0
    lost = False
    for t in range(n):
        top = work.dtype.type(-np.inf)
        for j in range(n_labels):
            if not constrained or table[label[start + t], j]:
                top = max(top, work[NODE, t, j])
        for j in range(n_labels):
            e = fast_exp(min(work[NODE, t, j] - top, zero))
            work[POTENTIAL, t, j] = e
            if constrained and not table[label[start + t], j]:
                work[POTENTIAL, t, j] = zero
        if t == 0:
            for j in range(n_labels):
                work[ALPHA, 0, j] = work[POTENTIAL, 0, j]
        else:
            highest = edge[t, 0]
            for q in range(n_labels * n_labels):
                highest = max(highest, edge[t, q])
            for q in range(n_labels * n_labels):
                pairs[plane, t, q] = fast_exp(edge[t, q] - highest)
            log_z += highest
            x = work[ALPHA, t - 1, 0]
            for j in range(n_labels):
                work[ALPHA, t, j] = x * pairs[plane, t, j]
            for i in range(1, n_labels):
                x = work[ALPHA, t - 1, i]
                for j in range(n_labels):
                    work[ALPHA, t, j] += x * pairs[plane, t, i * n_labels + j]
            for j in range(n_labels):
                work[ALPHA, t, j] *= work[POTENTIAL, t, j]
        c = zero
        for j in range(n_labels):
            c += work[ALPHA, t, j]
        if not c > 1e-15:  # underflow
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
        future = zero
        for i in range(n_labels):
            a = work[ALPHA, t - 1, i]
            b = zero
            for j in range(n_labels):
                x = pairs[plane, t, i * n_labels + j] * work[SCALED, t, j]
                b += x
                pairs[plane, t, i * n_labels + j] = a * x
            work[BETA, t - 1, i] = b
            work[into, t - 1, i] = a * b
            future += b
        # What α lost to underflow is below 1e-38 / c, but a large β would make it count.
        if not future < 1e15:
            lost = True
            break
    if lost:
        return _log_expectations(
            label, start, n, table, constrained, work, edge, pairs, plane, into
        )
    total: float = log_z + np.log(product)
    return total


@subkernel
def _log_expectations(
    label: Array,
    start: int,
    n: int,
    table: Array,
    constrained: bool,
    work: Array,
    edge: Array,
    pairs: Array,
    plane: int,
    into: int,
) -> float:
    """Log-space twin for pieces that underflow."""
    n_labels = work.shape[2]
    S = np.empty((n, n_labels), np.float64)
    for t in range(n):
        for j in range(n_labels):
            ok = not constrained or table[label[start + t], j]
            S[t, j] = work[NODE, t, j] if ok else -np.inf
    terms = np.empty(n_labels, np.float64)
    a = np.empty((n, n_labels), np.float64)
    b = np.zeros((n, n_labels), np.float64)
    for j in range(n_labels):
        a[0, j] = S[0, j]
    for t in range(1, n):
        for j in range(n_labels):
            for i in range(n_labels):
                terms[i] = a[t - 1, i] + edge[t, i * n_labels + j]
            a[t, j] = S[t, j] + log_sum(terms)
    for t in range(n - 1, 0, -1):
        for i in range(n_labels):
            for j in range(n_labels):
                terms[j] = edge[t, i * n_labels + j] + S[t, j] + b[t, j]
            b[t - 1, i] = log_sum(terms)
    log_z = log_sum(a[n - 1])
    for t in range(n):
        for j in range(n_labels):
            work[into, t, j] = np.exp(a[t, j] + b[t, j] - log_z)
            if t > 0:
                for i in range(n_labels):
                    q = i * n_labels + j
                    both = a[t - 1, i] + edge[t, q] + S[t, j] + b[t, j]
                    pairs[plane, t, q] = np.exp(both - log_z)
    return log_z
