"""Small max-margin problems, their labellings enumerated."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from trellis.problems.losses import Costs

from trellis.features import Encoded
from trellis.problems.hinge import HingeData, NodeOrder


@dataclass
class MarginProblem:
    """Samples with features (dense too), edges and costs."""

    data: HingeData
    dense: np.ndarray  # (N, F)
    edges: np.ndarray  # (E, 2), the first end indexes rows
    types: np.ndarray
    n_tables: int
    directed: bool

    @property
    def offsets(self) -> np.ndarray:
        return self.data.encoded.offsets

    def score(self, w: np.ndarray, s: int, y: tuple[int, ...]) -> float:
        """Score of a labelling of sample s."""
        a, L = self.offsets[s], self.data.n_labels
        n = self.dense.shape[1] * L
        W, T = w[:n].reshape(-1, L), w[n:].reshape(self.n_tables, L, L)
        total = sum(float(self.dense[a + t] @ W[:, label]) for t, label in enumerate(y))
        for (u, v), k in zip(self.edges, self.types, strict=True):
            if a <= u < self.offsets[s + 1]:
                i, j = y[u - a], y[v - a]
                total += T[k, i, j] + (0 if self.directed else T[k, j, i])
        return total

    def hinges(self, w: np.ndarray) -> np.ndarray:
        """Hinge loss of each sample, by enumeration."""
        found = []
        costs = self.data.costs.dense()
        for s in range(len(self.offsets) - 1):
            a, b = self.offsets[s], self.offsets[s + 1]
            gold = tuple(self.data.gold[a:b])
            best = max(
                self.score(w, s, y) + sum(costs[a + t, label] for t, label in enumerate(y))
                for y in itertools.product(range(self.data.n_labels), repeat=int(b - a))
            )
            found.append(best - self.score(w, s, gold))
        return np.array(found)

    def risk(self, w: np.ndarray) -> float:
        """Weighted sum of the hinge losses."""
        return float(self.data.sample_weight @ self.hinges(w))


def make_problem(
    seed: int, structure: str = "chain", n_samples: int = 3, *, directed: bool = True,
    n_tables: int = 1, indicators: bool = False, longest: int = 4,
) -> MarginProblem:  # fmt: skip
    """Draw a problem; edges of trees are in random directions."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, n_samples)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    N, F, L = int(offsets[-1]), 4, 3
    mask = rng.random((N, F)) < 0.6
    dense = (mask if indicators else mask * rng.normal(size=(N, F))).astype(np.float32)
    position, feature = np.nonzero(mask)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(position, minlength=N))]).astype(np.int64)
    values = np.zeros(0, np.float32) if indicators else dense[position, feature]
    encoded = Encoded(offsets, indptr, feature.astype(np.int32), values)
    gold = rng.integers(0, L, N)
    table = rng.random((N, L)) + 0.2
    table[np.arange(N), gold] = 0.0
    weight = rng.integers(0, 3, n_samples) + rng.random(n_samples).round()
    data = HingeData(encoded, gold, Costs(table, np.arange(N)), weight.astype(float), F)
    edges = []
    for a, n in zip(offsets, lengths, strict=False):
        for v in range(1, n):
            if structure == "chain":
                edges.append((a + v - 1, a + v))
                continue
            u = int(rng.integers(0, v))
            edges.append((a + u, a + v) if rng.random() < 0.5 else (a + v, a + u))
            if structure == "tree" and rng.random() < 0.2:
                edges.pop()
        if structure == "graph" and n > 2:  # close a loop
            joined = {frozenset(edge) for edge in edges}
            both = itertools.combinations(range(a, a + n), 2)
            edges.append(next(pair for pair in both if frozenset(pair) not in joined))
    pairs = np.array(edges, np.int64).reshape(-1, 2)
    types = rng.integers(0, n_tables, len(pairs))
    return MarginProblem(data, dense.astype(float), pairs, types, n_tables, directed)


def nodes_of(p: MarginProblem) -> NodeOrder:
    """The nodes of a forest, each after its parent, by plain search."""
    n = int(p.offsets[-1])
    order, parent, table, down = [], [], [], []
    seen: set[int] = set()
    for s in range(len(p.offsets) - 1):
        for root in range(p.offsets[s], p.offsets[s + 1]):
            waiting = [] if root in seen else [(root, -1, -1, False)]
            while waiting:
                v, above, k, below = waiting.pop()
                seen.add(v)
                place = len(order)
                order.append(v)
                parent.append(above)
                table.append(k)
                down.append(below)
                for (a, b), t in zip(p.edges, p.types, strict=True):
                    if a == v and b not in seen:
                        waiting.append((b, place, t, True))
                    if b == v and a not in seen:
                        waiting.append((a, place, t, False))
    assert len(order) == n
    return NodeOrder(
        np.array(order, np.int64), np.array(parent, np.int64), np.array(table, np.int64),
        np.array(down, bool),
    )  # fmt: skip
