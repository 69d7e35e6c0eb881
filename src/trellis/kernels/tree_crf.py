"""What CRF training does with a tree-shaped piece: its gradient, and the steps of its edges.

The loop over pieces is in :mod:`trellis.kernels.crf`, the lattice in
:mod:`trellis.kernels.tree_lattice`. The edges of a piece are those above its nodes; edge e has the
table ``types[e]`` of T (K, L, L) and, with ``rich``, scores of its own
(:mod:`trellis.kernels.tree_edges`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import fragment
from trellis.kernels.forest import Forest
from trellis.kernels.row_products import scale_row
from trellis.kernels.tree_edges import add_to_edge_rows, make_symmetric, score_edge
from trellis.kernels.tree_lattice import EXP, GRADIENT, RAW, TreeSpace, fill_table, tree_loss
from trellis.kernels.visits import LabelSets, Visits

__all__ = ["add_tree_edges", "apply_tree_steps", "exponentiate_tables", "tree_gradient"]

Array = np.ndarray[Any, Any]


@fragment
def tree_gradient(
    sets: LabelSets,
    visits: Visits,
    k: int,
    k0: int,
    forest: Forest,
    T: Array,
    rich: Any,
    symmetric: bool,
    scale: float,
    weight: float,
    step: float,
    space: TreeSpace,
    shared: Any,
    c: int,
) -> float:
    """Write the gradient of piece k, times ``step``, to its rows of a batch that begins with k0.

    Those of the tables are added, times ``weight``, to the sums of chunk c. Returns the loss.
    """
    work, edge = space.work, space.edge
    start = visits.starts[k]
    n = visits.ends[k] - start
    row = visits.first[k] - visits.first[k0]
    n_labels = T.shape[1]
    n_pairs = n_labels * n_labels
    for i in range(n):
        if forest.parent[start + i] < 0:
            continue
        e = forest.edge[start + i]
        if rich is None:
            space.slot[i] = forest.types[e]
        else:
            space.slot[i] = i
            score_edge(T, forest.types[e], rich, e, scale, symmetric, space.tables[RAW], i)
            fill_table(space, i, n_labels)
    loss = tree_loss(
        sets, visits, k, forest, rich, weight, n_labels, space, shared.outer, shared.pairs, c
    )
    width = work.shape[2]
    gradient = GRADIENT * work.shape[1] * width
    for i in range(n):
        scale_row(work, gradient + i * width, width, step, shared.gradient, (row + i) * width)
        if forest.parent[start + i] < 0:
            continue
        which = forest.types[forest.edge[start + i]]
        shared.touched[c, which] = 1
        if rich is not None:
            for q in range(n_pairs):
                shared.pairs[c, which, q // n_labels, q % n_labels] += weight * edge[i, q]
            if symmetric:
                make_symmetric(edge.reshape(len(edge), n_labels, n_labels), i)
            for q in range(n_pairs):
                shared.edge_gradient[row + i, q] = step * edge[i, q]
    return loss


@fragment
def add_tree_edges(
    visits: Visits,
    k: int,
    k0: int,
    forest: Forest,
    rich: Any,
    edge_gradient: Array,
    gamma: Array,
    thread: int,
    n_threads: int,
    R_into: Array,
) -> None:
    """Add the steps of the rich edges of piece k for the rows of this thread."""
    if rich is not None:
        start = visits.starts[k]
        for i in range(start, visits.ends[k]):
            if forest.parent[i] >= 0:
                row = visits.first[k] - visits.first[k0] + i - start
                add_to_edge_rows(
                    rich, forest.edge[i], edge_gradient, row, gamma, thread, n_threads, R_into
                )


@fragment
def apply_tree_steps(
    space: TreeSpace,
    rich: Any,
    symmetric: bool,
    shared: Any,
    t_scale: float,
    total: Array,
    T_into: Array,
) -> None:
    """Take what the chunks have collected off the tables; ``total`` (K, L, L) is scratch."""
    tables, outer, pairs = space.tables, shared.outer, shared.pairs
    n_labels = total.shape[1]
    for k in range(len(total)):
        changed = False
        for c in range(shared.losses.size):
            if not shared.touched[c, k]:
                continue
            changed = True
            shared.touched[c, k] = 0
            for i in range(n_labels):
                for j in range(n_labels):
                    total[k, i, j] += pairs[c, k, i, j]
                    if rich is None:
                        total[k, i, j] += tables[EXP, k, i, j] * outer[c, k, i, j]
                    outer[c, k, i, j] = 0
                    pairs[c, k, i, j] = 0
        if changed:
            shared.version[k] += 1
            if symmetric:
                make_symmetric(total, k)
        for i in range(n_labels):
            for j in range(n_labels):
                T_into[k, i, j] = t_scale * (T_into[k, i, j] - total[k, i, j])
                total[k, i, j] = 0


@fragment
def exponentiate_tables(
    T: Array, symmetric: bool, version: Array, seen: Array, space: TreeSpace
) -> None:
    """Refresh the tables that have another version than the one ``seen``.

    A table nobody has added to only shrinks a little: that can wait.
    """
    for k in range(len(T)):
        if seen[k] != version[k]:
            seen[k] = version[k]
            score_edge(T, k, None, 0, T.dtype.type(1), symmetric, space.tables[RAW], k)
            fill_table(space, k, T.shape[1])
