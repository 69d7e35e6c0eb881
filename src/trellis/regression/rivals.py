"""What a regression on graphs of a table is compared with: the plain and the usual, and fast.

    HGB          histogram gradient boosting of the numbers, scikit-learn's defaults
    forest       100 trees, half of the features at each split, at least 2 examples a leaf
    kriging      linear regression, and a Gaussian process (Matern 3/2 and noise) of its residuals
                 over the coordinates, given the 64 nearest
    neighbours   the weighted mean of the neighbours in the graph
    mean         that of the training targets

and, when asked for, all of :func:`trellis.regression.baselines`. A rival sees one *fold*.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from trellis.arrays import Float64s, Int64s
from trellis.regression.base_names import named_base
from trellis.regression.baselines import baselines
from trellis.regression.bases import threads_for
from trellis.regression.data import RegressionData
from trellis.regression.places import Places
from trellis.regression.similarity import KNN

__all__ = ["Fold", "Rival", "kriging", "rivals"]

_NEAR = 64  # points that local kriging is given
_TUNING = 400
Rival = Callable[["Fold"], tuple[Float64s, Float64s | None]]
"""Means of the rows to test, and standard deviations if it has any."""


@dataclass(frozen=True)
class Fold:
    """Rows as numbers, those to train on and those to test.

    Attributes
    ----------
    X : (n, d)
        Numbers of all rows, NaN where one is missing.
    y : (n,)
        Targets of all rows; nobody may look at those to test.
    train, test : arrays of int
    points : (n, c) or None
    places : Places or None
    graph : sparse (n, n) or None
        Similarities, where they are not made of coordinates.
    n_neighbors : int
    names : list of str
    regressors : tuple of int or None
        Numbers that are no coordinates.
    seed : int
    """

    X: Float64s
    y: Float64s
    train: Int64s
    test: Int64s
    points: Float64s | None
    places: Places | None
    graph: Any
    n_neighbors: int
    names: list[str]
    regressors: tuple[int, ...] | None
    seed: int

    def filled(self) -> Float64s:
        """Numbers without gaps: the means of the rows trained on stand there."""
        part = self.X[self.train]
        there = ~np.isnan(part)
        means = np.where(there, part, 0.0).sum(axis=0) / np.maximum(there.sum(axis=0), 1)
        return np.where(np.isnan(self.X), means, self.X)

    def pair(self) -> tuple[RegressionData, RegressionData]:
        """Training and test data as the baselines take them, each with a graph of its own."""
        X = self.filled()
        return self._part(X, self.train), self._part(X, self.test)

    def _part(self, X: Float64s, rows: Int64s) -> RegressionData:
        from scipy.sparse import csr_array

        metric = "euclidean" if self.places is None else self.places.metric
        points = None if self.points is None else self.points[rows]
        if self.graph is not None:
            graph = self.graph[rows][:, rows]
        elif points is None or len(rows) < 2:
            graph = csr_array((len(rows), len(rows)))
        else:
            graph = KNN(min(self.n_neighbors, len(rows) - 1), metric=metric)(points)
        return RegressionData(
            "the table", X[rows], self.y[rows], points, graph, tuple(self.names), metric,
            self.regressors,
        )  # fmt: skip

    def places_of(self) -> tuple[Float64s, Float64s]:
        """Where the rows to train on and those to test are, in coordinates of like scale."""
        assert self.points is not None
        points = self.points
        if self.places is not None and self.places.geographic:
            shrink = np.cos(np.radians(points[:, 0].mean()))
            points = points * np.array([1.0, max(shrink, 0.05)])
        spread = float(points[self.train].std(axis=0).max()) or 1.0
        return points[self.train] / spread, points[self.test] / spread


def rivals(
    *, coordinates: bool, n_components: int = 10, subsample: float = 0.3, all_of: bool = False
) -> dict[str, Rival]:
    """The table of rivals by name.

    Parameters
    ----------
    coordinates : bool
        Whether rows have coordinates, which kriging needs.
    n_components, subsample
        As of :func:`~trellis.regression.baselines`.
    all_of : bool
        Also the published baselines.

    Examples
    --------
    >>> list(rivals(coordinates=True))
    ['HGB', 'forest', 'kriging', 'neighbours', 'mean']
    """
    table: dict[str, Rival] = {"HGB": _Plain("hgb"), "forest": _Plain("forest")}
    if coordinates:
        table["kriging"] = kriging
    table |= {"neighbours": _neighbours, "mean": _mean}
    if all_of:
        published = baselines(n_components, subsample, coordinates=False, glacer=False)
        table |= {name: _Published(model) for name, model in published.items() if name != "HGB"}
    return table


@dataclass(frozen=True)
class _Plain:
    name: str

    def __call__(self, fold: Fold) -> tuple[Float64s, None]:
        model = named_base(self.name, fold.seed)
        with warnings.catch_warnings(), threads_for(len(fold.train)):
            warnings.simplefilter("ignore")
            model.fit(fold.X[fold.train], fold.y[fold.train])
            return np.asarray(model.predict(fold.X[fold.test]), dtype=np.float64), None


@dataclass(frozen=True)
class _Published:
    model: Any

    def __call__(self, fold: Fold) -> tuple[Float64s, None]:
        train, test = fold.pair()
        return np.asarray(self.model(train, test, fold.seed), dtype=np.float64), None


def _mean(fold: Fold) -> tuple[Float64s, Float64s]:
    y = fold.y[fold.train]
    return np.full(len(fold.test), y.mean()), np.full(len(fold.test), y.std())


def _neighbours(fold: Fold) -> tuple[Float64s, None]:
    """The weighted mean of neighbours; the plain mean where a row has none."""
    y = fold.y[fold.train]
    if fold.graph is not None:
        links = fold.graph[fold.test][:, fold.train]
    else:
        assert fold.points is not None and fold.places is not None
        few = max(1, min(fold.n_neighbors, len(y) - 1))
        nearest = KNN(few, metric=fold.places.metric)
        points = fold.points[fold.train]
        nearest = KNN(few, metric=fold.places.metric, scale=nearest.unit(points))
        links = nearest.links(fold.points[fold.test], points)
    weight = np.asarray(links.sum(axis=1)).ravel()
    sums = links @ y
    return np.where(weight > 0, sums / np.where(weight > 0, weight, 1.0), y.mean()), None


def kriging(fold: Fold) -> tuple[Float64s, Float64s]:
    """Kriging of a linear regression's residuals, with standard deviations.

    The variance, the noise and the range are those of greatest likelihood on at most 400 rows;
    each row is then predicted given its 64 nearest.
    """
    from scipy.spatial import KDTree
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
    from sklearn.linear_model import LinearRegression

    columns = slice(None) if fold.regressors is None else list(fold.regressors)
    X, y = fold.filled()[:, columns], fold.y[fold.train]
    linear = LinearRegression().fit(X[fold.train], y)
    residuals = y - linear.predict(X[fold.train])
    C, C_new = fold.places_of()
    variance = float(residuals.var()) or 1.0
    within = (1e-6 * variance, 1e3 * variance)
    smooth = ConstantKernel(variance / 2, within) * Matern(0.3, (1e-3, 1e2), nu=1.5)
    few = np.random.default_rng(fold.seed).permutation(len(C))[:_TUNING]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = smooth + WhiteKernel(variance / 2, within)
        tuned = GaussianProcessRegressor(start).fit(C[few], residuals[few]).kernel_
    part, noise = tuned.k1, float(tuned.k2.noise_level)
    k = min(_NEAR, len(C))
    near = KDTree(C).query(C_new, k=k)[1].reshape(len(C_new), k)
    mean, std = np.empty(len(C_new)), np.empty(len(C_new))
    sill = float(part.k1.constant_value)
    for i, rows in enumerate(near):
        K = part(C[rows]) + noise * np.eye(k)
        c = part(C[rows], C_new[i : i + 1]).ravel()
        weights = np.linalg.solve(K, np.column_stack([residuals[rows], c]))
        mean[i] = c @ weights[:, 0]
        std[i] = np.sqrt(max(sill - c @ weights[:, 1], 0.0) + noise)
    return linear.predict(X[fold.test]) + mean, std
