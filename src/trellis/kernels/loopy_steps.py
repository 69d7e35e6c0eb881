"""Sparse parts of a training step on pieces with loops: scores in, steps out.

What lies between, marginals of the pieces, is computed elsewhere; see
:mod:`trellis.problems.graph_log_likelihood`. ``rich`` is as in
:mod:`trellis.kernels.tree_edges`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import kernel
from trellis.kernels.tree_edges import add_to_edge_rows

__all__ = ["add_node_steps", "add_rich_steps", "rich_scores", "score_nodes_at"]

Array = np.ndarray[Any, Any]


@kernel
def score_nodes_at(indptr: Array, indices: Array, values: Array, W: Array, nodes: Array) -> Array:
    """Node scores (n, L) of some nodes."""
    out = np.zeros((nodes.size, W.shape[1]), W.dtype)
    for i in range(nodes.size):
        for p in range(indptr[nodes[i]], indptr[nodes[i] + 1]):
            v = values[p] if values.size else W.dtype.type(1)
            for j in range(W.shape[1]):
                out[i, j] += v * W[indices[p], j]
    return out


@kernel
def add_node_steps(
    indptr: Array,
    indices: Array,
    values: Array,
    nodes: Array,
    piece: Array,
    counted: int,
    steps: Array,
    W_into: Array,
    gamma: Array,
    fired: Array,
) -> None:
    """W_into += features ⊗ steps; with ``gamma`` at the features' own rates, and counted."""
    for i in range(nodes.size):
        for p in range(indptr[nodes[i]], indptr[nodes[i] + 1]):
            f = indices[p]
            v = values[p] if values.size else W_into.dtype.type(1)
            if gamma.size:
                v *= W_into.dtype.type(gamma[f])
                if fired[1, f] != counted + piece[i]:
                    fired[1, f] = counted + piece[i]
                    fired[0, f] += 1
            for j in range(W_into.shape[1]):
                W_into[f, j] += v * steps[i, j]


@kernel
def add_rich_steps(rich: Any, edges: Array, steps: Array, R_into: Array, gamma: Array) -> None:
    """R_into += rows of the edges ⊗ steps (m, L²)."""
    for i in range(edges.size):
        add_to_edge_rows(rich, edges[i], steps, i, R_into, gamma, 0, 1)


@kernel
def rich_scores(rich: Any, edges: Array, n_labels: int) -> Array:
    """What rich weights add to the scores of some edges (m, L, L)."""
    eptr, erow, evalue, _, ptr, pair, R = rich
    n_pairs = n_labels * n_labels
    out = np.zeros((edges.size, n_pairs), np.float64)
    for i in range(edges.size):
        for p in range(eptr[edges[i]], eptr[edges[i] + 1]):
            v = evalue[p] if evalue.size else np.float32(1)
            if ptr.size:
                for q in range(ptr[erow[p]], ptr[erow[p] + 1]):
                    out[i, pair[q]] += v * R[q]
            else:
                for q in range(n_pairs):
                    out[i, q] += v * R[erow[p] * n_pairs + q]
    return out.reshape(edges.size, n_labels, n_labels)
