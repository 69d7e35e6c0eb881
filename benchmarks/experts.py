"""What learning an ensemble of experts costs, over the number of experts and over the length.

    python -m benchmarks.experts             # a few minutes
    python -m benchmarks.experts --large     # also 50 experts on a million tokens

Answers of experts are drawn at random (20 labels). Sizes of one line are run by turns; the ratio
to half the size is formed in each round, so a line that is straight shows 2.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from benchmarks.options import begin
from benchmarks.side_by_side import Table, alternate, ratio
from trellis.experts import ExpertOutputs, FollowPerturbedLeader, WeightedMajority

N_LABELS = 20
METHODS: dict[str, Callable[[], WeightedMajority | FollowPerturbedLeader]] = {
    "WMWP, by position": lambda: WeightedMajority(tie="position"),
    "WMWP, by expert": lambda: WeightedMajority(tie="expert"),
    "WMWP, by label": lambda: WeightedMajority(tie="label"),
    "WMWP by label, H_CV": lambda: WeightedMajority("cross-validation", tie="label"),
    "FPL, by expert": lambda: FollowPerturbedLeader(tie="expert", random_state=0),
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
    )
    n = args.samples
    by_experts = {p: (n, 20, p) for p in (10, 20, 40)}
    line(f"{n} samples of 20 positions, p experts", by_experts, args.rounds)
    by_length = {length: (n, length, 10) for length in (20, 40, 80)}
    line(f"{n} samples of l positions, 10 experts", by_length, args.rounds)
    if args.large:
        said, gold = draw(args.large_samples, 22, 50)
        title = f"seconds to fit, 50 experts, {22 * args.large_samples:,} positions"
        table = Table(title, "method", "seconds (range)")
        for name, make in METHODS.items():
            (run,) = alternate({name: lambda make=make: make().fit(said, gold)}, 3)
            table.add(name, run.wall)
        table.show()


if __name__ == "__main__":
    main()
