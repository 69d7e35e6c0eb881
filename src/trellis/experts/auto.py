"""The best way to combine, found by itself, and never worse than the vote if that can be helped.

The first rule is that nothing need be known: answers may be label sequences, sequences of different
lengths or spans, and right answers may be given for all samples, for some or for none.

- Without right answers, what answers is chosen by how the experts agree.
- With right answers all methods (:mod:`trellis.experts.methods`) are tried by cross-validation, and
  the one that surely beats the plain vote is taken, else the vote (:mod:`trellis.experts.choice`).
- How sure an answer is, is calibrated on answers of the cross-validation
  (:mod:`trellis.experts.calibration`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s
from trellis.corpus.schemes import detect_scheme, get_scheme
from trellis.domains import flag, nothing, one_of, sequence_of, strings, text, whole
from trellis.errors import CorruptModelError, DataError
from trellis.estimator import Seeded, changed, fitted, parameter
from trellis.experts.calibration import AnswerCalibration, RawLevels, Spans, spans_of
from trellis.experts.choice import Choice, Trial, choose
from trellis.experts.combiner import distinct_names, one_blas_thread
from trellis.experts.doubts import Doubt, label_doubts, span_doubts, word_doubts
from trellis.experts.held_out import HeldOut
from trellis.experts.methods import (
    ALONE,
    KINDS,
    METHODS,
    alone_name,
    committee_names,
    method_names,
    new_method,
    tried_names,
)
from trellis.experts.quality import METRICS, Quality
from trellis.experts.questions import Questions
from trellis.files.storable import Storable, is_fitted
from trellis.files.stored import header_value, take
from trellis.progress import Reporter, Task

__all__ = ["AutoCombiner"]

_TRIED = 5_000  # samples at most that methods are compared on
_TRIED_ANSWERS = 1_000_000  # to positions, of all experts
SCHEMES = ("BIO", "BILOU", "IOBES", "BMES")


class AutoCombiner(Seeded, Storable):
    """Combine whatever the experts answer, with as many right answers as there are.

    Attributes
    ----------
    method_ : str
        Name of the method that answers.
    combiner_ : the fitted estimator
    choice_ : Choice or None
        How all methods did in cross-validation; None without right answers.
    expert_trials_ : tuple of Trial
        How each expert does alone, against the plain vote; empty without right answers.
    answers_, answer_levels_ : list of answers, list of float64 arrays
        To the samples of ``fit``, by the method taken, and how sure they are: where the right
        answer was given, by one that had not learned from it. Not saved.
    kind_, scheme_, metric_ : str
        What the answers are, their tag scheme (or None), and what was measured.
    classes_ : tuple of str
        The labels, or the types of spans.
    expert_names_, fields_ : tuple of str
        Names of the experts, and of the positions if they have any.

    Examples
    --------
    >>> from trellis.experts import AutoCombiner
    >>> said = [[["a", "b"], ["b"]], [["a", "a"], ["b"]], [["b", "a"], ["a"]]]
    >>> AutoCombiner().fit(said).predict(said)
    [['a', 'a'], ['b']]
    """

    methods: Any = parameter(
        one_of("auto") | sequence_of(text, "names of methods"),
        """Names of the methods that are tried; the plain vote always is. "auto": those that are
        ever the best.""",
        default="auto",
        kw_only=False,
    )
    method: str = parameter(
        one_of("auto", *METHODS),
        """Take this one, whatever the trials say; "auto": the one that surely beats the plain vote,
        or the vote.""",
        default="auto",
    )
    kind: str = parameter(
        one_of("auto", *KINDS),
        """What the answers are: see :mod:`trellis.experts.methods`; "auto": told from them.""",
        default="auto",
    )
    metric: str = parameter(
        one_of("auto", *METRICS),
        """What is to be as good as possible: see :mod:`trellis.experts.quality`. "auto": F1 of
        spans if labels follow a tag scheme, word errors if answers differ in length, else the
        positions that are right.""",
        default="auto",
    )
    scheme: str | None = parameter(
        nothing | one_of("auto", *SCHEMES),
        """Tag scheme of the labels; "auto": told from the labels.""",
        default="auto",
    )
    n_folds: int = parameter(whole(2), "Of the cross-validation.", default=5)
    verbose: bool = parameter(flag, "Show on standard error how far the trials are.", default=False)
    random_state = changed(
        help="Seed of the folds, of the resampling and of the methods.", default=0
    )

    method_: str = fitted()
    _own: tuple[list[Any], list[Float64s]] = fitted()
    combiner_: Any = fitted()
    choice_: Choice | None = fitted()
    expert_trials_: tuple[Trial, ...] = fitted()
    kind_: str = fitted()
    scheme_: str | None = fitted()
    metric_: str = fitted()
    classes_: tuple[str, ...] = fitted()
    expert_names_: tuple[str, ...] = fitted()
    fields_: tuple[str, ...] = fitted()

    # ------------------------------------------------------------------ for users

    def fit(
        self,
        outputs: Any,
        gold: Any = None,
        names: Sequence[str] | None = None,
        fields: Sequence[str] = (),
    ) -> Self:
        """Find the best way to combine the experts.

        Parameters
        ----------
        outputs : ExpertOutputs or nested sequences
            ``outputs[j][i]`` is what expert j answers to sample i, or None: a label sequence, or
            a list of spans (start, end, type).
        gold : sequence of answers, or None
            The right answers; None for samples, or in place of all, where they are not known.
        names : sequence of str or None
            Of the experts; "expert 1", "expert 2", ... if none are given.
        fields : sequence of str
            Names of the positions, if they have any; they are kept with the model.

        Returns
        -------
        self
        """
        self._check_parameters()
        questions = Questions.of(outputs, gold, self.kind, names)
        strings.check("fields", fields)
        self.fields_ = tuple(fields)
        self.kind_, self.expert_names_ = questions.kind, questions.names
        self.scheme_ = self._scheme(questions)
        self.metric_ = self._metric()
        tried = self._names()
        reporter = Reporter(self.verbose)
        self.choice_, self.expert_trials_ = None, ()
        held: dict[int, tuple[Any, Float64s]] = {}
        self._calibration = AnswerCalibration()
        self.method_ = (
            alone_name(self.kind_, self.metric_) if self.method == "auto" else self.method
        )
        if len(questions.labelled) >= 2:
            with one_blas_thread(), reporter.steps("method", len(tried)) as task:
                held = self._trials(questions, tried, task)
        with reporter.stage(f"learning to combine by {self.method_}"):
            self.combiner_ = self._new(self.method_).fit(questions.outputs, questions.gold)
            self.classes_ = tuple(getattr(self.combiner_, "classes_", ()))
            others = np.array([i for i in range(len(questions)) if i not in held], np.int64)
            if len(others):
                held |= self._answered(self.combiner_, questions, others)
            own = [held[i] for i in range(len(questions))]
            self._own = [answer for answer, _ in own], [level for _, level in own]
        return self

    @property
    def answers_(self) -> list[Any]:
        """Answers to the samples of ``fit``."""
        return self._own_answers()[0]

    @property
    def answer_levels_(self) -> list[Float64s]:
        """How sure these are."""
        return self._own_answers()[1]

    def _own_answers(self) -> tuple[list[Any], list[Float64s]]:
        self._check_fitted()
        if not hasattr(self, "_own"):
            raise DataError("a model file does not hold the answers to the samples of training")
        return self._own

    def predict(self, outputs: Any) -> list[Any]:
        """Return the combined answer to each sample."""
        self._check_fitted()
        answers: list[Any] = self.combiner_.predict(outputs)
        return answers

    def predict_confidence(self, outputs: Any) -> list[Float64s]:
        """Return the probability that the answer is right, an array a sample.

        Of each position, of each word, or of each span. It is calibrated if ``fit`` had right
        answers; without any it only tells how far the experts agree.
        """
        self._check_fitted()
        if self.kind_ == "spans":
            return [np.array([s[3] for s in spans]) for spans in self.predict_spans(outputs)]
        raw: list[Float64s] = self.combiner_.predict_confidence(outputs)
        return self._calibration.positions.levels_of_each(raw)

    def predict_spans(self, outputs: Any) -> list[Spans]:
        """Return the spans of each answer with their confidence: (start, end, type, probability).

        For labels that follow a tag scheme, and for answers that are spans.
        """
        self._check_fitted()
        if hasattr(self.combiner_, "predict_spans"):
            found: list[Spans] = self.combiner_.predict_spans(outputs)
        elif self.scheme_ is None:
            raise DataError("labels that follow no tag scheme have no spans")
        else:
            levels = self.combiner_.predict_confidence(outputs)
            found = spans_of(self.predict(outputs), levels, self.scheme_)
        return self._calibration.span_levels(found)

    def score(self, outputs: Any, gold: Any) -> float:
        """Return the score by ``metric_`` over the samples whose gold is known, from 0 to 1.

        More is better, unless it is an error rate ("edit").
        """
        answers = self.predict(outputs)
        known = [(g, a) for g, a in zip(gold, answers, strict=True) if g is not None]
        if not known:
            raise DataError("no samples to score")
        quality = Quality(self.metric_, self._span_scheme())
        counts = quality.counts([g for g, _ in known], [a for _, a in known])
        return float(quality.score(counts.sum(axis=0))) / 100

    def review(self, outputs: Any, n: int | None = None) -> list[Doubt]:
        """Return the answers that are most likely wrong, those most in doubt first.

        Of label sequences, each run of positions on which experts differ is one answer; of spans
        each span that some expert gives; of sequences of different lengths the whole sequence.

        Parameters
        ----------
        outputs : as for :meth:`predict`
        n : int or None
            How many; None: all that are not agreed on by all experts.
        """
        (nothing | whole(0)).check("n", n)
        self._check_fitted()
        questions = Questions.of(outputs, None, self.kind_)
        if self.kind_ == "spans":
            found = span_doubts(self.predict_spans(outputs), questions.columns)
        else:
            answers, levels = self.predict(outputs), self.predict_confidence(outputs)
            if self.kind_ == "words":
                found = word_doubts(answers, levels, questions.columns)
            else:
                found = label_doubts(answers, levels, questions.outputs)
        doubts = sorted(found, key=lambda doubt: (doubt.confidence, doubt.sample, doubt.start))
        return doubts if n is None else doubts[:n]

    # ------------------------------------------------------------------ fitting

    def _scheme(self, questions: Questions) -> str | None:
        if questions.kind != "labels" or self.scheme is None:
            return None
        if self.scheme != "auto":
            get_scheme(self.scheme).validity(questions.labels)  # raises if a label does not fit
            return self.scheme
        return detect_scheme(questions.labels)

    def _span_scheme(self) -> str | None:
        return self.scheme_ if self.kind_ == "labels" else None

    def _metric(self) -> str:
        if self.metric == "auto":
            if self.kind_ == "labels":
                return "hamming" if self.scheme_ is None else "span-f1"
            return "edit" if self.kind_ == "words" else "span-f1"
        allowed = {
            "labels": ("hamming", "exact", "edit", *(["span-f1"] if self.scheme_ else [])),
            "words": ("edit", "exact"),
            "spans": ("span-f1", "exact"),
        }[self.kind_]
        if self.metric not in allowed:
            what = {
                "labels": "labels without a tag scheme",
                "words": "answers of different lengths",
                "spans": "answers that are spans",
            }[self.kind_]
            raise DataError(f"metric {self.metric!r} cannot score {what}; take {allowed[0]!r}")
        return self.metric

    def _names(self) -> list[str]:
        known = method_names(self.kind_, self.scheme_)
        if self.method not in ("auto", *known):
            raise DataError(f"method {self.method!r} cannot combine {self.kind_}")
        asked = [] if self.method == "auto" else [self.method]
        if isinstance(self.methods, str):
            tried = tried_names(self.kind_, self.scheme_, self.metric_)
            return list(dict.fromkeys([*tried, *asked]))
        for name in self.methods:
            if name not in known:
                raise DataError(
                    f"there is no method {name!r} for {self.kind_}; known are {', '.join(known)}"
                )
        return list(dict.fromkeys([known[0], *self.methods, *asked]))

    def _new(self, name: str) -> Any:
        return new_method(name, self.kind_, self.scheme_, self.random_state)

    def _trials(
        self, questions: Questions, names: list[str], task: Task
    ) -> dict[int, tuple[Any, Float64s]]:
        """Choose the method; return its answers to samples that it has not learned from.

        And how sure they are.
        """
        rng = np.random.default_rng(self.random_state)
        labelled = questions.labelled
        order = questions.some(rng.permutation(labelled), _TRIED, _TRIED_ANSWERS)
        others = np.setdiff1d(np.arange(len(questions)), labelled)
        if len(others):
            others = questions.some(rng.permutation(others), _TRIED, _TRIED_ANSWERS)
        tested = questions.take(np.concatenate([order, others]))
        held_out = HeldOut(tested, self.n_folds, self._new, ALONE, committee_names(self.scheme_))
        answers = {name: held_out.answers(name, task, k) for k, name in enumerate(names)}
        self._choose(tested, held_out.gold, answers)
        task.at(len(names) - 1, "how sure is it?")
        found, gold = answers[self.method_], held_out.gold
        raw = held_out.raw_levels(self.method_, self.kind_, self.scheme_, found)
        self._calibration = AnswerCalibration.of(raw, found, gold, self.kind_, self.scheme_)
        levels = self._calibration.answer_levels(raw)
        held = dict(zip(order.tolist(), zip(found, levels, strict=True), strict=True))
        rest = np.setdiff1d(labelled, order)
        if len(rest):  # nobody has learned from these yet
            combiner = self._new(self.method_).fit(tested.outputs, tested.gold)
            held |= self._answered(combiner, questions, rest)
        return held

    def _choose(self, tested: Questions, gold: list[Any], answers: dict[str, list[Any]]) -> None:
        """Set the method by the answers of all, and tell how the experts do."""
        quality = Quality(self.metric_, self._span_scheme())
        counts = {name: quality.counts(gold, found) for name, found in answers.items()}
        incumbent = alone_name(self.kind_, self.metric_)
        self.choice_ = choose(
            counts, quality, self.random_state, incumbent if incumbent in answers else None
        )
        if self.method == "auto":
            self.method_ = self.choice_.name
        plain = next(iter(answers))
        known = tested.take(np.arange(len(gold)))
        alone = {plain: counts[plain]} | {
            expert: quality.counts(gold, self._alone(column, gold))
            for expert, column in zip(known.names, known.columns, strict=True)
        }
        self.expert_trials_ = choose(alone, quality, self.random_state).trials[1:]

    def _alone(self, column: list[Any], gold: list[Any]) -> list[Any]:
        """Answers of an expert; where there is none, one that is wrong."""
        if self.kind_ != "labels":
            return [answer or [] for answer in column]
        outside = "O" if self.scheme_ in ("BIO", "BILOU", "IOBES") else ""
        return [
            [y or outside for y in answer or [None] * len(right)]
            for answer, right in zip(column, gold, strict=True)
        ]

    def _answered(
        self, combiner: Any, questions: Questions, samples: NDArray[np.int64]
    ) -> dict[int, tuple[Any, Float64s]]:
        """Answers of a combiner to some samples, and calibrated levels."""
        outputs = questions.take(samples).outputs
        answers = combiner.predict(outputs)
        raw = RawLevels.of(combiner, outputs, self.kind_, self.scheme_, answers)
        both = zip(answers, self._calibration.answer_levels(raw), strict=True)
        return dict(zip(samples.tolist(), both, strict=True))

    # ------------------------------------------------------------------ files

    def _state(self) -> dict[str, Any]:
        choice = self.choice_
        return {
            "experts": list(self.expert_names_),
            "fields": list(self.fields_),
            "method": self.method_,
            "combiner": self.combiner_,
            "kind": self.kind_,
            "tags": self.scheme_,
            "measured": self.metric_,
            **self._calibration.state(),
            "trials": [] if choice is None else [t.name for t in choice.trials],
            "figures": np.array(
                [] if choice is None else [[t.score, t.gain, t.error] for t in choice.trials]
            ).reshape(-1, 3),
            "gain": [] if choice is None else [choice.gain, choice.error],
            "expert_figures": np.array(
                [[t.score, t.gain, t.error] for t in self.expert_trials_]
            ).reshape(-1, 3),
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self.kind_ = header_value(state, "kind", str, choices=KINDS)
        self.metric_ = header_value(state, "measured", str, choices=tuple(METRICS))
        scheme = state.get("tags")
        self.scheme_ = None if scheme is None else header_value(state, "tags", str, choices=SCHEMES)
        self.method_ = header_value(state, "method", str)
        self.combiner_ = state.get("combiner")
        if self.method_ not in METHODS or not is_fitted(self.combiner_):
            raise CorruptModelError("the combiner inside is none, or not fitted")
        if type(self.combiner_) is not type(self._new(self.method_)):
            raise CorruptModelError(f"the combiner inside is not one of {self.method_!r}")
        self._calibration = AnswerCalibration.from_state(state)
        self.expert_names_ = distinct_names(state, "experts")
        self.fields_ = tuple(header_value(state, "fields", list, items=str))
        self.classes_ = tuple(getattr(self.combiner_, "classes_", ()))
        names = header_value(state, "trials", list, items=str)
        figures = take(state, "figures", np.float64, (len(names), 3))
        gain = header_value(state, "gain", list, items=float)
        self.choice_, self.expert_trials_ = None, ()
        if names:
            own = take(state, "expert_figures", np.float64, (len(self.expert_names_), 3))
            experts = zip(self.expert_names_, own.tolist(), strict=True)
            self.expert_trials_ = tuple(Trial(name, *row) for name, row in experts)
            if self.method_ not in names or len(gain) != 2:
                raise CorruptModelError("the trials are not those of the method")
            rows = zip(names, figures.tolist(), strict=True)
            trials = tuple(Trial(name, *row) for name, row in rows)
            self.choice_ = Choice(self.method_, trials, gain[0], gain[1])
