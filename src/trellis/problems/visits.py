"""The pieces of a pass in the order in which they are visited.

A piece of a chain is a run of positions; a piece of a tree or graph is a run of places in a list of
nodes, with the edges that it keeps.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import check_in_place, for_kernels
from trellis.structures.forest import Forest

__all__ = ["GraphVisits", "Visits", "check_state"]


def check_state(state: Any, n: int) -> None:
    """Refuse what cannot count visits in place."""
    check_in_place(state, (n,), np.float64, "state")


@dataclass(frozen=True)
class Visits:
    """Pieces in the order of visiting: positions [start, end) and a weight each."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    weights: NDArray[np.float64]

    _by_piece: ClassVar[tuple[str, ...]] = ("starts", "ends", "weights")

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, part: slice) -> Self:
        return self._each(lambda a: a[part])

    def repeated(self, times: int) -> Self:
        """The same visits several times over."""
        return self._each(lambda a: np.tile(a, times))

    def _each(self, change: Callable[[NDArray[Any]], NDArray[Any]]) -> Self:
        """The same with every array that has an entry for each piece changed."""
        arrays = {name: getattr(self, name) for name in self._by_piece}
        return replace(self, **{name: change(a) for name, a in arrays.items() if a is not None})

    def arguments(self) -> Any:
        """The pieces as kernels take them (:class:`trellis.kernels.visits.Pieces`)."""
        from trellis.kernels.visits import Pieces

        return Pieces(*map(for_kernels, (self.starts, self.ends, self.weights)))

    def total(self, values: NDArray[np.float64]) -> float:
        """Weighted sum of values (N,) over all positions visited."""
        running = np.append(0.0, np.cumsum(values))
        return float(self.weights @ (running[self.ends] - running[self.starts]))

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
class GraphVisits(Visits):
    """Pieces of graphs in the order of visiting.

    [start, end) of a piece are places in ``nodes``. Either the pieces are trees, in ``forest``, or
    they have the edges ``kept[kept_starts[k]:kept_ends[k]]``.
    """

    nodes: NDArray[np.int64]
    forest: Forest | None = None
    kept: NDArray[np.int64] | None = None
    kept_starts: NDArray[np.int64] | None = None
    kept_ends: NDArray[np.int64] | None = None

    _by_piece: ClassVar[tuple[str, ...]] = (*Visits._by_piece, "kept_starts", "kept_ends")

    def total(self, values: NDArray[np.float64]) -> float:
        """Weighted sum of values (N,) over all positions visited."""
        return super().total(values[self.nodes])
