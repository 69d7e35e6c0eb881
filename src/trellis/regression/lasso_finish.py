r"""Finish of the non-convex network lasso: nodes that are equal exactly, and their parameters.

    F(x) = Σ_i (a_iᵀx_i − y_i)² + x_iᵀ diag(r) x_i + Σ_jk c_jk log(1 + ‖x_j − x_k‖/ε)

has a cusp of slope c/ε where neighbours are equal, and at a good minimum most of them are. Where an
iterate of ADMM has them ε apart they cost c log 2 an edge and not 0. So the search here is over
partitions of the nodes into *clusters* k with one θ_k each, for which

    F(θ) = Σ_k θ_kᵀG_kθ_k − 2 b_kᵀθ_k + Σ_kl C_kl log(1 + ‖θ_k − θ_l‖/ε) + Σ_i y_i²,

G_k = Σ_{i∈k} a_i a_iᵀ + diag(r), b_k = Σ_{i∈k} y_i a_i, C_kl the sum of c between the two. Steps:

    coarsen   clusters are what edges shorter than τ connect
    absorb    a cluster becomes part of one that it is linked to and takes its parameters
    merge     two clusters of which each is the other's best become one, at θ_k, at θ_l or at the
              joint fit (G_k + G_l)⁻¹(b_k + b_l)
    refine    log(1 + d/ε) is concave in d² and lies below its tangent, so that F falls if
              Σ_k θ_kᵀG_kθ_k − 2 b_kᵀθ_k + ½ Σ_kl C_kl ‖θ_k − θ_l‖² / (d_kl (ε + d_kl)) does, d_kl
              being the distance before; a few conjugate gradients lower it
    move      a node leaves for the cluster of a neighbour, or for a place of its own

What is absorbed or moves at the same time has no edge between, so that gains add up. A step is
taken only if F falls. One costs O(nodes + edges) and p³ for a cluster, and their number is limited.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s

__all__ = [
    "Clusters",
    "LogLasso",
    "coarsened",
    "descended",
    "finished",
    "merged",
    "moved",
    "refined",
]

Integers = NDArray[np.int64]

THRESHOLDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""τ of the coarsening, in units of the parameters' spread."""
ROUNDS = 10
"""Rounds of merging, refining and moving, at most."""
ABSORBINGS = 30
"""Steps of absorbing in a round."""
MERGES = 5
"""Steps of merging after them."""
MOVES = 5
"""Steps of moving in a round."""
TANGENTS = 10
"""Tangents of a refinement."""
GRADIENTS = 30
"""Conjugate gradients for a tangent."""
CANDIDATES = 4
"""Clusters that a node or a cluster is tried with: those to which it is linked most."""
LEAST = 1e-4
"""A round or a tangent that lowers the objective relatively by less is the last."""
ROUNDING = 1e-9
"""What a step has to lower the objective by, relatively."""


class Clusters(NamedTuple):
    """A partition of the nodes, and the parameters that the nodes of each cluster have."""

    labels: Integers
    theta: Float64s

    @property
    def x(self) -> Float64s:
        """The parameters of the nodes."""
        return np.asarray(self.theta[self.labels])


@dataclass(frozen=True)
class Linked(ABC):
    """Nodes or clusters, and what links them.

    Attributes
    ----------
    tails, heads : arrays of shape (m,)
        The edges, each once.
    strength : array of shape (m,)
        c, λ times the weights of edges.
    epsilon : float
    """

    tails: Integers
    heads: Integers
    strength: Float64s
    epsilon: float

    @property
    @abstractmethod
    def count(self) -> int:
        """How many they are."""

    @abstractmethod
    def fit(self, theta: Float64s, which: Integers) -> Float64s:
        """What parameters cost some of them, links and constants aside."""

    def apart(self, a: Float64s, b: Float64s) -> Float64s:
        """log(1 + ‖a − b‖/ε), row by row."""
        return np.asarray(np.log1p(_length(a - b) / self.epsilon))

    def table(self, labels: Integers, n_labels: int) -> Any:
        """How strongly each is linked to each cluster, sparse."""
        from scipy.sparse import csr_array

        i, j = np.concatenate([self.tails, self.heads]), np.concatenate([self.heads, self.tails])
        c = np.concatenate([self.strength, self.strength])
        table = csr_array((c, (i, labels[j])), shape=(self.count, n_labels))
        table.sum_duplicates()
        return table


@dataclass(frozen=True)
class LogLasso(Linked):
    """The objective of the non-convex network lasso.

    Attributes
    ----------
    A : array of shape (n, p)
    y : array of shape (n,)
    ridge : array of shape (p,)
        r, penalties of squared parameters.
    """

    A: Float64s
    y: Float64s
    ridge: Float64s

    @property
    def count(self) -> int:
        """Nodes."""
        return len(self.y)

    def fit(self, theta: Float64s, which: Integers) -> Float64s:
        """Squared residuals and ridge of some nodes."""
        r = np.einsum("ij,ij->i", self.A[which], theta) - self.y[which]
        return np.asarray(r**2 + (theta**2 * self.ridge).sum(1))

    def value(self, x: Float64s, *, convex: bool = False) -> float:
        """F at the parameters of the nodes, or with plain distances in place of logarithms."""
        r = np.einsum("ij,ij->i", self.A, x) - self.y
        a, b = x[self.tails], x[self.heads]
        pull = _length(a - b) if convex else self.apart(a, b)
        # Sums of NumPy's are the same for any number of threads, products of BLAS are not.
        return float((r**2).sum() + (self.ridge * x**2).sum() + (self.strength * pull).sum())


@dataclass(frozen=True)
class Quotient(Linked):
    """Clusters of nodes: their sums G and b, and what is left of the edges."""

    G: Float64s
    b: Float64s

    @classmethod
    def of(cls, problem: LogLasso, labels: Integers) -> Quotient:
        """The clusters of a partition."""
        n, p = problem.A.shape
        K = int(labels.max()) + 1
        total = _sums(labels, K)
        squares = (problem.A[:, :, None] * problem.A[:, None, :]).reshape(n, p * p)
        G = np.asarray(total @ squares).reshape(K, p, p)
        G[:, range(p), range(p)] += np.bincount(labels, minlength=K)[:, None] * problem.ridge
        i, j = labels[problem.tails], labels[problem.heads]
        between = i != j
        pair = (np.minimum(i, j) * K + np.maximum(i, j))[between]
        pairs, which = np.unique(pair, return_inverse=True)
        strength = problem.strength[between]
        c = np.bincount(which, strength, minlength=len(pairs)).astype(np.float64)
        b = np.asarray(total @ (problem.A * problem.y[:, None]))
        return cls(pairs // K, pairs % K, c, problem.epsilon, G, b)

    @property
    def count(self) -> int:
        """Clusters."""
        return len(self.b)

    def fit(self, theta: Float64s, which: Integers) -> Float64s:
        """Squared residuals less Σy², and ridge, of some clusters."""
        return _quadratic(self.G[which], self.b[which], theta)


# ---------------------------------------------------------------------------------- the search


def finished(problem: LogLasso, starts: Sequence[Float64s]) -> Float64s:
    """Parameters of nodes with an objective below that of all starts, each of shape (n, p).

    The start that is best after merging is followed to the end.
    """
    merging = [merged(problem, coarsened(problem, x)) for x in starts]
    best = min(merging, key=lambda clusters: problem.value(clusters.x))
    return min(*starts, descended(problem, best).x, key=problem.value)


def coarsened(problem: LogLasso, x: Float64s) -> Clusters:
    """Clusters of neighbours that are nearly equal at ``x``.

    Of all thresholds it is not the best: that joins by chains of small steps what no search parts
    again. The next smaller is where merging begins.
    """
    d = _length(x[problem.tails] - x[problem.heads])
    spread = float(x.std(0).max())
    found, values = [], []
    for mask in (np.zeros(len(d), dtype=bool), *(d <= tau * spread for tau in THRESHOLDS)):
        labels = _connected(problem, mask)
        K = int(labels.max()) + 1
        mean = np.asarray(_sums(labels, K) @ x) / np.bincount(labels)[:, None]
        quotient = Quotient.of(problem, labels)
        both = [Clusters(labels, t) for t in (mean, _solved(quotient.G, quotient.b))]
        of_both = [problem.value(clusters.x) for clusters in both]
        values.append(min(of_both))
        found.append(both[int(np.argmin(of_both))])
    return found[max(int(np.argmin(values)) - 1, 0)]


def descended(problem: LogLasso, clusters: Clusters) -> Clusters:
    """Clusters after rounds of merging, refining and moving, as long as they help."""
    last = problem.value(clusters.x)
    for _ in range(ROUNDS):
        for step in (merged, refined, moved):
            clusters = step(problem, clusters)
        value = problem.value(clusters.x)
        if not value < last - LEAST * abs(last):
            break
        last = value
    return clusters


def merged(problem: LogLasso, clusters: Clusters) -> Clusters:
    """Clusters after all mergers that lower the objective."""
    for step, times in ((_absorbing, ABSORBINGS), (_merging, MERGES)):
        for _ in range(times):
            new = step(problem, clusters)
            if new is None:
                break
            clusters = new
    return clusters


def refined(problem: LogLasso, clusters: Clusters) -> Clusters:
    """The same partition with better parameters."""
    labels, theta = clusters
    quotient = Quotient.of(problem, labels)
    K, p = theta.shape
    u, v = quotient.tails, quotient.heads
    value = problem.value(clusters.x)
    for _ in range(TANGENTS):
        # A distance of 0 would hold two clusters together for ever; merging does that.
        d = np.maximum(_length(theta[u] - theta[v]), 1e-9 * problem.epsilon)
        pull = 0.5 * quotient.strength / (d * (problem.epsilon + d))
        tangent = Quotient(u, v, pull, problem.epsilon, quotient.G, quotient.b)
        links = tangent.table(np.arange(K), K)
        diagonal = quotient.G.copy()
        diagonal[:, range(p), range(p)] += np.asarray(links.sum(axis=1))[:, None]
        new = _conjugate_gradients(diagonal, links, quotient.b, theta)
        after = problem.value(new[labels])
        if not after < value:
            break
        gain, theta, value = value - after, new, after
        if gain < LEAST * abs(value):
            break
    return Clusters(labels, theta)


def moved(problem: LogLasso, clusters: Clusters) -> Clusters:
    """Clusters after nodes have moved, in several steps."""
    value = problem.value(clusters.x)
    for _ in range(MOVES):
        labels, theta = clusters
        table = problem.table(labels, len(theta))
        own = _own_places(problem, clusters.x, table, theta)
        change = _reassigned(problem, labels, theta, table, own, ROUNDING * abs(value))
        if change is None:
            break
        x = np.concatenate([theta, own])[change]
        after = problem.value(x)
        if not after < value:
            break
        # Nodes of a cluster that are no longer connected need not be equal.
        equal = change[problem.tails] == change[problem.heads]
        new = _connected(problem, equal)
        clusters, value = Clusters(new, x[np.unique(new, return_index=True)[1]]), after
    return clusters


# ---------------------------------------------------------------------------------- single steps


def _absorbing(problem: LogLasso, clusters: Clusters) -> Clusters | None:
    """Clusters that each become part of another where that helps; None: nowhere."""
    labels, theta = clusters
    quotient = Quotient.of(problem, labels)
    value = problem.value(clusters.x)
    all_of_them = np.arange(len(theta))
    table = quotient.table(all_of_them, len(theta))
    change = _reassigned(quotient, all_of_them, theta, table, None, ROUNDING * abs(value))
    if change is None:
        return None
    kept, new = np.unique(change, return_inverse=True)
    after = Clusters(new[labels], theta[kept])
    return after if problem.value(after.x) < value else None


def _reassigned(
    units: Linked,
    labels: Integers,
    theta: Float64s,
    table: Any,
    own: Float64s | None,
    least: float,
) -> Integers | None:
    """New labels of nodes or clusters, those with an edge between never at the same time.

    ``own`` are places that units can have for themselves, with labels that go on after ``theta``.
    """
    n, K = units.count, len(theta)
    everyone = np.arange(n)

    def cost(places: Float64s, which: Integers) -> Float64s:
        of, label, c = _rows(table, which)
        pull = np.bincount(of, c * units.apart(places[of], theta[label]), minlength=len(which))
        return np.asarray(units.fit(places, which) + pull)

    now = cost(theta[labels], everyone)
    row, label, c = _rows(table, everyone)
    order = np.lexsort((-c, row))
    few = order[np.arange(len(row)) - table.indptr[row] < CANDIDATES]
    few = few[label[few] != labels[row[few]]]
    who, to = row[few], label[few].astype(np.int64)
    change = cost(theta[to], who) - now[who]
    if own is not None:
        who, to = np.concatenate([who, everyone]), np.concatenate([to, K + everyone])
        change = np.concatenate([change, cost(own, everyone) - now])
    order = np.lexsort((change, who))
    first = order[np.unique(who[order], return_index=True)[1]]
    best, target = np.zeros(n), labels.copy()
    best[who[first]], target[who[first]] = change[first], to[first]
    rank = np.empty(n, dtype=np.int64)
    rank[np.argsort(best, kind="stable")] = everyone
    top = rank.copy()
    np.minimum.at(top, units.tails, rank[units.heads])
    np.minimum.at(top, units.heads, rank[units.tails])
    going = (best < -least) & (top == rank)
    return np.where(going, target, labels) if going.any() else None


def _own_places(problem: LogLasso, x: Float64s, table: Any, theta: Float64s) -> Float64s:
    """Parameters of each node for itself, with its neighbours where they are: three tangents."""
    from scipy.sparse import csr_array

    A, y, n = problem.A, problem.y, problem.count
    row, label, c = _rows(table, np.arange(n))
    # It starts at its target, or nearly.
    x = x + A * ((y - np.einsum("ij,ij->i", A, x)) / (np.einsum("ij,ij->i", A, A) + 1e-2))[:, None]
    for _ in range(3):
        d = np.maximum(_length(x[row] - theta[label]), 1e-9 * problem.epsilon)
        pull = 0.5 * c / (d * (problem.epsilon + d))
        drawn = csr_array((pull, table.indices, table.indptr), shape=table.shape) @ theta
        D = np.bincount(row, pull, minlength=n)[:, None] + problem.ridge
        D = np.maximum(D, 1e-8)  # smaller ones would cancel digits
        scaled = (A * y[:, None] + drawn) / D
        along = np.einsum("ij,ij->i", A, scaled) / (1 + (A**2 / D).sum(1))
        x = scaled - A / D * along[:, None]
    return np.asarray(x)


def _merging(problem: LogLasso, clusters: Clusters) -> Clusters | None:
    """Pairs of clusters made one where that helps; None: nowhere."""
    labels, theta = clusters
    quotient = Quotient.of(problem, labels)
    if not len(quotient.tails):
        return None
    value = problem.value(clusters.x)
    u, v, c = quotient.tails, quotient.heads, quotient.strength
    now = quotient.fit(theta, np.arange(len(theta)))
    gap = quotient.apart(theta[u], theta[v])
    # Only a few pairs of each cluster are looked at with all other links.
    at_one = np.minimum(quotient.fit(theta[v], u) - now[u], quotient.fit(theta[u], v) - now[v])
    few = _few_of_both(quotient.count, u, v, at_one - c * gap)
    u, v, c, gap = u[few], v[few], c[few], gap[few]
    G, b = quotient.G[u] + quotient.G[v], quotient.b[u] + quotient.b[v]
    table = quotient.table(np.arange(len(theta)), len(theta))
    sides = [(*_rows(table, here), here, there) for here, there in ((u, v), (v, u))]
    before = now[u] + now[v] - c * gap
    for of, label, strength, here, _ in sides:
        pull = strength * quotient.apart(theta[here[of]], theta[label])
        before += np.bincount(of, pull, minlength=len(u))
    best, place = np.full(len(u), np.inf), np.zeros((len(u), theta.shape[1]))
    for new in (_solved(G, b), theta[u], theta[v]):
        change = _quadratic(G, b, new) - before
        for of, label, strength, _, there in sides:
            pull = strength * quotient.apart(new[of], theta[label])
            pull[label == there[of]] = 0.0
            change += np.bincount(of, pull, minlength=len(u))
        better = change < best
        best[better], place[better] = change[better], new[better]
    chosen = _matching(quotient.count, u, v, best, ROUNDING * abs(value))
    while len(chosen):
        theta_new, name = theta.copy(), np.arange(len(theta))
        theta_new[u[chosen]], name[v[chosen]] = place[chosen], u[chosen]
        kept, short = np.unique(name, return_inverse=True)
        after = Clusters(short[labels], theta_new[kept])
        if problem.value(after.x) < value:
            return after
        # Pairs that are linked to each other can get into each other's way.
        chosen = chosen[: len(chosen) // 2]
    return None


def _few_of_both(n: int, u: Integers, v: Integers, score: Float64s) -> Integers:
    """The edges that are among the lowest of both ends, so that a hub is not read."""
    order = np.argsort(score, kind="stable")
    ends, edges = np.concatenate([u[order], v[order]]), np.concatenate([order, order])
    rank = np.concatenate([np.arange(len(u)), np.arange(len(u))])
    by_end = np.lexsort((rank, ends))
    begin = np.searchsorted(ends[by_end], np.arange(n))
    place = np.arange(len(by_end)) - begin[ends[by_end]]
    times = np.bincount(edges[by_end[place < CANDIDATES]], minlength=len(u))
    return np.flatnonzero(times == 2)


def _matching(n: int, u: Integers, v: Integers, score: Float64s, least: float) -> Integers:
    """Edges that are the lowest of both ends, the lowest first."""
    order = np.argsort(score, kind="stable")
    rank = np.empty(len(u), dtype=np.int64)
    rank[order] = np.arange(len(u))
    top = np.full(n, len(u))
    np.minimum.at(top, u, rank)
    np.minimum.at(top, v, rank)
    good = (score < -least) & (top[u] == rank) & (top[v] == rank)
    return np.asarray(order[good[order]])


def _conjugate_gradients(diagonal: Float64s, links: Any, b: Float64s, theta: Float64s) -> Float64s:
    """Towards the solution of (blocks − links) θ = b, with the blocks as preconditioner."""
    inverse = np.linalg.inv(_steadied(diagonal))

    def product(z: Float64s) -> Float64s:
        return np.asarray(np.einsum("kij,kj->ki", diagonal, z) - links @ z)

    r = b - product(theta)
    s = np.einsum("kij,kj->ki", inverse, r)
    direction, size = s, float((r * s).sum())
    enough = 1e-6 * size
    for _ in range(GRADIENTS):
        if not size > enough:
            break
        along = product(direction)
        curvature = float((direction * along).sum())
        if not curvature > 0:  # by rounding, where some pulls are extreme
            break
        step = size / curvature
        theta, r = theta + step * direction, r - step * along
        s = np.einsum("kij,kj->ki", inverse, r)
        size, old = float((r * s).sum()), size
        direction = s + size / old * direction
    return theta


# ---------------------------------------------------------------------------------- arrays


def _length(v: Float64s) -> Float64s:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", v, v)))


def _quadratic(G: Float64s, b: Float64s, theta: Float64s) -> Float64s:
    return np.asarray(np.einsum("ki,ki->k", np.einsum("kij,kj->ki", G, theta) - 2 * b, theta))


def _steadied(G: Float64s) -> Float64s:
    """The same matrices, not singular to rounding."""
    p = G.shape[1]
    more = 1e-12 * np.trace(G, axis1=1, axis2=2) + 1e-300
    return np.asarray(G + more[:, None, None] * np.eye(p))


def _solved(G: Float64s, b: Float64s) -> Float64s:
    return np.asarray(np.linalg.solve(_steadied(G), b[:, :, None])[:, :, 0])


def _sums(labels: Integers, n_labels: int) -> Any:
    """The matrix that sums rows of nodes by their labels."""
    from scipy.sparse import csr_array

    n = len(labels)
    return csr_array((np.ones(n), (labels, np.arange(n))), shape=(n_labels, n))


def _rows(table: Any, rows: Integers) -> tuple[Integers, Integers, Float64s]:
    """Entries of rows of a sparse table: which of ``rows``, column and number."""
    first = table.indptr[rows].astype(np.int64)
    count = table.indptr[rows + 1] - first
    of = np.repeat(np.arange(len(rows)), count)
    at = np.arange(len(of)) + np.repeat(first - np.cumsum(count) + count, count)
    return of, table.indices[at], table.data[at]


def _connected(problem: Linked, edges: NDArray[np.bool_]) -> Integers:
    """Numbers of the parts that some of the edges connect."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    ends = (problem.tails[edges], problem.heads[edges])
    n = problem.count
    graph = csr_array((np.ones(int(edges.sum())), ends), shape=(n, n))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)
