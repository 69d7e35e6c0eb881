r"""Is system A better than system B, or was it luck? Paired tests on the same samples.

Let :math:`\delta = s(A) - s(B)` be the difference of a score on the test set of N samples.

* **Paired bootstrap**: draw N samples with replacement, score both systems on them, repeat. The
  spread of the differences :math:`\delta^*` is that of :math:`\delta`: their percentiles give the
  confidence interval, and, centred at the null hypothesis of no difference, the p-value
  :math:`P(|\delta^* - \delta| \ge |\delta|)`.
* **Paired permutation** (approximate randomisation): if the systems were equal, their outputs on
  a sample could be exchanged. Exchange each with probability 1/2, repeat; p-value
  :math:`P(|\delta^*| \ge |\delta|)`.
* **McNemar**: of the positions that exactly one system has right, A's share is binomial with
  parameter 1/2 if the systems are equal. Positions are taken as independent, which those of one
  sentence are not: prefer the tests above for sequences.
* **Paired t-test**: on scores of the same folds or samples.

All p-values are two-sided. Those of resampling are :math:`(1 + \#)/(1 + R)`, never 0. F1 and
accuracy are functions of sums over samples, so resampling adds up counts (correct, predicted and
gold spans of each sample) and never looks at labels again. Samples with the same counts are one
group: how often each group is drawn is multinomial (which sample of a group is drawn makes no
difference), and how many of its samples are exchanged is binomial. That is the same distribution as
drawing sample by sample, at the cost of the number of groups. Groups of a few samples are not worth
a binomial draw; together they are one group, whose samples are then drawn one by one.

References
----------
B. Efron and R. Tibshirani, *An introduction to the bootstrap*, 1993;
P. Koehn, *Statistical significance tests for machine translation evaluation*, 2004;
T. Berg-Kirkpatrick, D. Burkett, D. Klein, *An empirical investigation of statistical significance
in NLP*, 2012; E. W. Noreen, *Computer-intensive methods for testing hypotheses*, 1989;
Q. McNemar, *Note on the sampling error of the difference between correlated proportions*, 1947.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trellis.arrays import as_array
from trellis.corpus.schemes import Scheme
from trellis.domains import function, number, one_of, seed, whole
from trellis.errors import DataError
from trellis.evaluation import accuracy, spans
from trellis.evaluation.pairs import Gold, Labels, check_samples

__all__ = [
    "Comparison",
    "mcnemar",
    "paired_bootstrap",
    "paired_bootstrap_means",
    "paired_permutation",
    "paired_t_test",
]

Metric = str | Callable[[Any, Any], float]
_BLOCK = 2**21  # numbers drawn at a time: bounds the memory
_MANY = 40  # samples that are as quickly drawn one by one as their number is
_TIE = 1e-12  # differences closer than this are equal


@dataclass(frozen=True)
class Comparison:
    """Outcome of a paired test of systems A and B; ``str()`` gives one line.

    Attributes
    ----------
    test : str
        Name of the test.
    score_a, score_b : float
        Scores on all the data.
    p_value : float
        Two-sided.
    interval : (float, float) or None
        Confidence interval of the difference, if the test gives one.
    confidence : float or None
        Level of the interval.
    n : int
        Number of paired observations: samples, or positions for :func:`mcnemar`.
    """

    test: str
    score_a: float
    score_b: float
    p_value: float
    interval: tuple[float, float] | None
    confidence: float | None
    n: int

    @property
    def difference(self) -> float:
        """Score of A minus score of B."""
        return self.score_a - self.score_b

    def __str__(self) -> str:
        text = (
            f"{self.test} (n = {self.n}): A {self.score_a:.4f}, B {self.score_b:.4f}, "
            f"A - B {self.difference:+.4f}"
        )
        if self.interval is not None and self.confidence is not None:
            low, high = self.interval
            text += f" ({100 * self.confidence:g} % interval {low:+.4f} to {high:+.4f})"
        return f"{text}, p = {self.p_value:.4g}"


def paired_bootstrap(
    gold: Gold,
    pred_a: Labels,
    pred_b: Labels,
    metric: Metric = "f1",
    *,
    scheme: str | Scheme = "BIO",
    n_resamples: int = 10_000,
    confidence: float = 0.95,
    random_state: int | np.random.Generator = 0,
) -> Comparison:
    """Paired bootstrap test over samples.

    Parameters
    ----------
    gold, pred_a, pred_b : list of lists of labels
        At least two samples. With ``"accuracy"`` a gold entry may be None or a set of labels.
    metric : {"f1", "accuracy"} or callable, default="f1"
        Span F1, token accuracy, or a function ``metric(gold, predicted) -> float`` of lists of
        samples, which is called twice for each resample.
    scheme : str or Scheme, default="BIO"
        Tag scheme of the spans, for ``"f1"``.
    n_resamples : int, default=10000
    confidence : float, default=0.95
        Level of the percentile interval of the difference.
    random_state : int or numpy Generator, default=0

    Raises
    ------
    DataError
        If lengths differ, there are fewer than two samples, or an option is out of range.

    Examples
    --------
    >>> gold = [["B-X", "O"], ["O", "B-X"], ["B-X", "I-X"], ["O", "O"]] * 10
    >>> a = [["B-X", "O"], ["O", "B-X"], ["B-X", "O"], ["O", "O"]] * 10
    >>> b = [["B-X", "O"], ["O", "O"], ["B-X", "O"], ["B-X", "O"]] * 10
    >>> result = paired_bootstrap(gold, a, b, n_resamples=1000)
    >>> round(result.difference, 4), result.p_value < 0.01
    (0.3333, True)
    """
    number(above=0, below=1).check("confidence", confidence)
    systems = _systems(gold, pred_a, pred_b, metric, scheme)
    whole(1).check("n_resamples", n_resamples)
    seed.check("random_state", random_state)
    resampled = systems.bootstrap(np.random.default_rng(random_state), n_resamples)
    return _bootstrapped(*systems.scores(), resampled, confidence, len(gold))


def paired_bootstrap_means(
    values_a: ArrayLike,
    values_b: ArrayLike,
    *,
    n_resamples: int = 10_000,
    confidence: float = 0.95,
    random_state: int | np.random.Generator = 0,
) -> Comparison:
    """Paired bootstrap test of the means of numbers, one for each sample.

    Parameters
    ----------
    values_a, values_b : sequence of float
        Errors, distances, scores of the same samples; at least two.
    n_resamples, confidence, random_state
        As for :func:`paired_bootstrap`.

    Raises
    ------
    DataError
        If the values are not two equally long lists of at least two finite numbers, or an option
        is out of range.

    Examples
    --------
    >>> result = paired_bootstrap_means([1, 0, 0, 2, 0, 1] * 9, [1, 0, 0, 0, 0, 0] * 9)
    >>> round(result.difference, 4), result.p_value < 0.01
    (0.5, True)
    """
    number(above=0, below=1).check("confidence", confidence)
    whole(1).check("n_resamples", n_resamples)
    seed.check("random_state", random_state)
    a, b = _paired_numbers(values_a, values_b, "values")
    rng = np.random.default_rng(random_state)
    resampled = _drawn_sums((a - b)[:, None], rng, n_resamples)[:, 0] / len(a)
    return _bootstrapped(float(a.mean()), float(b.mean()), resampled, confidence, len(a))


def paired_permutation(
    gold: Gold,
    pred_a: Labels,
    pred_b: Labels,
    metric: Metric = "f1",
    *,
    scheme: str | Scheme = "BIO",
    n_resamples: int = 10_000,
    random_state: int | np.random.Generator = 0,
) -> Comparison:
    """Paired permutation test over samples (approximate randomisation), which gives no interval.

    Parameters and errors are those of :func:`paired_bootstrap`.

    Examples
    --------
    >>> gold, a, b = [["A"]] * 12, [["A"]] * 12, [["A"]] * 4 + [["B"]] * 8
    >>> result = paired_permutation(gold, a, b, "accuracy", n_resamples=5000)
    >>> round(result.difference, 4), result.p_value < 0.02
    (0.6667, True)
    """
    systems = _systems(gold, pred_a, pred_b, metric, scheme)
    whole(1).check("n_resamples", n_resamples)
    seed.check("random_state", random_state)
    resampled = systems.permutation(np.random.default_rng(random_state), n_resamples)
    score_a, score_b = systems.scores()
    extreme = np.abs(resampled) >= abs(score_a - score_b) - _TIE
    return Comparison(
        test="paired permutation",
        score_a=score_a,
        score_b=score_b,
        p_value=_p_value(extreme),
        interval=None,
        confidence=None,
        n=len(gold),
    )


def mcnemar(gold: Gold, pred_a: Labels, pred_b: Labels) -> Comparison:
    """Exact McNemar test over positions.

    Parameters
    ----------
    gold, pred_a, pred_b : list of lists of labels
        A gold entry may be None (skipped) or a set of allowed labels.

    Returns
    -------
    Comparison
        Of the token accuracies, without an interval.

    Raises
    ------
    DataError
        If lengths differ or no position is annotated.

    Examples
    --------
    >>> result = mcnemar([["A"] * 6], [["A"] * 6], [["B"] * 6])
    >>> result.difference, result.p_value
    (1.0, 0.03125)
    """
    from scipy.stats import binomtest

    # Both lists are None at the same places: where gold is.
    right_a, right_b = (
        np.array([v for sample in samples for v in sample if v is not None], dtype=np.bool_)
        for samples in (
            accuracy.verdicts(gold, pred_a, "pred_a"),
            accuracy.verdicts(gold, pred_b, "pred_b"),
        )
    )
    only_a = int(np.sum(right_a & ~right_b))
    only_b = int(np.sum(right_b & ~right_a))
    one_right = only_a + only_b
    return Comparison(
        test="McNemar",
        score_a=float(right_a.mean()),
        score_b=float(right_b.mean()),
        p_value=float(binomtest(only_a, one_right, 0.5).pvalue) if one_right else 1.0,
        interval=None,
        confidence=None,
        n=len(right_a),
    )


def paired_t_test(
    scores_a: ArrayLike, scores_b: ArrayLike, *, confidence: float = 0.95
) -> Comparison:
    """Paired t-test on scores of the same samples or folds.

    Folds of one cross-validation share training data, so their scores are not independent and the
    p-value is too small; samples of one test set are better.

    Parameters
    ----------
    scores_a, scores_b : sequence of float
        Score of each sample or fold; at least two.
    confidence : float, default=0.95
        Level of the interval of the difference.

    Returns
    -------
    Comparison
        Of the mean scores.

    Raises
    ------
    DataError
        If the scores are not two equally long lists of at least two finite numbers, or all
        differences are the same number other than 0.

    Examples
    --------
    >>> result = paired_t_test([0.8, 0.9, 0.7, 0.9], [0.7, 0.7, 0.6, 0.7])
    >>> round(result.difference, 4), round(result.p_value, 4)
    (0.15, 0.0138)
    """
    from scipy.stats import ttest_rel

    number(above=0, below=1).check("confidence", confidence)
    a, b = _paired_numbers(scores_a, scores_b, "scores")
    differences = a - b
    if np.ptp(differences) <= _TIE:
        if abs(differences[0]) > _TIE:
            raise DataError(
                "all differences of the scores are equal, so their variance is 0 and t is not "
                "defined: use paired_permutation, or more samples"
            )
        p_value, interval = 1.0, (0.0, 0.0)
    else:
        result = ttest_rel(a, b)
        p_value = float(result.pvalue)
        limits = result.confidence_interval(confidence)
        interval = (float(limits.low), float(limits.high))
    return Comparison(
        test="paired t-test",
        score_a=float(a.mean()),
        score_b=float(b.mean()),
        p_value=p_value,
        interval=interval,
        confidence=confidence,
        n=len(a),
    )


def _paired_numbers(
    values_a: ArrayLike, values_b: ArrayLike, what: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two lists of as many finite numbers, at least two."""
    a, b = (as_array(values, np.float64, what) for values in (values_a, values_b))
    if a.ndim != 1 or a.shape != b.shape or len(a) < 2:
        raise DataError(
            f"{what} have shapes {a.shape} and {b.shape}: expected two lists of the same length, "
            "at least 2"
        )
    finite = np.isfinite(a) & np.isfinite(b)
    if not finite.all():
        one = what.removesuffix("s")
        raise DataError(f"sample {int(np.argmin(finite))} has a {one} that is not finite")
    return a, b


def _systems(
    gold: Gold, pred_a: Labels, pred_b: Labels, metric: Metric, scheme: str | Scheme
) -> _Counted | _Called:
    """Both systems as the metric needs them."""
    check_samples(gold, pred_a, "pred_a")
    check_samples(gold, pred_b, "pred_b")
    if len(gold) < 2:
        raise DataError("one sample cannot be resampled: expected at least 2 samples")
    systems = ((pred_a, "pred_a"), (pred_b, "pred_b"))
    (one_of("f1", "accuracy") | function).check("metric", metric)
    if callable(metric):
        return _Called(metric, [*gold, *gold], [*pred_a, *pred_b])
    if metric == "f1":
        # Gold entries that are no labels are refused by the tag scheme.
        counts = [c.T for c in spans.counts_of_systems(gold, systems, scheme)]
        parts = [2 * correct for correct, _, _ in counts]
        wholes = [predicted + support for _, predicted, support in counts]
    else:
        counts = [accuracy.sample_counts(gold, pred, name).T for pred, name in systems]
        parts, wholes = ([c[i] for c in counts] for i in (0, 1))
    return _Counted(np.stack(parts), np.stack(wholes))


class _Counted:
    """Systems whose score is the sum of `parts` over the sum of `wholes`, both (2, n).

    The score is 0 where nothing is counted.
    """

    def __init__(self, parts: NDArray[np.int64], wholes: NDArray[np.int64]) -> None:
        self._parts, self._wholes = parts, wholes

    def scores(self) -> tuple[float, float]:
        """Scores of A and of B on all samples."""
        score_a, score_b = _ratio(self._parts.sum(axis=1), self._wholes.sum(axis=1))
        return float(score_a), float(score_b)

    def bootstrap(self, rng: np.random.Generator, size: int) -> NDArray[np.float64]:
        """Differences of the scores on samples drawn with replacement."""
        (part_a, part_b), (whole_a, whole_b) = self._parts, self._wholes
        if (whole_a == whole_b).all():  # fewer numbers, so more samples with the same ones
            part, whole = _drawn_sums(np.column_stack([part_a - part_b, whole_a]), rng, size).T
            return _ratio(part, whole)
        rows = np.column_stack([part_a, whole_a, part_b, whole_b])
        part_a, whole_a, part_b, whole_b = _drawn_sums(rows, rng, size).T
        return _ratio(part_a, whole_a) - _ratio(part_b, whole_b)

    def permutation(self, rng: np.random.Generator, size: int) -> NDArray[np.float64]:
        """Differences of the scores after exchanges."""
        (part_a, part_b), (whole_a, whole_b) = self._parts, self._wholes
        moves, times = _groups(np.column_stack([part_b - part_a, whole_b - whole_a]))
        moved = np.zeros((2, size))
        for move, n in zip(moves, times, strict=True):
            if move.any():
                moved += np.multiply.outer(move, rng.binomial(n, 0.5, size))
        as_a = _ratio(part_a.sum() + moved[0], whole_a.sum() + moved[1])
        return as_a - _ratio(part_b.sum() - moved[0], whole_b.sum() - moved[1])


class _Called:
    """Systems that are scored by a function of lists of samples: A's, then B's, 2n in all."""

    def __init__(
        self, metric: Callable[[Any, Any], float], gold: list[Any], pool: list[Any]
    ) -> None:
        self._metric, self._gold, self._pool = metric, gold, pool
        self._n = len(gold) // 2

    def scores(self) -> tuple[float, float]:
        """Scores of A and of B on all samples."""
        score_a, score_b = self._score(np.arange(2 * self._n).reshape(2, self._n))
        return float(score_a), float(score_b)

    def bootstrap(self, rng: np.random.Generator, size: int) -> NDArray[np.float64]:
        """Differences of the scores on samples drawn with replacement."""

        def drawn(block: int) -> NDArray[np.float64]:
            samples = rng.integers(0, self._n, size=(block, self._n))
            return self._score(samples) - self._score(samples + self._n)

        return np.concatenate([drawn(block) for block in _blocks(size, self._n)])

    def permutation(self, rng: np.random.Generator, size: int) -> NDArray[np.float64]:
        """Differences of the scores after exchanges."""
        samples = np.arange(self._n)

        def drawn(block: int) -> NDArray[np.float64]:
            exchange = self._n * rng.integers(0, 2, size=(block, self._n))
            return self._score(samples + exchange) - self._score(samples + self._n - exchange)

        return np.concatenate([drawn(block) for block in _blocks(size, self._n)])

    def _score(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        values = [
            self._metric([self._gold[i] for i in r], [self._pool[i] for i in r]) for r in rows
        ]
        scores = as_array(values, np.float64, "scores of the metric", (len(rows),))
        if not np.isfinite(scores).all():
            raise DataError("the metric returned a number that is not finite on a resample")
        return scores


def _drawn_sums(rows: NDArray[Any], rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    """Sums (size, k) of n of the n `rows` (n, k), drawn with replacement."""
    from trellis.kernels.resampling import drawn_sums

    n, k = rows.shape
    distinct, times = _groups(rows)
    many = times >= _MANY
    few = np.zeros((int(times[~many].sum()), 4), rows.dtype)  # the kernel adds up four columns
    few[:, :k] = np.repeat(distinct[~many], times[~many], axis=0)
    chances = np.append(times[many], len(few)) / n
    often = distinct[many].astype(np.float64)
    state = rng.integers(0, 2**64, 1, np.uint64)
    sums = np.zeros((size, 4))
    first = 0
    for block in _blocks(size, len(chances)):
        drawn = rng.multinomial(n, chances, block)
        part = sums[first : first + block]
        part[:, :k] = drawn[:, :-1].astype(np.float64) @ often
        if len(few):
            drawn_sums(few, np.ascontiguousarray(drawn[:, -1]), state, part)
        first += block
    return sums[:, :k]


def _groups(rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Distinct rows of a table (n, k), and how many rows are like each of them."""
    low = rows.min(axis=0)
    if rows.dtype.kind == "i":
        shape = [int(s) for s in rows.max(axis=0) - low + 1]
        if math.prod(shape) < 2**62:  # one number for each row, which is sorted sooner
            key = np.zeros(len(rows), np.int64)
            for i, length in enumerate(shape):
                key = key * length + (rows[:, i] - low[i])
            keys, times = np.unique(key, return_counts=True)
            return np.column_stack(np.unravel_index(keys, shape)) + low, times
    distinct, times = np.unique(rows, axis=0, return_counts=True)
    return distinct, times


def _blocks(size: int, n: int) -> list[int]:
    """Sizes of parts of `size` resamples of n numbers each that fit into the memory."""
    block = max(1, _BLOCK // n)
    return [min(block, size - start) for start in range(0, size, block)]


def _ratio(part: NDArray[Any], whole: NDArray[Any]) -> NDArray[np.float64]:
    """Quotients; 0 where nothing is counted."""
    quotient = np.zeros(len(part))
    np.divide(part, whole, out=quotient, where=whole > 0)
    return quotient


def _bootstrapped(
    score_a: float, score_b: float, resampled: NDArray[np.float64], confidence: float, n: int
) -> Comparison:
    """What the differences on resamples say of the scores."""
    difference = score_a - score_b
    extreme = np.abs(resampled - difference) >= abs(difference) - _TIE
    low, high = np.quantile(resampled, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Comparison(
        test="paired bootstrap",
        score_a=score_a,
        score_b=score_b,
        p_value=_p_value(extreme),
        interval=(float(low), float(high)),
        confidence=confidence,
        n=n,
    )


def _p_value(extreme: NDArray[np.bool_]) -> float:
    return float((1 + extreme.sum()) / (1 + len(extreme)))
