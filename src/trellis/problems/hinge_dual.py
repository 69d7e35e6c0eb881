r"""The dual of structured hinge losses on forests, for block-coordinate Frank–Wolfe.

A dual point holds, for each sample, the means of the labels and of the label pairs under its
distribution over labellings (:mod:`trellis.kernels.frank_wolfe`): N L numbers and L² for each
sample and table, whatever the number of features. It starts with all weight on the labellings that
are rewarded, where all weights are zero. These may be exchanged, as rounds of the concave-convex
procedure do: the point stays feasible, and only its weights move.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s, Int64s
from trellis.problems.hinge import HingeLoss
from trellis.structures import Forest

__all__ = ["HingeDual", "NodeOrder"]


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


class HingeDual:
    """A dual point of l2 ||w||² + R(w); a :class:`trellis.solvers.FrankWolfeState`.

    Parameters
    ----------
    loss : HingeLoss
        The losses R, of samples without loops and without rich edges.
    l2 : float
        Factor of ||w||².
    """

    exact = True

    def __init__(self, loss: HingeLoss, l2: float) -> None:
        problem, gold = loss.problem, loss.gold
        L = problem.n_labels
        self.loss = loss
        self.l2 = l2
        if problem.structure == "chain":
            self.nodes = NodeOrder.chain(problem.offsets)
        else:
            self.nodes = NodeOrder.forest(Forest.of(problem.offsets, problem.edges), problem.types)
        self._slot, n_slots = self.nodes.slots(problem.offsets)
        self._w = np.zeros(problem.n_weights)
        self._labels = gold.astype(np.int32)
        self._means = np.zeros((len(gold), L))
        self._means[np.arange(len(gold)), gold] = 1.0
        self._pairs = np.zeros((n_slots, L * L))
        inner = np.flatnonzero(self.nodes.parent >= 0)
        first, second, _ = self.nodes.edges()
        np.add.at(self._pairs, (self._slot[inner], gold[first] * L + gold[second]), 1.0)
        self._losses = np.zeros(problem.n_samples)

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self.loss.n_samples

    def sweep(self, order: Int64s) -> None:
        """Visit samples in this order."""
        self._visit(order, self._w, self._labels, self._means, self._pairs, self._losses)

    def _visit(self, order: Int64s, w: Float64s, labels: Any, *point: Float64s) -> float:
        """Visit samples; with means, pairs and losses of a dual point, move it and w."""
        from trellis.kernels.frank_wolfe import Costs, Rooted, visit_samples

        loss, problem, nodes = self.loss, self.loss.problem, self.nodes
        weights, costs, none = problem.weights(w), problem.costs, np.zeros((0, 0))
        return visit_samples(
            problem.arguments()[0], Costs(loss.gold, costs.table, costs.rows),
            Rooted(
                problem.offsets, nodes.order, nodes.parent, nodes.table, nodes.down, self._slot
            ),
            not problem.directed, loss.sample_weight, order, weights.node,
            weights.transitions.reshape(problem.n_types, -1), len(point) > 0, 2 * self.l2,
            labels, *(point or (none, none, np.zeros(0))),
        )  # fmt: skip

    def reward(self, gold: Int64s) -> None:
        """Exchange the labellings that are rewarded."""
        before = self.loss.gold_features
        self.loss = self.loss.rewarding(gold)
        self._w += (self.loss.gold_features - before) / (2 * self.l2)

    def dual(self) -> float:
        """Value of the dual: at most min J."""
        return float(self.loss.sample_weight @ self._losses - self.l2 * (self._w @ self._w))

    def weights(self) -> Float64s:
        """The weights of the dual point, valid until the next sweep."""
        return self._w

    def objective(self, w: Float64s) -> float:
        """J(w)."""
        order = np.arange(self.n_samples)
        return self.l2 * float(w @ w) + self._visit(order, w, np.zeros_like(self._labels))

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that later sweeps depend on."""
        return {
            "w": self._w, "labels": self._labels, "means": self._means, "pairs": self._pairs,
            "losses": self._losses,
        }  # fmt: skip

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take up a state."""
        for name, array in self.state().items():
            array[...] = state[name]
