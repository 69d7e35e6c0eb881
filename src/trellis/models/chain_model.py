"""What all chain models share: the door, features, prediction, scoring and explanation.

A chain model scores a labelling y of a sequence x by

    s(x, y) = Σ_t Σ_{f ∈ x_t} v_tf · node[f, y_t] + Σ_{t ≥ 1} transitions[y_{t-1}, y_t]

and predicts the best y, under whatever label sets and tag-scheme rules are asked for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Corpus, Label, Labels, as_corpus
from trellis.corpus.corpus import check_lengths, lengths_of, split
from trellis.corpus.schemes import Scheme, detect_scheme, get_scheme
from trellis.decompose import VISITS, partitioner
from trellis.errors import DataError, InfeasibleError
from trellis.features import (
    AttributeEncoder,
    Encoded,
    Encoder,
    TemplateEncoder,
    as_templates,
)
from trellis.models.explain import Explanation, explain_sample
from trellis.models.params import Estimator, is_number
from trellis.objectives import ChainData, ChainWeights
from trellis.progress import Reporter
from trellis.solvers.passes import Learner, PassRecord, run_passes
from trellis.structures import ChainPotentials, kbest

__all__ = ["ChainModel"]

# Positions scored at once when predicting: bounds the memory of dense (N, L) scores.
_BLOCK = 1 << 16


class ChainModel(Estimator):
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
        weight = _sample_weights(sample_weight, len(corpus))
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
                return span_scores(gold, predicted, scheme).f1  # type: ignore[arg-type]
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
        weight = _sample_weights(sample_weight, len(corpus))
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

    # ---------------------------------------------------------------- prediction

    def predict(
        self, X: Any, *, constraints: Sequence[Sequence[Label]] | None = None
    ) -> list[list[str]]:
        """Best labels of each sequence.

        Parameters
        ----------
        X : Corpus or list of sequences
        constraints : list of lists, optional
            For each position the label it must have, a set of allowed labels, or None.

        Returns
        -------
        list of lists of str
        """
        self._check_fitted()
        corpus = as_corpus(X)
        return self._decode(corpus, self._encode(corpus), self.weights_, constraints)

    def _encode(self, corpus: Corpus) -> Encoded:
        if corpus.n_positions == 0:  # which kind of features it lacks cannot be told, nor matters
            none = np.zeros(0, np.int32)
            return Encoded(corpus.offsets, np.zeros(1, np.int64), none, np.zeros(0, np.float32))
        return self.encoder_.encode(corpus)

    def _decode(
        self,
        corpus: Corpus,
        encoded: Encoded,
        weights: ChainWeights,
        constraints: Sequence[Sequence[Label]] | None,
    ) -> list[list[str]]:
        names = np.array(self.classes_, object)
        ids = np.empty(corpus.n_positions, np.int32)
        for first, last, node, trans, offsets in self._scores(
            corpus, encoded, weights, constraints
        ):
            ids[first:last] = _best_labels(node, trans, offsets, corpus, first)
        return split(names[ids].tolist(), corpus.offsets)

    def predict_kbest(
        self, X: Any, k: int, *, constraints: Sequence[Sequence[Label]] | None = None
    ) -> list[list[tuple[list[str], float]]]:
        """Return the k best labellings of each sequence, best first, each with its score.

        The score is s(x, y); differences of scores are log ratios of probabilities for a CRF.
        Sequences with fewer than k possible labellings get fewer.
        """
        self._check_fitted()
        corpus = as_corpus(X)
        if not isinstance(k, int | np.integer) or k < 1:
            raise DataError(f"k must be a positive integer, got {k!r}")
        names = np.array(self.classes_, object)
        result: list[list[tuple[list[str], float]]] = []
        for _, _, p in self._potentials(corpus, constraints):
            labels, scores = kbest(p, k)
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

    def score(
        self,
        X: Any,
        y: Sequence[Sequence[Label]] | None = None,
        sample_weight: Sequence[float] | NDArray[Any] | None = None,
    ) -> float:
        """Token accuracy: the share of annotated positions labelled right.

        Labels never seen in training count as wrong; a set of labels is met by any of its members.
        ``sample_weight`` weighs sequences.
        """
        self._check_fitted()
        corpus = as_corpus(X, y)
        if corpus.labels is None:
            raise DataError("score needs labels: pass y or a corpus that carries them")
        annotated = corpus.labels.ids != len(corpus.labels.classes)
        weights = _sample_weights(sample_weight, len(corpus))
        weight = np.repeat(weights, corpus.lengths)[annotated]
        if not weight.sum() > 0:
            raise DataError("score needs at least one annotated position")
        position = {name: i for i, name in enumerate(corpus.labels.classes)}
        predicted = [position.get(p, -1) for sample in self.predict(corpus) for p in sample]
        ids = np.array(predicted, np.int64)
        allowed = corpus.labels.table[corpus.labels.ids, np.maximum(ids, 0)] & (ids >= 0)
        return float(np.average(allowed[annotated], weights=weight))

    def explain(self, X: Any, *, n_features: int = 5) -> Explanation:
        """Say why a sequence got its labels: the features that spoke for each label.

        Parameters
        ----------
        X : Sample, or a corpus or list of one sequence
        n_features : int
            How many features to list for each position.

        Returns
        -------
        Explanation
            Prints as a readable table; ``.positions`` holds the numbers.
        """
        self._check_fitted()
        corpus = as_corpus(X)
        if len(corpus) != 1:
            raise DataError(f"explain takes one sequence, got {len(corpus)}; pass corpus[i]")
        encoded = self._encode(corpus)
        labels = self._decode(corpus, encoded, self.weights_, None)[0]
        return explain_sample(
            corpus, encoded, self.encoder_, self.weights_, self.classes_, labels, n_features,
            self._marginals_or_none(corpus),
            None if self.scheme is None else get_scheme(self.scheme).validity(self.classes_),
        )  # fmt: skip

    def _marginals_or_none(self, corpus: Corpus) -> NDArray[np.float64] | None:
        return None

    def _scores(
        self,
        corpus: Corpus,
        encoded: Encoded,
        weights: ChainWeights,
        constraints: Sequence[Sequence[Label]] | None,
    ) -> Iterator[tuple[int, int, NDArray[Any], NDArray[Any], NDArray[np.int64]]]:
        """Blocks of samples as (first, last position, node scores, transitions, offsets)."""
        from trellis.kernels.scoring import score_nodes

        allowed = None
        if constraints is not None:
            lengths = lengths_of(constraints, "constraints")
            check_lengths(corpus.lengths.tolist(), lengths, "X", "constraints")
            allowed = Labels.from_lists(constraints, self.classes_).allowed()
        trans = weights.transitions
        rules = None
        if self.scheme is not None:
            rules = get_scheme(self.scheme).validity(self.classes_)
            trans = np.where(rules[1], trans, trans.dtype.type(-np.inf))
        for a, b in _blocks(corpus.offsets):
            first, last = int(corpus.offsets[a]), int(corpus.offsets[b])
            node = score_nodes(
                encoded.indptr, encoded.indices, encoded.values, weights.node, first, last
            )
            offsets = corpus.offsets[a : b + 1] - first
            if encoded.values.size and not (fine := np.isfinite(node).all(axis=1)).all():
                t = first + int(np.argmin(fine))
                s = int(np.searchsorted(corpus.offsets, t, side="right")) - 1
                raise DataError(
                    f"sample {s}, position {t - corpus.offsets[s]}: feature values are too large "
                    "to be scored; rescale them as for training"
                )
            if allowed is not None:
                node[~allowed[first:last]] = -np.inf
            if rules is not None:
                filled = np.diff(offsets) > 0
                for positions, may in (
                    (offsets[:-1][filled], rules[0]),
                    (offsets[1:][filled] - 1, rules[2]),
                ):
                    node[np.ix_(positions, ~may)] = -np.inf
            yield first, last, node, trans, offsets

    def _potentials(
        self, corpus: Corpus, constraints: Sequence[Sequence[Label]] | None = None
    ) -> Iterator[tuple[int, int, ChainPotentials]]:
        """Blocks of samples as checked potentials in float64; every sample can be labelled."""
        blocks = self._scores(corpus, self._encode(corpus), self.weights_, constraints)
        for first, last, node, trans, offsets in blocks:
            if constraints is not None or self.scheme is not None:
                _best_labels(node, trans, offsets, corpus, first)
            yield first, last, ChainPotentials(node, trans, offsets)

    def _span_scheme(self, scheme: str | None) -> Scheme:
        name = scheme or self.scheme or detect_scheme(self.classes_)
        if name is None:
            raise DataError("the labels follow no known tag scheme; name one with scheme=")
        return get_scheme(name)

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


def _sample_weights(weights: Sequence[float] | NDArray[Any] | None, n: int) -> NDArray[np.float64]:
    if weights is None:
        return np.ones(n)
    try:
        array = np.asarray(weights, np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"sample_weight must be numbers: {error}") from None
    if array.shape != (n,):
        raise DataError(f"sample_weight must have shape ({n},), got {array.shape}")
    if not np.isfinite(array).all() or (array < 0).any():
        raise DataError("sample_weight must be finite and not negative")
    return array


def _best_labels(
    node: NDArray[Any],
    trans: NDArray[Any],
    offsets: NDArray[np.int64],
    corpus: Corpus,
    first: int,
) -> NDArray[np.int32]:
    """Best labels of a block that starts at position ``first``; an error names the sample."""
    from trellis.kernels.chain import viterbi

    ids, scores = viterbi(node, trans, offsets)
    impossible = np.flatnonzero(np.isneginf(scores))
    if impossible.size:
        s = int(np.searchsorted(corpus.offsets, first + offsets[impossible[0]], side="right")) - 1
        raise InfeasibleError(
            f"sample {s} (of {corpus.lengths[s]} positions) has no allowed labelling under its "
            "constraints and the tag scheme; allow more labels"
        )
    return ids


def _blocks(offsets: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Runs of samples with about ``_BLOCK`` positions each."""
    n = len(offsets) - 1
    blocks, a = [], 0
    while a < n:
        b = int(np.searchsorted(offsets, offsets[a] + _BLOCK, side="right")) - 1
        b = min(n, max(b, a + 1))
        blocks.append((a, b))
        a = b
    return blocks
