"""Sparse parts of a training step on pieces with loops: scores in, steps out.

What lies between, marginals of the pieces, is computed elsewhere; see
:mod:`trellis.problems.loopy_likelihood`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import kernel
from trellis.kernels.scoring import Features, add_to_features, score_into
from trellis.kernels.tree_edges import RichRows, add_to_edge_rows, score_edge

__all__ = ["add_node_steps", "add_rich_steps", "rich_scores", "score_nodes_at"]

Array = np.ndarray[Any, Any]


@kernel
def score_nodes_at(features: Features, W: Array, nodes: Array) -> Array:
    """Node scores (n, L) of some nodes."""
    node = np.empty((nodes.size, W.shape[1]), W.dtype)
    score_into(features, W, nodes, 0, nodes.size, W.dtype.type(1), node, 0, W.shape[1])
    return node


@kernel
def add_node_steps(
    features: Features,
    nodes: Array,
    visit: Array,
    steps: Array,
    gamma: Array,
    fired: Array,
    W_into: Array,
) -> None:
    """W_into += features ⊗ steps; with ``gamma`` at the features' own rates, and counted.

    ``visit`` (n,) is the number of the visit that each node belongs to.
    """
    for i in range(nodes.size):
        add_to_features(
            features, nodes[i], steps, i, 0, len(W_into), gamma, fired, visit[i], W_into
        )


@kernel
def add_rich_steps(rich: RichRows, edges: Array, steps: Array, gamma: Array, R_into: Array) -> None:
    """R_into += rows of the edges ⊗ steps (m, L²)."""
    for i in range(edges.size):
        add_to_edge_rows(rich, edges[i], steps, i, gamma, 0, 1, R_into)


@kernel
def rich_scores(rich: RichRows, edges: Array, n_labels: int) -> Array:
    """What rich weights add to the scores of some edges (m, L, L)."""
    nothing = np.zeros((1, n_labels, n_labels))
    out = np.empty((edges.size, n_labels, n_labels))
    for i in range(edges.size):
        score_edge(nothing, 0, rich, edges[i], 1.0, False, out, i)
    return out
