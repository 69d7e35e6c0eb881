"""What learning an ensemble of experts costs, over the number of experts and over the length.

    python -m benchmarks.experts             # a few minutes
    python -m benchmarks.experts --large     # also 50 experts on a million tokens, all methods

Answers of experts are drawn at random (20 labels). Sizes of one line are run by turns; the ratio
to half the size is formed in each round, so a line that is straight shows 2. The methods that
``AutoCombiner`` tries, and it as a whole, are measured on these labels and on spans written as BIO
tags.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.options import begin
from benchmarks.side_by_side import Seconds, Table, alternate, peak, ratio
from trellis.evaluation import paired_bootstrap, paired_permutation
from trellis.experts import (
    AutoCombiner,
    ExpertOutputs,
    FollowPerturbedLeader,
    ForwardStepwise,
    LogLinearVote,
    MajorityVote,
    Rover,
    WeightedMajority,
)
from trellis.experts.combiner import Combiner
from trellis.experts.methods import new_method, tried_names

Ints = NDArray[np.int64]

N_LABELS = 20
METHODS: dict[str, Callable[[], Combiner]] = {
    "WMWP, by position": lambda: WeightedMajority(tie="position"),
    "WMWP, by expert": lambda: WeightedMajority(tie="expert"),
    "WMWP, by label": lambda: WeightedMajority(tie="label"),
    "WMWP by label, H_CV": lambda: WeightedMajority("cross-validation", tie="label"),
    "FPL, by expert": lambda: FollowPerturbedLeader(tie="expert", random_state=0),
}
LARGE_METHODS: dict[str, Callable[[], Combiner]] = METHODS | {
    "plain vote": MajorityVote,
    "ROVER": Rover,
    "SLE from the vote": lambda: ForwardStepwise(random_state=0),
    "SLE from nothing, 100 rounds": lambda: ForwardStepwise(start="empty", random_state=0),
    "log-linear": LogLinearVote,
}


def draw(n_samples: int, length: int, p: int) -> tuple[ExpertOutputs, list[list[str]]]:
    """Experts that err at 5 to 30 % of the positions."""
    rng = np.random.default_rng(0)
    n = n_samples * length
    gold = rng.integers(0, N_LABELS, n).astype(np.int32)
    codes = np.repeat(gold[:, None], p, axis=1)
    for j, rate in enumerate(np.linspace(0.05, 0.3, p)):
        wrong = np.flatnonzero(rng.random(n) < rate)
        codes[wrong, j] = rng.integers(0, N_LABELS, len(wrong))
    labels = tuple(f"l{c:02d}" for c in range(N_LABELS))
    names = tuple(f"expert {j + 1}" for j in range(p))
    said = ExpertOutputs(np.arange(0, n + 1, length), codes, labels, names)
    return said, said.lists(gold)


def draw_spans(n_samples: int, length: int, p: int) -> tuple[ExpertOutputs, list[list[str]]]:
    """BIO labels, 15 % of them within spans of four types, and experts that err at 5 to 30 %.

    An expert misses a span, gives it another type or moves one of its ends; it also finds some
    where there are none.
    """
    rng = np.random.default_rng(0)
    kinds = ("LOC", "MISC", "ORG", "PER")
    labels = (*(f"B-{kind}" for kind in kinds), *(f"I-{kind}" for kind in kinds), "O")
    n = n_samples * length
    free = np.zeros(n_samples, np.int64)  # where the next span of a sample may begin
    begins, sizes = [], []
    for t in range(length):
        here = np.flatnonzero((free <= t) & (rng.random(n_samples) < 0.085))
        size = np.minimum(rng.choice([1, 2, 3, 4], len(here), p=[0.4, 0.35, 0.15, 0.1]), length - t)
        free[here] = t + size
        begins.append(here * length + t)
        sizes.append(size)
    first = np.concatenate(begins)
    order = np.argsort(first)
    first, size = first[order], np.concatenate(sizes)[order]
    kind = rng.integers(0, len(kinds), len(first))

    def written(first: Ints, size: Ints, kind: Ints) -> Ints:
        codes = np.full(n, len(labels) - 1)
        ends = np.cumsum(size)
        inside = np.repeat(first - (ends - size), size) + np.arange(ends[-1])
        codes[inside] = np.repeat(kind, size) + len(kinds)
        codes[first] = kind
        return codes

    codes = np.empty((n, p), np.int32)
    for j, rate in enumerate(np.linspace(0.05, 0.3, p)):
        wrong = rng.random(len(first)) < rate
        which = rng.integers(0, 3, len(first))  # missed, of another type, moved
        other = np.where(wrong & (which == 1), rng.integers(0, len(kinds), len(first)), kind)
        by = np.where(rng.random(len(first)) < 0.5, -1, 1) * (wrong & (which == 2))
        at_start = rng.random(len(first)) < 0.5
        low = np.maximum(first + by * at_start, first - first % length)
        high = np.minimum(first + size + by * ~at_start, first - first % length + length)
        kept = ~(wrong & (which == 0)) & (low < high)
        found = rng.integers(0, n, int(rate / 4 * len(first)))
        codes[:, j] = written(
            np.concatenate([found, low[kept]]),
            np.concatenate([np.ones_like(found), (high - low)[kept]]),
            np.concatenate([rng.integers(0, len(kinds), len(found)), other[kept]]),
        )
    names = tuple(f"expert {j + 1}" for j in range(p))
    said = ExpertOutputs(np.arange(0, n + 1, length), codes, labels, names)
    return said, said.lists(written(first, size, kind))


def line(what: str, sizes: dict[int, tuple[int, int, int]], rounds: int) -> None:
    """One row a method: seconds at each size, and the ratio to the size before."""
    problems = {size: draw(*numbers) for size, numbers in sizes.items()}
    table = Table(
        f"seconds to fit, {what}", "method", *(str(size) for size in sizes),
        *(f"{b} / {a} (range)" for a, b in itertools.pairwise(sizes)),
    )  # fmt: skip
    for name, make in METHODS.items():
        make().fit(*draw(300, 5, 3))  # warm
        runs = {
            size: lambda make=make, data=data: make().fit(*data) for size, data in problems.items()
        }
        times = [run.wall for run in alternate(runs, rounds)]
        ratios = [ratio(b, a) for a, b in itertools.pairwise(times)]
        table.add(name, *(t.median for t in times), *ratios)
    table.show()


def main() -> None:
    args = begin(
        __doc__,
        large=(False, True, "also 50 experts, 1 M tokens"),
        samples=(4000, 40),
        large_samples=(45_000, 100),
        rounds=(5, 1),
        large_rounds=(3, 1),
    )
    n = args.samples
    by_experts = {p: (n, 20, p) for p in (10, 20, 40)}
    line(f"{n} samples of 20 positions, p experts", by_experts, args.rounds)
    by_length = {length: (n, length, 10) for length in (20, 40, 80)}
    line(f"{n} samples of l positions, 10 experts", by_length, args.rounds)
    if args.large:
        large(args.large_samples, args.large_rounds)


def large(n_samples: int, rounds: int) -> None:
    """50 experts on sentences of 22 tokens: fit, predict, and tests of the best against another."""
    said, gold = draw(n_samples, 22, 50)
    title = f"50 experts, {22 * n_samples:,} positions"
    table = Table(f"seconds, {title}", "method", "fit (range)", "predict (range)")
    for name, make in LARGE_METHODS.items():
        make().fit(*draw(300, 5, 3))  # warm
        (fit,) = alternate({name: lambda make=make: make().fit(said, gold)}, rounds)
        fitted = make().fit(said, gold)
        (predict,) = alternate({name: lambda fitted=fitted: fitted.predict(said)}, rounds)
        table.add(name, fit.wall, predict.wall)
    table.show()
    del fitted
    memory = Table(f"peak memory so far, GB, {title}", "answers", "GB")
    for what, drawn, scheme in (("20 labels", draw, None), ("BIO tags", draw_spans, "BIO")):
        tried(f"{title}, {what}", drawn, n_samples, scheme, rounds)
        memory.add(what, peak())
    memory.show()
    table = Table(f"seconds of tests, {title}", "test", "F1 (range)", "accuracy (range)")
    # As chunks: the first label is outside, the others begin and continue ten kinds.
    tags = ["O", *(f"{'IB'[k % 2]}-{k // 2}" for k in range(1, N_LABELS))]
    spans = replace(said, labels=tuple(tags))
    code_of = {label: code for code, label in enumerate(said.labels)}
    right = spans.lists(np.array([code_of[y] for sample in gold for y in sample]))
    best, next_best = (spans.lists(said.codes[:, j]) for j in (0, 1))
    for test in (paired_bootstrap, paired_permutation):
        runs = {
            metric: lambda test=test, metric=metric: test(right, best, next_best, metric)
            for metric in ("f1", "accuracy")
        }
        table.add(test.__name__, *(run.wall for run in alternate(runs, rounds)))
    table.show()


def tried(
    title: str,
    drawn: Callable[[int, int, int], tuple[ExpertOutputs, list[list[str]]]],
    n_samples: int,
    scheme: str | None,
    rounds: int,
) -> None:
    """Every method that ``AutoCombiner`` tries, all of them together, and itself."""
    said, gold = drawn(n_samples, 22, 50)
    few = drawn(300, 5, 3)
    table = Table(f"CPU seconds, {title}", "method", "fit (range)", "predict (range)")
    sums: list[list[Seconds]] = [[], []]
    makers: dict[str, Callable[[], Any]] = {
        name: lambda name=name: new_method(name, "labels", scheme, 0)
        for name in tried_names("labels", scheme, "span-f1" if scheme else "hamming")
    }
    for name, make in makers.items():
        make().fit(*few).predict(few[0])  # warm
        runs = measured(make, said, gold, rounds)
        for times, all_times in zip(runs, sums, strict=True):
            all_times.append(times)
        table.add(name, *runs)
    fit, predict = (Seconds(map(sum, zip(*times, strict=True))) for times in sums)
    table.add("all of them", fit, predict)
    table.add("all of them, fit and predict", Seconds(map(sum, zip(fit, predict, strict=True))), "")
    AutoCombiner().fit(*few).predict_confidence(few[0])
    table.add("auto", *measured(AutoCombiner, said, gold, rounds))
    auto = AutoCombiner().fit(said, gold)
    (sure,) = alternate({"auto": lambda: auto.predict_confidence(said)}, rounds)
    table.add("auto: predict_confidence", "", sure.cpu)
    table.show()


def measured(
    make: Callable[[], Any], said: ExpertOutputs, gold: list[list[str]], rounds: int
) -> tuple[Seconds, Seconds]:
    """CPU seconds to fit and to predict."""
    (fit,) = alternate({"": lambda: make().fit(said, gold)}, rounds, keep=lambda result: result)
    fitted = fit.kept[-1]
    (predict,) = alternate({"": lambda: fitted.predict(said)}, rounds)
    return fit.cpu, predict.cpu


if __name__ == "__main__":
    main()
