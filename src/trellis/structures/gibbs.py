r"""Approximate draws from graphs with cycles: Gibbs sampling by blocks that are forests.

A set of nodes B whose edges among each other close no cycle is a forest once the labels of the
others are held fixed:

.. math:: p(y_B \mid y_{\bar B}) \propto \exp\Big(\sum_{v \in B} \Big(n_v(y_v)
    + \sum_{w \notin B} T_{vw}(y_v, y_w)\Big) + \sum_{vw \subset B} T_{vw}(y_v, y_w)\Big),

from which two passes of messages draw exactly (Hamze & de Freitas, *From fields to trees*, 2004). A
sweep draws blocks one after the other until every node was drawn at least once; on a grid a block
has about two thirds of the nodes, so that a sweep moves far more than one node at a time would.
Each draw has a chain of its own, which starts from a draw of a random spanning forest, or from the
best labelling where pairs are forbidden, and ends after so many sweeps: draws are independent of
each other, and the closer to p(y) the more sweeps there are. Where p(y) has several modes with next
to nothing between them, a chain may stay at one.
"""

from __future__ import annotations

import numpy as np

from trellis.arrays import Bools, Float64s, Int32s, Int64s
from trellis.structures.graph_potentials import GraphPotentials
from trellis.structures.labelling import best
from trellis.structures.message_passes import MessagePasses

__all__ = ["gibbs_draws"]

_COVERS = 4  # lists of blocks that sweeps take in turn
_AT_ONCE = 1 << 22  # scores of the nodes of chains that are drawn together


def gibbs_draws(p: GraphPotentials, n_draws: int, rng: np.random.Generator, sweeps: int) -> Int32s:
    """Draw labels (n_draws, N) of stacked graphs that have a feasible labelling.

    Labels that are not supported must be forbidden.
    """
    labels = np.zeros((n_draws, len(p.node)), np.int32)
    near = _neighbours(p)
    covers = [[_Block(p, chosen) for chosen in _cover(near, rng)] for _ in range(_COVERS)]
    trees = np.flatnonzero(_spanning(p, rng)) if np.isfinite(p.pair).all() else None
    size = max(1, _AT_ONCE // max(1, p.node.size))
    for first in range(0, n_draws, size):
        y = labels[first : first + size]
        if trees is None:
            start = best(p)
            if not np.isfinite(start.scores).all():
                start = best(p, exact=True)  # raises if there is no labelling at all
            y[:] = start.labels
        else:
            forest = p.with_arrays(edges=p.edges[trees], types=p.types[trees])
            passes = MessagePasses.of(forest, "tree")
            assert passes is not None  # or it would have raised
            passes.posterior(uniforms=rng.random(y.shape), labels=y)
        for sweep in range(sweeps):
            for block in covers[sweep % _COVERS]:
                block.draw(y, rng)
    return labels


class _Block:
    """A forest among the nodes, and the edges that lead out of it."""

    def __init__(self, p: GraphPotentials, chosen: Bools) -> None:
        self._p = p
        self.nodes = np.flatnonzero(chosen)
        number = np.cumsum(chosen) - 1
        inside = chosen[p.edges]
        within = inside.all(axis=1)
        self._edges, self._types = number[p.edges[within]], p.types[within]
        self._offsets = np.append(0, np.cumsum(chosen))[p.offsets]
        # Edges with one end in the block: tables whose rows are its labels, and the other end.
        leads = inside[:, 0] != inside[:, 1]
        first = inside[leads, 0]
        ends, types = p.edges[leads], p.types[leads]
        self._own = number[np.where(first, ends[:, 0], ends[:, 1])]
        self._other = np.where(first, ends[:, 1], ends[:, 0])
        self._lead_types, self._turned = types, ~first

    def draw(self, y: Int32s, rng: np.random.Generator) -> None:
        """Draw the labels (K, N) of the block anew, in K chains."""
        p, n, n_chains = self._p, len(self.nodes), len(y)
        node = np.tile(p.node[self.nodes], (n_chains, 1))
        outer, shift = y[:, self._other], (n * np.arange(n_chains))[:, None]
        for turned in (False, True):
            those = np.flatnonzero(self._turned == turned)
            tables = p.pair.transpose(0, 2, 1) if not turned else p.pair  # rows: the other's label
            rows = tables[self._lead_types[those], outer[:, those]]
            np.add.at(node, self._own[those] + shift, rows)
        edges = (self._edges + shift[:, :, None]).reshape(-1, 2)
        offsets = np.append((self._offsets[:-1] + shift).ravel(), n * n_chains)
        copies = p.with_arrays(
            node=node, edges=edges, offsets=offsets,
            types=np.tile(self._types, n_chains),
        )  # fmt: skip
        passes = MessagePasses.of(copies, "tree")
        assert passes is not None  # or it would have raised
        drawn = np.zeros((1, n * n_chains), np.int32)
        passes.posterior(uniforms=rng.random(drawn.shape), labels=drawn)
        y[:, self.nodes] = drawn.reshape(n_chains, n)


def _neighbours(p: GraphPotentials) -> list[list[int]]:
    near: list[list[int]] = [[] for _ in range(len(p.node))]
    for a, b in p.edges.tolist():
        near[a].append(b)
        near[b].append(a)
    return near


def _cover(near: list[list[int]], rng: np.random.Generator) -> list[Bools]:
    """Forests that no node can be added to, until each node is in one."""
    left, blocks = np.ones(len(near), np.bool_), []
    while left.any():
        order = rng.permutation(len(near))
        order = np.concatenate([order[left[order]], order[~left[order]]])
        chosen = _induced_forest(near, order)
        left &= ~chosen
        blocks.append(chosen)
    return blocks


def _induced_forest(near: list[list[int]], order: Int64s) -> Bools:
    """Take nodes in an order, each unless it closes a cycle with those taken."""
    group = list(range(len(near)))
    chosen = np.zeros(len(near), np.bool_)
    taken = [False] * len(near)

    def root(v: int) -> int:
        while group[v] != v:
            group[v] = group[group[v]]
            v = group[v]
        return v

    for v in order.tolist():
        roots = [root(w) for w in near[v] if taken[w]]
        if len(set(roots)) == len(roots):
            taken[v] = chosen[v] = True
            for r in roots:
                group[r] = v
    return chosen


def _spanning(p: GraphPotentials, rng: np.random.Generator) -> Bools:
    """A random forest that spans the graphs: which edges are in it."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import minimum_spanning_tree

    n, (a, b) = len(p.node), p.edges.T
    weights: Float64s = 1.0 + rng.random(len(p.edges))
    tree = minimum_spanning_tree(csr_array((weights, (a, b)), shape=(n, n)))
    kept = tree.tocoo()
    return np.isin(a * n + b, kept.row.astype(np.int64) * n + kept.col)
