"""A Gaussian CRF or GLACER of rows of numbers, wherever the graph of the rows comes from.

The two differ in what they take: a Gaussian CRF missing numbers, and rows without a target among
those of a graph; GLACER rows with a target and all their numbers, and the graph among them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from trellis.arrays import Float64s, Int64s
from trellis.regression.bases import predictions
from trellis.regression.glacer import GLACER
from trellis.regression.similarity import KNN, Metric

__all__ = ["Answer", "NodeModel"]


@dataclass(frozen=True)
class Answer:
    """What is predicted, how sure the model is, and what its base says without neighbours."""

    mean: Float64s
    std: Float64s
    base: Float64s

    def subset(self, rows: Int64s) -> Answer:
        """Of some rows."""
        return Answer(self.mean[rows], self.std[rows], self.base[rows])


@dataclass(frozen=True, repr=False)
class NodeModel:
    """A fitted model, and what fills missing numbers.

    Attributes
    ----------
    model : GCRF or GLACER
    of_places : bool
        Whether its graph is made of coordinates; else graphs are given.
    fill : (d,) array
        Means of the numbers over training.
    """

    model: Any
    of_places: bool
    fill: Float64s

    def __repr__(self) -> str:
        return repr(self.model)

    @classmethod
    def fitted(
        cls,
        model: Any,
        X: Float64s,
        y: Float64s,
        *,
        points: Float64s | None = None,
        metric: Metric = "euclidean",
        n_neighbors: int | None = None,
        graph: Any = None,
    ) -> Self:
        """Fit a model to rows with targets, NaN where there is none, and coordinates or a graph."""
        known = np.flatnonzero(~np.isnan(y))
        fill = _means(X[known])
        glacer = isinstance(model, GLACER)
        if graph is not None:
            if glacer:
                model.fit(_filled(X[known], fill), y[known], graph=graph.tocsr()[known][:, known])
            else:
                model.fit(X, y, graph=graph)
            return cls(model, False, fill)
        assert points is not None
        if n_neighbors is not None or (glacer and model.graph is None):
            nearest = KNN(metric=metric) if glacer else KNN(metric=metric, weight="inverse")
            wanted = nearest.n_neighbors if n_neighbors is None else n_neighbors
            nearest.set_params(n_neighbors=max(1, min(wanted, len(known) - 1)))
            model.set_params(graph=nearest)
        elif model.graph is None:
            model.set_params(metric=metric)
        rows = _filled(X[known], fill) if glacer else X[known]
        model.fit(rows, y[known], coords=points[known])
        return cls(model, True, fill)

    def answer(
        self,
        X: Float64s,
        *,
        points: Float64s | None = None,
        graph: Any = None,
        observed: Float64s | None = None,
    ) -> Answer:
        """Predict other rows, or all rows of a graph given the targets of some.

        A row without coordinates (NaN) keeps what the base says.
        """
        rows = _filled(X, self.fill) if isinstance(self.model, GLACER) else X
        if self.of_places and points is not None:
            lost = np.isnan(points).any(axis=1)
            mean, std = np.empty(len(X)), np.empty(len(X))
            if not lost.all():
                there = ~lost
                mean[there], std[there] = self.model.predict(
                    rows[there], coords=points[there], return_std=True
                )
            if lost.any():
                mean[lost], std[lost] = self._alone(rows[lost])
        else:
            mean, std = self.model.predict(rows, graph=graph, observed=observed, return_std=True)
        return Answer(mean, std, self.base(X))

    def _alone(self, rows: Float64s) -> tuple[Float64s, Float64s]:
        """Mean and standard deviation of rows that nobody is near to."""
        from scipy.sparse import csr_array

        empty = csr_array((len(rows), len(rows)))
        many = np.size(getattr(self.model, "beta_", 0.0))
        graph = [empty] * many if many > 1 else empty
        mean, std = self.model.predict(rows, graph=graph, return_std=True)
        return mean, std

    def base(self, X: Float64s) -> Float64s:
        """What the base model predicts without neighbours."""
        if isinstance(self.model, GLACER):
            every = predictions(self.model.models_, _filled(X, self.fill))
            return np.asarray(every.mean(axis=1), dtype=np.float64)
        return np.asarray(self.model.predict_base(X), dtype=np.float64)


def _means(X: Float64s) -> Float64s:
    there = ~np.isnan(X)
    sums = np.where(there, X, 0.0).sum(axis=0)
    return np.asarray(sums / np.maximum(there.sum(axis=0), 1), dtype=np.float64)


def _filled(X: Float64s, fill: Float64s) -> Float64s:
    return np.asarray(np.where(np.isnan(X), fill, X), dtype=np.float64)
