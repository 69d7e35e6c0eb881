"""Rows of rich edge weights that the edges of a problem meet.

They follow from the features once and for all: edge (a, b) meets the rows of the features of b, and
with ``both`` those of a in a second family; without direction the features of both ends meet the
same rows. There may be such families for each type of edges. A chain is a graph whose edges join
neighbours. Features that an edge has of its own meet the rows after those.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import for_kernels
from trellis.corpus.corpus import bounds, ranges
from trellis.features import Encoded
from trellis.problems.edge_weights import EdgeWeights

__all__ = ["EdgeRows", "edge_rows", "rich_arguments"]


@dataclass(frozen=True)
class EdgeRows:
    """Rows of rich edge weights that each edge meets, in CSR over edges.

    Parameters
    ----------
    indptr : int64 array (E + 1,)
    rows : int64 array
        Row of the weights of each entry.
    values : float32 array
        Values of the entries; empty when all are 1.
    features : int32 array
        The feature of each entry; −1 if it is the edge's own, whose pace is that of transitions.
    """

    indptr: NDArray[np.int64]
    rows: NDArray[np.int64]
    values: NDArray[np.float32]
    features: NDArray[np.int32]


def edge_rows(
    encoded: Encoded,
    edges: NDArray[np.int64],
    edge: EdgeWeights,
    directed: bool,
    own: Encoded | None = None,
    types: NDArray[np.int64] | None = None,
) -> EdgeRows:
    """Rows that each edge meets: of its second end's features, of its first's, of its own."""
    parts = []
    none = np.zeros(0, np.float32)
    real = encoded.values.size > 0 or (own is not None and own.values.size > 0)
    families = ((1, 0), (0, edge.n_crossed)) if edge.both else ((1, 0),)
    if not directed:
        families = ((1, 0), (0, 0))
    of_type = np.zeros(len(edges), np.int64)
    if edge.n_types > 1 and types is not None:
        of_type = types * (edge.families // edge.n_types * edge.n_crossed)
    for end, shift in families:
        nodes = edges[:, end]
        counts = encoded.indptr[nodes + 1] - encoded.indptr[nodes]
        where = ranges(encoded.indptr[nodes], counts)
        feature = encoded.indices[where]
        row = edge.row[feature].astype(np.int64)
        owner = np.repeat(np.arange(len(edges)), counts)
        use = row >= 0
        values = _values(encoded)[where][use] if real else none
        parts.append((owner[use], (row + of_type[owner])[use] + shift, values, feature[use]))
    if own is not None and edge.n_own:
        owner = np.repeat(np.arange(len(edges)), np.diff(own.indptr))
        row = own.indices.astype(np.int64) + edge.n_joined
        values = _values(own) if real else none
        parts.append((owner, row, values, np.full(len(row), -1, np.int32)))
    owner, row, values, feature = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(owner, kind="stable")
    return EdgeRows(
        bounds(np.bincount(owner, minlength=len(edges))),
        row[order],
        values[order] if values.size else values,
        feature[order],
    )


def _values(encoded: Encoded) -> NDArray[np.float32]:
    """Values of all entries, also of indicators."""
    return encoded.values if encoded.values.size else np.ones(len(encoded.indices), np.float32)


def rich_arguments(rows: EdgeRows | None, edge: EdgeWeights | None) -> Any:
    """What kernels take as ``rich`` on trees and graphs; None without rich edges."""
    from trellis.kernels.tree_edges import RichRows

    if edge is None or rows is None or not edge.n_rows:
        return None
    pairs = for_kernels(edge.ptr), for_kernels(edge.pair)
    return RichRows(rows.indptr, rows.rows, rows.values, rows.features, *pairs, edge.values)
