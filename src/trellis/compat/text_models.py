r"""Models of CRF++ and Wapiti, from their text files, as CRFs of Trellis that predict the same.

Both score labels by strings that templates make of the columns around a position:

.. math:: s(x, y) = \sum_t w_{u(x, t), y_t} + \sum_{t > 0} b_{y_{t-1}, y_t}

A model file lists the strings u with their weights, not what they were made of. So every string is
taken apart by its template again (in all ways, if tokens hold what stands between terms), and a
sample is written in which the template of Trellis has that value: its encoder learns the feature
there, and the feature gets the weights.

    CRF++ (``crf_learn -t``)      header, labels, templates, «number string», weights; blank lines
                                  between the parts. String n has the weights n, n + 1, …
    Wapiti                        «#mdl#…», «#rdr#…» and patterns, «#qrk#…» and labels, «#qrk#…» and
                                  strings, all as «length:text,»; then «number=weight»

Transitions must not look at columns (a bare ``B``), and Wapiti's patterns may be of %x and %X only.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Corpus
from trellis.errors import CorruptModelError, DataError, TemplateError
from trellis.features import Templates
from trellis.features.crfpp import parse_crfpp
from trellis.features.encoder import TemplateEncoder
from trellis.features.templates import Template
from trellis.files import display_name, open_text_bytes
from trellis.models import ChainCRF
from trellis.problems import Weights

__all__ = ["read_crfpp_model", "read_wapiti_model"]

_MACRO = re.compile(r"%[xX]\[[^\]]*\]")
_FURTHEST = 4  # rows away; beyond, boundary symbols of Wapiti are all the same, and CRF++ has none

Floats = NDArray[np.float64]


def read_crfpp_model(path: str | os.PathLike[Any], columns: Sequence[str]) -> ChainCRF:
    r"""Read a text model of CRF++, which ``crf_learn -t`` writes beside the binary one.

    Parameters
    ----------
    path
        The file.
    columns : list of str
        Names for the columns that the templates number 0, 1, 2, …

    Returns
    -------
    ChainCRF
        A fitted model. It predicts from corpora with these columns, can be saved, and learns on.

    Raises
    ------
    CorruptModelError
        If the file is no such model.
    TemplateError
        If its templates have no counterpart: transitions that look at columns, two templates with
        one identifier, rows more than four away.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from trellis import Corpus
    >>> from trellis.compat import read_crfpp_model
    >>> file = pathlib.Path(tempfile.mkdtemp(), "model.txt")
    >>> _ = file.write_text('''version: 100
    ... cost-factor: 1
    ... maxid: 8
    ... xsize: 1
    ...
    ... D
    ... N
    ...
    ... U:%x[0,0]
    ... B
    ...
    ... 0 B
    ... 4 U:cat
    ... 6 U:the
    ...
    ... 0
    ... 0.5
    ... 0
    ... 0
    ... -1
    ... 1
    ... 1
    ... -1
    ... ''')
    >>> crf = read_crfpp_model(file, ["word"])
    >>> crf.predict(Corpus.from_columns({"word": [["the", "cat"]]}))
    [['D', 'N']]
    """
    text, name = _text(path), display_name(path)
    with _reading(name):
        return _made(_crfpp(text), columns, "_B", name)


def read_wapiti_model(path: str | os.PathLike[Any], columns: Sequence[str]) -> ChainCRF:
    """Read a model of Wapiti; parameters, result and errors as of :func:`read_crfpp_model`."""
    text, name = _text(path), display_name(path)
    with _reading(name):
        return _made(_wapiti(text), columns, "_x", name)


def _text(path: str | os.PathLike[Any]) -> str:
    try:
        return open_text_bytes(path).decode()
    except UnicodeDecodeError:
        raise CorruptModelError(f"{display_name(path)}: not UTF-8 text, so no text model") from None


class _reading:  # noqa: N801 (it reads as a statement)
    """While a file is read: what is not a number, or missing, is its fault."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, CorruptModelError | DataError):
            return
        if isinstance(error, ValueError | LookupError | OverflowError):
            raise CorruptModelError(f"{self.name}: not a text model, or a damaged one") from None


# ---------------------------------------------------------------------------- files


@dataclass(frozen=True)
class _Model:
    """What a file holds: strings with a row of weights each, and summed transitions."""

    labels: list[str]
    templates: list[str]
    strings: list[str]
    node: Floats
    transitions: Floats


def _crfpp(text: str) -> _Model:
    lines = text.split("\n")
    parts: list[list[str]] = [[]]
    at = 0
    while len(parts) < 5:
        line = lines[at].rstrip("\r")
        at += 1
        if line:
            parts[-1].append(line)
        else:
            parts.append([])
    header = dict(line.split(": ", 1) for line in parts[0])
    labels, templates = parts[1], parts[2]
    weights = np.array([float(line) for line in lines[at:] if line.strip()])
    if len(weights) != int(header["maxid"]):
        raise ValueError
    weights *= float(header["cost-factor"])
    rows = [line.split(" ", 1) for line in parts[3]]
    return _sorted_out(labels, templates, [s for _, s in rows], [int(n) for n, _ in rows], weights)


def _wapiti(text: str) -> _Model:
    data, at = text.encode(), 0

    def line() -> str:
        nonlocal at
        end = data.index(b"\n", at)
        found, at = data[at:end].decode(), end + 1
        return found

    def string() -> str:
        nonlocal at
        colon = data.index(b":", at)
        start = colon + 1
        end = start + int(data[at:colon])
        if data[end : end + 1] != b",":
            raise ValueError
        at = end + 2  # also over the end of the line
        return data[start:end].decode()

    def table(mark: str) -> list[str]:
        head = line()
        if not head.startswith(mark):
            raise ValueError
        return [string() for _ in range(int(re.split("[/#]", head[len(mark) :])[0]))]

    head = line()
    if not head.startswith("#mdl#"):
        raise ValueError
    n_active = int(head.rsplit("#", 1)[1])
    templates, labels, strings = table("#rdr#"), table("#qrk#"), table("#qrk#")
    n = len(labels)
    sizes = {"u": n, "b": n * n, "*": n + n * n}
    first = [0, *itertools.accumulate(sizes[s[:1]] for s in strings)]
    weights = np.zeros(first[-1])
    for _ in range(n_active):
        number, weight = line().split("=")
        if number.startswith("-"):
            raise ValueError
        weights[int(number)] = float.fromhex(weight)
    return _sorted_out(labels, templates, strings, first[:-1], weights)


def _sorted_out(
    labels: list[str], templates: list[str], strings: list[str], first: list[int], weights: Floats
) -> _Model:
    """Weights by string, and those of transitions."""
    n = len(labels)
    if (
        not n
        or len(set(labels)) != n
        or min(first, default=0) < 0
        or not np.isfinite(weights).all()
    ):
        raise ValueError
    node, transitions = np.zeros((len(strings), n)), np.zeros((n, n))
    for row, (text, at) in enumerate(zip(strings, first, strict=True)):
        kind, own = text[0].lower(), n
        if kind in "u*":
            node[row] = weights[at : at + n].reshape(n)
        else:
            own = 0
        if kind in "b*":
            transitions += weights[at + own : at + own + n * n].reshape(n, n)
    return _Model(labels, templates, strings, node, transitions)


# ---------------------------------------------------------------------------- strings and samples


@dataclass(frozen=True)
class _Line:
    """A template line: what stands between its terms, and the template of Trellis it is."""

    between: list[str]
    template: Template

    def values(self, text: str) -> Iterator[tuple[str, ...]]:
        """All ways in which the terms may have made a string of these."""
        first, *rest = self.between
        if text.startswith(first):
            yield from _splits(text[len(first) :], rest)


def _splits(text: str, between: list[str]) -> Iterator[tuple[str, ...]]:
    if not between:
        if not text:
            yield ()
        return
    mark, *rest = between
    for end in range(1, len(text) + 1):  # tokens are never empty
        if text.startswith(mark, end) and (rest or end + len(mark) == len(text)):
            for more in _splits(text[end + len(mark) :], rest):
                yield (text[:end], *more)


@dataclass(frozen=True)
class _Window:
    """A sample, and the position in it where a template has given values."""

    rows: list[dict[str, str]]
    at: int


def _window(template: Template, values: Sequence[str], boundary: str) -> _Window | None:
    """A sample in which a template has these values; None if there cannot be one."""
    before = after = 0
    edge: dict[int, set[int]] = {-1: set(), 1: set()}  # rows there are on a side, from its marks
    cells: dict[tuple[int, str], str] = {}
    lowered: list[tuple[tuple[int, str], str]] = []
    for term, value in zip(template.terms, values, strict=True):
        side = -1 if term.offset < 0 else 1
        distance = abs(term.offset)
        mark = re.fullmatch(re.escape(boundary) + ("-" if side < 0 else r"\+") + r"(\d)", value)
        if mark and 1 <= int(mark[1]) <= distance:
            edge[side].add(distance - int(mark[1]))
            continue
        if side < 0:
            before = max(before, distance)
        else:
            after = max(after, distance)
        cell = (term.offset, term.column)
        if term.call is not None:
            lowered.append((cell, value))
        elif cells.setdefault(cell, value) != value:
            return None
    for cell, value in lowered:
        if cells.setdefault(cell, value).lower() != value:
            return None
    for side, needed in ((-1, before), (1, after)):
        if len(edge[side]) > 1 or (edge[side] and min(edge[side]) < needed):
            return None
    before, after = max({before, *edge[-1]}), max({after, *edge[1]})
    rows: list[dict[str, str]] = [{} for _ in range(before + 1 + after)]
    for (offset, column), value in cells.items():
        rows[before + offset][column] = value
    return _Window(rows, before)


def _made(model: _Model, columns: Sequence[str], boundary: str, name: str) -> ChainCRF:
    """The model as a CRF."""
    lines = _lines(model.templates, columns, name)
    templates = Templates(tuple(dict.fromkeys(line.template for line in lines)), mark_edges=True)
    place = {template: j for j, template in enumerate(templates)}
    windows: list[_Window] = []
    made_for: list[tuple[int, int]] = []  # string and template of each window
    for row, text in enumerate(model.strings):
        if text[0].lower() == "b":
            continue
        for line in lines:
            for values in line.values(text):
                window = _window(line.template, values, boundary)
                if window is not None:
                    windows.append(window)
                    made_for.append((row, place[line.template]))
    table = {c: [[row.get(c, "") for row in w.rows] for w in windows] for c in columns}
    corpus = Corpus.from_columns(table)
    encoder = TemplateEncoder(templates)
    encoded = encoder.learn(corpus)
    order = np.argsort(model.labels)
    node = np.zeros((encoder.n_features, len(order)))
    keep = np.zeros(encoder.n_features, bool)
    done: set[tuple[int, int]] = set()
    for window, first, (row, j) in zip(windows, corpus.offsets[:-1], made_for, strict=True):
        feature = int(encoded.indices[encoded.indptr[first + window.at] + j])
        keep[feature] = True
        if (feature, row) not in done:  # two ways to one feature are one
            done.add((feature, row))
            node[feature] += model.node[row, order]
    smaller, kept = encoder.only(keep)
    crf = ChainCRF(templates, encoding="given")
    crf.classes_, crf.encoder_ = tuple(model.labels[i] for i in order), smaller
    transitions = model.transitions[np.ix_(order, order)]
    crf.weights_ = Weights(node[kept].astype(np.float32), transitions.astype(np.float32))
    crf.edge_types_, crf.history_ = (), []
    return crf


def _lines(templates: list[str], columns: Sequence[str], name: str) -> list[_Line]:
    """The lines that make strings for single labels; refuses what has no counterpart."""
    states = []
    for text in templates:
        kind, macros = text[:1].upper(), "%" in text
        if kind != "U" and macros:
            raise TemplateError(
                f"{name}: transitions that look at columns ({text!r}) are not read; "
                "train anew with that template, which ChainCRF knows"
            )
        if _MACRO.sub("", text).count("%"):
            raise TemplateError(f"{name}: {text!r} has a term other than %x[row,column]")
        if kind != "B":
            states.append("U" + text[1:])
    together = parse_crfpp("\n".join(states), columns, name)  # refuses those that share a name
    for template in together:
        for term in template.terms:
            if abs(term.offset) > _FURTHEST:
                raise TemplateError(
                    f"{name}: a template looks {abs(term.offset)} rows away, more than {_FURTHEST}"
                )
    given = [text for text in templates if text[:1].upper() != "B"]
    return [
        _Line(_MACRO.split(text), next(iter(parse_crfpp(state, columns, name))))
        for text, state in zip(given, states, strict=True)
    ]
