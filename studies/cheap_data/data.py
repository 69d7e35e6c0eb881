"""Frame pairs of the experiments, annotations of a part of them, and how good a tracking is.

Two real movies and two simulated laboratories; each has pairs to learn from and others to test on.
Of ``cellmigration`` the first 60 frames are for training and the rest for testing, of ``epidermis``
one area and the other; a simulated laboratory is simulated twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from studies.datasets import load_cells
from trellis.datasets import simulate_cells
from trellis.tracking import (
    EVENTS,
    FramePair,
    PairAnnotation,
    TrackingResult,
    annotated_events,
    event_set,
    score_links,
    task_loss,
)

__all__ = [
    "MOVIES",
    "NEIGHBOURS",
    "SETTINGS",
    "SIZES",
    "TITLES",
    "Simulation",
    "annotated_in_part",
    "cells",
    "events_of",
    "is_annotated",
    "measured",
    "size_text",
    "sources",
]

NEIGHBOURS = 4
"""Nearest objects that a hypothesis may link, as in the program of the original authors."""

SETTINGS: dict[str, Any] = {"n_neighbors": NEIGHBOURS, "knots": 7, "prior": None}
"""Parameters of all models here: they learn from annotations alone, as published."""

TITLES = {
    "cellmigration": "Cell migration",
    "epidermis": "Epidermis",
    "a": "Simulated laboratory a",
    "b": "Simulated laboratory b",
}


@dataclass(frozen=True)
class Simulation:
    """Size of a simulated movie."""

    n_cells: int
    n_frames: int


SIZES = {
    "quick": Simulation(30, 6),
    "default": Simulation(120, 13),
    "full": Simulation(200, 21),
}
"""Movies of a simulated laboratory, for each protocol."""

MOVIES = {"quick": 1, "default": 3, "full": 7}
"""Number of such movies that patches are made of."""


def sources(protocol: str) -> tuple[str, ...]:
    """Data sets of a protocol; "quick" has simulated ones only."""
    return tuple(TITLES)[2:] if protocol == "quick" else tuple(TITLES)


@lru_cache(maxsize=8)
def cells(name: str, protocol: str, movies: int = 1) -> tuple[list[FramePair], list[FramePair]]:
    """Pairs to learn from and to test on, completely annotated.

    Of a simulated laboratory there are as many movies to learn from as asked for.
    """
    if name in ("a", "b"):
        size = SIZES[protocol]
        test, *train = (
            simulate_cells(size.n_cells, size.n_frames, lab=name, seed=seed)
            for seed in (1, 0, *range(2, movies + 1))
        )
        return [pair for movie in train for pair in movie], test
    pairs = load_cells(name)
    if name == "cellmigration":
        return [p for p in pairs if p.frame + 1 < 60], [p for p in pairs if p.frame >= 60]
    return [p for p in pairs if p.sequence.endswith("1")], [
        p for p in pairs if p.sequence.endswith("2")
    ]


def events_of(*names: str) -> tuple[str, ...]:
    """Kinds of events of data sets, which a bare pool or a few annotations would not show."""
    return EVENTS if {"a", "b"} & {*names} else EVENTS[:4]


def size_text(name: str, protocol: str) -> str:
    """What a simulated laboratory has, in words; real ones speak for themselves."""
    if name not in ("a", "b"):
        return ""
    size = SIZES[protocol]
    return f"Two movies of about {size.n_cells} cells and {size.n_frames} frames each."


def annotated_in_part(
    pairs: Sequence[FramePair], share: float, rng: np.random.Generator
) -> list[FramePair]:
    """The same pairs with a random share of their events annotated, at least one of each pair.

    Examples
    --------
    >>> from trellis.datasets import simulate_cells
    >>> pairs = simulate_cells(20, 3, seed=0)
    >>> few = annotated_in_part(pairs, 0.25, np.random.default_rng(0))
    >>> [len(p.annotation.links) < len(q.annotation.links) / 3 for p, q in zip(few, pairs)]
    [True, True]
    """
    thinned = []
    for pair in pairs:
        events = sorted(event_set(*annotated_events([pair])))
        kept = rng.permutation(len(events))[: max(1, round(share * len(events)))]
        chosen = [events[i] for i in sorted(kept.tolist())]
        note = PairAnnotation(
            tuple((a, b, e.kind) for e in chosen for a in e.sources for b in e.targets),
            tuple(sorted(a for e in chosen for a in e.sources)),
            tuple(sorted(b for e in chosen for b in e.targets)),
        )
        thinned.append(replace(pair, annotation=note))
    return thinned


def is_annotated(pair: FramePair) -> bool:
    """Whether anything is known of a pair or patch."""
    note = pair.annotation
    return note is not None and bool(
        note.complete or note.links or note.known_sources or note.known_targets
    )


def measured(result: TrackingResult, test: Sequence[FramePair]) -> dict[str, Any]:
    """Task loss of each frame pair, and F1 of links and of divisions."""
    found: dict[tuple[str, int], tuple[list[Any], list[Any]]] = {}
    for pair in test:
        found[pair.sequence, pair.frame] = ([], [])
    for link in result.links:
        found[link.sequence, link.frame][0].append(link)
    for event in result.events:
        # An appearance carries the frame in which the object is new.
        first = event.frame - (event.kind == "appear")
        found[event.sequence, first][1].append(event)
    losses = [
        task_loss(event_set(*annotated_events([p])), event_set(*found[p.sequence, p.frame]))
        for p in test
    ]
    scores = score_links(annotated_events(test)[0], result.links)
    return {"losses": losses, "links": scores.links.f1, "divisions": scores.divisions.f1}
