"""How much of frame pairs is annotated, and what a model does by it.

Knots: 3 steps of each feature, 5 from 1,000 annotated events on, 7 from 2,500 on. Kinds of events:
all but splits and merges, and these if they are annotated.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

from trellis.tracking.event_kinds import KINDS
from trellis.tracking.objects import FramePair

__all__ = [
    "annotated_kinds",
    "bare",
    "is_complete",
    "n_annotated_events",
    "usual_knots",
    "warn_of_no_division",
]

_KNOTS = ((2500, 7), (1000, 5), (0, 3))  # annotated events from which on there are so many
_FEW_PAIRS, _FEW_EVENTS = 5, 1000  # annotated ones that need not show a division


def bare(pair: FramePair) -> FramePair:
    """Return the pair without its annotation."""
    return replace(pair, annotation=None)


def is_complete(pair: FramePair) -> bool:
    """Whether every object is annotated."""
    return pair.annotation is not None and pair.annotation.complete


def n_annotated_events(pairs: Sequence[FramePair]) -> int:
    """Number of links and, of pairs that are annotated in full, of objects without."""
    return sum(
        len({source for source, _, _ in (*pair.annotation.links, *pair.annotation.gaps)})
        if not pair.annotation.complete
        else len(pair.source)
        for pair in pairs
        if pair.annotation is not None
    )


def annotated_kinds(pairs: Sequence[FramePair]) -> tuple[str, ...]:
    """Kinds of events that a model of the pairs has."""
    annotated = _kinds(pairs)
    return tuple(kind.name for kind in KINDS if kind.usual or kind.name in annotated)


def usual_knots(pairs: Sequence[FramePair]) -> int:
    """Steps of features, by the number of annotated events."""
    known = n_annotated_events(pairs)
    return next(knots for least, knots in _KNOTS if known >= least)


def warn_of_no_division(pairs: Sequence[FramePair], events: Sequence[str]) -> None:
    """Where little is annotated and nothing else is given, what is rare is forgotten."""
    few = len(pairs) <= _FEW_PAIRS and n_annotated_events(pairs) < _FEW_EVENTS
    if few and "division" in set(events) - _kinds(pairs):
        warnings.warn(
            f"no division in {len(pairs)} annotated frame pair{'s' * (len(pairs) != 1)}, and "
            "nothing else to learn from: none will be found. Give fit the pairs that are not "
            "annotated, too (annotation=None), which tell how cells divide; or leave 'division' "
            "out of the events",
            RuntimeWarning, stacklevel=3,
        )  # fmt: skip


def _kinds(pairs: Sequence[FramePair]) -> set[str]:
    notes = [pair.annotation for pair in pairs if pair.annotation is not None]
    return {kind for note in notes for _, _, kind in note.links}
