"""How chain models are fitted: the door, and what is particular to chains.

The rest is in :mod:`trellis.models.trained_model`; what a fitted model can do is in
:mod:`trellis.models.chain_predictor`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Corpus, Label, Labels, as_corpus
from trellis.corpus.sample_weights import sample_weights
from trellis.corpus.schemes import get_scheme
from trellis.decompose import Partitioner, partitioner
from trellis.errors import DataError
from trellis.features import Encoded, Prepared
from trellis.models.chain_predictor import ChainPredictor
from trellis.models.checkpoint import Checkpoint
from trellis.models.trained_model import TrainedModel, dev_corpus, training_corpus
from trellis.problems import ChainData, Weights

__all__ = ["ChainModel"]


class ChainModel(ChainPredictor, TrainedModel):
    """Base of the chain estimators; not used by itself."""

    overlap: int

    def _check_parameters(self) -> None:
        super()._check_parameters()
        partitioner(self.piece_size, self.overlap)
        if self.scheme is not None:
            get_scheme(self.scheme)

    def fit(
        self,
        X: Any,
        y: Sequence[Sequence[Label]] | None = None,
        *,
        sample_weight: Sequence[float] | NDArray[Any] | None = None,
        dev: Any = None,
        checkpoint: str | os.PathLike[Any] | Checkpoint | None = None,
        checkpoint_minutes: float = 5.0,
        resume: bool = False,
    ) -> Self:
        """Learn from labelled sequences.

        Parameters
        ----------
        X : Corpus, list of sequences or Prepared
            See :func:`trellis.corpus.as_corpus` for what a sequence may be, and
            :func:`trellis.features.prepare` for data larger than memory.
        y : list of label lists, optional
            Needed unless the corpus carries its labels. A label may be None (not annotated) or a
            set of allowed labels.
        sample_weight : array (S,), optional
            Weight of each sequence in the objective.
        dev : Corpus or (X, y), optional
            Held-out data, scored after each pass (span F1 if the labels follow a tag scheme, else
            token accuracy); the weights of the best pass are kept.
        checkpoint : path, optional
            File that says after each pass (L-BFGS: every 100 iterations) where training is; it is
            removed at the end (a :class:`trellis.models.Checkpoint` is left for the caller to
            remove, say when the model is saved).
        checkpoint_minutes : float
            Time between checkpoints within a pass.
        resume : bool
            Go on from the checkpoint, if there is one; the result is the same as without the
            interruption.

        Returns
        -------
        self
        """
        self._check_parameters()
        corpus = _prepared(X, y) if isinstance(X, Prepared) else training_corpus(as_corpus(X, y))
        weight = sample_weights(sample_weight, len(corpus))
        held_out = None if dev is None else _dev_corpus(dev)
        return self._fit(corpus, weight, held_out, checkpoint, checkpoint_minutes, resume)

    def _batch(
        self,
        X: Any,
        y: Sequence[Sequence[Label]] | None,
        classes: Sequence[str] | None,
        sample_weight: Sequence[float] | NDArray[Any] | None,
    ) -> tuple[ChainData, Weights, np.random.Generator]:
        """Door of partial_fit."""
        self._check_parameters()
        return self._next_batch(training_corpus(as_corpus(X, y)), classes, sample_weight)

    def _assemble(
        self,
        corpus: Corpus | Prepared,
        encoded: Encoded,
        labels: Labels,
        weight: NDArray[np.float64],
    ) -> ChainData:
        return ChainData(encoded, labels, weight)

    def _pieces(self, data: ChainData) -> Partitioner:
        return partitioner(self.piece_size, self.overlap)

    def _check_classes(self, classes: tuple[str, ...]) -> None:
        if self.scheme is not None:
            get_scheme(self.scheme).validity(classes)  # raises if a label does not fit

    def _dev_score(self, corpus: Corpus | None) -> Callable[[Weights], float] | None:
        if corpus is None:
            return None
        assert corpus.labels is not None
        from trellis.evaluation._held_out import held_out_score, scoring_scheme

        encoded = self._encode(corpus)
        gold = corpus.label_lists()
        scheme = scoring_scheme(self.scheme, self.classes_, gold, corpus.labels.classes)
        return lambda weights: held_out_score(
            gold, self._decode(corpus, encoded, weights, None), scheme
        )


def _prepared(X: Prepared, y: Any) -> Prepared:
    if y is not None:
        raise DataError("a prepared corpus carries its labels; leave out y")
    return X


def _dev_corpus(dev: Any) -> Corpus:
    pair = dev if isinstance(dev, tuple) else (dev, None)
    if len(pair) != 2:
        raise DataError("dev needs labelled sequences: a corpus with labels or a pair (X, y)")
    return dev_corpus(as_corpus(*pair))
