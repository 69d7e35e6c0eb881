"""What learning an ensemble of experts costs, over the number of experts and over the length.

    python -m benchmarks.experts             # a few minutes
    python -m benchmarks.experts --large     # also 50 experts on a million tokens

Answers of experts are drawn at random (20 labels). Sizes of one line are run by turns; the ratio
to half the size is formed in each round, so a line that is straight shows 2.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable

import numpy as np

from benchmarks.side_by_side import alternate, one_core, ratio, table
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


def line(sizes: list[tuple[int, int, int]], rounds: int) -> list[list[str]]:
    """One row a method: seconds at each size, and the ratio to the size before."""
    problems = {size: draw(*size) for size in sizes}
    rows = []
    for name, make in METHODS.items():
        make().fit(*draw(300, 5, 3))  # warm
        runs = {
            str(size): lambda make=make, data=data: make().fit(*data)
            for size, data in problems.items()
        }
        times = alternate(runs, rounds)
        ratios = [ratio(b, a) for a, b in itertools.pairwise(times)]
        rows.append([name, *(f"{t.median:.3f}" for t in times), *ratios])
        print(*rows[-1], flush=True)
    return rows


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--large", action="store_true", help="also 50 experts, 1 M tokens")
    arguments.add_argument("--rounds", type=int, default=5)
    args = arguments.parse_args()
    one_core()
    print("seconds to fit, 4,000 samples of 20 positions, p experts; doubled p\n")
    by_experts = line([(4000, 20, p) for p in (10, 20, 40)], args.rounds)
    print("\nseconds to fit, 4,000 samples of l positions, 10 experts; doubled l\n")
    by_length = line([(4000, length, 10) for length in (20, 40, 80)], args.rounds)
    for title, rows, sizes in (
        ("p", by_experts, ("10", "20", "40")), ("l", by_length, ("20", "40", "80")),
    ):  # fmt: skip
        header = ["method", *(f"{title} = {size}" for size in sizes)]
        steps = [f"{b} / {a} (range)" for a, b in itertools.pairwise(sizes)]
        print("\n" + table([*header, *steps], rows))
    if args.large:
        said, gold = draw(45_000, 22, 50)
        rows = []
        for name, make in METHODS.items():
            (times,) = alternate({name: lambda make=make: make().fit(said, gold)}, 3)
            rows.append(
                [name, f"{times.median:.1f} s ({min(times.seconds):.1f}–{max(times.seconds):.1f})"]
            )
        print("\n50 experts, 45,000 samples, 990,000 positions\n")
        print(table(["method", "fit (range)"], rows))


if __name__ == "__main__":
    main()
