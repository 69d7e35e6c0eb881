"""How models are fitted: the features, passes over the data, held-out scores, checkpoints.

The same for all structures; what differs is asked of the classes below: what the data are, how they
are cut into pieces, and who learns from them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Corpus, Labels
from trellis.decompose import VISITS, Partitioner
from trellis.errors import DataError
from trellis.features import Encoded, Encoder, Prepared
from trellis.features.encoder import encoder_for
from trellis.models.checkpoint import Checkpoint, Resumed, run_fingerprint
from trellis.models.model_file import StoredLinearModel
from trellis.models.params import Estimator, is_number, sample_weights
from trellis.objectives import ChainData, EdgeWeights, Weights
from trellis.objectives.edge_weights import cross
from trellis.objectives.threads import n_cores
from trellis.progress import Reporter
from trellis.solvers import LimitedMemoryBFGS
from trellis.solvers.passes import Learner, PassRecord, Progress, run_passes

__all__ = ["TrainedModel", "dev_corpus", "format_record", "training_corpus"]

# Up to so many labels rich edges have all pairs: L² weights a feature fit a few cache lines.
_FEW_LABELS = 8

# ``tol`` is about passes of a stochastic method; one L-BFGS iteration gains far less than a pass.
_LBFGS_TOL = 1e-2


class TrainedModel(Estimator, StoredLinearModel):
    """Base of all estimators that are trained in passes; not used by itself."""

    features: Any
    piece_size: float | None
    rich_edges: bool | str
    edge_pairs: str
    edge_negatives: int
    edge_min_share: float
    batch_size: int
    n_jobs: int | None
    max_passes: int | str
    tol: float
    visit: str
    patience: int | None
    warm_start: bool
    verbose: bool
    random_state: int | None

    classes_: tuple[str, ...]
    encoder_: Encoder
    weights_: Weights
    history_: list[PassRecord]
    stop_reason_ = ""
    n_batches_ = 0  # batches of partial_fit since the last fit
    n_seen_ = 0  # sequences since and with the last fit
    _stream: Any = None  # the learner of the last batch, for those that go on from it
    input_format_: dict[str, Any] | None = None  # how the command line read the training file

    # ---------------------------------------------------------------- what structures differ in

    def _assemble(
        self,
        corpus: Corpus | Prepared,
        encoded: Encoded,
        labels: Labels,
        weight: NDArray[np.float64],
    ) -> ChainData:
        """The training data."""
        raise NotImplementedError  # abstract

    def _pieces(self, data: ChainData) -> Partitioner:
        """How the data are cut."""
        raise NotImplementedError  # abstract

    def _no_weights(self, n_features: int) -> Weights:
        """Weights to start from."""
        return Weights.zeros(n_features, len(self.classes_))

    def _crossed_edges(self, corpus: Corpus | Prepared) -> NDArray[np.int64] | None:
        """The edges that features are crossed with; None for chains."""
        return None

    def _check_classes(self, classes: tuple[str, ...]) -> None:
        """Refuse labels that do not fit."""

    def _encode(self, corpus: Corpus) -> Encoded:
        raise NotImplementedError  # abstract

    def _dev_score(self, corpus: Corpus | None) -> Callable[[Weights], float] | None:
        """How held-out data are scored."""
        raise NotImplementedError  # abstract

    # ---------------------------------------------------------------- training

    def _learner(
        self, data: ChainData, start: Weights, rng: np.random.Generator
    ) -> Learner | LimitedMemoryBFGS:
        raise NotImplementedError  # abstract

    def _pass_limit(self) -> int:
        raise NotImplementedError  # abstract

    def _check_parameters(self) -> None:
        passes = self.max_passes
        if passes != "auto" and not (isinstance(passes, int | np.integer) and passes >= 1):
            raise DataError(f"max_passes must be 'auto' or a positive integer, got {passes!r}")
        if self.visit not in VISITS:
            raise DataError(f"visit must be one of {', '.join(VISITS)}, got {self.visit!r}")
        if not (is_number(self.tol) and abs(self.tol) < np.inf):
            raise DataError(f"tol must be a finite number, got {self.tol!r}; -1 never stops early")
        if self.patience is not None and not (is_number(self.patience) and self.patience >= 1):
            raise DataError(f"patience must be None or at least 1, got {self.patience!r}")
        seed = self.random_state
        if seed is not None and not (isinstance(seed, int | np.integer) and seed >= 0):
            raise DataError(f"random_state must be None or an integer of at least 0, got {seed!r}")
        self._check_edges()
        for name in ("batch_size", "n_jobs"):
            value = getattr(self, name, None)
            if name == "n_jobs" and value in (None, -1):
                continue
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
                few = "None, -1 (all cores) or " if name == "n_jobs" else ""
                raise DataError(f"{name} must be {few}a positive integer, got {value!r}")

    def _check_edges(self) -> None:
        if self.rich_edges not in (False, True, "current", "both"):
            raise DataError(
                f"rich_edges must be False, True, 'current' or 'both', got {self.rich_edges!r}"
            )
        if self.edge_pairs not in ("auto", "all", "observed"):
            raise DataError(
                f"edge_pairs must be 'auto', 'all' or 'observed', got {self.edge_pairs!r}"
            )
        n = self.edge_negatives
        if not isinstance(n, int | np.integer) or n < 0:
            raise DataError(f"edge_negatives must be an integer of at least 0, got {n!r}")
        if not (is_number(self.edge_min_share) and 0 <= self.edge_min_share <= 1):
            raise DataError(f"edge_min_share must lie in [0, 1], got {self.edge_min_share!r}")

    @property
    def _threads(self) -> int:
        jobs = getattr(self, "n_jobs", None)  # perceptrons of trees and graphs have no threads
        if jobs is None:
            return 1
        return n_cores() if jobs == -1 else int(jobs)

    def _fit(
        self,
        corpus: Corpus | Prepared,
        weight: NDArray[np.float64],
        held_out: Corpus | None,
        checkpoint: str | os.PathLike[Any] | Checkpoint | None,
        checkpoint_minutes: float,
        resume: bool,
    ) -> Self:
        """Learn from a corpus that came through the door."""
        fresh = not (self.warm_start and self.__sklearn_is_fitted__())
        saved = checkpoint if isinstance(checkpoint, Checkpoint) else None
        if checkpoint is not None and not isinstance(checkpoint, Checkpoint):
            saved = Checkpoint(checkpoint, checkpoint_minutes)
        resumed = saved.load() if saved is not None and resume else None
        if resume and saved is None:
            raise DataError("resume=True needs the file: give checkpoint=")
        seed = self.random_state
        if seed is None:
            seed = (
                int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
                if resumed is None
                else resumed.seed
            )
        rng = np.random.default_rng(seed)
        learn = self._learn_fresh if fresh else self._learn_more
        data = learn(corpus, weight, rng)
        self.n_batches_, self.n_seen_, self._stream = 0, len(corpus), None
        try:
            if saved is not None:
                saved.seed, saved.run = seed, self._fingerprint(data, held_out)
                if resumed is not None and resumed.run != saved.run:
                    raise DataError(
                        f"{saved.path} is the checkpoint of a run with other data or parameters; "
                        "remove it, or train as it was trained"
                    )
            learner = self._learner(data, self.weights_.copy(), rng)
            self._run(learner, rng, self._dev_score(held_out), self._pass_limit(), saved, resumed)
        except DataError:
            if fresh:
                del self.classes_  # nothing was learned: not fitted
            raise
        if saved is not None and saved is not checkpoint:
            saved.remove()
        return self

    def _fingerprint(self, data: ChainData, dev: Corpus | None) -> str:
        parameters = {
            name: str(value) for name, value in self.get_params().items()
            if name not in ("n_jobs", "verbose")
        }  # fmt: skip
        held_out = None
        if dev is not None and dev.labels is not None:
            held_out = self._assemble(dev, self._encode(dev), dev.labels, np.ones(len(dev)))
        return run_fingerprint(parameters, data, held_out)

    def _learn_fresh(
        self,
        corpus: Corpus | Prepared,
        sample_weight: NDArray[np.float64],
        rng: np.random.Generator,
    ) -> ChainData:
        """Forget everything learned; take the classes and the kind of features from the corpus."""
        assert corpus.labels is not None
        classes = corpus.labels.classes
        if not classes:
            raise DataError("no position is annotated: there is nothing to learn from")
        self._check_classes(classes)
        if isinstance(corpus, Prepared):
            encoder, encoded = corpus.encoder_for(self.features), corpus.encoded
        else:
            encoder = encoder_for(self.features, corpus)
            encoded = encoder.learn(corpus)
        self.classes_, self.encoder_, self.history_ = classes, encoder, []
        self._learn_edges(corpus)
        self.weights_ = self._no_weights(encoder.n_features)
        self.weights_.edge = self._cross(corpus, encoded, corpus.labels, rng, None)
        return self._assemble(corpus, encoded, corpus.labels, sample_weight)

    def _learn_edges(self, corpus: Corpus | Prepared) -> None:
        """Take the kinds of edges from the corpus."""

    def _cross(
        self,
        corpus: Corpus | Prepared,
        encoded: Encoded,
        labels: Labels,
        rng: np.random.Generator,
        known: EdgeWeights | None,
    ) -> EdgeWeights | None:
        """Rich edge weights for the features of the encoder, zero where they are new."""
        crossed = self.encoder_.crossed()
        if self.rich_edges:  # 0 and NumPy's False are no edges, too
            crossed[:] = True
        if not crossed.any() and known is None:
            return None
        n_labels = len(labels.classes)
        dense = self.edge_pairs == "all" or (self.edge_pairs == "auto" and n_labels <= _FEW_LABELS)
        return cross(
            encoded, labels, crossed,
            both=self.rich_edges == "both" if known is None else known.both,
            dense=dense if known is None else not known.ptr.size,
            negatives=int(self.edge_negatives), least=float(self.edge_min_share),
            rng=rng, known=known, edges=self._crossed_edges(corpus),
            directed=getattr(self, "directed", True),
        )  # fmt: skip

    def _learn_more(
        self,
        corpus: Corpus | Prepared,
        sample_weight: NDArray[np.float64],
        rng: np.random.Generator,
    ) -> ChainData:
        """Add the features of more data to those known; the classes stay."""
        assert corpus.labels is not None
        if self.weights_.edge is None and self.rich_edges:
            raise DataError(
                "rich_edges is set, but the model was fitted without rich edges; fit it afresh "
                "(warm_start=False)"
            )
        labels = corpus.labels.recoded(self.classes_)
        if isinstance(corpus, Prepared):
            corpus.check_made_by(self.encoder_)
            return self._assemble(corpus, corpus.encoded, labels, sample_weight)
        known = self.weights_.edge
        try:
            encoded = self.encoder_.learn(corpus)
        finally:  # a feature without weights would be read from beyond their end
            self.weights_ = self.weights_.grown(self.encoder_.n_features)
        if known is not None:
            self.weights_.edge = self._cross(corpus, encoded, labels, rng, known)
        return self._assemble(corpus, encoded, labels, sample_weight)

    def _run(
        self,
        learner: Learner | LimitedMemoryBFGS,
        rng: np.random.Generator,
        dev_score: Callable[[Weights], float] | None,
        max_passes: int,
        checkpoint: Checkpoint | None = None,
        resumed: Resumed | None = None,
    ) -> None:
        """Train, keeping the weights of the best pass if there is held-out data."""
        progress = Progress() if resumed is None else resumed.progress
        best: list[tuple[float, Weights]] = []
        if resumed is not None:
            weights = resumed.restore(learner, self.weights_)
            if weights is not None and resumed.best is not None:
                best = [(resumed.best, weights)]
        self.history_ = progress.records
        self.stop_reason_ = "interrupted"
        reporter = Reporter(enabled=self.verbose)

        def after(record: PassRecord) -> None:
            reporter.line(format_record(record))
            score = record.dev_score
            if score is not None and (not best or score > best[0][0]):
                best[:] = [(score, learner.weights().copy())]

        def save(now: Progress) -> None:
            if checkpoint is not None:
                checkpoint.save(now, learner, best[0] if best else None)

        try:
            if isinstance(learner, LimitedMemoryBFGS):
                learner.run(
                    max_iterations=max_passes, tol=self.tol * _LBFGS_TOL, dev_score=dev_score,
                    patience=self.patience, progress=progress, save=save, report=after,
                )  # fmt: skip
            else:
                for record in run_passes(
                    learner, self._pieces(learner.data), rng,
                    max_passes=max_passes, tol=self.tol, visit=self.visit, dev_score=dev_score,
                    patience=self.patience, progress=progress, save=save,
                ):  # fmt: skip
                    after(record)
            self.stop_reason_ = self._why(learner, max_passes)
        finally:
            # Also when interrupted: what was learned so far is kept, and usable.
            found = best[0][1] if best else learner.weights()
            finite = found.finite()
            if finite:
                self.weights_ = found
        if not finite:
            raise DataError(
                "training diverged: the weights are no longer finite; "
                "use a smaller learning_rate or rescale real-valued features"
            )

    def _why(self, learner: Learner | LimitedMemoryBFGS, max_passes: int) -> str:
        """Why training ended."""
        scores = [r.dev_score for r in self.history_ if r.dev_score is not None]
        since_best = len(scores) - 1 - int(np.argmax(scores)) if scores else 0
        if self.patience is not None and since_best >= self.patience:
            return f"no better score on held-out data for {_times(self.patience, 'pass')}"
        exact = isinstance(learner, LimitedMemoryBFGS)
        if len(self.history_) >= max_passes:
            return f"{_times(max_passes, 'iteration' if exact else 'pass')} made"
        if isinstance(learner, LimitedMemoryBFGS):
            return learner.stop_reason
        change = self.history_[-1].change or 0.0
        if change < 0:
            return "the objective no longer falls"
        return f"converged: the objective changes by {change:.1e} a pass"

    def _next_batch(
        self,
        corpus: Corpus,
        classes: Sequence[str] | None,
        sample_weight: Sequence[float] | NDArray[Any] | None,
    ) -> tuple[ChainData, Weights, np.random.Generator]:
        """What partial_fit begins with: the batch, present weights, source of random numbers."""
        weight = sample_weights(sample_weight, len(corpus))
        fitted = self.__sklearn_is_fitted__()
        batch = self.n_batches_
        seed = None if self.random_state is None else [batch, self.random_state]
        rng = np.random.default_rng(seed)
        if fitted:
            data = self._learn_more(corpus, weight, rng)
        else:
            if classes is not None:
                assert corpus.labels is not None
                corpus = replace(corpus, labels=corpus.labels.recoded(_class_names(classes)))
            data = self._learn_fresh(corpus, weight, rng)
        self.n_seen_ += len(corpus)
        self.n_batches_ += 1
        return data, self.weights_.copy(), rng

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


def _times(n: float, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}{'es' if what.endswith('s') else 's'}"


def training_corpus(corpus: Corpus) -> Corpus:
    """A corpus that can be learned from; refuses others."""
    if corpus.labels is None:
        raise DataError("fit needs labels: pass y or a corpus that carries them")
    if len(corpus) == 0:
        raise DataError("fit needs at least one sequence; the corpus is empty")
    empty = np.flatnonzero(corpus.lengths == 0)
    if empty.size:
        raise DataError(f"sample {empty[0]} is empty; remove empty sequences before fit")
    return corpus


def dev_corpus(corpus: Corpus) -> Corpus:
    """A corpus that models can be scored on; refuses others."""
    if corpus.labels is None or np.all(corpus.labels.ids == len(corpus.labels.classes)):
        raise DataError("dev needs labelled sequences: a corpus with labels or a pair (X, y)")
    return corpus


def _class_names(classes: Sequence[str]) -> tuple[str, ...]:
    names = [classes] if isinstance(classes, str) else list(classes)
    for name in names:
        if not isinstance(name, str):
            raise DataError(f"classes hold {name!r}; expected the labels, all strings")
    return tuple(sorted(set(names)))
