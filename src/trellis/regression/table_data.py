"""A table, its target, and which columns are features and coordinates: what a regression is given.

Rows with a target are *known*, the others *unknown*: these are predicted only, and so are rows
without coordinates where neighbours are made of these. What columns are is decided once, by all
rows and without the target; what is learnt from the target is learnt from the rows trained on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from trellis.arrays import Float64s, Int64s
from trellis.errors import DataError
from trellis.files.table import Table
from trellis.regression.column_kinds import kind_of
from trellis.regression.places import Metric, Places
from trellis.regression.table_rows import Encoded, TableRows
from trellis.regression.written_cells import plain_cells

__all__ = ["TableData", "targets"]

_ALMOST = 0.99999  # a correlation that is no accident
_MANY = 20  # values whose order says something


def targets(table: Table, column: str, *, log: bool) -> Float64s:
    """Targets of a table or, if `log`, their logarithms; NaN where one is missing."""
    y = table.checked_numbers(column, missing=True)
    if not log:
        return y
    wrong = np.flatnonzero(y <= 0)
    if wrong.size:
        cell = table.texts(column)[wrong[0]]
        raise table.fail(
            wrong[0], f"{cell} has no logarithm; empty the cell, or leave log out", column
        )
    return np.asarray(np.log(y), dtype=np.float64)


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
        Targets, or their logarithms; NaN where unknown.
    places : Places or None
        Which columns are coordinates.
    points : (n, c) or None
        The coordinates; NaN where a row has none.
    note : str
        How the cells of the target were read.
    log : bool
        Whether `y` are logarithms.
    """

    table: Table
    target: str
    rows: TableRows
    given: Encoded
    y: Float64s
    places: Places | None
    points: Float64s | None
    note: str = ""
    log: bool = False

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
        log: bool = False,
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
        read, written = plain_cells(table, (*columns, *(coords or ()), target), categories)
        named = [n for n in written if n in columns and kind_of(read, n).kind == "category"]
        if named:  # 98,101 as a postcode: a name, which stays as it is
            read, written = plain_cells(
                table, (*columns, *(coords or ()), target), (*categories, *named)
            )
        table = read
        y = targets(table, target, log=log)
        places = Places.found(table, metric) if coords is None else Places.of(coords, metric)
        points = None if places is None else places.read(table)
        if places is not None and points is not None and np.isnan(points).all():
            raise DataError(f"{table.name}: no row has all of {', '.join(places.columns)}")
        rows = TableRows.of(
            table, columns, wanted=features or (), categories=categories, max_levels=max_levels,
            notes=written,
        )  # fmt: skip
        rows.check()
        note = written.get(target, "")
        return cls(table, target, rows, rows.encoded(table), y, places, points, note, log)

    @property
    def label(self) -> str:
        """What `y` is called."""
        return f"log {self.target}" if self.log else self.target

    @property
    def lost(self) -> Int64s:
        """Rows without coordinates, where the others have some."""
        if self.points is None:
            return np.empty(0, np.int64)
        return np.flatnonzero(np.isnan(self.points).any(axis=1))

    @property
    def known(self) -> Int64s:
        """Rows to learn from."""
        there = ~np.isnan(self.y)
        there[self.lost] = False
        return np.flatnonzero(there)

    @property
    def unknown(self) -> Int64s:
        """Rows to predict."""
        there = np.isnan(self.y)
        there[self.lost] = True
        return np.flatnonzero(there)

    def on_graph(self) -> TableData:
        """The same where neighbours are not made of coordinates: rows may do without."""
        return replace(self, places=None, points=None) if len(self.lost) else self

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
        """Columns that are the target in other units or on another scale, or nearly so."""
        from scipy.stats import rankdata

        known = self.known
        found = []
        for i, source in enumerate(self.rows.sources):
            x = self.given.X[known, i]
            both = np.isfinite(x)
            if i in self.given.coded or both.sum() < 10 or np.ptp(x[both]) == 0:
                continue
            x, y = x[both], self.y[known][both]
            if np.ptp(y) == 0:
                continue
            alike = [(x, y)]
            if min(len(np.unique(x)), len(np.unique(y))) > _MANY:
                alike.append((rankdata(x), rankdata(y)))  # such as its logarithm
            if any(abs(np.corrcoef(a, b)[0, 1]) > _ALMOST for a, b in alike):
                found.append(source)
        return found
