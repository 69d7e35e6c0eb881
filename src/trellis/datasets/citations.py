r"""Papers that cite one another: one graph of which a few nodes are labelled.

Each of n papers is about one of L subjects, which is to be told from its words and its citations.
A paper has about ``length`` words, of which the share ``topical`` is drawn from those of its
subject, the rest from those that all have. A citation begins at a paper with a chance that is its
fame (a power law, as in real graphs); with the chance ``homophily`` it goes to a paper of the same
subject, else of another.

With few labels, words say little, and so do the labels of neighbours; together they say much.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trellis.domains import number, whole

__all__ = ["Citations", "citations"]

_FAME = 2.5  # exponent of the power law; of subjects' sizes, common words and those of subjects
_SIZES, _COMMON, _OWN = 5.0, 0.3, 0.02


class Citations(NamedTuple):
    """A graph of papers.

    Parameters
    ----------
    X : scipy.sparse.csr_array (n, words)
        1 where a paper has a word.
    y : int64 array (n,)
        The subjects.
    edges : int64 array (m, 2)
        The citations.
    """

    X: Any
    y: NDArray[np.int64]
    edges: NDArray[np.int64]


def citations(
    n_papers: int = 2700,
    *,
    subjects: int = 7,
    degree: float = 4.0,
    homophily: float = 0.8,
    words: int = 1000,
    length: int = 18,
    topical: float = 0.2,
    random_state: int = 0,
) -> Citations:
    """Generate papers of several subjects that cite one another.

    Parameters
    ----------
    n_papers : int
    subjects : int
        Number of subjects, at least 2.
    degree : float
        Mean number of neighbours.
    homophily : float
        Chance that a citation is within a subject.
    words, length : int
        Size of the vocabulary, and mean number of words of a paper.
    topical : float
        Share of the words that is about the subject.
    random_state : int
        Seed.

    Returns
    -------
    Citations
        A tuple of features, labels and edges.

    Examples
    --------
    >>> from trellis.datasets import citations
    >>> X, y, edges = citations(500)
    >>> X.shape, edges.shape, float((y[edges[:, 0]] == y[edges[:, 1]]).mean().round(1))
    ((500, 1000), (1000, 2), 0.8)
    """
    whole(2).check("n_papers", n_papers)
    whole(2).check("subjects", subjects)
    number(above=0, at_most=(n_papers - 1) / 2).check("degree", degree)
    whole(1).check("words", words)
    whole(1).check("length", length)
    for name, value in (("homophily", homophily), ("topical", topical)):
        number(at_least=0, at_most=1).check(name, value)
    rng = np.random.default_rng(random_state)
    y = rng.choice(subjects, n_papers, p=rng.dirichlet(np.full(subjects, _SIZES)))
    edges = _cited(y, subjects, round(n_papers * degree / 2), homophily, rng)
    return Citations(_written(y, subjects, words, length, topical, rng), y, edges)


def _cited(
    y: NDArray[np.int64], subjects: int, n_edges: int, homophily: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Distinct citations, sorted."""
    n = len(y)
    by_subject = np.argsort(y, kind="stable")
    starts = np.searchsorted(y[by_subject], np.arange(subjects + 1))
    fame = rng.pareto(_FAME, n) + 1
    found = np.zeros(0, np.int64)
    while len(found) < n_edges:
        first = rng.choice(n, 2 * n_edges, p=fame / fame.sum())
        other = rng.integers(subjects - 1, size=len(first))
        other += other >= y[first]
        subject = np.where(rng.random(len(first)) < homophily, y[first], other)
        size = starts[subject + 1] - starts[subject]
        keep = size > 0
        first, subject, size = first[keep], subject[keep], size[keep]
        second = by_subject[starts[subject] + (rng.random(len(first)) * size).astype(np.int64)]
        keep = first != second
        low, high = np.minimum(first, second)[keep], np.maximum(first, second)[keep]
        more = np.concatenate([found, low * n + high])
        _, place = np.unique(more, return_index=True)
        found = more[np.sort(place)][:n_edges]
    found.sort()
    return np.stack([found // n, found % n], axis=1)


def _written(
    y: NDArray[np.int64],
    subjects: int,
    words: int,
    length: int,
    topical: float,
    rng: np.random.Generator,
) -> Any:
    """Words of each paper, as rows of a sparse matrix."""
    from scipy.sparse import csr_array

    common = np.cumsum(rng.dirichlet(np.full(words, _COMMON)))
    own = np.cumsum(rng.dirichlet(np.full(words, _OWN), subjects), axis=1)
    paper = np.repeat(np.arange(len(y)), 1 + rng.poisson(length - 1, len(y)))
    drawn, about = rng.random(len(paper)), rng.random(len(paper)) < topical
    word = np.searchsorted(common, drawn)
    for k in range(subjects):
        here = about & (y[paper] == k)
        word[here] = np.searchsorted(own[k], drawn[here])
    used = np.unique(paper * words + np.minimum(word, words - 1))
    ones = np.ones(len(used), np.float32)
    return csr_array((ones, (used // words, used % words)), shape=(len(y), words))
