"""Threads: how much faster two are than one, with the same bits, and what a batch costs in score.

    python -m benchmarks.threads            # about 10 minutes on two cores

Mini-batch SGD on CoNLL-2000 chunking (22 labels) for several batch sizes: seconds of a pass with
one and with two threads by turns, whether the weights are the same bit by bit, and F1 on the test
set after the usual 12 passes, at the default rate (timed passes have their own). Then one L-BFGS
run of some iterations likewise (observed states, as CRFsuite has them, and all), and the lock-free
mode, whose result is not reproducible.
"""

from __future__ import annotations

import os
import statistics
from functools import partial
from typing import Any

import numpy as np

from benchmarks.options import begin
from benchmarks.side_by_side import Seconds, Table, alternate, ratio
from studies.datasets import load
from trellis import ChainCRF
from trellis.evaluation import span_scores
from trellis.problems import Weights


def same(a: Weights, b: Weights) -> str:
    equal = all(np.array_equal(x, y) for x, y in zip(a.arrays(), b.arrays(), strict=True))
    return "same bits" if equal else "DIFFERENT"


FIXED = {"l2": 1.0, "encoding": "given", "averaged": False, "random_state": 0}
"""What is not told of a setting, so that passes are what they were whatever the defaults are."""


def main() -> None:
    args = begin(
        __doc__,
        pin=False,
        rounds=(5, 1),
        passes=(6, 2, "passes of a timed fit"),
        iterations=(15, 3, "L-BFGS iterations"),
    )
    if len(os.sched_getaffinity(0)) < 2:
        print("this machine lets the process use one core only: no gain to be seen")
    data = load("conll2000")
    gold = data.test.label_lists()

    def f1(**options: Any) -> str:
        model = ChainCRF(data.features, **FIXED, **options).fit(data.train)
        return f"{100 * span_scores(gold, model.predict(data.test), 'BIO').f1:.2f}"

    def spent(model: ChainCRF) -> tuple[float, Weights]:
        """Seconds of a pass, and the weights."""
        return statistics.mean(record.seconds for record in model.history_), model.weights_

    def compare(**options: Any) -> list[str | float]:
        """Train with one and two threads by turns."""

        def fit(n_jobs: int) -> ChainCRF:
            model = ChainCRF(data.features, tol=-1.0, n_jobs=n_jobs, **FIXED, **options)
            return model.fit(data.train)

        few = {**options, "max_passes": 1}
        ChainCRF(data.features, n_jobs=2, **FIXED, **few).fit(data.train[:20])  # loads the kernels
        runs = {n: partial(fit, n) for n in (1, 2)}
        kept = [run.kept for run in alternate(runs, args.rounds, keep=spent)]
        one, two = (Seconds(seconds for seconds, _ in fits) for fits in kept)
        weights = [fits[-1][1] for fits in kept]
        bits = "not reproducible" if options.get("lock_free") else same(*weights)
        return [min(one), min(two), ratio(one, two), bits]

    table = Table(
        "mini-batches and L-BFGS, one thread and two", "solver", "one thread, s a pass",
        "two, s a pass", "one / two", "weights", "F1 after 12 passes",
    )  # fmt: skip
    for size, batches in ((None, (16, 32, 64)), (5.5, (32, 64, 128))):
        name = f"SGD, n' = {size or 'whole'}"
        for batch in batches:
            options = {"piece_size": size, "batch_size": batch}
            timed = compare(max_passes=args.passes, learning_rate=0.1, **options)
            table.add(f"{name}, batch {batch}", *timed, f1(**options))
        table.add(f"{name}, batch 1", "", "", "", "", f1(piece_size=size))
    timed = compare(lock_free=True, learning_rate=0.1, max_passes=args.passes)
    table.add("SGD, lock-free", *timed, f1(lock_free=True, n_jobs=2))
    for states in ("observed", "all"):
        timed = compare(solver="lbfgs", states=states, max_passes=args.iterations)
        table.add(f"L-BFGS, states {states}", *timed, "")
    table.show()


if __name__ == "__main__":
    main()
