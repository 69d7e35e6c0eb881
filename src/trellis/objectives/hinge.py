r"""Structured hinge losses with margin rescaling, of chains and forests.

.. math::

    R(w) = \sum_i c_i \Bigl( \max_y \bigl[\Delta(y_i, y) + s(x_i, y)\bigr] - s(x_i, y_i) \Bigr),

    s(x, y) = \sum_v \sum_{f \in x_v} x_{vf} \, W_{f, y_v}
            + \sum_{e = (a, b)} S_{k_e, y_a, y_b} .

R is convex, at least 0, and with the labellings :math:`\hat y_i` that attain the maxima
:math:`\sum_i c_i (\phi(x_i, \hat y_i) - \phi(x_i, y_i))` is a subgradient. The loss
:math:`\Delta` is additive (:mod:`trellis.objectives.losses`): it is added to the node scores.

Weights are one flat vector: W (F, L) row by row, then the tables T (K, L, L). The score of an edge
is S = T, or S = T + Tᵀ where edges have no direction.

What a solver needs of a problem is a :class:`StructuredOracle`; the classes here are such, and a
user's own is used in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from trellis.features import Encoded
from trellis.objectives.losses import Costs

__all__ = [
    "HingeData",
    "HingeLoss",
    "NodeOrder",
    "StructuredOracle",
    "feature_difference",
    "pair_differences",
    "summed_risk",
]

Float64s = NDArray[np.float64]
Int64s = NDArray[np.int64]


class StructuredOracle(Protocol):
    """A learning problem as the solvers see it: loss-augmented inference and nothing else.

    Give ``risk`` to :func:`trellis.solvers.minimise_bundle`, or ``best`` to
    :func:`trellis.solvers.minimise_frank_wolfe`; :func:`summed_risk` makes the former of the
    latter.

    Examples
    --------
    Multi-class classification as the smallest structure there is, one label:

    >>> class MultiClass:
    ...     def __init__(self, x, gold, n_classes):
    ...         self.x, self.gold, self.shape = x, gold, (n_classes, x.shape[1])
    ...         self.n_samples, self.n_weights = len(x), n_classes * x.shape[1]
    ...     def best(self, i, w):
    ...         scores = w.reshape(self.shape) @ self.x[i]
    ...         y = int((scores + (np.arange(self.shape[0]) != self.gold[i])).argmax())
    ...         psi = np.zeros(self.shape)
    ...         psi[self.gold[i]] += self.x[i]
    ...         psi[y] -= self.x[i]
    ...         return psi.ravel(), float(y != self.gold[i])
    ...     def risk(self, w):
    ...         return summed_risk(self.best, self.n_samples, self.n_weights)(w)
    >>> x = np.array([[2.0, 0, 1], [1, 0, 1], [0, 2, 1], [0, 1, 1]])
    >>> problem = MultiClass(x, np.array([0, 0, 1, 1]), 2)
    >>> from trellis.solvers import minimise_bundle, minimise_frank_wolfe
    >>> a = minimise_bundle(problem.risk, problem.n_weights, l2=0.1, floor=0.0, tol=1e-6)
    >>> b = minimise_frank_wolfe(problem.best, 4, problem.n_weights, l2=0.1, tol=1e-6, seed=0)
    >>> round(a.objective, 3), round(b.objective, 3)
    (0.1, 0.1)
    """

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        ...

    @property
    def n_weights(self) -> int:
        """Number of weights D."""
        ...

    def risk(self, w: Float64s) -> Any:
        """Return the sum of all losses and a subgradient, or a ``Cut`` if inference is inexact."""
        ...

    def best(self, i: int, w: Float64s) -> Any:
        """Return psi and loss of the labelling of sample i that attains its hinge loss.

        psi is the features of the gold labelling less those of this, dense or as indices and
        values. If the labelling need not be the best, an upper bound of the hinge loss follows.
        """
        ...


def summed_risk(
    best: Callable[[int, Float64s], Any],
    n_samples: int,
    n_weights: int,
    sample_weight: Float64s | None = None,
) -> Callable[[Float64s], Any]:
    """Make the risk of the bundle method from an oracle for single samples.

    Parameters
    ----------
    best : function of a sample's number and w
        As :meth:`StructuredOracle.best`.
    n_samples, n_weights : int
        Numbers of samples and of weights.
    sample_weight : float64, shape (n_samples,), optional
        Weight of each sample.

    Returns
    -------
    function of w
        Returns a :class:`trellis.solvers.Cut`.

    Examples
    --------
    >>> risk = summed_risk(lambda i, w: (np.ones(2), 1.0), 3, 2)
    >>> cut = risk(np.array([0.5, 0.0]))
    >>> cut.upper, cut.slope.tolist()
    (1.5, [-3.0, -3.0])
    """
    from trellis.solvers.bundle import Cut

    weight = np.ones(n_samples) if sample_weight is None else sample_weight

    def risk(w: Float64s) -> Cut:
        upper = lower = 0.0
        slope = np.zeros(n_weights)
        for i in range(n_samples):
            psi, loss, *bound = best(i, w)
            index, values = psi if isinstance(psi, tuple) else (slice(None), psi)
            value = float(loss) - float(values @ w[index])
            lower += float(weight[i]) * value
            upper += float(weight[i]) * (float(bound[0]) if bound else value)
            slope[index] -= weight[i] * values
        return Cut(upper, lower, slope)

    return risk


@dataclass(frozen=True, eq=False)
class HingeData:
    """Features, gold labels, costs and weights of all samples.

    Parameters
    ----------
    encoded : Encoded
        Features of all positions.
    gold : int64, shape (N,)
        Gold labels.
    costs : Costs
        Costs of all labels at all positions, zero at the gold labels.
    sample_weight : float64, shape (S,)
        Weight of each sample.
    n_features : int
        Number of features F.
    """

    encoded: Encoded
    gold: Int64s
    costs: Costs
    sample_weight: Float64s
    n_features: int

    @property
    def n_labels(self) -> int:
        """Number of labels L."""
        return int(self.costs.table.shape[1])

    @property
    def position_weight(self) -> Float64s:
        """Weight of the sample of each position (N,)."""
        return np.repeat(self.sample_weight, np.diff(self.encoded.offsets))


@dataclass(frozen=True, eq=False)
class NodeOrder:
    """Nodes of stacked forests, each after its parent (see :class:`trellis.structures.Forest`).

    Parameters
    ----------
    order, parent : int64, shape (N,)
        The node at each place, and the place of its parent, −1 for a root.
    table : int64, shape (N,)
        Table of the edge to the parent, −1 for a root.
    down : bool, shape (N,)
        Whether the parent is the first end of that edge.

    Examples
    --------
    >>> nodes = NodeOrder.chain(np.array([0, 2, 3]))
    >>> nodes.parent.tolist(), nodes.table.tolist()
    ([-1, 0, -1], [-1, 0, -1])
    """

    order: Int64s
    parent: Int64s
    table: Int64s
    down: NDArray[np.bool_]

    @classmethod
    def chain(cls, offsets: Int64s) -> NodeOrder:
        """Every position hangs on the one before it."""
        n = int(offsets[-1])
        parent = np.arange(n) - 1
        parent[offsets[:-1][np.diff(offsets) > 0]] = -1
        inner = parent >= 0
        return cls(np.arange(n), parent, np.where(inner, 0, -1), inner)

    @classmethod
    def forest(cls, forest: Any, types: Int64s | None = None) -> NodeOrder:
        """Nodes of a :class:`trellis.structures.Forest`; ``types`` (E,) are tables of its edges."""
        inner = forest.edge >= 0
        table = np.where(inner, 0, -1)
        if types is not None and len(types):
            table = np.where(inner, types[np.maximum(forest.edge, 0)], -1)
        return cls(forest.order, forest.parent, table, forest.down)

    def edges(self) -> tuple[Int64s, Int64s, Int64s]:
        """First ends, second ends and tables of all edges."""
        inner = np.flatnonzero(self.parent >= 0)
        child, upper = self.order[inner], self.order[self.parent[inner]]
        down = self.down[inner]
        return np.where(down, upper, child), np.where(down, child, upper), self.table[inner]

    def slots(self, offsets: Int64s) -> tuple[Int64s, int]:
        """Number each pair of sample and table as it occurs: (N,), −1 for roots, and how many."""
        sample = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        inner = np.flatnonzero(self.parent >= 0)
        key = sample[inner] * (int(self.table.max(initial=0)) + 1) + self.table[inner]
        _, first, number = np.unique(key, return_index=True, return_inverse=True)
        rank = np.empty(len(first), np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        slot = np.full(len(self.order), -1)
        slot[inner] = rank[number]
        return slot, len(first)


def pair_differences(
    first: Int64s,
    second: Int64s,
    table: Int64s,
    weight: Float64s,
    labels: NDArray[Any],
    gold: Int64s,
    shape: tuple[int, int],
    directed: bool,
) -> Float64s:
    """Weighted counts of label pairs less those of the gold labels: (K, L, L), as T sees them.

    ``first``, ``second``, ``table`` and ``weight`` are those of the edges, ``shape`` is (K, L).
    """
    n_tables, n = shape
    size = n_tables * n * n
    counts = np.zeros(size)
    for y, sign in ((labels.astype(np.int64), 1.0), (gold, -1.0)):
        code = (table * n + y[first]) * n + y[second]
        counts += np.bincount(code, sign * weight, minlength=size)
    tables: Float64s = counts.reshape(n_tables, n, n)
    return tables if directed else tables + tables.transpose(0, 2, 1)


class HingeLoss:
    """Structured hinge losses of stacked chains or forests; exact, all samples in one call.

    Parameters
    ----------
    data : HingeData
        Features, labels and costs.
    nodes : NodeOrder, optional
        How the positions hang together; as chains by default.
    n_tables : int
        Number of tables K.
    directed : bool
        Whether the two ends of an edge play different parts.

    Examples
    --------
    >>> from trellis.corpus import as_corpus
    >>> from trellis.features import AttributeEncoder
    >>> from trellis.objectives.losses import additive_costs
    >>> corpus = as_corpus([[["a"], ["b"]]], [["X", "Y"]])
    >>> gold = corpus.labels.ids.astype(np.int64)
    >>> costs = additive_costs("hamming", gold, corpus.offsets, ["X", "Y"])
    >>> data = HingeData(AttributeEncoder().learn(corpus), gold, costs, np.ones(1), 2)
    >>> loss = HingeLoss(data)
    >>> value, slope = loss.risk(np.zeros(loss.n_weights))
    >>> value, slope.tolist()
    (2.0, [-1.0, 1.0, 1.0, -1.0, 0.0, -1.0, 1.0, 0.0])
    """

    def __init__(
        self,
        data: HingeData,
        nodes: NodeOrder | None = None,
        *,
        n_tables: int = 1,
        directed: bool = True,
    ) -> None:
        offsets = data.encoded.offsets
        self.data = data
        self.nodes = NodeOrder.chain(offsets) if nodes is None else nodes
        self.n_tables = n_tables
        self.directed = directed
        self.slot, self.n_slots = self.nodes.slots(offsets)
        self._edges = self.nodes.edges()

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.data.sample_weight)

    @property
    def n_weights(self) -> int:
        """Number of weights F L + K L²."""
        L = self.data.n_labels
        return (self.data.n_features + self.n_tables * L) * L

    def split(self, w: Float64s) -> tuple[Float64s, Float64s]:
        """Views of flat weights: node weights (F, L) and tables (K, L, L)."""
        L = self.data.n_labels
        n = self.data.n_features * L
        return w[:n].reshape(-1, L), w[n:].reshape(self.n_tables, L, L)

    def risk(self, w: Float64s) -> tuple[float, Float64s]:
        """R(w) and a subgradient."""
        from trellis.kernels.counts import count_differences

        d, e = self.data, self.data.encoded
        value, labels = self.labellings(w)
        slope = np.zeros(self.n_weights)
        node, tables = self.split(slope)
        weight = d.position_weight
        count_differences(e.indptr, e.indices, e.values, weight, labels, d.gold, node)
        first, second, table = self._edges
        tables += pair_differences(
            first, second, table, weight[first], labels, d.gold, (self.n_tables, d.n_labels),
            self.directed,
        )  # fmt: skip
        return value, slope

    def labellings(self, w: Float64s) -> tuple[float, NDArray[np.int32]]:
        """R(w) and the labellings (N,) that attain it."""
        return self._labellings(w, np.arange(self.n_samples))

    def _labellings(self, w: Float64s, samples: Int64s) -> tuple[float, NDArray[np.int32]]:
        labels = self.data.gold.astype(np.int32)
        none = np.zeros((0, 0))
        return self.visit(samples, w, False, 1.0, labels, none, none, np.zeros(0)), labels

    def best(self, i: int, w: Float64s) -> tuple[tuple[Int64s, Float64s], float]:
        """Features psi (indices, values) and loss of the labelling that attains loss i."""
        d, e = self.data, self.data.encoded
        a, b = int(e.offsets[i]), int(e.offsets[i + 1])
        _, labels = self._labellings(w, np.array([i]))
        loss = float(d.costs.dense(a, b)[np.arange(b - a), labels[a:b]].sum())
        first, second, table = self._edges
        own = (first >= a) & (first < b)
        return feature_difference(
            d, a, b, labels, first[own], second[own], table[own], self.n_tables, self.directed
        ), loss

    def visit(
        self,
        samples: Int64s,
        w: Float64s,
        learn: bool,
        scale: float,
        labels: NDArray[np.int32],
        means: Float64s,
        pairs: Float64s,
        losses: Float64s,
    ) -> float:
        """Visit samples as :func:`trellis.kernels.frank_wolfe.visit_samples` does."""
        from trellis.kernels.frank_wolfe import Costs, Rooted, visit_samples
        from trellis.kernels.scoring import Features

        d, e, n = self.data, self.data.encoded, self.nodes
        W, T = self.split(w)
        return visit_samples(
            Features(e.indptr, e.indices, e.values), Costs(d.gold, d.costs.table, d.costs.rows),
            Rooted(e.offsets, n.order, n.parent, n.table, n.down, self.slot),
            not self.directed, d.sample_weight, samples,
            W, T.reshape(self.n_tables, -1), learn, scale, labels, means, pairs, losses,
        )  # fmt: skip


def feature_difference(
    d: HingeData,
    a: int,
    b: int,
    labels: NDArray[Any],
    first: Int64s,
    second: Int64s,
    table: Int64s,
    n_tables: int,
    directed: bool,
) -> tuple[Int64s, Float64s]:
    """Features of the gold labels of positions a..b less those of ``labels``: indices, values."""
    e, L = d.encoded, d.n_labels
    wrong = a + np.flatnonzero(labels[a:b] != d.gold[a:b])
    entries = [np.arange(e.indptr[t], e.indptr[t + 1]) for t in wrong]
    p = np.concatenate([np.zeros(0, np.int64), *entries])
    position = np.repeat(wrong, [len(x) for x in entries])
    x = e.values[p].astype(np.float64) if e.values.size else np.ones(len(p))
    f = e.indices[p].astype(np.int64) * L
    pairs = pair_differences(
        first, second, table, np.ones(len(first)), labels, d.gold, (n_tables, L), directed
    ).ravel()
    k = np.flatnonzero(pairs)
    index = np.concatenate([f + d.gold[position], f + labels[position], d.n_features * L + k])
    index, place = np.unique(index, return_inverse=True)
    values = np.zeros(len(index))
    np.add.at(values, place, np.concatenate([x, -x, -pairs[k]]))
    return index, values
