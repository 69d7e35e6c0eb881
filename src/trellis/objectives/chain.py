"""The learning problem of a chain model: data in flat arrays, weights in two matrices.

s(x, y) = Σ_t Σ_{f ∈ x_t} v_tf · node[f, y_t] + Σ_{t ≥ 1} transitions[y_{t-1}, y_t]
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Labels
from trellis.decompose import Pieces
from trellis.features import Encoded

__all__ = ["ChainData", "ChainWeights", "Visits"]


@dataclass
class ChainWeights:
    """Weights of a chain model: node (F, L) and transitions (L, L)."""

    node: NDArray[Any]
    transitions: NDArray[Any]

    @classmethod
    def zeros(cls, n_features: int, n_labels: int, dtype: Any = np.float32) -> ChainWeights:
        """All weights zero."""
        return cls(np.zeros((n_features, n_labels), dtype), np.zeros((n_labels, n_labels), dtype))

    def copy(self) -> ChainWeights:
        """Independent copy."""
        return ChainWeights(self.node.copy(), self.transitions.copy())

    def grown(self, n_features: int) -> ChainWeights:
        """The same weights with room for more features (new ones zero)."""
        more = n_features - len(self.node)
        if more <= 0:
            return self
        new = np.zeros((more, self.node.shape[1]), self.node.dtype)
        return ChainWeights(np.concatenate([self.node, new]), self.transitions)

    def squared_norm(self) -> float:
        """‖w‖² over both matrices, summed in float64 without a float64 copy of the weights."""
        node = self.node.ravel()
        total = sum(
            float(np.square(node[i : i + 65536], dtype=np.float64).sum())
            for i in range(0, node.size, 65536)
        )
        return total + float(np.square(self.transitions, dtype=np.float64).sum())


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
        if order is not None:
            starts, ends, sample = starts[order], ends[order], sample[order]
        return Visits(starts, ends, self.sample_weight[sample])
