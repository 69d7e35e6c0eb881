"""Brown clusters of words, learned from raw text (Brown et al. 1992).

Words that stand beside the same words fall into one cluster. Clusters are merged greedily, each
time the two whose merging loses least of the average mutual information of neighbouring clusters
(:mod:`trellis.kernels.brown`); the merges of the last C clusters are a binary tree, and the path
from its root to a cluster, as a string of bits, is the cluster's name: a prefix of it stands for a
wider cluster. Words seen fewer than ``min_count`` times belong to none, and pairs with them do not
count.

Templates look a word up by its :func:`~trellis.predictor.normal_form`, so that ``IL-2``, ``IL-12``
and ``il-4`` are one word of the text: more words have a cluster, and each is seen more often.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import as_list
from trellis.corpus import Column, Corpus
from trellis.corpus.corpus import bounds
from trellis.domains import sequence_of, text, whole
from trellis.errors import DataError
from trellis.predictor import normal_form

__all__ = ["brown_clusters", "clusters_of"]

_STRINGS = sequence_of(text, "a list of strings")
_TABLE = 1 << 18  # numbers whose n log n is looked up: nearly all counts, in two megabytes
N_CLUSTERS, MIN_COUNT = 256, 2
"""How many clusters templates have, and how often a word of one occurs at least."""


def brown_clusters(
    sentences: Iterable[Sequence[str]], *, n_clusters: int = N_CLUSTERS, min_count: int = MIN_COUNT
) -> dict[str, str]:
    """Learn clusters of words from sentences.

    Parameters
    ----------
    sentences : iterable of lists of str
        Raw text: the more, the better. Words are taken as they are.
    n_clusters : int
        Number of clusters (fewer if there are fewer words).
    min_count : int
        Words seen less often have no cluster.

    Returns
    -------
    dict of str
        The cluster of each word as a string of bits.

    Examples
    --------
    >>> from trellis.features import brown_clusters
    >>> text = ["the cat sat", "the dog sat", "a cat ran", "a dog ran", "the dog ran", "a cat sat"]
    >>> clusters = brown_clusters([line.split() for line in text])
    >>> clusters
    {'a': '000', 'cat': '10', 'dog': '11', 'ran': '001', 'sat': '010', 'the': '011'}

    The nouns are those words whose name begins with 1.
    """
    listed = []
    for i, sentence in enumerate(as_list(sentences, "sentences")):
        if not _STRINGS.accepts(sentence):
            raise DataError(f"sentence {i} is {sentence!r:.60}; expected a list of strings")
        listed.append(list(sentence))
    if not listed:
        raise DataError("there are no sentences to learn clusters from")
    corpus = Corpus.from_columns({"word": listed})
    return _clusters(*stacked([(corpus.columns["word"], corpus.offsets)]), n_clusters, min_count)


def clusters_of(
    corpora: Sequence[Corpus], column: str, n_clusters: int = N_CLUSTERS, min_count: int = MIN_COUNT
) -> dict[str, str]:
    """Clusters of the normal forms of a column's symbols, from the text of all corpora."""
    parts = [(_normal(corpus.columns[column]), corpus.offsets) for corpus in corpora]
    return _clusters(*stacked(parts), n_clusters, min_count)


def _normal(column: Column) -> Column:
    forms = Column.from_strings([normal_form(value) for value in column.values])
    return Column(forms.codes[column.codes], forms.values)


def _clusters(
    codes: NDArray[np.int64],
    offsets: NDArray[np.int64],
    words: Sequence[str],
    n_clusters: int,
    min_count: int,
) -> dict[str, str]:
    from trellis.kernels.brown import brown_merges

    whole(1).check("n_clusters", n_clusters)
    whole(1).check("min_count", min_count)
    counts = np.bincount(codes, minlength=len(words))
    # by falling count; of equal counts those that sort first, whatever the order of the text
    often = np.flatnonzero(counts >= min_count).tolist()
    order = sorted(often, key=lambda w: (-int(counts[w]), words[w]))
    if not order:
        return {}
    rank = np.full(len(words) + 1, -1, np.int64)
    rank[order] = np.arange(len(order))
    left, right = rank[codes[:-1]], rank[codes[1:]]
    ends = offsets[1:-1]
    left[ends[(ends > 0) & (ends < len(codes))] - 1] = -1  # no pair across two samples
    both = (left >= 0) & (right >= 0)
    pairs, times = np.unique(left[both] * len(order) + right[both], return_counts=True)
    before, after = np.divmod(pairs, len(order))
    turned = np.lexsort((before, after))
    n = np.arange(min(_TABLE, len(codes)) + 1, dtype=np.float64)
    merges, _ = brown_merges(
        bounds(np.bincount(before, minlength=len(order))), after.astype(np.int32), times,
        bounds(np.bincount(after, minlength=len(order))), before[turned].astype(np.int32),
        times[turned], n_clusters, n * np.log(np.maximum(n, 1)),
    )  # fmt: skip
    names = paths(merges, len(order), n_clusters)
    return {words[word]: name for word, name in zip(order, names, strict=True)}


def paths(merges: NDArray[np.int32], n_words: int, n_clusters: int) -> list[str]:
    """Bit string of each word, by the merges of a window of clusters.

    The word that enters when all slots are taken is in slot ``n_clusters`` at first, later in the
    slot that was freed last. Merges after the last word are the tree.
    """
    n_inner = max(0, n_words - n_clusters)
    members = {slot: [slot] for slot in range(min(n_words, n_clusters))}
    free = n_clusters
    for word, (kept, freed) in enumerate(merges[:n_inner].tolist(), n_clusters):
        members[free] = [word]
        members[kept] += members.pop(freed)
        free = freed
    tree: dict[int, list[tuple[int, str]]] = {slot: [(slot, "")] for slot in members}
    for kept, freed in merges[n_inner:].tolist():
        halves = zip("01", (tree[kept], tree.pop(freed)), strict=True)
        tree[kept] = [(slot, bit + path) for bit, half in halves for slot, path in half]
    names = [""] * n_words
    for branch in tree.values():
        for slot, path in branch:
            for word in members[slot]:
                names[word] = path
    return names


def stacked(
    parts: Sequence[tuple[Column, NDArray[np.int64]]],
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[str]]:
    """Columns of several corpora as one: codes (N,), offsets (S + 1,), distinct symbols."""
    table: dict[str, int] = {}
    codes, offsets = [np.zeros(0, np.int64)], [np.zeros(1, np.int64)]
    for column, bound in parts:
        used = np.flatnonzero(np.bincount(column.codes, minlength=len(column.values)))
        new = np.zeros(len(column.values), np.int64)
        new[used] = [table.setdefault(column.values[c], len(table)) for c in used.tolist()]
        offsets.append(bound[1:] + sum(map(len, codes)))
        codes.append(new[column.codes])
    return np.concatenate(codes), np.concatenate(offsets), list(table)
