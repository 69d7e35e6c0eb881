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

Arguments are the scores ``node`` and ``pair`` of a :class:`~trellis.structures.GraphPotentials`,
float64, C-ordered and finite or ``-inf``, and its forest. A sample that has no feasible labelling
gets log Z ``-inf``; an empty one log Z 0. Nothing is checked here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from trellis.kernels._jit import kernel, ordered, subkernel
from trellis.kernels.fast_exp import vector_exp
from trellis.kernels.forest import Forest
from trellis.kernels.rows import draw, longest_sample, padded_width, row_max

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
# module's formulas. On logarithms, the way down needs m and P_q / m_c for log m_c, see _log_joint.
_BELIEF, _MESSAGE, _POSTERIOR, _RATIO = range(4)
# Planes of a table: as the edge is stored, and transposed.
_STORED, _TURNED = range(2)


class _Space(NamedTuple):
    """Tables and room to work in.

    ``per_edge``: each edge has a table of its own, that into place i of the tree at hand being
    number i; else tables go by the types of the edges. ``tables`` (n, 2, L, L), padded with zeros,
    are exponentials less the maximum ``top`` (n,), both ways round; ``narrow`` (n,) says that none
    can underflow. ``work`` (4, nodes, L) has the planes above, ``terms`` (L,) is scratch, -inf
    beyond the labels.
    """

    per_edge: bool
    tables: Float64s
    top: Float64s
    narrow: Bools
    work: Float64s
    terms: Float64s


@kernel
def posterior(
    node: Float64s,
    pair: Float64s,
    offsets: Int64s,
    forest: Forest,
    tree: Int64s,
    marginals: Float64s,
    pairs: Float64s,
    entropy: Float64s,
    uniforms: Float64s,
    labels: Int32s,
) -> Float64s:
    """Return log Z (S,) and fill those of the other arrays that have a size.

    ``tree`` are the bounds of the trees in the order of the forest. The other arrays are
    ``marginals`` (N, L), ``pairs`` (E, L, L) as the edges are stored, ``entropy`` (S,),
    zero at first, and ``labels`` (K, N), drawn by the numbers ``uniforms`` (K, N) from [0, 1): the
    root from P, every other node from P(y_c | y_q), by inverting the running sums.

    One kernel for all purposes, because each further copy of it costs seconds to compile.
    """
    largest = longest_sample(tree)
    width = padded_width(node.shape[1])
    # Tables of many edges are exponentiated once for all; those of single edges tree by tree.
    per_edge = pair.shape[0] >= forest.types.shape[0]
    n_tables = largest if per_edge else pair.shape[0]
    space = _Space(
        per_edge,
        np.zeros((n_tables, 2, width, width)),
        np.zeros(n_tables),
        np.ones(n_tables, np.bool_),
        np.zeros((4, largest, width)),
        np.full(width, -np.inf),
    )
    downward = marginals.size + pairs.size + entropy.size > 0

    log_z = np.zeros(offsets.shape[0] - 1)
    s = 0
    for t in range(tree.shape[0] - 1):
        first = tree[t]
        n = tree[t + 1] - first
        while offsets[s + 1] <= first:
            s += 1
        if per_edge or t == 0:
            for k in range(n_tables if not per_edge else n):
                if not per_edge:
                    _exponentiate(pair, k, space, k)
                elif k > 0:
                    _exponentiate(pair, forest.types[forest.edge[first + k]], space, k)
        total, scaled = _upward(node, forest, first, n, space)
        if not scaled:
            total = _upward_log(node, pair, forest, first, n, space)
        log_z[s] += total
        if total == -np.inf:
            continue
        if downward:
            if scaled:
                _downward(forest, first, n, space)
            else:
                _downward_log(pair, forest, first, n, space)
        if marginals.size > 0:
            for i in range(n):
                for j in range(node.shape[1]):
                    x = space.work[_POSTERIOR, i, j]
                    marginals[forest.order[first + i], j] = x if scaled else np.exp(x)
        if pairs.size > 0:
            for i in range(1, n):
                _pair(pair, forest, first, i, scaled, space, pairs)
        if entropy.size > 0:
            entropy[s] += _entropy(pair, forest, first, n, scaled, space)
        for r in range(uniforms.shape[0]):
            _draw(pair, forest, first, n, scaled, space, uniforms, labels, r)
    return log_z


@subkernel
def _table(forest: Forest, space: _Space, first: int, i: int) -> int:
    """Number of the exponentiated table of the edge above place i of a tree."""
    return i if space.per_edge else forest.types[forest.edge[first + i]]


@subkernel
def _exponentiate(pair: Float64s, k: int, space: _Space, slot: int) -> None:
    """Fill tables[slot] with e^{pair[k] - top}, both ways round; padding stays zero."""
    tables = space.tables
    n_labels = pair.shape[1]
    highest = -np.inf
    table = pair[k]
    for i in range(n_labels):
        highest = max(highest, row_max(table, i))
    if highest == -np.inf:
        highest = 0.0
    too_low = 0
    for i in range(n_labels):
        for j in range(n_labels):
            x = table[i, j] - highest
            too_low += 1 if -np.inf < x < -_SPAN else 0
            tables[slot, _STORED, i, j] = vector_exp(x)
    space.top[slot] = highest
    space.narrow[slot] = too_low == 0
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
def _upward(
    node: Float64s, forest: Forest, first: int, n: int, space: _Space
) -> tuple[float, bool]:
    """Fill beliefs and messages of the tree; log Z (-inf: infeasible) and if nothing underflowed.

    The messages are kept as they are and normalised on their way into the parent's belief.
    """
    work = space.work
    n_labels = node.shape[1]
    width = work.shape[2]
    log_z = 0.0
    too_low = 0
    for i in range(n):
        v = forest.order[first + i]
        highest = row_max(node, v)
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
        k = _table(forest, space, first, i)
        if not space.narrow[k]:
            return 0.0, False
        log_z += space.top[k]
        way = _TURNED if forest.down[first + i] else _STORED
        _times(work, _BELIEF, i, space.tables, k, way, _MESSAGE)
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
        q = forest.parent[first + i] - first
        too_low = 0
        for j in range(width):
            x = work[_BELIEF, q, j] * (work[_MESSAGE, i, j] * inverse)
            work[_BELIEF, q, j] = x
            too_low += 1 if 0.0 < x < _FLOOR else 0
        if too_low > 0:  # perhaps all of them are low, being a product of many messages
            highest = row_max(work[_BELIEF], q)
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
def _downward(forest: Forest, first: int, n: int, space: _Space) -> None:
    """Fill the posteriors and ratios of a tree that went up."""
    work = space.work
    width = work.shape[2]
    for i in range(n):
        if i == 0:
            for j in range(width):
                work[_POSTERIOR, 0, j] = 1.0
        else:
            q = forest.parent[first + i] - first
            for j in range(width):
                m = work[_MESSAGE, i, j]
                work[_RATIO, i, j] = work[_POSTERIOR, q, j] / m if m > 0.0 else 0.0
            k = _table(forest, space, first, i)
            way = _STORED if forest.down[first + i] else _TURNED
            _times(work, _RATIO, i, space.tables, k, way, _POSTERIOR)
        total = 0.0
        for j in range(width):
            x = work[_POSTERIOR, i, j] * work[_BELIEF, i, j]
            work[_POSTERIOR, i, j] = x
            total += x
        inverse = 1.0 / total
        for j in range(width):
            work[_POSTERIOR, i, j] *= inverse


# --- the same on logarithms -----------------------------------------------------------------------


@ordered
def _less(x: float, top: float) -> float:
    """The difference, which is exactly 0 at the top, whatever x was added up from."""
    return x - top


@subkernel
def _score(pair: Float64s, k: int, top: float, down: bool, upper: int, lower: int) -> float:
    """Score of the labels of a parent and its child, less the table's top."""
    return _less(pair[k, upper, lower] if down else pair[k, lower, upper], top)


@subkernel
def _log_sum(terms: Float64s) -> float:
    """Return the logarithm of the sum of e^terms, -inf if all are."""
    highest = _highest(terms)
    return highest + _log_sum_below(terms, highest)


@subkernel
def _highest(terms: Float64s) -> float:
    highest = -np.inf
    for j in range(terms.shape[0]):
        highest = max(highest, terms[j])
    return highest


@subkernel
def _log_sum_below(terms: Float64s, highest: float) -> float:
    """Return the logarithm of the sum of e^(terms - highest), 0 if all are -inf."""
    if highest == -np.inf:
        return 0.0
    total = 0.0
    for j in range(terms.shape[0]):
        total += vector_exp(_less(terms[j], highest))
    return float(np.log(total))


@subkernel
def _upward_log(
    node: Float64s, pair: Float64s, forest: Forest, first: int, n: int, space: _Space
) -> float:
    """Do what _upward does; node scores, tables and messages are taken less their maxima."""
    work, terms = space.work, space.terms
    n_labels = node.shape[1]
    log_z = 0.0
    for i in range(n):
        v = forest.order[first + i]
        highest = row_max(node, v)
        log_z += highest
        if highest == -np.inf:
            return highest
        for j in range(n_labels):
            work[_BELIEF, i, j] = node[v, j] - highest
    for i in range(n - 1, -1, -1):
        k = forest.types[forest.edge[first + i]] if i > 0 else 0
        top = space.top[_table(forest, space, first, i)] if i > 0 else 0.0
        log_z += top
        highest = -np.inf
        for a in range(n_labels if i > 0 else 1):
            for b in range(n_labels):
                terms[b] = work[_BELIEF, i, b]
                if i > 0:
                    terms[b] += _score(pair, k, top, forest.down[first + i], a, b)
            work[_MESSAGE, i, a] = _log_sum(terms)
            highest = max(highest, work[_MESSAGE, i, a])
        log_z += highest
        if highest == -np.inf:
            break
        for a in range(n_labels if i > 0 else 0):
            work[_MESSAGE, i, a] -= highest
            work[_BELIEF, forest.parent[first + i] - first, a] += work[_MESSAGE, i, a]
    return log_z


@subkernel
def _downward_log(pair: Float64s, forest: Forest, first: int, n: int, space: _Space) -> None:
    """Do what _downward does."""
    work, terms = space.work, space.terms
    n_labels = pair.shape[1]
    for i in range(n):
        down = forest.down[first + i]
        k = forest.types[forest.edge[first + i]] if i > 0 else 0
        top = space.top[_table(forest, space, first, i)] if i > 0 else 0.0
        q = forest.parent[first + i] - first
        for a in range(n_labels if i > 0 else 0):
            for b in range(n_labels):
                terms[b] = work[_BELIEF, i, b] + _score(pair, k, top, down, a, b)
            work[_RATIO, i, a] = _highest(terms)
            work[_MESSAGE, i, a] = _log_sum_below(terms, work[_RATIO, i, a])
        for b in range(n_labels):
            if i > 0:
                for a in range(n_labels):
                    terms[a] = _log_joint(work, i, q, a, b, _score(pair, k, top, down, a, b))
                work[_POSTERIOR, i, b] = _log_sum(terms)
            else:
                work[_POSTERIOR, i, b] = work[_BELIEF, i, b]
        # It sums to 1 but for rounding, which would pile up on the way down.
        for b in range(n_labels):
            terms[b] = work[_POSTERIOR, i, b]
        total = _log_sum(terms)
        for b in range(n_labels):
            work[_POSTERIOR, i, b] -= total


@ordered
def _log_joint(work: Float64s, i: int, q: int, a: int, b: int, score: float) -> float:
    """Log P(y_q = a, y_c = b), c at place i of the tree and q its parent, with their score.

    It is log P_q plus the conditional log b_c + log E_c - log m_c: nothing but what m_c was summed
    from is taken off it, in the same order, so the largest term is exact however large scores are.
    For the same reason log m_c is in two parts: the largest term, and the rest.
    """
    above: float = work[_POSTERIOR, q, a]
    if above == -np.inf:
        return above
    conditional = ((work[_BELIEF, i, b] + score) - work[_RATIO, i, a]) - work[_MESSAGE, i, a]
    return float(above + conditional)


# --- what is read off -----------------------------------------------------------------------------


@subkernel
def _pair(
    pair: Float64s,
    forest: Forest,
    first: int,
    i: int,
    scaled: bool,
    space: _Space,
    pairs: Float64s,
) -> None:
    """Joint probabilities of the ends of the edge above place i of the tree."""
    work = space.work
    e = forest.edge[first + i]
    k = _table(forest, space, first, i)
    down = forest.down[first + i]
    row, column = (_RATIO, _BELIEF) if down else (_BELIEF, _RATIO)
    q = forest.parent[first + i] - first
    for a in range(pairs.shape[1]):
        for b in range(pairs.shape[1]):
            if scaled:
                x = space.tables[k, _STORED, a, b]
                pairs[e, a, b] = work[row, i, a] * x * work[column, i, b]
            else:
                upper, lower = (a, b) if down else (b, a)
                x = _score(pair, forest.types[e], space.top[k], down, upper, lower)
                pairs[e, a, b] = np.exp(_log_joint(work, i, q, upper, lower, x))


@subkernel
def _entropy(
    pair: Float64s, forest: Forest, first: int, n: int, scaled: bool, space: _Space
) -> float:
    """H(y_root) + sum of H(y_c | y_q), from conditional probabilities, where nothing cancels."""
    tables, work, terms = space.tables, space.work, space.terms
    n_labels = pair.shape[1]
    entropy = 0.0
    for i in range(n):
        k = forest.types[forest.edge[first + i]] if i > 0 else 0
        top = space.top[_table(forest, space, first, i)] if i > 0 else 0.0
        down = forest.down[first + i]
        q = forest.parent[first + i] - first
        for a in range(n_labels if i > 0 else 1):
            total = 0.0
            for b in range(n_labels):
                if i == 0:
                    x = work[_POSTERIOR, 0, b]
                    terms[b] = x if scaled else np.exp(x)
                elif scaled:
                    way = _STORED if down else _TURNED
                    table = i if space.per_edge else k
                    terms[b] = work[_RATIO, i, a] * tables[table, way, a, b] * work[_BELIEF, i, b]
                else:
                    x = _score(pair, k, top, down, a, b)
                    terms[b] = np.exp(_log_joint(work, i, q, a, b, x))
                total += terms[b]
            for b in range(n_labels):
                if 0.0 < terms[b] < total:
                    entropy -= terms[b] * np.log(terms[b] / total)
    return entropy


@subkernel
def _draw(
    pair: Float64s,
    forest: Forest,
    first: int,
    n: int,
    scaled: bool,
    space: _Space,
    uniforms: Float64s,
    labels: Int32s,
    r: int,
) -> None:
    """Draw labelling r of one tree."""
    work, terms = space.work, space.terms
    n_labels = pair.shape[1]
    for i in range(n):
        v = forest.order[first + i]
        k = forest.types[forest.edge[first + i]] if i > 0 else 0
        top = space.top[_table(forest, space, first, i)] if i > 0 else 0.0
        down = forest.down[first + i]
        upper = labels[r, forest.order[forest.parent[first + i]]] if i > 0 else 0
        highest = -np.inf
        for b in range(n_labels):
            terms[b] = work[_BELIEF, i, b]
            if i > 0 and scaled:
                way = _STORED if down else _TURNED
                terms[b] *= space.tables[i if space.per_edge else k, way, upper, b]
            elif i > 0:
                terms[b] += _score(pair, k, top, down, upper, b)
            highest = max(highest, terms[b])
        if not scaled:
            for b in range(n_labels):
                terms[b] = np.exp(terms[b] - highest)
        labels[r, v] = draw(terms, n_labels, uniforms[r, v])
