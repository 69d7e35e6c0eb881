r"""The dual of structured hinge losses on forests, for block-coordinate Frank–Wolfe.

A dual point holds, for each sample, the means of the labels and of the label pairs under its
distribution over labellings (:mod:`trellis.kernels.frank_wolfe`): N L numbers and L² for each
sample and table, whatever the number of features. It starts with all weight on the labellings that
are rewarded, where all weights are zero. These may be exchanged, as rounds of the concave-convex
procedure do: the point stays feasible, and only its weights move.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s, Int64s, as_array, for_kernels
from trellis.domains import instance, number
from trellis.errors import DataError
from trellis.files.stored import check_range
from trellis.problems.hinge import HingeLoss
from trellis.structures import Forest

__all__ = ["HingeDual", "slots"]


def slots(offsets: Int64s, table: Int64s) -> tuple[Int64s, int]:
    """Number each pair of sample and table as it occurs: (N,), and how many there are.

    ``table`` (N,) is that of the edge to the parent at each place, −1 for a root, and so are slots.

    Examples
    --------
    >>> slots(np.array([0, 3, 5]), np.array([-1, 4, 0, -1, 4]))
    (array([-1,  0,  1, -1,  2]), 3)
    """
    sample = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    inner = np.flatnonzero(table >= 0)
    key = sample[inner] * (int(table.max(initial=0)) + 1) + table[inner]
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    slot = np.full(len(table), -1)
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
        from trellis.kernels.frank_wolfe import Rooted

        instance(HingeLoss).check("loss", loss)
        number(above=0).check("l2", l2)
        problem, gold = loss.problem, loss.gold
        if problem.is_rich:
            raise DataError("a dual point is for problems without rich edges")
        L = problem.n_labels
        self.loss = loss
        self.l2 = float(l2)
        forest = Forest.of(problem.offsets, problem.edges)
        inner = np.flatnonzero(forest.edge >= 0)
        up = forest.edge[inner]
        table = np.full(len(gold), -1)
        table[inner] = problem.types[up]
        slot, n_slots = slots(problem.offsets, table)
        held = (problem.offsets, forest.order, forest.parent, table, forest.down, slot)
        self.nodes = Rooted(*map(for_kernels, held))
        self._w = np.zeros(problem.n_weights)
        self._labels = gold.astype(np.int32)
        self._means = np.zeros((len(gold), L))
        self._means[np.arange(len(gold)), gold] = 1.0
        self._pairs = np.zeros((n_slots, L * L))
        first, second = problem.edges[up].T
        np.add.at(self._pairs, (slot[inner], gold[first] * L + gold[second]), 1.0)
        self._losses = np.zeros(problem.n_samples)

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self.loss.n_samples

    def sweep(self, order: Int64s) -> None:
        """Visit samples in this order."""
        order = as_array(order, np.int64, "order", (None,), low=0, high=self.n_samples)
        self._visit(order, self._w, self._labels, self._means, self._pairs, self._losses)

    def _visit(self, order: Int64s, w: Float64s, labels: Any, *point: Float64s) -> float:
        """Visit samples; with means, pairs and losses of a dual point, move it and w."""
        from trellis.kernels.frank_wolfe import Costs, visit_samples

        loss, problem = self.loss, self.loss.problem
        weights, costs, none = problem.weights(w), problem.costs, np.zeros((0, 0))
        return visit_samples(
            problem.arguments()[0], Costs(for_kernels(loss.gold), costs.table, costs.rows),
            self.nodes, not problem.directed, for_kernels(loss.sample_weight), order, weights.node,
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
        check_range(state["labels"], 0, self.loss.problem.n_labels, "labels of a dual point")
        for name, array in self.state().items():
            array[...] = state[name]
