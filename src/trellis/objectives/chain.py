"""The learning problem of a chain model: data in flat arrays, weights in matrices.

s(x, y) = Σ_t Σ_{f ∈ x_t} v_tf · node[f, y_t] + Σ_{t ≥ 1} S_t[y_{t-1}, y_t]

where S_t are the transitions, or the transitions and what the features at t add to them
(:mod:`trellis.objectives.edge_weights`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Labels
from trellis.decompose import Pieces
from trellis.features import Encoded
from trellis.objectives.edge_weights import EdgeWeights

__all__ = ["ChainData", "ChainWeights", "Visits"]


@dataclass
class ChainWeights:
    """Weights of a chain model: node (F, L), transitions (L, L), and rich edges if it has any."""

    node: NDArray[Any]
    transitions: NDArray[Any]
    edge: EdgeWeights | None = None

    @classmethod
    def zeros(cls, n_features: int, n_labels: int, dtype: Any = np.float32) -> ChainWeights:
        """All weights zero, without rich edges."""
        return cls(np.zeros((n_features, n_labels), dtype), np.zeros((n_labels, n_labels), dtype))

    def arrays(self) -> tuple[NDArray[Any], ...]:
        """The arrays of weights: node, transitions and, if there are any, edge values."""
        both = (self.node, self.transitions)
        return both if self.edge is None else (*both, self.edge.values)

    def map(self, function: Callable[[NDArray[Any]], NDArray[Any]]) -> ChainWeights:
        """Weights of the same shape with a function applied to each array."""
        node, transitions, *edge = (function(a) for a in self.arrays())
        return ChainWeights(
            node, transitions, None if self.edge is None else self.edge.like(edge[0])
        )

    def copy(self) -> ChainWeights:
        """Independent copy."""
        return self.map(np.copy)

    def zeros_like(self, dtype: Any) -> ChainWeights:
        """Weights of the same shape, all zero."""
        return self.map(lambda a: np.zeros(a.shape, dtype))

    def finite(self) -> bool:
        """Whether all weights are finite."""
        return all(bool(np.isfinite(a).all()) for a in self.arrays())

    def grown(self, n_features: int) -> ChainWeights:
        """The same weights with room for more features (new ones zero, and not crossed)."""
        more = n_features - len(self.node)
        if more <= 0:
            return self
        new = np.zeros((more, self.node.shape[1]), self.node.dtype)
        edge = self.edge
        if edge is not None:
            edge = replace(edge, row=np.append(edge.row, np.full(more, -1, np.int32)))
        return ChainWeights(np.concatenate([self.node, new]), self.transitions, edge)

    def squared_norm(self) -> float:
        """‖w‖² over all weights, summed in float64 without a float64 copy of the weights."""
        return sum(
            float(np.square(flat[i : i + 65536], dtype=np.float64).sum())
            for flat in (a.ravel() for a in self.arrays())
            for i in range(0, flat.size, 65536)
        )


@dataclass(frozen=True)
class Visits:
    """Pieces in the order of visiting: positions [start, end) and a weight each."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    weights: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, part: slice) -> Visits:
        return Visits(self.starts[part], self.ends[part], self.weights[part])

    def repeated(self, times: int) -> Visits:
        """The same visits several times over."""
        return Visits(
            np.tile(self.starts, times), np.tile(self.ends, times), np.tile(self.weights, times)
        )

    def largest_batch(self, size: int, total: NDArray[np.int64] | None = None) -> int:
        """Most positions in a batch of ``size`` consecutive pieces.

        With ``total`` (N + 1,), a running sum over positions: the most of what it sums.
        """
        if not len(self):
            return 0
        amount = self.ends - self.starts if total is None else total[self.ends] - total[self.starts]
        return int(np.add.reduceat(amount, np.arange(0, len(self), size)).max())

    def blocks(self, positions: int) -> list[slice]:
        """Consecutive parts with about so many positions each."""
        total = np.cumsum(self.ends - self.starts)
        if not len(total):
            return []
        marks = np.arange(positions, total[-1] + positions, positions)
        bounds = np.unique(np.append(0, np.searchsorted(total, marks, side="left") + 1))
        bounds = np.minimum(bounds, len(total))
        return [slice(int(a), int(b)) for a, b in itertools.pairwise(bounds) if a < b]


@dataclass(frozen=True)
class ChainData:
    """Encoded features, label sets and a weight for each sample."""

    encoded: Encoded
    labels: Labels
    sample_weight: NDArray[np.float64]

    @property
    def n_labels(self) -> int:
        """Number of labels L."""
        return len(self.labels.classes)

    def arrays(
        self,
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
        """What every kernel takes first: indptr, indices, values, label ids, label-set table."""
        e = self.encoded
        return e.indptr, e.indices, e.values, self.labels.ids, self.labels.table

    def visits(self, pieces: Pieces, order: NDArray[np.int64] | None = None) -> Visits:
        """Pieces of this data in visiting order (as drawn, if none is given)."""
        starts, ends, sample = pieces.offsets[:-1], pieces.offsets[1:], pieces.sample
        if pieces.overlap:
            ends = np.minimum(ends + pieces.overlap, self.encoded.offsets[1:][sample])
        if order is not None:
            starts, ends, sample = starts[order], ends[order], sample[order]
        return Visits(starts, ends, self.sample_weight[sample])
