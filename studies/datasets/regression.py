"""Real data sets of numbers at places: houses, hospitals, soil, counties, plants.

**Sacramento**: 985 houses sold in May 2008 (Hallac, Leskovec and Boyd 2015 prepared the columns).
**Medicare**: hospital readmissions of the CMS, 1000 records with the most readmissions.
**King County**: 21,597 houses sold around Seattle from May 2014 to May 2015.
**Meuse, Atlantic, plants**: zinc in the soil of a flood plain, lung cancer in counties of the
eastern United States, plant species in regions of the Americas; tables of spatial statistics.

Where a loader says so, values that the file does not have are NaN.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from pathlib import Path

import numpy as np

from studies.datasets.folder import data_folder
from trellis.arrays import Float64s
from trellis.errors import DataError
from trellis.files import open_text_bytes
from trellis.regression import RegressionData

__all__ = ["SPATIAL", "load_kingcounty", "load_medicare", "load_sacramento", "load_spatial"]

SPATIAL: dict[str, str] = {
    "meuse": "zinc",
    "atlantic": "Rate",
    "plants": "richness_species_vascular",
}
"""What :func:`load_spatial` knows, and the targets in their files."""

_NO_FEATURES = {"cadmium", "copper", "lead", "FIPS"}
_QUALITIES = {  # words in rising order, and the number of the first
    "view": (("NONE", "FAIR", "AVERAGE", "GOOD", "EXCELLENT"), 0),
    "condition": (("Poor", "Fair", "Average", "Good", "Very Good"), 1),
    "waterfront": (("NO", "YES"), 0),
}
_BEGIN = date(2014, 5, 1)


def load_sacramento() -> RegressionData:
    """Prices of 985 houses in the Sacramento area, as prepared by Hallac et al. (2015).

    Features are the z-scores of bedrooms, bathrooms and area (missing values are 0, their mean) and
    latitude and longitude in degrees; the target is the z-score of the price. The coordinates are
    latitude and longitude, their distance is in kilometres. There is no graph: make one for each
    part, ``train.with_graph()``.

    Examples
    --------
    >>> load_sacramento().X.shape  # doctest: +SKIP
    (985, 5)
    """
    names = ("beds_norm", "baths_norm", "sqft_norm", "latitude", "longitude")
    columns = _columns(data_folder("sacramento") / "sacramento.csv.xz", (*names, "price_norm"))
    X = np.column_stack([_numbers(columns[name]) for name in names])
    y = _numbers(columns["price_norm"])
    short = ("beds", "baths", "sqft", "latitude", "longitude")
    return RegressionData("sacramento", X, y, X[:, 3:].copy(), None, short, "haversine", (0, 1, 2))


def load_medicare(period: str = "2014-2017", n: int | None = 1000) -> RegressionData:
    """Hospital readmissions: their number, from discharges, ratio and rates.

    Of the complete records of a period, the ``n`` with the most readmissions (ties in the order of
    the file). Features are the number of discharges, the excess readmission ratio, and the
    predicted and the expected rate, as they are; the target is the number of readmissions.

    Distances between raw features are hundreds, since discharges are, and e^(−distance) underflows
    for isolated records. The coordinates are therefore the features divided by their standard
    deviations over these records (no target is used), so that the Manhattan distance counts
    standard deviations.

    Parameters
    ----------
    period : "2014-2017" or "2015-2018"
    n : int or None
        Records; None for all.

    Examples
    --------
    >>> load_medicare().y.min()  # doctest: +SKIP
    np.float64(144.0)
    """
    names = ("n_discharges", "excess_ratio", "predicted_rate", "expected_rate")
    path = data_folder("medicare_readmissions") / "readmissions.csv.xz"
    columns = _columns(path, ("period", *names, "n_readmissions"))
    periods = sorted(set(columns["period"]))
    if period not in periods:
        raise DataError(f"unknown period {period!r}; known: {', '.join(periods)}")
    table = np.column_stack([_numbers(columns[name]) for name in (*names, "n_readmissions")])
    table = table[(np.array(columns["period"]) == period) & np.isfinite(table).all(1)]
    if n is not None:
        if not 2 <= n <= len(table):
            raise DataError(f"n must lie between 2 and {len(table)}, got {n}")
        table = table[np.argsort(-table[:, -1], kind="stable")[:n]]
    X, y = table[:, :-1].copy(), table[:, -1].copy()
    return RegressionData("medicare", X, y, X / X.std(0), None, names, "manhattan")


def load_kingcounty() -> RegressionData:
    """Logarithms of the prices of 21,597 houses sold around Seattle, May 2014 to May 2015.

    Features are what the file says of a house, with words as numbers in their order: grade 3 to 13,
    condition 1 to 5, view 0 to 4, waterfront 0 or 1; the date is the number of days since 1 May
    2014, `yr_renovated` is 0 for a house that was not renovated. The last two are latitude and
    longitude in degrees, which are the coordinates, too. The numbers of houses and zip codes are
    names and no features. Missing values (waterfront, view, yr_renovated, sqft_basement) are NaN.
    Some houses stand at one place, and some were sold twice.

    Examples
    --------
    >>> load_kingcounty().X.shape  # doctest: +SKIP
    (21597, 18)
    """
    reads: dict[str, Callable[[Sequence[str]], Float64s]] = {
        "date": _days,
        "grade": lambda cells: _numbers([cell.partition(" ")[0] for cell in cells]),
        "sqft_basement": lambda cells: _numbers(["" if cell == "?" else cell for cell in cells]),
    }
    for name, (words, first) in _QUALITIES.items():
        reads[name] = partial(_ordered, name, words, first)
    names = (
        "date", "bedrooms", "bathrooms", "sqft_living", "sqft_lot", "floors", "waterfront", "view",
        "condition", "grade", "sqft_above", "sqft_basement", "yr_built", "yr_renovated",
        "sqft_living15", "sqft_lot15", "lat", "long",
    )  # fmt: skip
    path = data_folder("kingcounty") / "kc_house_data.csv.xz"
    columns = _columns(path, (*names, "price"))
    X = np.column_stack([reads.get(name, _numbers)(columns[name]) for name in names])
    y = np.log(_numbers(columns["price"]))
    d = len(names)
    return RegressionData(
        "kingcounty", X, y, X[:, -2:].copy(), None, names, "haversine", tuple(range(d - 2))
    )


def load_spatial(name: str) -> RegressionData:
    """Three small maps of spatial statistics.

    ``"meuse"``: the logarithm of zinc (ppm) at 153 places on a flood plain of the river Meuse; the
    other three metals are no features. ``"atlantic"``: lung cancer mortality in 666 counties.
    ``"plants"``: the number of species of vascular plants in 227 regions of the Americas. The last
    two features are the coordinates: metres east and north, for plants degrees of latitude and
    longitude.

    Parameters
    ----------
    name : "meuse", "atlantic" or "plants"

    Examples
    --------
    >>> load_spatial("meuse").X.shape  # doctest: +SKIP
    (153, 9)
    >>> load_spatial("no such map")
    Traceback (most recent call last):
    trellis.errors.DataError: unknown map 'no such map'; known: meuse, atlantic, plants
    """
    if name not in SPATIAL:
        raise DataError(f"unknown map {name!r}; known: {', '.join(SPATIAL)}")
    degrees = name == "plants"
    place = ("y", "x") if degrees else ("x", "y")
    path = data_folder("spatial") / f"{name}.csv.xz"
    columns = _columns(path, (*place, SPATIAL[name]))
    others = [k for k in columns if k not in {*place, SPATIAL[name]} | _NO_FEATURES]
    names = (*others, *place)
    X = np.column_stack([_numbers(columns[k]) for k in names])
    y = _numbers(columns[SPATIAL[name]])
    y = np.log(y) if name == "meuse" else y
    metric = "haversine" if degrees else "euclidean"
    regressors = tuple(range(len(others)))
    return RegressionData(name, X, y, X[:, -2:].copy(), None, names, metric, regressors)


def _columns(path: Path, names: tuple[str, ...]) -> dict[str, list[str]]:
    rows = list(csv.DictReader(io.StringIO(open_text_bytes(path).decode("utf-8"))))
    missing = [name for name in names if not rows or rows[0].get(name) is None]
    if missing:
        raise DataError(f"{path} has no column {missing[0]!r}")
    return {name: [row[name] for row in rows] for name in rows[0] if name}


def _ordered(name: str, words: Sequence[str], first: int, cells: Sequence[str]) -> Float64s:
    """Words as numbers in their order; an empty cell is NaN."""
    known = {"": np.nan} | {word: float(k) for k, word in enumerate(words, first)}
    strange = sorted(set(cells) - set(known))
    if strange:
        raise DataError(f"{strange[0]!r} is no {name}; known: {', '.join(words)}")
    return np.array([known[cell] for cell in cells])


def _days(cells: Sequence[str]) -> Float64s:
    """Days since the first of May 2014, of dates as month/day/year."""
    whole = [[int(part) for part in cell.split("/")] for cell in cells]
    return np.array([float((date(y, m, d) - _BEGIN).days) for m, d, y in whole])


def _numbers(cells: Sequence[str]) -> Float64s:
    """Cells as numbers; an empty cell is NaN."""
    return np.array([float(cell) if cell else np.nan for cell in cells])
