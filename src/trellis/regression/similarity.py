"""Similarity graphs: who is like whom.

A graph of n nodes is a sparse symmetric (n, n) matrix S of similarities, S_ij >= 0, S_ii = 0. Here
it is built from coordinates: an edge joins each node to its k nearest (:func:`knn_graph`), to all
within a radius (:func:`radius_graph`), or to all whose similarity reaches a threshold
(:func:`full_graph`). With d_ij the distance and s the `scale`, the weight of an edge is

    "exp"      e^(-d_ij / s)
    "inverse"  1 / (0.1 + d_ij / s)
    "binary"   1
    callable   weight(d_ij / s), on an array of distances

e^(-d) falls below the smallest number near d = 745, and long before that a far edge means nothing:
distances in metres or in raw attribute units need ``scale="median"`` (the median length of the
edges), ``"mean"`` or a number. Edges whose weight comes out as 0 are no edges; a warning says how
many.

A node without edges is *isolated*: it takes no part in smoothing and keeps its base prediction.

A matrix cannot be row-sliced by cross-validation; the builders :class:`KNN`, :class:`Radius` and
:class:`Full` make the graph of whatever rows a model is shown.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from trellis.arrays import as_array
from trellis.domains import anything, function, nothing, number, one_of, sequence_of, whole
from trellis.errors import DataError, ParameterError
from trellis.estimator import Estimator, old_arguments, parameter, renamed
from trellis.regression.graph_matrix import without_zeros
from trellis.regression.rows import finite_rows

__all__ = ["EARTH_KM", "KNN", "Full", "Radius", "full_graph", "knn_graph", "radius_graph"]

Weight = Literal["exp", "inverse", "binary"] | Callable[[np.ndarray], np.ndarray]
Metric = Literal["euclidean", "manhattan", "haversine"]
Scale = float | Literal["median", "mean"] | None
Columns = Sequence[Any] | None

WEIGHT: Any = parameter(
    one_of("exp", "inverse", "binary") | function,
    "Weight of an edge by its length: see the head of this module.",
    default="exp",
    kw_only=False,
)
METRIC: Any = parameter(
    one_of("euclidean", "manhattan", "haversine"),
    """Distance of coordinates; haversine takes degrees of latitude and longitude and is in
    kilometres.""",
    default="euclidean",
    kw_only=False,
)
SCALE: Any = parameter(
    nothing | one_of("median", "mean") | number(above=0),
    "What distances are divided by before weighting; None leaves them as they are.",
    default=None,
    kw_only=False,
)
SYMMETRISE: Any = parameter(
    one_of("max", "min", "mean"),
    """"max" keeps an edge if either end chose the other, "min" if both did, "mean" halves the
    weight of edges chosen by one end.""",
    default="max",
    kw_only=False,
)
COLUMNS: Any = parameter(
    nothing | sequence_of(anything, "a list such as ['lat', 'lon']"),
    "The columns of the coordinates to use: names for a DataFrame, numbers for an array.",
    default=None,
    kw_only=False,
)

EARTH_KM = 6371.0088
_FAR = 1e150  # as far as squares of distances go
_BLOCK = 1 << 22  # entries of a block of the full distance matrix


@old_arguments(k="n_neighbors")
def knn_graph(
    coords: Any,
    n_neighbors: int = 5,
    *,
    weight: Weight = "exp",
    metric: Metric = "euclidean",
    scale: Scale = None,
    symmetrise: Literal["max", "min", "mean"] = "max",
    columns: Columns = None,
) -> Any:
    """Join every node to its k nearest.

    Parameters
    ----------
    coords : array of shape (n, d), or a DataFrame
        Where the nodes are. For ``metric="haversine"`` two columns: latitude and longitude in
        degrees; distances are then in kilometres.
    n_neighbors, weight, metric, scale, symmetrise, columns
        As of the builder :class:`KNN`.

    Returns
    -------
    scipy.sparse.csr_array
        The symmetric similarities, (n, n), with empty diagonal.

    Raises
    ------
    DataError
        If a coordinate is missing or infinite, or `n_neighbors` is not between 1 and n - 1.

    Examples
    --------
    >>> S = knn_graph([[0.0], [1.0], [3.0]], n_neighbors=1)
    >>> S.toarray().round(3)
    array([[0.   , 0.368, 0.   ],
           [0.368, 0.   , 0.135],
           [0.   , 0.135, 0.   ]])
    """
    points = _points(coords, columns)
    n, k = len(points), n_neighbors
    if not whole(1, n - 1).accepts(k):
        wanted = f"an integer from 1 to {n - 1} (there are {n} nodes)"
        raise ParameterError("n_neighbors", k, wanted)
    SYMMETRISE.domain.check("symmetrise", symmetrise)
    tree, norm, to_distance = _tree(points, metric)
    distance, neighbour = tree.query(tree.data, k=k + 1, p=norm)
    # A node need not be the first of its own neighbours when others lie on the same spot.
    itself = neighbour == np.arange(n)[:, None]
    itself[~itself.any(axis=1), k] = True
    rows = np.repeat(np.arange(n), k)
    lengths = to_distance(distance[~itself])
    directed = _weighted(rows, neighbour[~itself], lengths, n, weight, scale)
    other = directed.T.tocsr()
    if symmetrise == "max":
        return directed.maximum(other)
    if symmetrise == "min":
        return without_zeros(directed.minimum(other))
    return (directed + other) * 0.5


def radius_graph(
    coords: Any,
    radius: float,
    *,
    weight: Weight = "exp",
    metric: Metric = "euclidean",
    scale: Scale = None,
    columns: Columns = None,
) -> Any:
    """Join all nodes that are at most `radius` apart (kilometres for ``metric="haversine"``).

    The other parameters and the result are those of :func:`knn_graph`.

    Examples
    --------
    >>> radius_graph([[0.0], [1.0], [3.0]], radius=1.5, weight="binary").toarray()
    array([[0., 1., 0.],
           [1., 0., 0.],
           [0., 0., 0.]])
    """
    points = _points(coords, columns)
    number(above=0).check("radius", radius)
    tree, norm, to_distance = _tree(points, metric)
    limit = float(radius)
    if metric == "haversine":  # the tree holds points of the unit sphere: arc to chord
        limit = 2 * np.sin(min(limit / EARTH_KM, np.pi) / 2)
    # The arc is an arc sine away from the chord: a hair's breadth more, then cut exactly.
    limit = min(limit * (1 + 1e-9), _FAR)
    near = tree.sparse_distance_matrix(tree, limit, p=norm, output_type="ndarray")
    lengths = to_distance(near["v"])
    keep = (near["i"] != near["j"]) & (lengths <= radius)
    return _weighted(near["i"][keep], near["j"][keep], lengths[keep], len(points), weight, scale)


def full_graph(
    coords: Any,
    threshold: float = 0.0,
    *,
    weight: Weight = "exp",
    metric: Metric = "euclidean",
    scale: Scale = None,
    columns: Columns = None,
) -> Any:
    """Join all nodes whose similarity is at least `threshold` (and above 0).

    All n(n - 1)/2 distances are looked at. The other parameters and the result are those of
    :func:`knn_graph`; ``scale="median"`` is here the median over all pairs.

    Examples
    --------
    >>> full_graph([[0.0], [1.0], [3.0]], threshold=0.1).nnz
    4
    """
    from scipy.spatial.distance import cdist

    points = _points(coords, columns)
    n = len(points)
    number(at_least=0).check("threshold", threshold)
    tree, norm, to_distance = _tree(points, metric)
    data = np.asarray(tree.data)
    kind: Literal["cityblock", "euclidean"] = "cityblock" if norm == 1 else "euclidean"

    def block(start: int, stop: int) -> np.ndarray:
        return to_distance(cdist(data[start:stop], data, kind))

    height = max(1, _BLOCK // n)
    starts = range(0, n, height)
    unit = scale
    if isinstance(scale, str):
        upper = [block(s, s + height)[_above_diagonal(s, height, n)] for s in starts]
        unit = _scale_of(np.concatenate(upper), scale)
    rows, cols, kept = [], [], []
    for start in starts:
        lengths = block(start, start + height)
        i, j = np.nonzero(_above_diagonal(start, height, n))
        weights = _weights(lengths[i, j], weight, unit)
        keep = (weights >= threshold) & (weights > 0)
        rows.append(i[keep] + start)
        cols.append(j[keep])
        kept.append(weights[keep])
    upper_half = _csr(np.concatenate(rows), np.concatenate(cols), np.concatenate(kept), n)
    return upper_half + upper_half.T.tocsr()


class KNN(Estimator):
    """A builder: called with coordinates, it gives their :func:`knn_graph`.

    Examples
    --------
    >>> KNN(n_neighbors=1, columns=[1])([[9.0, 0.0], [7.0, 1.0], [8.0, 3.0]]).nnz
    4
    """

    n_neighbors: int = parameter(
        whole(1), "Nearest nodes that each is joined to.", default=5, kw_only=False, option="--knn"
    )
    weight: Weight = WEIGHT
    metric: Metric = METRIC
    scale: Scale = SCALE
    symmetrise: Literal["max", "min", "mean"] = SYMMETRISE
    columns: Columns = COLUMNS
    k = renamed("n_neighbors")

    def __call__(self, coords: Any) -> Any:
        """Build the graph of these nodes."""
        return knn_graph(coords, **self.get_params(deep=False))


class Radius(Estimator):
    """A builder: called with coordinates, it gives their :func:`radius_graph`.

    Examples
    --------
    >>> Radius(1.5)([[0.0], [1.0], [3.0]]).nnz
    2
    """

    radius: float = parameter(number(above=0), "Greatest distance of joined nodes.", kw_only=False)
    weight: Weight = WEIGHT
    metric: Metric = METRIC
    scale: Scale = SCALE
    columns: Columns = COLUMNS

    def __call__(self, coords: Any) -> Any:
        """Build the graph of these nodes."""
        return radius_graph(coords, **self.get_params(deep=False))


class Full(Estimator):
    """A builder: called with coordinates, it gives their :func:`full_graph`.

    Examples
    --------
    >>> Full(threshold=0.1)([[0.0], [1.0], [3.0]]).nnz
    4
    """

    threshold: float = parameter(
        number(at_least=0), "Least similarity of joined nodes.", default=0.0, kw_only=False
    )
    weight: Weight = WEIGHT
    metric: Metric = METRIC
    scale: Scale = SCALE
    columns: Columns = COLUMNS

    def __call__(self, coords: Any) -> Any:
        """Build the graph of these nodes."""
        return full_graph(coords, **self.get_params(deep=False))


def _points(coords: Any, columns: Columns) -> npt.NDArray[np.float64]:
    """Return the coordinates as (n, d) floats; whatever offers ``to_numpy`` is a table."""
    COLUMNS.domain.check("columns", columns)
    try:
        if hasattr(coords, "to_numpy"):
            points = (coords if columns is None else coords[list(columns)]).to_numpy()
        else:
            points = coords if columns is None else np.asarray(coords)[:, list(columns)]
    except (TypeError, ValueError, KeyError, IndexError) as error:
        raise DataError(f"cannot take coordinates from these columns: {error}") from error
    rows = finite_rows(points, "the coordinates", flat=True)
    if np.abs(rows).max() > _FAR:
        raise DataError(f"coordinates are beyond {_FAR:.0e}: their squares overflow")
    return rows


def _tree(
    points: np.ndarray, metric: Metric
) -> tuple[Any, float, Callable[[np.ndarray], np.ndarray]]:
    """Return a k-d tree, the norm to query it with and the way from its distances to the metric."""
    from scipy.spatial import KDTree

    METRIC.domain.check("metric", metric)
    if metric == "euclidean":
        return KDTree(points), 2, lambda d: d
    if metric == "manhattan":
        return KDTree(points), 1, lambda d: d
    if points.shape[1] != 2 or np.abs(points[:, 0]).max() > 90:
        raise DataError(
            "haversine distances need two columns, latitude (-90 to 90) and longitude in degrees"
        )
    lat, lon = np.radians(points).T
    sphere = np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=1)
    return KDTree(sphere), 2, lambda d: 2 * EARTH_KM * np.arcsin(np.minimum(d / 2, 1.0))


def _scale_of(distances: np.ndarray, scale: Scale) -> float:
    if scale is None:
        return 1.0
    SCALE.domain.check("scale", scale)
    if isinstance(scale, str):
        value = float(np.median(distances) if scale == "median" else np.mean(distances))
        return value if value > 0 else 1.0  # all on one spot: every edge has length 0 anyway
    return float(scale)


def _weights(distances: np.ndarray, weight: Weight, scale: Scale) -> np.ndarray:
    """Return one weight for each distance."""
    WEIGHT.domain.check("weight", weight)
    if not len(distances):
        return np.empty(0)
    scaled = distances / _scale_of(distances, scale)
    if callable(weight):
        weights = as_array(weight(scaled), np.float64, "weights of the distances")
        if weights.shape != scaled.shape or not np.isfinite(weights).all() or weights.min() < 0:
            raise DataError("weight(distances) must give one finite number >= 0 for each distance")
    elif weight == "exp":
        weights = np.exp(-scaled)
    elif weight == "inverse":
        weights = 1 / (0.1 + scaled)
    else:
        weights = np.ones(len(scaled))
    return weights


def _weighted(
    rows: np.ndarray, cols: np.ndarray, distances: np.ndarray, n: int, weight: Weight, scale: Scale
) -> Any:
    weights = _weights(distances, weight, scale)
    lost = int(np.sum(weights == 0))
    if lost:
        warnings.warn(
            f"{lost} of {len(weights)} edges have weight 0 and are left out (e^-distance"
            " underflows for far points); scale='median' measures distances in typical edge"
            " lengths",
            stacklevel=3,
        )
    return _csr(rows, cols, weights, n)


def _csr(rows: np.ndarray, cols: np.ndarray, weights: np.ndarray, n: int) -> Any:
    import scipy.sparse as sp

    return without_zeros(sp.csr_array((weights, (rows, cols)), shape=(n, n)))


def _above_diagonal(start: int, height: int, n: int) -> np.ndarray:
    """Return where the column is above the row, for rows start, start + 1, ..."""
    return np.arange(n)[None, :] > np.arange(start, min(start + height, n))[:, None]
