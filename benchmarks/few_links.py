"""Cell tracking from few links: F1 beside the tracker that learns nothing, by what is annotated.

    python -m benchmarks.few_links                    # half an hour
    python -m benchmarks.few_links --movies epidermis --thin 2

Two real movies, whole and with every second or fourth frame, and two simulated laboratories. The
movie to learn from is given whole, and of it are annotated: nothing; 10, 50 or 200 links drawn at
random, or so many of which a fifth belong to divisions; 1, 2 or 5 frame pairs in full; all. The
models track another part of the movie (cell migration frames 60-85, epidermis area 2, a second
simulated movie). «Pairs alone»: only the annotated pairs are given, without the rest of the movie.

Beside it stand FlowTracker, which learns nothing, and ``prior=None, knots=7``, which learns from
annotations alone and was the default (``--before``; it can take minutes a fit). Differences to
FlowTracker are means over draws of what is annotated, ± half the 95 % interval, with the least in
brackets. Nothing was chosen on these test frames; settings were chosen on the parts to learn from.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.stats import t as student

from benchmarks.options import begin
from benchmarks.side_by_side import Table
from studies.cheap_data.data import cells
from studies.datasets import load_cells
from trellis.tracking import (
    FlowTracker,
    FramePair,
    PairAnnotation,
    TrackingModel,
    TrackingResult,
    annotated_events,
    score_links,
)

Pairs = list[FramePair]
_HALVES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "cellmigration": ({"frames": (0, 60)}, {"frames": (60, 86)}),
    "epidermis": (
        {"sequences": ["epidermis_area1"]},
        {"sequences": ["epidermis_area2"]},
    ),
}


def movies(names: list[str], thin: list[int], small: bool) -> Iterator[tuple[str, Pairs, Pairs]]:
    """Name of a movie, its part to learn from and its part to track."""
    for name in names:
        if name in _HALVES:
            for k in thin:
                train, test = (load_cells(name, **part, thin=k) for part in _HALVES[name])
                yield f"{name}, step {k}", train, test
        else:
            yield f"laboratory {name}", *cells(name, "quick" if small else "default")


def bare(pairs: Pairs) -> Pairs:
    """The pairs with nothing annotated."""
    return [replace(pair, annotation=None) for pair in pairs]


def some_links(pairs: Pairs, n: int, divisions: int, rng: np.random.Generator) -> Pairs:
    """The movie with n links, so many of them in divisions (both links of each), or any."""
    moves: list[tuple[int, tuple[Any, ...]]] = []
    parted: dict[tuple[int, int], list[tuple[Any, ...]]] = {}
    for i, pair in enumerate(pairs):
        assert pair.annotation is not None
        for link in pair.annotation.links:
            if link[2] == "division":
                parted.setdefault((i, link[0]), []).append(link)
            elif link[2] == "move":
                moves.append((i, (link,)))
    families = [(i, tuple(links)) for (i, _), links in parted.items()]
    if divisions:
        two = min(divisions // 2, len(families))
        groups = [(families, two), (moves, n - 2 * two)]
    else:
        groups = [([*moves, *families], n)]
    notes: dict[int, list[Any]] = {}
    for group, size in groups:
        for j in rng.choice(len(group), min(size, len(group)), replace=False).tolist():
            i, links = group[j]
            notes.setdefault(i, []).extend(links)
    return [
        replace(pair, annotation=PairAnnotation(tuple(notes[i]), (), ()) if i in notes else None)
        for i, pair in enumerate(pairs)
    ]


def some_pairs(pairs: Pairs, n: int, rng: np.random.Generator) -> Pairs:
    """The movie with n pairs annotated in full."""
    kept = set(rng.choice(len(pairs), n, replace=False).tolist())
    return [p if i in kept else replace(p, annotation=None) for i, p in enumerate(pairs)]


def annotated(pairs: Pairs, what: str, rng: np.random.Generator) -> Pairs:
    """The movie, annotated as the words say."""
    number, _, kind = what.partition(" ")
    if what in ("nothing", "all"):
        return bare(pairs) if what == "nothing" else pairs
    n = int(number)
    if kind.startswith("pairs"):
        some = some_pairs(pairs, n, rng)
        return [p for p in some if p.annotation is not None] if kind == "pairs alone" else some
    return some_links(pairs, n, n // 5 if kind == "links, a fifth of divisions" else 0, rng)


def f1(test: Pairs, result: TrackingResult) -> tuple[float, float]:
    """F1 of links and of divisions, in per cent."""
    scores = score_links(annotated_events(test)[0], result.links)
    return 100 * scores.links.f1, 100 * scores.divisions.f1


def mean_gain(gains: list[float]) -> str:
    """Mean, half of the 95 % interval over draws, and the least."""
    mean = f"{statistics.mean(gains):+.2f}"
    if len(gains) < 2:
        return mean
    half = student.ppf(0.975, len(gains) - 1) * statistics.stdev(gains) / math.sqrt(len(gains))
    return f"{mean} ± {half:.2f} ({min(gains):+.1f})"


def main() -> None:
    links = [f"{n} links{more}" for n in (10, 50, 200) for more in ("", ", a fifth of divisions")]
    whole = [f"{n} pairs" for n in (1, 2, 5)]
    args = begin(
        __doc__,
        movies=(["cellmigration", "epidermis", "a", "b"], ["a"], "movies or laboratories"),
        thin=([1, 2, 4], [1], "steps between frames of the real movies"),
        what=(
            ["nothing", *links, *whole, "1 pairs alone", "5 pairs alone", "all"],
            ["nothing", "10 links", "1 pairs", "1 pairs alone", "all"],
            "what is annotated",
        ),
        seeds=(5, 2, "draws of what is annotated"),
        before=(False, True, "also learn from annotations alone"),
    )
    heads = ["links", "divisions"]
    before = [f"{head}: annotations alone − flow" for head in heads] if args.before else []
    table = Table(
        "F1 from few links (per cent; difference to FlowTracker, which learns nothing)",
        "movie", "annotated", *(f"{head}: flow" for head in heads),
        *(f"{head}: Trellis − flow" for head in heads), *before,
    )  # fmt: skip
    models = {"Trellis": TrackingModel()}
    if args.before:
        models["before"] = TrackingModel(prior=None, knots=7)
    for name, train, test in movies(args.movies, args.thin, args.small):
        flow = f1(test, FlowTracker().fit(bare(test)).predict(test))
        for what in args.what:
            if "pairs" in what and int(what.split()[0]) >= len(train):
                continue
            gains: dict[str, list[tuple[float, float]]] = {title: [] for title in models}
            for seed in range(1 if what in ("nothing", "all") else args.seeds):
                known = annotated(train, what, np.random.default_rng(seed))
                for title, model in models.items():
                    if title == "before" and what == "nothing":
                        continue
                    found = f1(test, model.fit(known).predict(test))
                    gains[title].append((found[0] - flow[0], found[1] - flow[1]))
            told = [
                mean_gain([gain[i] for gain in gains[title]]) if gains[title] else "none"
                for title in models
                for i in (0, 1)
            ]
            table.add(name, what, *(f"{score:.2f}" for score in flow), *told)
    table.show()


if __name__ == "__main__":
    main()
