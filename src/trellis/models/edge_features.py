r"""Features that edges have of their own, as a model sees them.

An edge e = (a, b) with the features :math:`g \in x_e`, of values :math:`v_{eg}`, adds

.. math:: \sum_{g \in x_e} v_{eg} R_g[y_a, y_b]

to the scores of its label pairs, and the mirror image of that if it has no direction. Their names
are known to an encoder of their own; the weights are the last rows of
:class:`trellis.problems.EdgeWeights`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Corpus
from trellis.corpus.edge_features import edges_as_positions
from trellis.errors import DataError
from trellis.features import AttributeEncoder, Encoded
from trellis.problems import LabelProblem, Weights

__all__ = ["EdgeShare", "encoded_edges", "have_features", "shares_of_edges"]

EdgeShare = tuple[str, NDArray[np.float64]]
"""A feature of an edge at a position, and what it adds to the score of each label there."""


def have_features(corpus: Corpus) -> bool:
    """Whether any edge of a corpus has a feature of its own."""
    own = corpus.edge_features
    return own is not None and len(own.indices) > 0


def encoded_edges(encoder: AttributeEncoder | None, corpus: Corpus) -> Encoded | None:
    """Features of the edges of a corpus, by the encoder of a model; None if it has none."""
    if corpus.edges is None:
        return None
    if encoder is None:
        if have_features(corpus):
            raise DataError(
                "the model has no features of edges, but these edges have some; leave out "
                "edge_features, or fit the model with them"
            )
        return None
    if corpus.edge_features is None and len(corpus.edges):
        raise DataError("the model has features of edges, but these edges have none")
    return encoder.encode(edges_as_positions(corpus))


def shares_of_edges(
    problem: LabelProblem,
    weights: Weights,
    encoder: AttributeEncoder,
    labels: NDArray[Any],
    scale: float,
) -> list[list[EdgeShare]]:
    """What the features of edges add to the labels of each position, given all other labels."""
    own, edge, n = problem.edge_features, weights.edge, problem.n_labels
    assert own is not None and edge is not None
    shares: list[list[EdgeShare]] = [[] for _ in range(len(problem.labels))]
    begins = edge.rows()[edge.n_joined :]
    names = encoder.names(np.arange(encoder.n_features))
    for e, (a, b) in enumerate(problem.edges.tolist()):
        for p in range(own.indptr[e], own.indptr[e + 1]):
            g = own.indices[p]
            row = slice(begins[g], begins[g + 1])
            table = np.zeros(n * n)
            table[edge.pair[row] if edge.ptr.size else slice(None)] = edge.values[row]
            table = table.reshape(n, n) * (scale * (own.values[p] if own.values.size else 1.0))
            if not problem.directed:
                table = table + table.T
            shares[a].append((f"{names[g]} (edge to node {b})", table[:, labels[b]]))
            shares[b].append((f"{names[g]} (edge to node {a})", table[labels[a], :]))
    return shares
