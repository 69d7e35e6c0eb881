"""The concave-convex procedure: plain, with recycled bounds, with adaptive precision, with both.

    python -m benchmarks.cccp [--pairs 20] [--known 0.25] [--rounds 3]

Frame pairs of cell migration of which a share of the objects is annotated: events are drawn at
random, and their objects are known. All begin at the same weights and end by the same rule.
«Bounds» is how often the maxima of all samples were computed. Plain is the procedure of Yu and
Joachims: each round is solved anew, to full precision. Each way is run with the cutting planes of
the publications, which ask at the solution of the master problem (step 1), and with ours, which ask
a part of the way to it (step 0.2). Ratios are to plain with the same step, formed in each
repetition, by turns: median (range).
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np

from benchmarks.side_by_side import Times, one_core, ratio, table
from studies.datasets import load_cells
from trellis.problems.partial import PartialObjective
from trellis.solvers.cccp import CCCPResult, PlaneSurrogate, minimise_cccp
from trellis.solvers.perceptron_partial import partial_perceptron
from trellis.tracking import FramePair, PairAnnotation, TrackingModel

VARIANTS = {  # bounds recycling, adaptive precision
    "plain": (False, False),
    "recycled": (True, False),
    "adaptive": (False, True),
    "both": (True, True),
}
STEPS = (1.0, 0.2)


def partly(pair: FramePair, share: float, rng: np.random.Generator) -> FramePair:
    """Keep the annotation of a share of the objects; events are kept whole."""
    assert pair.annotation is not None
    sources, targets = set(pair.source.ids.tolist()), set(pair.target.ids.tolist())
    links = pair.annotation.links
    groups: dict[int, list[tuple[int, int, str]]] = {}
    for link in links:
        groups.setdefault(link[0], []).append(link)
    linked = {b for _, b, _ in links}
    kept = [group for group in groups.values() if rng.random() < share]
    gone = [i for i in sorted(sources - set(groups)) if rng.random() < share]
    new = [j for j in sorted(targets - linked) if rng.random() < share]
    note = PairAnnotation(tuple(link for group in kept for link in group), tuple(gone), tuple(new))
    return replace(pair, annotation=note)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--known", type=float, default=0.25, help="share of the objects")
    parser.add_argument("--l2", type=float, default=1.0)
    parser.add_argument("--tol", type=float, default=1e-3, help="precision of the last rounds")
    parser.add_argument("--rounds", type=int, default=3, help="repetitions")
    args = parser.parse_args()
    one_core()
    rng = np.random.default_rng(0)
    pairs = [partly(pair, args.known, rng) for pair in load_cells("cellmigration")[: args.pairs]]
    problem = TrackingModel().learning_problems({"": pairs})[""]
    objective = PartialObjective(problem, "bridge")
    start = partial_perceptron(problem, passes=10, seed=0)
    ways = [(step, name) for step in STEPS for name in VARIANTS]
    cpu: dict[tuple[float, str], list[float]] = {way: [] for way in ways}
    wall: dict[tuple[float, str], list[float]] = {way: [] for way in ways}
    found: dict[tuple[float, str], CCCPResult] = {}
    for _ in range(args.rounds):
        for way in ways:
            recycle, adaptive = VARIANTS[way[1]]
            clocks = time.process_time(), time.perf_counter()
            surrogate = PlaneSurrogate(
                objective.penalty, objective.reward, l2=args.l2, recycle=recycle,
                reward_below=True, step=way[0],
            )  # fmt: skip
            found[way] = minimise_cccp(
                surrogate, start, first_tol=0.1 if adaptive else args.tol, tol=args.tol,
                eta=args.tol,
            )  # fmt: skip
            cpu[way].append(time.process_time() - clocks[0])
            wall[way].append(time.perf_counter() - clocks[1])
            print(*way, f"{cpu[way][-1]:.2f} s", found[way].objective, flush=True)
    rows = []
    for way, result in found.items():
        plain = way[0], "plain"
        times = Times(way[1], cpu[way])
        rows.append(
            [
                f"{way[0]:g}", way[1], f"{result.objective:.2f}", str(len(result.rounds)),
                str(result.n_planes), f"{result.n_planes / found[plain].n_planes:.2f}",
                f"{times.median:.2f}", f"{Times(way[1], wall[way]).median:.2f}",
                ratio(Times("plain", cpu[plain]), times), result.stop_reason,
            ]
        )  # fmt: skip
    header = [
        "step", "", "objective", "rounds", "bounds", "of plain", "CPU s", "wall s", "plain takes",
        "end",
    ]  # fmt: skip
    print("\n" + table(header, rows))


if __name__ == "__main__":
    main()
