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
gold spans of each sample) and never looks at labels again.

References
----------
B. Efron and R. Tibshirani, *An introduction to the bootstrap*, 1993;
P. Koehn, *Statistical significance tests for machine translation evaluation*, 2004;
T. Berg-Kirkpatrick, D. Burkett, D. Klein, *An empirical investigation of statistical significance
in NLP*, 2012; E. W. Noreen, *Computer-intensive methods for testing hypotheses*, 1989;
Q. McNemar, *Note on the sampling error of the difference between correlated proportions*, 1947.
"""

from __future__ import annotations

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

__all__ = ["Comparison", "mcnemar", "paired_bootstrap", "paired_permutation", "paired_t_test"]

Metric = str | Callable[[Any, Any], float]
_Scorer = Callable[[NDArray[np.int64]], NDArray[np.float64]]
_BLOCK = 2**21  # indices drawn at a time: bounds the memory
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
    score = _scorer(gold, pred_a, pred_b, metric, scheme)
    seed.check("random_state", random_state)
    rng = np.random.default_rng(random_state)
    n = len(gold)

    def draw(size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        samples = rng.integers(0, n, size=(size, n))
        return samples, samples + n

    resampled = _resampled(score, draw, n_resamples, n)
    score_a, score_b = _on_all(score, n)
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
    score = _scorer(gold, pred_a, pred_b, metric, scheme)
    seed.check("random_state", random_state)
    rng = np.random.default_rng(random_state)
    n = len(gold)
    positions = np.arange(n)

    def draw(size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        exchange = rng.integers(0, 2, size=(size, n))
        return positions + n * exchange, positions + n * (1 - exchange)

    resampled = _resampled(score, draw, n_resamples, n)
    score_a, score_b = _on_all(score, n)
    extreme = np.abs(resampled) >= abs(score_a - score_b) - _TIE
    return Comparison(
        test="paired permutation",
        score_a=score_a,
        score_b=score_b,
        p_value=_p_value(extreme),
        interval=None,
        confidence=None,
        n=n,
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
    a, b = (as_array(s, np.float64, "scores") for s in (scores_a, scores_b))
    if a.ndim != 1 or a.shape != b.shape or len(a) < 2:
        raise DataError(
            f"scores have shapes {a.shape} and {b.shape}: expected two lists of the same length, "
            "at least 2"
        )
    finite = np.isfinite(a) & np.isfinite(b)
    if not finite.all():
        raise DataError(f"sample {int(np.argmin(finite))} has a score that is not finite")
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


def _scorer(
    gold: Gold, pred_a: Labels, pred_b: Labels, metric: Metric, scheme: str | Scheme
) -> _Scorer:
    """Make the function from resamples (rows of indices into A's samples, then B's) to scores."""
    check_samples(gold, pred_a, "pred_a")
    check_samples(gold, pred_b, "pred_b")
    if len(gold) < 2:
        raise DataError("one sample cannot be resampled: expected at least 2 samples")
    systems = ((pred_a, "pred_a"), (pred_b, "pred_b"))
    (one_of("f1", "accuracy") | function).check("metric", metric)
    if callable(metric):
        return _score_by_call(metric, [*gold, *gold], [*pred_a, *pred_b])
    if metric == "f1":
        # Gold entries that are no labels are refused by the tag scheme, hence the «ignore».
        counts = [spans.sample_counts(gold, pred, scheme, name) for pred, name in systems]
        correct, predicted, support = np.concatenate(counts).T
        return _score_by_counts(2 * correct, predicted + support)
    counts = [accuracy.sample_counts(gold, pred, name) for pred, name in systems]
    right, annotated = np.concatenate(counts).T
    return _score_by_counts(right, annotated)


def _score_by_counts(part: NDArray[np.int64], whole: NDArray[np.int64]) -> _Scorer:
    """Sum of `part` over sum of `whole`; 0 where nothing is counted."""
    part, whole = np.ascontiguousarray(part), np.ascontiguousarray(whole)

    def score(rows: NDArray[np.int64]) -> NDArray[np.float64]:
        scores = np.zeros(len(rows))
        total = whole[rows].sum(axis=1)
        np.divide(part[rows].sum(axis=1), total, out=scores, where=total > 0)
        return scores

    return score


def _score_by_call(
    metric: Callable[[Any, Any], float], gold: list[Any], pool: list[Any]
) -> _Scorer:
    def score(rows: NDArray[np.int64]) -> NDArray[np.float64]:
        values = [metric([gold[i] for i in r], [pool[i] for i in r]) for r in rows]
        scores = as_array(values, np.float64, "scores of the metric", (len(rows),))
        if not np.isfinite(scores).all():
            raise DataError("the metric returned a number that is not finite on a resample")
        return scores

    return score


def _on_all(score: _Scorer, n: int) -> tuple[float, float]:
    """Scores of A and of B on all samples."""
    score_a, score_b = score(np.arange(2 * n).reshape(2, n))
    return float(score_a), float(score_b)


def _resampled(
    score: _Scorer,
    draw: Callable[[int], tuple[NDArray[np.int64], NDArray[np.int64]]],
    n_resamples: int,
    n: int,
) -> NDArray[np.float64]:
    """Differences of the scores of A and of B on resamples of n samples, drawn block by block."""
    whole(1).check("n_resamples", n_resamples)
    block = max(1, _BLOCK // n)
    sizes = [min(block, n_resamples - start) for start in range(0, n_resamples, block)]
    draws = (draw(size) for size in sizes)
    return np.concatenate([score(as_a) - score(as_b) for as_a, as_b in draws])


def _p_value(extreme: NDArray[np.bool_]) -> float:
    return float((1 + extreme.sum()) / (1 + len(extreme)))
