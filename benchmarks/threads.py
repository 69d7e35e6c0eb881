"""Threads: how much faster two are than one, with the same bits, and what a batch costs in score.

    python -m benchmarks.threads            # about 10 minutes on two cores

Mini-batch SGD on CoNLL-2000 chunking (22 labels) for several batch sizes: seconds of a pass with
one and with two threads by turns, whether the weights are the same bit by bit, and F1 on the test
set after the usual 12 passes. Then one L-BFGS run of some iterations likewise (observed states, as
CRFsuite has them, and all), and the lock-free mode, whose result is not reproducible.
"""

from __future__ import annotations

import argparse
import os

import numpy as np

from benchmarks.side_by_side import alternate, ratio, table
from studies.datasets import load
from trellis import ChainCRF
from trellis.evaluation import span_scores
from trellis.problems import Weights
from trellis.warmup import warmup


def same(a: Weights, b: Weights) -> str:
    equal = all(np.array_equal(x, y) for x, y in zip(a.arrays(), b.arrays(), strict=True))
    return "same bits" if equal else "DIFFERENT"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--passes", type=int, default=6, help="passes of a timed fit")
    arguments.add_argument("--iterations", type=int, default=15, help="L-BFGS iterations")
    args = arguments.parse_args()
    if len(os.sched_getaffinity(0)) < 2:
        raise SystemExit("this machine lets the process use one core only")
    warmup()
    data = load("conll2000")
    gold = data.test.label_lists()

    def f1(model: ChainCRF) -> str:
        return f"{100 * span_scores(gold, model.predict(data.test), 'BIO').f1:.2f}"

    def compare(name: str, **options: object) -> list[str]:
        """Train with one and two threads by turns; seconds are those of the passes alone."""
        spent: dict[str, list[float]] = {"one": [], "two": []}
        fitted: dict[str, ChainCRF] = {}

        def run(key: str, threads: int) -> None:
            model = ChainCRF(data.features, random_state=0, tol=-1.0, n_jobs=threads, **options)
            fitted[key] = model.fit(data.train)
            spent[key].append(sum(r.seconds for r in model.history_))

        alternate({"one": lambda: run("one", 1), "two": lambda: run("two", 2)}, args.rounds)
        one, two = (type("T", (), {"seconds": spent[k]}) for k in ("one", "two"))
        n = len(fitted["one"].history_)
        bits = (
            "not reproducible"
            if options.get("lock_free")
            else same(fitted["one"].weights_, fitted["two"].weights_)
        )
        return [
            name, f"{min(spent['one']) / n:.3f}", f"{min(spent['two']) / n:.3f}",
            ratio(one, two), bits,
        ]  # fmt: skip

    rows = []
    for size, batches in ((None, (16, 32, 64)), (5.5, (32, 64, 128))):
        for batch in batches:
            options = {"piece_size": size, "batch_size": batch, "learning_rate": 0.1}
            row = compare(
                f"SGD, n' = {size or 'whole'}, batch {batch}", max_passes=args.passes, **options
            )
            full = ChainCRF(data.features, piece_size=size, batch_size=batch, random_state=0)
            rows.append([*row, f1(full.fit(data.train))])
        full = ChainCRF(data.features, piece_size=size, random_state=0).fit(data.train)
        rows.append([f"SGD, n' = {size or 'whole'}, batch 1", "", "", "", "", f1(full)])
    row = compare("SGD, lock-free", lock_free=True, learning_rate=0.1, max_passes=args.passes)
    free = ChainCRF(data.features, lock_free=True, n_jobs=2, random_state=0).fit(data.train)
    rows.append([*row, f1(free)])
    for states in ("observed", "all"):
        row = compare(
            f"L-BFGS, states {states}", solver="lbfgs", states=states, max_passes=args.iterations
        )
        rows.append([*row, ""])
    header = ["", "one thread, s a pass", "two, s", "one / two", "weights", "F1 after 12 passes"]
    print(table(header, rows))


if __name__ == "__main__":
    main()
