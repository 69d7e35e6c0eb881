"""The training data of a chain model in flat arrays, and the pieces of a pass.

s(x, y) = Σ_t Σ_{f ∈ x_t} v_tf · node[f, y_t] + Σ_{t ≥ 1} S_t[y_{t-1}, y_t]

where S_t are the transitions, or the transitions and what the features at t add to them
(:mod:`trellis.objectives.edge_weights`).
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

__all__ = ["ChainData", "Visits"]


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

    def arguments(self) -> Any:
        """The pieces as kernels take them (:class:`trellis.kernels.visits.Pieces`)."""
        from trellis.kernels.visits import Pieces

        return Pieces(self.starts, self.ends, self.weights)

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

    def arguments(self) -> tuple[Any, Any]:
        """What every kernel takes first: the features, and the sets of labels of the positions."""
        from trellis.kernels.scoring import Features
        from trellis.kernels.visits import LabelSets

        e = self.encoded
        return (
            Features(e.indptr, e.indices, e.values),
            LabelSets(self.labels.ids, self.labels.table),
        )

    def identity(self) -> tuple[NDArray[Any], ...]:
        """Everything that tells these data from others."""
        e = self.encoded
        return (
            e.indptr, e.indices, e.values, self.labels.ids, self.labels.table, e.offsets,
            self.sample_weight,
        )  # fmt: skip

    def visits(self, pieces: Pieces, order: NDArray[np.int64] | None = None) -> Visits:
        """Pieces of this data in visiting order (as drawn, if none is given)."""
        starts, ends, sample = pieces.offsets[:-1], pieces.offsets[1:], pieces.sample
        if pieces.overlap:
            ends = np.minimum(ends + pieces.overlap, self.encoded.offsets[1:][sample])
        if order is not None:
            starts, ends, sample = starts[order], ends[order], sample[order]
        return Visits(starts, ends, self.sample_weight[sample])
