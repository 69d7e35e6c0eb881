"""What learning an ensemble of experts costs, over the number of experts and over the length.

    python -m benchmarks.experts             # a few minutes
    python -m benchmarks.experts --large     # also 50 experts on a million tokens, all methods

Answers of experts are drawn at random (20 labels). Sizes of one line are run by turns; the ratio
to half the size is formed in each round, so a line that is straight shows 2.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from benchmarks.options import begin
from benchmarks.side_by_side import Table, alternate, ratio
from trellis.evaluation import paired_bootstrap, paired_permutation
from trellis.experts import (
    ExpertOutputs,
    FollowPerturbedLeader,
    ForwardStepwise,
    LogLinearVote,
    MajorityVote,
    Rover,
    WeightedMajority,
)
from trellis.experts.combiner import Combiner

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


if __name__ == "__main__":
    main()
