"""Probabilities of links: whether they are honest, and whether they find the wrong links.

    python -m benchmarks.link_probabilities                    # ten minutes
    python -m benchmarks.link_probabilities --movies epidermis --thin 4

The movies, and what is annotated of them, are those of :mod:`benchmarks.few_links`: a model learns
from one part and tracks another. With «movie alone» there is nothing annotated: it learns from the
part that it tracks. T is the temperature that was chosen. «Expected» wrong
links are the sum of 1 − p; ECE is the mean distance of probability and share of right links over
the bins of the second table. Then, of all wrong links, the share that is among the 1 % and 5 % of
the links with the least probability; among the longest; and 1 % and 5 % are what looking anywhere
would find. The factor between guesses and T, one and a half, was chosen on the parts to learn from
and one simulated movie.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from benchmarks.few_links import Pairs, annotated, bare, movies
from benchmarks.options import begin
from benchmarks.side_by_side import Table
from trellis.arrays import Bools, Float64s
from trellis.tracking import Link, TrackingModel, annotated_events

EDGES = (0.0, 0.5, 0.7, 0.9, 0.95, 0.99, 0.999, 1.0)
PARTS = (0.01, 0.05)


def lengths(pairs: Pairs, links: list[Link]) -> Float64s:
    """How far apart linked objects are."""
    place = {}
    for pair in pairs:
        for frame, objects in ((pair.frame, pair.source), (pair.frame + 1, pair.target)):
            for i, at in zip(objects.ids.tolist(), objects.position, strict=True):
                place[pair.sequence, frame, i] = at
    steps = [
        place[link.sequence, link.frame_target, link.target_id]
        - place[link.sequence, link.frame, link.source_id]
        for link in links
    ]
    return np.linalg.norm(np.array(steps), axis=1)


def bins(p: Float64s, right: Bools) -> tuple[float, list[str]]:
    """Expected calibration error, and each bin: links, mean probability, share of right ones."""
    which = np.clip(np.searchsorted(EDGES, p, side="right") - 1, 0, len(EDGES) - 2)
    error, told = 0.0, []
    for k in range(len(EDGES) - 1):
        here = which == k
        if not here.any():
            told.append("none")
            continue
        said, true = float(p[here].mean()), float(right[here].mean())
        error += float(here.mean()) * abs(said - true)
        told.append(f"{100 * said:.1f} → {100 * true:.1f} ({here.sum():,})")
    return error, told


def found(order: Float64s, right: Bools) -> list[str]:
    """Share of all wrong links among those that come first, in per cent."""
    first = np.argsort(order, kind="stable")
    wrong = ~right[first]
    return [
        f"{100 * wrong[: int(np.ceil(part * len(wrong)))].sum() / max(wrong.sum(), 1):.1f}"
        for part in PARTS
    ]


def main() -> None:
    args = begin(
        __doc__,
        movies=(["cellmigration", "epidermis", "a", "b"], ["b"], "movies or laboratories"),
        thin=([1, 4], [1], "steps between frames of the real movies"),
        what=(["all", "50 links", "movie alone"], ["all", "movie alone"], "what is annotated"),
    )
    heads = [f"{100 * part:.0f} %: {how}" for how in ("least sure", "longest") for part in PARTS]
    honest = Table(
        "Wrong links, expected and found (ECE in per cent; share of the wrong links in per cent)",
        "movie", "annotated", "T", "links", "wrong", "expected", "ECE", *heads,
    )  # fmt: skip
    table = Table(
        "Probability → share of right links, per cent (number of links), by probability",
        "movie", "annotated",
        *(f"{100 * a:g} to {100 * b:g} %" for a, b in pairwise(EDGES)),
    )  # fmt: skip
    for name, train, test in movies(args.movies, args.thin, args.small):
        for what in args.what:
            alone = what == "movie alone"
            known = bare(test) if alone else annotated(train, what, np.random.default_rng(0))
            model = TrackingModel(random_state=0).fit(known)
            result = model.predict(test, probabilities=True)
            truth = {link.ends for link in annotated_events(test)[0]}
            right = np.array([link.ends in truth for link in result.links])
            p = np.array(result.probabilities)
            error, told = bins(p, right)
            honest.add(
                name, what, f"{model.temperature_:.2f}", f"{len(p):,}", f"{(~right).sum():,}",
                f"{(1 - p).sum():,.1f}", f"{100 * error:.2f}", *found(p, right),
                *found(-lengths(test, result.links), right),
            )  # fmt: skip
            table.add(name, what, *told)
    honest.show()
    table.show()


if __name__ == "__main__":
    main()
