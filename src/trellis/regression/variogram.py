"""Variograms: how unlike values are, by how far apart they were measured.

    gamma(h) = 1/2 mean of (v_i - v_j)^2 over pairs at a distance of about h

Where it is flat, at the variance, neighbours say nothing of each other; where it rises from below,
they do. Residuals of a model that has used all that neighbours say have a flat one. Few points make
all their pairs; of many there are those among points drawn at random, and those of nearest points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from trellis.arrays import Float64s, Int64s, as_array
from trellis.domains import nothing, number, seed, whole
from trellis.errors import DataError
from trellis.regression.similarity import EARTH_KM, METRIC, Metric

__all__ = ["Variogram", "variogram"]

_MOST = 10_000  # bins
_ALL = 1500  # points of which all pairs are looked at
_NEAREST = 15
_LEAST = 20  # pairs that say anything
_BEND = 1.5  # bins are narrow where points are near


@dataclass(frozen=True)
class Variogram:
    """A variogram.

    Attributes
    ----------
    distance, gamma : (b,) arrays
        Mean distance of the pairs of each bin (kilometres for haversine), and half the mean of
        their squared differences.
    count : (b,) array
        Pairs.
    variance : float
        Of the values.
    """

    distance: Float64s
    gamma: Float64s
    count: Int64s
    variance: float


def variogram(
    coordinates: Any,
    values: Any,
    *,
    metric: Metric = "euclidean",
    n_bins: int = 15,
    max_distance: float | None = None,
    random_state: int = 0,
) -> Variogram:
    """Return the variogram of values at places.

    Parameters
    ----------
    coordinates : (n, d) array
        Latitude and longitude in degrees for haversine.
    values : (n,) array
        Rows with NaN are left out.
    metric : "euclidean", "manhattan" or "haversine"
    n_bins : int
        Bins of distances, narrower where these are small; those with few pairs are left out.
    max_distance : float, optional
        Pairs that are farther apart are left out; by default those beyond the median distance.
    random_state : int
        Seed of the points of which pairs are made, if there are many.

    Raises
    ------
    DataError
        If fewer than three places have a value, or all are on one spot.

    Examples
    --------
    >>> from trellis.regression import variogram
    >>> places = np.random.default_rng(0).uniform(size=(300, 2))
    >>> found = variogram(places, np.sin(5 * places[:, 0]))
    >>> bool(found.gamma[0] < 0.05 * found.variance)
    True
    """
    METRIC.domain.check("metric", metric)
    whole(1, _MOST).check("n_bins", n_bins)
    seed.check("random_state", random_state)
    (nothing | number(above=0)).check("max_distance", max_distance)
    points = as_array(coordinates, np.float64, "coordinates", (None, None), finite=True)
    given = as_array(values, np.float64, "values", (len(points),))
    known = np.isfinite(given)
    points, given = points[known], given[known]
    if len(points) < 3:
        raise DataError(f"a variogram needs three places with a value at least, got {len(points)}")
    flat = _flat(points, metric)
    i, j, n_drawn = _pairs(flat, np.random.default_rng(random_state))
    apart = _lengths(flat[i], flat[j], metric)
    farthest = float(np.median(apart[:n_drawn])) if max_distance is None else max_distance
    if not farthest > 0:
        farthest = float(apart.max())
    if not farthest > 0:
        raise DataError("all places are on one spot: no variogram can be made")
    edges = farthest * np.linspace(0, 1, n_bins + 1) ** _BEND
    inside = apart <= farthest
    place = np.clip(np.searchsorted(edges, apart[inside], side="right") - 1, 0, n_bins - 1)
    squares = (given[i[inside]] - given[j[inside]]) ** 2
    count = np.bincount(place, minlength=n_bins)
    enough = count >= min(_LEAST, max(count.max(initial=0), 1))
    total = np.maximum(count, 1)
    gamma = np.bincount(place, weights=squares, minlength=n_bins) / (2 * total)
    distance = np.bincount(place, weights=apart[inside], minlength=n_bins) / total
    return Variogram(distance[enough], gamma[enough], count[enough], float(given.var()))


def _pairs(flat: Float64s, rng: np.random.Generator) -> tuple[Int64s, Int64s, int]:
    """Pairs of points, those that were drawn first, and how many these are."""
    from scipy.spatial import KDTree

    n = len(flat)
    some = np.arange(n) if n <= _ALL else np.sort(rng.permutation(n)[:_ALL])
    a, b = np.triu_indices(len(some), 1)
    i, j, drawn = some[a], some[b], len(a)
    if n > _ALL:
        near = np.asarray(KDTree(flat).query(flat, k=_NEAREST + 1)[1])[:, 1:]
        i = np.append(i, np.repeat(np.arange(n), _NEAREST))
        j = np.append(j, near.ravel())
    return i, j, drawn


def _flat(points: Float64s, metric: Metric) -> Float64s:
    """Points of which the straight distance is one to be turned into that of the metric."""
    if metric != "haversine":
        return points
    if points.shape[1] != 2 or np.abs(points[:, 0]).max() > 90:
        raise DataError(
            "haversine distances need two columns, latitude (-90 to 90) and longitude in degrees"
        )
    lat, lon = np.radians(points).T
    return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=1)


def _lengths(a: Float64s, b: Float64s, metric: Metric) -> Float64s:
    if metric == "manhattan":
        return np.asarray(np.abs(a - b).sum(axis=1))
    straight = np.sqrt(((a - b) ** 2).sum(axis=1))
    if metric == "euclidean":
        return np.asarray(straight)
    return np.asarray(2 * EARTH_KM * np.arcsin(np.minimum(straight / 2, 1.0)))
