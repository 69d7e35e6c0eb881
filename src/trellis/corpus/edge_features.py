"""Features of edges: attributes that each edge has of its own, by the rules for positions.

What a user gives for each sample, one entry an edge, becomes CSR arrays over the edges of a corpus:

    (m, d) array or sparse matrix    d real-valued attributes an edge, named x0 … x(d−1)
    [{str: value}, …]                attributes of each edge, as the door takes them for positions
    [[str, …], …]                    attributes of each edge, all indicators

Edges may carry them as third members, (a, b, {name: value}), as networkx's ``G.edges(data=True)``
has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import as_list
from trellis.corpus.corpus import Corpus, Features, bounds
from trellis.corpus.door import as_corpus
from trellis.corpus.number_rows import is_sparse
from trellis.errors import DataError

__all__ = ["edge_attributes", "edges_as_positions", "split_edges"]


def edges_as_positions(corpus: Corpus) -> Corpus:
    """The edges of a corpus, which have features, as the positions of one sample.

    Examples
    --------
    >>> from trellis.corpus import as_graph_corpus
    >>> corpus = as_graph_corpus([["a", "b"]], edges=[[(0, 1, {"near": True})]])
    >>> edges_as_positions(corpus)
    <Corpus: 1 samples; 1 positions; 1 attributes>
    """
    assert corpus.edges is not None
    return Corpus(bounds([len(corpus.edges)]), features=corpus.edge_features)


def split_edges(edges: Any) -> tuple[Any, list[Any] | None]:
    """Edges of samples without their third members, and these; None if they have none.

    Examples
    --------
    >>> split_edges([[(0, 1, {"near": True})], []])
    ([[(0, 1)], []], [[{'near': True}], []])
    >>> split_edges([[(0, 1)]])
    ([[(0, 1)]], None)
    """
    samples = as_list(edges, "edges of the samples")
    # Views of networkx can be gone over, but have no places.
    listed = [list(given) if _is_loose(given) else given for given in samples]
    if not any(isinstance(given, list | tuple) and any(map(is_triple, given)) for given in listed):
        return listed, None
    pairs, attributes = [], []
    for s, given in enumerate(listed):
        for e, edge in enumerate(given):
            if not is_triple(edge):
                raise DataError(
                    f"sample {s}, edge {e} is {edge!r:.80}; expected (a, b, features) as others"
                )
        pairs.append([(a, b) for a, b, _ in given])
        attributes.append([features for _, _, features in given])
    return pairs, attributes


def is_triple(edge: Any) -> bool:
    """Whether an edge is (a, b, {name: value})."""
    return isinstance(edge, list | tuple) and len(edge) == 3 and isinstance(edge[2], Mapping)


def _is_loose(edges: Any) -> bool:
    """Whether edges can be gone over but are no list or array."""
    return isinstance(edges, Iterable) and not isinstance(
        edges, str | bytes | Mapping | Sequence | np.ndarray
    )


def edge_attributes(given: Any, counts: NDArray[np.int64]) -> Features:
    """Features of the edges of samples that have so many each."""
    samples = [_row_list(sample) for sample in as_list(given, "edge_features of the samples")]
    if len(samples) != len(counts):
        raise DataError(f"there are edge_features for {len(samples)} samples, not {len(counts)}")
    for s, sample in enumerate(samples):
        n = _n_rows(sample, s)
        if n != counts[s]:
            raise DataError(f"sample {s} has {counts[s]} edges, but edge_features for {n}")
    width = next((m.shape[1] for m in samples if getattr(m, "ndim", 0) == 2), None)
    if width is not None:  # a sample without edges need not say how many columns it lacks
        samples = [m if _n_rows(m, 0) else np.zeros((0, width)) for m in samples]
    for s, sample in enumerate(samples):
        listed = [] if is_sparse(sample) else sample
        symbol = next((e for e in listed if isinstance(e, str)), None)
        if symbol is not None:
            raise DataError(
                f"edge_features of sample {s} hold {symbol!r}; expected a dict or a list of names "
                "for each edge (a single name may be its type: edge_types=)"
            )
    try:
        features = as_corpus(samples).features
    except DataError as error:  # the door speaks of positions
        raise DataError(f"edge_features: {str(error).replace(', position ', ', edge ')}") from None
    return _no_features(0) if features is None else features


def _row_list(sample: Any) -> Any:
    """What is given for a sample, as something with places."""
    return list(sample) if _is_loose(sample) and not is_sparse(sample) else sample


def _n_rows(sample: Any, s: int) -> int:
    if is_sparse(sample) or (isinstance(sample, np.ndarray) and sample.ndim > 0):
        return int(sample.shape[0])
    if isinstance(sample, str | bytes | Mapping) or not isinstance(sample, Sequence):
        raise DataError(
            f"edge_features of sample {s} are {type(sample).__name__}; expected an (m, d) array, "
            "or a list with a dict or a list of names for each edge"
        )
    return len(sample)


def _no_features(n: int) -> Features:
    return Features(np.zeros(n + 1, np.int64), np.zeros(0, np.int32), None, [])
