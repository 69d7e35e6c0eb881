"""Graphs with cycles: the k best labellings, one after the other (Lawler 1972; Nilsson 1998).

The labellings other than the best are split by the first node at which they differ from it; the
best of each part is found under label sets, and the best of all parts is the next.
"""

from __future__ import annotations

import heapq

import numpy as np

from trellis.arrays import Bools, Float64s, Int32s
from trellis.structures.graph_labelling import Solver
from trellis.structures.graph_potentials import GraphPotentials
from trellis.structures.message_passes import MessagePasses

__all__ = ["kbest_by_parts"]


def kbest_by_parts(p: GraphPotentials, k: int, budget: int) -> tuple[Int32s, Float64s]:
    """Labels (K, N) and scores (S, K), K at most k; -1 and -inf where there are fewer labellings.

    Parts are solved as :func:`~trellis.structures.best` does with ``exact=True`` and the budget.
    """
    ranked: list[list[tuple[float, Int32s]]] = []
    order, edge_offsets = p.by_sample()
    for s in range(p.n_samples):
        part = p.part(s, order[edge_offsets[s] : edge_offsets[s + 1]])
        passes = MessagePasses.of(part)
        if passes is None:
            ranked.append(_kbest_of_one(part, k, budget))
        else:
            y, score = passes.kbest(k)
            ranked.append(list(zip(score[0].tolist(), y, strict=True)))
    most = max(map(len, ranked), default=0)
    labels = np.full((max(1, most), len(p.node)), -1, np.int32)
    scores = np.full((p.n_samples, max(1, most)), -np.inf)
    for s, ranks in enumerate(ranked):
        for rank, (score_of_one, y) in enumerate(ranks):
            labels[rank, p.rows(s)], scores[s, rank] = y, score_of_one
    return labels, scores


def _kbest_of_one(p: GraphPotentials, k: int, budget: int) -> list[tuple[float, Int32s]]:
    """Scores and labellings of one sample, best first."""
    n, n_labels = p.node.shape
    ranked: list[tuple[float, Int32s]] = []
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
    while waiting and len(ranked) < k:
        cost, _, y, allowed, fixed = heapq.heappop(waiting)
        ranked.append((-cost, y))
        if len(ranked) == k:
            break
        parts = []
        for v in range(fixed, n):
            part = allowed.copy()
            part[:v] &= np.arange(n_labels) == y[:v, None]
            part[v, y[v]] = False
            if part[v].any():
                parts.append((part, v))
        solve(parts)
    # The best of a part is known but for rounding: one of its parts may come out a little better.
    return sorted(ranked, key=lambda one: -one[0])


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
