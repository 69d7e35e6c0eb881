"""Numbers at the nodes of a graph, with what is known of the nodes: the data of regression."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trellis.arrays import Float64s, as_array
from trellis.domains import whole
from trellis.errors import DataError
from trellis.regression.similarity import KNN

__all__ = ["RegressionData"]


@dataclass(frozen=True)
class RegressionData:
    """Nodes with features, a target and, where known, coordinates and a graph.

    Attributes
    ----------
    name : str
    X : array of shape (n, d)
    y : array of shape (n,)
    coords : array of shape (n, c) or None
        What distances between nodes are measured on.
    graph : sparse matrix of shape (n, n) or None
        Similarities.
    feature_names : tuple of str
    metric : "euclidean", "manhattan" or "haversine"
        Distance of coordinates.
    regressors : tuple of int or None
        Columns of X that say something besides where a node is; None: all.

    Examples
    --------
    >>> from trellis.datasets import synthetic_graph_regression
    >>> train, test = synthetic_graph_regression(60, 40, random_state=0)
    >>> train.X.shape, test.graph.shape, train.subset(range(6)).y.shape
    ((60, 5), (40, 40), (6,))
    """

    name: str
    X: Float64s
    y: Float64s
    coords: Float64s | None
    graph: Any
    feature_names: tuple[str, ...]
    metric: str = "euclidean"
    regressors: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "y", as_array(self.y, np.float64, "y", (None,)))

    def subset(self, nodes: ArrayLike) -> RegressionData:
        """The data of some nodes, with the edges among them."""
        chosen = np.asarray(nodes)
        return replace(
            self,
            X=self.X[chosen],
            y=self.y[chosen],
            coords=None if self.coords is None else self.coords[chosen],
            graph=None if self.graph is None else self.graph[chosen][:, chosen],
        )

    def with_graph(self, build: Callable[[Float64s], Any] | None = None) -> RegressionData:
        """The same data with the graph that a function of the coordinates makes.

        By default five nearest neighbours and weights e^(−distance), as published.
        """
        if self.coords is None:
            raise DataError(f"{self.name} has no coordinates to make a graph of")
        make: Any = self._published() if build is None else build
        return replace(self, graph=make(self.coords))

    def _published(self) -> KNN:
        metric: Any = self.metric  # a str
        return KNN(metric=metric, scale=None)

    def split(
        self, n_train: int, random_state: int | np.random.Generator = 0
    ) -> tuple[RegressionData, RegressionData]:
        """Random training part of ``n_train`` nodes and the rest; edges between them are lost."""
        n = len(self.y)
        whole(1, n - 1).check("n_train", n_train)
        order = np.random.default_rng(random_state).permutation(n)
        return self.subset(order[:n_train]), self.subset(order[n_train:])
