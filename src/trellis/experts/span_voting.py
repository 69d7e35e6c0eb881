r"""Votes for spans, not for labels: the span vote, and what all span combiners share.

Candidate c is given by m of the a experts that are awake there. The vote takes as the probability
that it is right the share that gives it, :math:`v_c = \min(m/a,\,(a + \frac12)/(a + 1))`, which
leaves some doubt about what all give. An answer A of n spans among candidates with probabilities
:math:`p_c`, of which u right ones are missing, has the F1

.. math:: F(A) \approx \frac{2 \sum_{c \in A} p_c}{n + \sum_c p_c + u},

and what maximises it, if it is F*, maximises :math:`\sum_{c \in A} (p_c - F^*/2)`: the candidates
above the *threshold* τ = F*/2, or, where these overlap, the best set of which no two do, found by
dynamic programming. With :math:`p = v` that asks for the answer that is most like what an expert
says, whichever it is (minimum Bayes risk). Experts that agree little, since each finds little, are
so believed when two say the same; of those that agree nearly always, nearly half are needed. Of a
few sentences F* is not known: the vote adds five spans that all give, which are enough to ask for
half of the experts where there is next to nothing to judge by, and too few to matter elsewhere.

References
----------
Z. C. Lipton, C. Elkan and B. Naryanaswamy, *Optimal thresholding of classifiers to maximize F1
measure*, ECML 2014 (the threshold is half of the best F1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from trellis.corpus.schemes import Scheme, detect_scheme, get_scheme
from trellis.domains import instance, is_whole, number, one_of, text, whole
from trellis.errors import DataError
from trellis.estimator import fitted, fixed, parameter
from trellis.experts.combiner import Combiner, distinct_names, one_blas_thread
from trellis.experts.decoding import vote_table
from trellis.experts.outputs import ExpertOutputs, answer_lists
from trellis.experts.span_candidates import (
    AWAKE,
    EXACT,
    SpanCandidates,
    SpanOutputs,
    as_span_outputs,
    best_spans,
    holds_spans,
    label_spans,
    ranges,
    spans_of,
)
from trellis.files.stored import check_range, header_value, take

__all__ = ["SpanEnsemble", "SpanVote", "f1_threshold", "vote_probability", "vote_threshold"]

Floats = NDArray[np.float64]
Spans = list[tuple[int, int, str]]

_AGREED = 5  # spans that all experts give, besides those that they do
_FIRST = 1e-9  # what the first expert's word weighs more: it decides between equals only


class SpanEnsemble(Combiner):
    """Base class of the combiners of spans; a subclass learns and weighs candidates.

    Experts give label sequences in a tag scheme, as everywhere, or lists of spans
    (start, end, type), as language models do (:func:`~trellis.experts.as_span_outputs`); answers
    and right answers are of the same kind.

    Attributes
    ----------
    scheme_ : Scheme or None
        Tag scheme of the labels; None if experts give lists of spans.
    spans_ : bool
        Whether experts give lists of spans. Then ``classes_`` are types, ``expert_losses_`` are
        1 - F1 of each expert (without right answers, against the vote), and there is no
        ``default_label_``.
    threshold_ : float
        Candidates must be more probable than this.
    """

    scheme: str = parameter(
        one_of("auto") | text | instance(Scheme),
        """Tag scheme of label sequences; "auto": the one that the labels are written in. Lists of
        spans need none.""",
        default="auto",
    )
    short: int | None = fixed(None)
    scheme_: Scheme | None = fitted()
    spans_: bool = fitted()
    threshold_: float = fitted()

    _ALONE = True

    # ------------------------------------------------------------------ for subclasses

    def _learn_spans(
        self, candidates: SpanCandidates, known: NDArray[np.bool_], gold: Sequence[Spans]
    ) -> None:
        """Learn from candidates; ``gold`` are the right spans of the samples that are known."""
        raise NotImplementedError  # abstract

    def _weigh(self, candidates: SpanCandidates) -> tuple[Floats, Floats]:
        """Return the probability of each candidate, and its weight: those above 0 may be chosen."""
        raise NotImplementedError  # abstract

    # ------------------------------------------------------------------ for users

    def fit(self, outputs: Any, gold: Any = None) -> Self:
        """Learn how to combine the experts.

        Parameters
        ----------
        outputs : ExpertOutputs, SpanOutputs or nested sequences
            ``outputs[j][i]`` is the label sequence of expert j for sample i, or the list of its
            spans (start, end, type), or None.
        gold : sequence of label sequences or of lists of spans, or None
            The right answers; None for samples, or in place of all, where they are not known.

        Returns
        -------
        self
        """
        outputs = _opened(outputs)
        self.spans_ = holds_spans(outputs)
        if not self.spans_:
            return super().fit(outputs, gold)
        self._check_parameters()
        said = as_span_outputs(outputs)
        if not len(said):
            raise DataError("no samples to learn from")
        right = _gold_spans(gold, len(said))
        known = np.array([spans is not None for spans in right])
        candidates = SpanCandidates.of_spans(said)
        self.scheme_, self.expert_names_, self.taught_ = None, said.names, True
        of_gold = {span[2] for spans in right for span in spans or ()}
        self.classes_ = tuple(sorted({*said.types, *of_gold}))
        with one_blas_thread():
            self._learn_spans(candidates, known, [spans for spans in right if spans is not None])
        self._measure(said, candidates, known, right)
        return self

    def predict(self, outputs: Any) -> list[Any]:
        """Return the answer of the ensemble for each sample: labels, or (start, end, type)."""
        outputs = _opened(outputs)
        if self._takes_spans(outputs):
            return [[span[:3] for span in spans] for spans in self.predict_spans(outputs)]
        return super().predict(outputs)

    def predict_spans(self, outputs: Any) -> list[list[tuple[int, int, str, float]]]:
        """Return (start, end, type, probability) of the spans of each sample, from left to right.

        Positions are counted from the beginning of the sample.
        """
        outputs = _opened(outputs)
        if self._takes_spans(outputs):
            said = self._recognised_spans(outputs)
            candidates = SpanCandidates.of_spans(said)
        else:
            candidates = self._candidates(self._recognised(outputs))
        probability, chosen = self._choose(candidates)
        answer: list[list[tuple[int, int, str, float]]] = [
            [] for _ in range(len(candidates.offsets) - 1)
        ]
        columns = (candidates.sample, candidates.start, candidates.end, candidates.type)
        rows = (column[chosen].tolist() for column in (*columns, probability))
        for sample, start, end, kind, sure in zip(*rows, strict=True):
            answer[sample].append((start, end, candidates.types[kind], sure))
        return answer

    def predict_proba(self, outputs: Any) -> list[Floats]:
        """Return the probability of each label at each position, a table (n, L) a sample.

        That of the answer is ``predict_confidence``; the rest is shared as the experts vote. Only
        for label sequences.
        """
        outputs = _opened(outputs)
        self._need_labels(outputs)
        return super().predict_proba(outputs)

    def predict_confidence(self, outputs: Any) -> list[Floats]:
        """Return how sure the answer is at each position, from 0 to 1, an array a sample.

        It is the share of the experts that say the same label; inside a span of the answer, the
        mean of that and of the span's probability. Only for label sequences.
        """
        outputs = _opened(outputs)
        self._need_labels(outputs)
        return super().predict_confidence(outputs)

    def score(self, outputs: Any, gold: Any) -> float:
        """Return 1 - the mean normalised Hamming loss, or the F1 of lists of spans."""
        outputs = _opened(outputs)
        if not self._takes_spans(outputs):
            return super().score(outputs, gold)
        said = self._recognised_spans(outputs)
        right = _gold_spans(gold, len(said))
        if all(spans is None for spans in right):
            raise DataError("no samples to score")
        found = n = 0
        for spans, answer in zip(right, self.predict(said), strict=True):
            if spans is not None:
                found += len(set(spans) & set(answer))
                n += len(set(spans)) + len(answer)
        return 2 * found / n if n else 1.0

    # ------------------------------------------------------------------ inside

    def _learn(self, outputs: ExpertOutputs, gold: NDArray[np.int32], fresh: bool) -> None:
        self.scheme_ = self._scheme_of(outputs)
        known = gold[outputs.offsets[:-1]] >= 0
        spans = label_spans(gold, outputs, self.scheme_)
        candidates = SpanCandidates.of_labels(outputs, self.scheme_)
        right = [s for s, taught in zip(spans, known.tolist(), strict=True) if taught]
        self._learn_spans(candidates, known, right)

    def _scheme_of(self, outputs: ExpertOutputs) -> Scheme:
        if self.scheme != "auto":
            return get_scheme(self.scheme)
        found = "BIO" if set(outputs.labels) <= {"O"} else detect_scheme(outputs.labels)
        if found is None:
            shown = ", ".join(outputs.labels[:5]) + (", ..." if len(outputs.labels) > 5 else "")
            raise DataError(
                f"the labels ({shown}) are not written in a tag scheme, so they have no spans; "
                "name the scheme (scheme=) if they are, else combine labels, not spans"
            )
        return get_scheme(found)

    def _choose(self, candidates: SpanCandidates) -> tuple[Floats, NDArray[np.bool_]]:
        probability, weight = self._weigh(candidates)
        return probability, best_spans(candidates, weight)

    def _candidates(self, outputs: ExpertOutputs) -> SpanCandidates:
        assert self.scheme_ is not None
        return SpanCandidates.of_labels(outputs, self.scheme_)

    def _answers(self, outputs: ExpertOutputs) -> NDArray[np.int32]:
        return self._label(outputs)

    def _label(self, outputs: ExpertOutputs) -> NDArray[np.int32]:
        candidates = self._candidates(outputs)
        return self._written(outputs, candidates, self._choose(candidates)[1])

    def _written(
        self, outputs: ExpertOutputs, candidates: SpanCandidates, chosen: NDArray[np.bool_]
    ) -> NDArray[np.int32]:
        """Label codes of the chosen candidates, (N,)."""
        assert self.scheme_ is not None
        code_of = {label: code for code, label in enumerate(outputs.labels)}
        table = np.array(
            [
                [code_of[_tag(letter, t)] for t in candidates.types]
                for letter in self.scheme_.writes
            ],
            np.int32,
        ).reshape(4, -1)
        outside = code_of["O"]
        if self.scheme_.name == "BMES" and "O" not in self.classes_:
            # Every position is in a word: where none is chosen, each is one by itself.
            outside = code_of[_tag("S", self.scheme_.parse(self.default_label_)[1])]
        answer = np.full(outputs.n_positions, outside, np.int32)
        first, length, kind = self._places(outputs, candidates, chosen)
        answer[ranges(first, length)] = np.repeat(table[1, kind], length)
        answer[first + length - 1] = table[2, kind]
        answer[first] = np.where(length == 1, table[3, kind], table[0, kind])
        return answer

    @staticmethod
    def _places(
        outputs: ExpertOutputs, candidates: SpanCandidates, chosen: Any = slice(None)
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """First position among all, length and type of candidates."""
        first = (outputs.offsets[:-1][candidates.sample] + candidates.start)[chosen]
        return first, (candidates.end - candidates.start)[chosen], candidates.type[chosen]

    def _shares(self, outputs: ExpertOutputs) -> Floats:
        candidates = self._candidates(outputs)
        probability, chosen = self._choose(candidates)
        answer = self._written(outputs, candidates, chosen)
        rows = np.arange(len(answer))
        table = vote_table(outputs.codes, np.ones(outputs.n_experts), len(outputs.labels))
        awake = table.sum(axis=1)
        sure = np.where(awake > 0, table[rows, answer] / np.maximum(awake, 1), 0.5)
        first, length, _ = self._places(outputs, candidates, chosen)
        inside = ranges(first, length)
        sure[inside] = (sure[inside] + np.repeat(probability[chosen], length)) / 2
        table += 0.5 / len(outputs.labels)
        table[rows, answer] = 0.0
        total = table.sum(axis=1)
        table *= np.where(total > 0, (1 - sure) / np.where(total > 0, total, 1.0), 0.0)[:, None]
        table[rows, answer] = np.where(total > 0, sure, 1.0)
        return table

    def _probabilities(self, outputs: ExpertOutputs) -> Floats:
        return self._shares(outputs)  # the span vote has its own, too

    def _recognised(self, outputs: Any) -> ExpertOutputs:
        return self._with_tags(super()._recognised(outputs))

    def _widened(self, outputs: Any) -> ExpertOutputs:
        return self._with_tags(super()._widened(outputs))

    def _with_tags(self, answers: ExpertOutputs) -> ExpertOutputs:
        """The same, with all tags among the labels that may be written."""
        assert self.scheme_ is not None
        types = {self.scheme_.parse(label)[1] for label in answers.labels if label != "O"}
        written = {_tag(letter, type_) for letter in self.scheme_.writes for type_ in types}
        return answers.recoded(sorted({*answers.labels, *written, "O"}))

    def _takes_spans(self, outputs: Any) -> bool:
        """Whether these are lists of spans, which must be what training had."""
        self._check_fitted()
        spans = holds_spans(outputs)
        if spans != self.spans_:
            kinds = ("label sequences", "lists of spans")
            raise DataError(f"the ensemble was trained on {kinds[self.spans_]}, not {kinds[spans]}")
        return spans

    def _need_labels(self, outputs: Any) -> None:
        if self._takes_spans(outputs):
            raise DataError("lists of spans have no positions; predict_spans has probabilities")

    def _recognised_spans(self, outputs: Any) -> SpanOutputs:
        said = as_span_outputs(outputs)
        if said.n_experts != len(self.expert_names_):
            raise DataError(
                f"the ensemble was trained on {len(self.expert_names_)} experts, here are "
                f"{said.n_experts}; give None for the samples an expert has not answered"
            )
        if said.names != self.expert_names_ and set(said.names) == set(self.expert_names_):
            said = said.subset(self.expert_names_)
        return said

    def _measure(
        self, said: SpanOutputs, candidates: SpanCandidates, known: NDArray[np.bool_],
        gold: Sequence[Spans | None],
    ) -> None:  # fmt: skip
        """Set 1 - F1 of the experts."""
        if known.any():
            right = candidates.right([spans or [] for spans in gold])
            wanted = np.array([len(set(spans or ())) for spans in gold])
        else:
            known = ~known
            right = self._choose(candidates)[1]
            wanted = np.bincount(candidates.sample[right], minlength=len(known))
        rows = known[candidates.sample]
        exact = candidates.has(EXACT)[rows]
        found = (exact & right[rows, None]).sum(axis=0)
        n = exact.sum(axis=0) + (said.awake[known] * wanted[known, None]).sum(axis=0)
        self.expert_losses_ = np.where(n > 0, 1 - 2 * found / np.maximum(n, 1), 0.0)

    def _whole_state(self) -> dict[str, Any]:
        return self._state()

    def _restore_whole(self, state: dict[str, Any]) -> None:
        self._restore(state)

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = {"spans": self.spans_, "taught": self.taught_}
        state["threshold"] = float(self.threshold_)
        if self.spans_:
            state |= {"experts": list(self.expert_names_), "types": list(self.classes_)}
            return state | {"losses": self.expert_losses_}
        assert self.scheme_ is not None
        return super()._state() | state | {"scheme": self.scheme_.name}

    def _restore(self, state: dict[str, Any]) -> None:
        self.spans_ = header_value(state, "spans", bool)
        self.taught_ = header_value(state, "taught", bool)
        self.threshold_ = header_value(state, "threshold", float, low=0, high=np.nextafter(1, 2))
        if self.spans_:
            self.scheme_ = None
            self.expert_names_ = distinct_names(state, "experts")
            types = header_value(state, "types", list, items=str)
            self.classes_ = distinct_names(state, "types") if types else ()
            n_experts = len(self.expert_names_)
            self.expert_losses_ = take(state, "losses", np.float64, (n_experts,))
            check_range(self.expert_losses_, 0, np.nextafter(1, 2), "losses of experts")
        else:
            super()._restore(state)
            names = ("BIO", "BILOU", "IOBES", "BMES")
            auto = self.scheme == "auto"
            named = header_value(state, "scheme", str, choices=names if auto else None)
            self.scheme_ = get_scheme(named if auto else self.scheme)


class SpanVote(SpanEnsemble):
    """The spans that enough experts give, boundaries and type alike; nothing is learned from gold.

    Where such spans overlap, the best set of which no two do is chosen, and among equals what the
    first expert says.

    Examples
    --------
    >>> from trellis.experts import SpanVote
    >>> said = [
    ...     [["B-PER", "I-PER", "O", "O"]],
    ...     [["B-PER", "O", "O", "B-LOC"]],
    ...     [["B-PER", "I-PER", "O", "B-LOC"]],
    ... ]
    >>> SpanVote().fit(said).predict(said)
    [['B-PER', 'I-PER', 'O', 'B-LOC']]
    >>> spans = [[[(0, 11, "PER")]], [[(0, 5, "PER"), (20, 26, "LOC")]], [[(0, 11, "PER")]]]
    >>> SpanVote(k=2).fit(spans).predict(spans)
    [[(0, 11, 'PER')]]
    """

    k: int | float | str = parameter(
        one_of("auto", "majority") | whole(1) | number(above=0, at_most=1),
        """How many of the experts that are awake must give a span: a number of them (all, if fewer
        are awake), a share of them, or "majority", more than half. "auto": the share that makes
        the answer most like those of the experts, judged by F1 on what ``fit`` is given, and about
        half where that is a few sentences; right answers are not needed.""",
        default="auto",
    )

    def _learn_spans(
        self, candidates: SpanCandidates, known: NDArray[np.bool_], gold: Sequence[Spans]
    ) -> None:
        self.threshold_ = 0.5
        if self.k == "auto":
            self.threshold_ = vote_threshold(candidates)

    def _weigh(self, candidates: SpanCandidates) -> tuple[Floats, Floats]:
        probability = vote_probability(candidates)
        awake = candidates.has(AWAKE).sum(axis=1)
        votes = candidates.has(EXACT).sum(axis=1)
        if self.k == "auto":
            weight = probability - self.threshold_
        elif self.k == "majority":
            weight = np.where(2 * votes > awake, votes - awake / 2, -1.0)
        else:
            needed = np.minimum(self.k, awake) if is_whole(self.k) else self.k * awake
            enough = votes >= needed * (1 - 1e-12)  # a third of three is one
            weight = np.where(enough, votes - needed + 0.5, -1.0)
        first = candidates.has(EXACT).argmax(axis=1) / len(candidates.names)
        return probability, weight + np.where(weight > 0, _FIRST * (1 - first), 0.0)


def vote_probability(candidates: SpanCandidates) -> Floats:
    """Share of the experts awake that give a candidate, less than 1, (C,).

    Examples
    --------
    >>> from trellis.experts import as_span_outputs
    >>> said = as_span_outputs([[[(0, 2, "X")]], [[(0, 2, "X"), (3, 4, "X")]], [None]])
    >>> vote_probability(SpanCandidates.of_spans(said)).round(3).tolist()
    [0.833, 0.5]
    """
    awake = np.maximum(candidates.has(AWAKE).sum(axis=1), 1)
    votes = candidates.has(EXACT).sum(axis=1)
    probability: Floats = np.minimum(votes / awake, (awake + 0.5) / (awake + 1))
    return probability


def vote_threshold(candidates: SpanCandidates) -> float:
    """The share of experts that must give a candidate, judged by how far they agree.

    Examples
    --------
    >>> from trellis.experts import as_span_outputs
    >>> said = [[[(2 * i, 2 * i + 1, "X") for i in range(n)]] for n in (90, 30, 30)]
    >>> round(vote_threshold(SpanCandidates.of_spans(as_span_outputs(said))), 3)
    0.362
    >>> few = [[spans[:2] for spans in answers] for answers in said]
    >>> round(vote_threshold(SpanCandidates.of_spans(as_span_outputs(few))), 3)
    0.491
    """
    return f1_threshold(np.append(np.ones(_AGREED), vote_probability(candidates)))


def f1_threshold(probability: Floats, missing: float = 0.0) -> float:
    """Half of the best F1 to expect: candidates above it make the best answer.

    Parameters
    ----------
    probability : float (C,)
        Of candidates.
    missing : float
        How many right spans are no candidates.

    Examples
    --------
    >>> import numpy as np
    >>> round(f1_threshold(np.array([1.0, 1.0, 0.0])), 3)
    0.5
    >>> round(f1_threshold(np.array([0.2, 0.2, 0.2])), 3)
    0.167
    """
    if not len(probability):
        return 0.5
    ranked = np.sort(probability)[::-1]
    right = np.cumsum(ranked)
    return float((right / (np.arange(1, len(ranked) + 1) + right[-1] + missing)).max())


def _tag(letter: str, type_: str) -> str:
    return f"{letter}-{type_}" if type_ else letter


def _opened(outputs: Any) -> Any:
    """Answers that can be gone through more than once."""
    if isinstance(outputs, ExpertOutputs | SpanOutputs):
        return outputs
    return answer_lists(outputs)


def _gold_spans(gold: Any, n_samples: int) -> list[Spans | None]:
    """Right spans of each sample, checked; None where they are not known."""
    if gold is None:
        return [None] * n_samples
    samples = answer_lists([gold], "gold")[0]
    if len(samples) != n_samples:
        raise DataError(f"gold has {len(samples)} samples, the experts answer {n_samples}")
    return [None if s is None else spans_of(s, "gold", i) for i, s in enumerate(samples)]
