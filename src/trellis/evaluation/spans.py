r"""Precision, recall and F1 of spans: chunks, entities, words.

With :math:`G` the gold and :math:`P` the predicted spans (sample, type, start, end),

.. math:: \text{precision} = \frac{|G \cap P|}{|P|}, \quad
          \text{recall} = \frac{|G \cap P|}{|G|}, \quad
          F_1 = \frac{2\,|G \cap P|}{|G| + |P|},

each 0 by definition where its denominator is 0. A span counts only if type and both ends are
right. Overall values pool all types (micro average); the macro F1 is the mean over the types that
occur in gold or prediction. Under BIO these are the numbers of the CoNLL shared tasks'
``conlleval``, also for predictions that are not valid sequences (see
:meth:`trellis.corpus.schemes.Scheme.spans`).

Word segmentation is the case of one type and spans that cover the sentence. Words not seen in
training (OOV) are reported apart, as in the SIGHAN bakeoffs.

References
----------
E. F. Tjong Kim Sang and S. Buchholz, *Introduction to the CoNLL-2000 shared task*, 2000;
T. Emerson, *The second international Chinese word segmentation bakeoff*, 2005.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.corpus.schemes import Scheme, Span, get_scheme
from trellis.domains import sequence_of, text, whole
from trellis.errors import DataError
from trellis.evaluation.pairs import Labels, check_lengths, check_samples

__all__ = [
    "PrecisionRecall",
    "SegmentationScores",
    "SpanScores",
    "span_scores",
    "word_segmentation_scores",
]


@dataclass(frozen=True)
class PrecisionRecall:
    """Counts of spans and the scores they give.

    Attributes
    ----------
    correct, predicted, support : int
        Spans predicted right, predicted, and in gold.

    Examples
    --------
    >>> score = PrecisionRecall(correct=1, predicted=2, support=4)
    >>> score.precision, score.recall, round(score.f1, 4)
    (0.5, 0.25, 0.3333)
    >>> PrecisionRecall(correct=0, predicted=0, support=4).precision
    0.0
    """

    correct: int
    predicted: int
    support: int

    def __post_init__(self) -> None:
        for name in ("correct", "predicted", "support"):
            whole(0).check(name, getattr(self, name))

    @property
    def precision(self) -> float:
        """Share of the predicted spans that are right; 0 if none is predicted."""
        return _ratio(self.correct, self.predicted)

    @property
    def recall(self) -> float:
        """Share of the gold spans that are found; 0 if there is none."""
        return _ratio(self.correct, self.support)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; 0 if there are no spans at all."""
        return _ratio(2 * self.correct, self.predicted + self.support)


@dataclass(frozen=True)
class SpanScores(PrecisionRecall):
    """Scores of :func:`span_scores`; ``str()`` gives a table like that of ``conlleval``.

    Attributes
    ----------
    correct, predicted, support : int
        Spans of all types predicted right, predicted, and in gold.
    by_type : dict of str to PrecisionRecall
        In alphabetical order; all types of gold or prediction.
    n_tokens : int
        Number of positions.
    accuracy : float
        Share of the positions whose label is right.
    """

    by_type: dict[str, PrecisionRecall]
    n_tokens: int
    accuracy: float

    @property
    def macro_f1(self) -> float:
        """Mean F1 over the types; 0 if there is none."""
        return _ratio(sum(score.f1 for score in self.by_type.values()), len(self.by_type))

    def __str__(self) -> str:
        rows = [("overall", PrecisionRecall(self.correct, self.predicted, self.support))]
        if set(self.by_type) != {""}:
            rows += [(name or "(no type)", score) for name, score in self.by_type.items()]
        width = max(len(name) for name, _ in rows)
        lines = [
            f"processed {self.n_tokens} tokens with {self.support} spans; "
            f"found: {self.predicted} spans; correct: {self.correct}",
            f"accuracy: {self.accuracy:.2%}; macro F1: {100 * self.macro_f1:.2f}",
            f"{'':{width}}  precision   recall       F1  support  predicted",
        ]
        lines += [
            f"{name:>{width}}  {s.precision:9.2%}  {s.recall:7.2%}  {100 * s.f1:7.2f}"
            f"  {s.support:7}  {s.predicted:9}"
            for name, s in rows
        ]
        return "\n".join(lines)


@dataclass(frozen=True)
class SegmentationScores(PrecisionRecall):
    """Scores of :func:`word_segmentation_scores`; ``str()`` gives one line.

    Attributes
    ----------
    correct, predicted, support : int
        Words predicted right, predicted, and in gold.
    unknown, unknown_correct : int or None
        Gold words outside the known words, and how many of them were found; None if no known
        words were given.
    """

    unknown: int | None = None
    unknown_correct: int | None = None

    @property
    def oov_rate(self) -> float | None:
        """Share of the gold words that are not known; None if no known words were given."""
        return None if self.unknown is None else _ratio(self.unknown, self.support)

    @property
    def oov_recall(self) -> float | None:
        """Recall of the words that are not known; None if no gold word is such a word."""
        if not self.unknown or self.unknown_correct is None:
            return None
        return self.unknown_correct / self.unknown

    @property
    def iv_recall(self) -> float | None:
        """Recall of the known words; None if no gold word is such a word."""
        if self.unknown is None or self.unknown_correct is None or self.unknown == self.support:
            return None
        return (self.correct - self.unknown_correct) / (self.support - self.unknown)

    def __str__(self) -> str:
        parts = [
            f"words: {self.support}; precision: {self.precision:.2%}; recall: {self.recall:.2%}; "
            f"F1: {100 * self.f1:.2f}"
        ]
        named = (("OOV rate", self.oov_rate), ("OOV recall", self.oov_recall))
        for name, value in (*named, ("IV recall", self.iv_recall)):
            if value is not None:
                parts.append(f"{name}: {value:.2%}")
        return "; ".join(parts)


def span_scores(
    gold: Labels, predicted: Labels, scheme: str | Scheme = "BIO", *, strict: bool = False
) -> SpanScores:
    """Precision, recall and F1 of the spans, overall and by type.

    Parameters
    ----------
    gold, predicted : list of lists of labels
        Fully annotated. Gold labels that no prediction can have count as missed spans.
    scheme : str or Scheme, default="BIO"
        See :func:`trellis.corpus.schemes.get_scheme`. ``"BMES"`` with labels without a type gives
        the scores of word segmentation.
    strict : bool, default=False
        Drop spans that are not written validly instead of reading them as ``conlleval`` does.

    Raises
    ------
    DataError
        If lengths differ, there are no positions, or a label does not fit the scheme.

    Examples
    --------
    >>> scores = span_scores([["B-NP", "I-NP", "O", "B-VP"]], [["B-NP", "I-NP", "B-VP", "O"]])
    >>> scores.precision, scores.recall, scores.f1
    (0.5, 0.5, 0.5)
    >>> scores.by_type["NP"].f1, scores.by_type["VP"].f1
    (1.0, 0.0)
    >>> print(scores)
    processed 4 tokens with 2 spans; found: 2 spans; correct: 1
    accuracy: 50.00%; macro F1: 50.00
             precision   recall       F1  support  predicted
    overall     50.00%   50.00%    50.00        2          2
         NP    100.00%  100.00%   100.00        1          1
         VP      0.00%    0.00%     0.00        1          1
    """
    correct: Counter[str] = Counter()
    n_predicted: Counter[str] = Counter()
    wanted: Counter[str] = Counter()
    for in_gold, in_predicted in _span_pairs(gold, predicted, scheme, strict):
        correct.update(span[0] for span in in_gold & in_predicted)
        n_predicted.update(span[0] for span in in_predicted)
        wanted.update(span[0] for span in in_gold)
    n_tokens = sum(len(sample) for sample in gold)
    n_right = sum(
        entry == label
        for g, p in zip(gold, predicted, strict=True)
        for entry, label in zip(g, p, strict=True)
    )
    return SpanScores(
        correct=correct.total(),
        predicted=n_predicted.total(),
        support=wanted.total(),
        by_type={
            name: PrecisionRecall(correct[name], n_predicted[name], wanted[name])
            for name in sorted({*n_predicted, *wanted})
        },
        n_tokens=n_tokens,
        accuracy=float(n_right / n_tokens),
    )


def sample_counts(
    gold: Labels, predicted: Labels, scheme: str | Scheme, name: str = "predicted"
) -> NDArray[np.int64]:
    """Correct, predicted and gold spans of each sample, as an (N, 3) array."""
    return counts_of_systems(gold, [(predicted, name)], scheme)[0]


def counts_of_systems(
    gold: Labels, systems: Sequence[tuple[Labels, str]], scheme: str | Scheme
) -> list[NDArray[np.int64]]:
    """What :func:`sample_counts` counts, for several predictions and their names."""
    for predicted, name in systems:
        check_lengths(gold, predicted, name)
    scheme = get_scheme(scheme)
    lengths = np.fromiter(map(len, gold), np.int64, len(gold))
    taken = [gold, *(predicted for predicted, _ in systems)]
    every = [list(chain.from_iterable(labels)) for labels in taken]
    try:
        if not set().union(*(map(type, labels) for labels in taken)) <= {list, tuple, np.ndarray}:
            raise TypeError
        distinct = list(set().union(*every))
        parsed = [scheme.parse(label) for label in distinct]
    except (DataError, TypeError):  # the slow way says which label does not fit, and where it is
        return [
            np.array(
                [
                    (len(in_gold & in_predicted), len(in_predicted), len(in_gold))
                    for in_gold, in_predicted in _span_pairs(gold, predicted, scheme, False, name)
                ],
                dtype=np.int64,
            )
            for predicted, name in systems
        ]
    code_of = {label: code for code, label in enumerate(distinct)}
    roles = np.array([role for role, _ in parsed], dtype="<U1")
    number: dict[str, int] = {}
    types = np.array([number.setdefault(kind, len(number)) for _, kind in parsed], np.int32)
    sample = np.repeat(np.arange(len(gold)), lengths)
    first = np.zeros(len(sample), bool)
    first[(np.cumsum(lengths) - lengths)[lengths > 0]] = True
    found = []
    for flat in every:
        codes = np.fromiter(map(code_of.__getitem__, flat), np.int32, len(flat))
        found.append(_flat_spans(codes, roles, types, first))
    (begins, ends, kinds), *others = found
    ends_in_gold = np.full(len(sample), -1)
    ends_in_gold[begins] = ends
    kinds_in_gold = np.full(len(sample), -1)
    kinds_in_gold[begins] = kinds
    support = np.bincount(sample[begins], minlength=len(gold))
    counts = []
    for begins, ends, kinds in others:
        right = (ends_in_gold[begins] == ends) & (kinds_in_gold[begins] == kinds)
        correct, predicted_spans = (
            np.bincount(sample[some], minlength=len(gold)) for some in (begins[right], begins)
        )
        counts.append(np.column_stack([correct, predicted_spans, support]).astype(np.int64))
    return counts


def _flat_spans(
    codes: NDArray[np.int32],
    roles: NDArray[Any],
    types: NDArray[np.int32],
    first: NDArray[np.bool_],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """First position, one past the last, and type of all spans of samples laid end to end.

    Parameters
    ----------
    codes : int32 (N,)
        Label of each position, an index into `roles` and `types`.
    roles, types : (L,)
        What labels mean.
    first : bool (N,)
        Whether a position is the first of its sample.
    """
    within, begin = roles != "O", np.isin(roles, ["B", "S"])
    closed = ~np.isin(roles, ["B", "I"])  # what comes after them continues nothing
    kind = types[codes]
    starts = begin[codes] | first
    starts[1:] |= closed[codes[:-1]] | (kind[1:] != kind[:-1])
    inside = within[codes]
    starts &= inside
    bounds = starts | ~inside | first
    begins = np.flatnonzero(starts)
    # The span ends at the next bound: that with as many bounds before it as up to its begin.
    places = np.append(np.flatnonzero(bounds), len(codes))
    ends = places[np.cumsum(bounds)[begins]]
    return begins, ends, kind[begins]


def word_segmentation_scores(
    gold_words: Labels, predicted_words: Labels, known_words: Iterable[str] | None = None
) -> SegmentationScores:
    """Precision, recall and F1 of words: a word is right if both its boundaries are.

    Parameters
    ----------
    gold_words, predicted_words : list of lists of words
        Two segmentations of the same sentences.
    known_words : iterable of str, optional
        The words of the training data; gives the recall of unknown (OOV) and known (IV) words.

    Raises
    ------
    DataError
        If the sentences are not the same, or there are none.

    Examples
    --------
    >>> scores = word_segmentation_scores([["ab", "c", "de"]], [["ab", "cde"]], ["ab", "c"])
    >>> scores.correct, scores.precision, round(scores.recall, 4)
    (1, 0.5, 0.3333)
    >>> scores.oov_recall, scores.iv_recall
    (0.0, 0.5)
    """
    check_samples(gold_words, predicted_words, "predicted_words")
    known = None
    if known_words is not None:
        words = known_words if hasattr(known_words, "__len__") else _listed(known_words)
        sequence_of(text, "a collection of words").check("known_words", words)
        known = frozenset(words)
    correct = predicted = support = unknown = unknown_correct = 0
    for i, (g, p) in enumerate(zip(gold_words, predicted_words, strict=True)):
        ends_g = _boundaries(g, f"sample {i} of gold_words")
        ends_p = _boundaries(p, f"sample {i} of predicted_words")
        if "".join(g) != "".join(p):
            raise DataError(
                f"sample {i}: gold_words and predicted_words do not join to the same sentence"
            )
        in_predicted = set(pairwise(ends_p))
        hits = [span in in_predicted for span in pairwise(ends_g)]
        correct += sum(hits)
        predicted += len(p)
        support += len(g)
        if known is not None:
            unknown_hits = [hit for word, hit in zip(g, hits, strict=True) if word not in known]
            unknown += len(unknown_hits)
            unknown_correct += sum(unknown_hits)
    if support == 0:
        raise DataError("nothing to evaluate: all samples are empty")
    if known is None:
        return SegmentationScores(correct, predicted, support)
    return SegmentationScores(correct, predicted, support, unknown, unknown_correct)


def _listed(words: Any) -> Any:
    """What an iterator gives, or what is none."""
    return list(words) if isinstance(words, Iterable) else words


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _boundaries(words: Iterable[str], place: str) -> list[int]:
    sequence_of(text, "a list of words").check(place, words)
    lengths = [len(word) for word in words]
    if 0 in lengths:
        raise DataError(f"{place}: word {lengths.index(0)} is empty: remove empty words")
    return list(accumulate(lengths, initial=0))


def _span_pairs(
    gold: Labels, predicted: Labels, scheme: str | Scheme, strict: bool, name: str = "predicted"
) -> Iterator[tuple[set[Span], set[Span]]]:
    """Gold and predicted spans of each sample."""
    check_lengths(gold, predicted, name)
    scheme = get_scheme(scheme)
    for i, (g, p) in enumerate(zip(gold, predicted, strict=True)):
        origin = "gold"
        try:
            in_gold = set(scheme.spans(g, strict))
            origin = name
            yield in_gold, set(scheme.spans(p, strict))
        except DataError as error:
            raise DataError(f"sample {i} of {origin}, {error}") from None
