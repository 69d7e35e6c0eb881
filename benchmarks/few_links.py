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
FlowTracker are means over draws of what is annotated, with the least of them and the 95 % interval
of a bootstrap over draws and over quarters of the test frames. Settings were chosen on the parts to
learn from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.options import begin
from benchmarks.side_by_side import Table
from studies.cheap_data.data import cells
from studies.datasets import load_cells
from trellis.arrays import Float64s
from trellis.tracking import (
    FlowTracker,
    FramePair,
    Link,
    PairAnnotation,
    TrackingModel,
    TrackingResult,
    annotated_events,
)

Pairs = list[FramePair]
_BOOTSTRAP = 1000
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


def counts(test: Pairs, result: TrackingResult) -> Float64s:
    """Links, and divisions, that are right, found and true, for each unit of the test (U, 2, 3).

    A unit is a quarter of a frame: objects to the left or right of, and above or below, the middle
    of all sources of the frame.
    """
    truth, _ = annotated_events(test)
    unit = {}
    for t, pair in enumerate(test):
        middle = np.median(pair.source.position, axis=0) if len(pair.source) else np.zeros(2)
        side = (pair.source.position > middle) @ np.array([1, 2])
        for identity, quarter in zip(pair.source.ids.tolist(), side.tolist(), strict=True):
            unit[pair.sequence, pair.frame, identity] = 4 * t + quarter
    table = np.zeros((4 * len(test), 2, 3))
    for kind in (0, 1):
        known, found = (_marks(links, bool(kind)) for links in (truth, result.links))
        for column, marks in enumerate((known & found, found, known)):
            for mark in marks:
                table[unit[mark[:3]], kind, column] += 1
    return table


def _marks(links: Iterable[Link], divisions: bool) -> set[Any]:
    """What is scored: links by their ends, or divisions by their parent and both daughters."""
    if not divisions:
        return {link.ends for link in links}
    daughters: dict[Any, list[int]] = {}
    for link in links:
        if link.kind == "division":
            daughters.setdefault(link[:3], []).append(link.target_id)
    return {(*parent, *sorted(two)) for parent, two in daughters.items()}


def f1(table: Float64s) -> Float64s:
    """F1 of links and of divisions, in per cent (..., 2)."""
    right, found, true = np.moveaxis(table.sum(axis=-3), -1, 0)
    score: Float64s = 200 * right / np.maximum(found + true, 1)
    return score


def gains(before: Float64s, after: list[Float64s], rng: np.random.Generator) -> list[str]:
    """Mean gain of links and of divisions over draws, with the least and an interval."""
    each = np.array([f1(table) - f1(before) for table in after])
    drawn = []
    for _ in range(_BOOTSTRAP):
        units = rng.integers(len(before), size=len(before))
        some = rng.integers(len(after), size=len(after))
        base = f1(before[units])
        drawn.append(np.mean([f1(after[i][units]) - base for i in some], axis=0))
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    told = [
        f"{each[:, k].mean():+.2f} ({low[k]:+.2f} to {high[k]:+.2f}; least {each[:, k].min():+.1f})"
        for k in (0, 1)
    ]
    return [text.replace("-", "−") for text in told]


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
        flow = counts(test, FlowTracker().fit(bare(test)).predict(test))
        for what in args.what:
            if "pairs" in what and int(what.split()[0]) >= len(train):
                continue
            found: dict[str, list[Float64s]] = {title: [] for title in models}
            for seed in range(1 if what in ("nothing", "all") else args.seeds):
                known = annotated(train, what, np.random.default_rng(seed))
                for title, model in models.items():
                    if title == "before" and what == "nothing":
                        continue
                    found[title].append(counts(test, model.fit(known).predict(test)))
            told: list[str] = []
            for each in found.values():
                rng = np.random.default_rng(0)
                told += gains(flow, each, rng) if each else ["none", "none"]
            table.add(name, what, *(f"{score:.2f}" for score in f1(flow)), *told)
    table.show()


if __name__ == "__main__":
    main()
