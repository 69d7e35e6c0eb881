"""A template encoder that knows only some of its features, and no more of the text than they need.

Features are numbered anew, template by template and by ascending keys, which takes the least room
in a file. A symbol or derived string that no feature is left of is forgotten; entries of
dictionaries, words of lexicons and clusters stay, since they say what other positions are part of.
"""

from __future__ import annotations

import copy
import math

import numpy as np
from numpy.typing import NDArray

from trellis.features.atoms import Atom, DictionaryAtom, LexiconAtom
from trellis.features.columns import (
    ConjunctionColumn,
    FeatureColumn,
    FlagColumn,
    conjunction_column,
)
from trellis.features.encoder import TemplateEncoder
from trellis.features.keytable import KeyTable
from trellis.features.templates import Term

__all__ = ["reduced"]


def reduced(
    encoder: TemplateEncoder, keep: NDArray[np.bool_]
) -> tuple[TemplateEncoder, NDArray[np.int64]]:
    """Return an encoder of the features ``keep`` (F,), and the old numbers of its features.

    Examples
    --------
    >>> from trellis import Corpus, Templates
    >>> encoder = TemplateEncoder(Templates.parse("word; word[-1] & word"))
    >>> _ = encoder.learn(Corpus.from_columns({"word": [["a", "b", "a"]]}))
    >>> small, old = reduced(encoder, np.array([True, False, False, True]))
    >>> small.names([0, 1]), old
    (['word=a', 'word[-1]=b & word=a'], array([0, 3]))
    """
    small = TemplateEncoder(encoder.templates)
    small.clusters, small.dictionaries = encoder.clusters, encoder.dictionaries
    small.lexicons = encoder.lexicons
    kept = [np.flatnonzero(keep[column.ids]) for column in encoder.columns]
    new_codes = _share_atoms(encoder, small, kept)
    order = [np.zeros(0, np.int64)]
    for old, left in zip(encoder.columns, kept, strict=True):
        column: FeatureColumn
        codes = left
        if isinstance(old, ConjunctionColumn):
            column = conjunction_column(old.template, small.atoms_of(old.template), old.marks)
            column.radices = [max(1, len(atom) + old.marks.n) for atom in column.atoms]
            digits = old.digits(old.table.keys[codes])
            keys = np.zeros(len(codes), np.int64)
            for atom, digit, radix in zip(old.atoms, digits, column.radices, strict=True):
                keys = keys * radix + new_codes[id(atom)][digit]
            by_key = np.argsort(keys)
            column.table = KeyTable(math.prod(column.radices), keys[by_key])
            codes = codes[by_key]
        else:
            column = copy.copy(old)
            column.select(keep[old.ids])
        if isinstance(column, FlagColumn):
            column.new_atom = small.new_atom
        order.append(old.ids[codes].astype(np.int64))
        column.ids = small.numbered(len(codes))
        small.columns.append(column)
    return small, np.concatenate(order)


def _share_atoms(
    encoder: TemplateEncoder, small: TemplateEncoder, kept: list[NDArray[np.int64]]
) -> dict[int, NDArray[np.int64]]:
    """Give the small encoder atoms of the values that are left; new digit of each old one."""
    marks = encoder.marks.n
    used = {id(atom): np.zeros(marks + len(atom), bool) for atom in encoder.atoms.values()}
    for column, codes in zip(encoder.columns, kept, strict=True):
        if isinstance(column, ConjunctionColumn):
            digits = column.digits(column.table.keys[codes])
            for atom, digit in zip(column.atoms, digits, strict=True):
                used[id(atom)][digit] = True
    for (name, call), atom in encoder.atoms.items():
        mine: Atom = small.new_atom(Term(name, call))
        there = used[id(atom)]
        if isinstance(atom, DictionaryAtom | LexiconAtom):
            there[:] = True  # their values are always the same
        there[:marks] = True
        values = atom.values()
        left = np.flatnonzero(there[marks:]).tolist()
        mine.vocabulary = {values[code]: new for new, code in enumerate(left)}
        small.atoms[name, call] = mine
    return {key: np.cumsum(there) - 1 for key, there in used.items()}
