"""A graph of training rows that new rows are joined to, at the scale it was learnt at.

The unit that distances are divided by and the average weighted degree that similarities are divided
by are those of the training graph, for good: a model's parameters mean nothing at another scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from trellis.arrays import Float64s
from trellis.errors import CorruptModelError, DataError
from trellis.files.stored import header_value, take
from trellis.regression.graph_matrix import check_graph
from trellis.regression.similarity import FARTHEST, KNN, Full, Radius, points_of

__all__ = ["Joining", "can_join"]

Builder = KNN | Radius | Full


def can_join(builder: Any) -> bool:
    """Whether a graph's builder can join new rows to those of the graph."""
    return isinstance(builder, (KNN, Radius, Full))


@dataclass(frozen=True)
class Joining:
    """The nodes of a graph, and the builder that made it.

    Attributes
    ----------
    builder : KNN, Radius or Full
        Its `scale` is a number or None, and it takes all columns.
    columns : sequence or None
        The columns of users' tables that are coordinates.
    points : (n, c)
    """

    builder: Builder
    columns: Sequence[Any] | None
    points: Float64s

    @classmethod
    def of(cls, builder: Builder, coords: Any) -> Joining:
        """Fix the scale of a builder by some nodes, of which it takes as many as there are.

        Examples
        --------
        >>> Joining.of(KNN(1), [[0.0], [2.0], [3.0]]).builder.scale
        1.0
        """
        points = points_of(coords, builder.columns)
        plain = _like(builder, columns=None)
        if isinstance(plain, KNN):  # few nodes have few neighbours
            plain = _like(plain, n_neighbors=max(1, min(plain.n_neighbors, len(points) - 1)))
        if len(points) == 1:
            return cls(_like(plain, scale=1.0), builder.columns, points)
        return cls(_like(plain, scale=plain.unit(points)), builder.columns, points)

    def graph(self) -> Any:
        """The similarities of the nodes, (n, n)."""
        if len(self.points) == 1:
            return check_graph([[0.0]])
        return check_graph(self.builder(self.points))

    def places(self, coords: Any) -> Float64s:
        """Coordinates of other rows, checked."""
        points = points_of(coords, self.columns)
        if points.shape[1] != self.points.shape[1]:
            raise DataError(
                f"coordinates have {points.shape[1]} columns, those of the training rows"
                f" {self.points.shape[1]}"
            )
        return points

    def links(self, points: Float64s) -> Any:
        """The similarities of new nodes to these, (m, n), each as if it alone were new."""
        return self.builder.links(points, self.points, self._tree)

    def whole(self, points: Float64s) -> Any:
        """The similarities of the nodes and, after them, of new ones, each joined to the nodes."""
        import scipy.sparse as sp

        links = self.links(points)
        return sp.block_array([[self.graph(), links.T], [links, None]], format="csr")

    @cached_property
    def _tree(self) -> Any:
        return self.builder.tree(self.points)

    def extended(self, points: Float64s) -> Joining:
        """With more nodes, at the same scale."""
        return replace(self, points=np.vstack([self.points, points]))

    def among(self, nodes: npt.NDArray[np.intp]) -> Joining:
        """With some of the nodes only, at the same scale."""
        return replace(self, points=self.points[nodes])

    def state(self) -> dict[str, Any]:
        """What a file holds."""
        columns = None if self.columns is None else list(self.columns)
        return {"builder": self.builder, "columns": columns, "points": self.points}

    @classmethod
    def restored(cls, state: Any, n: int) -> Joining:
        """Undo :meth:`state`, checking everything."""
        if not isinstance(state, dict):
            raise CorruptModelError("a graph's nodes are not as they should be")
        builder: Any = state.get("builder")
        if not can_join(builder) or isinstance(builder.scale, str) or builder.columns is not None:
            raise CorruptModelError("a graph's builder is not as it should be")
        columns = state.get("columns")
        if columns is not None:
            header_value(state, "columns", list)
        points = take(state, "points", np.float64, (n, None))
        if not points.size or np.abs(points).max() > FARTHEST:
            raise CorruptModelError("a graph's nodes are not as they should be")
        return cls(builder, columns, points)


def _like(builder: Builder, **changes: Any) -> Builder:
    return type(builder)(**{**builder.get_params(deep=False), **changes})
