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

from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks.options import begin
from benchmarks.side_by_side import Table, alternate, ratio
from studies.datasets import load_cells
from trellis.problems.partial import PartialObjective
from trellis.solvers import Solution
from trellis.solvers.cccp import PlaneSurrogate, minimise_cccp
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
    args = begin(
        __doc__,
        pairs=(20, 3),
        known=(0.25, 0.5, "share of the objects"),
        l2=(1.0, 1.0),
        tol=(1e-3, 1e-2, "precision of the last rounds"),
        rounds=(3, 1, "repetitions"),
    )
    rng = np.random.default_rng(0)
    pairs = [partly(pair, args.known, rng) for pair in load_cells("cellmigration")[: args.pairs]]
    problem = TrackingModel(prior=None, knots=7).learning_problems({"": pairs})[""]
    objective = PartialObjective(problem, "bridge")
    start = partial_perceptron(problem, passes=10, seed=0)

    def minimise(step: float, recycle: bool, adaptive: bool) -> Solution:
        surrogate = PlaneSurrogate(
            objective.penalty, objective.reward, l2=args.l2, recycle=recycle, reward_below=True,
            step=step,
        )  # fmt: skip
        first = 0.1 if adaptive else args.tol
        return minimise_cccp(surrogate, start, first_tol=first, tol=args.tol, eta=args.tol)

    table = Table(
        f"{len(pairs)} frame pairs, {100 * args.known:g} % of the objects known", "step", "way",
        "objective", "rounds", "bounds", "of plain", "CPU s", "wall s", "plain takes", "end",
    )  # fmt: skip
    ways = {
        (step, name): partial(minimise, step, *variant)
        for step in STEPS
        for name, variant in VARIANTS.items()
    }
    runs = {run.name: run for run in alternate(ways, args.rounds, keep=lambda result: result)}
    for (step, name), run in runs.items():
        plain, result = runs[step, "plain"], run.kept[-1]
        table.add(
            f"{step:g}", name, f"{result.objective:.2f}", len(result.rounds), result.n_planes,
            result.n_planes / plain.kept[-1].n_planes, run.cpu.median, run.wall.median,
            ratio(plain.cpu, run.cpu), result.stop_reason,
        )  # fmt: skip
    table.show()


if __name__ == "__main__":
    main()
