"""The one linear model: how models of all losses and structures are fitted.

Features, rich edges, pieces, passes over the data, held-out scores, checkpoints, streams of batches
and learning problems are the same for all; what differs is asked of the classes below: who learns
from a problem (:meth:`LinearModel._learner`), and from a batch of a stream
(:meth:`LinearModel._stream_learner`). What a fitted model can do is in
:mod:`trellis.models.prediction`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from trellis.corpus import Corpus, Label, Labels
from trellis.corpus.labels import basic_table
from trellis.corpus.sample_weights import sample_weights
from trellis.corpus.schemes import SCHEME, get_scheme
from trellis.decompose import VISITS, GraphPieces, Partitioner, partitioner
from trellis.domains import Domain, anything, flag, nothing, number, one_of, whole
from trellis.errors import CheckpointError, DataError, ParametersError
from trellis.estimator import fitted, fixed, parameter
from trellis.features import Encoded, Prepared
from trellis.features.encoder import encoder_for
from trellis.models.checkpoint import Checkpoint, Resumed, run_fingerprint
from trellis.models.learning_problems import LearningProblems
from trellis.models.model_file import StoredLinearModel
from trellis.problems import EdgeWeights, LabelProblem, Weights
from trellis.problems.edge_weights import cross
from trellis.problems.threads import n_cores
from trellis.progress import Reporter
from trellis.solvers.passes import BatchLearner, Learner, PassRecord, Progress, run_passes
from trellis.structures import Forest

__all__ = ["ChainModel", "GraphModel", "LinearModel", "TreeModel", "format_record"]

INFERENCE = ("auto", "exact", "elimination", "max-flow", "dual", "lp", "ilp")
"""Methods of :func:`trellis.structures.best`, and "exact"."""

SEED: Domain = nothing | whole(0)

# Up to so many labels rich edges have all pairs: L² weights a feature fit a few cache lines.
_FEW_LABELS = 8


class LinearModel(LearningProblems, StoredLinearModel):
    """Base of all models that are linear in their weights; not used by itself."""

    kind: ClassVar[str] = ""
    """What the model is called: "crf", "perceptron" or "max-margin"."""

    features: Any = parameter(
        anything,
        """A template set by name ("chunking", "pos", "ner", "wordseg"), templates, or "auto": the
        features that the samples hold, or windows and affixes of their columns (along the order of
        the nodes, in trees and graphs).""",
        default="auto",
        kw_only=False,
    )
    structure: str = parameter(
        one_of("chain", "tree", "graph"),
        "What joins the positions of a sample: their order, or the edges that it has.",
        default="chain",
    )
    piece_size: float | None = parameter(
        nothing | number(at_least=1),
        """Structure regularisation: mean size n′ of the connected pieces that samples are cut into
        for training, anew in each pass (once, for solvers that do not go in passes), e.g. 5.5;
        None: whole samples. Prediction is always on whole samples.""",
        default=None,
    )
    overlap: int = parameter(
        whole(0), "Positions that a piece of a chain goes on into the next one.", default=0
    )
    pieces: str = parameter(
        one_of("tree", "graph"),
        """Graphs: train on random spanning trees of the pieces, which keeps training exact and
        fast however loopy the graphs are; or on all edges between the nodes of a piece.""",
        default="tree",
    )
    directed: bool | str = parameter(
        one_of("auto") | flag,
        """Whether the two ends of an edge play different parts, as a word and its head do; if not,
        transition weights are symmetric. "auto": in trees, not in graphs.""",
        default="auto",
    )
    inference: str = parameter(
        one_of(*INFERENCE),
        """Graphs: how the best labels are found (see :func:`trellis.structures.best`);
        "exact": with an integer program where nothing cheaper is. :meth:`decode` says how good
        each is.""",
        default="auto",
    )
    rich_edges: bool | str = parameter(
        flag | one_of("current", "both"),
        """Cross features with pairs of labels, too: those of the position where an edge ends
        ("current", True), or also those where it begins ("both"); without direction those of both
        ends are crossed. False: only templates that say ``@ edge``.""",
        default=False,
    )
    edge_pairs: str = parameter(
        one_of("auto", "all", "observed"),
        """Pairs that a crossed feature has: all, or those it was seen with and some random others;
        "auto": all up to 8 labels.""",
        default="auto",
    )
    edge_negatives: int = parameter(
        whole(0), "Random pairs for each crossed feature that does not have all.", default=10
    )
    edge_min_share: float = parameter(
        number(at_least=0, at_most=1),
        "Leave out pairs in less than this share of a feature's occurrences.",
        default=0.02,
    )
    batch_size: int = parameter(
        whole(1),
        "Pieces whose updates are found with the same weights; part of the algorithm.",
        default=1,
    )
    n_jobs: int | None = parameter(
        nothing | whole(1) | one_of(-1),
        """Threads (-1: one a core) that share the work of a batch, or of a gradient; the result is
        the same, bit by bit, for any number.""",
        default=None,
        option="--jobs",
    )
    max_passes: int | str = parameter(
        one_of("auto") | whole(1), "Most passes over the data.", default="auto"
    )
    tol: float = parameter(
        number(),
        """Stop earlier, when the mean relative improvement of the objective over the last passes
        falls below this; -1 never stops early.""",
        default=1e-4,
    )
    visit: str = parameter(
        one_of(*VISITS),
        """Visit each piece once a pass, in a random order that is kind to the processor's cache or
        in a uniformly random one, or draw pieces uniformly with replacement (see
        :func:`trellis.decompose.visits`).""",
        default="pooled",
    )
    scheme: Any = parameter(
        SCHEME,
        "Chains: predict only what is valid in this tag scheme.",
        default=None,
    )
    patience: int | None = parameter(
        nothing | whole(1),
        "With ``dev`` data: stop after so many passes without a better score.",
        default=None,
    )
    warm_start: bool = parameter(
        flag,
        "Go on from the present weights when ``fit`` is called again; new features are added.",
        default=False,
    )
    verbose: bool = parameter(
        flag, "One line for each pass, if standard error is a terminal.", default=False
    )
    random_state: int | None = parameter(
        SEED, "Seed; the same seed gives the same bits.", default=None, option="--seed"
    )

    history_: list[PassRecord] = fitted()
    solver_: str = fixed("")
    stop_reason_: str = fixed("")
    n_batches_: int = fixed(0)  # batches of partial_fit since the last fit
    n_seen_: int = fixed(0)  # samples since and with the last fit
    input_format_: dict[str, Any] | None = fixed(None)  # how the command line read the file
    _stream: Any = None  # the learner of the last batch, for those that go on from it

    # ---------------------------------------------------------------- what losses differ in

    def _learner(
        self, problem: LabelProblem, start: Weights, rng: np.random.Generator
    ) -> Learner | BatchLearner:
        """Who learns from a problem."""
        raise NotImplementedError  # abstract

    def _stream_learner(
        self, problem: LabelProblem, weights: Weights, rng: np.random.Generator
    ) -> Learner:
        """Who learns from a batch of a stream, one pass over it."""
        raise NotImplementedError  # abstract

    def _pass_limit(self) -> int:
        raise NotImplementedError  # abstract

    @property
    def training_loss(self) -> str:
        """The loss that is minimised."""
        return self.kind

    @property
    def _pass_tol(self) -> float:
        """The convergence value at which passes end."""
        return float(self.tol)

    @property
    def _batch_tol(self) -> float:
        """The tolerance of a learner that does not go in passes."""
        return float(self.tol)

    # ---------------------------------------------------------------- checks

    def _check_together(self) -> None:
        if self.structure == "chain":
            return
        if self.scheme is not None:
            raise ParametersError(
                "{scheme} is for {structure}", scheme=self.scheme, structure="chain"
            )
        if self.overlap:
            raise ParametersError(
                "{overlap} is for {structure}", overlap=self.overlap, structure="chain"
            )

    def _check_classes(self, classes: Sequence[str]) -> None:
        if self.scheme is not None:
            get_scheme(self.scheme).validity(classes)  # raises if a label does not fit

    def training_corpus(
        self, X: Any, y: Any = None, edges: Any = None, edge_types: Any = None
    ) -> Corpus:
        """What :meth:`fit` takes, as a corpus that can be learned from; refuses others."""
        corpus = self._corpus(X, y, edges, edge_types)
        if corpus.labels is None:
            raise DataError("fit needs labels: pass y or a corpus that carries them")
        if len(corpus) == 0:
            raise DataError("fit needs at least one sequence; the corpus is empty")
        empty = np.flatnonzero(corpus.lengths == 0)
        if empty.size:
            raise DataError(f"sample {empty[0]} is empty; remove empty sequences before fit")
        if self.structure == "tree":
            assert corpus.edges is not None
            Forest.of(corpus.offsets, corpus.edges)  # raises if there is a cycle
        return corpus

    def dev_corpus(self, dev: Any) -> Corpus:
        """Held-out data, as a corpus that models can be scored on; refuses others."""
        parts = dev if isinstance(dev, tuple) else (dev, None)
        most = 2 if self.structure == "chain" else 3
        corpus = self._corpus(*parts) if 2 <= len(parts) <= most else None
        labels = None if corpus is None else corpus.labels
        if corpus is None or labels is None or np.all(labels.ids == len(labels.classes)):
            more = "" if self.structure == "chain" else ", or (X, y, edges)"
            raise DataError(
                f"dev needs labelled sequences: a corpus with labels or a pair (X, y){more}"
            )
        return corpus

    @property
    def _threads(self) -> int:
        if self.n_jobs is None:
            return 1
        return n_cores() if self.n_jobs == -1 else int(self.n_jobs)

    def _partitioner(self, problem: LabelProblem) -> Partitioner:
        """How samples are cut into pieces."""
        if self.structure == "chain":
            return partitioner(self.piece_size, self.overlap)
        return GraphPieces(problem.edges, self.piece_size, self.pieces)

    # ---------------------------------------------------------------- fit

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
        """Learn from labelled samples, all of them or a part of their positions.

        Parameters
        ----------
        X : Corpus, list of samples, list of pairs (sample, edges), or Prepared
            See :func:`trellis.corpus.as_corpus` for what a sample may be, and
            :func:`trellis.features.prepare` for chains that do not fit into memory.
        y : list of label lists, optional
            Needed unless the corpus carries its labels. A label may be None (not annotated) or a
            set of allowed labels.
        edges : list of integer arrays (m, 2), optional
            Trees and graphs: edges of each sample, unless ``X`` has them; nodes are numbered from
            0 in each.
        edge_types : list of lists of str, optional
            Trees and graphs: type of each edge; each type gets a table of transition weights of
            its own.
        sample_weight : array (S,), optional
            Weight of each sample in the objective.
        dev : Corpus, (X, y) or (X, y, edges), optional
            Held-out data, scored after each pass (span F1 if the labels of a chain follow a tag
            scheme, else accuracy); the weights of the best pass are kept.
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
        corpus: Corpus | Prepared
        if isinstance(X, Prepared):
            if y is not None:
                raise DataError("a prepared corpus carries its labels; leave out y")
            if self.structure != "chain":
                raise DataError("a prepared corpus has no edges; it is for chains")
            corpus = X
        else:
            corpus = self.training_corpus(X, y, edges, edge_types)
        weight = sample_weights(sample_weight, len(corpus))
        held_out = None if dev is None else self.dev_corpus(dev)
        fresh = not (self.warm_start and self.__sklearn_is_fitted__())
        saved = checkpoint if isinstance(checkpoint, Checkpoint) else None
        if checkpoint is not None and saved is None:
            saved = Checkpoint(checkpoint, checkpoint_minutes)  # type: ignore[arg-type]  # a path
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
        problem = learn(corpus, weight, rng)
        self.n_batches_, self.n_seen_, self._stream = 0, len(corpus), None
        self.stop_reason_ = "interrupted"  # until it has ended
        try:
            if saved is not None:
                saved.seed, saved.run = seed, self._fingerprint(problem, held_out)
                if resumed is not None and resumed.run != saved.run:
                    raise CheckpointError("other run", str(saved.path))
            learner = self._learner(problem, self.weights_.copy(), rng)
            if saved is not None and isinstance(learner, BatchLearner) and not learner.resumable:
                if saved.required or resume:
                    raise CheckpointError("solver", str(saved.path))
                saved = None
            self._run(learner, rng, self._dev_score(held_out), self._pass_limit(), saved, resumed)
        except DataError:
            if fresh:
                del self.classes_  # nothing was learned: not fitted
            raise
        if saved is not None and saved is not checkpoint:
            saved.remove()
        return self

    def partial_fit(
        self,
        X: Any,
        y: Sequence[Sequence[Label]] | None = None,
        *,
        edges: Sequence[Any] | None = None,
        edge_types: Sequence[Sequence[str]] | None = None,
        classes: Sequence[str] | None = None,
        sample_weight: Sequence[float] | NDArray[Any] | None = None,
    ) -> Self:
        """Learn from one batch of a stream: one pass over it.

        Features not seen before are added. Labels and types of edges are fixed by the first call:
        pass all labels as ``classes`` unless the first batch holds them all. A CRF goes
        at the initial rate, and the penalty's share of a batch is its share of the samples seen so
        far; a perceptron averages over all batches; a max-margin model refuses.
        """
        self._check_parameters()
        corpus = self.training_corpus(X, y, edges, edge_types)
        weight = sample_weights(sample_weight, len(corpus))
        seed = None if self.random_state is None else [self.n_batches_, self.random_state]
        rng = np.random.default_rng(seed)
        if self.__sklearn_is_fitted__():
            problem = self._learn_more(corpus, weight, rng)
        else:
            if classes is not None:
                assert corpus.labels is not None
                corpus = replace(corpus, labels=corpus.labels.recoded(_class_names(classes)))
            problem = self._learn_fresh(corpus, weight, rng)
        self.n_seen_ += len(corpus)
        self.n_batches_ += 1
        self.stop_reason_ = "interrupted"  # until it has ended
        learner = self._stream_learner(problem, self.weights_.copy(), rng)
        self._run(learner, rng, None, max_passes=1)
        return self

    # ---------------------------------------------------------------- features and edges

    def _learn_fresh(
        self,
        corpus: Corpus | Prepared,
        weight: NDArray[np.float64],
        rng: np.random.Generator,
    ) -> LabelProblem:
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
        self._learn_edge_types([corpus])
        self.weights_ = self._zeros()
        self.weights_.edge = self._cross(corpus, encoded, corpus.labels, rng, None)
        return self._problem_of(corpus, encoded, corpus.labels, weight)

    def _learn_more(
        self,
        corpus: Corpus | Prepared,
        weight: NDArray[np.float64],
        rng: np.random.Generator,
    ) -> LabelProblem:
        """Add the features of more data to those known; the classes stay."""
        assert corpus.labels is not None
        if self.weights_.edge is None and self.rich_edges:
            raise DataError(
                "rich_edges is set, but the model was fitted without rich edges; fit it afresh "
                "(warm_start=False)"
            )
        if self.edge_types_ and isinstance(corpus, Corpus) and corpus.edge_types is not None:
            new = sorted(set(corpus.edge_types.strings()) - set(self.edge_types_))
            if new:
                raise DataError(
                    f"edge type {new[0]!r} is unknown; the model has {', '.join(self.edge_types_)}"
                )
        labels = corpus.labels.recoded(self.classes_)
        if isinstance(corpus, Prepared):
            corpus.check_made_by(self.encoder_)
            return self._problem_of(corpus, corpus.encoded, labels, weight)
        known = self.weights_.edge
        try:
            encoded = self.encoder_.learn(corpus)
        finally:  # a feature without weights would be read from beyond their end
            self.weights_ = self.weights_.grown(self.encoder_.n_features)
        if known is not None:
            self.weights_.edge = self._cross(corpus, encoded, labels, rng, known)
        return self._problem_of(corpus, encoded, labels, weight)

    def _learn_edge_types(self, corpora: Sequence[Corpus | Prepared]) -> None:
        """Take the types of edges from corpora."""
        self.edge_types_ = ()
        graphs = [corpus for corpus in corpora if isinstance(corpus, Corpus)]
        if self.structure == "chain":
            return
        columns = [corpus.edge_types for corpus in graphs]
        if any(c is None for c in columns) and any(c is not None for c in columns):
            raise DataError(
                "some data sets have types of edges and others have none; give all types"
            )
        used = {c.values[k] for c in columns if c is not None for k in np.unique(c.codes)}
        self.edge_types_ = tuple(sorted(used))

    def _zeros(self) -> Weights:
        """Weights to start from, without rich edges."""
        n_types = None if self.structure == "chain" else max(1, len(self.edge_types_))
        return Weights.zeros(self.encoder_.n_features, len(self.classes_), n_types=n_types)

    def _problem_of(
        self,
        corpus: Corpus | Prepared,
        encoded: Encoded,
        labels: Labels,
        weight: NDArray[np.float64] | None,
    ) -> LabelProblem:
        if isinstance(corpus, Prepared):
            return LabelProblem(
                encoded, labels, len(self.weights_.node), sample_weight=weight,
                rich=self.weights_.edge,
            )  # fmt: skip
        return self._problem(corpus, encoded, labels, weight)

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
        if self.rich_edges:
            crossed[:] = True
        if not crossed.any() and known is None:
            return None
        n_labels, edges = len(labels.classes), None
        if isinstance(corpus, Corpus) and self.structure != "chain":
            edges = corpus.edges
        dense = self.edge_pairs == "all" or (self.edge_pairs == "auto" and n_labels <= _FEW_LABELS)
        return cross(
            encoded, labels, crossed,
            both=self.rich_edges == "both" if known is None else known.both,
            dense=dense if known is None else not known.ptr.size,
            negatives=int(self.edge_negatives), least=float(self.edge_min_share),
            rng=rng, known=known, directed=self._is_directed, edges=edges,
        )  # fmt: skip

    def _start(self, corpora: Sequence[Corpus], encoded: Sequence[Encoded]) -> None:
        self._learn_edge_types(corpora)
        self.weights_, self.history_ = self._zeros(), []
        self.stop_reason_ = ""
        rng, n_labels = np.random.default_rng(self.random_state), len(self.classes_)
        for corpus, features in zip(corpora, encoded, strict=True):
            if corpus.labels is not None:
                labels = corpus.labels.recoded(self.classes_)
            else:
                unknown = np.full(corpus.n_positions, n_labels, np.int32)
                labels = Labels(unknown, basic_table(n_labels), self.classes_)
            self.weights_.edge = self._cross(corpus, features, labels, rng, self.weights_.edge)
            if self.weights_.edge is not None and self.weights_.edge.ptr.size:
                raise DataError(
                    "rich edges of more than 8 labels know the pairs that they were seen with, "
                    "which is not known before all is annotated; give edge_pairs='all'"
                )

    # ---------------------------------------------------------------- cheap data

    def improve(
        self, problem: LabelProblem, w: NDArray[np.float64], samples: Sequence[int]
    ) -> bool:
        """Make one perceptron pass over samples in this order, in place; False if none was wrong.

        A CRF makes a pass of gradient steps instead.
        """
        return sum(problem.update(i, w) for i in samples) > 0

    def trained_on(self, problem: LabelProblem) -> Self:
        """Return a copy fitted to what is known of a learning problem, as :meth:`fit` would."""
        self._check_parameters()
        known = np.flatnonzero(problem.annotated)
        if not len(known):
            raise DataError("nothing is annotated yet; there is nothing to learn from")
        model = self.with_weights(problem, np.zeros(problem.n_weights))
        rng = np.random.default_rng(self.random_state)
        learner = model._learner(problem.part(known), model.weights_.copy(), rng)
        model._run(learner, rng, None, model._pass_limit())
        return model

    def flat_weights(self, problem: LabelProblem) -> NDArray[np.float64]:
        """Weights in the places that they have for a learning problem (D,)."""
        return problem.flat(self.weights_)

    # ---------------------------------------------------------------- passes

    def _run(
        self,
        learner: Learner | BatchLearner,
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
            if isinstance(learner, BatchLearner):
                learner.run(
                    max_iterations=max_passes, tol=self._batch_tol, dev_score=dev_score,
                    patience=self.patience, progress=progress, save=save, report=after,
                )  # fmt: skip
            else:
                for record in run_passes(
                    learner, self._partitioner(learner.problem), rng,
                    max_passes=max_passes, tol=self._pass_tol, visit=self.visit,
                    dev_score=dev_score, patience=self.patience, progress=progress, save=save,
                ):  # fmt: skip
                    after(record)
            self.stop_reason_ = self._why(learner, max_passes)
        finally:
            # Also when interrupted: what was learned so far is kept, and usable.
            learned = best[0][1] if best else learner.weights()
            finite = learned.finite()
            if finite:
                self.weights_ = learned
        if not finite:
            raise DataError(
                "training diverged: the weights are no longer finite; "
                "use a smaller learning rate or rescale real-valued features"
            )

    def _why(self, learner: Learner | BatchLearner, max_passes: int) -> str:
        """Why training ended, as a code."""
        scores = [r.dev_score for r in self.history_ if r.dev_score is not None]
        since_best = len(scores) - 1 - int(np.argmax(scores)) if scores else 0
        if self.patience is not None and since_best >= self.patience:
            return "patience"
        if isinstance(learner, BatchLearner):
            return learner.stop_reason
        if len(self.history_) >= max_passes:
            return "max_passes"
        return "rising" if (self.history_[-1].change or 0.0) < 0 else "tol"

    def _fingerprint(self, problem: LabelProblem, dev: Corpus | None) -> str:
        parameters = {
            name: str(value)
            for name, value in self.get_params(deep=False).items()
            if name not in ("n_jobs", "verbose")
        }
        held_out = None
        if dev is not None and dev.labels is not None:
            held_out = self._problem_of(dev, self._encode(dev), dev.labels, None)
        return run_fingerprint(parameters, problem, held_out)

    def _dev_score(self, corpus: Corpus | None) -> Callable[[Weights], float] | None:
        """How held-out data are scored."""
        if corpus is None:
            return None
        assert corpus.labels is not None
        from trellis.evaluation.held_out import held_out_score, scoring_scheme

        encoded, gold, scheme = self._encode(corpus), corpus.label_lists(), None
        if self.structure == "chain":
            scheme = scoring_scheme(self.scheme, self.classes_, gold, corpus.labels.classes)
        return lambda weights: held_out_score(
            gold, self.labellings(corpus, encoded, weights), scheme
        )

    @property
    def n_passes_(self) -> int:
        """Number of passes or iterations of the last training."""
        return len(self.history_)

    def __getattr__(self, name: str) -> Any:
        """Say why what only a CRF can do is missing."""
        if name in _PROBABILITIES:
            raise AttributeError(
                f"{type(self).__name__} has no {name}: its scores are no probabilities; a CRF's are"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


_PROBABILITIES = ("entropy", "marginals", "predict_marginals", "predict_spans", "sample")


class ChainModel(LinearModel):
    """A model of chains: the parameters that are about edges are not there."""

    structure: str = fixed("chain")
    pieces: str = fixed("tree")
    directed: bool | str = fixed(True)
    inference: str = fixed("auto")


class TreeModel(LinearModel):
    """A model of trees or forests."""

    structure: str = fixed("tree")
    overlap: int = fixed(0)
    pieces: str = fixed("tree")
    inference: str = fixed("auto")
    scheme: Any = fixed(None)


class GraphModel(LinearModel):
    """A model of graphs."""

    structure: str = fixed("graph")
    overlap: int = fixed(0)
    scheme: Any = fixed(None)


def format_record(record: PassRecord) -> str:
    """One honest line about a pass."""
    change = "" if record.change is None else f"  change {record.change:9.2e}"
    bound = "" if record.lower_bound is None else f"  bound {record.lower_bound:14.2f}"
    dev = "" if record.dev_score is None else f"  dev {100 * record.dev_score:6.2f}"
    return (
        f"pass {record.number:3d}  objective {record.objective:14.2f}{change or bound:>20s}{dev}"
        f"  {record.seconds:7.2f} s"
    )


def _class_names(classes: Sequence[str]) -> tuple[str, ...]:
    names = [classes] if isinstance(classes, str) else list(classes)
    for name in names:
        if not isinstance(name, str):
            raise DataError(f"classes hold {name!r}; expected the labels, all strings")
    return tuple(sorted(set(names)))
