"""Coordinates of a table: which columns they are, in which order, and which distance they have.

Names are taken apart into words. A pair in which one has the word lat or latitude and the other
lon, lng, long or longitude is in degrees: distances are great circles, in either order of the two
(GIS puts the longitude first, people the latitude). All else is in the plane.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from trellis.arrays import Float64s
from trellis.errors import DataError
from trellis.files.table import Table

__all__ = ["Metric", "Places"]

Metric = Literal["euclidean", "manhattan", "haversine"]

_LATITUDES = {"lat", "latitude"}
_LONGITUDES = {"lon", "lng", "long", "longitude"}
_NORTHS = {"y", "north", "northing"}
_EASTS = {"x", "east", "easting"}
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


@dataclass(frozen=True)
class Places:
    """Columns of coordinates, latitude before longitude, and their distance."""

    columns: tuple[str, ...]
    metric: Metric

    @classmethod
    def of(cls, columns: Sequence[str], metric: Metric | None = None) -> Places:
        """Say what these columns are by their names.

        Examples
        --------
        >>> Places.of(["long", "lat"])
        Places(columns=('lat', 'long'), metric='haversine')
        >>> Places.of(["x", "y"]).metric
        'euclidean'
        """
        if not columns or len(set(columns)) < len(columns):
            raise DataError(f"coordinates are columns, each of them once, not {list(columns)}")
        found = tuple(columns)
        if len(found) == 2:
            first, second = (_words(name) for name in found)
            swapped = first & _LONGITUDES and second & _LATITUDES
            earth = swapped or (first & _LATITUDES and second & _LONGITUDES)
            if metric == "haversine" and first & _EASTS and second & _NORTHS:
                swapped = earth = first
            if swapped and metric in (None, "haversine"):
                found = found[::-1]
            return cls(found, metric or ("haversine" if earth else "euclidean"))
        if metric == "haversine":
            raise DataError(
                "haversine distances are for two coordinates, latitude and longitude in degrees; "
                f"got {', '.join(found)}"
            )
        return cls(found, metric or "euclidean")

    @classmethod
    def found(cls, table: Table, metric: Metric | None = None) -> Places | None:
        """The one latitude and the one longitude among the columns of a table, if there are both.

        Examples
        --------
        >>> from trellis.files.table import read_table
        >>> Places.found(read_table({"price": [1], "Longitude": [0.0], "Latitude": [1.0]})).columns
        ('Latitude', 'Longitude')
        """
        pairs = [
            [n for n in table.columns if _words(n) & some and table.is_numeric(n)]
            for some in (_LATITUDES, _LONGITUDES)
        ]
        if any(len(names) != 1 for names in pairs):
            return None
        return cls.of([names[0] for names in pairs], metric)

    @staticmethod
    def odd(table: Table) -> Iterator[tuple[str, int]]:
        """Columns called latitude or longitude that are no numbers, and a row of each.

        Examples
        --------
        >>> from trellis.files.table import read_table
        >>> list(Places.odd(read_table({"lat": [47.5, "47N"], "lon": [1, 2]})))
        [('lat', 1)]
        """
        for name in Places.named(table):
            bad = table.numbers(name)[1]
            if bad.size:
                yield name, int(bad[0])

    @staticmethod
    def named(table: Table) -> list[str]:
        """The columns called latitude or longitude."""
        return [name for name in table.columns if _words(name) & (_LATITUDES | _LONGITUDES)]

    @staticmethod
    def likely(table: Table) -> list[str]:
        """The one column called x and the one called y, or like these; none if there are more.

        Examples
        --------
        >>> from trellis.files.table import read_table
        >>> Places.likely(read_table({"X": [1], "Y": [2], "size": [3]}))
        ['X', 'Y']
        """
        found = [
            [n for n in table.columns if _words(n) & some and table.is_numeric(n)]
            for some in (_EASTS, _NORTHS)
        ]
        return [names[0] for names in found] if all(len(names) == 1 for names in found) else []

    @property
    def geographic(self) -> bool:
        """Whether coordinates are degrees."""
        return self.metric == "haversine"

    @property
    def northward(self) -> bool:
        """Whether the first of two coordinates is the one that goes upwards on a map.

        Examples
        --------
        >>> Places.of(["lat", "lon"], "euclidean").northward, Places.of(["x", "y"]).northward
        (True, False)
        """
        if len(self.columns) != 2:
            return False
        first, second = (_words(name) for name in self.columns)
        up = first & (_LATITUDES | _NORTHS) and second & (_LONGITUDES | _EASTS)
        return self.geographic or bool(up)

    def may_be_degrees(self, points: Float64s) -> bool:
        """Whether what is called x and y has the range of longitudes and latitudes.

        Examples
        --------
        >>> Places.of(["x", "y"]).may_be_degrees(np.array([[-66.22, -0.44], [2.35, 48.86]]))
        True
        """
        if self.geographic or len(self.columns) != 2:
            return False
        first, second = (_words(name) for name in self.columns)
        east, north = np.abs(points).max(axis=0)
        fractions = bool((points != np.round(points)).any())
        named = bool(first & _EASTS and second & _NORTHS)
        return bool(named and fractions and 20 < east <= 180 and north <= 90)

    def read(self, table: Table) -> Float64s:
        """Coordinates of the rows, (n, c), all NaN where one is missing.

        Raises
        ------
        DataError
            If some are no numbers or beyond the Earth.
        """
        table.require(self.columns)
        points = np.column_stack(
            [table.checked_numbers(name, missing=True) for name in self.columns]
        )
        points[np.isnan(points).any(axis=1)] = np.nan
        if self.geographic:
            for column, (limit, what) in enumerate(((90, "latitude"), (360, "longitude"))):
                beyond = np.flatnonzero(np.abs(points[:, column]) > limit)
                if beyond.size:
                    row = int(beyond[0])
                    cell = table.texts(self.columns[column])[row]
                    raise table.fail(
                        row,
                        f"{cell} is no {what} in degrees (at most {limit}); {_advice(points)}",
                        self.columns[column],
                    )
        return points

    def nowhere(self, points: Float64s) -> int:
        """How many rows are at latitude 0 and longitude 0, where others are far from it.

        Examples
        --------
        >>> Places.of(["lat", "lon"]).nowhere(np.array([[47.6, -122.3], [0.0, 0.0]]))
        1
        """
        if not self.geographic:
            return 0
        apart = np.abs(points).max(axis=1)
        known = apart[~np.isnan(apart)]
        zero = known == 0
        return int(zero.sum()) if (known[~zero] > 10).all() and not zero.all() else 0


def _advice(points: Float64s) -> str:
    """What columns of degrees may be instead."""
    lat, lon = np.nanmax(np.abs(points), axis=0)
    if lat <= 360 and lon <= 90:
        return "latitude and longitude seem to be swapped: rename the columns"
    if lat > 1000:
        return "for metres say metric euclidean"
    return "correct it, or empty the cell"


def _words(name: str) -> set[str]:
    return {word.lower() for word in _WORDS.findall(name)}
