"""Accessor variety against counting by hand, for any text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.corpus import Corpus
from trellis.features import TemplateEncoder, Templates
from trellis.features.variety import AccessorVariety

TEXTS = st.lists(st.text("abc", max_size=9), min_size=1, max_size=12)


def corpus_of(sentences):
    return Corpus.from_columns({"char": [list(s) for s in sentences]})


def strength(gram, sentences):
    """⌊log₂⌋ of the smaller number of contexts; each end of a sentence is one."""
    sides = set(), set()
    for number, s in enumerate(sentences):
        for i in range(len(s) - len(gram) + 1):
            if s[i : i + len(gram)] == gram:
                j = i + len(gram)
                sides[0].add(s[i - 1] if i else ("start", number))
                sides[1].add(s[j] if j < len(s) else ("end", number))
    return max(0, min(map(len, sides)).bit_length() - 1)


def expected(sentence, i, low, high, text):
    found = []
    for n in range(low, high + 1):
        at = {k: strength(sentence[k : k + n], text) for k in range(len(sentence) - n + 1)}
        found.append(("starts", n, at.get(i, 0)))
        if n > 1:
            found.append(("ends", n, at.get(i - n + 1, 0)))
        if n > 2:
            found.append(("inside", n, max(at.get(k, 0) for k in range(i - n + 2, i))))
    return [f"variety {place} {n}={t}" for place, n, t in found if t]


@given(TEXTS, TEXTS, st.integers(1, 3), st.integers(0, 2))
def test_against_counting(text, others, low, more):
    high = low + more
    encoder = TemplateEncoder(
        Templates.parse(f"variety(char, {low}..{high}); bias"), [corpus_of(others)]
    )
    sentences = [s for s in text if s]
    encoded = encoder.learn(corpus_of(text))
    everything = encoder.names(range(encoder.n_features))
    position = 0
    for s in sentences:
        for i in range(len(s)):
            ids = encoded.indices[encoded.indptr[position] : encoded.indptr[position + 1]]
            names = [everything[f] for f in ids]
            assert names == [*expected(s, i, low, high, text + others), "bias"]
            position += 1


@given(TEXTS, st.integers(1, 2), st.integers(0, 2))
def test_only_what_has_a_strength_is_kept(text, low, more):
    found = AccessorVariety.from_text([corpus_of(text)], "char", low, low + more)
    nodes = {0: ""}
    for e, key in enumerate(found.trie.keys.tolist()):
        parent, symbol = divmod(key, found.trie.radix)
        nodes[e + 1] = nodes[parent] + found.trie.symbols[symbol]
    for node, gram in nodes.items():
        inside = low <= len(gram) <= low + more
        assert found.strength[node] == (strength(gram, text) if inside else 0)
        others = [other for other in nodes.values() if other != gram and other.startswith(gram)]
        assert not gram or found.strength[node] or others
    grams = {s[i : i + n] for s in text for n in range(low, low + more + 1) for i in range(len(s))}
    for gram in grams:
        if low <= len(gram) and strength(gram, text):
            assert gram in nodes.values()


def test_symbols_never_seen():
    found = AccessorVariety.from_text([corpus_of(["ab", "ab", "cab"])], "char", 2, 3)
    keys = found.keys(np.array([-1, 0, -1], np.int32), np.array([0, 3]))
    assert keys.shape == (found.n_columns, 3) == (5, 3)
    assert (keys == -1).all()
    assert found.keys(np.zeros(0, np.int32), np.array([0])).shape == (5, 0)


@pytest.mark.parametrize("text", [[""], ["a"], ["abc"]])
def test_little_text(text):
    found = AccessorVariety.from_text([corpus_of(text)], "char", 1, 2)
    assert len(found.trie) == 1 and found.strength.tolist() == [0]
