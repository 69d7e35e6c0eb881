"""One round of active learning: how long an annotator waits between two questions.

    python -m benchmarks.active_step [--patches 660] [--steps 8] [--profile]

The pool are patches of cell migration, t of which are annotated from the beginning; weights begin
where a few perceptron passes over these end. A round is ``query`` and ``tell``: one perceptron pass
over all that is annotated, and the uncertainty of all that is left. The original authors report
less than 9 s a round for 660 patches. Strategies take their rounds by turns; seconds are medians
(range).
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import statistics
import time
from dataclasses import replace

import numpy as np

from benchmarks.side_by_side import one_core, table
from studies.datasets import load_cells
from trellis.cheap import ActiveLearner
from trellis.tracking import FramePair, PairAnnotation, TrackingModel, patchify

STRATEGIES = ("best-vs-second", "best-vs-worst", "scoring", "random")


def patches_of(n: int) -> list[FramePair]:
    """About n patches of all frame pairs, the last ones left out."""
    pairs = load_cells("cellmigration")
    sources = sum(len(pair.source) for pair in pairs)
    for objects in np.geomspace(1.5, 0.5, 12) * sources / n:
        found = patchify(pairs, objects=objects)
        if len(found) >= n:
            return found[:n]
    raise ValueError(f"there are not {n} patches")


class Contest:
    """One learner and the seconds of its rounds."""

    def __init__(self, patches: list[FramePair], t: int, strategy: str) -> None:
        self.truth = [pair.annotation or PairAnnotation() for pair in patches]
        known = set(np.random.default_rng(0).permutation(len(patches))[:t].tolist())
        self.pool = [
            pair if i in known else replace(pair, annotation=None) for i, pair in enumerate(patches)
        ]
        begun = TrackingModel(solver="perceptron", max_iter=3, random_state=0)
        start = begun.fit(self.pool).weights_
        self.learner = ActiveLearner(TrackingModel(), strategy, start=start, random_state=0)
        self.cpu: list[float] = []
        self.wall: list[float] = []
        self.step()  # prepares the pool
        self.cpu, self.wall = [], []

    def step(self) -> None:
        """Ask and learn."""
        cpu, wall = time.process_time(), time.perf_counter()
        i = self.learner.query(self.pool)
        self.learner.tell(i, self.truth[i])
        self.cpu.append(time.process_time() - cpu)
        self.wall.append(time.perf_counter() - wall)


def seconds(values: list[float]) -> str:
    return f"{statistics.median(values):.3f} ({min(values):.3f}–{max(values):.3f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--patches", type=int, default=660)
    parser.add_argument("--steps", type=int, default=8, help="rounds that are timed")
    parser.add_argument("--annotated", type=int, nargs="+", default=[10, 100, 300])
    parser.add_argument("--profile", action="store_true", help="where the time goes")
    args = parser.parse_args()
    one_core()
    patches = patches_of(args.patches)
    objects = sum(len(pair.source) for pair in patches) / len(patches)
    print(f"{len(patches)} patches of {objects:.0f} objects a frame\n")
    rows = []
    for t in args.annotated:
        contests = {name: Contest(patches, t, name) for name in STRATEGIES}
        for _ in range(args.steps):
            for contest in contests.values():
                contest.step()
        for name, contest in contests.items():
            rows.append([str(t), name, seconds(contest.cpu), seconds(contest.wall)])
            print(*rows[-1], flush=True)
        if args.profile:
            profile = cProfile.Profile()
            profile.enable()
            for _ in range(3):
                contests["best-vs-second"].step()
            profile.disable()
            pstats.Stats(profile).sort_stats("tottime").print_stats(12)
    print("\n" + table(["annotated", "strategy", "CPU s a round", "wall s a round"], rows))


if __name__ == "__main__":
    main()
