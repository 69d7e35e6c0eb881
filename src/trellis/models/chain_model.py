"""How chain models are fitted: the door, the features, passes over the data, held-out scores.

What a fitted model can do is in :mod:`trellis.models.chain_predictor`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Corpus, Label, as_corpus
from trellis.corpus.schemes import detect_scheme, get_scheme
from trellis.decompose import VISITS, partitioner
from trellis.errors import DataError
from trellis.features import (
    AttributeEncoder,
    Encoder,
    TemplateEncoder,
    as_templates,
)
from trellis.models.chain_predictor import ChainPredictor, sample_weights
from trellis.models.params import is_number
from trellis.objectives import ChainData, ChainWeights
from trellis.progress import Reporter
from trellis.solvers.passes import Learner, PassRecord, run_passes

__all__ = ["ChainModel"]


class ChainModel(ChainPredictor):
    """Base of the chain estimators; not used by itself."""

    features: Any
    piece_size: float | None
    max_passes: int
    tol: float
    visit: str
    scheme: str | None
    patience: int | None
    warm_start: bool
    verbose: bool
    random_state: int | None

    classes_: tuple[str, ...]
    encoder_: Encoder
    weights_: ChainWeights
    history_: list[PassRecord]
    n_batches_ = 0  # batches of partial_fit since the last fit
    n_seen_ = 0  # sequences since and with the last fit
    _stream: Any = None  # the learner of the last batch, for those that go on from it
    input_format_: dict[str, Any] | None = None  # how the command line read the training file

    # ---------------------------------------------------------------- training

    def _learner(self, data: ChainData, start: ChainWeights, rng: np.random.Generator) -> Learner:
        raise NotImplementedError  # abstract

    def _check_parameters(self) -> None:
        if not isinstance(self.max_passes, int | np.integer) or self.max_passes < 1:
            raise DataError(f"max_passes must be a positive integer, got {self.max_passes!r}")
        if self.visit not in VISITS:
            raise DataError(f"visit must be one of {', '.join(VISITS)}, got {self.visit!r}")
        if not (is_number(self.tol) and abs(self.tol) < np.inf):
            raise DataError(f"tol must be a finite number, got {self.tol!r}; -1 never stops early")
        if self.patience is not None and not (is_number(self.patience) and self.patience >= 1):
            raise DataError(f"patience must be None or at least 1, got {self.patience!r}")
        seed = self.random_state
        if seed is not None and not (isinstance(seed, int | np.integer) and seed >= 0):
            raise DataError(f"random_state must be None or an integer of at least 0, got {seed!r}")
        partitioner(self.piece_size)
        if self.scheme is not None:
            get_scheme(self.scheme)

    def fit(
        self,
        X: Any,
        y: Sequence[Sequence[Label]] | None = None,
        *,
        sample_weight: Sequence[float] | NDArray[Any] | None = None,
        dev: Any = None,
    ) -> Self:
        """Learn from labelled sequences.

        Parameters
        ----------
        X : Corpus or list of sequences
            See :func:`trellis.corpus.as_corpus` for what a sequence may be.
        y : list of label lists, optional
            Needed unless the corpus carries its labels. A label may be None (not annotated) or a
            set of allowed labels.
        sample_weight : array (S,), optional
            Weight of each sequence in the objective.
        dev : Corpus or (X, y), optional
            Held-out data, scored after each pass (span F1 if the labels follow a tag scheme, else
            token accuracy); the weights of the best pass are kept.

        Returns
        -------
        self
        """
        self._check_parameters()
        corpus = _training_corpus(X, y)
        weight = sample_weights(sample_weight, len(corpus))
        held_out = None if dev is None else _dev_corpus(dev)
        fresh = not (self.warm_start and self.__sklearn_is_fitted__())
        data = self._learn_fresh(corpus, weight) if fresh else self._learn_more(corpus, weight)
        self.n_batches_, self.n_seen_, self._stream = 0, len(corpus), None
        rng = np.random.default_rng(self.random_state)
        learner = self._learner(data, self.weights_.copy(), rng)
        try:
            self._run(learner, rng, self._dev_score(held_out), self.max_passes)
        except DataError:
            if fresh:
                del self.classes_  # nothing was learned: not fitted
            raise
        return self

    def _learn_fresh(self, corpus: Corpus, sample_weight: NDArray[np.float64]) -> ChainData:
        """Forget everything learned; take the classes and the kind of features from the corpus."""
        assert corpus.labels is not None
        classes = corpus.labels.classes
        if not classes:
            raise DataError("no position is annotated: there is nothing to learn from")
        if self.scheme is not None:
            get_scheme(self.scheme).validity(classes)  # raises if a label does not fit
        encoder = _encoder_for(self.features, corpus)
        encoded = encoder.learn(corpus)
        self.classes_, self.encoder_, self.history_ = classes, encoder, []
        self.weights_ = ChainWeights.zeros(encoder.n_features, len(classes))
        return ChainData(encoded, corpus.labels, sample_weight)

    def _learn_more(self, corpus: Corpus, sample_weight: NDArray[np.float64]) -> ChainData:
        """Add the features of more data to those known; the classes stay."""
        assert corpus.labels is not None
        labels = corpus.labels.recoded(self.classes_)
        try:
            encoded = self.encoder_.learn(corpus)
        finally:  # a feature without weights would be read from beyond their end
            self.weights_ = self.weights_.grown(self.encoder_.n_features)
        return ChainData(encoded, labels, sample_weight)

    def _run(
        self,
        learner: Learner,
        rng: np.random.Generator,
        dev_score: Callable[[ChainWeights], float] | None,
        max_passes: int,
    ) -> None:
        """Run passes, keeping the weights of the best pass if there is held-out data."""
        self.history_ = []
        reporter = Reporter(enabled=self.verbose)
        best_score, best_weights = -np.inf, None
        passes = run_passes(
            learner,
            partitioner(self.piece_size),
            rng,
            max_passes=max_passes,
            tol=self.tol,
            visit=self.visit,
            dev_score=dev_score,
            patience=self.patience,
        )
        try:
            for record in passes:
                self.history_.append(record)
                reporter.line(format_record(record))
                if record.dev_score is not None and record.dev_score > best_score:
                    best_score, best_weights = record.dev_score, learner.weights().copy()
        finally:
            # Also when interrupted: what was learned so far is kept, and usable.
            found = learner.weights() if best_weights is None else best_weights
            finite = bool(np.isfinite(found.node).all() and np.isfinite(found.transitions).all())
            if finite:
                self.weights_ = found
        if not finite:
            raise DataError(
                "training diverged: the weights are no longer finite; "
                "use a smaller learning_rate or rescale real-valued features"
            )

    def _dev_score(self, corpus: Corpus | None) -> Callable[[ChainWeights], float] | None:
        if corpus is None:
            return None
        assert corpus.labels is not None
        encoded = self._encode(corpus)
        gold = corpus.label_lists()
        scheme = self.scheme or detect_scheme(self.classes_)
        complete = all(isinstance(label, str) for sample in gold for label in sample)
        in_scheme = scheme is not None and detect_scheme(corpus.labels.classes) == (
            get_scheme(scheme).name
        )

        def score(weights: ChainWeights) -> float:
            from trellis.evaluation import span_scores, token_accuracy

            predicted = self._decode(corpus, encoded, weights, None)
            if scheme is not None and in_scheme and complete:
                return span_scores(gold, predicted, scheme).f1  # type: ignore[arg-type]  # checked above
            return token_accuracy(gold, predicted)

        return score

    def _next_batch(
        self,
        X: Any,
        y: Sequence[Sequence[Label]] | None,
        classes: Sequence[str] | None,
        sample_weight: Sequence[float] | NDArray[Any] | None,
    ) -> tuple[ChainData, ChainWeights, np.random.Generator]:
        """Door of partial_fit: the batch, the present weights and the source of random numbers."""
        self._check_parameters()
        corpus = _training_corpus(X, y)
        weight = sample_weights(sample_weight, len(corpus))
        if self.__sklearn_is_fitted__():
            data = self._learn_more(corpus, weight)
        else:
            if classes is not None:
                assert corpus.labels is not None
                corpus = replace(corpus, labels=corpus.labels.recoded(_class_names(classes)))
            data = self._learn_fresh(corpus, weight)
        self.n_seen_ += len(corpus)
        self.n_batches_ += 1
        seed = None if self.random_state is None else [self.n_batches_ - 1, self.random_state]
        return data, self.weights_.copy(), np.random.default_rng(seed)

    # ---------------------------------------------------------------- files

    def save(self, path: str | os.PathLike[Any]) -> None:
        """Write the model to a file (whole or not at all); read it with ``load_model``."""
        from trellis.models.model_file import save_model

        self._check_fitted()
        save_model(self, path)

    @property
    def n_features_(self) -> int:
        """Number of features the model knows."""
        return self.encoder_.n_features

    @property
    def n_passes_(self) -> int:
        """Number of passes of the last training."""
        return len(self.history_)


def format_record(record: PassRecord) -> str:
    """One honest line about a pass."""
    change = "" if record.change is None else f"  change {record.change:9.2e}"
    dev = "" if record.dev_score is None else f"  dev {100 * record.dev_score:6.2f}"
    return (
        f"pass {record.number:3d}  objective {record.objective:14.2f}{change:>20s}{dev}"
        f"  {record.seconds:7.2f} s"
    )


def _encoder_for(features: Any, corpus: Corpus) -> Encoder:
    automatic = features is None or (isinstance(features, str) and features == "auto")
    if corpus.features is not None:
        if not automatic:
            raise DataError(
                "features= names templates over columns, but the samples are ready-made features; "
                "leave features='auto'"
            )
        return AttributeEncoder()
    return TemplateEncoder(as_templates(features, list(corpus.columns)))


def _training_corpus(X: Any, y: Sequence[Sequence[Label]] | None) -> Corpus:
    corpus = as_corpus(X, y)
    if corpus.labels is None:
        raise DataError("fit needs labels: pass y or a corpus that carries them")
    if len(corpus) == 0:
        raise DataError("fit needs at least one sequence; the corpus is empty")
    empty = np.flatnonzero(corpus.lengths == 0)
    if empty.size:
        raise DataError(f"sample {empty[0]} is empty; remove empty sequences before fit")
    return corpus


def _dev_corpus(dev: Any) -> Corpus:
    pair = dev if isinstance(dev, tuple) else (dev, None)
    corpus = as_corpus(*pair) if len(pair) == 2 else None
    if (
        corpus is None
        or corpus.labels is None
        or np.all(corpus.labels.ids == len(corpus.labels.classes))
    ):
        raise DataError("dev needs labelled sequences: a corpus with labels or a pair (X, y)")
    return corpus


def _class_names(classes: Sequence[str]) -> tuple[str, ...]:
    names = [classes] if isinstance(classes, str) else list(classes)
    for name in names:
        if not isinstance(name, str):
            raise DataError(f"classes hold {name!r}; expected the labels, all strings")
    return tuple(sorted(set(names)))
