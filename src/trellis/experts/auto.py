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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s, as_list
from trellis.corpus.schemes import detect_scheme, get_scheme
from trellis.domains import flag, nothing, one_of, sequence_of, strings, text, whole
from trellis.errors import CorruptModelError, DataError
from trellis.estimator import Seeded, changed, fitted, parameter
from trellis.experts.alignment import align
from trellis.experts.calibration import Calibration
from trellis.experts.choice import Choice, Trial, choose
from trellis.experts.combiner import distinct_names, one_blas_thread
from trellis.experts.committee import plurality
from trellis.experts.methods import (
    ALONE,
    KINDS,
    METHODS,
    alone_name,
    committee_names,
    kind_of,
    method_names,
    new_method,
    tried_names,
)
from trellis.experts.outputs import ExpertOutputs, answer_lists, as_outputs, checked_names
from trellis.experts.quality import METRICS, Quality
from trellis.files.storable import Storable, is_fitted
from trellis.files.stored import header_value, take
from trellis.progress import Reporter, Task

__all__ = ["AutoCombiner", "Doubt"]

_TRIED = 5_000  # samples at most that methods are compared on
_TRIED_ANSWERS = 1_000_000  # to positions, of all experts
_EMPTY = "\0"  # no word has this letter
SCHEMES = ("BIO", "BILOU", "IOBES", "BMES")


@dataclass(frozen=True)
class Doubt:
    """An answer that somebody should look at.

    Attributes
    ----------
    sample : int
    start, end : int
        The positions that the answer is about.
    answer : str
        What is answered: a label, or the type of a span.
    confidence : float
        Probability that it is right.
    said : tuple of str
        What each expert says there; "" if nothing.
    """

    sample: int
    start: int
    end: int
    answer: str
    confidence: float
    said: tuple[str, ...]


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
        questions = _Questions.of(outputs, gold, self.kind, names)
        strings.check("fields", fields)
        self.fields_ = tuple(fields)
        self.kind_ = questions.kind
        self.scheme_ = self._scheme(questions)
        self.metric_ = self._metric()
        names = self._names()
        labelled = np.flatnonzero([right is not None for right in questions.gold])
        reporter = Reporter(self.verbose)
        self.choice_, self.expert_trials_, held = None, (), {}
        self._calibration = self._span_calibration = Calibration()
        self.method_ = (
            alone_name(self.kind_, self.metric_) if self.method == "auto" else self.method
        )
        if len(labelled) >= 2:
            with one_blas_thread(), reporter.steps("method", len(names)) as tried:
                held = self._trials(questions, labelled, names, tried)
        with reporter.stage(f"learning to combine by {self.method_}"):
            self.combiner_ = self._new(self.method_).fit(questions.outputs, questions.gold)
            self.expert_names_ = questions.names
            self.classes_ = tuple(getattr(self.combiner_, "classes_", ()))
            answers = list(self.predict(questions.outputs))
            levels = list(self.predict_confidence(questions.outputs))
            for i, (answer, level) in held.items():
                answers[i], levels[i] = answer, level
            self._own = answers, levels
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
        return [self._calibration.levels(levels) for levels in raw]

    def predict_spans(self, outputs: Any) -> list[list[tuple[int, int, str, float]]]:
        """Return the spans of each answer with their confidence: (start, end, type, probability).

        For labels that follow a tag scheme, and for answers that are spans.
        """
        self._check_fitted()
        if self.kind_ == "spans" or hasattr(self.combiner_, "predict_spans"):
            found: list[list[tuple[int, int, str, float]]] = self.combiner_.predict_spans(outputs)
        elif self.scheme_ is None:
            raise DataError("labels that follow no tag scheme have no spans")
        else:
            found = _spans_of(
                self.predict(outputs), self.combiner_.predict_confidence(outputs), self.scheme_
            )
        return [
            [(a, b, y, float(p)) for (a, b, y, _), p in zip(spans, levels, strict=True)]
            for spans, levels in (
                (spans, self._span_calibration.levels(np.array([s[3] for s in spans], np.float64)))
                for spans in found
            )
        ]

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
        questions = _Questions.of(outputs, None, self.kind_)
        doubts = list(self._doubts(questions))
        doubts.sort(key=lambda doubt: (doubt.confidence, doubt.sample, doubt.start))
        return doubts if n is None else doubts[:n]

    # ------------------------------------------------------------------ fitting

    def _scheme(self, questions: _Questions) -> str | None:
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
            tried = tried_names(self.kind_, self.scheme_)
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
        self, questions: _Questions, labelled: NDArray[Any], names: list[str], tried: Task
    ) -> dict[int, tuple[Any, Float64s]]:
        """Choose the method; return its answers to samples that it has not learned from.

        And how sure they are.
        """
        rng = np.random.default_rng(self.random_state)
        order = self._some(questions, rng.permutation(labelled))
        others = np.flatnonzero([right is None for right in questions.gold])
        others = self._some(questions, rng.permutation(others)) if len(others) else others
        tested = questions.take(np.concatenate([order, others]).astype(np.int64))
        mine = np.arange(len(order))
        fold = mine % min(self.n_folds, len(order))
        gold = tested.gold[: len(order)]
        quality = Quality(self.metric_, self._span_scheme())
        members = committee_names(self.scheme_)
        answers: dict[str, list[Any]] = {}
        for number, name in enumerate(names):
            if name == "committee" and all(member in answers for member in members):
                answers[name] = plurality([answers[member] for member in members])
            else:
                answers[name], _ = self._held_out(tested, mine, fold, name, tried, number)
        counts = {name: quality.counts(gold, answers[name]) for name in names}
        incumbent = alone_name(self.kind_, self.metric_)
        self.choice_ = choose(
            counts, quality, self.random_state, incumbent if incumbent in names else None
        )
        if self.method == "auto":
            self.method_ = self.choice_.name
        alone = {names[0]: counts[names[0]]} | {
            expert: quality.counts(gold, self._alone(column[: len(order)], gold))
            for expert, column in zip(tested.names, tested.columns, strict=True)
        }
        self.expert_trials_ = choose(alone, quality, self.random_state).trials[1:]
        tried.at(len(names) - 1, "how sure is it?")
        found, sure = self._held_out(tested, mine, fold, self.method_, sure=True)
        self._calibrate(found, sure, gold)
        held = dict(zip(order.tolist(), zip(found, self._levels(sure), strict=True), strict=True))
        rest = np.setdiff1d(labelled, order)
        if len(rest):  # nobody has learned from these yet
            combiner = self._new(self.method_).fit(tested.outputs, tested.gold)
            there = questions.take(rest).outputs
            levels = self._levels(self._raw(combiner, there))
            both = zip(combiner.predict(there), levels, strict=True)
            held |= dict(zip(rest.tolist(), both, strict=True))
        return held

    def _some(self, questions: _Questions, order: NDArray[Any]) -> NDArray[Any]:
        """As many of these samples as methods are compared on."""
        upto = np.cumsum(questions.lengths[order]) * len(questions.names)
        return order[: max(2, min(_TRIED, int((upto <= _TRIED_ANSWERS).sum())))]

    def _alone(self, column: list[Any], gold: list[Any]) -> list[Any]:
        """Answers of an expert; where there is none, one that is wrong."""
        outside = "O" if self.scheme_ in ("BIO", "BILOU", "IOBES") else ""
        whole: list[Any] = []
        for answer, right in zip(column, gold, strict=True):
            if self.kind_ == "labels":
                whole.append([y or outside for y in answer or [None] * len(right)])
            else:
                whole.append(answer or [])
        return whole

    def _held_out(
        self,
        questions: _Questions,
        order: NDArray[Any],
        fold: NDArray[Any],
        name: str,
        tried: Task | None = None,
        number: int = 0,
        sure: bool = False,
    ) -> tuple[list[Any], list[Any]]:
        """Answers to samples, and raw confidences, by a method that has not learned from them."""
        answers: list[Any] = [None] * len(order)
        levels: list[Any] = [None] * len(order)
        n_folds = int(fold.max()) + 1
        for k in range(n_folds):
            if tried is not None:
                tried.at(number + k / n_folds, f"{name}, fold {k + 1} of {n_folds}")
            held = np.flatnonzero(fold == k)
            there = questions.take(order[held]).outputs
            rest = questions.without(order[held], everything=name in ALONE)
            combiner = self._new(name).fit(rest.outputs, rest.gold)
            found = combiner.predict(there)
            raw = self._raw(combiner, there) if sure else [None] * len(held)
            for i, answer, level in zip(held, found, raw, strict=True):
                answers[i], levels[i] = answer, level
        return answers, levels

    def _levels(self, sure: list[Any]) -> list[Float64s]:
        """Calibrated levels of raw ones."""
        if self.kind_ == "spans":
            raw = [np.array([span[3] for span in spans], np.float64) for spans in sure]
            return [self._span_calibration.levels(one) for one in raw]
        raw = [one[1] if isinstance(one, tuple) else one for one in sure]
        return [self._calibration.levels(one) for one in raw]

    def _raw(self, combiner: Any, outputs: Any) -> list[Any]:
        if hasattr(combiner, "predict_spans") or self.kind_ == "spans":
            spans = combiner.predict_spans(outputs)
            if self.kind_ == "spans":
                return list(spans)
            return list(zip(spans, combiner.predict_confidence(outputs), strict=True))
        return list(combiner.predict_confidence(outputs))

    def _calibrate(self, answers: list[Any], sure: list[Any], gold: list[Any]) -> None:
        self._calibration = self._span_calibration = Calibration()
        if self.kind_ == "spans":
            self._span_calibration = _calibrated_spans(sure, gold)
            return
        spans: list[Any] | None = None
        if sure and isinstance(sure[0], tuple):
            spans, sure = [list(found) for found, _ in sure], [level for _, level in sure]
        right = [_right(answer, g, self.kind_) for answer, g in zip(answers, gold, strict=True)]
        self._calibration = Calibration.of(np.concatenate(sure), np.concatenate(right))
        if self.scheme_ is not None:
            if spans is None:
                spans = _spans_of(answers, sure, self.scheme_)
            scheme = get_scheme(self.scheme_)
            truth = [[(a, b, y) for y, a, b in scheme.spans(g)] for g in gold]
            self._span_calibration = _calibrated_spans(spans, truth)

    # ------------------------------------------------------------------ doubts

    def _doubts(self, questions: _Questions) -> Iterator[Doubt]:
        answers = self.predict(questions.outputs)
        if self.kind_ == "spans":
            yield from self._span_doubts(questions)
            return
        levels, columns = self.predict_confidence(questions.outputs), questions.columns
        for i, (answer, level) in enumerate(zip(answers, levels, strict=True)):
            said = [column[i] for column in columns]
            if self.kind_ == "words":
                if any(one != answer for one in said if one is not None):
                    sure = float(np.mean(level)) if len(level) else 0.0
                    lines = tuple("" if one is None else " ".join(one) for one in said)
                    yield Doubt(i, 0, len(answer), " ".join(answer), sure, lines)
                continue
            split = [
                any(one is not None and one[k] is not None and one[k] != y for one in said)
                for k, y in enumerate(answer)
            ]
            for start, end in _runs(split):
                words = tuple(
                    "" if one is None else " ".join(y or "" for y in one[start:end]) for one in said
                )
                sure = float(np.min(level[start:end]))
                yield Doubt(i, start, end, " ".join(answer[start:end]), sure, words)

    def _span_doubts(self, questions: _Questions) -> Iterator[Doubt]:
        columns = questions.columns
        for i, spans in enumerate(self.predict_spans(questions.outputs)):
            said = [column[i] for column in columns]
            given = [None if one is None else {span[:3] for span in one} for one in said]
            awake = [one for one in given if one is not None]
            chosen = {span[:3]: span[3] for span in spans}
            for span in sorted(set().union(*awake)):
                votes = sum(span in one for one in awake)
                if span in chosen and votes == len(awake):
                    continue
                sure = chosen.get(span, 1 - (votes + 0.25) / (len(awake) + 0.5))
                words = tuple("" if g is None else span[2] if span in g else "-" for g in given)
                answer = span[2] if span in chosen else "-"
                yield Doubt(i, span[0], span[1], answer, float(sure), words)

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
            "calibration": [self._calibration.offset, self._calibration.slope],
            "span_calibration": [self._span_calibration.offset, self._span_calibration.slope],
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
        self._calibration = _restored_calibration(state, "calibration")
        self._span_calibration = _restored_calibration(state, "span_calibration")
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


@dataclass(frozen=True, eq=False)
class _Questions:
    """What the experts answer to samples, and what is right where that is known."""

    kind: str
    outputs: Any
    gold: list[Any]
    names: tuple[str, ...]

    @classmethod
    def of(
        cls, outputs: Any, gold: Any, kind: str, names: Sequence[str] | None = None
    ) -> _Questions:
        """From what a user gives."""
        if isinstance(outputs, ExpertOutputs):
            if kind not in ("auto", "labels"):
                raise DataError(f"kind is {kind!r}, but outputs that are laid out are labels")
            kind, n, outputs = "labels", len(outputs), as_outputs(outputs, names=names)
        else:
            outputs = answer_lists(outputs)
            n = len(outputs[0])
            if kind == "auto":
                known = outputs if gold is None else [*outputs, as_list(gold, "gold")]
                kind = kind_of(known)
        right = [None] * n if gold is None else as_list(gold, "gold")
        if len(right) != n:
            raise DataError(f"gold has {len(right)} samples, the experts answer {n}")
        if not n:
            raise DataError("no samples to learn from")
        if kind != "labels":
            return cls(kind, outputs, right, checked_names(names, len(outputs)))
        if not isinstance(outputs, ExpertOutputs):
            outputs = as_outputs(outputs, names=names)
        return cls(kind, outputs, right, outputs.names)

    @property
    def columns(self) -> list[list[Any]]:
        """Answers of each expert."""
        if not isinstance(self.outputs, ExpertOutputs):
            columns: list[list[Any]] = self.outputs
            return columns
        names = np.array([*self.outputs.labels, None], dtype=object)  # -1 is the last one
        cuts = self.outputs.offsets[1:-1]
        return [
            [part.tolist() for part in np.split(names[codes], cuts)]
            for codes in self.outputs.codes.T
        ]

    @property
    def labels(self) -> list[str]:
        """All labels that anybody says."""
        known = {y for right in self.gold if right is not None for y in right}
        return sorted(known | set(self.outputs.labels))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Positions of each sample."""
        if isinstance(self.outputs, ExpertOutputs):
            return self.outputs.lengths
        rows = zip(*self.outputs, strict=True)
        return np.array([max(len(answer or ()) for answer in row) for row in rows], np.int64)

    def take(self, samples: NDArray[Any]) -> _Questions:
        """Some of the samples."""
        gold = [self.gold[i] for i in samples]
        if isinstance(self.outputs, ExpertOutputs):
            return _Questions(self.kind, self.outputs.take(samples), gold, self.names)
        columns = [[column[i] for i in samples] for column in self.outputs]
        return _Questions(self.kind, columns, gold, self.names)

    def without(self, samples: NDArray[Any], everything: bool) -> _Questions:
        """The same, but what is right for these samples is not known.

        Only those that somebody can learn from are kept, unless everything is.
        """
        hidden = set(samples.tolist())
        gold = [None if i in hidden else right for i, right in enumerate(self.gold)]
        if everything:
            return _Questions(self.kind, self.outputs, gold, self.names)
        return self.take(np.flatnonzero([right is not None for right in gold]))


def _spans_of(
    answers: Sequence[Sequence[str]], levels: Sequence[Float64s], scheme: str
) -> list[list[tuple[int, int, str, float]]]:
    """Spans of label sequences; a span is as sure as its least sure position."""
    tags = get_scheme(scheme)
    return [
        [(a, b, y, float(level[a:b].min())) for y, a, b in tags.spans(answer)]
        for answer, level in zip(answers, levels, strict=True)
    ]


def _calibrated_spans(spans: Sequence[Any], gold: Sequence[Any]) -> Calibration:
    raw, right = [], []
    for found, truth in zip(spans, gold, strict=True):
        known = {tuple(span[:3]) for span in truth}
        raw += [span[3] for span in found]
        right += [tuple(span[:3]) in known for span in found]
    return Calibration.of(np.array(raw, np.float64), np.array(right, bool))


def _right(answer: Sequence[str], gold: Sequence[str], kind: str) -> NDArray[np.bool_]:
    """Which positions of an answer are right; where lengths differ, in the best alignment."""
    if kind == "labels":
        return np.array([a == g for a, g in zip(answer, gold, strict=True)], bool)
    if not answer:
        return np.zeros(0, bool)
    network, truth = align([[answer]], [gold], epsilon=_EMPTY)
    assert truth is not None
    said = network.lists(network.codes[:, 0])[0]
    return np.array([a == g for a, g in zip(said, truth[0], strict=True) if a != _EMPTY], bool)


def _runs(marks: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Longest runs of marks, as (start, end)."""
    start = None
    for k, mark in enumerate([*marks, False]):
        if mark and start is None:
            start = k
        elif not mark and start is not None:
            yield start, k
            start = None


def _restored_calibration(state: dict[str, Any], name: str) -> Calibration:
    numbers = header_value(state, name, list, items=float)
    if len(numbers) != 2 or not np.isfinite(numbers).all():
        raise CorruptModelError(f"{name} must be two numbers")
    return Calibration(*numbers)
