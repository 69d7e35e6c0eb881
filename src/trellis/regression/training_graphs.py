"""The graphs of training rows: matrices, or what makes them, and the scale of each.

Similarities S_l of n training nodes are multiplied by f_l = n / sum(S_l), so that nodes have a
weighted degree of 1 on average. f_l is part of the model: rows that are predicted later have edges
that are multiplied by the same number, however many rows there are. Only as published
(``own=False``) every graph is scaled by itself.

A graph that a :class:`KNN`, :class:`Radius` or :class:`Full` makes can be joined by new rows
(:mod:`trellis.regression.joining`). Of its neighbours, the training nodes j, a new node i then
needs two sums,

    w_i = sum_l gamma_l sum_j f_l S_l,ij        sum_l gamma_l sum_j f_l S_l,ij (y_j - R_j rho).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trellis.arrays import Float64s
from trellis.errors import CorruptModelError, DataError
from trellis.files.stored import check_range, header_value, take
from trellis.regression.graph_matrix import check_graph, laplacian, normalise
from trellis.regression.joining import Joining, can_join
from trellis.regression.similarity import points_of

__all__ = ["TrainingGraphs"]

_FARTHEST_FACTOR = 1e300


@dataclass(frozen=True)
class TrainingGraphs:
    """What a model keeps of the graphs it was trained on.

    Attributes
    ----------
    n : int
        Training nodes.
    factors : (B,)
        f_l.
    joinings : tuple of Joining or None
        How new rows join a graph; None for a matrix, and for a function that is no builder.
    points : (n, c) or None
        Coordinates, for functions that are no builders.
    own : bool
        Whether the model has a scale of its own; else each graph is scaled by itself.
    apart : bool
        Whether coordinates were given beside X.
    """

    n: int
    factors: Float64s
    joinings: tuple[Joining | None, ...]
    points: Float64s | None
    own: bool
    apart: bool

    @classmethod
    def of(
        cls, source: Any, X: Any, y: Float64s, coords: Any, *, own: bool
    ) -> tuple[Any, Float64s, TrainingGraphs, list[Any]]:
        """Return the rows that are nodes, their targets, what is kept, and the matrices.

        Rows without target are no nodes of graphs that are made from coordinates: rows that ask
        for a prediction are not joined to each other.
        """
        from sklearn.utils import _safe_indexing

        makers = _makers(source)
        if all(callable(maker) for maker in makers):
            places = X if coords is None else coords
            _check_rows(places, len(y), coords is None)
            known = np.flatnonzero(~np.isnan(y))
            if len(known) < len(y):
                X, places, y = _safe_indexing(X, known), _safe_indexing(places, known), y[known]
        elif coords is not None:
            raise DataError("coords are for builders such as KNN(); a graph is given as a matrix")
        else:
            places = X
        joinings: list[Joining | None] = []
        matrices = []
        points = None
        for maker in makers:
            joining = Joining.of(maker, places) if own and can_join(maker) else None
            if joining is not None:
                matrices.append(joining.graph())
            elif callable(maker):
                matrices.append(check_graph(maker(places), len(y)))
                points = points_of(places, None) if own else None
            else:
                matrices.append(check_graph(maker, len(y)))
            joinings.append(joining)
        totals = np.array([float(S.sum()) for S in matrices])
        factors = np.where(totals > 0, len(y) / np.where(totals > 0, totals, 1.0), 1.0)
        kept = cls(len(y), factors, tuple(joinings), points, own, coords is not None)
        return X, y, kept, matrices

    def check_coords(self, coords: Any) -> None:
        """Refuse coordinates where `fit` had none, and the other way round."""
        if self.apart and coords is None:
            raise DataError("fit was given coords; give coords of these rows, too")
        if not self.apart and coords is not None:
            told = "the graph as a matrix, or coordinates in X"
            raise DataError(f"fit was given no coords, but {told}; give these rows in the same way")

    @property
    def can_join(self) -> bool:
        """Whether new rows can join all graphs."""
        return all(joining is not None for joining in self.joinings)

    @property
    def places(self) -> tuple[Float64s, bool]:
        """Coordinates of the training nodes, and whether they are degrees; of the first graph."""
        joining = self.joinings[0]
        assert joining is not None
        return joining.points, joining.builder.metric == "haversine"

    def laplacians(self, matrices: Sequence[Any], nodes: Any = None) -> list[Any]:
        """The scaled Laplacians of graphs, or of some nodes among themselves."""
        if nodes is not None:
            matrices = [S[nodes][:, nodes] for S in matrices]
        if not self.own:
            return [laplacian(normalise(S)) for S in matrices]
        return [laplacian((f * S).tocsr()) for f, S in zip(self.factors, matrices, strict=True)]

    def of_rows(self, source: Any, X: Any, coords: Any, m: int) -> list[Any]:
        """The graphs of m rows alone, or of the training nodes and these after them."""
        makers = _makers(source)
        if len(makers) != len(self.factors):
            raise DataError(f"the model has {len(self.factors)} graph(s), got {len(makers)}")
        places = X if coords is None else coords
        sizes = {np.shape(maker)[:1] for maker in makers if not callable(maker)}
        whole = self.own and (self.n + m,) in sizes
        matrices = []
        for maker, joining in zip(makers, self.joinings, strict=True):
            S = maker
            if callable(maker):
                _check_rows(places, m, coords is None)
                if joining is not None:
                    points = joining.places(places)
                    S = joining.whole(points) if whole else joining.builder(points)
                elif self.points is not None:
                    S = maker(np.vstack([self.points, points_of(places, None)]))
                else:
                    S = maker(places)
            rows = self.n + m if self.own and np.shape(S)[:1] == (self.n + m,) else m
            matrices.append(check_graph(S, rows))
        if len({S.shape for S in matrices}) > 1:
            raise DataError(
                "the graphs have different numbers of nodes; give all of them with the training"
                " rows, or all without"
            )
        return matrices

    def pulls(
        self,
        places: Any,
        unknown: npt.NDArray[np.bool_],
        twins: npt.NDArray[np.intp],
        e: tuple[Float64s, Float64s],
        gamma: Float64s,
    ) -> tuple[Float64s, Float64s]:
        """Return w, and what w weighs, for the unknown among some rows.

        Parameters
        ----------
        places : table of m rows
        unknown : (m,)
            Rows whose target is not known; they are joined to the training nodes and to the others.
        twins : (m,)
            Which training node a known row is, -1 for none.
        e : (n,), and one for each known row
        gamma : (B,)
        """
        known = np.flatnonzero(~unknown)
        if unknown.sum() == 0:
            return np.empty(0), np.empty(0)
        weight, pull = np.zeros(int(unknown.sum())), np.zeros(int(unknown.sum()))
        for joining, factor, g in zip(self.joinings, self.factors, gamma, strict=True):
            assert joining is not None
            points = joining.places(places)
            if len(points) != len(unknown):
                raise DataError(f"coords have {len(points)} rows, X has {len(unknown)}")
            if g == 0:
                continue
            twin = twins[known]
            same = (twin >= 0) & (joining.points[twin] == points[known]).all(axis=1)
            more = known[~same]
            whole = joining.extended(points[more]) if len(more) else joining
            W = whole.links(points[unknown]) * (factor * g)
            weight += np.asarray(W.sum(axis=1)).ravel()
            pull += W @ np.concatenate([e[0], e[1][~same]])
        return weight, pull

    def between(
        self,
        left: npt.NDArray[np.intp],
        kept: npt.NDArray[np.intp],
        e: Float64s,
        gamma: Float64s,
    ) -> tuple[Float64s, Float64s]:
        """Return the same two for training nodes that join others as if they were new."""
        weight, pull = np.zeros(len(left)), np.zeros(len(left))
        for joining, factor, g in zip(self.joinings, self.factors, gamma, strict=True):
            assert joining is not None
            if g > 0:
                W = joining.among(kept).links(joining.points[left]) * (factor * g)
                weight += np.asarray(W.sum(axis=1)).ravel()
                pull += W @ e[kept]
        return weight, pull

    def state(self) -> dict[str, Any]:
        """What a file holds."""
        if self.points is not None:
            raise DataError(
                "the graph is made by a function, which a model file cannot hold; KNN, Radius and"
                " Full can be"
            )
        joinings = [None if j is None else j.state() for j in self.joinings]
        return {
            "n": self.n, "factors": self.factors, "joinings": joinings, "own": self.own,
            "apart": self.apart,
        }  # fmt: skip

    @classmethod
    def restored(cls, state: Mapping[str, Any], n_graphs: int) -> TrainingGraphs:
        """Undo :meth:`state`, checking everything."""
        n = header_value(state, "n", int, low=1)
        factors = take(state, "factors", np.float64, (n_graphs,))
        check_range(factors, np.nextafter(0, 1), _FARTHEST_FACTOR, "factors of graphs")
        stored = header_value(state, "joinings", list)
        if len(stored) != n_graphs:
            raise CorruptModelError("there is not one entry for each graph")
        joinings = tuple(None if one is None else Joining.restored(one, n) for one in stored)
        own, apart = (header_value(state, name, bool) for name in ("own", "apart"))
        return cls(n, factors, joinings, None, own, apart)


def _makers(source: Any) -> list[Any]:
    """Matrices and functions, as they were given."""
    if source is None:
        raise DataError(
            "no graph: pass coords=, graph=S (similarities of the rows of X), or a builder such as"
            " KNN() for coordinates in X"
        )
    makers = list(source) if isinstance(source, (list, tuple)) else [source]
    if makers and all(np.ndim(maker) <= 1 and not callable(maker) for maker in makers):
        return [source]  # a matrix as lists of numbers
    if not makers:
        raise DataError("graph is a list without a graph; give one at least")
    return makers


def _check_rows(places: Any, n: int, from_x: bool) -> None:
    rows = places.shape[0] if hasattr(places, "shape") else len(places)
    if rows != n:
        name = "X has" if from_x else "coords have"
        raise DataError(f"{name} {rows} rows; expected one for each of the {n} rows")
