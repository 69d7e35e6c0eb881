"""Pieces of trees and graphs: connected, drawn as random spanning trees that are cut.

Every pass draws a spanning tree of each component and cuts some of its edges, evenly spread, so
that pieces have n′ nodes on average (:mod:`trellis.kernels.graph_pieces`). What a piece keeps is

- its part of the spanning tree (``pieces="tree"``): inference on it is exact, however loopy the
  graph is, and over many passes every edge is learned from; or
- all edges between its nodes (``pieces="graph"``), the faithful reading of Sun (2014).

On a tree both are the same: the tree with some edges cut.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import as_array, as_offsets, for_kernels, held, known, memory_for
from trellis.decompose.chains import check_piece_size
from trellis.decompose.pieces import Pieces, drawn
from trellis.domains import generator, one_of
from trellis.structures.forest import Forest, checked_edges

__all__ = ["GraphPieces"]


@dataclass(frozen=True)
class GraphPieces:
    """Connected pieces of mean size ``piece_size`` of graphs with the given edges.

    Parameters
    ----------
    edges : int64 array (m, 2)
        Pairs of positions; each within one sample.
    piece_size : float or None
        Mean number of nodes n′; None: whole components.
    pieces : "tree" or "graph"
        Whether a piece keeps its part of a spanning tree, or all edges between its nodes.

    Examples
    --------
    A square, in pieces of two nodes on average:

    >>> import numpy as np
    >>> from trellis.decompose import GraphPieces
    >>> square = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])
    >>> pieces = GraphPieces(square, 2).draw(np.array([0, 4]), np.random.default_rng(0))
    >>> pieces.forest.tree.tolist(), sorted(pieces.forest.order.tolist())
    ([0, 3, 4], [0, 1, 2, 3])
    """

    edges: NDArray[np.int64]
    piece_size: float | None
    pieces: str = "tree"
    _around: list[NDArray[np.int64]] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.piece_size is not None:
            check_piece_size(self.piece_size)
        one_of("tree", "graph").check("pieces", self.pieces)
        edges = as_array(self.edges, np.int64, "edges", (None, 2), low=0)
        vars(self)["edges"] = held(edges, self.edges)

    def draw(self, offsets: NDArray[np.int64], rng: np.random.Generator) -> Pieces:
        """Draw spanning trees and cut them."""
        from trellis.kernels.graph_pieces import adjacency, spanning_pieces

        generator.check("rng", rng)
        offsets = as_offsets(offsets)
        edges = for_kernels(self.edges)
        if not (self._around and np.array_equal(offsets, self._around[0])):  # seldom another
            checked_edges(edges, offsets)
            with memory_for(int(offsets[-1]), "nodes"):
                self._around[:] = [offsets.copy(), *adjacency(int(offsets[-1]), edges)]
        size = math.inf if self.piece_size is None else float(self.piece_size)
        _, bounds, around = self._around
        with memory_for(int(offsets[-1]), "nodes"):
            order, parent, edge, down, tree, sample, piece = spanning_pieces(
                offsets, edges, bounds, around, size, int(rng.integers(1 << 62))
            )
        if self.pieces == "tree":
            forest = known(Forest, order=order, parent=parent, edge=edge, down=down, tree=tree)
            return drawn(tree, sample, nodes=order, forest=forest)
        first, second = piece[self.edges[:, 0]], piece[self.edges[:, 1]]
        inside = np.flatnonzero(first == second)
        kept = inside[np.argsort(first[inside], kind="stable")]
        return drawn(tree, sample, nodes=order, edges=self.edges[kept], kept=kept)
