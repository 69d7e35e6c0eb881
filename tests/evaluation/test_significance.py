"""Paired tests: against enumeration, samples one by one, scipy, and under the null hypothesis."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from trellis.errors import DataError
from trellis.evaluation import (
    Comparison,
    mcnemar,
    paired_bootstrap,
    paired_permutation,
    paired_t_test,
    significance,
    span_scores,
    token_accuracy,
)
from trellis.evaluation.accuracy import sample_counts as accuracy_counts
from trellis.evaluation.significance import paired_bootstrap_means
from trellis.evaluation.spans import sample_counts

TAGS = ["O", "B-X", "I-X", "B-Y"]
RESAMPLING = [paired_bootstrap, paired_permutation]


def systems(seed: int, n: int, noise_a: float, noise_b: float) -> tuple[list, list, list]:
    """Random gold and two copies with some labels redrawn."""
    rng = np.random.default_rng(seed)
    gold = [[TAGS[k] for k in rng.integers(0, 4, size=rng.integers(1, 6))] for _ in range(n)]

    def noisy(noise: float) -> list[list[str]]:
        return [[TAGS[rng.integers(4)] if rng.random() < noise else g for g in s] for s in gold]

    return gold, noisy(noise_a), noisy(noise_b)


def f1(gold: list, predicted: list) -> float:
    return span_scores(gold, predicted).f1


def mean_length(gold: list, predicted: list) -> float:
    return float(np.mean([len(p) for p in predicted]))


def sample_by_sample(case: tuple[list, list, list], metric: str, exchange: bool) -> np.ndarray:
    """Differences of 20,000 resamples, each drawn as the definition says it."""
    gold, *systems = case
    if metric == "f1":
        counts = np.array([sample_counts(gold, pred, "BIO") for pred in systems])
        part, whole = 2 * counts[..., 0], counts[..., 1] + counts[..., 2]
    else:
        part, whole = np.moveaxis([accuracy_counts(gold, pred) for pred in systems], 2, 0)
    rng, n = np.random.default_rng(99), len(gold)
    differences = []
    for _ in range(20_000):
        if exchange:
            first = rng.integers(0, 2, n)
            rows, as_a, as_b = np.arange(n), first, 1 - first
        else:
            rows = rng.integers(0, n, n)
            as_a, as_b = np.zeros(n, int), np.ones(n, int)
        a, b = (part[k, rows].sum() / max(1, whole[k, rows].sum()) for k in (as_a, as_b))
        differences.append(a - b)
    return np.array(differences)


@pytest.mark.parametrize("many", [1, 5, 10**6])  # groups: all; some and the rest; none
@pytest.mark.parametrize("metric", ["f1", "accuracy"])
def test_groups_have_the_distribution_of_samples(
    metric: str, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(significance, "_MANY", many)
    case = systems(0, 60, 0.2, 0.35)
    wanted = sample_by_sample(case, metric, exchange=False)
    result = paired_bootstrap(*case, metric, n_resamples=20_000, confidence=0.9)
    spread = wanted.std()
    assert result.interval == pytest.approx(np.quantile(wanted, [0.05, 0.95]), abs=0.06 * spread)
    delta = result.difference
    p_value = np.mean(np.abs(wanted - delta) >= abs(delta) - 1e-12)
    assert result.p_value == pytest.approx(p_value, abs=0.015)


@pytest.mark.parametrize("metric", ["f1", "accuracy"])
def test_groups_are_exchanged_as_samples_are(metric: str) -> None:
    case = systems(2, 60, 0.2, 0.3)
    wanted = sample_by_sample(case, metric, exchange=True)
    result = paired_permutation(*case, metric, n_resamples=20_000)
    p_value = np.mean(np.abs(wanted) >= abs(result.difference) - 1e-12)
    assert 0.02 < p_value < 0.9
    assert result.p_value == pytest.approx(p_value, abs=0.015)


@pytest.mark.parametrize("test", RESAMPLING)
@pytest.mark.parametrize(("metric", "function"), [("f1", f1), ("accuracy", token_accuracy)])
def test_counts_give_what_recomputing_gives(
    test: Callable[..., Comparison], metric: str, function: Callable[..., float]
) -> None:
    case = systems(0, 12, 0.2, 0.5)
    by_counts = test(*case, metric, n_resamples=2000)
    by_call = test(*case, function, n_resamples=2000)
    assert by_counts.p_value == pytest.approx(by_call.p_value, abs=0.05)
    if by_counts.interval is not None:
        assert by_counts.interval == pytest.approx(by_call.interval, abs=0.05)
    assert by_counts.score_a == function(case[0], case[1])
    assert by_counts.score_b == function(case[0], case[2])
    assert by_counts.difference == by_counts.score_a - by_counts.score_b
    assert by_counts.n == 12


@pytest.mark.parametrize("many", [1, 2, 10**6])
def test_drawn_sums_against_all_resamples(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(significance, "_MANY", many)
    rows = np.array([[1, 0], [1, 0], [3, 5], [-2, 7]])
    exact = Counter(
        tuple(rows[list(draw)].sum(axis=0).tolist())
        for draw in itertools.product(range(4), repeat=4)
    )
    sums = significance._drawn_sums(rows, np.random.default_rng(1), 30_000)
    found = Counter(map(tuple, sums.astype(int).tolist()))
    assert set(found) <= set(exact)
    expected = np.array([*exact.values()]) * 30_000 / 4**4
    chi_squared = stats.chisquare([found[row] for row in exact], expected)
    assert chi_squared.pvalue > 1e-3


def test_rows_of_large_numbers_are_grouped_too() -> None:
    rows = np.array([[0, 0, 2**40], [2**40, 1, 0], [0, 0, 2**40], [0, 2**40, 0]])
    distinct, times = significance._groups(rows)
    assert dict(zip(map(tuple, distinct.tolist()), times.tolist(), strict=True)) == {
        (0, 0, 2**40): 2,
        (2**40, 1, 0): 1,
        (0, 2**40, 0): 1,
    }


@pytest.mark.parametrize("many", [1, 40])
def test_means_against_resamples_of_means(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(significance, "_MANY", many)
    rng = np.random.default_rng(3)
    a, b = rng.poisson(1.0, 200), rng.normal(0.9, 0.3, 200).round(1 if many == 1 else 6)
    result = paired_bootstrap_means(a, b, n_resamples=20_000, confidence=0.9)
    d = a - b
    wanted = d[rng.integers(0, 200, (20_000, 200))].mean(axis=1)
    low, high = np.quantile(wanted, [0.05, 0.95])
    assert result.interval == pytest.approx((low, high), abs=0.08 * wanted.std())
    p_value = np.mean(np.abs(wanted - d.mean()) >= abs(d.mean()))
    assert result.p_value == pytest.approx(p_value, abs=0.015)
    assert (result.score_a, result.score_b, result.n) == (a.mean(), b.mean(), 200)
    again = paired_bootstrap_means(a, b, n_resamples=20_000, confidence=0.9)
    assert again == result


def test_means_of_equal_numbers() -> None:
    result = paired_bootstrap_means([1, 2, 3], [1, 2, 3], n_resamples=10)
    assert (result.interval, result.p_value) == ((0.0, 0.0), 1.0)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([1], [1], "values have shapes"),
        ([1, 2], [1, 2, 3], "values have shapes"),
        ([1, np.inf], [1, 2], "sample 1 has a value that is not finite"),
    ],
)
def test_bad_means(a: list, b: list, message: str) -> None:
    with pytest.raises(DataError, match=message):
        paired_bootstrap_means(a, b)


def test_permutation_against_all_exchanges() -> None:
    gold, a, b = systems(4, 7, 0.1, 0.6)
    observed = abs(f1(gold, a) - f1(gold, b))
    extreme = []
    for exchange in itertools.product([False, True], repeat=len(gold)):
        as_a = [q if e else p for p, q, e in zip(a, b, exchange, strict=True)]
        as_b = [p if e else q for p, q, e in zip(a, b, exchange, strict=True)]
        extreme.append(abs(f1(gold, as_a) - f1(gold, as_b)) >= observed - 1e-12)
    exact = np.mean(extreme)
    assert 0.01 < exact < 0.5  # else the comparison would show nothing
    result = paired_permutation(gold, a, b, n_resamples=20_000)
    assert result.p_value == pytest.approx(exact, abs=0.02)


def test_bootstrap_against_all_resamples() -> None:
    gold, a, b = systems(1, 5, 0.1, 0.6)
    observed = f1(gold, a) - f1(gold, b)
    differences = np.array(
        [
            f1([gold[i] for i in draw], [a[i] for i in draw])
            - f1([gold[i] for i in draw], [b[i] for i in draw])
            for draw in itertools.product(range(5), repeat=5)
        ]
    )
    exact = np.mean(np.abs(differences - observed) >= abs(observed) - 1e-12)
    assert 0.01 < exact < 0.9
    result = paired_bootstrap(gold, a, b, n_resamples=20_000, confidence=0.8)
    assert result.p_value == pytest.approx(exact, abs=0.02)
    assert result.interval == pytest.approx(np.quantile(differences, [0.1, 0.9]), abs=0.03)
    assert result.confidence == 0.8


@pytest.mark.parametrize("test", RESAMPLING)
def test_p_values_are_uniform_without_and_small_with_a_difference(
    test: Callable[..., Comparison],
) -> None:
    equal = [
        test(*systems(s, 40, 0.3, 0.3), "accuracy", n_resamples=300).p_value for s in range(100)
    ]
    assert np.mean(np.array(equal) < 0.1) < 0.22
    assert 0.35 < np.mean(equal) < 0.65
    assert test(*systems(0, 40, 0.1, 0.6), n_resamples=999).p_value == 1 / 1000


def test_bootstrap_interval_agrees_with_the_normal_one() -> None:
    gold, a, b = systems(5, 300, 0.2, 0.3)
    gold, a, b = ([s[:1] for s in x] for x in (gold, a, b))  # one position each: a plain mean
    result = paired_bootstrap(gold, a, b, "accuracy", n_resamples=5000)
    d = np.array([float(p == g) - float(q == g) for g, p, q in zip(gold, a, b, strict=True)])
    half = 1.96 * d.std() / np.sqrt(len(d))
    assert result.interval == pytest.approx((d.mean() - half, d.mean() + half), abs=0.01)


@pytest.mark.parametrize("test", RESAMPLING)
def test_same_seed_same_bits(test: Callable[..., Comparison]) -> None:
    case = systems(2, 10, 0.2, 0.4)
    first = test(*case, n_resamples=500, random_state=3)
    assert test(*case, n_resamples=500, random_state=3) == first
    generator = np.random.default_rng(3)
    assert test(*case, n_resamples=500, random_state=generator) == first
    assert test(*case, n_resamples=500, random_state=4) != first


@pytest.mark.parametrize("test", RESAMPLING)
def test_blocks_draw_all_resamples(
    test: Callable[..., Comparison], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(significance, "_BLOCK", 35)  # 3 resamples of 10 samples at a time
    calls = []

    def metric(gold: list, predicted: list) -> float:
        calls.append(len(predicted))
        return f1(gold, predicted)

    test(*systems(0, 10, 0.1, 0.5), metric, n_resamples=100)
    assert calls == [10] * (2 * 100 + 2)  # both systems on each resample and on everything


@pytest.mark.parametrize("test", RESAMPLING)
def test_identical_systems_do_not_differ(test: Callable[..., Comparison]) -> None:
    gold, a, _ = systems(3, 8, 0.3, 0.3)
    result = test(gold, a, a, n_resamples=50)
    assert result.difference == 0.0
    assert result.p_value == 1.0


@pytest.mark.parametrize("test", RESAMPLING)
def test_spans_nowhere_score_zero(test: Callable[..., Comparison]) -> None:
    nothing = [["O"], ["O"], ["O"]]
    result = test(nothing, nothing, [["O"], ["B-X"], ["O"]], n_resamples=50)
    assert (result.score_a, result.score_b, result.p_value) == (0.0, 0.0, 1.0)


def test_accuracy_skips_what_is_not_annotated() -> None:
    gold = [["A", None], [None, None], [{"A", "B"}, "B"]]
    result = paired_bootstrap(gold, [["A", "B"]] * 3, [["B", "B"]] * 3, "accuracy", n_resamples=20)
    assert result.score_a == 1.0
    assert result.score_b == pytest.approx(2 / 3)


def test_scheme_is_passed_on() -> None:
    gold = [["B", "E"], ["S", "S"]]
    result = paired_permutation(gold, gold, [["S", "S"]] * 2, scheme="BMES", n_resamples=10)
    assert (result.score_a, result.score_b) == (1.0, pytest.approx(4 / 7))


def test_own_metric_may_compare_outputs_of_unequal_length() -> None:
    gold, a, b = [["A"]] * 3, [["A", "A"]] * 3, [["A"]] * 3
    assert paired_permutation(gold, a, b, mean_length, n_resamples=20).difference == 1.0


def test_mcnemar_against_the_binomial_distribution() -> None:
    gold = [["A"] * 10, ["A"] * 10]
    a = [["A"] * 9 + ["B"], ["A"] * 5 + ["B"] * 5]
    b = [["B"] * 7 + ["A"] * 3, ["A"] * 4 + ["B"] * 6]
    # only A right: 7 + 1 positions; only B right: 1
    result = mcnemar(gold, a, b)
    assert result.p_value == pytest.approx(2 * stats.binom.cdf(1, 9, 0.5))
    assert (result.score_a, result.score_b, result.n) == (14 / 20, 7 / 20, 20)
    assert mcnemar(gold, b, a).p_value == pytest.approx(result.p_value)
    assert result.interval is None


def test_mcnemar_skips_unannotated_and_accepts_sets() -> None:
    result = mcnemar([["A", None, {"A", "B"}]], [["A", "A", "B"]], [["B", "A", "C"]])
    assert (result.n, result.score_a, result.score_b) == (2, 1.0, 0.0)
    assert result.p_value == 0.5


def test_mcnemar_of_equal_systems() -> None:
    assert mcnemar([["A", "B"]], [["A", "A"]], [["A", "A"]]).p_value == 1.0


def test_t_test_against_scipy() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(1.0, 1.0, size=20), rng.normal(0.5, 1.0, size=20)
    result = paired_t_test(a, b, confidence=0.9)
    assert result.p_value == pytest.approx(stats.ttest_1samp(a - b, 0.0).pvalue)
    d = a - b
    half = stats.t.ppf(0.95, 19) * d.std(ddof=1) / np.sqrt(20)
    assert result.interval == pytest.approx((d.mean() - half, d.mean() + half))
    assert result.difference == pytest.approx(d.mean())
    assert (result.n, result.confidence) == (20, 0.9)


def test_t_test_of_equal_scores() -> None:
    result = paired_t_test([0.1, 0.2, 0.3], [0.1, 0.2, 0.3])
    assert (result.p_value, result.interval) == (1.0, (0.0, 0.0))


def test_text() -> None:
    with_interval = Comparison("paired t-test", 0.9, 0.8, 0.04, (0.01, 0.19), 0.95, 10)
    assert str(with_interval) == (
        "paired t-test (n = 10): A 0.9000, B 0.8000, A - B +0.1000 "
        "(95 % interval +0.0100 to +0.1900), p = 0.04"
    )
    without = Comparison("McNemar", 0.9, 0.8, 0.04, None, None, 10)
    assert str(without).endswith("A - B +0.1000, p = 0.04")


TWO = [["O"], ["O", "O"]]


@pytest.mark.parametrize("test", RESAMPLING)
@pytest.mark.parametrize(
    ("gold", "a", "b", "options", "message"),
    [
        ([], [], [], {}, "there are no samples"),
        ([["O"]], [["O"]], [["O"]], {}, "expected at least 2 samples"),
        (TWO, TWO[:1], TWO, {}, "2 samples in gold but 1 in pred_a"),
        (TWO, TWO, TWO[:1], {}, "2 samples in gold but 1 in pred_b"),
        (TWO, TWO, [["O"], ["O"]], {}, "sample 1 has 2 positions in gold but 1 in pred_b"),
        (TWO, TWO, [["O"], ["O", "X"]], {}, "sample 1 of pred_b, position 1: label 'X'"),
        (TWO, TWO, [["O"], ["O"]], {"metric": "accuracy"}, "sample 1 has 2 .* 1 in pred_b"),
        ([[None]] * 2, [["O"]] * 2, [["O"]] * 2, {"metric": "accuracy"}, "is annotated"),
        (TWO, TWO, TWO, {"metric": "bleu"}, "metric must be 'f1', 'accuracy' or a function"),
        (TWO, TWO, TWO, {"n_resamples": 0}, "n_resamples must be a positive integer"),
        (TWO, TWO, TWO, {"metric": lambda g, p: np.nan}, "metric returned .* not finite"),
    ],
)
def test_bad_input(test, gold, a, b, options, message) -> None:
    with pytest.raises(DataError, match=message):
        test(gold, a, b, **options)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95])
def test_bad_confidence(confidence: float) -> None:
    with pytest.raises(DataError, match="a number between 0 and 1"):
        paired_bootstrap(TWO, TWO, TWO, confidence=confidence)
    with pytest.raises(DataError, match="a number between 0 and 1"):
        paired_t_test([1, 2], [2, 4], confidence=confidence)


def test_bad_mcnemar() -> None:
    with pytest.raises(DataError, match="sample 1 has 2 positions in gold but 1 in pred_b"):
        mcnemar(TWO, TWO, [["O"], ["O"]])
    with pytest.raises(DataError, match="no position of gold is annotated"):
        mcnemar([[None]], [["A"]], [["A"]])


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([1.0], [2.0], "expected two lists of the same length, at least 2"),
        ([1.0, 2.0], [2.0, 3.0, 4.0], r"shapes \(2,\) and \(3,\)"),
        ([1.0, np.nan], [2.0, 3.0], "sample 1 has a score that is not finite"),
        ([0.2, 0.3], [0.1, 0.2], "all differences of the scores are equal"),
    ],
)
def test_bad_t_test(a: list[float], b: list[float], message: str) -> None:
    with pytest.raises(DataError, match=message):
        paired_t_test(a, b)
