"""From label images to scored tracks in one command, and the measures beside py-ctcmetrics.

    python -m benchmarks.from_images

Label images are written into folders as the Cell Tracking Challenge has them: the masks of the two
areas of the epidermis, and simulated cells in space. Then one command, ``trellis track SEG --ctc
RES --truth GT``, reads the images, measures the objects, learns, tracks, writes the masks of the
result and scores it: with ``--learn`` it learns from the true tracks of the other area or of a
second simulated movie («trained»), without it from the movie itself («untrained»). In «5 % missed»
objects are wiped off the images at random, of both movies; the truth still has them, and since a
track of the challenge has no gaps, tracks over gaps are split there into parts, each the parent of
the next.

TRA, DET, LNK and F1 are what the command says, of the files that it wrote py-ctcmetrics counts the
steps from the result to the truth (NS, FN, FP, ED, EA, EC) and TRA, DET and LNK, too. Seconds are
CPU seconds of the whole command, on a machine that others use too.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.options import begin
from benchmarks.side_by_side import Table
from benchmarks.tracking_peers import Pairs
from studies.datasets import data_folder, load_cells
from trellis.datasets import simulate_volume
from trellis.tracking import annotated_events, assemble_tracks, read_label_images

STEPS = ("NS", "FN", "FP", "ED", "EA", "EC")
MEASURES = ("TRA", "DET", "LNK")

Images = NDArray[np.uint16]


class Movie(NamedTuple):
    """Label images, whose labels are ids + 1, and the objects with their true links."""

    masks: Images
    pairs: Pairs


def movies(small: bool) -> Iterator[tuple[str, Movie, Movie]]:
    """Name, the movie to learn from and the movie to track."""
    with np.load(data_folder("celltracking") / "epidermis_masks.npz") as file:
        areas = [
            Movie(file[name], load_cells("epidermis", sequences=[name]))
            for name in ("epidermis_area1", "epidermis_area2")
        ]
    yield "epidermis", areas[0], areas[1]
    volumes = []
    for seed in (1, 2):
        sizes = (12, 6, (24, 60, 60)) if small else (60, 20, (48, 192, 192))
        drawn = simulate_volume(sizes[0], sizes[1], size=sizes[2], seed=seed)
        volumes.append(Movie(drawn.masks, read_label_images(drawn.masks, links=drawn.links)))
    yield "simulated, in space", volumes[0], volumes[1]


def wiped(masks: Images, share: float, seed: int) -> Images:
    """The images without some of the objects."""
    rng = np.random.default_rng(seed)
    left = []
    for mask in masks:
        keep = rng.random(int(mask.max()) + 1) >= share
        left.append(np.where(keep[mask], mask, 0))
    return np.array(left, np.uint16)


def write_images(folder: Path, prefix: str, images: Images) -> None:
    """Images as 16-bit TIFF."""
    import tifffile

    folder.mkdir(parents=True)
    for t, image in enumerate(images):
        tifffile.imwrite(folder / f"{prefix}{t:03}.tif", image)


def write_truth(folder: Path, movie: Movie, kept: Images | None = None) -> None:
    """True tracks, of what the images show: pixels hold tracks, and man_track.txt their parents.

    Objects that ``kept`` does not show are left out, and a track with a gap is split.
    """
    truth = assemble_tracks(movie.pairs, annotated_events(movie.pairs)[0])
    images, first = np.zeros_like(movie.masks), min(seen.frame for seen in truth.objects)
    track = {(seen.frame - first, seen.id): seen.track for seen in truth.objects}
    parent = {line.track: max(line.parent, 0) for line in truth.tracks}
    open_parts: dict[int, tuple[int, int]] = {}  # of a track: its latest part and last frame
    lines: dict[int, list[int]] = {}
    for t, mask in enumerate(movie.masks if kept is None else kept):
        for label in np.unique(mask[mask > 0]).tolist():
            number = track[t, label - 1]
            part, last = open_parts.get(number, (0, -1))
            if last < t - 1 or not part:
                before = part or open_parts.get(parent[number], (0, -1))[0]
                part = len(lines) + 1
                lines[part] = [part, t, t, before]
            open_parts[number] = part, t
            lines[part][2] = t
            images[t][mask == label] = part
    write_images(folder / "TRA", "man_track", images)
    text = "".join(f"{' '.join(map(str, line))}\n" for line in lines.values())
    (folder / "TRA" / "man_track.txt").write_text(text, encoding="utf-8")


def command(*words: object) -> tuple[str, float]:
    """What ``trellis track`` says, and its CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run(
        [sys.executable, "-m", "trellis", "track", *map(str, words)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if ended.returncode:
        raise RuntimeError(f"trellis track failed: {ended.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def told(text: str) -> dict[str, float]:
    """Measures, F1 and steps that the command printed."""
    lines = text.splitlines()
    found = {line.split()[0]: float(line.split()[3]) for line in lines if line.count("%") == 2}
    heads = next(i for i, line in enumerate(lines) if line.split()[:1] == ["TRA"])
    found |= dict(zip(lines[heads].split(), map(float, lines[heads + 1].split()), strict=True))
    for number, step in re.findall(r"(\d+) ([A-Z]{2})\b", text):
        found[step] = int(number)
    return found


def py_ctcmetrics(result: Path, truth: Path) -> dict[str, float] | None:
    """The same by py-ctcmetrics; None if it is not installed."""
    try:
        from ctc_metrics.scripts.evaluate import evaluate_sequence
    except ImportError:
        return None
    with contextlib.redirect_stdout(io.StringIO()):
        found: dict[str, Any] = evaluate_sequence(
            str(result), str(truth), metrics=list(MEASURES), threads=1
        )
    return {**{k: found[k] for k in MEASURES}, **{k: int(found[f"AOGM_{k}"]) for k in STEPS}}


def measure(folder: Path, name: str, train: Movie, test: Movie, share: float, table: Table) -> None:
    """Write the folders, run the command both ways, and compare."""
    write_images(folder / "SEG", "mask", wiped(test.masks, share, 0))
    write_truth(folder / "GT", test)
    write_truth(folder / "LEARN", train, wiped(train.masks, share, 1) if share else None)
    objects = sum(len(np.unique(mask)) - 1 for mask in wiped(test.masks, share, 0))
    for how, more in (("trained", ["--learn", folder / "LEARN" / "TRA"]), ("untrained", [])):
        result = folder / f"RES_{how}"
        text, seconds = command(folder / "SEG", "--ctc", result, "--truth", folder / "GT", *more)
        ours, theirs = told(text), py_ctcmetrics(result, folder / "GT")
        if theirs is None:
            beside = ["not installed", "not installed"]
        else:
            differ = sum(abs(int(ours[step]) - int(theirs[step])) for step in STEPS)
            beside = [" / ".join(f"{theirs[key]:.4f}" for key in MEASURES), str(differ)]
        table.add(
            f"{name}, {100 * share:g} % missed" if share else name, how, objects, seconds,
            *(f"{ours[key]:.4f}" for key in MEASURES),
            *(f"{ours[key]:.2f}" for key in ("links", "divisions")),
            ", ".join(f"{int(ours[step])} {step}" for step in STEPS), *beside,
        )  # fmt: skip


def main() -> None:
    args = begin(__doc__, missed=([0.0, 0.05], [0.0], "shares of objects that are wiped off"))
    table = Table(
        "Label images to scored tracks", "movie", "model", "objects", "command, CPU s", *MEASURES,
        "link F1", "division F1", "steps to the truth", "py-ctcmetrics: TRA / DET / LNK",
        "steps that differ",
    )  # fmt: skip
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as place:
        for name, train, test in movies(args.small):
            for share in args.missed:
                measure(Path(place, f"{name} {share}"), name, train, test, share, table)
    table.show()


if __name__ == "__main__":
    main()
