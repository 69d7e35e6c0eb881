"""Small max-margin problems, their labellings enumerated."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np

from trellis.corpus import Labels
from trellis.features import Encoded
from trellis.problems import EdgeWeights, LabelProblem
from trellis.problems.costs import Costs

CLASSES = ("a", "b", "c")


@dataclass
class MarginProblem:
    """A problem, its features as a dense matrix (N, F), and those of its edges (E, G)."""

    problem: LabelProblem
    dense: np.ndarray
    own: np.ndarray | None = None
    _features: dict = field(default_factory=dict)

    @property
    def offsets(self) -> np.ndarray:
        return self.problem.offsets

    @property
    def gold(self) -> np.ndarray:
        return self.problem.gold()

    def features(self, s: int, y: tuple[int, ...]) -> np.ndarray:
        """Joint features of a labelling of sample s, feature by feature and edge by edge."""
        key = s, tuple(y)
        if key not in self._features:
            self._features[key] = self._count(s, y)
        return self._features[key]

    def _count(self, s: int, y: tuple[int, ...]) -> np.ndarray:
        p, a, L = self.problem, self.offsets[s], len(CLASSES)
        n, m = self.dense.shape[1] * L, (self.dense.shape[1] + p.n_types * L) * L
        found = np.zeros(p.n_weights)
        for t, label in enumerate(y):
            found[label:n:L] += self.dense[a + t]
        for e, ((u, v), k) in enumerate(zip(p.edges, p.types, strict=True)):
            if a <= u < self.offsets[s + 1]:
                i, j = y[u - a], y[v - a]
                for b, c in ((i, j),) if p.directed else ((i, j), (j, i)):
                    found[n + (k * L + b) * L + c] += 1
                    self._count_rich(found[m:], u, v, b * L + c)
                    for g, value in enumerate(() if self.own is None else self.own[e]):
                        self._add_to_row(found[m:], p.rich.n_joined + g, b * L + c, value)
        return found

    def _count_rich(self, values: np.ndarray, u: int, v: int, pair: int) -> None:
        """Add the features of the ends of edge (u, v), crossed with a pair of labels."""
        rich = self.problem.rich
        if rich is None:
            return
        second = rich.both or not self.problem.directed
        for node, shift in ((v, 0), (u, rich.n_crossed if rich.both else 0))[: 1 + second]:
            for f in np.flatnonzero(rich.row >= 0):
                self._add_to_row(values, rich.row[f] + shift, pair, self.dense[node, f])

    def _add_to_row(self, values: np.ndarray, r: int, pair: int, value: float) -> None:
        """Add a value to the weight of a pair in row r, if it has one."""
        rich = self.problem.rich
        if not rich.ptr.size:
            values[r * len(CLASSES) ** 2 + pair] += value
            return
        for q in range(rich.ptr[r], rich.ptr[r + 1]):
            if rich.pair[q] == pair:
                values[q] += value

    def score(self, w: np.ndarray, s: int, y: tuple[int, ...]) -> float:
        """Score of a labelling of sample s."""
        return float(w @ self.features(s, y))

    def hinges(self, w: np.ndarray, rewarded: np.ndarray | None = None) -> np.ndarray:
        """Hinge loss of each sample, by enumeration; the gold labels are rewarded, or others."""
        found = []
        costs = self.problem.costs.dense()
        right = self.gold if rewarded is None else rewarded
        for a, b in itertools.pairwise(self.offsets):
            s = len(found)
            best = max(
                self.score(w, s, y) + sum(costs[a + t, label] for t, label in enumerate(y))
                for y in itertools.product(range(len(CLASSES)), repeat=int(b - a))
            )
            found.append(best - self.score(w, s, tuple(right[a:b])))
        return np.array(found)

    def risk(self, w: np.ndarray, rewarded: np.ndarray | None = None) -> float:
        """Weighted sum of the hinge losses."""
        return float(self.problem.sample_weight @ self.hinges(w, rewarded))


def make_problem(
    seed: int, structure: str = "chain", n_samples: int = 3, *, directed: bool = True,
    n_types: int = 1, indicators: bool = False, longest: int = 4, rich: str | None = None,
    both: bool = False, inference: str = "auto", own: int = 0,
) -> MarginProblem:  # fmt: skip
    """Draw a problem; edges of trees are in random directions.

    What is asked of a chain that chains do not have, types of edges or edges without direction, it
    has as a tree. ``rich`` edges are "dense" or "sparse"; the last feature is not crossed, or none
    if it ends with "alone". Edges have ``own`` features, the last of them indicators.
    """
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, n_samples)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    N, F, L = int(offsets[-1]), 4, len(CLASSES)
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
            both_ends = itertools.combinations(range(a, a + n), 2)
            edges.append(next(pair for pair in both_ends if frozenset(pair) not in joined))
    pairs = np.array(edges, np.int64).reshape(-1, 2)
    types = rng.integers(0, n_types, len(pairs))
    plain = structure == "chain" and directed and n_types == 1
    more = {} if plain else {"edges": pairs, "types": types}
    of_edges = np.zeros((len(pairs), own), np.float32)
    crossed = None if rich is None else _crossed(rng, F, L, rich, both, own)
    if own:
        met = rng.random(of_edges.shape) < 0.7
        of_edges[met] = rng.normal(size=met.sum())
        of_edges[:, -1] = met[:, -1]
        more["edge_features"] = Encoded(
            [0, len(pairs)],
            np.append(0, np.cumsum(met.sum(axis=1))),
            np.nonzero(met)[1],
            of_edges[met],
        )
    problem = LabelProblem(
        encoded, Labels(gold.astype(np.int32), (), CLASSES), F,
        sample_weight=weight.astype(float), n_types=n_types, directed=directed,
        structure="tree" if structure == "chain" and not plain else structure,
        rich=crossed, inference=inference, **more,
    )  # fmt: skip
    problem.costs = Costs(table, np.arange(N))
    return MarginProblem(problem, dense.astype(float), of_edges.astype(float))


def _crossed(rng, n_features: int, n_labels: int, kind: str, both: bool, own: int) -> EdgeWeights:
    """All features but the last crossed with all pairs, or with some; rows of edges' own."""
    row = np.append(np.arange(n_features - 1), -1).astype(np.int32)
    if kind.endswith("alone"):
        row[:] = -1
    n_rows, n_pairs = (row >= 0).sum() * (1 + both) + own, n_labels**2
    if kind.startswith("dense"):
        none = np.zeros(0, np.int64), np.zeros(0, np.int32)
        return EdgeWeights(row, *none, np.zeros(n_rows * n_pairs), both, own)
    # Some rows have no pair, and pairs come in no order.
    rows = [rng.permutation(n_pairs)[: rng.integers(0, 7)] for _ in range(n_rows)]
    ptr = np.concatenate([[0], np.cumsum([len(r) for r in rows])]).astype(np.int64)
    pair = np.concatenate(rows).astype(np.int32)
    return EdgeWeights(row, ptr, pair, np.zeros(len(pair)), both, own)


def nodes_of(p: MarginProblem) -> SimpleNamespace:
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
                for (a, b), t in zip(p.problem.edges, p.problem.types, strict=True):
                    if a == v and b not in seen:
                        waiting.append((b, place, t, True))
                    if b == v and a not in seen:
                        waiting.append((a, place, t, False))
    assert len(order) == n
    return SimpleNamespace(
        order=np.array(order), parent=np.array(parent), table=np.array(table), down=np.array(down)
    )
