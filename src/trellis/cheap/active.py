r"""Active learning: ask the annotator only for what helps (Lou et al., section 1.4).

Algorithm 1.2. Of a pool of samples the one of largest uncertainty q(x, w) is asked for; after each
answer one perceptron pass goes over all samples annotated so far,

.. math:: w \leftarrow w + \Phi(x, y^*) - \Phi(x, \hat y),

in the order in which they were annotated, with step 1, without averaging, and from where the round
before ended (strategies that need probabilities take a pass of gradient steps of the log-likelihood
instead); then the uncertainties of the rest are computed anew, and their average is what the
stopping rule sees. Of large pools only some samples are looked at in each round
(:mod:`trellis.cheap.session`). At the end, or every so many rounds, full training on what was
annotated gives the model that is used (*combined learning*).

An answer may be partial: :math:`y^*` is then the best output compatible with it. Parts of samples
(a span of a sentence, a few cells) can be asked for, too; a sample is in the pool until it is
complete.

All answers are kept in order. The state of a learner is a function of them alone, so that one that
was interrupted, or killed, goes on from its log with the same bits.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from trellis.arrays import Float64s, Int64s
from trellis.cheap.annotation_log import AnnotationLog, Entry, from_json, to_json
from trellis.cheap.pool import Pool
from trellis.cheap.session import Part, Session
from trellis.cheap.thread_lock import ThreadLock, one_at_a_time
from trellis.cheap.training import LEARNABLE
from trellis.cheap.uncertainty import STRATEGIES, StoppingRule, convergence
from trellis.domains import (
    anything,
    flag,
    instance,
    nothing,
    number,
    one_of,
    sequence_of,
    text,
    whole,
)  # fmt: skip
from trellis.errors import DataError
from trellis.estimator import Seeded, changed, parameter
from trellis.files import fingerprint
from trellis.models.linear_model import LinearModel
from trellis.problems.confidence import PROBABILITIES
from trellis.problems.problem import Learnable
from trellis.progress import Reporter

__all__ = ["ActiveLearner", "Part"]


class ActiveLearner(Seeded):
    """Chooses the samples that are worth annotating, and learns from the answers.

    Threads may share a learner: each answer is written and learned from before the next is.

    Attributes
    ----------
    average_uncertainty_ : list of float
        Average uncertainty of the samples left, after each answer.

    Examples
    --------
    Three of eight sentences are enough here; the answers come from a dictionary:

    >>> from trellis import MaxMargin
    >>> from trellis.cheap import ActiveLearner
    >>> tags = {"the": "D", "a": "D", "cat": "N", "dog": "N", "sat": "V", "ran": "V"}
    >>> pool = [[d, n, v] for d in ("the", "a") for n in ("cat", "dog") for v in ("sat", "ran")]
    >>> learner = ActiveLearner(MaxMargin("word", l2=0.1), labels=["D", "N", "V"])
    >>> for _ in range(3):
    ...     i = learner.query(pool)
    ...     learner.tell(i, [tags[word] for word in pool[i]])
    >>> len(learner.annotated_), learner.should_stop
    (3, False)
    >>> learner.finish().predict([["the", "dog", "sat"]])
    [['D', 'N', 'V']]
    """

    model: Learnable = parameter(
        LEARNABLE,
        """An estimator that can learn from cheap data: any CRF, perceptron or max-margin model, or
        a :class:`~trellis.tracking.TrackingModel`; it need not be fitted and is not changed.""",
        kw_only=False,
    )
    strategy: str = parameter(
        one_of(*STRATEGIES),
        """How samples are chosen, see :mod:`trellis.cheap.uncertainty`; "auto":
        "information-density" for CRFs and for any model of chains and trees, else
        "best-vs-second".""",
        default="auto",
        kw_only=False,
    )
    labels: Sequence[Any] | None = parameter(
        nothing | sequence_of(anything, "a list of labels"),
        "All labels, unless the pool shows them.",
        default=None,
    )
    log: str | os.PathLike[Any] | None = parameter(
        nothing | text | instance(os.PathLike),
        """File (SQLite) to which each answer is written before anything else is done with it. With
        a log that exists the learner goes on from there.""",
        default=None,
    )
    window: int = parameter(
        whole(1), "Rounds whose average uncertainty the stopping rule looks at.", default=80
    )
    threshold: float = parameter(
        number(at_least=0, infinite=True),
        "Stop when the average uncertainty of ``window`` rounds changes by this at most.",
        default=1e-4,
    )
    retrain_every: int | None = parameter(
        nothing | whole(1),
        "After each so many answers, training from nothing takes the place of the quick pass.",
        default=None,
    )
    candidates: int | None = parameter(
        nothing | whole(2),
        """Samples that are looked at after each answer: half of them the same each time, the others
        by turns; None: all.""",
        default=1000,
    )
    start: Float64s | None = parameter(
        anything, "Weights to begin with, float64 of shape (D,); None: zero.", default=None
    )
    experts: Sequence[Any] | None = parameter(
        nothing | sequence_of(anything, "a list of fitted models or functions"),
        """With "disagreement": each gives, by ``predict(pool)`` or ``expert(pool)``, one label
        sequence for each sample.""",
        default=None,
    )
    verbose: bool = parameter(flag, "One line for each answer, on standard error.", default=False)
    random_state = changed(help='Seed of "random".')

    def __post_init__(self) -> None:
        self._check_parameters()
        self.rule = StoppingRule(self.window, self.threshold)
        self._file: AnnotationLog | None = None
        self._lock = ThreadLock()
        self.reset()

    def _check_together(self) -> None:
        if (self.strategy == "disagreement") != (self.experts is not None):
            raise DataError('strategy="disagreement" and experts= belong together')
        if self.strategy in PROBABILITIES and not isinstance(self.model, LinearModel):
            raise DataError(
                f"strategy={self.strategy!r} needs probabilities of labels, which "
                f"{type(self.model).__name__} has not"
            )
        if self.experts is not None and len(self.experts) < 2:
            raise DataError(f"it takes two experts to disagree, got {len(self.experts)}")

    @one_at_a_time
    def reset(self) -> Self:
        """Forget the pool and all answers (a log keeps them), so that another pool can be given."""
        self.close()
        self._pool: Pool | None = None
        self._entries: list[Entry] = []
        self._session: Session | None = None
        self._skipped: set[int] = set()
        self._asked: dict[int, tuple[int, ...]] = {}
        self._parts = False
        return self

    @one_at_a_time
    def close(self) -> None:
        """Close the log, so that another learner or process may open it; a query opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            with self._file:  # closes itself, unless this process was forked off
                self._file = None

    # ---------------------------------------------------------------- questions

    @one_at_a_time
    def query(self, pool: Any) -> int:
        """Return the number of the sample to ask for: the most uncertain that is not annotated.

        Parameters
        ----------
        pool : Corpus or list of samples
            The same one in all rounds; it is prepared once.

        Raises
        ------
        DataError
            If the pool is empty, another one than before, or nothing is left to ask for.
        """
        with Reporter(self.verbose).stage("choosing a sample to ask for"):
            return self._samples(pool, 1)[0]

    @one_at_a_time
    def query_batch(self, pool: Any, n: int = 10) -> list[int]:
        """Return the numbers of several samples to ask for at once, unlike each other.

        Parameters
        ----------
        pool : Corpus or list of samples
            As for :meth:`query`.
        n : int
            Number of samples; fewer if fewer are left.

        Examples
        --------
        >>> from trellis import ChainCRF
        >>> from trellis.cheap import ActiveLearner
        >>> pool = [["the", "cat"], ["a", "cat"], ["the", "dog", "ran"], ["a", "dog"]]
        >>> ActiveLearner(ChainCRF("word"), labels=["D", "N", "V"]).query_batch(pool, 2)
        [0, 3]
        """
        whole(1).check("n", n)
        with Reporter(self.verbose).stage("choosing samples to ask for"):
            return self._samples(pool, int(n))

    @one_at_a_time
    def query_part(self, pool: Any, size: int = 5) -> Part:
        """Return nodes to ask for: the most uncertain ones of any sample that is not complete.

        With strategies whose measure is a sum over positions the most uncertain part of all
        samples looked at is asked for; with "random" any; with others that part of the most
        uncertain sample where best and second best output differ.

        Parameters
        ----------
        pool : Corpus or list of samples
            As for :meth:`query`.
        size : int
            Number of nodes, about.

        Returns
        -------
        Part
            ``sample`` and ``nodes``. The answer goes to :meth:`tell`, as a partial annotation of
            the sample.
        """
        return self.query_parts(pool, 1, size)[0]

    @one_at_a_time
    def query_parts(self, pool: Any, n: int = 10, size: int = 5) -> list[Part]:
        """Return several parts to ask for at once, unlike each other, each of another sample.

        Parameters
        ----------
        pool : Corpus or list of samples
            As for :meth:`query`.
        n : int
            Number of parts; fewer if fewer samples are not complete.
        size : int
            Number of nodes of each, about.

        Examples
        --------
        >>> from trellis import ChainCRF
        >>> from trellis.cheap import ActiveLearner
        >>> pool = [["the", "cat"], ["a", "cat"], ["the", "dog", "ran"], ["a", "dog"]]
        >>> ActiveLearner(ChainCRF("word"), labels=["D", "N", "V"]).query_parts(pool, 2, size=1)
        [Part(sample=1, nodes=(1,)), Part(sample=2, nodes=(0,))]
        """
        whole(1).check("n", n)
        whole(1).check("size", size)
        with Reporter(self.verbose).stage("choosing a part to ask for"):
            session = self._prepared(pool)
            self._parts = True
            parts = session.parts(self._open(session), int(n), int(size))
            self._asked = dict(parts)
            return parts

    def _samples(self, pool: Any, n: int) -> list[int]:
        session = self._prepared(pool)
        self._parts, self._asked = False, {}
        chosen: list[int] = session.samples(self._open(session), n).tolist()
        return chosen

    @one_at_a_time
    def skip(self, i: int) -> None:
        """Set a sample aside: it is not asked for again, unless :meth:`run` is called."""
        self._skipped.add(i)

    def _open(self, session: Session) -> Int64s:
        """Samples that may be asked for."""
        left = session.left(self._parts)
        if not left.size:
            how = "complete" if self._parts else "annotated"
            raise DataError(
                f"every sample of the pool is {how}; nothing is left to ask for: call finish(), or "
                "reset() and give another pool"
            )
        open_ = left[[i not in self._skipped for i in left.tolist()]]
        if not open_.size:
            raise DataError(
                f"every sample that is left ({len(left)}) was skipped; call finish(), or run() to "
                "ask for them again"
            )
        return open_

    # ---------------------------------------------------------------- answers

    @one_at_a_time
    def tell(self, i: int, annotation: Any, *, replace: bool = False) -> None:
        """Learn what an annotator says of a sample.

        The annotation is checked, then written to the log, then learned from. One that is not
        valid changes nothing.

        Parameters
        ----------
        i : int
            Number of the sample in the pool; any, not only the one asked for.
        annotation : object
            As the model takes it: labels for all or some positions, a PairAnnotation, ...; it is
            added to what is known of the sample.
        replace : bool
            Forget what was said of the sample before: a correction.
        """
        session = self._current()
        if self._closed:
            raise DataError("the log is closed; call query(pool), which opens it again")
        try:
            answer = from_json(to_json(annotation))  # what the log would give back
            session.annotate(i, answer, replace)
            i = int(i)
            nodes = self._asked.get(i)
        except Exception as error:
            error.add_note(f"The annotation was not accepted, and is not lost: {annotation!r}")
            raise
        except BaseException:
            self._session = None
            raise
        try:
            number, key = len(self._entries) + 1, ""
            if self._file is not None:
                assert self._pool is not None
                key = fingerprint(self._pool[i])[:16]
                number = self._file.add(i, answer, key=key, nodes=nodes, replaces=replace)
            with Reporter(self.verbose).stage("learning from the answer"):
                session.learn(Entry(number, i, answer, nodes, replace, key))
        except BaseException:  # Ctrl-C, a full disk: go on from what is written
            self._session = None
            raise
        self._asked.pop(i, None)
        self._report(i)

    def run(
        self,
        pool: Any,
        annotator: Callable[[Any, Any], Any],
        *,
        max_queries: int | None = None,
        parts: int | None = None,
    ) -> Self:
        """Ask an annotator until the stopping rule says so, or nothing is left.

        Parameters
        ----------
        pool : Corpus or list of samples
            As for :meth:`query`.
        annotator : function
            Called with the number of a sample and the sample, returns the annotation; None skips
            the sample for this run, StopIteration ends the run. Whatever it raises, answers given
            before are kept.
        max_queries : int, optional
            Most questions.
        parts : int, optional
            Ask for parts of about so many nodes; the annotator is then called with a
            :class:`Part` in place of the number.

        Returns
        -------
        self
        """
        self._skipped.clear()
        self._prepared(pool)
        assert self._pool is not None
        self._parts = parts is not None
        asked, last = 0, None
        while not self.should_stop and (max_queries is None or asked < max_queries):
            session = self._current()
            if set(session.left(self._parts).tolist()) <= self._skipped:
                break
            question = self.query(pool) if parts is None else self.query_part(pool, parts)
            i = question.sample if isinstance(question, Part) else question
            if question == last:  # the last answer said nothing of what was asked
                self.skip(i)
                continue
            last = question
            try:
                answer = annotator(question, self._pool[i])
            except StopIteration:
                break
            except KeyboardInterrupt as stop:
                raise KeyboardInterrupt(
                    f"the {len(self._entries)} annotation(s) so far are kept; call run again to go "
                    "on, or finish() to learn from them"
                ) from stop
            asked += 1
            if answer is None:
                self.skip(i)
            else:
                self.tell(i, answer)
        return self

    def _report(self, i: int) -> None:
        history = self.average_uncertainty_
        average = f"{history[-1]:.4g}" if history else "none"
        Reporter(enabled=self.verbose).line(
            f"annotation {len(self._entries)}: sample {i}, average uncertainty left {average}"
        )

    # ---------------------------------------------------------------- results

    @property
    def average_uncertainty_(self) -> list[float]:
        """Average uncertainty of the samples left, after each answer that left any."""
        return list(self._current().history)

    @property
    def convergence_(self) -> float | None:
        """Measure of convergence (1.8); None in the first rounds."""
        return convergence(self._current().history, self.rule.window)

    @property
    def should_stop(self) -> bool:
        """Whether the average uncertainty has come to rest, or nothing is left to ask for.

        With "random" only the latter: the averages then say nothing of the model.
        """
        if self._pool is None:
            return False
        session = self._current()
        if not session.left(self._parts).size:
            return True
        return self.strategy != "random" and self.rule(session.history)

    @property
    def annotated_(self) -> Int64s:
        """Numbers of the samples of which anything is known."""
        return np.flatnonzero(self._current().problem.annotated)

    @property
    def weights_(self) -> Float64s:
        """Weights as of now (D,)."""
        return self._current().w.copy()

    @property
    def model_(self) -> Any:
        """A fitted model with the weights as of now: those of the quick passes."""
        session = self._current()
        return self.model.with_weights(session.problem, session.w.copy())

    @one_at_a_time
    def finish(
        self, loss: str | None = None, *, l2: float | None = None, tol: float | None = None
    ) -> Any:
        """Train the model on what was annotated, as its ``fit`` would (combined learning).

        Parameters
        ----------
        loss, l2, tol
            Parameters of the model that are to have other values than it has, if it has them.

        Returns
        -------
        model
            A fitted copy of the model. The learner itself is not changed and can go on.
        """
        session = self._current()
        given = {"loss": loss, "l2": l2, "tol": tol}
        model: Any = self.model
        changes = {name: value for name, value in given.items() if value is not None}
        if changes:
            model = type(model)(**model.get_params(deep=False)).set_params(**changes)
        with Reporter(self.verbose).stage("training on all answers"):
            return model.trained_on(session.problem)

    # ---------------------------------------------------------------- state

    @one_at_a_time
    def _prepared(self, pool: Any) -> Session:
        if self._pool is None:
            self._begin(Pool(pool))
        elif self._pool.is_same(pool):
            if self._closed:
                self._begin(self._pool)
        else:
            raise DataError(
                "this is another pool than before; give the same one, or call reset() to begin "
                "anew with this"
            )
        return self._current()

    @property
    def _closed(self) -> bool:
        return self.log is not None and self._file is None

    @one_at_a_time
    def _current(self) -> Session:
        if self._pool is None:
            raise DataError("there is no pool yet: call query(pool) first")
        if self._session is None:
            if self._file is not None:
                self._entries = self._file.entries()
            session = Session(
                self.model,
                self._pool,
                strategy=self.strategy,
                labels=self.labels,
                retrain_every=self.retrain_every,
                candidates=self.candidates,
                start=self.start,
                experts=self.experts,
                seed=self._seed,
                entries=self._entries,
            )
            if self._entries:
                self._parts = self._entries[-1].nodes is not None
            self._session, self._entries = session, session.entries
        return self._session

    def _begin(self, pool: Pool) -> None:
        fresh = int(np.random.default_rng().integers(2**31))
        self._seed = fresh if self.random_state is None else int(self.random_state)
        if self.log is not None:
            self._file = AnnotationLog(self.log)
            try:
                self._file.begin(
                    pool=pool.fingerprint,
                    strategy=self.strategy,
                    seed=self._seed,
                )
                if self.random_state is None:  # go on with the same numbers
                    self._seed = self._file.metadata["seed"]
            except BaseException:
                self.close()
                raise
        self._pool, self._session = pool, None
        try:
            self._current()
        except BaseException:
            self.reset()
            raise
