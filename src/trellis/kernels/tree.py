r"""Sums over the labellings of stacked forests: log Z, marginals, entropies and samples.

A labelling :math:`y` of a tree has the score and probability

.. math::

    s(y) = \sum_v \mathrm{node}_{v, y_v} + \sum_{e = (a, b)} \mathrm{pair}_{k_e, y_a, y_b},
    \qquad p(y) = e^{s(y)} / Z.

Messages go from the leaves to the root; then posteriors come back down (sum-product, Pearl, 1988).
With x and E the exponentials of node and pair scores, less their maxima, c a child of q,

.. math::

    b_v = x_v \odot \prod_c m_c, \qquad m_c = E_c b_c, \qquad
    P_c = b_c \odot E_c^\top (P_q \oslash m_c), \qquad P_\mathrm{root} \propto b_\mathrm{root},

where row and column of E_c are the labels of q and c. The way down divides by the child's own
message instead of multiplying those of all its siblings, so a node of many children costs no more;
P_c is the sum of P_q(i) P(y_c | y_q = i), which loses nothing to rounding.

A tree is done in this way only while every number on the way up that is not a true zero stays so
large (``_FLOOR``, ``_SPAN``) that no product of two can vanish; otherwise the same recursions run
on logarithms. So a zero always means «forbidden», and both ways give the same answer.

Arguments are the arrays of :class:`~trellis.structures.GraphPotentials` (``node``, ``pair``,
``types``) and of its :class:`~trellis.structures.Forest`, float64 and C-ordered, scores finite or
``-inf``. A sample that has no feasible labelling gets log Z ``-inf``; an empty one log Z 0. Nothing
is checked here.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from trellis.kernels._jit import kernel, subkernel
from trellis.kernels.chain_max import padded_width
from trellis.kernels.vector_exp import vector_exp

__all__ = ["posterior"]

Float64s = npt.NDArray[np.float64]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# A belief >= 1e-95, times a table's entry >= exp(-_SPAN) > 1e-95, times a belief of the parent
# >= 1e-95, and over the sum of L ** 2 such products <= 1, is a number float64 holds in full.
_FLOOR = 1e-95
_SPAN = 218.0

# Planes of the workspace (4, nodes of the largest tree, L padded): b, m, P and P_q / m_c of the
# module's formulas, or their logarithms.
_BELIEF, _MESSAGE, _POSTERIOR, _RATIO = range(4)
# Planes of a table: as the edge is stored, and transposed.
_STORED, _TURNED = range(2)


@kernel
def posterior(
    node: Float64s,
    pair: Float64s,
    types: Int64s,
    offsets: Int64s,
    order: Int64s,
    parent: Int64s,
    edge: Int64s,
    down: Bools,
    tree: Int64s,
    marginals: Float64s,
    pairs: Float64s,
    entropy: Float64s,
    uniforms: Float64s,
    labels: Int32s,
) -> Float64s:
    """Return log Z (S,) and fill those of the other arrays that have a size.

    These are ``marginals`` (N, L), ``pairs`` (E, L, L) as the edges are stored, ``entropy`` (S,),
    zero at first, and ``labels`` (K, N), drawn by the numbers ``uniforms`` (K, N) from [0, 1): the
    root from P, every other node from P(y_c | y_q), by inverting the running sums.

    One kernel for all purposes, because each further copy of it costs seconds to compile.
    """
    n_trees = tree.shape[0] - 1
    largest = 0
    for t in range(n_trees):
        largest = max(largest, tree[t + 1] - tree[t])
    width = padded_width(node.shape[1])
    # Tables of many edges are exponentiated once for all; those of single edges tree by tree, the
    # table into the node at place i of a tree being number i.
    own = pair.shape[0] >= types.shape[0]
    n_tables = largest if own else pair.shape[0]
    tables = np.zeros((n_tables, 2, width, width))
    top = np.zeros(n_tables)
    narrow = np.ones(n_tables, np.bool_)
    work = np.zeros((4, largest, width))
    terms = np.full(width, -np.inf)  # what is beyond the labels stays so
    downward = marginals.size + pairs.size + entropy.size > 0

    log_z = np.zeros(offsets.shape[0] - 1)
    s = 0
    for t in range(n_trees):
        first = tree[t]
        n = tree[t + 1] - first
        while offsets[s + 1] <= first:
            s += 1
        if own or t == 0:
            for k in range(n_tables if not own else n):
                if not own:
                    _exponentiate(pair, k, tables, k, top, narrow)
                elif k > 0:
                    _exponentiate(pair, types[edge[first + k]], tables, k, top, narrow)
        total, scaled = _upward(
            node, types, order, parent, edge, down, first, n, own, tables, top, narrow, work
        )
        if not scaled:
            total = _upward_log(node, pair, types, order, parent, edge, down, first, n, work, terms)
        log_z[s] += total
        if total == -np.inf:
            continue
        if downward:
            if scaled:
                _downward(types, parent, edge, down, first, n, own, tables, work)
            else:
                _downward_log(pair, types, parent, edge, down, first, n, work, terms)
        if marginals.size > 0:
            for i in range(n):
                for j in range(node.shape[1]):
                    x = work[_POSTERIOR, i, j]
                    marginals[order[first + i], j] = x if scaled else np.exp(x)
        if pairs.size > 0:
            for i in range(1, n):
                k = i if own else types[edge[first + i]]
                _pair(
                    pair, types, edge[first + i], down[first + i], tables, k, scaled, work, i, pairs
                )
        if entropy.size > 0:
            entropy[s] += _entropy(
                pair, types, edge, down, first, n, own, tables, scaled, work, terms, node.shape[1]
            )
        for r in range(uniforms.shape[0]):
            _draw(
                pair, types, order, parent, edge, down, first, n, own, tables, scaled, work, terms,
                uniforms, labels, r, node.shape[1],
            )  # fmt: skip
    return log_z


@subkernel
def _exponentiate(
    pair: Float64s, k: int, tables: Float64s, slot: int, top: Float64s, narrow: Bools
) -> None:
    """Fill tables[slot] with e^{pair[k] - top}, both ways round; padding stays zero."""
    n_labels = pair.shape[1]
    highest = -np.inf
    table = pair[k]
    for i in range(n_labels):
        highest = max(highest, _row_max(table, i))
    if highest == -np.inf:
        highest = 0.0
    too_low = 0
    for i in range(n_labels):
        for j in range(n_labels):
            x = table[i, j] - highest
            too_low += 1 if -np.inf < x < -_SPAN else 0
            tables[slot, _STORED, i, j] = vector_exp(x)
    top[slot] = highest
    narrow[slot] = too_low == 0
    for i in range(n_labels):
        for j in range(n_labels):
            tables[slot, _TURNED, i, j] = tables[slot, _STORED, j, i]


# The functions below index ``work`` and ``tables`` directly. Slices would read better, but each
# makes a counted reference, which costs more than the arithmetic of a node.


@subkernel
def _times(
    work: Float64s, source: int, row: int, tables: Float64s, slot: int, way: int, target: int
) -> None:
    """Row of plane ``target`` = that of ``source`` times tables[slot, way], four rows at a time."""
    width = work.shape[2]
    for j in range(width):
        work[target, row, j] = 0.0
    for i in range(0, width, 4):
        x0 = work[source, row, i]
        x1 = work[source, row, i + 1]
        x2 = work[source, row, i + 2]
        x3 = work[source, row, i + 3]
        for j in range(width):
            work[target, row, j] += (
                x0 * tables[slot, way, i, j] + x1 * tables[slot, way, i + 1, j]
            ) + (x2 * tables[slot, way, i + 2, j] + x3 * tables[slot, way, i + 3, j])


@subkernel
def _row_max(a: Float64s, i: int) -> float:
    # Four maxima, because one alone would be a chain of steps that wait for each other.
    n_labels = a.shape[1]
    m0 = m1 = m2 = m3 = -np.inf
    whole = n_labels // 4 * 4
    for j in range(0, whole, 4):
        m0 = a[i, j] if a[i, j] > m0 else m0
        m1 = a[i, j + 1] if a[i, j + 1] > m1 else m1
        m2 = a[i, j + 2] if a[i, j + 2] > m2 else m2
        m3 = a[i, j + 3] if a[i, j + 3] > m3 else m3
    for j in range(whole, n_labels):
        m0 = a[i, j] if a[i, j] > m0 else m0
    return max(m0, m1, m2, m3)


@subkernel
def _upward(
    node: Float64s,
    types: Int64s,
    order: Int64s,
    parent: Int64s,
    edge: Int64s,
    down: Bools,
    first: int,
    n: int,
    own: bool,
    tables: Float64s,
    top: Float64s,
    narrow: Bools,
    work: Float64s,
) -> tuple[float, bool]:
    """Fill beliefs and messages of the tree; log Z (-inf: infeasible) and if nothing underflowed.

    The messages are kept as they are and normalised on their way into the parent's belief.
    """
    n_labels = node.shape[1]
    width = work.shape[2]
    log_z = 0.0
    too_low = 0
    for i in range(n):
        v = order[first + i]
        highest = _row_max(node, v)
        if highest == -np.inf:
            return highest, True
        log_z += highest
        for j in range(n_labels):
            x = node[v, j] - highest
            too_low += 1 if -np.inf < x < -_SPAN else 0
            work[_BELIEF, i, j] = vector_exp(x)
        for j in range(n_labels, width):
            work[_BELIEF, i, j] = 0.0
    if too_low > 0:
        return 0.0, False
    product = 1.0  # one logarithm for many nodes
    for i in range(n - 1, 0, -1):
        k = i if own else types[edge[first + i]]
        if not narrow[k]:
            return 0.0, False
        log_z += top[k]
        way = _TURNED if down[first + i] else _STORED
        _times(work, _BELIEF, i, tables, k, way, _MESSAGE)
        total = 0.0
        for j in range(width):
            total += work[_MESSAGE, i, j]
        if total == 0.0:
            return -np.inf, True
        product *= total
        if not 1e-100 < product < 1e100:
            log_z += np.log(product)
            product = 1.0
        inverse = 1.0 / total
        q = parent[first + i] - first
        too_low = 0
        for j in range(width):
            x = work[_BELIEF, q, j] * (work[_MESSAGE, i, j] * inverse)
            work[_BELIEF, q, j] = x
            too_low += 1 if 0.0 < x < _FLOOR else 0
        if too_low > 0:  # perhaps all of them are low, being a product of many messages
            highest = _row_max(work[_BELIEF], q)
            log_z += np.log(highest)
            for j in range(width):
                work[_BELIEF, q, j] /= highest
                if 0.0 < work[_BELIEF, q, j] < _FLOOR:
                    return 0.0, False
    total = 0.0
    for j in range(width):
        total += work[_BELIEF, 0, j]
    return log_z + np.log(product) + np.log(total), True


@subkernel
def _downward(
    types: Int64s,
    parent: Int64s,
    edge: Int64s,
    down: Bools,
    first: int,
    n: int,
    own: bool,
    tables: Float64s,
    work: Float64s,
) -> None:
    """Fill the posteriors and ratios of a tree that went up."""
    width = work.shape[2]
    for i in range(n):
        if i == 0:
            for j in range(width):
                work[_POSTERIOR, 0, j] = 1.0
        else:
            q = parent[first + i] - first
            for j in range(width):
                m = work[_MESSAGE, i, j]
                work[_RATIO, i, j] = work[_POSTERIOR, q, j] / m if m > 0.0 else 0.0
            k = i if own else types[edge[first + i]]
            way = _STORED if down[first + i] else _TURNED
            _times(work, _RATIO, i, tables, k, way, _POSTERIOR)
        total = 0.0
        for j in range(width):
            x = work[_POSTERIOR, i, j] * work[_BELIEF, i, j]
            work[_POSTERIOR, i, j] = x
            total += x
        inverse = 1.0 / total
        for j in range(width):
            work[_POSTERIOR, i, j] *= inverse


# --- the same on logarithms -----------------------------------------------------------------------


@subkernel
def _score(pair: Float64s, k: int, down: bool, upper: int, lower: int) -> float:
    """Score of the labels of a parent and its child."""
    found: float = pair[k, upper, lower] if down else pair[k, lower, upper]
    return found


@subkernel
def _log_sum(terms: Float64s) -> float:
    """Return the logarithm of the sum of e^terms, -inf if all are."""
    highest = -np.inf
    for j in range(terms.shape[0]):
        highest = max(highest, terms[j])
    if highest == -np.inf:
        return highest
    total = 0.0
    for j in range(terms.shape[0]):
        total += vector_exp(terms[j] - highest)
    return float(highest + np.log(total))


@subkernel
def _upward_log(
    node: Float64s,
    pair: Float64s,
    types: Int64s,
    order: Int64s,
    parent: Int64s,
    edge: Int64s,
    down: Bools,
    first: int,
    n: int,
    work: Float64s,
    terms: Float64s,
) -> float:
    """Do what _upward does; the messages are kept less their maxima."""
    n_labels = node.shape[1]
    log_z = 0.0
    for i in range(n):
        for j in range(n_labels):
            work[_BELIEF, i, j] = node[order[first + i], j]
    for i in range(n - 1, -1, -1):
        highest = -np.inf
        for a in range(n_labels if i > 0 else 1):
            for b in range(n_labels):
                terms[b] = work[_BELIEF, i, b]
                if i > 0:
                    terms[b] += _score(pair, types[edge[first + i]], down[first + i], a, b)
            work[_MESSAGE, i, a] = _log_sum(terms)
            highest = max(highest, work[_MESSAGE, i, a])
        log_z += highest
        if highest == -np.inf:
            break
        for a in range(n_labels if i > 0 else 0):
            work[_MESSAGE, i, a] -= highest
            work[_BELIEF, parent[first + i] - first, a] += work[_MESSAGE, i, a]
    return log_z


@subkernel
def _downward_log(
    pair: Float64s,
    types: Int64s,
    parent: Int64s,
    edge: Int64s,
    down: Bools,
    first: int,
    n: int,
    work: Float64s,
    terms: Float64s,
) -> None:
    """Do what _downward does."""
    n_labels = pair.shape[1]
    for i in range(n):
        for a in range(n_labels if i > 0 else 0):
            x = work[_POSTERIOR, parent[first + i] - first, a]
            work[_RATIO, i, a] = x - work[_MESSAGE, i, a] if x > -np.inf else x
        # The last round sums up the posterior itself.
        for b in range(n_labels + 1):
            for a in range(n_labels):
                if b == n_labels:
                    terms[a] = work[_POSTERIOR, i, a]
                elif i > 0:
                    x = _score(pair, types[edge[first + i]], down[first + i], a, b)
                    terms[a] = work[_RATIO, i, a] + x
                else:
                    terms[a] = 0.0
            total = _log_sum(terms)
            if b < n_labels:
                work[_POSTERIOR, i, b] = work[_BELIEF, i, b] + total
            else:
                for a in range(n_labels):
                    work[_POSTERIOR, i, a] -= total
                    work[_RATIO, i, a] -= total


# --- what is read off -----------------------------------------------------------------------------


@subkernel
def _pair(
    pair: Float64s,
    types: Int64s,
    e: int,
    down: bool,
    tables: Float64s,
    k: int,
    scaled: bool,
    work: Float64s,
    i: int,
    pairs: Float64s,
) -> None:
    """Joint probabilities of the ends of edge e, into node i of the tree."""
    row = _RATIO if down else _BELIEF
    column = _BELIEF if down else _RATIO
    for a in range(pairs.shape[1]):
        for b in range(pairs.shape[1]):
            if scaled:
                pairs[e, a, b] = work[row, i, a] * tables[k, _STORED, a, b] * work[column, i, b]
            else:
                pairs[e, a, b] = np.exp(work[row, i, a] + pair[types[e], a, b] + work[column, i, b])


@subkernel
def _entropy(
    pair: Float64s,
    types: Int64s,
    edge: Int64s,
    down: Bools,
    first: int,
    n: int,
    own: bool,
    tables: Float64s,
    scaled: bool,
    work: Float64s,
    terms: Float64s,
    n_labels: int,
) -> float:
    """H(y_root) + sum of H(y_c | y_q), from conditional probabilities, where nothing cancels."""
    entropy = 0.0
    for i in range(n):
        k = types[edge[first + i]] if i > 0 else 0
        for a in range(n_labels if i > 0 else 1):
            total = 0.0
            for b in range(n_labels):
                if i == 0:
                    x = work[_POSTERIOR, 0, b]
                    terms[b] = x if scaled else np.exp(x)
                elif scaled:
                    way = _STORED if down[first + i] else _TURNED
                    table = i if own else k
                    terms[b] = work[_RATIO, i, a] * tables[table, way, a, b] * work[_BELIEF, i, b]
                else:
                    x = _score(pair, k, down[first + i], a, b)
                    terms[b] = np.exp(work[_RATIO, i, a] + x + work[_BELIEF, i, b])
                total += terms[b]
            for b in range(n_labels):
                if 0.0 < terms[b] < total:
                    entropy -= terms[b] * np.log(terms[b] / total)
    return entropy


@subkernel
def _draw(
    pair: Float64s,
    types: Int64s,
    order: Int64s,
    parent: Int64s,
    edge: Int64s,
    down: Bools,
    first: int,
    n: int,
    own: bool,
    tables: Float64s,
    scaled: bool,
    work: Float64s,
    terms: Float64s,
    uniforms: Float64s,
    labels: Int32s,
    r: int,
    n_labels: int,
) -> None:
    """Draw labelling r of one tree."""
    for i in range(n):
        v = order[first + i]
        k = types[edge[first + i]] if i > 0 else 0
        upper = labels[r, order[parent[first + i]]] if i > 0 else 0
        highest = -np.inf
        for b in range(n_labels):
            terms[b] = work[_BELIEF, i, b]
            if i > 0 and scaled:
                way = _STORED if down[first + i] else _TURNED
                terms[b] *= tables[i if own else k, way, upper, b]
            elif i > 0:
                terms[b] += _score(pair, k, down[first + i], upper, b)
            highest = max(highest, terms[b])
        total = 0.0
        for b in range(n_labels):
            if not scaled:
                terms[b] = np.exp(terms[b] - highest)
            total += terms[b]
        goal = uniforms[r, v] * total
        running = 0.0
        for b in range(n_labels):
            if terms[b] > 0.0:
                # The last label of positive weight, should rounding keep the sum from passing.
                labels[r, v] = b
                running += terms[b]
                if running > goal:
                    break
