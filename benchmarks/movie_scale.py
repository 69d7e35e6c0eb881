"""A movie of a hundred thousand objects in 200 frames: seconds and memory on one core.

    python -m benchmarks.movie_scale                  # 3,000, 30,000 and 100,000 objects
    python -m benchmarks.movie_scale --objects 100000

Cells are simulated, about as many in the last frame as in the first, and 5 % of the detections are
left out at random, so that there are gaps to close. A file of CSV is read, the model learns from
the movie itself, of which nothing is annotated, and tracks it, with default settings. The gap is by
how much a better solution of the assignment problem might exceed the one that was found, relative
to its score. Whole tracks are as in :mod:`benchmarks.missed_cells`. Seconds are CPU seconds of one
core, on a machine that others use too; memory is the peak so far, sizes ascending.
"""

from __future__ import annotations

import csv
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.options import begin
from benchmarks.side_by_side import Table, alternate, peak
from benchmarks.tracking_peers import Pairs
from benchmarks.tracking_scores import counts, scores
from studies.datasets import drop_detections
from trellis.datasets import LABS, simulate_cells
from trellis.tracking import TrackingModel, annotated_events, read_detections

LAB = replace(LABS["a"], death=0.018, over_segmentation=0.0, under_segmentation=0.0)
"""Cells die as often as they divide, and what is detected is one cell, or none."""
MISSED = 0.05


def write(pairs: Pairs, path: Path) -> None:
    """The objects as a file of CSV."""
    columns = sorted(pairs[0].source.columns)
    frames = [pair.source for pair in pairs] + [pairs[-1].target]
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["sequence", "frame", "id", "x", "y", *columns])
        for t, objects in enumerate(frames):
            each = (objects.ids, *objects.position.T, *(objects[name] for name in columns))
            name = pairs[0].sequence
            rows.writerows([name, t, *row] for row in zip(*(a.tolist() for a in each), strict=True))


def measure(size: int, frames: int, path: Path, table: Table) -> None:
    """Read, learn, track and score a movie of about so many objects."""
    movie = simulate_cells(round(size / frames / (1 - MISSED)), frames, lab=LAB, seed=0)
    pairs = drop_detections(movie, MISSED, seed=0)
    write(pairs, path)
    model = TrackingModel()
    done: dict[str, Any] = {}

    def read() -> None:
        done["pairs"] = read_detections(path)

    def track() -> None:
        done["result"] = model.predict(done["pairs"])

    steps = {"read": read, "learn": lambda: model.fit(done["pairs"]), "track": track}
    runs = alternate(steps, 1)
    result = done["result"]
    truth = annotated_events(pairs)[0]
    every = {(seen.sequence, seen.frame, seen.id): 0 for seen in result.objects}
    found = (f"{score:.2f}" for score in scores(counts(every, truth, result.links))[:3])
    gap = (result.bound - result.score) / abs(result.score)
    table.add(
        len(result.objects), len(truth), *(run.cpu[0] for run in runs), peak(), f"{gap:.1e}",
        *found,
    )  # fmt: skip


def main() -> None:
    args = begin(
        __doc__,
        objects=([3_000, 30_000, 100_000], [300, 600], "objects of the movies"),
        frames=(200, 10, "frames of the movies"),
    )
    first = simulate_cells(20, 5, lab=LAB, seed=1)
    TrackingModel(max_iter=2).fit(first).predict(first)  # loads the kernels
    table = Table(
        "A movie of many objects", "objects", "links", "reading, CPU s", "learning, CPU s",
        "tracking, CPU s", "peak, GB", "gap", "link F1", "division F1", "whole tracks, %",
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        for size in sorted(args.objects):
            measure(size, args.frames, Path(folder, "objects.csv"), table)
    table.show()


if __name__ == "__main__":
    main()
