"""What a column of a table is: a number, a date, a category, or nothing to learn from.

The cells that are there, c of them with d distinct values, say it, the first rule that holds:

    empty        c = 0
    constant     d = 1 and no cell is missing (or what is there is a number)
    identifier   numbers that are only names, d >= 0.9 c: the column is called zip, fips, ...
    category     such numbers else
    identifier   whole numbers, d >= 0.9 c, in a column called id, key, ..., or a first column that
                 counts the rows
    number       all are numbers; or at most one in twenty is not, which are then missing
    date         all are dates in one and the same form; or at most one in twenty is not
    identifier   d >= 0.9 c: texts that hardly ever repeat
    category     else

No rule looks at the target, so that rows to be tested may take part.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np

from trellis.arrays import Float64s, Int64s
from trellis.files.table import MISSING, Table
from trellis.regression.written_cells import ODD_SHARE

__all__ = ["DATE_FORMS", "ColumnKind", "date_form", "days", "kind_of", "known_cells"]

Kind = Literal["number", "date", "category", "constant", "identifier", "empty"]

DATE_FORMS = {
    "%Y-%m-%d": "year-month-day",
    "%Y/%m/%d": "year/month/day",
    "%m/%d/%Y": "month/day/year",
    "%d/%m/%Y": "day/month/year",
    "%d.%m.%Y": "day.month.year",
    "%d-%m-%Y": "day-month-year",
    "%m-%d-%Y": "month-day-year",
    "%Y-%m-%d %H:%M": "year-month-day and time",
    "%Y-%m-%d %H:%M:%S": "year-month-day and time",
    "%Y-%m-%dT%H:%M": "year-month-day and time",
    "%Y-%m-%dT%H:%M:%S": "year-month-day and time",
    "%Y-%m-%dT%H:%M:%SZ": "year-month-day and time",
    "%Y%m%dT%H%M%S": "year-month-day and time",
    "%m/%d/%Y %H:%M": "month/day/year and time",
    "%d/%m/%Y %H:%M": "day/month/year and time",
    "%d.%m.%Y %H:%M": "day.month.year and time",
    "%d %b %Y": "day month year",
    "%d %B %Y": "day month year",
    "%d-%b-%Y": "day-month-year",
    "%b %d, %Y": "month day, year",
    "%B %d, %Y": "month day, year",
    "%Y-%m-%d %H:%M:%S.%f": "year-month-day and time",
    "%Y-%m-%dT%H:%M:%S.%f": "year-month-day and time",
    "%Y-%m-%dT%H:%M:%S.%fZ": "year-month-day and time",
    "%Y-%m-%d %H:%M:%S%z": "year-month-day and time",
    "%Y-%m-%dT%H:%M:%S%z": "year-month-day and time",
    "%Y-%m-%dT%H:%M:%S.%f%z": "year-month-day and time",
    "%m/%d/%Y %H:%M:%S": "month/day/year and time",
    "%d/%m/%Y %H:%M:%S": "day/month/year and time",
    "%d.%m.%Y %H:%M:%S": "day.month.year and time",
    "%m/%d/%Y %I:%M %p": "month/day/year and time",
    "%m/%d/%Y %I:%M:%S %p": "month/day/year and time",
    "%m/%d/%y": "month/day/year",
    "%d/%m/%y": "day/month/year",
    "%d.%m.%y": "day.month.year",
    "%d-%b-%y": "day-month-year",
    "%b-%y": "month-year",
    "%Y-%m": "year-month",
    "%m/%Y": "month/year",
    "%Y%m%d": "yearmonthday",
}
"""How a date may be written, and how people call it; of two that fit all cells, the first."""

_DISTINCT = 0.9
_STAND_INS = (-9, -99, -999, -9999, -99999, -32768, 99, 999, 9999, 99999, 999999)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ID = re.compile(r"(.*[_\s-])?(id|uuid|guid|key|index|idx|rowid|row|no|nr)|unnamed.*|id[_\s-].*")
_NAMES = re.compile(
    r"(.*[_\s-])?(zip|zip_?code|post_?code|postal_?code|plz|fips|geoid)([_\s-].*)?", re.IGNORECASE
)
_DAYS = re.compile(r"(.*[_\s-])?(date|day|datum|time|when|dt)([_\s-].*)?|.*date")
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True)
class ColumnKind:
    """What a column is, and why; of a date also its form; of a category what it nearly was."""

    kind: Kind
    why: str
    form: str = ""
    hint: str = ""


def known_cells(table: Table, column: str) -> list[str | None]:
    """The cells of a column as text, None where one is missing.

    Examples
    --------
    >>> from trellis.files.table import read_table
    >>> known_cells(read_table({"a": [" x", "NA", 3]}), "a")
    ['x', None, '3']
    """
    values = table.columns[column]
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        texts = np.datetime_as_string(values.astype("datetime64[s]")).tolist()
        return [None if text == "NaT" else text for text in texts]
    if isinstance(values, np.ndarray) and values.dtype.kind == "f":  # 3.0 and 3 are one category
        return [None if v != v else f"{v:.15g}" for v in values.tolist()]  # noqa: PLR0124
    return [None if c.lower() in (*MISSING, "nat") else c for c in table.texts(column)]


def kind_of(table: Table, column: str) -> ColumnKind:
    """Say what a column is.

    Examples
    --------
    >>> from trellis.files.table import read_table
    >>> table = read_table({"size": [50, "?", 70], "sold": ["2024-05-01", "2024-06-01", "NA"]})
    >>> kind_of(table, "size").kind, kind_of(table, "sold").kind
    ('number', 'date')
    """
    cells = known_cells(table, column)
    known = [cell for cell in cells if cell is not None]
    if not known:
        return ColumnKind("empty", "no value")
    distinct = len(set(known))
    numbers, bad = table.numbers(column)
    numeric = (
        _kind(table.columns[column]) not in "Mb"
        and bad.size <= ODD_SHARE * len(known)
        and bad.size < len(known)
    )
    if distinct == 1 and (len(known) == len(cells) or (numeric and not bad.size)):
        return ColumnKind("constant", f"always {_short(known[0])}")
    often = len(known) >= 3 and distinct >= _DISTINCT * len(known)
    if numeric and _NAMES.fullmatch(column.lower()) and often:
        return ColumnKind("identifier", "hardly a value repeats")
    if numeric and _NAMES.fullmatch(column.lower()):
        return ColumnKind("category", "numbers that are names")
    if numeric:
        return _numeric(table, column, numbers, int(bad.size), distinct)
    form = date_form(known)
    if form:
        return ColumnKind("date", DATE_FORMS[form], form)
    hint = _nearly(table, column, cells, bad)
    if often:
        return ColumnKind("identifier", hint or "hardly a value repeats")
    return ColumnKind("category", f"{distinct} values", hint=hint)


def _nearly(table: Table, column: str, cells: list[str | None], bad: Int64s) -> str:
    """Say that most cells are numbers or dates, and which are not, in words."""
    if _kind(table.columns[column]) in "Mb":
        return ""
    known = [cell for cell in cells if cell is not None]
    if bad.size <= len(known) / 2:
        return f"mostly numbers, but {bad.size} cells such as {_short(str(cells[bad[0]]))!r}"
    form = date_form(known, odd=0.5)
    if not form:
        return ""
    odd = [cell for cell, day in zip(known, days(known, form), strict=True) if np.isnan(day)]
    return f"mostly {DATE_FORMS[form]}, but {len(odd)} cells such as {_short(odd[0])!r}"


def _numeric(table: Table, column: str, numbers: Float64s, bad: int, distinct: int) -> ColumnKind:
    known = numbers[~np.isnan(numbers)]
    if not np.isfinite(known).all():
        return ColumnKind("number", "")
    whole = bool((known == np.floor(known)).all())
    if whole and not bad and _DAYS.fullmatch(column.lower()) and known.min() > 1e7:
        form = date_form([cell for cell in known_cells(table, column) if cell is not None])
        if form:
            return ColumnKind("date", DATE_FORMS[form], form)
    often = len(known) >= 3 and distinct >= _DISTINCT * len(known)
    first = column == next(iter(table.columns))
    counts = len(known) == len(table) and bool((np.diff(known) == 1).all()) and known[0] in (0, 1)
    if whole and often and (_ID.fullmatch(column.lower()) or (first and counts)):
        return ColumnKind("identifier", "it numbers the rows")
    said = [f"{bad} cells that are no numbers are missing"] if bad else []
    return ColumnKind("number", "; ".join([*said, *_gaps_in_disguise(known)]))


def _gaps_in_disguise(known: Float64s) -> list[str]:
    """Say that some cells are -9999 or the like, far from all others."""
    for value in _STAND_INS:
        same = known == value
        if same.sum() >= 2 and not same.all():
            rest = known[~same]
            apart = min(abs(value - rest.min()), abs(value - rest.max()))
            outside = value < rest.min() or value > rest.max()
            if outside and apart > 3 * max(np.ptp(rest), 1.0):
                return [f"{int(same.sum())} cells are {value:g}: empty them if these are gaps"]
    return []


def date_form(cells: Sequence[str], odd: float = ODD_SHARE) -> str:
    """Return the form in which nearly all of these cells are dates; "" if there is none.

    Examples
    --------
    >>> date_form(["13/10/2014", "2/9/2014"]), date_form(["10/2/2014"]), date_form(["a"])
    ('%d/%m/%Y', '%m/%d/%Y', '')
    """
    count = Counter(cells)
    distinct = sorted(count)
    if not _DIGIT.search(distinct[0]) and not _DIGIT.search(distinct[-1]):
        return ""
    best, fewest = "", odd * len(cells)
    few = distinct[:: max(1, len(distinct) // 40)]
    for form in DATE_FORMS:
        most = max(1, min(2 * odd, 0.95) * len(few))
        if sum(_parsed(cell, form) is None for cell in few) > most:
            continue
        wrong = sum(n for cell, n in count.items() if _parsed(cell, form) is None)
        if wrong < len(cells) and (wrong < fewest or (wrong <= fewest and not best)):
            best, fewest = form, wrong
    return best


def days(cells: Sequence[str | None], form: str) -> Float64s:
    """Return days since 1 January 1970, NaN where a cell is no date.

    Examples
    --------
    >>> days(["1970-01-02", None, "x"], "%Y-%m-%d")
    array([ 1., nan, nan])
    """
    found: dict[str | None, float] = {None: np.nan}
    for cell in set(cells) - {None}:
        moment = _parsed(str(cell), form)
        found[cell] = np.nan if moment is None else (moment - _EPOCH).total_seconds() / 86400
    return np.array([found[cell] for cell in cells], dtype=np.float64)


def _parsed(cell: str, form: str) -> datetime | None:
    try:
        return datetime.strptime(cell, form).replace(tzinfo=UTC)
    except ValueError:
        return None


def _kind(values: Any) -> str:
    """The kind of an array: times and truth values are no numbers."""
    return values.dtype.kind if isinstance(values, np.ndarray) else "O"


def _short(text: str) -> str:
    return text if len(text) <= 20 else f"{text[:19]}…"
