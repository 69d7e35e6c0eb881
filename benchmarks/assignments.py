"""Assignments of six kinds of events: time of every step, and of every method of inference.

    python -m benchmarks.assignments [--sizes 100 300 1000 3000] [--rounds 5]

Simulated cells of the crowded laboratory, n a frame. Weights are learned from another movie, or
normal random numbers, which make little sense and hard problems. «Own» is our search, «quick» the
same with the little effort that learning gives to it, «two best» the best and the second best, «LP»
HiGHS with the linear relaxation first, «ILP» ``scipy.optimize.milp`` at once. «Proven» is the share
of frame pairs that a search proves best without HiGHS, «gap» what is not known of the value, on
average. Our searches are timed without the checks of their input, which LP and ILP include. With
random weights HiGHS may take minutes and joins in up to 100 objects only.

Milliseconds are CPU (wall) of one frame pair, medians; ratios are of CPU, by turns: median (range).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.options import begin
from benchmarks.side_by_side import Run, Seconds, Table, alternate, ratio, short
from trellis.datasets import simulate_cells
from trellis.structures.assignment import AssignmentSpace, best_assignment, search
from trellis.tracking import EVENTS, TrackingModel

MOST_RANDOM = 100  # objects, with random weights and HiGHS


def milliseconds(cpu: Seconds, wall: Seconds) -> str:
    return f"{short(1000 * cpu.median)} ({short(1000 * wall.median)})"


def steps(model: TrackingModel, n: int, rounds: int) -> list[str]:
    """Hypotheses, features and inference of one frame pair."""
    pair = simulate_cells(n, 2, lab="b", seed=1)[0]
    made = model.hypothesis_space_
    hypotheses = made.hypotheses(pair, annotated=False)
    matrix = made.matrix(pair, hypotheses)
    covers = hypotheses.covers(len(pair.source))
    ends = np.array([0, len(covers)]), np.array([0, len(pair.source) + len(pair.target)])

    def infer() -> object:
        return best_assignment(AssignmentSpace(covers, *ends), matrix @ model.weights_)

    runs: dict[str, Callable[[], object]] = {
        "hypotheses": lambda: made.hypotheses(pair, annotated=False),
        "features": lambda: made.matrix(pair, hypotheses),
        "inference": infer,
        "predict": lambda: model.predict([pair]),
    }
    times = [milliseconds(run.cpu, run.wall) for run in alternate(runs, rounds)]
    return [f"{len(pair.source)} + {len(pair.target)}", f"{len(covers):,}", *times]


def methods(model: TrackingModel, n: int, kind: str, rounds: int, pairs: int) -> list[str]:
    """Our search beside HiGHS, on the same problems one by one."""
    rng = np.random.default_rng(0)
    measured: dict[str, list[Run]] = {}
    proven = {"quick": 0, "own": 0, "two": 0}
    gaps = []
    for seed in range(10, 10 + pairs):
        pair = simulate_cells(n, 2, lab="b", seed=seed)[0]
        hypotheses = model.hypothesis_space_.hypotheses(pair, annotated=False)
        rows = np.array([0, len(pair.source) + len(pair.target)])
        covers = hypotheses.covers(len(pair.source))
        space = AssignmentSpace(covers, np.array([0, len(covers)]), rows)
        weights = model.weights_ if kind == "learned" else rng.normal(size=len(model.weights_))
        scores = model.hypothesis_space_.matrix(pair, hypotheses) @ weights
        kernel = partial(search, space, scores, np.full(len(scores), -1, np.int8))
        own: dict[str, Callable[[], Any]] = {
            "quick": partial(kernel, two=False, exact=False),
            "own": partial(kernel, two=False),
            "two": partial(kernel, two=True),
        }
        runs = dict(own)
        if kind == "learned" or n <= MOST_RANDOM:
            runs["LP"] = partial(best_assignment, space, scores, method="lp")
            runs["ILP"] = partial(best_assignment, space, scores, method="ilp")
        for run in alternate(runs, rounds):
            measured.setdefault(run.name, []).append(run)
        for name, infer in own.items():
            chosen, _, status, bound, _ = infer()
            proven[name] += bool((status[0, : 2 if name == "two" else 1] == 1).all())
            if name == "own":
                value = float(scores[chosen].sum())
                best = value if status[0, 0] == 1 else float(bound[0])
                gaps.append((best - value) / max(1.0, abs(best)))
        if "ILP" in runs:
            exact = runs["ILP"]().values[0]
            if not value - 1e-6 <= exact <= best + 1e-6:
                raise AssertionError(f"the search found {value} to {best}, HiGHS {exact}")

    def joined(name: str, clock: str = "cpu") -> Seconds:
        return Seconds(s for run in measured[name] for s in getattr(run, clock))

    def cell(name: str) -> str:
        return milliseconds(joined(name), joined(name, "wall")) if name in measured else "–"

    def more(name: str) -> str:
        return ratio(joined(name), joined("own")) if name in measured else "–"

    shares = [f"{count} / {pairs}" for count in proven.values()]
    return [
        str(n), kind, shares[0], cell("quick"), shares[1], f"{100 * statistics.mean(gaps):.2g} %",
        cell("own"), shares[2], cell("two"), cell("LP"), cell("ILP"), more("LP"), more("ILP"),
    ]  # fmt: skip


def main() -> None:
    args = begin(
        __doc__,
        sizes=([100, 300, 1000, 3000], [20]),
        cells=(200, 30, "of each frame of the movie to learn from"),
        rounds=(5, 2),
        pairs=(5, 2, "frame pairs of each size"),
    )
    model = TrackingModel(events=EVENTS)
    model.fit(simulate_cells(args.cells, 11, lab="b", seed=0))
    table = Table(
        "Steps for one frame pair, learned weights; ms CPU (wall)", "objects", "hypotheses",
        "hypotheses, ms", "features, ms", "inference, ms", "predict, ms",
    )  # fmt: skip
    for n in args.sizes:
        table.add(*steps(model, n, args.rounds))
    table.show()
    table = Table(
        "Inference for one frame pair; ms CPU (wall)", "objects", "weights", "quick: proven", "ms",
        "own: proven", "mean gap", "ms", "two best: proven", "ms", "LP, ms", "ILP, ms", "LP / own",
        "ILP / own",
    )  # fmt: skip
    for n in args.sizes:
        for kind in ("learned", "random"):
            few = 2 if n > 1000 else args.rounds
            table.add(*methods(model, n, kind, few, args.pairs))
    table.show()


if __name__ == "__main__":
    main()
