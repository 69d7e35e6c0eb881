"""The one linear model: how models of all losses and structures are fitted.

Pieces, passes over the data, held-out scores, checkpoints and streams of batches are the same for
all; what differs is asked of the classes below: who learns from a problem
(:meth:`LinearModel._learner`), and from a batch of a stream (:meth:`LinearModel._stream_learner`).
How problems are made of samples is in :mod:`trellis.models.learning_problems`, what a fitted model
can do in :mod:`trellis.models.prediction`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import for_kernels
from trellis.corpus import Corpus, Labels
from trellis.corpus.form import Given
from trellis.corpus.sample_weights import sample_weights
from trellis.decompose import GraphPieces, Partitioner, partitioner
from trellis.domains import nothing, number, one_of
from trellis.errors import CheckpointError, DataError, ParametersError, TrellisError
from trellis.estimator import fitted, fixed
from trellis.features import Prepared
from trellis.features.encoder import unlabelled_text
from trellis.interrupts import interrupts
from trellis.models.checkpoint import Checkpoint, Resumed, run_fingerprint
from trellis.models.compression import reduced, rounded
from trellis.models.edge_features import encoded_edges
from trellis.models.learning_problems import LearningProblems
from trellis.models.model_file import StoredLinearModel
from trellis.problems import LabelProblem, Weights
from trellis.progress import Reporter, Task
from trellis.solvers.passes import Learner, Passes, PassRecord, Progress, Visitor, Watch
from trellis.structures import Forest

__all__ = ["LinearModel", "format_record"]


class LinearModel(LearningProblems, StoredLinearModel):
    """Base of all models that are linear in their weights; not used by itself."""

    kind: ClassVar[str] = ""
    """What the model is called: "crf", "perceptron" or "max-margin"."""

    history_: list[PassRecord] = fitted()
    solver_: str = fixed("")
    stop_reason_: str = fixed("")
    n_batches_: int = fixed(0)  # batches of partial_fit since the last fit
    n_seen_: int = fixed(0)  # samples since and with the last fit
    input_format_: dict[str, Any] | None = fixed(None)  # how the command line read the file
    _stream: Any = None  # the learner of the last batch, for those that go on from it

    # ---------------------------------------------------------------- what losses differ in

    def _learner(self, problem: LabelProblem, start: Weights, rng: np.random.Generator) -> Learner:
        """Who learns from a problem."""
        raise NotImplementedError  # abstract

    def _stream_learner(
        self, problem: LabelProblem, weights: Weights, rng: np.random.Generator
    ) -> Learner:
        """Who learns from a batch of a stream, one pass over it."""
        raise NotImplementedError  # abstract

    _auto_passes = 10
    """Most passes where ``max_passes`` is "auto"; of several solvers, set with the learner."""

    def _pass_limit(self) -> int:
        return self._auto_passes if isinstance(self.max_passes, str) else int(self.max_passes)

    @property
    def training_loss(self) -> str:
        """The loss that is minimised."""
        return self.kind

    @property
    def _tol(self) -> float:
        """The tolerance of the solver used."""
        return float(self.tol)

    def _take_rate(self, learner: Learner) -> None:
        """Take note that a run began again at a lower rate; only some have one."""

    def _passes(self, visitor: Visitor, rng: np.random.Generator) -> Passes:
        """Who visits pieces, as a learner."""
        return Passes(visitor, self._partitioner(visitor.problem), rng, self.visit)

    # ---------------------------------------------------------------- checks

    def _check_together(self) -> None:
        super()._check_together()
        if self.inference == "marginals" and self.kind != "crf":
            raise ParametersError(
                "{inference} needs probabilities, which only a CRF has", inference=self.inference
            )

    def training_data(
        self,
        X: Any,
        y: Any = None,
        edges: Any = None,
        edge_types: Any = None,
        edge_features: Any = None,
        *,
        fresh: bool = True,
    ) -> Given:
        """What :meth:`fit` takes, with a corpus that can be learned from; refuses others.

        ``fresh``: nothing that was learned before says what is in it.
        """
        given = self._given(X, y, edges, edge_types, edge_features, fresh=fresh)
        corpus = given.corpus
        if corpus.labels is None:
            raise DataError("fit needs labels: pass y or a corpus that carries them")
        corpus.check_samples("fit")
        if self.structure == "tree":
            assert corpus.edges is not None
            offsets, links = for_kernels(corpus.offsets), for_kernels(corpus.edges)
            Forest.of(offsets, links)  # raises if there is a cycle
        return given

    def dev_corpus(self, dev: Any, columns: Sequence[str] = ()) -> Corpus:
        """Held-out data beside training data with these columns; refuses what has no labels."""
        parts = dev if isinstance(dev, tuple) else (dev, None)
        most = 2 if self.structure == "chain" else 3
        corpus = None
        if 2 <= len(parts) <= most:
            corpus = self._given(*parts, fresh=True, columns=columns).corpus
        labels = None if corpus is None else corpus.labels
        if corpus is None or labels is None or np.all(labels.ids == len(labels.classes)):
            more = "" if self.structure == "chain" else ", or (X, y, edges)"
            raise DataError(
                f"dev needs labelled samples: a corpus with labels or a pair (X, y){more}"
            )
        return corpus

    def _with_presumed(
        self,
        corpus: Corpus,
        weight: NDArray[np.float64],
        seed: int,
        beside: Mapping[str, Any],
        prepared: Prepared | None,
        told: Callable[[str], None],
    ) -> Corpus:
        """The corpus with what is presumed of labels that annotators left out; mostly as it is."""
        return corpus

    def _beside(
        self,
        unlabelled: Any,
        dictionaries: Any,
        prepared: Prepared | None,
        columns: Sequence[str],
    ) -> dict[str, Any]:
        """What features are learned from beside the samples, checked."""
        beside = {"unlabelled": unlabelled, "dictionaries": dictionaries}
        given = {name: value for name, value in beside.items() if value is not None}
        for name in given:
            if prepared is not None:
                raise DataError(
                    f"a prepared corpus has its features; give {name}= to trellis.features.prepare"
                )
            if self.warm_start and self.__sklearn_is_fitted__():
                raise DataError(
                    f"{name}= cannot go with warm_start: what the features take from text is fixed "
                    "by the first fit; leave it out, or fit afresh (warm_start=False)"
                )
        if unlabelled is not None:
            given["unlabelled"] = unlabelled_text(
                unlabelled, columns=list(columns) or self.columns, group=self.group
            )
        return given

    def _partitioner(self, problem: LabelProblem, size: float | None = None) -> Partitioner:
        """How samples are cut into pieces, of the size asked for or another."""
        size = self.piece_size if size is None else size
        if self.structure == "chain":
            return partitioner(size, self.overlap if size == self.piece_size else 0)
        return GraphPieces(problem.edges, size, self.pieces)

    # ---------------------------------------------------------------- fit

    @interrupts()
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        edges: Sequence[Any] | None = None,
        edge_types: Sequence[Sequence[str]] | None = None,
        edge_features: Sequence[Any] | None = None,
        sample_weight: Sequence[float] | NDArray[Any] | None = None,
        unlabelled: Any = None,
        dictionaries: Mapping[str, Any] | None = None,
        dev: Any = None,
        checkpoint: str | os.PathLike[Any] | Checkpoint | None = None,
        checkpoint_minutes: float = 5.0,
        resume: bool = False,
    ) -> Self:
        """Learn from labelled samples, all of them or a part of their positions.

        Parameters
        ----------
        X : Corpus, list of samples, list of pairs (sample, edges), table, graph, or Prepared
            See :func:`trellis.corpus.as_corpus` for what a sample may be, and
            :func:`trellis.features.prepare` for what does not fit into memory.
        y : list of label lists, optional
            Needed unless the corpus carries its labels; of tables the name of a column, or a
            series. A label may be of any hashable type; None or NaN means not annotated, a set the
            labels that are allowed.
        edges : list of integer arrays (m, 2), optional
            Trees and graphs: edges of each sample, unless ``X`` has them; nodes are numbered from
            0 in each.
        edge_types : list of lists of str, optional
            Trees and graphs: type of each edge; each type gets a table of transition weights of
            its own.
        edge_features : list of arrays (m, d), or of lists of dicts or lists of str, optional
            Trees and graphs: features of each edge, numbers or what a position may have; each gets
            weights of label pairs. Edges may carry them, too: (a, b, {name: value}).
        sample_weight : array (S,), optional
            Weight of each sample in the objective.
        unlabelled : Corpus, list of samples or list of corpora, optional
            Raw text with the same columns, from which templates learn beside the samples: clusters
            of words, contexts of n-grams. To a named set and to "auto" such templates are added.
            Labels in it are ignored.
        dictionaries : dict of list of str or path, optional
            Lists of words, names or terms, or files with one a line, for the templates
            ``dictionary(word, "name")``. To a named set and to "auto" these are added.
        dev : Corpus, (X, y) or (X, y, edges), optional
            Held-out data, scored after each pass, of Frank–Wolfe after every tenth (span F1 if the
            labels of a chain follow a tag scheme, else accuracy); the weights of the best pass are
            kept.
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
        reporter = Reporter(self.verbose)
        with reporter.stage("looking at the samples") as stage:
            prepared = X if isinstance(X, Prepared) else None
            if prepared is not None:
                if any(given is not None for given in (y, edges, edge_types, edge_features)):
                    raise DataError(
                        "a prepared corpus carries its labels and edges; leave out y, edges and "
                        "edge_types, and edge_features"
                    )
                X = prepared.corpus
                if self.structure != "chain" and X.edges is None:
                    raise DataError(
                        f"the corpus was prepared without edges, but a {self.structure} has some; "
                        "prepare a corpus with edges"
                    )
            fresh = not (self.warm_start and self.__sklearn_is_fitted__())
            given = self.training_data(X, y, edges, edge_types, edge_features, fresh=fresh)
            corpus = given.corpus
            beside = self._beside(unlabelled, dictionaries, prepared, given.fields)
            weight = sample_weights(sample_weight, len(corpus))
            held_out = None if dev is None else self.dev_corpus(dev, given.fields)
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
            corpus = self._with_presumed(corpus, weight, seed, beside, prepared, stage.now)
            stage.now(f"encoding {len(corpus):,} samples")
            if fresh:
                problem = self._learn_fresh(corpus, weight, rng, prepared, **beside)
                self.columns_ = given.fields if prepared is None else prepared.columns
            else:
                problem = self._learn_more(corpus, weight, rng, prepared)
            self.n_batches_, self.n_seen_, self._stream = 0, len(corpus), None
            self.stop_reason_ = "interrupted"  # until it has ended
            try:
                if saved is not None:
                    saved.seed, saved.run = seed, self._fingerprint(problem, held_out)
                    if resumed is not None and resumed.run != saved.run:
                        raise CheckpointError("other run", str(saved.path))
                stage.now("preparing the solver")
                learner = self._learner(problem, self.weights_.copy(), rng)
                if saved is not None and not learner.resumable:
                    if saved.required or resume:
                        raise CheckpointError("solver", str(saved.path))
                    saved = None
                score = self._dev_score(held_out)
                self._run(learner, self._pass_limit(), score, saved, resumed, reporter=reporter)
            except TrellisError:
                if fresh:
                    del self.classes_  # nothing was learned: not fitted
                raise
        if saved is not None and saved is not checkpoint:
            saved.remove()
        return self

    @interrupts()
    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        *,
        edges: Sequence[Any] | None = None,
        edge_types: Sequence[Sequence[str]] | None = None,
        edge_features: Sequence[Any] | None = None,
        classes: Sequence[Any] | None = None,
        sample_weight: Sequence[float] | NDArray[Any] | None = None,
    ) -> Self:
        """Learn from one batch of a stream: one pass over it.

        Features not seen before are added. Labels and types of edges are fixed by the first call:
        pass all labels as ``classes`` unless the first batch holds them all. A CRF or a max-margin
        model goes at the initial rate, and the penalty's share of a batch is its share of the
        samples seen so far; a perceptron averages over all batches.
        """
        self._check_parameters()
        self._check_takes_labels("partial_fit")
        reporter = Reporter(self.verbose)
        with reporter.stage("looking at the batch"):
            given = self.training_data(X, y, edges, edge_types, edge_features, fresh=False)
            corpus = given.corpus
            weight = sample_weights(sample_weight, len(corpus))
            seed = None if self.random_state is None else [self.n_batches_, self.random_state]
            rng = np.random.default_rng(seed)
            if self.__sklearn_is_fitted__():
                problem = self._learn_more(corpus, weight, rng)
            else:
                if classes is not None:
                    assert corpus.labels is not None
                    corpus = replace(corpus, labels=corpus.labels.recoded(_distinct(classes)))
                problem = self._learn_fresh(corpus, weight, rng)
                self.columns_ = given.fields
            self.n_seen_ += len(corpus)
            self.n_batches_ += 1
            self.stop_reason_ = "interrupted"  # until it has ended
            learner = self._stream_learner(problem, self.weights_.copy(), rng)
            self._run(learner, max_passes=1, reporter=reporter)
        return self

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
        part, met = problem.part(known), None
        if self._drops_features(problem):  # those that nothing annotated has keep zero weights
            part, met = part.with_features_met()
        model = self._of_problem(problem)
        model.weights_ = part.no_weights()
        rng = np.random.default_rng(self.random_state)
        try:
            learner = model._learner(part, model.weights_.copy(), rng)
            model._run(learner, model._pass_limit(), reporter=Reporter(self.verbose))
        finally:
            if met is not None:
                few, model.weights_ = model.weights_, problem.no_weights()
                model.weights_.node[met] = few.node
                model.weights_.transitions[:] = few.transitions
        return model

    def _drops_features(self, problem: LabelProblem) -> bool:
        """Whether features that no sample has may be left out of training."""
        return problem.rich is None and not getattr(self, "group_lasso", 0)  # has groups of all

    def flat_weights(self, problem: LabelProblem) -> NDArray[np.float64]:
        """Weights in the places that they have for a learning problem (D,)."""
        return problem.flat(self.weights_)

    # ---------------------------------------------------------------- passes

    def _run(
        self,
        learner: Learner,
        max_passes: int,
        dev_score: tuple[Callable[[Weights], float], str] | None = None,
        checkpoint: Checkpoint | None = None,
        resumed: Resumed | None = None,
        *,
        reporter: Reporter,
    ) -> None:
        """Train, keeping the weights of the best pass if there is held-out data."""
        progress = Progress() if resumed is None else resumed.progress
        best: list[tuple[float, Weights]] = []
        if resumed is not None:
            weights = resumed.restore(learner, self.weights_)
            if weights is not None and resumed.best is not None:
                best = [(resumed.best, weights)]
        self.history_ = progress.records
        limit = not isinstance(learner, Passes)  # others end where they are close to the optimum
        steps = Task(learner.step, max_passes, len(progress.records), limit=limit)
        score_of, metric = dev_score or (None, "")

        def scored(weights: Weights) -> float:
            assert score_of is not None
            steps.note = "scoring the held-out data"
            return score_of(weights)

        def after(record: PassRecord) -> None:
            line = format_record(record, steps, metric)
            steps.at(record.number)
            reporter.line(line)
            score = record.dev_score
            if score is not None and (not best or score > best[0][0]):
                best[:] = [(score, learner.weights().copy())]

        def save(now: Progress) -> None:
            if checkpoint is not None:
                checkpoint.save(now, learner, best[0] if best else None)

        def moved(share: float) -> None:
            steps.at(len(progress.records) + min(share, 0.99))  # scores belong to a pass

        scorer = None if score_of is None else scored
        watch = Watch(progress, scorer, self.patience, save, after, moved)
        try:
            with reporter.under_way(steps):
                learner.run(max_passes=max_passes, tol=self._tol, watch=watch)
            self.stop_reason_ = "patience" if watch.patience_ended else learner.stop_reason
            if learner.slowed_down and self.stop_reason_ != "diverged":
                reporter.line(learner.slowed_down)
                self._take_rate(learner)
        finally:
            # Also when interrupted: what was learned so far is kept, and usable.
            learned = best[0][1] if best else learner.weights()
            finite = learned.finite()
            if finite:
                self.weights_ = learned
        if not finite or self.stop_reason_ == "diverged":
            raise DataError(
                "training diverged: the objective rose above that of zero weights, or beyond all "
                "numbers; use a smaller learning rate or rescale real-valued features"
            )

    def _fingerprint(self, problem: LabelProblem, dev: Corpus | None) -> str:
        parameters = {
            name: str(value)
            for name, value in self.get_params(deep=False).items()
            if name not in ("n_jobs", "verbose")
        }
        held_out = None
        if dev is not None and dev.labels is not None:
            held_out = self._problem(dev, self._encode(dev), dev.labels)
        return run_fingerprint(parameters, problem, held_out)

    def _dev_score(self, corpus: Corpus | None) -> tuple[Callable[[Weights], float], str] | None:
        """How held-out data are scored, and what the score is called."""
        if corpus is None:
            return None
        assert corpus.labels is not None
        from trellis.evaluation.held_out import held_out_score, metric_name

        encoded, gold = self._encode(corpus), corpus.label_lists()
        scheme = self.scoring_scheme(corpus)
        encoded_edges(self.edge_encoder_, corpus)  # raises, before training, if they do not fit

        def score(weights: Weights) -> float:
            return held_out_score(gold, self.labellings(corpus, encoded, weights), scheme)

        return score, metric_name("auto", scheme)

    def compressed(
        self, *, keep: float = 0.2, threshold: float | None = None, precision: str = "float16"
    ) -> Self:
        """Return a copy with fewer features and shorter weights, whose file is small.

        Features with small weights are forgotten, and their names or keys with them; of those that
        stay, weights below a tenth of the smallest that is kept become zero
        (:mod:`trellis.models.compression`). The page «Small models» shows what it costs.

        Parameters
        ----------
        keep : float
            Share of the features that is kept, those with the largest weights; 1: all that have a
            weight other than zero.
        threshold : float, optional
            Keep the features with a weight of at least this size instead.
        precision : "float16" or "float32"
            Precision that weights are rounded to.

        Returns
        -------
        model
            Of the same class. It predicts, explains and learns on as this one does.

        Examples
        --------
        >>> from trellis import ChainCRF
        >>> X, y = [["the", "cat"], ["a", "dog"], ["the", "dog"]], [["D", "N"]] * 3
        >>> crf = ChainCRF("word; suffix(word, 1..2)", random_state=0).fit(X, y)
        >>> small = crf.compressed(keep=0.5)
        >>> crf.n_features_, small.n_features_, small.predict([["the", "dog"]])
        (11, 6, [['D', 'N']])
        """
        self._check_fitted()
        number(above=0, at_most=1).check("keep", keep)
        (nothing | number(at_least=0)).check("threshold", threshold)
        one_of("float16", "float32").check("precision", precision)
        model = type(self)(**self.get_params(deep=False))
        for name, value in vars(self).items():
            if name.endswith("_"):
                setattr(model, name, value)
        model.known_ = None  # features that are forgotten told samples apart
        weights = rounded(self.weights_, precision)
        model.encoder_, model.edge_encoder_, model.weights_ = reduced(
            self.encoder_, self.edge_encoder_, weights, keep, threshold
        )
        return model

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


_PROBABILITIES = (
    "entropy", "log_prob", "marginals", "predict_marginals", "predict_proba", "predict_spans",
    "sample",
)  # fmt: skip


def format_record(record: PassRecord, steps: Task, metric: str = "") -> str:
    """One honest line about a pass of a task; held-out data are scored by a metric.

    Examples
    --------
    >>> record = PassRecord(5, 13347.61, 0.554, 0.9372, 0.41)
    >>> format_record(record, Task("pass", 12), "span F1")
    'pass  5 of 12  objective       13347.61    change  5.54e-01  dev span F1  93.72     0.41 s'
    """
    change = "" if record.change is None else f"  change {record.change:9.2e}"
    bound = "" if record.lower_bound is None else f"  bound {record.lower_bound:14.2f}"
    dev = "" if record.dev_score is None else f"  dev {metric} {100 * record.dev_score:6.2f}"
    number = f"{record.number:{len(str(steps.total))}d}"
    return (
        f"{steps.text} {number} of {steps.most}  objective {record.objective:14.2f}"
        f"{change or bound:>20s}{dev}  {record.seconds:7.2f} s"
    )


def _distinct(classes: Any) -> tuple[Any, ...]:
    """Labels that a user named, each once and in order; a string is one label."""
    return Labels.from_lists([[classes] if isinstance(classes, str) else list(classes)]).classes
