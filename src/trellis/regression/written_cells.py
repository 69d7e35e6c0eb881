"""Cells as people write them: ``1,234``, ``$ 5.00``, ``12 %``, and ``-`` or ``#N/A`` for nothing.

A column is read without its marks of thousands, its currency and its per cent if these are the only
ones of their kind in it and nearly all of its cells are numbers then. What stands for nothing in
spreadsheets becomes an empty cell, in any column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from trellis.files.table import MISSING, Table

__all__ = ["ODD_SHARE", "plain_cells"]

ODD_SHARE = 0.05
"""Of the cells of a column so many may be something else, which counts as missing."""

_GAPS = frozenset(
    ("-", "--", "–", "—", ".", "n.a.", "#n/a", "#na", "#value!", "#div/0!", "#ref!", "#num!",
     "#name?", "#null!", "#n/d", "#nv", "#wert!", "#bezug!", "#zahl!")
)  # fmt: skip
_CURRENCY = r"[$€£¥₹₽₩]|(?:USD|EUR|GBP|CHF|CAD|AUD)"
_WRITTEN = {
    mark: re.compile(
        rf"(?P<sign>[+-]?)\s*(?P<before>{_CURRENCY})?\s*(?P<inner>[+-]?)"
        rf"(?P<whole>[0-9]{{1,3}}(?P<group>[{others}'’\u00a0\u202f ])[0-9]{{3}}"
        r"(?:(?P=group)[0-9]{3})*|[0-9]+)"
        rf"(?P<rest>{re.escape(mark)}[0-9]*)?\s*(?P<after>%|{_CURRENCY})?"
    )
    for mark, others in ((".", ","), (",", "."))
}


def plain_cells(
    table: Table, columns: Iterable[str], words: Iterable[str] = ()
) -> tuple[Table, dict[str, str]]:
    """Return the table with plain cells in these columns, and what was taken off which of them.

    In columns of `words` cells that stand for nothing are emptied, and nothing else.

    Examples
    --------
    >>> from trellis.files.table import read_table
    >>> table = read_table({"price": ["$1,200", "$950.50", "-"], "share": ["5 %", "7 %", "8 %"]})
    >>> plain, off = plain_cells(table, ["price", "share"])
    >>> plain.texts("price"), plain.texts("share"), off
    (['1200', '950.50', ''], ['5', '7', '8'], {'price': 'without $ and ,', 'share': 'without %'})
    """
    changed: dict[str, Any] = {}
    off: dict[str, str] = {}
    words = set(words)
    for name in dict.fromkeys((*columns, *words)):
        given = table.columns.get(name)
        if given is None or (isinstance(given, np.ndarray) and given.dtype.kind not in "OUST"):
            continue
        texts = table.texts(name)
        gaps = {cell for cell in set(texts) if cell.lower() in _GAPS}
        cells = ["" if cell in gaps else cell for cell in texts] if gaps else texts
        read, signs = _without_signs(cells, table.decimal) if name not in words else (cells, [])
        if signs:
            off[name] = f"without {' and '.join(signs)}"
        if signs or gaps:
            changed[name] = read
    return (replace(table, columns={**table.columns, **changed}) if changed else table), off


def _without_signs(cells: list[str], decimal: str) -> tuple[list[str], list[str]]:
    """Cells without currencies, per cents and marks of thousands, and which these were."""
    odd = {cell for cell in set(cells) if cell.lower() not in MISSING and not _plain(cell, decimal)}
    found = {cell: match for cell in odd if (match := _WRITTEN[decimal].fullmatch(cell))}
    if not found:
        return cells, []
    known = [cell for cell in cells if cell.lower() not in MISSING]
    if sum(cell in odd and cell not in found for cell in known) > ODD_SHARE * len(known):
        return cells, []
    if decimal == "," and any("." in cell and _plain(cell, ".") for cell in odd - set(found)):
        return cells, []  # points of decimals all the same
    units = {match["before"] or match["after"] for match in found.values()} - {None}
    groups = {match["group"] for match in found.values()} - {None}
    both = any(match["before"] and match["after"] for match in found.values())
    signed = any(match["sign"] and match["inner"] for match in found.values())
    bare = any(
        cell not in odd or not (found[cell]["before"] or found[cell]["after"])
        for cell in known
        if cell not in odd or cell in found
    )
    if len(units) > 1 or len(groups) > 1 or both or signed or ("%" in units and bare):
        return cells, []  # 5 % and 0.05 are not of one kind, nor are $5 and 5 €
    if any(match["whole"].startswith("0") and match["group"] for match in found.values()):
        return cells, []  # no number begins 0,123
    plain = {
        cell: match["sign"]
        + match["inner"]
        + (match["whole"].replace(match["group"], "") if match["group"] else match["whole"])
        + (match["rest"] or "")
        for cell, match in found.items()
    }
    names = [mark if mark.strip() else "spaces" for mark in sorted(groups)]
    return [plain.get(cell, cell) for cell in cells], [*sorted(units), *names]


def _plain(cell: str, decimal: str) -> bool:
    if decimal != "." and "." in cell:
        return False
    try:
        float(cell.replace(decimal, "."))
    except ValueError:
        return False
    return True
