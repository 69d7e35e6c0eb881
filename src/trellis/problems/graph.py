"""The training data of a tree or graph model, and the pieces of a pass.

s(x, y) = Σ_v Σ_{f ∈ x_v} value · node[f, y_v] + Σ_{e = (a, b)} S_e[y_a, y_b],
S_e = T[type of e], or T and what the features of the ends add to it, M_e + M_eᵀ without direction

The rich rows of the edges (:class:`EdgeRows`) follow from the features once and for all: edge
(a, b) meets the rows of the features of b, and with ``both`` those of a in a second family; without
direction the features of both ends meet the same rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.corpus.corpus import bounds, ranges
from trellis.decompose import Pieces
from trellis.features import Encoded
from trellis.problems.chain import ChainData, Visits
from trellis.problems.edge_weights import EdgeWeights
from trellis.structures.forest import Forest

__all__ = ["EdgeRows", "GraphData", "GraphVisits", "edge_rows"]


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
        The feature of each entry.
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
) -> EdgeRows:
    """Rows that each edge meets: those of its second end's features, then those of its first."""
    parts = []
    families = ((1, 0), (0, edge.n_crossed)) if edge.both else ((1, 0),)
    if not directed:
        families = ((1, 0), (0, 0))
    for end, shift in families:
        nodes = edges[:, end]
        counts = encoded.indptr[nodes + 1] - encoded.indptr[nodes]
        where = ranges(encoded.indptr[nodes], counts)
        feature = encoded.indices[where]
        row = edge.row[feature].astype(np.int64)
        owner = np.repeat(np.arange(len(edges)), counts)
        use = row >= 0
        values = encoded.values[where][use] if encoded.values.size else np.zeros(0, np.float32)
        parts.append((owner[use], row[use] + shift, values, feature[use]))
    owner, row, values, feature = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(owner, kind="stable")
    return EdgeRows(
        bounds(np.bincount(owner, minlength=len(edges))),
        row[order],
        values[order] if values.size else values,
        feature[order],
    )


@dataclass(frozen=True)
class GraphVisits(Visits):
    """Pieces of graphs in the order of visiting.

    [start, end) of a piece are places in ``nodes``. Either the pieces are trees, in ``forest``, or
    they have the edges ``kept[kept_starts[k]:kept_ends[k]]``.
    """

    nodes: NDArray[np.int64]
    forest: Forest | None = None
    kept: NDArray[np.int64] | None = None
    kept_starts: NDArray[np.int64] | None = None
    kept_ends: NDArray[np.int64] | None = None

    def __getitem__(self, part: slice) -> GraphVisits:
        return self._each(lambda a: a[part])

    def repeated(self, times: int) -> GraphVisits:
        """The same visits several times over."""
        return self._each(lambda a: np.tile(a, times))

    def _each(self, change: Callable[[NDArray[Any]], NDArray[Any]]) -> GraphVisits:
        """The same with every array that has an entry for each piece changed."""
        return replace(
            self,
            starts=change(self.starts),
            ends=change(self.ends),
            weights=change(self.weights),
            kept_starts=None if self.kept_starts is None else change(self.kept_starts),
            kept_ends=None if self.kept_ends is None else change(self.kept_ends),
        )


@dataclass(frozen=True)
class GraphData(ChainData):
    """Encoded features, label sets, a weight for each sample, and the edges.

    Parameters
    ----------
    encoded, labels, sample_weight
        As for chains.
    edges : int64 array (E, 2)
        Pairs of positions.
    types : int64 array (E,)
        Table of transitions of each edge.
    n_types : int
        Number of tables K.
    directed : bool
        Whether the two ends of an edge play different parts.
    rows : EdgeRows or None
        Rows of rich edge weights, if there are any.
    """

    edges: NDArray[np.int64]
    types: NDArray[np.int64]
    n_types: int = 1
    directed: bool = True
    rows: EdgeRows | None = None

    def identity(self) -> tuple[NDArray[Any], ...]:
        """Everything that tells these data from others."""
        return (*super().identity(), self.edges, self.types)

    def visits(self, pieces: Pieces, order: NDArray[np.int64] | None = None) -> GraphVisits:
        """Pieces of this data in visiting order (as drawn, if none is given)."""
        if order is None:
            order = np.arange(len(pieces))
        assert pieces.nodes is not None
        found = GraphVisits(
            pieces.offsets[:-1][order],
            pieces.offsets[1:][order],
            self.sample_weight[pieces.sample[order]],
            pieces.nodes,
            pieces.forest,
        )
        if pieces.kept is None:
            return found
        piece = np.empty(len(pieces.nodes), np.int64)
        piece[pieces.nodes] = np.repeat(np.arange(len(pieces)), np.diff(pieces.offsets))
        owner = piece[self.edges[pieces.kept, 0]]
        edges_of = np.searchsorted(owner, np.arange(len(pieces) + 1))
        return replace(
            found,
            kept=pieces.kept,
            kept_starts=edges_of[:-1][order],
            kept_ends=edges_of[1:][order],
        )
