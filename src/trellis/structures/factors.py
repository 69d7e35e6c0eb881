r"""Factors of three and more nodes, by auxiliary nodes.

A factor adds a score to each combination of the labels of some nodes :math:`v_1 \dots v_k` of a
sample,

.. math:: s(y) + \sum_f F_f(y_{v_1}, \dots, y_{v_k}), \qquad -\infty \text{ forbids it.}

A factor of one node is added to its scores, one of two to the table of an edge. A larger one
becomes a node more: its labels are the combinations that are not forbidden, its node scores are
their scores, and a table of zeros and -inf joins it to each of the k nodes, whose label must be the
one that the combination has. What is left has nodes and edges alone, a labelling of the nodes as
they were goes with one of all at most, with the same score, and every inference on graphs applies:
best labellings, marginals, log Z and samples are those with factors.

The tables take :math:`L'^2` numbers, :math:`L'` being the largest number of combinations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trellis.arrays import Array, Float64s, Int32s, Int64s, as_array, as_list
from trellis.domains import instance, takes, whole
from trellis.errors import DataError
from trellis.structures.graph_potentials import GraphPotentials

__all__ = ["Factored", "with_factors"]


@dataclass(frozen=True, eq=False)
class Factored:
    """Graphs with auxiliary nodes, and how to get back to those without.

    Parameters
    ----------
    potentials : GraphPotentials
        The scores, with the auxiliary nodes of each sample after its own nodes.
    nodes : int64, shape (N,)
        Rows of the nodes as they were.
    n_labels : int
        Number of labels as it was; these keep their numbers.
    auxiliary : tuple of (int, int64 (k,), int64 (m, k))
        The row of each auxiliary node, those of the nodes of its factor, and the labels of these
        that its own m labels stand for.
    """

    potentials: GraphPotentials
    nodes: Int64s
    n_labels: int
    auxiliary: tuple[tuple[int, Int64s, Int64s], ...]

    def labels(self, y: Int32s) -> Int32s:
        """Labels of the nodes as they were.

        Parameters
        ----------
        y : array of int, shape (..., N')
            Labels of all nodes, as inference gives them.

        Returns
        -------
        array of int, shape (..., N)
        """
        y = np.asarray(y)
        if y.ndim == 0 or y.shape[-1] != len(self.potentials.node):
            raise DataError(
                f"labels have shape {y.shape}; expected {len(self.potentials.node)} in the last "
                "axis, those of auxiliary nodes among them"
            )
        return y[..., self.nodes]

    def chances(self, marginals: Float64s) -> Float64s:
        """Probabilities (N, L) of the labels as they were, of those (N', L') of all."""
        marginals = as_array(marginals, np.float64, "marginals", self.potentials.node.shape)
        return marginals[self.nodes, : self.n_labels]

    def completed(self, labels: Int32s) -> Int32s:
        """Labels of all nodes, those of auxiliary nodes by the labels of the others.

        Parameters
        ----------
        labels : array of int, shape (N,)
            Labels of the nodes as they were.

        Returns
        -------
        int32, shape (N',)
            Where a factor forbids the labels, the score is -inf.
        """
        shape = (len(self.nodes),)
        given = as_array(labels, np.int64, "labels", shape, low=0, high=self.n_labels)
        y = np.zeros(len(self.potentials.node), np.int32)
        y[self.nodes] = given
        for row, nodes, combinations in self.auxiliary:
            same = (combinations == y[nodes]).all(axis=1)
            y[row] = same.argmax() if same.any() else 0
        return y


@takes(p=instance(GraphPotentials), budget=whole(1))
def with_factors(
    p: GraphPotentials, factors: Sequence[tuple[Any, Any]], *, budget: int = 10_000_000
) -> Factored:
    """Add factors of any number of nodes to the scores of graphs.

    Parameters
    ----------
    p : GraphPotentials
        The scores.
    factors : list of pairs (nodes, table)
        k distinct rows of ``node``, of one sample, and a score for each combination of their
        labels, an array with k axes of L; ``-inf`` forbids it.
    budget : int
        Most entries of all tables of pairs, of 8 bytes each.

    Returns
    -------
    Factored
        The scores, and a way back to the nodes that ``p`` has.

    Raises
    ------
    DataError
        If a factor does not fit, or the tables are beyond the budget (the message says the size).

    Examples
    --------
    Three nodes, of which an even number must have label 1:

    >>> from trellis.structures import best, marginals
    >>> p = GraphPotentials(
    ...     [[0.0, 1.0], [0.0, 0.5], [0.0, 0.2]], np.zeros((2, 2)), np.zeros((0, 2), int), [0, 3])
    >>> even = np.where(np.indices((2, 2, 2)).sum(axis=0) % 2 == 0, 0.0, -np.inf)
    >>> q = with_factors(p, [([0, 1, 2], even)])
    >>> len(q.potentials.node), q.potentials.node.shape[1]
    (4, 4)
    >>> labels, scores = best(q.potentials)
    >>> q.labels(labels).tolist(), scores.tolist()
    ([1, 1, 0], [1.5])
    >>> q.chances(marginals(q.potentials).node).round(3).tolist()
    [[0.279, 0.721], [0.399, 0.601], [0.507, 0.493]]
    """
    checked = [_checked(p, f, nodes, table) for f, (nodes, table) in enumerate(_pairs(factors))]
    large = [(nodes, table) for nodes, table in checked if len(nodes) > 2]
    lists = [np.argwhere(np.isfinite(table)) for _, table in large]
    n_labels = p.node.shape[1]
    width = max([n_labels, *map(len, lists)])
    shapes = {(len(nodes), each.tobytes()): len(nodes) for (nodes, _), each in
              zip(large, lists, strict=True)}  # fmt: skip
    n_tables = len(p.pair) + sum(len(nodes) == 2 for nodes, _ in checked) + sum(shapes.values())
    if n_tables * width**2 > budget:
        raise DataError(
            f"factors of up to {width:,} combinations that are not forbidden need {n_tables:,} "
            f"tables of {width:,} x {width:,} numbers, and budget={budget}; forbid what cannot "
            "be, break large factors up, or raise the budget"
        )

    owner = p.owner
    extra = np.bincount([owner[nodes[0]] for nodes, _ in large], minlength=p.n_samples)
    extra = extra.astype(np.int64)
    offsets = p.offsets + np.append(0, np.cumsum(extra))
    rows = np.arange(len(p.node)) + (offsets - p.offsets)[owner]
    node = np.full((int(offsets[-1]), width), -np.inf)
    node[rows, :n_labels] = p.node
    tables = _Tables(p.pair, width)
    edges = _Edges(p)
    for nodes, table in checked:
        if len(nodes) == 1:
            node[rows[nodes[0]], :n_labels] += table
        elif len(nodes) == 2:
            a, b = (int(v) for v in nodes)
            e, turned = edges.between(a, b)
            old = tables.small(edges.types[e])
            edges.types[e] = tables.add(old + (table.T if turned else table))
    edges.ends = [(int(rows[a]), int(rows[b])) for a, b in edges.ends]
    free = (offsets[:-1] + np.diff(p.offsets)).tolist()  # the next auxiliary node of each sample
    auxiliary = []
    for (nodes, table), combinations in zip(large, lists, strict=True):
        s = owner[nodes[0]]
        row, free[s] = free[s], free[s] + 1
        node[row, : len(combinations)] = table[tuple(combinations.T)]
        auxiliary.append((row, rows[nodes], combinations))
        for j, v in enumerate(rows[nodes].tolist()):
            edges.ends.append((v, row))
            edges.types.append(tables.agreement(combinations[:, j]))
    pair, types = tables.used(edges.types)
    ends = np.array(edges.ends, np.int64).reshape(-1, 2)
    new = GraphPotentials(node, pair, ends, offsets, types)
    return Factored(new, rows, n_labels, tuple(auxiliary))


def _pairs(factors: Any) -> list[tuple[Any, Any]]:
    listed = as_list(factors, "factors")
    for f, factor in enumerate(listed):
        if not isinstance(factor, tuple | list) or len(factor) != 2:
            raise DataError(f"factor {f} is not a pair of nodes and a table")
    return [(nodes, table) for nodes, table in listed]


def _checked(p: GraphPotentials, f: int, nodes: Any, table: Any) -> tuple[Int64s, Float64s]:
    rows = as_array(nodes, np.int64, f"nodes of factor {f}", (None,), low=0, high=len(p.node))
    if not len(rows) or len(np.unique(rows)) < len(rows):
        raise DataError(f"factor {f} needs one or more nodes, each of them once")
    shape = (p.node.shape[1],) * len(rows)
    scores = as_array(table, np.float64, f"table of factor {f}", shape)
    if not (scores < np.inf).all():
        raise DataError(f"scores of factor {f} must be finite, or -inf to forbid")
    s = np.searchsorted(p.offsets, rows, side="right")
    if (s != s[0]).any():
        raise DataError(f"factor {f} has nodes of several samples")
    return rows, scores


class _Edges:
    """Edges that grow: their ends and tables."""

    def __init__(self, p: GraphPotentials) -> None:
        self.ends: list[tuple[int, int]] = [(int(a), int(b)) for a, b in p.edges]
        self.types: list[int] = p.types.tolist()
        self._known = {ends: e for e, ends in enumerate(self.ends)}

    def between(self, a: int, b: int) -> tuple[int, bool]:
        """Number of the edge between two nodes, made if there is none, and whether it is turned."""
        if (b, a) in self._known:
            return self._known[b, a], True
        if (a, b) not in self._known:
            self._known[a, b] = len(self.ends)
            self.ends.append((a, b))
            self.types.append(-1)
        return self._known[a, b], False


class _Tables:
    """Tables that grow, each of them once; -1 stands for one of zeros."""

    def __init__(self, pair: Array, width: int) -> None:
        self._small: list[Array] = list(pair)
        self._width, self._n_labels = width, pair.shape[1]
        self._agreements: dict[bytes, int] = {}
        self._columns: list[Int64s] = []

    def small(self, k: int) -> Array:
        """A table of the labels as they were."""
        return np.zeros((self._n_labels, self._n_labels)) if k < 0 else self._small[k]

    def add(self, table: Array) -> int:
        """Keep a table of the labels as they were; returns its number."""
        self._small.append(table)
        return len(self._small) - 1

    def agreement(self, column: Int64s) -> int:
        """Number, from -2 down, of the table by which a node has the label of a combination."""
        key = column.tobytes()
        if key not in self._agreements:
            self._agreements[key] = -2 - len(self._columns)
            self._columns.append(column)
        return self._agreements[key]

    def used(self, types: Sequence[int]) -> tuple[Array, Int64s]:
        """The tables that edges have, in full, and which is whose."""
        kept, which = np.unique(np.array(types, np.int64), return_inverse=True)
        pair = np.full((len(kept), self._width, self._width), -np.inf)
        for k, table in zip(kept.tolist(), pair, strict=True):
            if k >= -1:
                table[: self._n_labels, : self._n_labels] = self.small(k)
            else:
                column = self._columns[-2 - k]
                table[column, np.arange(len(column))] = 0.0
        return pair, which.astype(np.int64)
