"""The words of segmented training data: how long is the longest that starts, ends, goes on here.

U are the words of all samples that are annotated as a whole. With x_i the characters of a sample,

    start(i)  = max {ℓ ≥ 2 : x_i … x_{i+ℓ−1} ∈ U},
    end(i)    = max {ℓ ≥ 2 : x_{i−ℓ+1} … x_i ∈ U},
    inside(i) = max {ℓ ≥ 3 : a word of length ℓ in U begins before i and ends behind it},

1 where there is none, and 5 where it is more than that.

In a training sample a word is in U only if *another* sample has it, too. Else all words of the
training data would be known, and a model would learn to trust the lexicon as no new text deserves.
(Word lists, :mod:`trellis.features.wordlist`, have a weight for each word, which must be frequent;
here all words share a few, so that rare ones help as well.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Column, Corpus
from trellis.features.trie import Trie
from trellis.features.wordlist import segmented

__all__ = ["LENGTHS", "Lexicon"]

LENGTHS = ("1", "2", "3", "4", "5")
"""Lengths, by their code; the last one stands for more, too."""


class Lexicon:
    """Words, and the sample that is the only one to have a word, while this is needed.

    Parameters
    ----------
    words : iterable of str
    only_in : mapping of str to int
        Number of the training sample, for words that no other sample has.

    Examples
    --------
    >>> from trellis.corpus import Column
    >>> words = Lexicon(["ab", "abc", "cd"])
    >>> text = Column.from_strings(list("abcd"))
    >>> for part in ("start", "end", "inside"):
    ...     print(part, words.lengths(part, words.symbols(text)[text.codes], np.array([0, 4])))
    start [2 0 1 0]
    end [0 1 2 1]
    inside [0 2 0 0]
    """

    def __init__(self, words: Iterable[str], only_in: Mapping[str, int] | None = None) -> None:
        self.words = list(words)
        self._longest = max(map(len, self.words), default=0)
        self._trie, nodes = Trie.of(self.words)
        self._is_word = np.zeros(len(self._trie), bool)
        self._is_word[nodes] = True
        self._only_in: NDArray[np.int64] | None = None
        if only_in:
            self._only_in = np.full(len(self._trie), -1, np.int64)
            self._only_in[nodes] = [only_in.get(word, -1) for word in self.words]

    @classmethod
    def from_corpus(cls, corpus: Corpus, column: str) -> Lexicon:
        """Collect the words of a segmented corpus."""
        seen: dict[str, int] = {}
        for sample, words in segmented(corpus, column):
            for word in words:
                if len(word) > 1 and seen.setdefault(word, sample) != sample:
                    seen[word] = -1
        return cls(sorted(seen), seen)

    def forget_samples(self) -> None:
        """From now on all words are in the lexicon for every sample."""
        self._only_in = None

    def symbols(self, column: Column) -> NDArray[np.int32]:
        """Number of each distinct symbol of a column in the words, or −1."""
        return self._trie.codes(column)

    def lengths(
        self,
        part: str,
        codes: NDArray[np.int32],
        offsets: NDArray[np.int64],
        first: int | None = None,
    ) -> NDArray[np.int32]:
        """Code of the length of the longest word of which a position is a part.

        ``first`` is the number of the first training sample, if samples are learned from.
        """
        n = len(codes)
        longest = np.ones(n, np.int32)
        sample = None
        if first is not None and self._only_in is not None:
            sample = np.repeat(np.arange(first, first + len(offsets) - 1), np.diff(offsets))
        for length, node in enumerate(self._trie.walk(codes, offsets, self._longest), 1):
            known = (node >= 0) & self._is_word[node]
            if sample is not None:
                assert self._only_in is not None
                known &= self._only_in[node] != sample
            at = np.flatnonzero(known)
            if part == "start":
                longest[at] = length
            elif part == "end":
                longest[at + length - 1] = length
            else:
                for by in range(1, length - 1):
                    longest[at + by] = length
        capped: NDArray[np.int32] = np.minimum(longest, len(LENGTHS)) - np.int32(1)
        return capped
