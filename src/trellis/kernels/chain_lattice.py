"""Loss and expectations of one piece of a chain (a run of consecutive positions).

A piece with node scores s_t(y), edge scores S_t(y′, y) and allowed label sets Y_t has the CRF loss

    log Σ_y e^{s(y)} − log Σ_{y: y_t ∈ Y_t} e^{s(y)},   s(y) = Σ_t s_t(y_t) + Σ_t S_t(y_{t-1}, y_t);

a gold label is a set of one. Both sums and their expectations come from a scaled forward–backward
pass (α normalised at every position by c_t, V = E ∘ β / c):

    α_t ∝ E_t ∘ (U_tᵀ α_{t-1}),    β_{t-1} = U_t V_t,    P_t = α_t ∘ β_t,
    P(y_{t-1} = i, y_t = j) = α_{t-1}(i) U_t(i, j) V_t(j)

with E = e^{s − row maximum} and U_t = e^{S_t − max S_t}. There are four kinds of edges
(:mod:`trellis.kernels.chain_edges`):

plain
    S_t is T everywhere. Expected transition counts are U ∘ Σ_t α_{t-1} V_tᵀ, so only outer
    products are summed here and U is multiplied in once for many pieces (those of a chunk).
listed
    As plain ones, but T is zero for most pairs, and stays so (:mod:`trellis.kernels.listed_pairs`).
sparse
    T and few pairs more at each position (``hits``, see :mod:`trellis.kernels.sparse_edges`):
    as plain ones, and corrections of the pairs that are hit.
dense
    Each S_t is a matrix of its own (:mod:`trellis.kernels.rich_edges`), in
    ``edge``; U_t is replaced in place by the pair marginals.

A piece whose scaling underflows is done again in log space.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trellis.kernels._jit import allocating, fragment, inner
from trellis.kernels.chain_edges import DENSE, LISTED, SPARSE
from trellis.kernels.fast_exp import fast_exp
from trellis.kernels.lanes import WIDTH, highest, load, padded, spread, store, total, upper
from trellis.kernels.listed_pairs import (
    add_listed_products,
    exponentiate_listed,
    find_listed,
    times_listed,
)
from trellis.kernels.row_products import (
    add_outer_products,
    copy_row,
    exponentiate_table,
    multiply_row,
    relative_exponentials,
    row_sum,
    row_times,
    scale_row,
)
from trellis.kernels.sparse_edges import HitRanges
from trellis.kernels.visits import NOTHING, PARTLY, LabelSets, Visits, annotation

__all__ = ["ChainSpace", "chain_space", "exponentiate", "log_sum", "piece_loss"]

Array = np.ndarray[Any, Any]

# Planes of the workspace and of its tables.
NODE, POTENTIAL, ALPHA, BETA, SCALED, GRADIENT, TARGET = range(7)
N_WORK = 7
U, U_TRANSPOSED = range(2)
# Edges whose expectations wait to be summed together; a piece may add its edges twice.
_HELD = 64


class ChainSpace(NamedTuple):
    """Room to work in on pieces of up to n positions, of each thread.

    With rows of L labels padded to P, ``work`` (7, n, P) are those of positions (−inf beyond the
    labels for the scores, else 0); ``tables`` (2, P, P) hold U and its transpose and ``peak`` (1,)
    max T; of listed pairs ``extra`` (3, pairs) holds M and ``base`` (1,) u instead. ``held``
    (2, M, P) are the rows α_{t-1}, weighted, and V_t of ``filled`` (1,) edges whose outer products
    are still to be summed, M ≥ 2n: over many edges that is done in registers (and, of listed pairs,
    in ``turned``). Only dense edges need ``edge`` (n, L² + 8), the scores of the edges and then
    their gradient, followed by −inf, and ``chances`` (2, n, P, P), U_t and then pair marginals over
    all and over the allowed labellings; only sparse ones need ``ranges``.
    """

    work: Array
    tables: Array
    peak: Array
    extra: Array
    base: Array
    held: Array
    turned: Array
    filled: Array
    edge: Array
    chances: Array
    ranges: HitRanges


@allocating
def chain_space(W: Array, longest: int, edges: Any) -> ChainSpace:
    """Room for pieces of up to ``longest`` positions."""
    n_labels = W.shape[1]
    n_pairs = n_labels * n_labels
    width = padded(n_labels)
    side, n_listed, n_dense, n_sparse = width, 0, 0, 0
    if edges is not None:
        n_dense = longest if edges.kind == DENSE else 0
        n_sparse = longest if edges.kind == SPARSE else 0
        side = 0 if edges.kind == LISTED else width
        n_listed = edges.listed.second.size
    work = np.zeros((N_WORK, longest, width), W.dtype)
    for t in range(longest):
        for j in range(n_labels, width):
            work[NODE, t, j] = -np.inf
    n_held = (_HELD if side else _HELD // 2) + 2 * longest
    edge = np.zeros((n_dense, n_pairs + WIDTH), W.dtype)
    for t in range(n_dense):
        for q in range(WIDTH):
            edge[t, n_pairs + q] = -np.inf
    return ChainSpace(
        work,
        np.zeros((2, side, side), W.dtype),
        np.zeros(1, W.dtype),
        np.zeros((3, n_listed), W.dtype),
        np.zeros(1, W.dtype),
        np.zeros((2, n_held, width), W.dtype),
        np.zeros((2, 0 if side else width, padded(n_held)), W.dtype),
        np.zeros(1, np.int64),
        edge,
        np.zeros((2, n_dense, width, width), W.dtype),
        HitRanges(
            np.empty(n_sparse, np.int64),
            np.empty(n_sparse, np.int64),
            np.empty(n_sparse, np.int64),
            np.full((2, n_pairs if n_sparse else 0), -1, np.int64),
        ),
    )


@fragment
def exponentiate(T: Array, edges: Any, space: ChainSpace) -> None:
    """Refresh U = e^{T − max T} and max T."""
    if edges is None or edges.kind == SPARSE:
        _exponentiate_tables(T, space)
    if edges is not None and edges.kind == LISTED:
        space.peak[0] = exponentiate_listed(T, edges.listed, space.extra, space.base)


@inner
def _exponentiate_tables(T: Array, space: ChainSpace) -> None:
    """Refresh U, its transpose and max T."""
    tables = space.tables
    n = T.shape[0]
    turned = tables.shape[1] * tables.shape[2]
    space.peak[0] = exponentiate_table(T, 0, n, n, tables, 0, turned)


@fragment
def piece_loss(
    T: Array,
    sets: LabelSets,
    visits: Visits,
    k: int,
    weight: float,
    edges: Any,
    space: ChainSpace,
    pairs: Array,
    c: int,
) -> float:
    """Loss of piece k, whose node scores are in work[NODE].

    ``edges`` is None where they are plain. work[GRADIENT] becomes ∂loss/∂node (unweighted). Dense
    edges are replaced by ∂loss/∂edge. For others weight · ∂loss/∂T is added to pairs[c] or ``held``
    (still to be multiplied by U), and the hits of sparse ones get their ∂loss/∂δ.
    """
    work, edge, ranges = space.work, space.edge, space.ranges
    label = sets.ids
    start = visits.starts[k]
    n = visits.ends[k] - start
    n_labels = T.shape[0]
    n_pairs = n_labels * n_labels
    kind = annotation(sets, visits, k)
    if kind == NOTHING:
        for t in range(n):
            for j in range(n_labels):
                work[GRADIENT, t, j] = 0
            if edges is not None and edges.kind == DENSE:
                for q in range(n_pairs):
                    edge[t, q] = 0
            if edges is not None and edges.kind == SPARSE:
                for h in range(ranges.begin[t], ranges.begin[t] + ranges.number[t]):
                    edges.hits.gradient[h] = 0
        return 0.0
    loss = 0.0
    # First over all labellings, then over the allowed ones: one call in a loop, because two calls
    # would be inlined twice and double the time to compile.
    for constrained in range(2 if kind == PARTLY else 1):
        sign = 1 - 2 * constrained
        into = TARGET if constrained else GRADIENT
        loss += sign * _expectations(
            T, sets, start, n, constrained == 1, sign * weight, edges, space, pairs, c, into
        )
    if kind == PARTLY:
        for t in range(n):
            for j in range(n_labels):
                work[GRADIENT, t, j] -= work[TARGET, t, j]
            if edges is not None and edges.kind == DENSE:
                for i in range(n_labels):
                    for j in range(n_labels):
                        both = space.chances[0, t, i, j] - space.chances[1, t, i, j]
                        edge[t, i * n_labels + j] = both
        return loss
    gold = 0.0
    for t in range(n):
        y = label[start + t]
        gold += work[NODE, t, y]
        work[GRADIENT, t, y] -= 1
        if t == 0:
            continue
        before = label[start + t - 1]
        if edges is None or edges.kind != DENSE:
            gold += T[before, y]
        if edges is None or edges.kind == SPARSE:
            pairs[c, before, y] -= weight
        if edges is not None and edges.kind == LISTED:
            pairs[c, 0, find_listed(edges.listed, before, y)] -= weight
        if edges is not None and edges.kind == DENSE:
            gold += edge[t, before * n_labels + y]
            for i in range(n_labels):
                for j in range(n_labels):
                    edge[t, i * n_labels + j] = space.chances[0, t, i, j]
            edge[t, before * n_labels + y] -= 1
        if edges is not None and edges.kind == SPARSE and ranges.gold[t] >= 0:
            gold += edges.hits.delta[ranges.gold[t]]
            edges.hits.gradient[ranges.gold[t]] -= 1
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
    edges: Any,
    space: ChainSpace,
    pairs: Array,
    c: int,
    into: int,
) -> float:
    """Marginals of one piece into work[into], those of edges as in piece_loss; log Z."""
    work, tables, ranges = space.work, space.tables, space.ranges
    edge, chances = space.edge, space.chances
    plane = 1 if constrained else 0
    n_labels = T.shape[0]
    width = work.shape[2]
    # Where the rows of position 0 begin in each plane, and the table U_t or U (and its transpose).
    size = work.shape[1] * width
    node, potential, alpha = NODE * size, POTENTIAL * size, ALPHA * size
    beta, scaled, chance = BETA * size, SCALED * size, into * size
    turned = width * width
    zero = work.dtype.type(0)
    one = work.dtype.type(1)
    log_z = 0.0
    product = 1.0
    lost = False
    for t in range(n):
        here = alpha + t * width
        before = here - width
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
            top = relative_exponentials(work, node + t * width, width, work, potential + t * width)
        if t == 0:
            copy_row(work, potential, width, work, alpha)
        else:
            if edges is None or edges.kind == SPARSE:
                row_times(work, before, tables, 0, n_labels, work, here)
            if edges is not None and edges.kind == LISTED:
                times_listed(
                    work, before, edges.listed.forward, space.extra, 1, space.base, n_labels,
                    width, here,
                )  # fmt: skip
            if edges is not None and edges.kind == DENSE:
                own = (plane * chances.shape[1] + t) * turned
                log_z += _dense_potentials(edge, t, chances, own, n_labels)
                row_times(work, before, chances, own, n_labels, work, here)
            if edges is not None and edges.kind == SPARSE:
                for h in range(ranges.begin[t], ranges.begin[t] + ranges.number[t]):
                    work[ALPHA, t, edges.hits.target[h]] += (
                        work[ALPHA, t - 1, edges.hits.source[h]] * edges.hits.extra[h]
                    )
                for j in range(n_labels):  # rounding may leave less than nothing
                    work[ALPHA, t, j] = max(work[ALPHA, t, j], zero)
            multiply_row(work, here, work, potential + t * width, width, work, here)
        mass = row_sum(work, here, width)
        if not 1e-15 < mass < 1e30:  # underflow, or a sparse edge too large
            lost = True
            break
        scale_row(work, here, width, one / mass, work, here)
        scale_row(work, potential + t * width, width, one / mass, work, scaled + t * width)
        log_z += top
        product *= mass  # one logarithm for many positions
        if not 1e-200 < product < 1e200:
            log_z += np.log(product)
            product = 1.0
    copy_row(work, alpha + (n - 1) * width, width, work, chance + (n - 1) * width)
    for t in range(0 if lost else n - 1, 0, -1):
        here = t * width
        before = here - width
        if t < n - 1:  # the last β is 1
            multiply_row(work, scaled + here, work, beta + here, width, work, scaled + here)
        future = zero
        cancelled = zero
        if edges is None or edges.kind == SPARSE:
            row_times(work, scaled + here, tables, turned, n_labels, work, beta + before)
            if edges is not None and edges.kind == SPARSE:
                for h in range(ranges.begin[t], ranges.begin[t] + ranges.number[t]):
                    x = edges.hits.extra[h] * work[SCALED, t, edges.hits.target[h]]
                    work[BETA, t - 1, edges.hits.source[h]] += x
                    cancelled -= work[ALPHA, t - 1, edges.hits.source[h]] * min(x, zero)
                for j in range(n_labels):
                    work[BETA, t - 1, j] = max(work[BETA, t - 1, j], zero)
        if edges is not None and edges.kind == LISTED:
            cancelled = times_listed(
                work, scaled + here, edges.listed.backward, space.extra, 2, space.base, n_labels,
                width, beta + before,
            )  # fmt: skip
        if edges is None or edges.kind != DENSE:
            multiply_row(work, alpha + before, work, beta + before, width, work, chance + before)
            future = row_sum(work, beta + before, width)
        if edges is not None and edges.kind == DENSE:
            own = (plane * chances.shape[1] + t) * turned
            future = _dense_backward(work, chances, own, t, n_labels, into)
        # What α lost to underflow is below 1e-38 / c, but a large β would make it count. And where
        # sparse edges take away far more than they leave (which is 1), roundings are left.
        if not (future < 1e15 and cancelled < 1e3):
            lost = True
            break
    if lost:
        return _log_expectations(
            T, sets, start, n, constrained, weight, edges, space, pairs, c, into
        )
    log_z += float(np.log(product))
    if edges is None or edges.kind != DENSE:
        log_z += (n - 1) * space.peak[0]
        held = space.held
        for t in range(1, n):
            here = (space.filled[0] + t - 1) * width
            w = work.dtype.type(weight)
            scale_row(work, alpha + (t - 1) * width, width, w, held, here)
            copy_row(work, scaled + t * width, width, held, held.shape[1] * width + here)
        space.filled[0] += n - 1
    if edges is not None and edges.kind == SPARSE:
        for t in range(1, n):
            for h in range(ranges.begin[t], ranges.begin[t] + ranges.number[t]):
                i = edges.hits.source[h]
                j = edges.hits.target[h]
                both = work[ALPHA, t - 1, i] * work[SCALED, t, j]
                own_share = both * (tables[U, i, j] + edges.hits.extra[h])
                edges.hits.gradient[h] = (
                    edges.hits.gradient[h] - own_share if constrained else own_share
                )
                pairs[c, i, j] += weight * (both * edges.hits.extra[h])
    return log_z


@inner
def _dense_potentials(edge: Array, t: int, chances: Array, own: int, n_labels: int) -> float:
    """Write U_t to the place ``own`` of ``chances``; returns max S_t."""
    n_pairs = n_labels * n_labels
    row = t * edge.shape[1]
    width = chances.shape[3]
    most = load(edge, row)  # a row is followed by −inf
    for q in range(8, n_pairs, 8):
        most = upper(most, load(edge, row + q))
    top: float = highest(most)
    for i in range(n_labels):
        for j in range(0, n_labels, 8):
            # What is read beyond the labels is of other pairs: no harm, since α is 0 there.
            x = load(edge, row + i * n_labels + j)
            store(chances, own + i * width + j, fast_exp(x - spread(top)))
    return top


@inner
def _dense_backward(
    work: Array, chances: Array, own: int, t: int, n_labels: int, into: int
) -> float:
    """β_{t-1} and both marginals; returns the sum of β_{t-1}."""
    width = work.shape[2]
    scaled = (SCALED * work.shape[1] + t) * width
    future: float = work.dtype.type(0)
    for i in range(n_labels):
        a = work[ALPHA, t - 1, i]
        s = spread(work.dtype.type(0))
        for j in range(0, width, 8):
            x = load(chances, own + i * width + j) * load(work, scaled + j)
            s += x
            store(chances, own + i * width + j, spread(a) * x)
        b = total(s)
        work[BETA, t - 1, i] = b
        work[into, t - 1, i] = a * b
        future += b
    return future


@inner
def add_held(space: ChainSpace, n_labels: int, edges: Any, outer: Array, c: int) -> None:
    """outer[c] += Σ α_{t-1} V_tᵀ over the pairs of rows held."""
    held = space.held
    if edges is not None and edges.kind == LISTED:
        add_listed_products(held, space.turned, space.filled[0], edges.listed, outer, c)
        space.filled[0] = 0
        return
    second = held.shape[1] * held.shape[2]
    to = c * outer.shape[1] * outer.shape[2]
    add_outer_products(held, 0, held, second, space.filled[0], n_labels, outer, to)
    space.filled[0] = 0


@allocating
def _log_expectations(
    T: Array,
    sets: LabelSets,
    start: int,
    n: int,
    constrained: bool,
    weight: float,
    edges: Any,
    space: ChainSpace,
    pairs: Array,
    c: int,
    into: int,
) -> float:
    """Log-space twin of _expectations for pieces that underflow."""
    work, ranges = space.work, space.ranges
    plane = 1 if constrained else 0
    n_labels = T.shape[0]
    S = np.empty((n, n_labels), np.float64)
    for t in range(n):
        for j in range(n_labels):
            ok = not constrained or sets.table[sets.ids[start + t], j]
            S[t, j] = work[NODE, t, j] if ok else -np.inf
    # The scores of one edge at a time: those of all would be too many where labels are.
    edge = T.astype(np.float64)
    terms = np.empty(n_labels, np.float64)
    a = np.empty((n, n_labels), np.float64)
    b = np.zeros((n, n_labels), np.float64)
    for j in range(n_labels):
        a[0, j] = S[0, j]
    for t in range(1, n):
        _one_edge(T, edges, space, t, True, edge)
        for j in range(n_labels):
            for i in range(n_labels):
                terms[i] = a[t - 1, i] + edge[i, j]
            a[t, j] = S[t, j] + log_sum(terms)
        _one_edge(T, edges, space, t, False, edge)
    log_z = log_sum(a[n - 1])
    for t in range(n - 1, -1, -1):
        for j in range(n_labels):
            work[into, t, j] = np.exp(a[t, j] + b[t, j] - log_z)
        if t == 0:
            break
        _one_edge(T, edges, space, t, True, edge)
        for i in range(n_labels):
            for j in range(n_labels):
                terms[j] = edge[i, j] + S[t, j] + b[t, j]
            b[t - 1, i] = log_sum(terms)
            for j in range(n_labels):
                both = np.exp(a[t - 1, i] + terms[j] - log_z)
                if edges is None or edges.kind == SPARSE:
                    pairs[c, i, j] += weight * both
                if edges is not None and edges.kind == DENSE:
                    space.chances[plane, t, i, j] = both
            if edges is not None and edges.kind == LISTED:
                for q in range(edges.listed.ptr[i], edges.listed.ptr[i + 1]):
                    both = np.exp(a[t - 1, i] + terms[edges.listed.second[q]] - log_z)
                    pairs[c, 0, q] += weight * both
        if edges is not None and edges.kind == SPARSE:
            for h in range(ranges.begin[t], ranges.begin[t] + ranges.number[t]):
                i = edges.hits.source[h]
                j = edges.hits.target[h]
                here = np.exp(a[t - 1, i] + edge[i, j] + S[t, j] + b[t, j] - log_z)
                edges.hits.gradient[h] = edges.hits.gradient[h] - here if constrained else here
        _one_edge(T, edges, space, t, False, edge)
    return log_z


@inner
def _one_edge(T: Array, edges: Any, space: ChainSpace, t: int, begins: bool, edge: Array) -> None:
    """Make a copy of T the scores of the edge into t, or T again."""
    if edges is not None and edges.kind == DENSE:
        n_labels = T.shape[0]
        for i in range(n_labels):
            for j in range(n_labels):
                edge[i, j] = space.edge[t, i * n_labels + j]
    if edges is not None and edges.kind == SPARSE:
        ranges = space.ranges
        for h in range(ranges.begin[t], ranges.begin[t] + ranges.number[t]):
            i = edges.hits.source[h]
            j = edges.hits.target[h]
            edge[i, j] = T[i, j] + edges.hits.delta[h] if begins else T[i, j]


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
