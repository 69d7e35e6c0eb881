"""A graph laid out for passing messages, and labels that no labelling can have taken out.

Message ``2 e`` leads into the first end of edge e and ``2 e + 1`` into the second; the messages
into node v are ``into[start[v]:start[v + 1]]``. Nodes are ordered breadth-first, sample by sample.

A label of a node is *supported* if each neighbour has a label left with which it may go. Taking out
unsupported labels until none is left (arc consistency; Mackworth, 1977) changes no labelling of
finite score. Where a node loses all its labels there is none; on a forest, only there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trellis.arrays import Bools, Float64s, Int64s, for_kernels
from trellis.structures.graph_potentials import GraphPotentials

__all__ = ["MessageGraph", "both_ways", "labelling_scores", "subset", "supported"]


@dataclass(frozen=True, eq=False)
class MessageGraph:
    """Layout of the messages of stacked graphs; ``forest`` tells which samples have no cycle."""

    start: Int64s
    into: Int64s
    order: Int64s
    rank: Int64s
    forest: Bools

    def arguments(self, p: GraphPotentials) -> Any:
        """The layout as kernels take it (:class:`trellis.kernels.loopy.Layout`)."""
        from trellis.kernels.loopy import Layout

        edges, types, offsets = (for_kernels(a) for a in (p.edges, p.types, p.offsets))
        return Layout(edges, types, offsets, self.order, self.rank, self.start, self.into)

    @classmethod
    def of(cls, p: GraphPotentials) -> MessageGraph:
        """Lay out the edges of the potentials."""
        from trellis.kernels import loopy

        ends = p.edges.ravel()
        into = np.argsort(ends, kind="stable")
        start = np.append(0, np.cumsum(np.bincount(ends, minlength=len(p.node))))
        edges, offsets = for_kernels(p.edges), for_kernels(p.offsets)
        order, rank, components = loopy.breadth_first(edges, offsets, start, into)
        n_edges = np.diff(p.by_sample()[1])
        return cls(start, into, order, rank, n_edges == np.diff(p.offsets) - components)


def both_ways(tables: Float64s) -> Any:
    """Tables as kernels take them, both ways round (:class:`trellis.kernels.loopy.Tables`)."""
    from trellis.kernels.loopy import Tables

    return Tables(for_kernels(tables), np.ascontiguousarray(tables.transpose(0, 2, 1)))


def supported(p: GraphPotentials) -> GraphPotentials:
    """Forbid every label that no labelling of finite score can have at its node."""
    finite = np.isfinite(p.pair)
    if finite.all():
        return p
    allowed = np.isfinite(p.node)
    # An edge that forbids nothing supports every label while its other end has any left.
    edges = np.flatnonzero(~finite.all(axis=(1, 2))[p.types])
    a, b = p.edges[edges].T
    tables = finite[p.types[edges]]
    before = -1
    while before != (before := int(allowed.sum())):
        np.logical_and.at(allowed, a, (tables & allowed[b][:, None, :]).any(axis=2))
        np.logical_and.at(allowed, b, (tables & allowed[a][:, :, None]).any(axis=1))
    return p.constrained(allowed)


def subset(p: GraphPotentials, chosen: Bools) -> tuple[GraphPotentials, Int64s, Int64s]:
    """Keep some samples; returns also which nodes and which edges are left."""
    if chosen.all():
        return p, np.arange(len(p.node)), np.arange(len(p.edges))
    lengths = np.diff(p.offsets)
    rows = np.flatnonzero(np.repeat(chosen, lengths))
    number = np.zeros(len(p.node), np.int64)
    number[rows] = np.arange(len(rows))
    kept = np.zeros(len(p.node), np.bool_)
    kept[rows] = True
    edges = np.flatnonzero(kept[p.edges[:, 0]])
    part = p.with_arrays(
        node=p.node[rows],
        edges=number[p.edges[edges]],
        offsets=np.append(0, np.cumsum(lengths[chosen])),
        types=p.types[edges],
    )
    return part, rows, edges


def labelling_scores(p: GraphPotentials, labels: npt.NDArray[np.integer]) -> Float64s:
    """Score of a labelling of each sample."""
    n_samples, sample = p.n_samples, p.owner
    a, b = p.edges.T
    scores = np.zeros(n_samples)
    scores += np.bincount(sample, p.node[np.arange(len(labels)), labels], n_samples)
    scores += np.bincount(sample[a], p.pair[p.types, labels[a], labels[b]], n_samples)
    return scores
