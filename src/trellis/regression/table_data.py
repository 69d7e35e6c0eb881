"""A table, its target, and which columns are features and coordinates: what a regression is given.

Rows with a target are *known*, the others *unknown*: these are predicted only. What columns are is
decided once, by all rows and without the target; what is learnt from the target is learnt from the
rows trained on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trellis.arrays import Float64s, Int64s
from trellis.errors import DataError
from trellis.files.table import Table
from trellis.regression.places import Metric, Places
from trellis.regression.table_rows import Encoded, TableRows

__all__ = ["TableData"]

_ALMOST = 0.99999  # a correlation that is no accident


@dataclass(frozen=True)
class TableData:
    """A table as numbers.

    Attributes
    ----------
    table : Table
    target : str
    rows : TableRows
        How columns become numbers.
    given : Encoded
        The numbers.
    y : (n,)
        Targets, NaN where unknown.
    places : Places or None
        Which columns are coordinates.
    points : (n, c) or None
        The coordinates.
    """

    table: Table
    target: str
    rows: TableRows
    given: Encoded
    y: Float64s
    places: Places | None
    points: Float64s | None

    @classmethod
    def of(
        cls,
        table: Table,
        target: str,
        *,
        features: Sequence[str] | None = None,
        drop: Sequence[str] | None = None,
        categories: Sequence[str] | None = None,
        coords: Sequence[str] | None = None,
        metric: Metric | None = None,
        max_levels: int = 10,
    ) -> TableData:
        """Read a table; the parameters are those of a ``TableRegressor``.

        Examples
        --------
        >>> from trellis.files.table import read_table
        >>> table = read_table({"lat": [1.0, 2], "lon": [3.0, 4], "size": [5, 6], "price": [7, ""]})
        >>> data = TableData.of(table, "price")
        >>> data.rows.names, data.known.tolist(), data.places.columns
        (['lat', 'lon', 'size'], [0], ('lat', 'lon'))
        """
        if not len(table):
            raise DataError(f"{table.name} has a header, but no rows")
        features, drop, categories, coords = (
            None if given is None else list(given) for given in (features, drop, categories, coords)
        )
        drop, categories = drop or (), categories or ()
        table.require((target, *(coords or ()), *(features or ()), *drop, *categories))
        if target in (*(coords or ()), *(features or ())):
            raise DataError(f"the target {target!r} is also a feature or a coordinate")
        if twice := sorted(set(drop) & {*(features or ()), *categories}):
            raise DataError(f"column {twice[0]!r} is dropped, and a feature or a category, too")
        columns = [n for n in features or table.columns if n != target and n not in drop]
        columns += [n for n in categories if n not in columns and n != target]
        y = table.checked_numbers(target, missing=True)
        places = Places.found(table, metric) if coords is None else Places.of(coords, metric)
        points = None if places is None else places.read(table)
        rows = TableRows.of(
            table, columns, wanted=features or (), categories=categories, max_levels=max_levels
        )
        rows.check()
        return cls(table, target, rows, rows.encoded(table), y, places, points)

    @property
    def known(self) -> Int64s:
        """Rows with a target."""
        return np.flatnonzero(~np.isnan(self.y))

    @property
    def unknown(self) -> Int64s:
        """Rows without one."""
        return np.flatnonzero(np.isnan(self.y))

    @property
    def regressors(self) -> tuple[int, ...] | None:
        """Numbers that are no coordinates; None: all are of some use."""
        where = () if self.places is None else self.places.columns
        apart = tuple(i for i, name in enumerate(self.rows.sources) if name not in where)
        return apart or None

    def check_targets(self, least: int, why: str) -> None:
        """Refuse a table with fewer known rows than this, or one target for all."""
        known = self.y[self.known]
        if len(known) < least:
            raise DataError(
                f"{self.table.name} has {len(known)} rows with a target; at least {least} are "
                f"needed {why}"
            )
        if np.ptp(known) == 0:
            raise DataError(f"{self.table.name}: column {self.target!r} is the same in every row")

    def numbers(self, train: Int64s, random_state: int) -> tuple[TableRows, Float64s]:
        """What is learnt of these rows, and the numbers of all: theirs know not their targets."""
        y, given = self.y[train], self.given.subset(train)
        rows = self.rows.learned(given, y)
        X = rows.filled(self.given)
        X[train] = rows.crossed(given, y, random_state)
        return rows, X

    def suspects(self) -> list[str]:
        """Columns that are the target in other units, or nearly so."""
        known = self.known
        found = []
        for i, source in enumerate(self.rows.sources):
            x = self.given.X[known, i]
            both = np.isfinite(x)
            if i in self.given.coded or both.sum() < 10 or np.ptp(x[both]) == 0:
                continue
            y = self.y[known][both]
            if np.ptp(y) > 0 and abs(np.corrcoef(x[both], y)[0, 1]) > _ALMOST:
                found.append(source)
        return found
