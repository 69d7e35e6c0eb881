"""Word-list features for segmentation (Sun, Wang & Li 2012), from the training data alone.

U are the training words and B the pairs of neighbouring training words that occur more than twice.
With W(i, ℓ) the word of U of length ℓ that starts at i, and E(i, ℓ) the one that ends at i,
position i has the features

    starts W(i, ℓ) and ends E(i, ℓ)                       for ℓ in low .. high,
    before-pair (E(i−1, ℓ), W(i, ℓ')) if in B, and
    after-pair  (E(i, ℓ), W(i+1, ℓ')) if in B             for ℓ, ℓ' in 1 .. high.

Words are found by walking a trie (:mod:`trellis.features.trie`).
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Corpus
from trellis.corpus.corpus import split
from trellis.corpus.schemes import tags_to_words
from trellis.errors import DataError
from trellis.features.keytable import KeyTable
from trellis.features.trie import Trie

__all__ = ["WordList", "segmented"]

_ONE_WORD = re.compile("S|BM*E")
_VALID = re.compile("(?:S|BM*E)*")
_MIN_COUNT = 3  # the paper keeps words seen more than twice


def segmented(corpus: Corpus, column: str) -> Iterator[tuple[int, list[str]]]:
    """Number and words of each sample of a segmented corpus that is annotated as a whole."""
    if corpus.labels is None:
        raise DataError("features of training words need a labelled training corpus")
    symbols = corpus.columns[column].strings()
    for symbol in dict.fromkeys(symbols):
        if len(symbol) != 1:
            raise DataError(
                f"features of training words need a column of single characters; {column!r} holds "
                f"{symbol!r}"
            )
    sentences = zip(split(symbols, corpus.offsets), corpus.label_lists(), strict=True)
    for s, (characters, tags) in enumerate(sentences):
        if not all(isinstance(tag, str) for tag in tags):
            continue  # partly annotated sentences have no known words
        joined = "".join(map(str, tags))
        if len(joined) == len(tags) and _VALID.fullmatch(joined):  # nearly always, and much faster
            text = "".join(characters)
            yield s, [text[hit.start() : hit.end()] for hit in _ONE_WORD.finditer(joined)]
            continue
        try:
            yield s, tags_to_words(characters, [str(tag) for tag in tags])
        except DataError as error:
            raise DataError(f"features of training words, sample {s}, {error}") from None


class WordList:
    """The lists U and B and the columns of keys they give at each position."""

    def __init__(
        self, column: str, low: int, high: int, words: Sequence[str], pairs: NDArray[np.int64]
    ) -> None:
        self.column, self.low, self.high = column, low, high
        self.words = list(words)
        self.pairs = KeyTable(max(1, len(self.words)) ** 2, pairs)
        self._trie, nodes = Trie.of(self.words)
        self._word_at = np.full(len(self._trie), -1, np.int64)  # the word that ends at each node
        self._word_at[nodes] = np.arange(len(self.words))

    @classmethod
    def from_corpus(cls, corpus: Corpus, column: str, low: int, high: int) -> WordList:
        """Collect the lists from a segmented corpus."""
        single: Counter[str] = Counter()
        double: Counter[tuple[str, str]] = Counter()
        for _, words in segmented(corpus, column):
            single.update(words)
            double.update(itertools.pairwise(words))
        words = sorted(w for w, n in single.items() if n >= _MIN_COUNT and len(w) <= high)
        index = {word: i for i, word in enumerate(words)}
        pairs = sorted(
            index[a] * len(words) + index[b]
            for (a, b), n in double.items()
            if n >= _MIN_COUNT and a in index and b in index
        )
        return cls(column, low, high, words, np.array(pairs, np.int64))

    @property
    def n_columns(self) -> int:
        """Number of key columns: starts, ends, pairs before and pairs after."""
        return 2 * (self.high - self.low + 1) + 2 * self.high**2

    @property
    def key_space(self) -> int:
        """Bound of all keys: words that start, words that end, pairs before and pairs after."""
        return 2 * len(self.words) + 2 * len(self.pairs)

    def keys(self, corpus: Corpus) -> NDArray[np.int64]:
        """Keys (n_columns, N): the feature of each kind and length at each position, or −1."""
        n = corpus.n_positions
        starts = self._starts(corpus)  # (high + 1, N), row ℓ = W(·, ℓ)
        bound = np.repeat(corpus.offsets[:-1], corpus.lengths)
        position = np.arange(n)
        ends = np.full_like(starts, -1)
        for length in range(1, self.high + 1):
            where = position - length + 1
            ok = where >= bound
            ends[length, ok] = starts[length, where[ok]]
        n_words, n_pairs = len(self.words), len(self.pairs)
        columns = np.full((self.n_columns, n), -1, np.int64)
        j = 0
        for length in range(self.low, self.high + 1):
            columns[j] = starts[length]
            columns[j + 1] = np.where(ends[length] >= 0, n_words + ends[length], -1)
            j += 2
        first = position == bound
        for left in range(1, self.high + 1):
            ended = np.concatenate([[-1], ends[left][:-1]]) if n else ends[left]
            ended = np.where(first, -1, ended)
            for right in range(1, self.high + 1):
                both = (ended >= 0) & (starts[right] >= 0)
                key = np.where(both, ended * n_words + starts[right], -1)
                pair = self.pairs.code(key, grow=False).astype(np.int64)
                columns[j] = np.where(pair >= 0, 2 * n_words + pair, -1)
                after = np.concatenate([pair[1:], [-1]]) if n else pair
                # ``pair`` is −1 at every first position, so nothing crosses a sample's end
                columns[j + 1] = np.where(after >= 0, 2 * n_words + n_pairs + after, -1)
                j += 2
        return columns

    def _starts(self, corpus: Corpus) -> NDArray[np.int64]:
        column = corpus.columns[self.column]
        codes = self._trie.codes(column)[column.codes]
        nodes = np.full((self.high + 1, len(codes)), -1, np.int64)
        for length, node in enumerate(self._trie.walk(codes, corpus.offsets, self.high), 1):
            nodes[length] = np.where(node >= 0, self._word_at[node], -1)
        return nodes

    def name(self, key: int) -> str:
        """Readable form of one key."""
        n_words, n_pairs = len(self.words), len(self.pairs)
        if key < 2 * n_words:
            return f"{'starts' if key < n_words else 'ends'}={self.words[key % n_words]}"
        which, pair = divmod(key - 2 * n_words, n_pairs)
        a, b = divmod(int(self.pairs.keys[pair]), n_words)
        return f"{('before', 'after')[which]}={self.words[a]}|{self.words[b]}"
