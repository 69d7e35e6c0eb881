"""Rows of a table as numbers: each column says how, once, and new tables are read just so.

    number     itself; a missing one is NaN
    date       days since 1970; also the month if dates span more than a year, the weekday, and the
               hour if there are times
    category   of few values: a column of 0 and 1 for each («one-hot»); of many: the mean target of
               rows with that value (:mod:`trellis.regression.target_means`)

«Missing» is a value of a category like any other. A value that training never saw is 0 in all
columns of 0 and 1, and the mean of all targets.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trellis.arrays import Float64s, Int64s
from trellis.errors import CorruptModelError, DataError
from trellis.files.stored import header_value, take
from trellis.files.table import Table
from trellis.regression.column_kinds import DATE_FORMS, date_form, days, kind_of, known_cells
from trellis.regression.target_means import crossed_means, level_means
from trellis.regression.written_cells import ODD_SHARE

__all__ = ["ColumnCode", "Encoded", "TableRows"]

_HOWS = ("number", "date", "one-hot", "means")
_PARTS = ("day", "month", "weekday", "hour")
_YEAR, _MONTH = 400.0, 28.0  # days
_GREATEST = 1e30  # beyond is what stands for nothing, such as -3.4e38 of raster maps
_MISSING = ""  # the value of a cell that is missing; no cell that is there is empty


@dataclass(frozen=True)
class ColumnCode:
    """How one column becomes numbers.

    Attributes
    ----------
    name : str
    how : "number", "date", "one-hot" or "means"
    levels : tuple of str
        Values of a category, "" for missing.
    form : str
        How a date is written.
    parts : tuple of str
        What of a date is used.
    means : (levels + 1,) array or None
        Numbers of the values and of others, once they have been learnt.
    note : str
        What a user should know.
    """

    name: str
    how: str
    levels: tuple[str, ...] = ()
    form: str = ""
    parts: tuple[str, ...] = ()
    means: Float64s | None = None
    note: str = ""

    @property
    def names(self) -> list[str]:
        """Names of the numbers that it becomes."""
        if self.how == "one-hot":
            return [f"{self.name}={level or 'missing'}" for level in self.levels]
        if self.how == "date":
            return [f"{self.name} ({part})" for part in self.parts]
        return [f"{self.name} (mean)" if self.how == "means" else self.name]

    def columns(self, table: Table) -> Float64s:
        """The numbers, (n, k); of means the number of the value, -1 for an unknown one."""
        if self.how == "number":
            values, bad = table.numbers(self.name)
            infinite = np.flatnonzero(np.isinf(values))
            if infinite.size:
                row = int(infinite[0])
                cell = table.texts(self.name)[row]
                raise table.fail(row, f"{cell!r} is not finite; leave the cell empty", self.name)
            huge = np.flatnonzero(np.abs(values) > _GREATEST)
            if huge.size:
                row = int(huge[0])
                cell = table.texts(self.name)[row]
                raise table.fail(
                    row, f"{cell!r} is too large a number; empty the cell if it is a gap", self.name
                )
            self._check_odd(table, bad, "is not a number")
            values[bad] = np.nan
            return np.asarray(values[:, None], dtype=np.float64)
        cells = known_cells(table, self.name)
        if self.how == "date":
            when = days(cells, self.form)
            there = np.array([cell is not None for cell in cells], dtype=bool)
            bad = np.flatnonzero(there & np.isnan(when))
            if len(bad) > ODD_SHARE * there.sum():  # a new table may write them in another form
                form = date_form([cell for cell in cells if cell is not None])
                if form:
                    when = days(cells, form)
                    bad = np.flatnonzero(there & np.isnan(when))
            self._check_odd(table, bad, f"is no date, such as {DATE_FORMS[self.form]}")
            return _parts_of(when, self.parts)
        place = {level: i for i, level in enumerate(self.levels)}
        codes = np.array([place.get(c or _MISSING, -1) for c in cells], dtype=np.int64)
        if self.how == "means":
            return np.asarray(codes[:, None], dtype=np.float64)
        return np.asarray(codes[:, None] == np.arange(len(self.levels)), dtype=np.float64)

    def _check_odd(self, table: Table, rows: Int64s, what: str) -> None:
        """Refuse a column in which more than a few cells are not what they should be."""
        cells = known_cells(table, self.name) if len(rows) else []
        if len(rows) > ODD_SHARE * sum(cell is not None for cell in cells):
            raise table.fail(rows[0], f"{cells[rows[0]]!r} {what}", self.name)


@dataclass(frozen=True)
class Encoded:
    """A table as numbers, but for means: there stands which value a row has."""

    X: Float64s
    coded: tuple[int, ...]

    def subset(self, rows: Int64s) -> Encoded:
        """Some rows."""
        return replace(self, X=self.X[rows])


@dataclass(frozen=True, repr=False)
class TableRows:
    """How the rows of a table become numbers.

    Attributes
    ----------
    codes : tuple of ColumnCode
    left_out : dict of str to str
        Columns that are not used, and why.
    """

    codes: tuple[ColumnCode, ...]
    left_out: Mapping[str, str]

    @classmethod
    def of(
        cls,
        table: Table,
        columns: Sequence[str],
        *,
        wanted: Collection[str] = (),
        categories: Collection[str] = (),
        max_levels: int = 10,
        notes: Mapping[str, str] | None = None,
    ) -> TableRows:
        """Decide for columns of a table; those `wanted` are used even where that looks unwise.

        `notes` say how cells of columns were read.

        Examples
        --------
        >>> from trellis.files.table import read_table
        >>> table = read_table({"id": [7, 8, 9], "size": [50, None, 70], "kind": ["a", "b", "a"]})
        >>> rows = TableRows.of(table, ["id", "size", "kind"])
        >>> rows.names, dict(rows.left_out)
        (['size', 'kind=a', 'kind=b'], {'id': 'identifier: it numbers the rows'})
        >>> rows.encoded(table).X
        array([[50.,  1.,  0.],
               [nan,  0.,  1.],
               [70.,  1.,  0.]])
        """
        codes, left_out = [], {}
        for name in columns:
            found = kind_of(table, name)
            kind = "category" if name in categories else found.kind
            if name in wanted and kind in ("identifier", "constant"):
                kind = "category" if table.numbers(name)[1].size else "number"
            if kind == "empty" and name in categories:
                kind = "category"
            if kind in ("identifier", "constant", "empty"):
                left_out[name] = f"{kind}: {found.why}" if kind != "empty" else found.why
            elif kind == "number":
                said = (notes or {}).get(name, "")
                note = "; ".join(filter(None, (said, found.why)))
                codes.append(ColumnCode(name, "number", note=note))
            elif kind == "date":
                codes.append(_date(table, name, found.form))
            else:
                levels = tuple(sorted({c or _MISSING for c in known_cells(table, name)}))
                how = "one-hot" if len(levels) <= max_levels else "means"
                codes.append(ColumnCode(name, how, levels, note=found.hint))
        return cls(tuple(codes), left_out)

    @property
    def names(self) -> list[str]:
        """Names of the numbers."""
        return [name for code in self.codes for name in code.names]

    def __repr__(self) -> str:
        return f"<{len(self.codes)} columns as {len(self.names)} numbers>"

    @property
    def sources(self) -> list[str]:
        """The column of the table that each number is of."""
        return [code.name for code in self.codes for _ in code.names]

    def encoded(self, table: Table) -> Encoded:
        """Numbers of a table, but for means."""
        table.require(code.name for code in self.codes)
        blocks = [code.columns(table) for code in self.codes]
        X = np.column_stack(blocks) if blocks else np.empty((len(table), 0))
        sources = [code.how == "means" for code in self.codes for _ in code.names]
        return Encoded(np.ascontiguousarray(X), tuple(np.flatnonzero(sources).tolist()))

    def unseen(self, table: Table) -> list[tuple[str, int, str]]:
        """Columns with values that training never saw: how many cells, and one of the values."""
        found = []
        for code in self.codes:
            if code.how in ("one-hot", "means"):
                new = [c for c in known_cells(table, code.name) if c and c not in set(code.levels)]
                if new:
                    found.append((code.name, len(new), new[0]))
        return found

    def learned(self, given: Encoded, y: Float64s) -> TableRows:
        """With the means of these rows."""
        codes = list(self.codes)
        for column, k in zip(given.coded, self._of_means(), strict=True):
            values = given.X[:, column].astype(np.int64)
            codes[k] = replace(codes[k], means=level_means(values, y, len(codes[k].levels)))
        return replace(self, codes=tuple(codes))

    def crossed(self, given: Encoded, y: Float64s, random_state: int) -> Float64s:
        """Numbers of the rows that are trained on, whose means know nothing of their targets."""
        X = given.X.copy()
        for column, k in zip(given.coded, self._of_means(), strict=True):
            values, n_levels = given.X[:, column].astype(np.int64), len(self.codes[k].levels)
            X[:, column] = crossed_means(values, y, n_levels, random_state)
        return X

    def filled(self, given: Encoded) -> Float64s:
        """Numbers of other rows."""
        X = given.X.copy()
        for column, k in zip(given.coded, self._of_means(), strict=True):
            means = self.codes[k].means
            assert means is not None  # of `learned`
            X[:, column] = means[given.X[:, column].astype(np.int64)]
        return X

    def _of_means(self) -> list[int]:
        return [k for k, code in enumerate(self.codes) if code.how == "means"]

    def describe(self) -> list[tuple[str, str]]:
        """Each column, and what became of it, in words."""
        rows = []
        for code in self.codes:
            said = code.how
            if code.how == "one-hot":
                said = f"category, {len(code.levels)} values, one column each"
            elif code.how == "means":
                said = f"category, {len(code.levels)} values, mean target of each"
            elif code.how == "date":
                said = f"date ({DATE_FORMS[code.form]}): {', '.join(code.parts)}"
            rows.append((code.name, f"{said}; {code.note}" if code.note else said))
        return rows + [(name, f"left out ({why})") for name, why in self.left_out.items()]

    def state(self) -> list[Any]:
        """What a file holds."""
        return [
            {"name": c.name, "how": c.how, "levels": list(c.levels), "form": c.form,
             "parts": list(c.parts), "means": c.means}
            for c in self.codes
        ]  # fmt: skip

    @classmethod
    def restored(cls, state: Any) -> TableRows:
        """Undo :meth:`state`, checking everything."""
        if not isinstance(state, list) or not all(isinstance(entry, dict) for entry in state):
            raise CorruptModelError("the columns of a table are not as they should be")
        rows = cls(tuple(_restored(entry) for entry in state), {})
        if len({code.name for code in rows.codes}) < len(rows.codes):
            raise CorruptModelError("two columns of a table have one name")
        return rows

    def check(self) -> None:
        """Refuse a table that leaves nothing to learn from."""
        if not self.codes:
            why = "; ".join(f"{name}: {reason}" for name, reason in self.left_out.items())
            raise DataError(
                "no column is left to predict from" + (f" ({why})" if why else "")
                + "; name some with features, or coordinates"
            )  # fmt: skip


def _date(table: Table, name: str, form: str) -> ColumnCode:
    when = days(known_cells(table, name), form)
    when = when[~np.isnan(when)]
    parts = ["day"]
    if np.ptp(when) > _YEAR:
        parts.append("month")
    if "%d" in form and np.ptp(when) > _MONTH and len(np.unique(np.floor(when) % 7)) > 1:
        parts.append("weekday")
    if (when % 1).any():
        parts.append("hour")
    return ColumnCode(name, "date", form=form, parts=tuple(parts))


def _parts_of(when: Float64s, parts: tuple[str, ...]) -> Float64s:
    known = ~np.isnan(when)
    moment = when[known].astype("datetime64[D]")
    found = {
        "day": when[known],
        "month": moment.astype("datetime64[M]").astype(np.int64) % 12 + 1,
        "weekday": (moment.astype(np.int64) + 3) % 7,  # Monday is 0
        "hour": when[known] % 1 * 24,
    }
    values = np.full((len(when), len(parts)), np.nan)
    for column, part in enumerate(parts):
        values[known, column] = found[part]
    return values


def _restored(entry: dict[str, Any]) -> ColumnCode:
    how = header_value(entry, "how", str, choices=_HOWS)
    levels = header_value(entry, "levels", list, items=str)
    parts = header_value(entry, "parts", list, items=str)
    form = header_value(entry, "form", str)
    means = entry.get("means")
    if how == "means" and isinstance(means, np.ndarray):
        means = take(entry, "means", np.float64, (len(levels) + 1,))
    elif (how == "means") or means is not None:
        raise CorruptModelError("the means of a column are not as they should be")
    if len(set(levels)) < len(levels) or (how in ("one-hot", "means")) != bool(levels):
        raise CorruptModelError("the values of a category are not as they should be")
    if (how == "date") != (form in DATE_FORMS) or (how == "date") != bool(parts):
        raise CorruptModelError("a date is not as it should be")
    if not set(parts) <= set(_PARTS):
        raise CorruptModelError("a part of a date is none")
    name = header_value(entry, "name", str)
    return ColumnCode(name, how, tuple(levels), form, tuple(parts), means)
