"""Folds of a cross-validation: at random, or by blocks of the map.

At random a row to be tested has its nearest neighbours among those trained on: it says how well
gaps are filled. With blocks whole regions are held out: it says how well a model does where nobody
has been (Roberts et al. 2017). Blocks are cells of a k-means of the map, or squares of a grid; the
largest first, each goes to the fold that has the fewest rows so far.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from trellis.arrays import Float64s, Int64s
from trellis.domains import one_of, whole
from trellis.errors import DataError
from trellis.regression.similarity import EARTH_KM

__all__ = ["blocked_folds", "map_cells", "random_folds"]

_CELLS = 10  # of the map for each fold
_MANY = 20_000  # points, of which cells are made; the others go to the nearest
_KM = EARTH_KM * np.pi / 180  # of a degree


def random_folds(n: int, n_folds: int, random_state: int = 0) -> Int64s:
    """Return the fold of each of n rows, dealt out at random.

    Examples
    --------
    >>> np.bincount(random_folds(10, 3)).tolist()
    [4, 3, 3]
    """
    fold = np.arange(n) % n_folds
    return np.asarray(np.random.default_rng(random_state).permutation(fold), dtype=np.int64)


def map_cells(
    points: Float64s,
    n_cells: int,
    *,
    how: Literal["kmeans", "grid"] = "kmeans",
    geographic: bool = False,
    random_state: int = 0,
) -> Int64s:
    """Return which cell of a map each point is in; there are about as many cells as asked for.

    Parameters
    ----------
    points : (n, c)
        Coordinates; latitude and longitude if `geographic`.
    n_cells : int
    how : "kmeans" or "grid"
        Regions around dense places, or squares.
    geographic : bool
    random_state : int
        Seed of k-means.

    Examples
    --------
    >>> map_cells(np.array([[0.0, 0], [0, 1], [9, 9]]), 2).tolist()
    [0, 0, 1]
    """
    one_of("kmeans", "grid").check("how", how)
    flat = points
    if geographic:  # in kilometres, near enough for regions
        lat, lon = points.T
        turn = np.radians(lon)
        middle = np.arctan2(np.sin(turn).mean(), np.cos(turn).mean())
        east = (np.degrees(turn - middle) + 180) % 360 - 180
        flat = _KM * np.column_stack([lat, east * np.cos(np.radians(lat.mean()))])
    distinct = len(np.unique(flat, axis=0))
    if how == "kmeans":
        from sklearn.cluster import KMeans

        few = min(n_cells, distinct)
        some = flat
        if len(flat) > _MANY:
            some = flat[np.random.default_rng(random_state).permutation(len(flat))[:_MANY]]
            few = min(few, len(np.unique(some, axis=0)))
        cells = KMeans(few, n_init=1, random_state=random_state).fit(some).predict(flat)
        return _numbered(cells.astype(np.int64))
    span = np.ptp(flat, axis=0)
    sides = span[span > 0]
    low, high = 0.0, float(span.max(initial=1.0)) * 1.001
    side = high
    for _ in range(40):  # the largest squares of which enough are occupied
        side = (low + high) / 2
        count = len(np.unique(np.floor((flat - flat.min(axis=0)) / side), axis=0))
        low, high = (low, side) if count < min(n_cells, distinct) else (side, high)
    if not len(sides):
        return np.zeros(len(points), np.int64)
    squares = np.floor((flat - flat.min(axis=0)) / low)
    return _numbered(np.unique(squares, axis=0, return_inverse=True)[1].ravel())


def blocked_folds(
    points: Float64s,
    n_folds: int,
    *,
    how: Literal["kmeans", "grid"] = "kmeans",
    n_cells: int | None = None,
    geographic: bool = False,
    random_state: int = 0,
) -> tuple[Int64s, Int64s]:
    """Return the fold of each point, and its cell of the map; cells stay whole.

    Parameters
    ----------
    points : (n, c)
    n_folds : int
    how, geographic, random_state
        As of :func:`map_cells`.
    n_cells : int, optional
        About how many cells; 10 for each fold.

    Raises
    ------
    DataError
        If there are fewer cells than folds.

    Examples
    --------
    >>> points = np.array([[0.0, 0], [0, 1], [9, 9], [9, 8]])
    >>> blocked_folds(points, 2, n_cells=2)[0].tolist()
    [0, 0, 1, 1]
    """
    whole(2).check("n_folds", n_folds)
    wanted = _CELLS * n_folds if n_cells is None else n_cells
    cells = map_cells(points, wanted, how=how, geographic=geographic, random_state=random_state)
    sizes = np.bincount(cells)
    if len(sizes) < n_folds:
        raise DataError(
            f"the map has {len(sizes)} cells, too few for {n_folds} folds; ask for fewer folds or "
            "more cells"
        )
    order = np.random.default_rng(random_state).permutation(len(sizes))
    order = order[np.argsort(-sizes[order], kind="stable")]
    rows, fold = np.zeros(n_folds), np.empty(len(sizes), np.int64)
    for cell in order:
        fold[cell] = int(np.argmin(rows))
        rows[fold[cell]] += sizes[cell]
    return fold[cells], cells


def _numbered(cells: Int64s) -> Int64s:
    """Cells numbered from 0 in the order in which they come."""
    _, first, inverse = np.unique(cells, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]
