"""Two real data sets of numbers at places: houses, and hospital readmissions.

**Sacramento**: 985 houses sold in May 2008 (Hallac, Leskovec and Boyd 2015 prepared the columns).
**Medicare**: hospital readmissions of the CMS, 1000 records with the most readmissions.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

from studies.datasets.folder import data_folder
from trellis.arrays import Float64s
from trellis.errors import DataError
from trellis.files import open_text_bytes
from trellis.regression import RegressionData

__all__ = ["load_medicare", "load_sacramento"]


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


def _columns(path: Path, names: tuple[str, ...]) -> dict[str, list[str]]:
    rows = list(csv.DictReader(io.StringIO(open_text_bytes(path).decode("utf-8"))))
    missing = [name for name in names if not rows or rows[0].get(name) is None]
    if missing:
        raise DataError(f"{path} has no column {missing[0]!r}")
    return {name: [row[name] for row in rows] for name in names}


def _numbers(cells: list[str]) -> Float64s:
    """Cells as numbers; an empty cell is NaN."""
    return np.array([float(cell) if cell else np.nan for cell in cells])
