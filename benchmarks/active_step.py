"""One round of active learning: how long an annotator waits between two questions.

    python -m benchmarks.active_step [--patches 660] [--steps 8]

The pool are patches of cell migration, t of which are annotated from the beginning; weights begin
where a few perceptron passes over these end. A round is ``query`` and ``tell``: one perceptron pass
over all that is annotated, and the uncertainty of all that is left. The original authors report
less than 9 s a round for 660 patches. Strategies take their rounds by turns; seconds are medians
(range).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from benchmarks.options import begin
from benchmarks.side_by_side import Table, alternate
from studies.datasets import load_cells
from trellis.cheap import ActiveLearner
from trellis.tracking import FramePair, PairAnnotation, TrackingModel, patchify

STRATEGIES = ("best-vs-second", "best-vs-worst", "scoring", "random")


def patches_of(n: int) -> list[FramePair]:
    """About n patches of all frame pairs, the last ones left out."""
    pairs = load_cells("cellmigration")
    sources = sum(len(pair.source) for pair in pairs)
    for objects in np.geomspace(1.5, 0.5, 12) * sources / n:
        patches = patchify(pairs, objects=objects)
        if len(patches) >= n:
            return patches[:n]
    raise ValueError(f"there are not {n} patches")


def rounds_of(patches: list[FramePair], t: int, strategy: str) -> Callable[[], None]:
    """Ask and learn, with a learner that has prepared its pool."""
    truth = [pair.annotation or PairAnnotation() for pair in patches]
    known = set(np.random.default_rng(0).permutation(len(patches))[:t].tolist())
    pool = [
        pair if i in known else replace(pair, annotation=None) for i, pair in enumerate(patches)
    ]
    begun = TrackingModel(solver="perceptron", max_iter=3, random_state=0)
    start = begun.fit(pool).weights_
    learner = ActiveLearner(TrackingModel(), strategy, start=start, random_state=0)

    def step() -> None:
        i = learner.query(pool)
        learner.tell(i, truth[i])

    step()  # prepares the pool
    return step


def main() -> None:
    args = begin(
        __doc__,
        patches=(660, 20),
        steps=(8, 2, "rounds that are timed"),
        annotated=([10, 100, 300], [3]),
    )
    patches = patches_of(args.patches)
    objects = sum(len(pair.source) for pair in patches) / len(patches)
    title = f"{len(patches)} patches of {objects:.0f} objects a frame"
    table = Table(title, "annotated", "strategy", "CPU s a round", "wall s a round")
    for t in args.annotated:
        steps = {name: rounds_of(patches, t, name) for name in STRATEGIES}
        for run in alternate(steps, args.steps):
            table.add(t, run.name, run.cpu, run.wall)
    table.show()


if __name__ == "__main__":
    main()
