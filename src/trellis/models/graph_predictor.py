"""Prediction with a fitted tree or graph model: labels with a certificate, k best, explanations.

The model scores a labelling y of a sample x with edges e = (a, b) by

    s(x, y) = Σ_v Σ_{f ∈ x_v} value · node[f, y_v] + Σ_e S_e[y_a, y_b],

S_e being the table of the edge's type and what rich edge features add to it; edges without
direction have S_e + S_eᵀ. An edge of a type never seen in training couples nothing.

A CRF that was trained on spanning trees of loopy graphs has learned tables for a share ρ of the
edges, each of which spoke for its neighbours, too. At prediction all edges speak, so that each
counts ρ times: ρ · S_e is the mean of what the trees had (the weights of tree-reweighted belief
propagation; Wainwright, Jaakkola & Willsky 2005). On forests ρ is 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Corpus, Label, Labels, as_graph_corpus
from trellis.corpus.corpus import check_lengths, lengths_of
from trellis.corpus.labels import basic_table
from trellis.errors import DataError, InfeasibleError
from trellis.estimator import Estimator
from trellis.features import Encoded, Encoder
from trellis.models.accuracy import accuracy
from trellis.models.explain import Explanation, explain_graph_sample
from trellis.problems import GraphData, Weights
from trellis.problems.graph import edge_rows
from trellis.problems.graph_log_likelihood import edge_tables
from trellis.structures import GraphBest, GraphPotentials, graph_best, graph_kbest

__all__ = ["Decoded", "GraphPredictor"]

# Numbers in the scores of nodes, and of edges if each has its own, that are made at once.
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Decoded:
    """The labelling found for a sample, and how good it is known to be.

    Parameters
    ----------
    labels : list of str
    score : float
        Its score s(x, y).
    bound : float
        No labelling has a higher score.
    exact : bool
        Whether it is the best labelling.
    method : str
        How it was found (see :func:`trellis.structures.graph_best`).
    """

    labels: list[str]
    score: float
    bound: float
    exact: bool
    method: str

    @property
    def gap(self) -> float:
        """How much better than this labelling the best may be."""
        return self.bound - self.score


class GraphPredictor(Estimator):
    """What every fitted tree or graph model can do; how it is fitted is up to those below it."""

    directed: bool

    classes_: tuple[str, ...]
    encoder_: Encoder
    weights_: Weights
    edge_types_: tuple[str, ...]

    @property
    def _edge_share(self) -> float:
        """Share ρ of the edges that the tables were learned for."""
        return float(getattr(self, "edge_share_", 1.0))

    def predict(
        self,
        X: Any,
        *,
        edges: Sequence[Any] | None = None,
        edge_types: Sequence[Sequence[str]] | None = None,
        constraints: Sequence[Sequence[Label]] | None = None,
    ) -> list[list[str]]:
        """Best labels of each sample.

        Parameters
        ----------
        X : Corpus with edges, list of samples, or list of pairs (sample, edges)
        edges : list of integer arrays (m, 2), optional
            Edges of each sample, unless ``X`` has them.
        edge_types : list of lists of str, optional
            Type of each edge.
        constraints : list of lists, optional
            For each node the label it must have, a set of allowed labels, or None.

        Returns
        -------
        list of lists of str
        """
        found = self.decode(X, edges=edges, edge_types=edge_types, constraints=constraints)
        return [decoded.labels for decoded in found]

    def decode(
        self,
        X: Any,
        *,
        edges: Sequence[Any] | None = None,
        edge_types: Sequence[Sequence[str]] | None = None,
        constraints: Sequence[Sequence[Label]] | None = None,
    ) -> list[Decoded]:
        """Labelling of each sample as :meth:`predict` finds it, with score, bound and exactness."""
        self._check_fitted()
        corpus = as_graph_corpus(X, None, edges, edge_types)
        return self._decode(corpus, self._encode(corpus), self.weights_, constraints)

    def _decode(
        self,
        corpus: Corpus,
        encoded: Encoded,
        weights: Weights,
        constraints: Sequence[Sequence[Label]] | None,
    ) -> list[Decoded]:
        names = np.array(self.classes_, object)
        result = []
        for p, first in self._potentials(corpus, encoded, weights, constraints):
            try:
                found = self._best(p)
            except InfeasibleError as error:
                raise _numbered(error, first) from None
            for s in range(len(p.offsets) - 1):
                a, b = p.offsets[s], p.offsets[s + 1]
                result.append(
                    Decoded(
                        names[found.labels[a:b]].tolist(),
                        float(found.scores[s]),
                        float(found.bounds[s]),
                        bool(found.exact[s]),
                        found.method[s],
                    )
                )
        return result

    def _best(self, p: GraphPotentials) -> GraphBest:
        inference: str = getattr(self, "inference", "auto")  # trees have no choice
        exact = inference == "exact"
        return graph_best(p, method="auto" if exact else inference, exact=exact)

    def predict_kbest(
        self,
        X: Any,
        k: int,
        *,
        edges: Sequence[Any] | None = None,
        edge_types: Sequence[Sequence[str]] | None = None,
        constraints: Sequence[Sequence[Label]] | None = None,
    ) -> list[list[tuple[list[str], float]]]:
        """Return the k best labellings of each sample, best first, each with its score.

        Samples with fewer than k possible labellings get fewer. On graphs with loops it needs
        exact inference, and says so if the graph is too dense for it.
        """
        self._check_fitted()
        if not isinstance(k, int | np.integer) or k < 1:
            raise DataError(f"k must be a positive integer, got {k!r}")
        corpus = as_graph_corpus(X, None, edges, edge_types)
        names = np.array(self.classes_, object)
        result: list[list[tuple[list[str], float]]] = []
        blocks = self._potentials(corpus, self._encode(corpus), self.weights_, constraints)
        for p, first in blocks:
            try:
                labels, scores = self._kbest(p, int(k))
            except InfeasibleError as error:
                raise _numbered(error, first) from None
            for s in range(len(p.offsets) - 1):
                a, b = p.offsets[s], p.offsets[s + 1]
                result.append(
                    [
                        (names[labels[i, a:b]].tolist(), float(scores[s, i]))
                        for i in range(k)
                        if np.isfinite(scores[s, i])
                    ]
                )
        return result

    def _kbest(self, p: GraphPotentials, k: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        return graph_kbest(p, k)

    def score(
        self,
        X: Any,
        y: Sequence[Sequence[Label]] | None = None,
        sample_weight: Sequence[float] | NDArray[Any] | None = None,
        *,
        edges: Sequence[Any] | None = None,
        edge_types: Sequence[Sequence[str]] | None = None,
    ) -> float:
        """Accuracy: the share of annotated nodes labelled right (a set is met by any member)."""
        self._check_fitted()
        corpus = as_graph_corpus(X, y, edges, edge_types)
        return accuracy(corpus, self.predict, sample_weight)

    def explain(
        self,
        X: Any,
        *,
        edges: Sequence[Any] | None = None,
        edge_types: Sequence[Sequence[str]] | None = None,
        n_features: int = 5,
    ) -> Explanation:
        """Say why a sample got its labels: the features and edges that spoke for each.

        Parameters
        ----------
        X : Sample, or a corpus or list of one sample
        edges, edge_types
            As for :meth:`predict`.
        n_features : int
            How many features to list for each node.
        """
        self._check_fitted()
        corpus = as_graph_corpus(X, None, edges, edge_types)
        if len(corpus) != 1:
            raise DataError(f"explain takes one sample, got {len(corpus)}; pass corpus[i]")
        encoded = self._encode(corpus)
        labels = self._decode(corpus, encoded, self.weights_, None)[0].labels
        p, _ = next(self._potentials(corpus, encoded, self.weights_, None))
        return explain_graph_sample(
            corpus, encoded, self.encoder_, self.weights_, self.classes_, labels, p, n_features,
            self._marginals_or_none(corpus),
        )  # fmt: skip

    def _marginals_or_none(self, corpus: Corpus) -> NDArray[np.float64] | None:
        return None

    # ---------------------------------------------------------------- scores

    def _encode(self, corpus: Corpus) -> Encoded:
        if corpus.n_positions == 0:  # which kind of features it lacks cannot be told, nor matters
            none = np.zeros(0, np.int32)
            return Encoded(corpus.offsets, np.zeros(1, np.int64), none, np.zeros(0, np.float32))
        return self.encoder_.encode(corpus)

    def _graph_data(
        self, corpus: Corpus, encoded: Encoded, labels: Labels, weight: NDArray[np.float64]
    ) -> GraphData:
        """Data with edges whose types are known."""
        edges, types = _coded(corpus, self.edge_types_)
        data = GraphData(
            encoded, labels, weight, edges[types >= 0], types[types >= 0],
            max(1, len(self.edge_types_)), self.directed,
        )  # fmt: skip
        edge = self.weights_.edge
        if edge is None:
            return data
        return replace(data, rows=edge_rows(encoded, data.edges, edge, self.directed))

    def _potentials(
        self,
        corpus: Corpus,
        encoded: Encoded,
        weights: Weights,
        constraints: Sequence[Sequence[Label]] | None,
    ) -> Iterator[tuple[GraphPotentials, int]]:
        """Blocks of samples as potentials, each with the number of its first sample."""
        from trellis.kernels.scoring import score_nodes

        n = len(self.classes_)
        unknown = np.full(corpus.n_positions, n, np.int32)
        labels = Labels(unknown, basic_table(n), self.classes_)
        allowed = None
        if constraints is not None:
            lengths = lengths_of(constraints, "constraints")
            check_lengths(corpus.lengths.tolist(), lengths, "X", "constraints")
            allowed = Labels.from_lists(constraints, self.classes_).allowed()
        data = self._graph_data(corpus, encoded, labels, np.ones(len(corpus)))
        owner = np.searchsorted(corpus.offsets, data.edges[:, 0], side="right") - 1
        order = np.argsort(owner, kind="stable")
        edges_of = np.searchsorted(owner[order], np.arange(len(corpus) + 1))
        rich = weights.edge is not None
        for a, b in _blocks(corpus.offsets, edges_of, n, rich):
            first, last = int(corpus.offsets[a]), int(corpus.offsets[b])
            node = score_nodes(
                encoded.indptr, encoded.indices, encoded.values, weights.node, first, last
            )
            fine = np.isfinite(node).all(axis=1)
            if not fine.all():
                s = int(np.searchsorted(corpus.offsets, first + np.argmin(fine), side="right")) - 1
                raise DataError(
                    f"sample {s}: feature values are too large to be scored; rescale them as for "
                    "training"
                )
            if allowed is not None:
                node[~allowed[first:last]] = -np.inf
            ids = order[edges_of[a] : edges_of[b]]
            if rich:
                pair: NDArray[Any] = edge_tables(data, weights, ids)
                types = np.arange(len(ids))
            else:
                pair, types = weights.transitions.astype(np.float64), data.types[ids]
                if not self.directed:
                    pair = pair + pair.transpose(0, 2, 1)
            if self._edge_share != 1.0:
                pair = pair * self._edge_share
            offsets = corpus.offsets[a : b + 1] - first
            yield GraphPotentials(node, pair, data.edges[ids] - first, offsets, types), a


def _coded(corpus: Corpus, known: tuple[str, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Edges and their types as numbers, −1 for types that are not known."""
    assert corpus.edges is not None
    edges = corpus.edges
    if not known:
        return edges, np.zeros(len(edges), np.int64)
    if corpus.edge_types is None:
        raise DataError("the model has types of edges, but these edges have none")
    position = {name: i for i, name in enumerate(known)}
    table = np.array([position.get(v, -1) for v in corpus.edge_types.values], np.int64)
    return edges, table[corpus.edge_types.codes]


def _blocks(
    offsets: NDArray[np.int64], edges_of: NDArray[np.int64], n_labels: int, rich: bool
) -> list[tuple[int, int]]:
    """Runs of samples whose scores are about a block; at least one run, if there is a sample."""
    cost = offsets * n_labels + (edges_of * n_labels**2 if rich else edges_of)
    n, blocks, a = len(offsets) - 1, [], 0
    while a < n:
        b = int(np.searchsorted(cost, cost[a] + _BLOCK, side="right")) - 1
        b = min(n, max(b, a + 1))
        blocks.append((a, b))
        a = b
    return blocks


def _numbered(error: InfeasibleError, first: int) -> InfeasibleError:
    """The same error with the number that a sample has in the whole corpus."""
    words = str(error).split(" ")
    if len(words) > 1 and words[0] == "sample" and words[1].rstrip(":").isdecimal():
        number = int(words[1].rstrip(":")) + first
        words[1] = f"{number}{':' if words[1].endswith(':') else ''}"
    return InfeasibleError(" ".join(words))
