"""Penalties on the weights of a model, added to the summed loss.

    Ω(w) = l2 · ‖w‖² + l1 · ‖w‖₁ + group_lasso · Σ_g √|g| · ‖w_g‖

A group is what one template contributes (Yuan & Lin 2006): its node weights are one group, its
rich edge weights another, and the transitions are one; features that edges have of their own are in
groups like those of attributes. The first term is smooth; solvers treat the
others by their proximal steps, which are exact and leave exact zeros.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Int32s, as_array, held
from trellis.domains import instance, number
from trellis.errors import DataError
from trellis.problems.weights import Weights

__all__ = ["Penalty"]

_NO_GROUPS = "the group lasso needs the group of each feature: give groups"


@dataclass(frozen=True)
class Penalty:
    """Strengths of the penalties, and the group of each feature.

    Parameters
    ----------
    l2, l1, group_lasso : float
    groups : int32 array (F,), optional
        Group of each feature, for the group lasso.
    edge_groups : int32 array, optional
        Group of each feature that edges have of their own, if there are any.

    Examples
    --------
    >>> import numpy as np
    >>> from trellis.problems import Weights, Penalty
    >>> weights = Weights(np.array([[3.0, -0.5]]), np.zeros((2, 2)))
    >>> penalty = Penalty(l1=2.0)
    >>> penalty.value(weights)
    7.0
    >>> penalty.proximal(weights, 0.5)  # a step of rate 0.5
    >>> weights.node
    array([[2., 0.]])
    """

    l2: float = 0.0
    l1: float = 0.0
    group_lasso: float = 0.0
    groups: NDArray[np.int32] | None = None
    edge_groups: NDArray[np.int32] | None = None

    def __post_init__(self) -> None:
        for name in ("l2", "l1", "group_lasso"):
            number(at_least=0).check(name, getattr(self, name))
        for name in ("groups", "edge_groups"):
            given = getattr(self, name)
            if given is not None:
                groups = as_array(given, np.int32, name, (None,), low=0, high=1 << 24)
                vars(self)[name] = held(groups, given)
        if self.group_lasso and self.groups is None:
            raise DataError(_NO_GROUPS)

    @property
    def smooth(self) -> bool:
        """Whether there is no L1 and no group lasso."""
        return self.l1 == 0 and self.group_lasso == 0

    def value(self, weights: Weights) -> float:
        """Ω(w)."""
        self._check(weights)
        total = self.l2 * weights.squared_norm() if self.l2 else 0.0
        if self.l1:
            total += self.l1 * sum(float(np.abs(a).sum(dtype=np.float64)) for a in weights.arrays())
        if self.group_lasso:
            norms, sizes = self.group_norms(weights)
            total += self.group_lasso * float(np.sqrt(sizes) @ norms)
        return total

    def proximal(self, weights: Weights, rates: float | NDArray[np.float64]) -> None:
        """Take the proximal step of the terms that are not smooth; weights change in place.

        ``rates`` is one rate, or one for each feature and a last one for the transitions; a group
        takes the mean of its features' rates.
        """
        from trellis.kernels.proximal import scale_rows, soft_threshold

        n = len(weights.node)
        gamma = as_array(rates, np.float64, "rates")
        if gamma.shape not in ((), (n + 1,)):
            raise DataError(f"rates have shape {gamma.shape}; expected one, or {n + 1} of them")
        gamma = np.broadcast_to(gamma, (n + 1,))
        self._check(weights)
        parts = _rows(weights)
        if self.l1:
            for flat, ptr, feature in parts:
                soft_threshold(flat, ptr, self.l1 * gamma[feature])
        if self.group_lasso:
            norms, sizes = self.group_norms(weights)
            group = self._group_of(weights)
            members = np.bincount(np.concatenate(group), minlength=len(norms))
            pace = np.bincount(
                np.concatenate(group),
                np.concatenate([gamma[feature] for _, _, feature in parts]),
                len(norms),
            ) / np.maximum(members, 1)
            amount = self.group_lasso * pace * np.sqrt(sizes)
            factor = np.maximum(0.0, 1 - amount / np.maximum(norms, 1e-300))
            for (flat, ptr, _), mine in zip(parts, group, strict=True):
                scale_rows(flat, ptr, mine, factor)

    def group_norms(self, weights: Weights) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """‖w_g‖ and |g| of each group: node groups, edge groups, transitions, edges' own groups."""
        from trellis.kernels.proximal import row_squares

        group = self._group_of(weights)
        n_groups = max((int(g.max(initial=-1)) for g in group), default=-1) + 1
        squares, sizes = np.zeros(n_groups), np.zeros(n_groups, np.int64)
        for (flat, ptr, _), mine in zip(_rows(weights), group, strict=True):
            row_squares(flat, ptr, mine, squares)
            sizes += np.bincount(mine, np.diff(ptr), n_groups).astype(np.int64)
        return np.sqrt(squares), sizes

    def spread(self, weights: Weights, factor: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """A number for each group, repeated for each of its weights, array by array."""
        return [
            np.repeat(factor[mine], np.diff(ptr))
            for (_, ptr, _), mine in zip(_rows(weights), self._group_of(weights), strict=True)
        ]

    def _check(self, weights: Weights) -> None:
        instance(Weights).check("weights", weights)
        if self.group_lasso:
            self._checked_groups(weights)

    def _checked_groups(self, weights: Weights) -> Int32s:
        """The group of each feature; raises if there are none, or those of other features."""
        if self.groups is None:
            raise DataError(_NO_GROUPS)
        if len(self.groups) != len(weights.node):
            raise DataError(
                f"there are groups of {len(self.groups)} features; weights of {len(weights.node)}"
            )
        n_own = 0 if weights.edge is None else weights.edge.n_own
        n_groups = 0 if self.edge_groups is None else len(self.edge_groups)
        if n_groups != n_own:
            raise DataError(f"there are groups of {n_groups} features of edges; weights of {n_own}")
        return self.groups

    def _group_of(self, weights: Weights) -> list[NDArray[np.int64]]:
        """Group of each row of each array of weights."""
        groups = np.append(self._checked_groups(weights).astype(np.int64), 0)
        n = int(groups.max(initial=-1)) + 1
        places = []
        for k, (_, _, feature) in enumerate(_rows(weights)):
            # node, transitions, edges
            places.append((groups[feature], np.full(len(feature), 2 * n), groups[feature] + n)[k])
        if self.edge_groups is not None and len(self.edge_groups):
            places[2][-len(self.edge_groups) :] = 2 * n + 1 + self.edge_groups
        return places


def _rows(
    weights: Weights,
) -> list[tuple[NDArray[np.floating], NDArray[np.int64], NDArray[np.int64]]]:
    """Flat view, bounds of rows and feature of each row, for every array of weights.

    The feature of the transitions' only row is F, and so is that of rows that edges have of their
    own: they go at the same pace.
    """
    n, n_labels = weights.node.shape
    rows = [
        (weights.node.reshape(-1), np.arange(n + 1) * n_labels, np.arange(n)),
        (weights.transitions.reshape(-1), np.array([0, weights.transitions.size]), np.array([n])),
    ]
    if weights.edge is not None:
        feature = weights.edge.features_of_rows()
        feature = np.where(feature < 0, n, feature)
        rows.append((weights.edge.values, weights.edge.rows(), feature))
    return rows
