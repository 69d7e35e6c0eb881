"""The weights of a model, in matrices: what solvers change and predictions are made with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import OwnMemory, for_kernels
from trellis.domains import instance, nothing
from trellis.errors import DataError
from trellis.problems.edge_weights import EdgeWeights, as_weights

__all__ = ["Weights"]


@dataclass
class Weights(OwnMemory):
    """Weights of a model: node (F, L), transitions, and rich edges if it has any.

    Transitions are (L, L) for chains; for trees and graphs (K, L, L), one table for each of the K
    types of edges.
    """

    node: NDArray[Any]
    transitions: NDArray[Any]
    edge: EdgeWeights | None = None

    def __post_init__(self) -> None:
        (nothing | instance(EdgeWeights)).check("edge", self.edge)
        self.node, self.transitions = as_weights(self.node), as_weights(self.transitions)
        tables, labels = self.transitions.shape, self.node.shape[-1:] * 2
        if self.node.ndim != 2 or len(tables) not in (2, 3) or tables[-2:] != labels:
            raise DataError(
                f"weights have node {self.node.shape} and transitions {tables}; expected "
                "(features, labels) and (labels, labels), or a table for each type of edges"
            )

    @classmethod
    def zeros(
        cls, n_features: int, n_labels: int, dtype: Any = np.float32, n_types: int | None = None
    ) -> Weights:
        """All weights zero, without rich edges; ``n_types`` tables, or one matrix of a chain."""
        tables = (n_labels, n_labels) if n_types is None else (n_types, n_labels, n_labels)
        return cls(np.zeros((n_features, n_labels), dtype), np.zeros(tables, dtype))

    def arrays(self) -> tuple[NDArray[Any], ...]:
        """The arrays of weights: node, transitions and, if there are any, edge values."""
        both = (self.node, self.transitions)
        return both if self.edge is None else (*both, self.edge.values)

    def named(self, prefix: str = "") -> dict[str, NDArray[Any]]:
        """The arrays themselves, by name."""
        names = ("node", "transitions", "edge")
        return {prefix + name: a for name, a in zip(names, self.arrays(), strict=False)}

    def map(self, function: Callable[[NDArray[Any]], NDArray[Any]]) -> Weights:
        """Weights of the same shape with a function applied to each array."""
        node, transitions, *edge = (function(a) for a in self.arrays())
        return Weights(node, transitions, None if self.edge is None else self.edge.like(edge[0]))

    def copy(self) -> Weights:
        """Independent copy."""
        return self.map(np.copy)

    def zeros_like(self, dtype: Any) -> Weights:
        """Weights of the same shape, all zero."""
        return self.map(lambda a: np.zeros(a.shape, dtype))

    def any(self) -> bool:
        """Whether any weight is not zero."""
        return any(bool(a.any()) for a in self.arrays())

    def clear(self) -> None:
        """Set all weights to zero, in place."""
        for array in self.arrays():
            array.fill(0)

    def finite(self) -> bool:
        """Whether all weights are finite."""
        return all(bool(np.isfinite(a).all()) for a in self.arrays())

    def grown(self, n_features: int) -> Weights:
        """The same weights with room for more features (new ones zero, and not crossed)."""
        more = n_features - len(self.node)
        if more <= 0:
            return self
        new = np.zeros((more, self.node.shape[1]), self.node.dtype)
        edge = self.edge
        if edge is not None:
            edge = replace(edge, row=np.append(edge.row, np.full(more, -1, np.int32)))
        return Weights(np.concatenate([self.node, new]), self.transitions, edge)

    def squared_norm(self) -> float:
        """‖w‖² over all weights, summed in float64."""
        from trellis.kernels.averages import squared_norm

        return sum(squared_norm(for_kernels(a.reshape(-1))) for a in self.arrays())
