"""A trie of symbol sequences, walked for all positions of a corpus at once.

Node 0 is the root. Edge e leads from node ``keys[e] // m`` by symbol ``keys[e] % m`` of m to node
e + 1, and comes after the edge to the node it starts from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Column
from trellis.features.keytable import KeyTable

__all__ = ["Trie"]


class Trie:
    """Sequences of symbols that share their beginnings.

    Parameters
    ----------
    symbols : list of str
        Distinct symbols.
    keys : int64 array (E,)
        The edges.

    Examples
    --------
    >>> trie, nodes = Trie.of([["New", "York"], ["New", "Haven"]])
    >>> nodes, len(trie)
    (array([2, 3]), 4)
    """

    def __init__(self, symbols: Sequence[str], keys: NDArray[np.int64]) -> None:
        self.symbols = list(symbols)
        self._code = {symbol: code for code, symbol in enumerate(self.symbols)}
        self.radix = max(1, len(self.symbols))
        self._table = KeyTable((len(keys) + 1) * self.radix, keys)

    @classmethod
    def of(cls, sequences: Sequence[Sequence[str]]) -> tuple[Trie, NDArray[np.int64]]:
        """A trie of sequences, and the node that each of them ends at."""
        symbols = list(dict.fromkeys(symbol for sequence in sequences for symbol in sequence))
        code = {symbol: i for i, symbol in enumerate(symbols)}
        edges: dict[tuple[int, int], int] = {}
        nodes = np.zeros(len(sequences), np.int64)
        for i, sequence in enumerate(sequences):
            node = 0
            for symbol in sequence:
                node = edges.setdefault((node, code[symbol]), len(edges) + 1)
            nodes[i] = node
        keys = [node * max(1, len(symbols)) + symbol for node, symbol in edges]
        return cls(symbols, np.array(keys, np.int64)), nodes

    def __len__(self) -> int:
        """Number of nodes."""
        return len(self.keys) + 1

    @property
    def keys(self) -> NDArray[np.int64]:
        """The edges."""
        return self._table.keys

    def codes(self, column: Column) -> NDArray[np.int32]:
        """Number of each distinct symbol of a column in the trie, or −1."""
        return np.array([self._code.get(value, -1) for value in column.values], np.int32)

    def walk(
        self, codes: NDArray[np.int32], offsets: NDArray[np.int64], longest: int
    ) -> Iterator[NDArray[np.int64]]:
        """The node that 1, 2, … ``longest`` symbols from each position on lead to, or −1.

        Ends before if all are −1. Nothing reaches beyond the sample.
        """
        end = np.repeat(offsets[1:], np.diff(offsets))
        node = np.zeros(len(codes), np.int64)
        alive = np.arange(len(codes))
        for length in range(longest):
            alive = alive[alive + length < end[alive]]
            step = codes[alive + length].astype(np.int64)
            keys = np.where(step >= 0, node[alive] * self.radix + step, -1)
            found = self._table.code(keys, grow=False).astype(np.int64)
            reached = np.full(len(codes), -1, np.int64)
            reached[alive] = np.where(found >= 0, found + 1, -1)
            alive = alive[found >= 0]
            if not len(alive):
                return
            node = reached
            yield node
