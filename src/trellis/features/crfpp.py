r"""Template files of CRF++ and Wapiti.

    U01:%x[-1,0]/%x[0,0]     features from columns: row offset and column number
    B                        transitions (Trellis always has them)
    U:wrd=%X[0,0]            Wapiti: upper-case X lower-cases the value
    U:cap=%t[0,0,"^\u"]      Wapiti: t tests a pattern, m takes the matched part
    *                        Wapiti: U and B in one

A term beyond the sentence gives a boundary symbol, as in both tools; a pattern that does not match
gives no feature (in Wapiti «false» or an empty match). ``B`` and ``*`` lines that use columns
become templates with ``@ edge``, crossed with single labels and with pairs: after a ``B`` line, a
model has some weights that CRF++ does not have.

Wapiti's patterns are simpler than Python's: ``^`` at the start, ``$`` at the end, ``.``, ``*``
(as few as possible), ``?``, and the ASCII classes ``\a \d \l \p \s \u \w`` with their complements
in upper case; anything else stands for itself.
"""

from __future__ import annotations

import os
import re
import string
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from trellis.errors import TemplateError
from trellis.features.templates import Call, Template, Templates, Term
from trellis.files import display_name, open_text_bytes

__all__ = ["read_crfpp"]

_MACRO = re.compile(r'%(?P<kind>[xXtTmM])\[\s*(?P<row>@?[-+]?\d{1,3})\s*,\s*(?P<column>\d{1,3})'
                    r'\s*(?:,\s*"(?P<pattern>(?:[^"\\]|\\.)*)"\s*)?\]')  # fmt: skip

_CLASSES = {
    "a": "A-Za-z",
    "d": "0-9",
    "l": "a-z",
    "p": re.escape(string.punctuation),
    "s": r"\s",
    "u": "A-Z",
    "w": "A-Za-z0-9",
}


def read_crfpp(path: str | os.PathLike[Any], columns: Sequence[str]) -> Templates:
    r"""Read a CRF++ or Wapiti template file.

    Parameters
    ----------
    path : path
    columns : list of str
        Names of the columns that the file numbers 0, 1, 2, …

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from trellis.features import read_crfpp
    >>> file = pathlib.Path(tempfile.mkdtemp(), "template")
    >>> _ = file.write_text("# words\nU00:%x[0,0]\nU01:%x[-1,0]/%x[0,1]\nB\n")
    >>> print(read_crfpp(file, ["word", "pos"]).text())
    edges = mark
    word
    word[-1] & pos
    """
    text = open_text_bytes(path).decode("utf-8-sig", errors="replace")
    return parse_crfpp(text, columns, display_name(path))


def parse_crfpp(text: str, columns: Sequence[str], name: str = "templates") -> Templates:
    """Read templates from the text of a CRF++ or Wapiti template file."""
    templates: dict[Template, bool] = {}  # whether each is crossed with pairs of labels, too
    identifiers: dict[str, str] = {}
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        try:
            template = _line(line, columns, identifiers)
        except TemplateError as error:
            raise TemplateError(f"{name}, line {number}: {error}") from None
        if template is None:
            continue
        plain = replace(template, edge=False)  # a U and a B line of the same columns are one
        templates[plain] = templates.get(plain, False) or template.edge
    if not templates:
        raise TemplateError(f"{name}: no templates that start with U")
    return Templates(
        tuple(replace(plain, edge=edge) for plain, edge in templates.items()), mark_edges=True
    )


def _line(line: str, columns: Sequence[str], identifiers: dict[str, str]) -> Template | None:
    kind = line[0].upper()
    if kind not in "UB*":
        raise TemplateError(f"{line!r} does not start with U, B or *")
    macros = list(_MACRO.finditer(line))
    if "%" in _MACRO.sub("", line):
        raise TemplateError(f"{line!r}: a %-macro is not of the form %x[row,column]")
    if kind == "B" and not macros:
        return None
    skeleton = _MACRO.sub("%", line)
    if identifiers.setdefault(skeleton, line) != line:
        raise TemplateError(
            f"{line!r} and {identifiers[skeleton]!r} share one identifier (a bag of words); "
            "give each its own, e.g. U01: and U02:"
        )
    if not macros:
        return Template("bias")
    terms = tuple(_term(macro, columns) for macro in macros)
    return Template("conjunction", terms, edge=kind in "B*")


def _term(macro: re.Match[str], columns: Sequence[str]) -> Term:
    row = macro["row"]
    if row.startswith("@"):
        raise TemplateError(f"{macro[0]}: absolute rows (@) are not supported")
    index = int(macro["column"])
    if index >= len(columns):
        raise TemplateError(
            f"{macro[0]} names column {index}; there are {len(columns)}: {', '.join(columns)}"
        )
    kind, pattern = macro["kind"], macro["pattern"]
    call: Call | None = None
    if kind in "xX":
        if pattern is not None:
            raise TemplateError(f"{macro[0]}: %x takes no pattern")
        call = Call("lower") if kind == "X" else None
    else:
        if pattern is None:
            raise TemplateError(f'{macro[0]}: %{kind} takes a pattern, e.g. %t[0,0,"\\d"]')
        if kind == "M":
            raise TemplateError(f"{macro[0]}: %M (lower-cased match) is not supported; use %m")
        call = Call("test" if kind in "tT" else "match", (_wapiti_pattern(pattern),))
    return Term(columns[index], call, int(row))


def _wapiti_pattern(pattern: str) -> str:
    """One of Wapiti's regular expressions in Python's notation (see the module)."""
    items = re.findall(r"\\.|.", pattern.removeprefix("^"))
    start = "^" if pattern.startswith("^") else ""
    end = "$" if items and items[-1] == "$" else ""
    suffix = ""
    repeatable = False
    for item in items[:-1] if end else items:
        if item in "*?":
            if not repeatable:
                raise TemplateError(f"pattern {pattern!r}: {item} follows nothing it can repeat")
            suffix += "*?" if item == "*" else "?"
        elif item == ".":
            suffix += item
        elif item[1:].lower() in _CLASSES:
            complement = "^" if item[1:].isupper() else ""
            suffix += f"[{complement}{_CLASSES[item[1:].lower()]}]"
        else:
            suffix += re.escape(item[-1])
        repeatable = item not in "*?"
    return f"{start}{suffix}{end}"
