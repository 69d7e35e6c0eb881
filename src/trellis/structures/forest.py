"""Forests: the nodes of stacked undirected trees in depth-first order, each after its parent.

Inference on a tree sends messages from the leaves to a root and back. ``Forest`` holds the order in
which to do so for all trees of all samples at once: backwards through ``order`` every node comes
after its children, forwards after its parent. Sample s has the places ``offsets[s]:offsets[s + 1]``
of the order, as it has those rows of the node scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trellis.arrays import Bools, Int64s, as_array, as_offsets, for_kernels, held, known, memory_for
from trellis.errors import DataError
from trellis.structures.potentials import place

__all__ = ["Forest", "checked_edges", "forest_or_none", "is_forest", "rooted"]


@dataclass(frozen=True, eq=False)
class Forest:
    """Stacked forests, rooted and ordered; made by :meth:`of`.

    Parameters
    ----------
    order : int64, shape (N,)
        All nodes: sample by sample, tree by tree, each tree in depth-first order from its root,
        which is its node of lowest number; the children of a node in the order of their edges.
    parent : int64, shape (N,)
        Place in ``order`` of the parent of the node at each place; -1 for a root.
    edge : int64, shape (N,)
        Number of the edge to the parent; -1 for a root.
    down : bool, shape (N,)
        Whether that edge is stored as (parent, child); False also for a root.
    tree : int64, shape (n_trees + 1,)
        Tree t has the places ``tree[t]:tree[t + 1]`` of ``order``.

    Examples
    --------
    Nodes 0, 1, 2 hang together, 3 is alone:

    >>> f = Forest.of([0, 4], [[2, 0], [2, 1]])
    >>> f.order.tolist(), f.parent.tolist(), f.edge.tolist(), f.tree.tolist()
    ([0, 2, 1, 3], [-1, 0, 1, -1], [-1, 0, 1, -1], [0, 3, 4])
    >>> f.down.tolist()
    [False, False, True, False]
    """

    order: Int64s
    parent: Int64s
    edge: Int64s
    down: Bools
    tree: Int64s

    def __post_init__(self) -> None:
        order = as_array(self.order, np.int64, "order", (None,))
        n = len(order)
        parent = as_array(self.parent, np.int64, "parent", (n,), low=-1)
        edge = as_array(self.edge, np.int64, "edge", (n,), low=-1)
        down = as_array(self.down, np.bool_, "down", (n,))
        tree = as_offsets(self.tree, "tree", end=n)
        if not np.array_equal(np.sort(order), np.arange(n)):
            raise DataError(f"order must hold each of the nodes 0 to {n - 1} once")
        first = np.repeat(tree[:-1], np.diff(tree))
        root = np.arange(n) == first
        inside = (parent >= first) & (parent < np.arange(n)) & (edge >= 0)
        wrong = np.flatnonzero(np.where(root, (parent != -1) | (edge != -1) | down, ~inside))
        if len(wrong):
            place = wrong[0]
            raise DataError(
                f"place {place} has parent {parent[place]}, edge {edge[place]} and down "
                f"{down[place]}; the first place of a tree has -1, -1 and False, each other one a "
                "parent before it and an edge"
            )
        for name, array in zip(
            ("order", "parent", "edge", "down", "tree"), (order, parent, edge, down, tree),
            strict=True,
        ):  # fmt: skip
            vars(self)[name] = held(array, vars(self)[name])

    def arguments(self, types: Int64s) -> Any:
        """The forest as kernels take it; ``types`` (E,) are the tables of the edges."""
        from trellis.kernels.forest import Forest as Arguments

        arrays = (self.order, self.parent, self.edge, self.down, types)
        return Arguments(*map(for_kernels, arrays))

    @classmethod
    def of(cls, offsets: npt.ArrayLike, edges: npt.ArrayLike) -> Forest:
        """Root and order the trees that the edges form.

        Parameters
        ----------
        offsets : array of int, shape (S + 1,)
            Sample s is the nodes ``offsets[s]:offsets[s + 1]``.
        edges : array of int, shape (E, 2)
            Pairs of nodes, in either direction, inside one sample each.

        Returns
        -------
        Forest
            The forest; nodes without edges are trees of their own.

        Raises
        ------
        DataError
            If the edges close a cycle (a repeated edge and one from a node to itself do), join
            nodes that do not exist or lie in different samples, or an array has a wrong shape.
        """
        return rooted(*_checked(offsets, edges))


def is_forest(offsets: npt.ArrayLike, edges: npt.ArrayLike) -> bool:
    """Tell whether the edges close no cycle.

    Parameters
    ----------
    offsets, edges
        As for :meth:`Forest.of`.

    Returns
    -------
    bool
        Whether every sample is a forest.

    Raises
    ------
    DataError
        If the edges join nodes that do not exist or lie in different samples, or an array has a
        wrong shape.

    Examples
    --------
    >>> is_forest([0, 3], [[0, 1], [1, 2]]), is_forest([0, 3], [[0, 1], [1, 2], [2, 0]])
    (True, False)
    """
    return forest_or_none(*_checked(offsets, edges)) is not None


def forest_or_none(offsets: Int64s, edges: Int64s) -> Forest | None:
    """The forest that the edges form, which need no other check; None if they close a cycle."""
    bad, forest = _depth_first(offsets, edges)
    return forest if bad < 0 else None


def rooted(offsets: Int64s, edges: Int64s) -> Forest:
    """Do what :meth:`Forest.of` does with arrays that need no check but for cycles."""
    bad, forest = _depth_first(offsets, edges)
    if bad >= 0:
        s = np.searchsorted(offsets, edges[bad, 0], side="right") - 1
        a, b = edges[bad] - offsets[s]
        raise DataError(
            f"sample {s}: the edges close a cycle at node {b} (edge {a}-{b}); a tree has none"
        )
    return forest


def checked_edges(edges: npt.ArrayLike, offsets: Int64s) -> Int64s:
    """Read edges (E, 2), each of which must join two nodes of one sample."""
    pairs = as_array(edges, np.int64, "edges", (None, 2))
    n = offsets[-1]
    outside = np.flatnonzero(((pairs < 0) | (pairs >= n)).any(axis=1))
    if len(outside) > 0:
        a, b = pairs[outside[0]]
        raise DataError(
            f"edge {outside[0]} joins nodes {a} and {b}, but the nodes are numbered 0 to {n - 1}"
        )
    sample = np.searchsorted(offsets, pairs, side="right") - 1
    across = np.flatnonzero(sample[:, 0] != sample[:, 1])
    if len(across) > 0:
        e = across[0]
        a, b = (place(offsets, v, "node") for v in pairs[e])
        raise DataError(f"edge {e} joins {a} and {b}; an edge must stay inside its sample")
    return pairs


def _checked(offsets: npt.ArrayLike, edges: npt.ArrayLike) -> tuple[Int64s, Int64s]:
    ends = as_offsets(offsets)
    return ends, checked_edges(edges, ends)


def _depth_first(offsets: Int64s, edges: Int64s) -> tuple[int, Forest]:
    """Return the first edge that closes a cycle, or -1, and the forest if there is none."""
    from trellis.kernels.forest import depth_first

    n = int(offsets[-1])
    with memory_for(n, "nodes"):
        bad, order, parent, edge, down, tree, n_trees = depth_first(n, for_kernels(edges))
    return bad, known(
        Forest, order=order, parent=parent, edge=edge, down=down, tree=tree[: n_trees + 1].copy()
    )
