r"""Attributes of the nodes around as attributes of a node: their mean.

With the attributes X (N, d) of all nodes and the neighbours :math:`N(t)` of each,

.. math:: \bar x_t = \frac{1}{|N(t)|} \sum_{u \in N(t)} x_u,

a node has :math:`(x_t, \bar x_t)`. Done twice, nodes know those two edges away. This is what a
«simple graph convolution» (Wu et al. 2019) does to the features of a graph, but that it keeps what
is a node's own apart from what is around it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trellis.corpus import Corpus, Features
from trellis.domains import instance, one_of
from trellis.errors import DataError
from trellis.features.neighbourhood import Neighbourhood

__all__ = ["neighbour_means"]


def neighbour_means(corpus: Corpus, along: str = "neighbours") -> Corpus:
    """Return a corpus whose nodes also have the means of the attributes around them.

    Models that learn from it predict on corpora of the same kind, made by the same call.

    Parameters
    ----------
    corpus : Corpus
        Of trees or graphs, with ready-made attributes: rows of numbers, dicts or lists. Of columns
        the template ``mean(neighbours, number(height))`` is the same.
    along : {"neighbours", "parents", "children"}
        Which nodes are meant; an edge (a, b) leads from a node a to its parent b.

    Returns
    -------
    Corpus
        The attributes ``mean(neighbours, x)`` beside each x; a node without neighbours has none.

    Raises
    ------
    DataError
        If there are no edges, or no attributes.

    Examples
    --------
    >>> import numpy as np
    >>> from trellis.corpus import as_graph_corpus
    >>> from trellis.features import neighbour_means
    >>> corpus = as_graph_corpus([np.array([[1.0], [3.0], [8.0]])], edges=[[(0, 1), (2, 1)]])
    >>> made = neighbour_means(corpus).features
    >>> made.names, made.values
    (['x0', 'mean(neighbours, x0)'], array([1. , 3. , 3. , 4.5, 8. , 3. ], dtype=float32))
    """
    from scipy.sparse import csr_array, hstack

    instance(Corpus).check("corpus", corpus)
    one_of("neighbours", "parents", "children").check("along", along)
    own = corpus.features
    if own is None:
        raise DataError(
            "means are of ready-made attributes; of a column say mean(neighbours, number(height)) "
            "among the templates"
        )
    if corpus.edges is None:
        raise DataError("means of neighbours need trees or graphs: there are no edges")
    n, width = corpus.n_positions, len(own.names)
    bags = Neighbourhood(n, corpus.edges).bags(along)
    share = 1 / np.maximum(np.diff(bags.ptr), 1)
    around = csr_array((share[bags.owner], bags.nodes, bags.ptr), shape=(n, n))
    values = np.ones(len(own.indices)) if own.values is None else own.values.astype(np.float64)
    rows = csr_array((values, own.indices, own.indptr), shape=(n, width))
    both = csr_array(hstack([rows, around @ rows], format="csr"))
    made = Features(
        both.indptr.astype(np.int64),
        both.indices.astype(np.int32),
        both.data.astype(np.float32),
        [*own.names, *(f"mean({along}, {x})" for x in own.names)],
    )
    return replace(corpus, features=made)
