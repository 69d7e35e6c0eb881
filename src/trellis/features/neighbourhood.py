"""The edges of samples as their nodes see them: who is the parent, who are the children.

An edge (a, b) leads from a node a to its parent b, as CoNLL-U's edges lead from a word to its head.
With the edges into b its children, and with those of either direction its neighbours.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import for_kernels

__all__ = ["Bags", "Neighbourhood"]

Int64s = NDArray[np.int64]


class Bags(NamedTuple):
    """Nodes around each node: those around t are ``nodes[ptr[t]:ptr[t + 1]]``."""

    ptr: Int64s
    owner: Int64s
    """The node that each is around."""
    nodes: Int64s
    edges: Int64s
    """The edge that each is reached by."""


class Neighbourhood:
    """Edges (m, 2) between n nodes, seen from the nodes; what is asked for is made once.

    Examples
    --------
    >>> around = Neighbourhood(4, np.array([[0, 1], [2, 1], [1, 3]]))
    >>> around.up(1).tolist(), around.up(2).tolist()
    ([1, 3, 1, -1], [3, -1, 3, -2])
    >>> around.bags("children").nodes.tolist(), around.bags("neighbours").ptr.tolist()
    ([0, 2, 1], [0, 1, 4, 5, 6])
    """

    def __init__(self, n: int, edges: Int64s) -> None:
        self.n = n
        self.edges = edges
        self._bags: dict[str, Bags] = {}
        self._up = {0: np.arange(n)}

    @cached_property
    def _parents(self) -> tuple[Int64s, Int64s]:
        """The parent of each node and the edge to it (n,), −1 without; of several the last."""
        parent, edge = np.full((2, self.n), -1, np.int64)
        parent[self.edges[:, 0]] = self.edges[:, 1]
        edge[self.edges[:, 0]] = np.arange(len(self.edges))
        return parent, edge

    def up(self, steps: int) -> Int64s:
        """The node so many parents up (n,); −d where the path ends d steps before."""
        if steps not in self._up:
            at = self.up(steps - 1)
            self._up[steps] = np.where(at < 0, at - 1, self._parents[0][np.maximum(at, 0)])
        return self._up[steps]

    def edge_up(self, steps: int) -> Int64s:
        """The last edge of that path (n,), or as above."""
        at = self.up(steps - 1)
        return np.where(at < 0, at - 1, self._parents[1][np.maximum(at, 0)])

    def bags(self, along: str) -> Bags:
        """The parents, children or neighbours of each node."""
        if along not in self._bags:
            self._bags[along] = self._made(along)
        return self._bags[along]

    def means(self, along: str, values: NDArray[np.floating]) -> NDArray[np.float64]:
        """Mean of the values (n,) of the nodes around each; 0 where there is none."""
        bags = self.bags(along)
        total = np.bincount(bags.owner, values[bags.nodes], self.n)
        return total / np.maximum(np.diff(bags.ptr), 1)

    def _made(self, along: str) -> Bags:
        from trellis.kernels.bags import by_node

        below, above = self.edges.T
        number = np.arange(len(self.edges))
        if along == "parents":
            owner, nodes = below, above
        elif along == "children":
            owner, nodes = above, below
        else:
            owner, nodes = np.concatenate([below, above]), np.concatenate([above, below])
            number = np.concatenate([number, number])
        ptr, order = by_node(for_kernels(np.ascontiguousarray(owner)), self.n)
        return Bags(ptr, owner[order], nodes[order], number[order])
