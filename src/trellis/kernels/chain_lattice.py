"""Loss and expectations of one piece of a chain (a run of consecutive positions).

A piece with node scores s_t(y), edge scores S_t(y′, y) and allowed label sets Y_t has the CRF loss

    log Σ_y e^{s(y)} − log Σ_{y: y_t ∈ Y_t} e^{s(y)},   s(y) = Σ_t s_t(y_t) + Σ_t S_t(y_{t-1}, y_t);

a gold label is a set of one. Both sums and their expectations come from a scaled forward–backward
pass (α normalised at every position by c_t, V = E ∘ β / c):

    α_t ∝ E_t ∘ (U_tᵀ α_{t-1}),    β_{t-1} = U_t V_t,    P_t = α_t ∘ β_t,
    P(y_{t-1} = i, y_t = j) = α_{t-1}(i) U_t(i, j) V_t(j)

with E = e^{s − row maximum} and U_t = e^{S_t − max S_t}. There are three kinds of edges:

plain
    S_t is T everywhere. Expected transition counts are U ∘ Σ_t α_{t-1} V_tᵀ, so only outer
    products are summed here and U is multiplied in once for many pieces (those of a chunk).
sparse
    T and few pairs more at each position (``hits``, see :mod:`trellis.kernels.sparse_edges`):
    as plain ones, and corrections of the pairs that are hit.
dense
    Each S_t is a matrix of its own (``dense``, see :mod:`trellis.kernels.rich_edges`), in
    ``edge``; U_t is replaced in place by the pair marginals.

A piece whose scaling underflows is done again in log space.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trellis.kernels._jit import allocating, fragment, inner
from trellis.kernels.fast_exp import fast_exp
from trellis.kernels.sparse_edges import HitRanges
from trellis.kernels.visits import NOTHING, PARTLY, LabelSets, Visits, annotation

__all__ = ["ChainSpace", "chain_space", "exponentiate", "log_sum", "piece_loss"]

Array = np.ndarray[Any, Any]

# Planes of the workspace and of its tables.
NODE, POTENTIAL, ALPHA, BETA, SCALED, GRADIENT, TARGET = range(7)
N_WORK = 7
U, U_TRANSPOSED = range(2)


class ChainSpace(NamedTuple):
    """Room to work in on pieces of up to n positions, of each thread.

    ``work`` (7, n, L) are rows of positions; ``tables`` (2, L, L) hold U and its transpose and
    ``peak`` (1,) max T. Only dense edges need ``edge`` (n, L²), the scores of the edges and then
    their gradient, and ``chances`` (2, n, L²), pair marginals over all and over the allowed
    labellings; only sparse ones need ``ranges``.
    """

    work: Array
    tables: Array
    peak: Array
    edge: Array
    chances: Array
    ranges: HitRanges


@allocating
def chain_space(W: Array, longest: int, dense: Any, sparse: Any) -> ChainSpace:
    """Room for pieces of up to ``longest`` positions."""
    n_labels = W.shape[1]
    n_pairs = n_labels * n_labels
    n_dense = 0 if dense is None else longest
    n_sparse = 0 if sparse is None else longest
    return ChainSpace(
        np.empty((N_WORK, longest, n_labels), W.dtype),
        np.zeros((2, n_labels, n_labels), W.dtype),
        np.zeros(1, W.dtype),
        np.zeros((n_dense, n_pairs), W.dtype),
        np.empty((2, n_dense, n_pairs), W.dtype),
        HitRanges(
            np.empty(n_sparse, np.int64),
            np.empty(n_sparse, np.int64),
            np.empty(n_sparse, np.int64),
            np.full((2, n_pairs if n_sparse else 0), -1, np.int64),
        ),
    )


@inner
def exponentiate(T: Array, space: ChainSpace) -> None:
    """Refresh U = e^{T − max T}, its transpose and max T."""
    tables = space.tables
    n_labels = T.shape[0]
    top = T[0, 0]
    for i in range(n_labels):
        for j in range(n_labels):
            top = max(top, T[i, j])
    for i in range(n_labels):
        for j in range(n_labels):
            tables[U, i, j] = fast_exp(T[i, j] - top)
    for i in range(n_labels):
        for j in range(n_labels):
            tables[U_TRANSPOSED, j, i] = tables[U, i, j]
    space.peak[0] = top


@fragment
def piece_loss(
    T: Array,
    sets: LabelSets,
    visits: Visits,
    k: int,
    weight: float,
    dense: Any,
    hits: Any,
    space: ChainSpace,
    outer: Array,
    pairs: Array,
    c: int,
) -> float:
    """Loss of piece k, whose node scores are in work[NODE].

    work[GRADIENT] becomes ∂loss/∂node (unweighted). Dense edges are replaced by ∂loss/∂edge. For
    others weight · ∂loss/∂T is added to outer[c] (still to be multiplied by U) and to pairs[c], and
    the hits of sparse ones get their ∂loss/∂δ.
    """
    work, edge, ranges = space.work, space.edge, space.ranges
    label = sets.ids
    start = visits.starts[k]
    n = visits.ends[k] - start
    n_labels = work.shape[2]
    n_pairs = n_labels * n_labels
    kind = annotation(sets, visits, k)
    if kind == NOTHING:
        for t in range(n):
            for j in range(n_labels):
                work[GRADIENT, t, j] = 0
            if dense is not None:
                for q in range(n_pairs):
                    edge[t, q] = 0
            if hits is not None:
                for h in range(ranges.begin[t], ranges.begin[t] + ranges.number[t]):
                    hits.gradient[h] = 0
        return 0.0
    loss = 0.0
    # First over all labellings, then over the allowed ones: one call in a loop, because two calls
    # would be inlined twice and double the time to compile.
    for constrained in range(2 if kind == PARTLY else 1):
        sign = 1 - 2 * constrained
        into = TARGET if constrained else GRADIENT
        loss += sign * _expectations(
            T, sets, start, n, constrained == 1, sign * weight, dense, hits, space, outer, pairs,
            c, into,
        )  # fmt: skip
    if kind == PARTLY:
        for t in range(n):
            for j in range(n_labels):
                work[GRADIENT, t, j] -= work[TARGET, t, j]
            if dense is not None:
                for q in range(n_pairs):
                    edge[t, q] = space.chances[0, t, q] - space.chances[1, t, q]
        return loss
    gold = 0.0
    for t in range(n):
        y = label[start + t]
        gold += work[NODE, t, y]
        work[GRADIENT, t, y] -= 1
        if t == 0:
            continue
        before = label[start + t - 1]
        if dense is None:
            gold += T[before, y]
            pairs[c, before, y] -= weight
        else:
            gold += edge[t, before * n_labels + y]
            for q in range(n_pairs):
                edge[t, q] = space.chances[0, t, q]
            edge[t, before * n_labels + y] -= 1
        if hits is not None and ranges.gold[t] >= 0:
            gold += hits.delta[ranges.gold[t]]
            hits.gradient[ranges.gold[t]] -= 1
    return loss - gold


# The functions below index ``work`` and ``tables`` directly. Slices would read better, but each
# makes a counted reference, which costs more than the arithmetic of a short piece.


@fragment
def _expectations(
    T: Array,
    sets: LabelSets,
    start: int,
    n: int,
    constrained: bool,
    weight: float,
    dense: Any,
    hits: Any,
    space: ChainSpace,
    outer: Array,
    pairs: Array,
    c: int,
    into: int,
) -> float:
    """Marginals of one piece into work[into], those of edges as in piece_loss; log Z."""
    work, tables, ranges = space.work, space.tables, space.ranges
    edge, chances = space.edge, space.chances
    plane = 1 if constrained else 0
    n_labels = work.shape[2]
    zero = work.dtype.type(0)
    one = work.dtype.type(1)
    log_z = 0.0
    product = 1.0
    lost = False
    for t in range(n):
        top = work.dtype.type(-np.inf)
        if constrained:
            row = sets.ids[start + t]
            for j in range(n_labels):
                if sets.table[row, j]:
                    top = max(top, work[NODE, t, j])
            for j in range(n_labels):
                e = fast_exp(min(work[NODE, t, j] - top, zero))
                work[POTENTIAL, t, j] = e if sets.table[row, j] else zero
        else:
            for j in range(n_labels):
                top = max(top, work[NODE, t, j])
            for j in range(n_labels):
                work[POTENTIAL, t, j] = fast_exp(work[NODE, t, j] - top)
        if t == 0:
            for j in range(n_labels):
                work[ALPHA, 0, j] = work[POTENTIAL, 0, j]
        else:
            if dense is None:
                _times(work, ALPHA, t - 1, tables, U, ALPHA, t)
            else:
                log_z += _dense_forward(work, edge, chances, plane, t)
            if hits is not None:
                for h in range(ranges.begin[t], ranges.begin[t] + ranges.number[t]):
                    work[ALPHA, t, hits.target[h]] += (
                        work[ALPHA, t - 1, hits.source[h]] * hits.extra[h]
                    )
                for j in range(n_labels):  # rounding may leave less than nothing
                    work[ALPHA, t, j] = max(work[ALPHA, t, j], zero)
            for j in range(n_labels):
                work[ALPHA, t, j] *= work[POTENTIAL, t, j]
        total = zero
        for j in range(n_labels):
            total += work[ALPHA, t, j]
        if not 1e-15 < total < 1e30:  # underflow, or a sparse edge too large
            lost = True
            break
        inverse = one / total
        for j in range(n_labels):
            work[ALPHA, t, j] *= inverse
            work[SCALED, t, j] = work[POTENTIAL, t, j] * inverse
        log_z += top
        product *= total  # one logarithm for many positions
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
        cancelled = zero
        if dense is None:
            _times(work, SCALED, t, tables, U_TRANSPOSED, BETA, t - 1)
            if hits is not None:
                for h in range(ranges.begin[t], ranges.begin[t] + ranges.number[t]):
                    x = hits.extra[h] * work[SCALED, t, hits.target[h]]
                    work[BETA, t - 1, hits.source[h]] += x
                    cancelled -= work[ALPHA, t - 1, hits.source[h]] * min(x, zero)
                for j in range(n_labels):
                    work[BETA, t - 1, j] = max(work[BETA, t - 1, j], zero)
            for j in range(n_labels):
                work[into, t - 1, j] = work[ALPHA, t - 1, j] * work[BETA, t - 1, j]
                future += work[BETA, t - 1, j]
        else:
            future = _dense_backward(work, chances, plane, t, into)
        # What α lost to underflow is below 1e-38 / c, but a large β would make it count. And where
        # sparse edges take away far more than they leave (which is 1), roundings are left.
        if not (future < 1e15 and cancelled < 1e3):
            lost = True
            break
    if lost:
        return _log_expectations(
            T, sets, start, n, constrained, weight, dense, hits, space, pairs, c, into
        )
    log_z += float(np.log(product))
    if dense is not None:
        return log_z
    _add_outer_products(work, outer, c, n, weight)
    if hits is not None:
        for t in range(1, n):
            for h in range(ranges.begin[t], ranges.begin[t] + ranges.number[t]):
                i = hits.source[h]
                j = hits.target[h]
                both = work[ALPHA, t - 1, i] * work[SCALED, t, j]
                here = both * (tables[U, i, j] + hits.extra[h])
                hits.gradient[h] = hits.gradient[h] - here if constrained else here
                pairs[c, i, j] += weight * (both * hits.extra[h])
    total_log: float = log_z + (n - 1) * space.peak[0]
    return total_log


@inner
def _dense_forward(work: Array, edge: Array, chances: Array, plane: int, t: int) -> float:
    """U_t into chances[plane, t] and U_tᵀ α_{t-1} into α_t; returns max S_t."""
    n_labels = work.shape[2]
    highest: float = edge[t, 0]
    for q in range(n_labels * n_labels):
        highest = max(highest, edge[t, q])
    for q in range(n_labels * n_labels):
        chances[plane, t, q] = fast_exp(edge[t, q] - highest)
    x = work[ALPHA, t - 1, 0]
    for j in range(n_labels):
        work[ALPHA, t, j] = x * chances[plane, t, j]
    for i in range(1, n_labels):
        x = work[ALPHA, t - 1, i]
        for j in range(n_labels):
            work[ALPHA, t, j] += x * chances[plane, t, i * n_labels + j]
    return highest


@inner
def _dense_backward(work: Array, chances: Array, plane: int, t: int, into: int) -> float:
    """β_{t-1} and both marginals; returns the sum of β_{t-1}."""
    n_labels = work.shape[2]
    zero = work.dtype.type(0)
    future: float = zero
    for i in range(n_labels):
        a = work[ALPHA, t - 1, i]
        b = zero
        for j in range(n_labels):
            x = chances[plane, t, i * n_labels + j] * work[SCALED, t, j]
            b += x
            chances[plane, t, i * n_labels + j] = a * x
        work[BETA, t - 1, i] = b
        work[into, t - 1, i] = a * b
        future += b
    return future


@inner
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


@inner
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


@allocating
def _log_expectations(
    T: Array,
    sets: LabelSets,
    start: int,
    n: int,
    constrained: bool,
    weight: float,
    dense: Any,
    hits: Any,
    space: ChainSpace,
    pairs: Array,
    c: int,
    into: int,
) -> float:
    """Log-space twin of _expectations for pieces that underflow."""
    work, ranges = space.work, space.ranges
    plane = 1 if constrained else 0
    n_labels = work.shape[2]
    S = np.empty((n, n_labels), np.float64)
    edge = np.empty((n, n_labels, n_labels), np.float64)
    for t in range(n):
        for j in range(n_labels):
            ok = not constrained or sets.table[sets.ids[start + t], j]
            S[t, j] = work[NODE, t, j] if ok else -np.inf
        for i in range(n_labels):
            for j in range(n_labels):
                edge[t, i, j] = T[i, j] if dense is None else space.edge[t, i * n_labels + j]
        if hits is not None:
            for h in range(ranges.begin[t], ranges.begin[t] + ranges.number[t]):
                edge[t, hits.source[h], hits.target[h]] += hits.delta[h]
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
            for i in range(n_labels if t > 0 else 0):
                both = np.exp(a[t - 1, i] + edge[t, i, j] + S[t, j] + b[t, j] - log_z)
                if dense is None:
                    pairs[c, i, j] += weight * both
                else:
                    space.chances[plane, t, i * n_labels + j] = both
        if hits is not None:
            for h in range(ranges.begin[t], ranges.begin[t] + ranges.number[t]):
                i = hits.source[h]
                j = hits.target[h]
                here = np.exp(a[t - 1, i] + edge[t, i, j] + S[t, j] + b[t, j] - log_z)
                hits.gradient[h] = hits.gradient[h] - here if constrained else here
    return log_z


@inner
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
