r"""Visits of samples by block-coordinate Frank–Wolfe, and loss-augmented inference, on forests.

A labelling of the nodes of a sample has the score

    s(x, y) = Σ_v Σ_{f ∈ x_v} x_vf · W[f, y_v] + Σ_{e = (a, b)} S[table_e][y_a, y_b],

S = T, or T + Tᵀ for edges without direction.

The dual of structured hinge losses (:mod:`trellis.solvers.frank_wolfe`) has a distribution over the
labellings of each sample, of which only the means count:

    m_v (L,)  = mean of the indicator of y_v,        P_k (L, L) = Σ_{e of table k} mean of that of
                                                                  (y_a, y_b).

With them, ψ being gold features less those of a labelling, the sample's part of the weights is

    w_i = c_i / 2λ · (Σ_v x_v ⊗ (gold_v − m_v), gold pairs − P),

which is never formed: a visit finds the best labelling y under the scores and added costs, its gap
g = augmented(y) − augmented(m, P) from the scores alone, and the direction m − y, P − y from which
the step follows. So the memory is N · L and a table for each sample and type, whatever the number
of features.

Node arrays are in the order of positions, not of places.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trellis.kernels._jit import inner, kernel
from trellis.kernels.rows import longest_sample, max_step, padded_width
from trellis.kernels.scoring import Features

__all__ = ["Costs", "Rooted", "visit_samples"]

Array = np.ndarray[Any, Any]


class Rooted(NamedTuple):
    """Nodes as in :class:`trellis.structures.Forest`, each after its parent.

    Sample s has the places ``offsets[s]:offsets[s + 1]`` of ``order``. At each place: the place of
    the parent (−1 for a root), the table of the edge to it, whether the parent is the first end of
    that edge, and its slot, the row of ``pairs`` (one for each sample and table; −1 for a root).
    """

    offsets: Array
    order: Array
    parent: Array
    table: Array
    down: Array
    slot: Array


class Costs(NamedTuple):
    """Gold labels (N,) and the costs of the others: ``table[row[v]]`` at v, zero at the gold."""

    gold: Array
    table: Array
    row: Array


class _Tables(NamedTuple):
    """S (K, L²), and the same (K, 2, L, L) padded, both ways round."""

    S: Array
    ways: Array


@kernel
def visit_samples(
    features: Features,
    targets: Costs,
    nodes: Rooted,
    symmetric: bool,
    weight: Array,
    visits: Array,
    W: Array,
    T: Array,
    learn: bool,
    scale: float,
    labels: Array,
    means: Array,
    pairs: Array,
    losses: Array,
) -> float:
    """Visit samples in the order of ``visits``; returns the sum of their weighted hinge losses.

    Parameters
    ----------
    features, targets, nodes
        The data.
    symmetric : bool
        Edges have no direction.
    W, T : float64 (F, L), (K, L · L)
        The weights; changed if ``learn``.
    scale : float
        2 λ.
    labels : (N,)
        Filled with the best labellings.
    means, pairs, losses : (N, L), (slots, L · L), (S,)
        m, P and the mean loss of each sample; changed if ``learn``.
    """
    gold, costs, cost_row = targets
    offsets, order, _, table, _, slot = nodes
    n_labels = W.shape[1]
    width = padded_width(n_labels)
    longest = max(1, longest_sample(offsets))
    tables = _Tables(np.empty(T.shape), np.full((T.shape[0], 2, width, width), -np.inf))
    for k in range(T.shape[0]):
        for i in range(n_labels**2):
            _refresh(T, k, i, n_labels, symmetric, tables)
    scores = np.zeros((longest, width))
    value = np.full((longest, width), -np.inf)
    message = np.empty(width)
    # The direction of a visit: psi (zero elsewhere) in the rows of the features that were met, and
    # entries of pairs, each as slot, table and place in it.
    psi = np.zeros(W.shape if learn else (0, 0))
    met = np.full(W.shape[0] if learn else 0, -1)
    rows = np.empty(W.shape[0] if learn else 0, np.int64)
    hot = np.empty((max(n_labels, _most_slots(offsets, slot) * n_labels**2), 3), np.int64)
    total = 0.0
    for number in range(visits.size):
        s = visits[number]
        first = offsets[s]
        n = offsets[s + 1] - first
        if weight[s] == 0 or n == 0:
            continue
        for r in range(n):
            v = order[first + r]
            _score(features, W, v, scores, r)
            for j in range(n_labels):
                scores[r, j] += costs[cost_row[v], j]
                value[r, j] = scores[r, j]
        best = _best_labelling(first, n, nodes, tables.ways, value, message, labels)
        hinge = best
        for r in range(n):
            v = order[first + r]
            hinge -= scores[r, gold[v]]
            k = table[first + r]
            if k >= 0:
                a, b = _ends(first + r, nodes)
                hinge -= tables.S[k, gold[a] * n_labels + gold[b]]
        total += weight[s] * hinge
        if not learn:
            continue
        mean_value = 0.0
        for r in range(n):
            v = order[first + r]
            for j in range(n_labels):
                mean_value += means[v, j] * scores[r, j]
        last_slot = -1
        for r in range(n):
            if slot[first + r] > last_slot:  # the slots of a sample are numbered as they occur
                last_slot = slot[first + r]
                k = table[first + r]
                for i in range(n_labels**2):
                    mean_value += pairs[last_slot, i] * tables.S[k, i]
        gain = best - mean_value
        if gain <= 1e-14 * abs(best):
            continue
        # The direction: means less the labelling.
        loss = 0.0
        for r in range(n):
            v = order[first + r]
            means[v, labels[v]] -= 1.0
            loss += costs[cost_row[v], labels[v]]
            if slot[first + r] >= 0:
                a, b = _ends(first + r, nodes)
                pairs[slot[first + r], labels[a] * n_labels + labels[b]] -= 1.0
        n_rows = 0
        for r in range(n):
            v = order[first + r]
            n_rows = _spread(features, v, means, psi, met, number, rows, n_rows, hot, message)
        norm = 0.0
        for i in range(n_rows):
            f = rows[i]
            for j in range(n_labels):
                norm += psi[f, j] * psi[f, j]
        n_hot = 0
        last_slot = -1
        for r in range(n):
            if slot[first + r] > last_slot:
                last_slot = slot[first + r]
                n_hot = _used_pairs(
                    pairs, last_slot, table[first + r], n_labels, symmetric, hot, n_hot
                )
        for q in range(n_hot):
            x = _direction(pairs, hot, q, n_labels, symmetric)
            norm += x * x
        step = 1.0
        if scale * gain < weight[s] * norm:
            step = scale * gain / (weight[s] * norm)
        factor = step * weight[s] / scale
        for i in range(n_rows):
            f = rows[i]
            for j in range(n_labels):
                W[f, j] += factor * psi[f, j]
                psi[f, j] = 0.0
        for q in range(n_hot):
            T[hot[q, 1], hot[q, 2]] += factor * _direction(pairs, hot, q, n_labels, symmetric)
        for q in range(n_hot):
            _refresh(T, hot[q, 1], hot[q, 2], n_labels, symmetric, tables)
            pairs[hot[q, 0], hot[q, 2]] *= 1.0 - step
        for r in range(n):
            v = order[first + r]
            for j in range(n_labels):
                means[v, j] *= 1.0 - step
            means[v, labels[v]] += 1.0
            if slot[first + r] >= 0:
                a, b = _ends(first + r, nodes)
                pairs[slot[first + r], labels[a] * n_labels + labels[b]] += 1.0
        losses[s] += step * (loss - losses[s])
    return total


@inner
def _ends(place: int, nodes: Rooted) -> tuple[int, int]:
    """Positions of the first and the second end of the edge to the parent."""
    child = nodes.order[place]
    upper = nodes.order[nodes.parent[place]]
    return (upper, child) if nodes.down[place] else (child, upper)


@inner
def _score(features: Features, W: Array, v: int, out: Array, r: int) -> None:
    """Node scores of position v; nothing is fetched ahead, since W is small or dense."""
    indptr, indices, values = features
    n_labels = W.shape[1]
    for j in range(n_labels):
        out[r, j] = 0.0
    # The test stands outside of the loop, because indicators need no multiplication.
    if values.size:
        for p in range(indptr[v], indptr[v + 1]):
            f = indices[p]
            x = float(values[p])
            for j in range(n_labels):
                out[r, j] += x * W[f, j]
    else:
        for p in range(indptr[v], indptr[v + 1]):
            f = indices[p]
            for j in range(n_labels):
                out[r, j] += W[f, j]


@inner
def _best_labelling(
    first: int,
    n: int,
    nodes: Rooted,
    tables: Array,
    value: Array,
    message: Array,
    labels: Array,
) -> float:
    """Fill the labels of a sample; returns their score. ``value`` holds the node scores."""
    _, order, parent, table, down, _ = nodes
    width = message.shape[0]
    for r in range(n - 1, -1, -1):
        q = parent[first + r] - first
        if parent[first + r] < 0:
            continue
        k = table[first + r]
        way = 1 if down[first + r] else 0
        max_step(value, r, tables, k, way, message)
        for j in range(width):
            value[q, j] += message[j]
    total = 0.0
    for r in range(n):
        highest = -np.inf
        label = 0
        if parent[first + r] < 0:
            for j in range(width):
                if value[r, j] > highest:
                    highest = value[r, j]
                    label = j
            total += highest
        else:
            upper = labels[order[parent[first + r]]]
            way = 0 if down[first + r] else 1
            k = table[first + r]
            for j in range(width):
                x = value[r, j] + tables[k, way, upper, j]
                if x > highest:
                    highest = x
                    label = j
        labels[order[first + r]] = label
    return total


@inner
def _most_slots(offsets: Array, slot: Array) -> int:
    """Most slots that a sample has."""
    most = 0
    before = 0
    for s in range(offsets.size - 1):
        last = before
        for r in range(offsets[s], offsets[s + 1]):
            last = max(last, slot[r] + 1)
        most = max(most, last - before)
        before = last
    return most


@inner
def _used_pairs(
    pairs: Array, slot: int, table: int, n_labels: int, symmetric: bool, hot: Array, n_hot: int
) -> int:
    """List the entries of a slot that are not zero; returns how many are listed by now."""
    for i in range(n_labels**2):
        used = pairs[slot, i] != 0.0
        if symmetric:
            used = used or pairs[slot, i % n_labels * n_labels + i // n_labels] != 0.0
        if used:
            hot[n_hot, 0] = slot
            hot[n_hot, 1] = table
            hot[n_hot, 2] = i
            n_hot += 1
    return n_hot


@inner
def _direction(pairs: Array, hot: Array, q: int, n_labels: int, symmetric: bool) -> float:
    s, i = hot[q, 0], hot[q, 2]
    x: float = pairs[s, i]
    return x + pairs[s, i % n_labels * n_labels + i // n_labels] if symmetric else x


@inner
def _refresh(T: Array, k: int, i: int, n_labels: int, symmetric: bool, tables: _Tables) -> None:
    """Make S and its copies follow entry i of table k."""
    a, b = i // n_labels, i % n_labels
    s = T[k, i] + T[k, b * n_labels + a] if symmetric else T[k, i]
    tables.S[k, i] = s
    tables.ways[k, 0, a, b] = s
    tables.ways[k, 1, b, a] = s


@inner
def _spread(
    features: Features,
    v: int,
    means: Array,
    psi: Array,
    met: Array,
    number: int,
    rows: Array,
    n_rows: int,
    hot: Array,
    part: Array,
) -> int:
    """Add x_v ⊗ means[v] to the rows of ``psi``; returns how many rows were met by now."""
    n_hot = 0
    for j in range(means.shape[1]):
        if means[v, j] != 0.0:
            hot[n_hot, 0] = j
            part[n_hot] = means[v, j]
            n_hot += 1
    if n_hot == 0:
        return n_rows
    indptr, indices, values = features
    for p in range(indptr[v], indptr[v + 1]):
        f = indices[p]
        x = float(values[p]) if values.size else 1.0
        if met[f] != number:
            met[f] = number
            rows[n_rows] = f
            n_rows += 1
        for q in range(n_hot):
            psi[f, hot[q, 0]] += x * part[q]
    return n_rows
