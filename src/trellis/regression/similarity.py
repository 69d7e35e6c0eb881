"""Similarity graphs: who is like whom.

A graph of n nodes is a sparse symmetric (n, n) matrix S of similarities, S_ij >= 0, S_ii = 0. Here
it is built from coordinates: an edge joins each node to its k nearest (:func:`knn_graph`), to all
within a radius (:func:`radius_graph`), or to all whose similarity reaches a threshold
(:func:`full_graph`). With d_ij the distance and s the `scale`, the weight of an edge is

    "exp"      e^(-d_ij / s)
    "inverse"  1 / (0.1 + d_ij / s)
    "binary"   1
    callable   weight(d_ij / s), on an array of distances

s is the median length of the edges unless it is said otherwise: e^(-d) falls below the smallest
number near d = 745, and long before that a far edge means nothing. Edges whose weight comes out as
0 are no edges; a warning says how many.

A node without edges is *isolated*: it takes no part in smoothing and keeps its base prediction.

A matrix cannot be row-sliced by cross-validation; the builders :class:`KNN`, :class:`Radius` and
:class:`Full` make the graph of whatever rows a model is shown. They also join new nodes to those of
a graph (``links``): each new node gets the edges that it would have if it alone were added, so that
they do not depend on which other nodes are new.
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
    """What distances are divided by before weighting: the median or the mean length of the edges,
    or a number; None leaves distances as they are (e^-d of kilometres, as published).""",
    default="median",
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
FARTHEST = 1e150  # as far as squares of distances go
_BLOCK = 1 << 22  # entries of a block of the full distance matrix
_LINK_ROWS = 50_000  # new nodes that are joined at a time
_CANDIDATES = 4  # times k nearest nodes are asked whether a new one is among their own nearest


@old_arguments(k="n_neighbors")
def knn_graph(
    coords: Any,
    n_neighbors: int = 5,
    *,
    weight: Weight = "exp",
    metric: Metric = "euclidean",
    scale: Scale = "median",
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
    >>> S = knn_graph([[0.0], [1.0], [3.0]], n_neighbors=1, scale=1)
    >>> S.toarray().round(3)
    array([[0.   , 0.368, 0.   ],
           [0.368, 0.   , 0.135],
           [0.   , 0.135, 0.   ]])
    """
    points = points_of(coords, columns)
    n, k = len(points), n_neighbors
    if not whole(1, n - 1).accepts(k):
        wanted = f"an integer from 1 to {n - 1} (there are {n} nodes)"
        raise ParameterError("n_neighbors", k, wanted)
    SYMMETRISE.domain.check("symmetrise", symmetrise)
    lengths, neighbours = _nearest(points, k, metric)
    rows = np.repeat(np.arange(n), k)
    directed = _weighted(rows, neighbours.ravel(), lengths.ravel(), (n, n), weight, scale)
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
    scale: Scale = "median",
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
    points = points_of(coords, columns)
    number(above=0).check("radius", radius)
    n, (rows, cols, lengths) = len(points), _within(points, points, radius, metric)
    other = rows != cols
    return _weighted(rows[other], cols[other], lengths[other], (n, n), weight, scale)


def full_graph(
    coords: Any,
    threshold: float = 0.0,
    *,
    weight: Weight = "exp",
    metric: Metric = "euclidean",
    scale: Scale = "median",
    columns: Columns = None,
) -> Any:
    """Join all nodes whose similarity is at least `threshold` (and above 0).

    All n(n - 1)/2 distances are looked at. The other parameters and the result are those of
    :func:`knn_graph`; ``scale="median"`` is here the median over all pairs.

    Examples
    --------
    >>> full_graph([[0.0], [1.0], [3.0]], threshold=0.1, scale=1).nnz
    4
    """
    from scipy.spatial.distance import cdist

    points = points_of(coords, columns)
    n = len(points)
    number(at_least=0).check("threshold", threshold)
    space = _Space(metric)
    data = space.embedded(points)

    def block(start: int, stop: int) -> np.ndarray:
        return space.length(cdist(data[start:stop], data, space.name))

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
    shape = n, n
    upper_half = _csr(np.concatenate(rows), np.concatenate(cols), np.concatenate(kept), shape)
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

    def unit(self, coords: Any) -> float:
        """What distances are divided by in the graph of these nodes."""
        lengths, _ = _nearest(points_of(coords, self.columns), self.n_neighbors, self.metric)
        return _scale_of(lengths, self.scale)

    def tree(self, coords: Any) -> Any:
        """What finds the nearest of these nodes, for :meth:`links`."""
        return _Space(self.metric).tree(points_of(coords, self.columns))

    def links(self, new: Any, old: Any, tree: Any = None) -> Any:
        """Return the similarities of new nodes to old ones, each as if it alone were new.

        A new node is joined to its k nearest among the old, and to those of its 4k nearest that
        are nearer to it than to their own k-th neighbour; `symmetrise` says what one of the two
        is worth. `scale` must be a number or None: with another, see :meth:`unit`.
        """
        import scipy.sparse as sp

        points, others = points_of(new, self.columns), points_of(old, self.columns)
        tree = self.tree(old) if tree is None else tree
        found = _Space(self.metric).embedded(points)
        blocks = range(0, len(points), _LINK_ROWS)
        parts = [self._links(found[i : i + _LINK_ROWS], len(others), tree) for i in blocks]
        return parts[0] if len(parts) == 1 else sp.vstack(parts, format="csr")

    def _links(self, points: np.ndarray, n: int, tree: Any) -> Any:
        """Links of some points, in the space of the tree."""
        m, k = len(points), min(self.n_neighbors, n)
        space = _Space(self.metric)
        candidates = min(_CANDIDATES * k, n)
        distance, j = tree.query(points, k=candidates, p=space.norm)
        distance, j = distance.reshape(m, candidates), j.reshape(m, candidates)
        asked, back = np.unique(j, return_inverse=True)
        reach = np.zeros(len(asked))  # of a node that is alone
        if n > 1:
            own = min(k, n - 1)
            reach = tree.query(tree.data[asked], k=own + 1, p=space.norm)[0][:, own]
        near = np.broadcast_to(np.arange(candidates) < k, j.shape)
        chosen = distance < reach[back.reshape(j.shape)]
        if self.symmetrise == "max":
            share = (near | chosen).astype(np.float64)
        elif self.symmetrise == "min":
            share = (near & chosen).astype(np.float64)
        else:
            share = 0.5 * (near.astype(np.float64) + chosen)
        weights = share.ravel() * _weights(space.length(distance).ravel(), self.weight, self.scale)
        return _csr(np.repeat(np.arange(m), candidates), j.ravel(), weights, (m, n))


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

    def unit(self, coords: Any) -> float:
        """What distances are divided by in the graph of these nodes."""
        points = points_of(coords, self.columns)
        rows, cols, lengths = _within(points, points, self.radius, self.metric)
        return _scale_of(lengths[rows != cols], self.scale)

    def tree(self, coords: Any) -> Any:
        """What finds the nodes nearby, for :meth:`links`."""
        return _Space(self.metric).tree(points_of(coords, self.columns))

    def links(self, new: Any, old: Any, tree: Any = None) -> Any:
        """Return the similarities of new nodes to the old ones within the radius."""
        points, others = points_of(new, self.columns), points_of(old, self.columns)
        found = _within(points, others, self.radius, self.metric, tree)
        return _weighted(*found, (len(points), len(others)), self.weight, self.scale)


class Full(Estimator):
    """A builder: called with coordinates, it gives their :func:`full_graph`.

    Examples
    --------
    >>> Full(threshold=0.1, scale=1)([[0.0], [1.0], [3.0]]).nnz
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

    def unit(self, coords: Any) -> float:
        """What distances are divided by in the graph of these nodes."""
        from scipy.spatial.distance import pdist

        if not isinstance(self.scale, str):
            return _scale_of(np.empty(0), self.scale)
        space = _Space(self.metric)
        data = space.embedded(points_of(coords, self.columns))
        return _scale_of(space.length(pdist(data, space.name)), self.scale)

    def tree(self, coords: Any) -> None:
        """Nothing: all pairs are looked at."""

    def links(self, new: Any, old: Any, tree: Any = None) -> Any:
        """Return the similarities of new nodes to the old ones, where they reach the threshold."""
        from scipy.spatial.distance import cdist

        space = _Space(self.metric)
        data = space.embedded(points_of(old, self.columns))
        points = space.embedded(points_of(new, self.columns))
        m, n = len(points), len(data)
        height = max(1, _BLOCK // n)
        rows, cols, kept = [], [], []
        for start in range(0, m, height):
            lengths = space.length(cdist(points[start : start + height], data, space.name))
            weights = _weights(lengths.ravel(), self.weight, self.scale).reshape(lengths.shape)
            i, j = np.nonzero((weights >= self.threshold) & (weights > 0))
            rows.append(i + start)
            cols.append(j)
            kept.append(weights[i, j])
        return _csr(np.concatenate(rows), np.concatenate(cols), np.concatenate(kept), (m, n))


def points_of(coords: Any, columns: Columns) -> npt.NDArray[np.float64]:
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
    if np.abs(rows).max() > FARTHEST:
        raise DataError(f"coordinates are beyond {FARTHEST:.0e}: their squares overflow")
    return rows


class _Space:
    """Where distances of a metric are those of a norm, and the way back from them."""

    def __init__(self, metric: Metric) -> None:
        METRIC.domain.check("metric", metric)
        self.metric = metric
        self.norm = 1 if metric == "manhattan" else 2
        self.name: Literal["cityblock", "euclidean"] = (
            "cityblock" if metric == "manhattan" else "euclidean"
        )

    def embedded(self, points: np.ndarray) -> np.ndarray:
        """Return the points; those on the Earth as points of the unit sphere."""
        if self.metric != "haversine":
            return points
        if points.shape[1] != 2 or np.abs(points[:, 0]).max() > 90:
            raise DataError(
                "haversine distances need two columns, latitude (-90 to 90) and longitude in"
                " degrees"
            )
        lat, lon = np.radians(points).T
        columns = [np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)]
        return np.stack(columns, axis=1)

    def tree(self, points: np.ndarray) -> Any:
        """Return a k-d tree of the points."""
        from scipy.spatial import KDTree

        return KDTree(self.embedded(points))

    def length(self, distance: np.ndarray) -> np.ndarray:
        """Return distances of the metric from those of the norm: arcs from chords, on the Earth."""
        if self.metric != "haversine":
            return distance
        return 2 * EARTH_KM * np.arcsin(np.minimum(distance / 2, 1.0))

    def limit(self, radius: float) -> float:
        """Return a hair's breadth more than the radius, in the norm; to be cut exactly."""
        limit = float(radius)
        if self.metric == "haversine":
            limit = 2 * np.sin(min(limit / EARTH_KM, np.pi) / 2)
        return min(limit * (1 + 1e-9), FARTHEST)


def _nearest(points: np.ndarray, k: int, metric: Metric) -> tuple[np.ndarray, np.ndarray]:
    """Return distances (n, k) to the k nearest other points, and which these are."""
    n, space = len(points), _Space(metric)
    tree = space.tree(points)
    distance, neighbour = tree.query(tree.data, k=k + 1, p=space.norm)
    # A node need not be the first of its own neighbours when others lie on the same spot.
    itself = neighbour == np.arange(n)[:, None]
    itself[~itself.any(axis=1), k] = True
    return space.length(distance[~itself].reshape(n, k)), neighbour[~itself].reshape(n, k)


def _within(
    points: np.ndarray, others: np.ndarray, radius: float, metric: Metric, tree: Any = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all pairs of a point and another within the radius, and their distances."""
    space = _Space(metric)
    near = space.tree(points).sparse_distance_matrix(
        space.tree(others) if tree is None else tree,
        space.limit(radius),
        p=space.norm,
        output_type="ndarray",
    )
    lengths = space.length(near["v"])
    keep = lengths <= radius
    return near["i"][keep], near["j"][keep], lengths[keep]


def _scale_of(distances: np.ndarray, scale: Scale) -> float:
    if scale is None:
        return 1.0
    SCALE.domain.check("scale", scale)
    if isinstance(scale, str):
        if not distances.size:
            return 1.0
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
    rows: np.ndarray,
    cols: np.ndarray,
    distances: np.ndarray,
    shape: tuple[int, int],
    weight: Weight,
    scale: Scale,
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
    return _csr(rows, cols, weights, shape)


def _csr(rows: np.ndarray, cols: np.ndarray, weights: np.ndarray, shape: tuple[int, int]) -> Any:
    import scipy.sparse as sp

    return without_zeros(sp.csr_array((weights, (rows, cols)), shape=shape))


def _above_diagonal(start: int, height: int, n: int) -> np.ndarray:
    """Return where the column is above the row, for rows start, start + 1, ..."""
    return np.arange(n)[None, :] > np.arange(start, min(start + height, n))[:, None]
