"""Encoders as JSON headers and arrays, and back, with every array checked before it is used."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.corpus.corpus import FLOAT32_LIMIT, bounds, split
from trellis.errors import CorruptModelError, DataError, TemplateError
from trellis.features.atoms import Atom, DictionaryAtom, LexiconAtom
from trellis.features.attributes import AttributeEncoder
from trellis.features.coded import Marks
from trellis.features.columns import (
    KEY_LIMIT,
    ConjunctionColumn,
    FeatureColumn,
    FlagColumn,
    MeanColumn,
    NgramColumn,
    NumberColumn,
    VarietyColumn,
    WordListColumn,
    conjunction_column,
)
from trellis.features.dictionary import Dictionary
from trellis.features.encoded import Encoder, subset
from trellis.features.encoder import TemplateEncoder
from trellis.features.keytable import KeyTable
from trellis.features.lexicon import Lexicon
from trellis.features.nametable import NameTable, PackedNames
from trellis.features.templates import Template, Templates
from trellis.features.trie import Trie
from trellis.features.variety import MAX_CLASS, AccessorVariety
from trellis.features.wordlist import WordList
from trellis.files.stored import (
    check_range,
    header_value,
    pack_strings,
    packed_strings,
    take,
    unpack_strings,
)

__all__ = ["columns_used", "encoder_from_state", "encoder_state"]

Arrays = dict[str, NDArray[Any]]


def columns_used(encoder: Encoder, header: Mapping[str, Any] | None = None) -> tuple[str, ...]:
    """Columns that samples had: those that a header names, or those that the templates use."""
    if header is not None and "columns" in header:
        columns = tuple(header_value(header, "columns", list, items=str))
        if len(set(columns)) < len(columns):
            raise CorruptModelError("columns must be distinct")
        return columns
    return tuple(encoder.templates.columns()) if isinstance(encoder, TemplateEncoder) else ()


def encoder_state(encoder: TemplateEncoder) -> tuple[dict[str, Any], Arrays]:
    """Header and arrays of a template encoder."""
    header = {
        "kind": encoder.kind,
        "templates": encoder.templates.text(),
        "n_features": encoder.n_features,
    }
    arrays: Arrays = {}
    for i, clusters in enumerate(encoder.clusters.values()):
        arrays |= pack_strings(list(clusters), f"cluster{i}.words.")
        arrays |= pack_strings(list(clusters.values()), f"cluster{i}.paths.")
    for i, dictionary in enumerate(encoder.dictionaries.values()):
        flat = [symbol for entry in dictionary.entries for symbol in entry]
        arrays |= pack_strings(flat, f"dictionary{i}.symbols.")
        arrays[f"dictionary{i}.ptr"] = bounds([len(entry) for entry in dictionary.entries])
    for i, lexicon in enumerate(encoder.lexicons.values()):
        arrays |= pack_strings(lexicon.words, f"lexicon{i}.")
    for i, atom in enumerate(encoder.atoms.values()):
        arrays |= pack_strings(atom.values(), f"atom{i}.")
    for j, column in enumerate(encoder.columns):
        arrays[f"column{j}.ids"] = column.ids
        if isinstance(column, ConjunctionColumn):
            arrays[f"column{j}.keys"] = column.table.keys
            arrays[f"column{j}.radices"] = np.array(column.radices, np.int64)
        elif isinstance(column, NgramColumn):
            arrays |= pack_strings(list(column.vocabulary), f"column{j}.grams.")
        elif isinstance(column, NumberColumn):
            arrays[f"column{j}.scale"] = np.array([column.scale or 1.0])
        elif isinstance(column, WordListColumn):
            arrays |= pack_strings(column.words.words, f"column{j}.words.")
            arrays[f"column{j}.pairs"] = column.words.pairs.keys
            arrays[f"column{j}.keys"] = column.table.keys
        elif isinstance(column, VarietyColumn):
            arrays |= pack_strings(column.variety.trie.symbols, f"column{j}.symbols.")
            arrays[f"column{j}.edges"] = column.variety.trie.keys
            arrays[f"column{j}.strength"] = column.variety.strength
            arrays[f"column{j}.keys"] = column.table.keys
    return header, arrays


def encoder_from_state(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Encoder:
    """Rebuild an encoder; raises CorruptModelError if anything does not fit."""
    kind = header_value(header, "kind", str, choices=("templates", "attributes"))
    if kind == "attributes":
        try:
            names = PackedNames(*packed_strings(arrays, "names."))
        except DataError:
            raise CorruptModelError("an attribute is named twice") from None
        scale = take(arrays, "scale", np.float32, (len(names),))
        if np.any(scale <= 0):
            raise CorruptModelError("attribute scales must be positive")
        return AttributeEncoder(NameTable(names), scale)
    try:
        templates = Templates.parse(header_value(header, "templates", str))
    except TemplateError as error:
        raise CorruptModelError(f"templates cannot be read: {error}") from None
    encoder = TemplateEncoder(templates)
    for i, name in enumerate(templates.clustered()):
        encoder.clusters[name] = _clusters(subset(arrays, f"cluster{i}."))
    for i, place in enumerate(templates.dictionaries()):
        encoder.dictionaries[place] = _dictionary(subset(arrays, f"dictionary{i}."))
    for i, name in enumerate(templates.lexicons()):
        words = unpack_strings(arrays, f"lexicon{i}.")
        if len(set(words)) != len(words) or not all(words):
            raise CorruptModelError("the lexicon holds a word twice, or an empty one")
        encoder.lexicons[name] = Lexicon(words)
    encoder._n_features = header_value(header, "n_features", int, low=0, high=2**31)
    for template in templates:
        if template.kind == "conjunction":
            encoder.atoms_of(template)
    for i, atom in enumerate(encoder.atoms.values()):
        values = unpack_strings(arrays, f"atom{i}.")
        if isinstance(atom, DictionaryAtom | LexiconAtom) and values != atom.values():
            raise CorruptModelError("the places in entries or words are not the usual ones")
        atom.vocabulary = {value: code for code, value in enumerate(values)}
        if len(atom) != len(values):
            raise CorruptModelError(f"a value of {atom.column!r} stands twice")
    for j, template in enumerate(templates):
        column = _column(encoder, template, subset(arrays, f"column{j}."))
        check_range(column.ids, 0, encoder.n_features, f"feature ids of template {j}")
        encoder.columns.append(column)
    used = np.concatenate([column.ids for column in encoder.columns])
    if len(used) != encoder.n_features or not _distinct(used):
        raise CorruptModelError("a feature id is missing or stands twice")
    return encoder


def _distinct(numbers: NDArray[Any]) -> bool:
    ordered = np.sort(numbers)  # np.unique, by hashing, takes ten times as long
    return not (ordered[1:] == ordered[:-1]).any()


def _clusters(arrays: Arrays) -> dict[str, str]:
    words, paths = unpack_strings(arrays, "words."), unpack_strings(arrays, "paths.")
    if len(set(words)) != len(words) or len(words) != len(paths):
        raise CorruptModelError("a word has two clusters, or none")
    if not set("".join(paths)) <= {"0", "1"}:
        raise CorruptModelError("the names of clusters must be bits")
    return dict(zip(words, paths, strict=True))


def _dictionary(arrays: Arrays) -> Dictionary:
    symbols = unpack_strings(arrays, "symbols.")
    ptr = take(arrays, "ptr", np.int64, (None,))
    fits = len(ptr) > 0 and ptr[0] == 0 and ptr[-1] == len(symbols)
    if not fits or (np.diff(ptr) <= 0).any():
        raise CorruptModelError("the entries of a dictionary do not fit its symbols")
    entries = split(symbols, ptr)
    dictionary = Dictionary(entries)
    if len(dictionary.entries) != len(entries):
        raise CorruptModelError("an entry of a dictionary stands twice")
    return dictionary


def _variety(template: Template, arrays: Arrays) -> AccessorVariety:
    symbols = unpack_strings(arrays, "symbols.")
    edges = take(arrays, "edges", np.int64, (None,))
    strength = take(arrays, "strength", np.int64, (len(edges) + 1,))
    check_range(strength, 0, MAX_CLASS, "strengths of n-grams")
    check_range(edges, 0, max(1, len(edges)) * max(1, len(symbols)), "edges of n-grams")
    if len(set(symbols)) != len(symbols) or not _distinct(edges):
        raise CorruptModelError("a symbol or an edge of n-grams stands twice")
    parents, used = np.divmod(edges, max(1, len(symbols)))
    if np.any(parents > np.arange(len(edges))) or len(np.unique(used)) != len(symbols):
        raise CorruptModelError("the edges of n-grams are not a tree of their symbols")
    return AccessorVariety(template.low, template.high, Trie(symbols, edges), strength)


def _column(encoder: TemplateEncoder, template: Template, arrays: Arrays) -> FeatureColumn:
    column: FeatureColumn
    size: int
    if template.kind == "conjunction":
        column = _conjunction(encoder.atoms_of(template), template, encoder.marks, arrays)
        size = len(column.table)
    elif template.kind == "ngrams":
        column = NgramColumn(template)
        grams = unpack_strings(arrays, "grams.")
        column.vocabulary = {gram: i for i, gram in enumerate(grams)}
        if len(column.vocabulary) != len(grams):
            raise CorruptModelError("an n-gram stands twice")
        size = len(grams)
    elif template.kind == "wordlist":
        name = template.terms[0].column
        words = unpack_strings(arrays, "words.")
        pairs = take(arrays, "pairs", np.int64, (None,))
        check_range(pairs, 0, len(words) ** 2, "word pairs")
        if len(set(words)) != len(words) or any(not w or len(w) > template.high for w in words):
            raise CorruptModelError("the word list holds a word twice or of a wrong length")
        if not _distinct(pairs):
            raise CorruptModelError("a word pair stands twice")
        column = WordListColumn(template, WordList(name, template.low, template.high, words, pairs))
        column.table = _key_table(arrays, column.table.space)
        size = len(column.table)
    elif template.kind == "variety":
        column = VarietyColumn(template, _variety(template, arrays))
        column.table = _key_table(arrays, column.table.space)
        size = len(column.table)
    else:
        size = 1
        if template.kind in ("mean", "number"):
            column = (MeanColumn if template.kind == "mean" else NumberColumn)(template)
        else:
            column = FlagColumn(template, encoder.new_atom)
        if isinstance(column, NumberColumn):
            column.scale = float(take(arrays, "scale", np.float64, (1,))[0])
            if not (column.scale < FLOAT32_LIMIT and np.float32(column.scale) > 0):
                raise CorruptModelError("number scales must be positive float32 numbers")
    column.ids = take(arrays, "ids", np.int32, (None,))
    may_be_unused = template.kind not in ("conjunction", "wordlist", "variety", "ngrams")
    if len(column.ids) != size and not (may_be_unused and len(column.ids) == 0):
        raise CorruptModelError(f"{len(column.ids)} feature ids for {size} values")
    return column


def _key_table(arrays: Arrays, space: int) -> KeyTable:
    keys = take(arrays, "keys", np.int64, (None,))
    check_range(keys, 0, space, "template keys")
    if not _distinct(keys):
        raise CorruptModelError("a template key stands twice")
    return KeyTable(space, keys)


def _conjunction(
    atoms: list[Atom], template: Template, marks: Marks, arrays: Arrays
) -> ConjunctionColumn:
    column = conjunction_column(template, atoms, marks)
    radices = take(arrays, "radices", np.int64, (len(atoms),))
    check_range(radices, 1, 2**40, "template radices")
    column.radices = [int(r) for r in radices]
    if math.prod(column.radices) >= KEY_LIMIT:
        raise CorruptModelError("template radices are too large")
    sizes = [len(atom) + marks.n for atom in atoms]
    if any(size > radix for size, radix in zip(sizes, column.radices, strict=True)):
        raise CorruptModelError("template radices are smaller than their vocabularies")
    column.table = _key_table(arrays, math.prod(column.radices))
    for digit, size in zip(column.digits(column.table.keys), sizes, strict=True):
        check_range(digit, 0, size, "template key digits")
    return column
