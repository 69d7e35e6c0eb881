"""General graphs: the k best labellings, one after the other (Lawler 1972; Nilsson 1998).

The labellings other than the best are split by the first node at which they differ from it; the
best of each part is found under label sets, and the best of all parts is the next.
"""

from __future__ import annotations

import heapq

import numpy as np

from trellis.arrays import Bools, Float64s, Int32s
from trellis.structures.graph_checks import at_least, require_feasible
from trellis.structures.graph_labelling import Solver
from trellis.structures.graph_potentials import GraphPotentials

__all__ = ["graph_kbest"]


def graph_kbest(p: GraphPotentials, k: int, *, budget: int = 10_000_000) -> tuple[Int32s, Float64s]:
    """Find the k labellings of highest score of each sample, exactly.

    The labellings other than the best are split by the first node at which they differ from it, and
    the best of each part is found; the best of these comes next, and its part is split in turn
    (Lawler, 1972; Nilsson, 1998). Parts are solved as :func:`graph_best` does with ``exact=True``.

    Parameters
    ----------
    p : GraphPotentials
        The scores.
    k : int
        How many distinct labellings, at least 1.
    budget : int
        Most table entries that elimination may take for a sample, of 8 bytes each.

    Returns
    -------
    labels : int32, shape (k, N)
        In each row the labellings of one rank. Where a sample has fewer than k feasible
        labellings, -1.
    scores : float64, shape (S, k)
        Their scores, descending; ``-inf`` where there is no labelling.

    Raises
    ------
    InfeasibleError
        If a sample has no feasible labelling at all.

    Examples
    --------
    >>> p = GraphPotentials(
    ...     [[0.0, 0.1], [0.0, 0.0], [0.0, 0.5]], [[-1.0, 0.0], [0.0, -1.0]],
    ...     [[0, 1], [1, 2], [0, 2]], [0, 3])
    >>> labels, scores = graph_kbest(p, 3)
    >>> labels.tolist(), scores.round(6).tolist()
    ([[1, 0, 1], [0, 0, 1], [0, 1, 1]], [[-0.4, -0.5, -0.5]])
    """
    at_least(k, 1, "k")
    at_least(budget, 1, "budget")
    n_samples = len(p.offsets) - 1
    labels = np.full((k, len(p.node)), -1, np.int32)
    scores = np.full((n_samples, k), -np.inf)
    order, edge_offsets = p.by_sample()
    for s in range(n_samples):
        part = p.part(s, order[edge_offsets[s] : edge_offsets[s + 1]])
        rows = slice(p.offsets[s], p.offsets[s + 1])
        for rank, (score, y) in enumerate(_kbest_of_one(part, k, budget)):
            labels[rank, rows] = y
            scores[s, rank] = score
    require_feasible(p, scores[:, 0])
    return labels, scores


def _kbest_of_one(p: GraphPotentials, k: int, budget: int) -> list[tuple[float, Int32s]]:
    """Scores and labellings of one sample, best first."""
    n, n_labels = p.node.shape
    found: list[tuple[float, Int32s]] = []
    # A part: its best score and labelling, what it allows, and how many first nodes it has fixed.
    waiting: list[tuple[float, int, Int32s, Bools, int]] = []
    counter = 0

    def solve(parts: list[tuple[Bools, int]]) -> None:
        nonlocal counter
        step = max(1, 50_000 // max(1, n))
        for i in range(0, len(parts), step):
            some = parts[i : i + step]
            best = Solver(_copies(p, [a for a, _ in some]), budget, 200).solve("auto", exact=True)
            for (allowed, fixed), y, score in zip(
                some, best.labels.reshape(len(some), n), best.scores, strict=True
            ):
                if score > -np.inf:
                    heapq.heappush(waiting, (-float(score), counter, y, allowed, fixed))
                    counter += 1

    solve([(np.isfinite(p.node), 0)])
    while waiting and len(found) < k:
        cost, _, y, allowed, fixed = heapq.heappop(waiting)
        found.append((-cost, y))
        if len(found) == k:
            break
        parts = []
        for v in range(fixed, n):
            part = allowed.copy()
            part[:v] &= np.arange(n_labels) == y[:v, None]
            part[v, y[v]] = False
            if part[v].any():
                parts.append((part, v))
        solve(parts)
    return found


def _copies(p: GraphPotentials, allowed: list[Bools]) -> GraphPotentials:
    """Stack copies of one sample under different label sets."""
    n, n_copies = len(p.node), len(allowed)
    shift = n * np.arange(n_copies)
    return p.with_arrays(
        node=np.where(np.concatenate(allowed), np.tile(p.node, (n_copies, 1)), -np.inf),
        edges=(p.edges + shift[:, None, None]).reshape(-1, 2),
        offsets=n * np.arange(n_copies + 1),
        types=np.tile(p.types, n_copies),
    )
