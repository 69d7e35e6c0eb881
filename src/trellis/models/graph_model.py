"""How tree and graph models are fitted: the door, the types of edges, the pieces.

The rest is in :mod:`trellis.models.trained_model`; what a fitted model can do is in
:mod:`trellis.models.graph_predictor`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Corpus, Label, Labels, as_graph_corpus
from trellis.corpus.sample_weights import sample_weights
from trellis.decompose import GraphPieces, Partitioner
from trellis.errors import DataError
from trellis.features import Encoded, Prepared
from trellis.models.checkpoint import Checkpoint
from trellis.models.graph_predictor import GraphPredictor, _coded
from trellis.models.trained_model import TrainedModel, dev_corpus, training_corpus
from trellis.problems import ChainData, GraphData, Weights
from trellis.structures import GraphBest, GraphPotentials, tree_best, tree_kbest
from trellis.structures.forest import Forest

__all__ = ["GraphModel", "TreeModel"]

_INFERENCE = ("auto", "exact", "elimination", "max-flow", "dual", "lp", "ilp")


class GraphModel(GraphPredictor, TrainedModel):
    """Base of the graph estimators; not used by itself."""

    @property
    def _kept(self) -> str:
        """What a piece keeps of its edges; only a CRF of graphs has the choice."""
        return str(getattr(self, "pieces", "tree"))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        GraphPieces(np.zeros((0, 2), np.int64), self.piece_size, self._kept)
        if not isinstance(self.directed, bool | np.bool_):
            raise DataError(f"directed must be True or False, got {self.directed!r}")
        inference = getattr(self, "inference", "auto")
        if inference not in _INFERENCE:
            raise DataError(f"inference must be one of {', '.join(_INFERENCE)}, got {inference!r}")

    def fit(
        self,
        X: Any,
        y: Sequence[Sequence[Label]] | None = None,
        *,
        edges: Sequence[Any] | None = None,
        edge_types: Sequence[Sequence[str]] | None = None,
        sample_weight: Sequence[float] | NDArray[Any] | None = None,
        dev: Any = None,
        checkpoint: str | os.PathLike[Any] | Checkpoint | None = None,
        checkpoint_minutes: float = 5.0,
        resume: bool = False,
    ) -> Self:
        """Learn from labelled samples with edges.

        Parameters
        ----------
        X : Corpus with edges, list of samples, or list of pairs (sample, edges)
            See :func:`trellis.corpus.as_corpus` for what a sample may be.
        y : list of label lists, optional
            Needed unless the corpus carries its labels. A label may be None (not annotated) or a
            set of allowed labels.
        edges : list of integer arrays (m, 2), optional
            Edges of each sample, unless ``X`` has them; nodes are numbered from 0 in each.
        edge_types : list of lists of str, optional
            Type of each edge; each type gets a table of transition weights of its own.
        sample_weight : array (S,), optional
            Weight of each sample in the objective.
        dev : Corpus, (X, y) or (X, y, edges), optional
            Held-out data, scored after each pass; the weights of the best pass are kept.
        checkpoint, checkpoint_minutes, resume
            As for chains.

        Returns
        -------
        self
        """
        self._check_parameters()
        corpus = self._checked(training_corpus(as_graph_corpus(X, y, edges, edge_types)))
        weight = sample_weights(sample_weight, len(corpus))
        held_out = None if dev is None else self._dev_corpus(dev)
        return self._fit(corpus, weight, held_out, checkpoint, checkpoint_minutes, resume)

    def _checked(self, corpus: Corpus) -> Corpus:
        """Refuse graphs that the model is not for."""
        return corpus

    def _dev_corpus(self, dev: Any) -> Corpus:
        parts = dev if isinstance(dev, tuple) else (dev, None)
        if not 2 <= len(parts) <= 3:
            raise DataError(
                "dev needs labelled samples: a corpus with labels, or (X, y), or (X, y, edges)"
            )
        return dev_corpus(self._checked(as_graph_corpus(*parts)))

    def _batch(
        self,
        X: Any,
        y: Sequence[Sequence[Label]] | None,
        edges: Sequence[Any] | None,
        edge_types: Sequence[Sequence[str]] | None,
        classes: Sequence[str] | None,
        sample_weight: Sequence[float] | NDArray[Any] | None,
    ) -> tuple[ChainData, Weights, np.random.Generator]:
        """Door of partial_fit."""
        self._check_parameters()
        corpus = self._checked(training_corpus(as_graph_corpus(X, y, edges, edge_types)))
        return self._next_batch(corpus, classes, sample_weight)

    def _learn_edges(self, corpus: Corpus | Prepared) -> None:
        assert isinstance(corpus, Corpus)
        types = corpus.edge_types
        used = [] if types is None else np.unique(types.codes).tolist()
        self.edge_types_ = () if types is None else tuple(sorted(types.values[c] for c in used))

    def _no_weights(self, n_features: int) -> Weights:
        n_types = max(1, len(self.edge_types_))
        return Weights.zeros(n_features, len(self.classes_), n_types=n_types)

    def _crossed_edges(self, corpus: Corpus | Prepared) -> NDArray[np.int64] | None:
        assert isinstance(corpus, Corpus)
        return corpus.edges

    def _assemble(
        self,
        corpus: Corpus | Prepared,
        encoded: Encoded,
        labels: Labels,
        weight: NDArray[np.float64],
    ) -> GraphData:
        assert isinstance(corpus, Corpus)
        return self._graph_data(corpus, encoded, labels, weight)

    def _learn_more(
        self,
        corpus: Corpus | Prepared,
        sample_weight: NDArray[np.float64],
        rng: np.random.Generator,
    ) -> ChainData:
        assert isinstance(corpus, Corpus)
        _, types = _coded(corpus, self.edge_types_)
        if (types < 0).any():
            assert corpus.edge_types is not None
            unknown = corpus.edge_types.strings()[int(np.argmax(types < 0))]
            raise DataError(
                f"edge type {unknown!r} is unknown; the model has {', '.join(self.edge_types_)}"
            )
        return super()._learn_more(corpus, sample_weight, rng)

    def _pieces(self, data: ChainData) -> Partitioner:
        assert isinstance(data, GraphData)
        return GraphPieces(data.edges, self.piece_size, self._kept)

    def _dev_score(self, corpus: Corpus | None) -> Callable[[Weights], float] | None:
        if corpus is None:
            return None
        from trellis.evaluation._held_out import held_out_score

        encoded, gold, dev = self._encode(corpus), corpus.label_lists(), corpus

        def score(weights: Weights) -> float:
            found = self._decode(dev, encoded, weights, None)
            return held_out_score(gold, [d.labels for d in found], None)

        return score


class TreeModel(GraphModel):
    """Base of the tree estimators; not used by itself."""

    def _checked(self, corpus: Corpus) -> Corpus:
        assert corpus.edges is not None
        Forest.of(corpus.offsets, corpus.edges)  # raises if there is a cycle
        return corpus

    def _best(self, p: GraphPotentials) -> GraphBest:
        labels, scores = tree_best(p)
        n = len(scores)
        return GraphBest(labels, scores, scores, np.ones(n, bool), ("tree",) * n)

    def _kbest(self, p: GraphPotentials, k: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        return tree_kbest(p, k)
