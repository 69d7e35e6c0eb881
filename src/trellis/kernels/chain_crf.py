"""What CRF training does with a piece of a chain: its gradient, and the steps of its edges.

The loop over pieces is in :mod:`trellis.kernels.crf`, the lattice in
:mod:`trellis.kernels.chain_lattice`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import allocating, fragment
from trellis.kernels.chain_edges import DENSE, SPARSE
from trellis.kernels.chain_lattice import GRADIENT, ChainSpace, U, piece_loss
from trellis.kernels.rich_edges import add_to_dense_rows, score_dense_edges
from trellis.kernels.row_products import scale_row
from trellis.kernels.scoring import Features
from trellis.kernels.sparse_edges import add_to_rows, hit_pairs
from trellis.kernels.visits import LabelSets, Visits

__all__ = ["add_chain_edges", "apply_chain_steps", "chain_gradient", "hit_bounds"]

Array = np.ndarray[Any, Any]


@allocating
def hit_bounds(visits: Visits, edges: Any) -> Array:
    """Where the share of each piece in the hits begins, counted through all batches (K + 1,)."""
    starts, ends = visits.starts, visits.ends
    shares = np.zeros(starts.size + 1, np.int64)
    if edges is not None and edges.kind == SPARSE:
        for k in range(starts.size):
            shares[k + 1] = shares[k] + edges.hits.entries[ends[k]] - edges.hits.entries[starts[k]]
    return shares


@fragment
def chain_gradient(
    features: Features,
    sets: LabelSets,
    visits: Visits,
    k: int,
    k0: int,
    T: Array,
    edges: Any,
    shares: Array,
    scale: float,
    weight: float,
    step: float,
    space: ChainSpace,
    shared: Any,
    c: int,
) -> float:
    """Write the gradient of piece k, times ``step``, to its rows of a batch that begins with k0.

    That of the transitions is added, times ``weight``, to the sums of chunk c. Returns the loss.
    """
    work, edge, ranges = space.work, space.edge, space.ranges
    n = visits.ends[k] - visits.starts[k]
    row = visits.first[k] - visits.first[k0]
    n_labels = T.shape[0]
    if edges is not None and edges.kind == SPARSE:
        hit_pairs(
            features, edges.rich, visits, k, shares[k] - shares[k0], scale, space.tables, n_labels,
            sets.ids, edges.hits, ranges,
        )  # fmt: skip
    if edges is not None and edges.kind == DENSE:
        score_dense_edges(features, T, edges.rich, visits, k, scale, edge)
    loss = piece_loss(T, sets, visits, k, weight, edges, space, shared.pairs, c)
    width = work.shape[2]
    gradient = GRADIENT * work.shape[1] * width
    scale_row(work, gradient, n * width, step, shared.gradient, row * width)
    if edges is not None and edges.kind == SPARSE:
        for t in range(1, n):
            for h in range(ranges.begin[t], ranges.begin[t] + ranges.number[t]):
                edges.hits.gradient[h] *= step
    if edges is not None and edges.kind == DENSE:
        for t in range(1, n):
            for q in range(n_labels * n_labels):
                shared.edge_gradient[row + t, q] = step * edge[t, q]
            for i in range(n_labels):
                for j in range(n_labels):
                    shared.pairs[c, i, j] += weight * edge[t, i * n_labels + j]
    return loss


@fragment
def add_chain_edges(
    features: Features,
    visits: Visits,
    k: int,
    k0: int,
    edges: Any,
    shares: Array,
    edge_gradient: Array,
    low: int,
    high: int,
    gamma: Array,
    R_into: Array,
) -> None:
    """Add the steps of the rich edges of piece k for the features low … high − 1."""
    start = visits.starts[k]
    end = visits.ends[k]
    if edges is not None and edges.kind == DENSE:
        for t in range(start + 1, end):
            row = visits.first[k] - visits.first[k0] + t - start
            add_to_dense_rows(features, edges.rich, t, edge_gradient, row, low, high, gamma, R_into)
    if edges is not None and edges.kind == SPARSE:
        add_to_rows(
            features,
            edges.rich,
            start,
            end,
            edges.hits,
            shares[k] - shares[k0],
            low,
            high,
            gamma,
            R_into,
        )


@fragment
def apply_chain_steps(
    space: ChainSpace, shared: Any, used: int, t_scale: float, total: Array, T_into: Array
) -> None:
    """Take what ``used`` chunks have collected off the transitions; ``total`` (L, L) is scratch."""
    tables, outer, pairs = space.tables, shared.outer, shared.pairs
    n_labels = total.shape[0]
    for c in range(used - 1):
        for i in range(n_labels):
            for j in range(n_labels):
                total[i, j] += tables[U, i, j] * outer[c, i, j] + pairs[c, i, j]
                outer[c, i, j] = 0
                pairs[c, i, j] = 0
    c = used - 1  # most often the only one
    for i in range(n_labels):
        for j in range(n_labels):
            step = total[i, j] + (tables[U, i, j] * outer[c, i, j] + pairs[c, i, j])
            T_into[i, j] = t_scale * (T_into[i, j] - step)
            total[i, j] = 0
            outer[c, i, j] = 0
            pairs[c, i, j] = 0
