"""Brown clusters: each merge against all others by enumeration, names, and what is refused."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trellis.corpus import Corpus
from trellis.errors import DataError
from trellis.features.brown import brown_clusters, clusters_of, paths
from trellis.kernels.brown import brown_merges

TEXTS = st.lists(st.lists(st.integers(0, 6), max_size=7), min_size=1, max_size=20)


def pair_counts(sentences):
    return Counter(pair for s in sentences for pair in itertools.pairwise(s))


def csr(pairs, n_words):
    rows = sorted(pairs)
    ptr = np.cumsum([0, *(sum(a == w for a, _, _ in rows) for w in range(n_words))])
    words = np.array([b for _, b, _ in rows], np.int32)
    return ptr.astype(np.int64), words, np.array([n for *_, n in rows], np.int64)


def merged(sentences, n_words, window, table_size=3):
    counts = pair_counts(sentences)
    right = csr([(a, b, n) for (a, b), n in counts.items()], n_words)
    left = csr([(b, a, n) for (a, b), n in counts.items()], n_words)
    n = np.arange(table_size)
    return brown_merges(*right, *left, window, n * np.log(np.maximum(n, 1)))


def information(counts, cluster):
    """N times the average mutual information of the clusters at hand; marginals are of all."""
    pairs, left, right = Counter(), Counter(), Counter()
    for (a, b), n in counts.items():
        left[cluster.get(a)] += n
        right[cluster.get(b)] += n
        if a in cluster and b in cluster:
            pairs[cluster[a], cluster[b]] += n
    total = sum(counts.values())
    return sum(n * math.log(total * n / (left[a] * right[b])) for (a, b), n in pairs.items())


def joined(cluster, kept, freed):
    return {word: kept if slot == freed else slot for word, slot in cluster.items()}


@given(TEXTS, st.integers(1, 8))
@example([[0, 0, 0]], 1)
@example([[0], [1]], 1)
def test_each_merge_loses_least(sentences, window):
    n_words = 1 + max((w for s in sentences for w in s), default=0)
    counts = pair_counts(sentences)
    merges, losses = merged(sentences, n_words, window)
    cluster, free, done = {}, window, 0

    def step():
        before = information(counts, cluster)
        slots = sorted(set(cluster.values()))
        least = min(
            before - information(counts, joined(cluster, a, b))
            for a, b in itertools.combinations(slots, 2)
        )
        kept, freed = merges[done].tolist()
        assert {kept, freed} <= set(slots)
        after = joined(cluster, kept, freed)
        assert losses[done] == pytest.approx(least, abs=1e-9)
        assert before - information(counts, after) == pytest.approx(least, abs=1e-9)
        return after, freed, done + 1

    for word in range(n_words):
        cluster[word] = word if word <= window else free
        if word >= window:
            cluster, free, done = step()
    inner = dict(cluster)
    while done < n_words - 1:
        cluster, _, done = step()
    assert len(merges) == len(losses) == n_words - 1
    names = paths(merges, n_words, window)
    same = [[inner[a] == inner[b] for a in inner] for b in inner]
    assert [[a == b for a in names] for b in names] == same


@given(TEXTS, st.integers(1, 8))
def test_names_are_the_paths_of_a_tree(sentences, n_clusters):
    words = [[f"w{w}" for w in s] for s in sentences]
    found = brown_clusters(words, n_clusters=n_clusters, min_count=2)
    counts = Counter(w for s in words for w in s)
    assert set(found) == {w for w, n in counts.items() if n >= 2}
    names = sorted(set(found.values()))
    assert len(names) == min(n_clusters, len(found))
    assert sum(2.0 ** -len(name) for name in names) == (1.0 if names else 0.0)
    for a, b in itertools.combinations(names, 2):
        assert not a.startswith(b) and not b.startswith(a)


def test_the_order_of_the_text_does_not_matter():
    text = [line.split() for line in ("a b c", "b c a", "c c b", "d a b", "d d c")]
    assert brown_clusters(text, n_clusters=2) == brown_clusters(text[::-1], n_clusters=2)


def test_text_may_be_in_several_corpora():
    text = [line.split() for line in ("the cat sat", "", "a dog ran", "the dog sat", "a cat ran")]
    whole = Corpus.from_columns({"word": text})
    parts = [Corpus.from_columns({"word": part}) for part in (text[:2], text[2:])]
    found = clusters_of([whole], "word", 3, 2)
    assert found == clusters_of(parts, "word", 3, 2)
    assert found == clusters_of([whole[2:], whole[:2]], "word", 3, 2)
    assert set(found) == {"the", "a", "cat", "dog", "sat", "ran"}


def test_templates_look_up_normal_forms():
    text = [["IL-2", "binds", "DNA"], ["Il-12", "Binds", "dna"]]
    found = clusters_of([Corpus.from_columns({"word": text})], "word")
    assert set(found) == {"il-0", "binds", "dna"}
    assert set(brown_clusters(text + text)) == {"IL-2", "Il-12", "binds", "Binds", "DNA", "dna"}


def test_pairs_do_not_cross_sentences():
    apart = [["a", "b"], ["c", "d"]] * 4
    counted = []
    for order in (apart, apart[::2] + apart[1::2]):
        counted.append(brown_clusters(order, n_clusters=2))
    assert counted[0] == counted[1]


@pytest.mark.parametrize("text", [[[]], [["a"], ["b"]], [["a", "b"]]])
def test_little_text_has_no_clusters(text):
    assert brown_clusters(text) == {}


def test_one_word_and_one_cluster():
    assert brown_clusters([["a"]] * 3) == {"a": ""}
    assert brown_clusters([["a", "b", "c"]] * 3, n_clusters=1) == {"a": "", "b": "", "c": ""}


@pytest.mark.parametrize(
    ("given", "options", "words"),
    [
        ([], {}, "there are no sentences"),
        (["a b"], {}, "sentence 0 is 'a b'; expected a list of strings"),
        ([["a"], ["a", 3]], {}, "sentence 1 is .*; expected a list of strings"),
        ([["a"], 5], {}, "sentence 1 is 5; expected a list of strings"),
        ([["a"]], {"n_clusters": 0}, "n_clusters must be a positive integer"),
        ([["a"]], {"min_count": 0.5}, "min_count must be a positive integer"),
    ],
)
def test_what_is_refused(given, options, words):
    with pytest.raises(DataError, match=words):
        brown_clusters(given, **options)
