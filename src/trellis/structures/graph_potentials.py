r"""Scores of stacked graphs (forests among them), checked.

A labelling :math:`y` of the nodes of a graph has the score

.. math::

    s(y) = \sum_v \mathrm{node}_{v, y_v}
         + \sum_{e = (a, b)} \mathrm{pair}_{\mathrm{types}_e, y_a, y_b}.

All samples are stacked: sample ``s`` is the rows ``offsets[s]:offsets[s + 1]`` of ``node`` (N, L).
``edges`` (E, 2) are pairs of rows of the same sample; the first end indexes the rows of the edge's
table, the second its columns. ``pair`` (K, L, L) holds the tables and ``types`` (E,) says which is
that of each edge. A score of ``-inf`` forbids a label or a pair of labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from trellis.arrays import Float64s, Int64s, as_array
from trellis.domains import flag
from trellis.errors import DataError
from trellis.structures.forest import checked_edges
from trellis.structures.potentials import Potentials, place

__all__ = ["GraphPotentials"]


@dataclass(frozen=True, eq=False)
class GraphPotentials(Potentials):
    """Scores of stacked graphs.

    Parameters
    ----------
    node : array of float, shape (N, L)
        Score of each label at each node of all samples; ``-inf`` forbids it. Held in float64.
    pair : array of float, shape (L, L), (K, L, L) or (E, L, L)
        Score of label i at the first end of an edge and label j at its second, in entry [i, j] of
        the edge's table; ``-inf`` forbids it. One table for all edges, one for each type, or one
        for each edge. Held in float64 as (K, L, L).
    edges : array of int, shape (E, 2)
        The ends of each edge, as rows of ``node``: of the same sample, distinct, and no two edges
        between the same nodes.
    offsets : array of int, shape (S + 1,)
        Sample s is the rows ``offsets[s]:offsets[s + 1]``.
    types : array of int, shape (E,), optional
        The table of each edge. Without it ``pair`` is one table, or one for each edge. Held as an
        array in either case.
    directed : bool
        Whether it matters which end of an edge is the first. If not, all tables must be symmetric.

    Raises
    ------
    DataError
        If shapes, edges, types or offsets do not fit each other, an edge is repeated, a score is
        NaN or +inf, or a table of an undirected graph is not symmetric.

    Examples
    --------
    Two samples: a triangle whose neighbours like to differ, and a node on its own.

    >>> p = GraphPotentials(
    ...     node=[[1.0, 0.0], [0.0, 0.5], [0.0, 0.0], [0.0, 2.0]], pair=[[-1.0, 0.0], [0.0, -1.0]],
    ...     edges=[[0, 1], [1, 2], [0, 2]], offsets=[0, 3, 4],
    ... )
    >>> p.pair.shape, p.types.tolist()
    ((1, 2, 2), [0, 0, 0])
    >>> p.alone(1).node.tolist(), len(p.alone(1).edges)
    ([[0.0, 2.0]], 0)
    >>> p.with_costs(np.ones((4, 2))).node[0].tolist()
    [2.0, 1.0]
    """

    unit: ClassVar[str] = "node"
    _score_names = ("node", "pair")

    node: npt.NDArray[Any]
    pair: npt.NDArray[Any]
    edges: npt.NDArray[Any]
    offsets: npt.NDArray[Any]
    types: npt.NDArray[Any] = None  # type: ignore[assignment]  # an array once constructed
    directed: bool = True

    def __post_init__(self) -> None:
        flag.check("directed", self.directed)
        self._hold_nodes()
        pair = as_array(self.pair, np.float64, "pair scores")
        edges = checked_edges(self.edges, self.offsets)
        _require_single(edges, self.offsets)

        n_labels = self.node.shape[1]
        shared = (n_labels, n_labels)
        if self.types is None:
            if pair.shape not in (shared, (len(edges), *shared)):
                raise DataError(
                    f"pair scores have shape {pair.shape}; expected {shared} or, one table for "
                    f"each edge, {(len(edges), *shared)}; for tables of types, give types"
                )
            n = len(edges)
            types = np.zeros(n, np.int64) if pair.ndim == 2 else np.arange(n, dtype=np.int64)
        else:
            if pair.shape != shared and (pair.ndim != 3 or pair.shape[1:] != shared):
                raise DataError(
                    f"pair scores have shape {pair.shape}; expected {('types', *shared)}, since "
                    f"the node scores have {n_labels} labels"
                )
            types = as_array(self.types, np.int64, "types")
        pair = pair.reshape(-1, *shared)
        _require_types(types, len(edges), len(pair))
        _require_tables(pair, self.directed)
        self._hold(pair=pair, edges=edges, types=types)

    def alone(self, sample: int) -> GraphPotentials:
        """Take out one sample.

        Parameters
        ----------
        sample : int
            Number of the sample.

        Returns
        -------
        GraphPotentials
            The scores of this sample, its edges in the order they have here.
        """
        rows = self.rows(sample)
        first = self.edges[:, 0]
        return self.part(sample, np.flatnonzero((first >= rows.start) & (first < rows.stop)))

    def part(self, sample: int, edges: Int64s) -> GraphPotentials:
        """Take out one sample whose edges are known.

        Parameters
        ----------
        sample : int
            Number of the sample.
        edges : array of int
            Which edges are its own, as :meth:`by_sample` tells; they are not checked.

        Returns
        -------
        GraphPotentials
            The scores of this sample, with these edges.
        """
        first, stop = self.offsets[sample], self.offsets[sample + 1]
        types = self.types[edges]
        few = len(self.pair) <= len(types)  # no more tables than edges: share them all
        return self.with_arrays(
            node=self.node[first:stop],
            pair=self.pair if few else self.pair[types],
            edges=self.edges[edges] - first,
            offsets=np.array([0, stop - first]),
            types=types if few else np.arange(len(types)),
        )

    def by_sample(self) -> tuple[Int64s, Int64s]:
        """Sort the edges by sample.

        Returns
        -------
        order : int64, shape (E,)
            The edges, those of one sample together and in the order they have here.
        edge_offsets : int64, shape (S + 1,)
            The edges of sample s are ``order[edge_offsets[s]:edge_offsets[s + 1]]``.
        """
        sample = np.searchsorted(self.offsets, self.edges[:, 0], side="right") - 1
        counts = np.bincount(sample, minlength=len(self.offsets) - 1)
        return np.argsort(sample, kind="stable"), np.append(0, np.cumsum(counts))


def _require_single(edges: Int64s, offsets: Int64s) -> None:
    """Raise if an edge leads to where it starts, or is repeated."""
    loops = np.flatnonzero(edges[:, 0] == edges[:, 1])
    if len(loops) > 0:
        e = loops[0]
        raise DataError(
            f"edge {e} joins {place(offsets, edges[e, 0], 'node')} to itself; an edge needs two "
            "nodes, and the score of one belongs in the node scores"
        )
    n = offsets[-1]
    low, high = edges.min(axis=1, initial=n), edges.max(axis=1, initial=0)
    _, first, which = np.unique(low * n + high, return_index=True, return_inverse=True)
    again = np.flatnonzero(first[which] != np.arange(len(edges)))
    if len(again) > 0:
        e = again[0]
        s = np.searchsorted(offsets, edges[e, 0], side="right") - 1
        a, b = edges[e] - offsets[s]
        raise DataError(
            f"edges {first[which[e]]} and {e} both join nodes {a} and {b} of sample {s}; "
            "add up their tables and give one edge"
        )


def _require_types(types: Int64s, n_edges: int, n_tables: int) -> None:
    if types.shape != (n_edges,):
        raise DataError(f"types have shape {types.shape}; expected {(n_edges,)}, one for each edge")
    bad = np.flatnonzero((types < 0) | (types >= n_tables))
    if len(bad) > 0:
        raise DataError(
            f"edge {bad[0]} is of type {types[bad[0]]}, but there are {n_tables} tables of pair "
            "scores; types are numbered from 0"
        )


def _require_tables(pair: Float64s, directed: bool) -> None:
    bad = np.argwhere(~(pair < np.inf))
    if len(bad) > 0:
        k, i, j = bad[0]
        raise DataError(
            f"pair score of labels {i} and {j} in table {k} is {pair[k, i, j]}; scores must be "
            "finite, or -inf to forbid"
        )
    if directed:
        return
    bad = np.argwhere(pair != pair.transpose(0, 2, 1))
    if len(bad) > 0:
        k, i, j = bad[0]
        raise DataError(
            f"the graph is undirected, but table {k} is not symmetric: labels ({i}, {j}) score "
            f"{pair[k, i, j]} and ({j}, {i}) score {pair[k, j, i]}; make them equal, or give "
            "directed=True"
        )
