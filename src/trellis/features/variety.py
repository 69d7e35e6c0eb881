"""Accessor variety of n-grams in raw text (Feng et al. 2004), for word segmentation.

An n-gram s that is a word stands in many contexts, a part of a word in few. With L(s) the number
of distinct symbols before s, and R(s) of those after it, where each beginning and end of a sample
counts as one more,

    AV(s) = min(L(s), R(s)),        t(s) = ⌊log₂ AV(s)⌋,

and only n-grams with t ≥ 1 are kept. For each length n, position i has the features

    starts  t of the n-gram that starts at i,
    ends    t of the n-gram that ends at i,
    inside  the greatest t of the n-grams that begin before i and end behind it

(Zhao & Kit 2008; Sun & Xu 2011). Nothing is learned from labels, so any text will do.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Corpus
from trellis.features.brown import stacked
from trellis.features.trie import Trie

__all__ = ["AccessorVariety"]

_PLACES = ("starts", "ends", "inside")
MAX_CLASS = 63
"""Strengths t lie below this: no text has 2⁶³ contexts."""


class AccessorVariety:
    """The n-grams kept and their strengths t, and the columns of keys they give.

    Parameters
    ----------
    low, high : int
        Lengths of the n-grams.
    trie : Trie
        The n-grams.
    strength : int64 array (nodes of the trie,)
        t of the n-gram that ends at a node, or 0.
    """

    def __init__(self, low: int, high: int, trie: Trie, strength: NDArray[np.int64]) -> None:
        self.low, self.high = low, high
        self.trie, self.strength = trie, strength

    @classmethod
    def from_text(cls, text: Sequence[Corpus], column: str, low: int, high: int) -> AccessorVariety:
        """Count contexts in a column of several corpora."""
        codes, offsets, symbols = stacked([(c.columns[column], c.offsets) for c in text])
        begin, end = (np.repeat(side, np.diff(offsets)) for side in (offsets[:-1], offsets[1:]))
        m = max(1, len(symbols))
        where = np.arange(len(codes))
        gram = np.zeros(len(codes), np.int64)
        levels: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []  # keys, strengths
        for n in range(1, high + 1):
            inside = where + n <= end[where]
            where, gram = where[inside], gram[inside]
            keys, gram = np.unique(gram * m + codes[where + n - 1], return_inverse=True)
            counts = np.bincount(gram, minlength=len(keys))
            strength = np.zeros(len(keys), np.int64)
            if n >= low:
                sides = [
                    _contexts(gram, where - 1, where > begin[where], codes, len(keys), m),
                    _contexts(gram, where + n, where + n < end[where], codes, len(keys), m),
                ]
                strength = np.frexp(np.minimum(*sides))[1].astype(np.int64) - 1
            levels.append((keys, np.maximum(strength, 0)))
            often = counts[gram] > 1  # what occurs once has one context, and so has what it begins
            where, gram = where[often], gram[often]
        return cls(low, high, *_pruned(levels, symbols))

    @property
    def n_columns(self) -> int:
        """Number of key columns: for each length, as many places as there are."""
        return sum(min(n, len(_PLACES)) for n in range(self.low, self.high + 1))

    @property
    def key_space(self) -> int:
        """Bound of all keys."""
        return len(_PLACES) * (self.high + 1) * MAX_CLASS

    def keys(self, codes: NDArray[np.int32], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """Keys (n_columns, N): place, length and strength at each position, or −1.

        ``codes`` are the numbers that the symbols have in the trie.
        """
        keys = np.full((self.n_columns, len(codes)), -1, np.int64)
        row = 0
        for n, node in enumerate(self.trie.walk(codes, offsets, self.high), 1):
            if n < self.low:
                continue
            strength = np.where(node >= 0, self.strength[node], 0)
            places = [strength]
            if n > 1:
                places.append(_later(strength, n - 1))
            if n > 2:
                places.append(np.max([_later(strength, by) for by in range(1, n - 1)], axis=0))
            for place, value in enumerate(places):
                key = (place * (self.high + 1) + n) * MAX_CLASS + value
                keys[row] = np.where(value > 0, key, -1)
                row += 1
        return keys

    def name(self, key: int) -> str:
        """Readable form of one key."""
        rest, strength = divmod(key, MAX_CLASS)
        place, n = divmod(rest, self.high + 1)
        return f"{_PLACES[place]} {n}={strength}"


def _later(strength: NDArray[np.int64], by: int) -> NDArray[np.int64]:
    """Strengths ``by`` positions before; n-grams that start in a sample end in it."""
    moved = np.zeros_like(strength)
    moved[by:] = strength[: max(0, len(strength) - by)]
    return moved


def _contexts(
    gram: NDArray[np.int64], beside: NDArray[np.int64], inside: NDArray[np.bool_],
    codes: NDArray[np.int64], n_grams: int, m: int,
) -> NDArray[np.int64]:  # fmt: skip
    """Number of distinct symbols beside each n-gram, those beyond the sample one by one."""
    pairs = np.unique(gram[inside] * m + codes[beside[inside]])
    counts = np.bincount(pairs // m, minlength=n_grams)
    return counts + np.bincount(gram[~inside], minlength=n_grams)


def _pruned(
    levels: list[tuple[NDArray[np.int64], NDArray[np.int64]]], symbols: Sequence[str]
) -> tuple[Trie, NDArray[np.int64]]:
    """The trie of n-grams that have a strength, level by level, and the strengths of its nodes."""
    m = max(1, len(symbols))
    wanted = [strength > 0 for _, strength in levels]
    for n in range(len(levels) - 1, 0, -1):
        wanted[n - 1][levels[n][0][wanted[n]] // m] = True
    used = np.unique(np.concatenate([k[w] % m for (k, _), w in zip(levels, wanted, strict=True)]))
    new = np.zeros(m, np.int64)
    new[used] = np.arange(len(used))
    node, first = np.zeros(1, np.int64), 1
    edges, strengths = [np.zeros(0, np.int64)], [np.zeros(1, np.int64)]
    for (keys, strength), kept in zip(levels, wanted, strict=True):
        edges.append(node[keys[kept] // m] * max(1, len(used)) + new[keys[kept] % m])
        strengths.append(strength[kept])
        node = np.zeros(len(keys), np.int64)
        node[kept] = np.arange(first, first + kept.sum())
        first += int(kept.sum())
    return Trie([symbols[code] for code in used], np.concatenate(edges)), np.concatenate(strengths)
