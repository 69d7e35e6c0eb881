"""Tracks: what the links between frames say of whole movies.

Every object belongs to one track, a run of objects, one a frame but for frames in which it was
missed. Links make tracks thus, and those of other kinds in one of these ways
(:mod:`trellis.tracking.event_kinds`):

- move: the track goes on, in the next frame or a later one;
- division: the track ends, each daughter begins a track whose parent it is;
- split (one cell seen as two): the track goes on in the nearer part, the other part begins a track
  without parent;
- merge (two cells seen as one): the track of the nearer source goes on, that of the other ends;
- an object without past begins a track.

Of equally near objects the one with the least id counts as the nearer. Tracks are numbered from 1
within a sequence, in order of the frame and then the id that they begin with.
"""

from __future__ import annotations

import csv
import math
import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from trellis.errors import DataError
from trellis.files import atomic_write
from trellis.tracking.event_kinds import SOME_EVENTS, EventKind, all_kinds
from trellis.tracking.objects import (
    FramePair,
    Link,
    checked_events,
    checked_links,
    checked_pairs,
)

__all__ = [
    "Track",
    "TrackEvent",
    "TrackedObject",
    "TrackingResult",
    "annotated_events",
    "assemble_tracks",
]


class TrackEvent(NamedTuple):
    """An object that appeared or disappeared; ``frame`` is its own, ``kind`` says which."""

    sequence: str
    frame: int
    id: int
    kind: str


class Track(NamedTuple):
    """A track from frame ``begin`` to frame ``end``; ``parent`` is a track, -1 for none."""

    sequence: str
    track: int
    begin: int
    end: int
    parent: int


class TrackedObject(NamedTuple):
    """An object, its track and its centre; ``z`` is None in two dimensions."""

    sequence: str
    frame: int
    id: int
    track: int
    x: float
    y: float
    z: float | None = None


@dataclass(frozen=True)
class TrackingResult:
    """Links between frames and the tracks they make.

    Attributes
    ----------
    links : list of Link
    events : list of TrackEvent
        Objects that appeared or disappeared.
    tracks : list of Track
        Sorted by sequence and number.
    objects : list of TrackedObject
        All objects, sorted by sequence, frame and id.
    score, bound : float or None
        The sum of the scores that a model gives, and a bound that no tracking exceeds; equal where
        the tracks are proven best. None if nothing is known of that.
    """

    links: list[Link]
    events: list[TrackEvent]
    tracks: list[Track]
    objects: list[TrackedObject]
    score: float | None = field(default=None, compare=False)
    bound: float | None = field(default=None, compare=False)

    def of(self, sequence: str) -> TrackingResult:
        """Return what is of one movie; of its score nothing is known."""
        return TrackingResult(
            [link for link in self.links if link.sequence == sequence],
            [event for event in self.events if event.sequence == sequence],
            [track for track in self.tracks if track.sequence == sequence],
            [seen for seen in self.objects if seen.sequence == sequence],
        )

    def write(self, path: str | os.PathLike[Any]) -> None:
        """Write a CSV file of the objects: sequence, frame, id, x, y, track, parent (-1: none).

        A column z stands after y if an object has one.
        """
        parents = {(track.sequence, track.track): track.parent for track in self.tracks}
        with atomic_write(path, binary=False) as file:
            rows = csv.writer(file, lineterminator="\n")
            axes = "xyz" if any(o.z is not None for o in self.objects) else "xy"
            rows.writerow(["sequence", "frame", "id", *axes, "track", "parent"])
            for o in self.objects:
                parent = parents[o.sequence, o.track]
                centre = (o.x, o.y, o.z)[: len(axes)]
                rows.writerow([o.sequence, o.frame, o.id, *centre, o.track, parent])


def assemble_tracks(
    pairs: Iterable[FramePair],
    links: Iterable[Link],
    events: Iterable[TrackEvent] = (),
    *,
    kinds: Sequence[str | EventKind] = (),
) -> TrackingResult:
    """Join links of frame pairs to tracks.

    Parameters
    ----------
    pairs : iterable of FramePair
        All objects; an object may be in several pairs (or patches).
    links : iterable of Link
        Of kind move, division, split, merge, or one of your own.
    events : iterable of TrackEvent
        Kept in the result as they are.
    kinds : sequence of EventKind or str
        Kinds of your own that links are of.

    Raises
    ------
    DataError
        If a link names an object that is not there or has an unknown kind, or an object has two
        pasts or two fates.

    Examples
    --------
    >>> import numpy as np
    >>> from trellis.tracking.objects import FramePair, Link, Objects
    >>> frames = [Objects(np.arange(n), np.zeros((n, 2))) for n in (1, 1, 2)]
    >>> pairs = [FramePair("", t, frames[t], frames[t + 1]) for t in (0, 1)]
    >>> links = [Link("", 0, 0, 0, "move")] + [Link("", 1, 0, j, "division") for j in (0, 1)]
    >>> for track in assemble_tracks(pairs, links).tracks:
    ...     print(*track[1:])
    1 0 1 -1
    2 2 2 1
    3 2 2 1
    """
    links, events = checked_links(links), [TrackEvent(*e) for e in checked_events(events)]
    centres = _centres(checked_pairs(pairs))
    SOME_EVENTS.check("kinds", kinds)
    past = _pasts(links, centres, all_kinds(kinds))
    tracks: list[Track] = []
    objects: list[TrackedObject] = []
    place: dict[_Key, int] = {}  # of an object's track among all tracks
    for key in sorted(centres):  # an object comes after its past
        sequence, frame, number = key
        before, continued = past.get(key, (None, False))
        if before is not None and continued:
            here = place[before]
            tracks[here] = tracks[here]._replace(end=frame)
        else:
            here = len(tracks)
            parent = -1 if before is None else tracks[place[before]].track
            same = bool(tracks) and tracks[-1].sequence == sequence
            name = tracks[-1].track + 1 if same else 1
            tracks.append(Track(sequence, name, frame, frame, parent))
        place[key] = here
        objects.append(TrackedObject(sequence, frame, number, tracks[here].track, *centres[key]))
    return TrackingResult(links, list(events), tracks, objects)


def annotated_events(pairs: Iterable[FramePair]) -> tuple[list[Link], list[TrackEvent]]:
    """Return what the annotations of frame pairs say, as a result says it.

    An object that no link names appeared or disappeared if its past or fate is known; gaps are
    links, too.

    Examples
    --------
    >>> import numpy as np
    >>> from trellis.tracking.objects import FramePair, Objects, PairAnnotation
    >>> cells = Objects(np.array([4, 5]), np.zeros((2, 2)))
    >>> note = PairAnnotation(((4, 5, "move"),), known_sources=None, known_targets=())
    >>> links, events = annotated_events([FramePair("", 0, cells, cells, note)])
    >>> links[0][1:], events[0][1:]
    ((0, 4, 5, 'move', 1), (0, 5, 'disappear'))
    """
    links: list[Link] = []
    events: list[TrackEvent] = []
    pairs = checked_pairs(pairs)
    missed = _gaps(pairs)
    past = defaultdict(set)  # of gaps, as the others are listed below
    for link in missed:
        past[link.sequence, link.frame_target].add(link.target_id)
    for pair in pairs:
        note = pair.annotation
        if note is None:
            continue
        links += [Link(pair.sequence, pair.frame, *link) for link in note.links]
        gone = {source for source, _, _ in note.gaps}
        begun = past[pair.sequence, pair.frame + 1]
        for end, kind, objects, known in (
            (0, "disappear", pair.source, note.known_sources),
            (1, "appear", pair.target, note.known_targets),
        ):
            frame = pair.frame + end
            linked = {link[end] for link in note.links} | (begun if end else gone)
            ids = objects.ids.tolist() if known is None else sorted(known)
            events += [TrackEvent(pair.sequence, frame, i, kind) for i in ids if i not in linked]
    return links + missed, events


def _gaps(pairs: Iterable[FramePair]) -> list[Link]:
    return [
        Link(pair.sequence, pair.frame, source, target, "move", frame)
        for pair in pairs
        if pair.annotation is not None
        for source, target, frame in pair.annotation.gaps
    ]


_Key = tuple[str, int, int]  # sequence, frame, id


def _centres(pairs: Iterable[FramePair]) -> dict[_Key, tuple[float, ...]]:
    centres: dict[_Key, tuple[float, ...]] = {}
    for pair in pairs:
        for frame, objects in ((pair.frame, pair.source), (pair.frame + 1, pair.target)):
            for number, centre in zip(objects.ids.tolist(), objects.position.tolist(), strict=True):
                centres[pair.sequence, frame, number] = tuple(centre)
    return centres


def _pasts(
    links: list[Link], centres: dict[_Key, tuple[float, ...]], kinds: Sequence[EventKind]
) -> dict[_Key, tuple[_Key, bool]]:
    """Past of each object that has one, and whether the same track goes on from there."""
    fates: dict[_Key, dict[_Key, str]] = defaultdict(dict)
    pasts: dict[_Key, dict[_Key, str]] = defaultdict(dict)
    linking = {kind.name: kind for kind in kinds if kind.n_sources and kind.n_targets}
    for sequence, frame, source_id, target_id, kind, frame_target in links:
        source, target = (sequence, frame, source_id), (sequence, frame_target, target_id)
        if kind not in linking:
            raise DataError(
                f"{_named(source)}: unknown kind of link {kind!r}; known are {', '.join(linking)}"
            )
        for key in (source, target):
            if key not in centres:
                raise DataError(
                    f"{_named(key)} has a link, but is not among the objects of the frame pairs"
                )
        fates[source][target] = kind
        pasts[target][source] = kind
    for groups, forks, what in (
        (fates, {name for name, kind in linking.items() if kind.n_targets == 2}, "fates"),
        (pasts, {name for name, kind in linking.items() if kind.n_sources == 2}, "pasts"),
    ):
        for key, group in groups.items():
            said = set(group.values())
            if len(group) > 1 and (len(said) > 1 or not said <= forks):
                near = {abs(other[1] - key[1]) for other in group} == {1}
                ids = " and ".join(
                    str(other[2]) if near else f"{other[2]} of frame {other[1]}"
                    for other in sorted(group)
                )
                raise DataError(f"{_named(key)} has two {what}, {ids}; remove one of the links")

    def nearest(key: _Key, others: Iterable[_Key]) -> _Key:
        return min(sorted(others), key=lambda other: math.dist(centres[key], centres[other]))

    result: dict[_Key, tuple[_Key, bool]] = {}
    for target, sources in pasts.items():
        source = nearest(target, sources) if len(sources) > 1 else next(iter(sources))
        daughters = linking[sources[source]].daughters
        if not daughters and len(fates[source]) > 1 and target != nearest(source, fates[source]):
            continue  # the lesser part: no past
        result[target] = source, not daughters
    return result


def _named(key: _Key) -> str:
    sequence, frame, number = key
    of = f" of sequence {sequence!r}" if sequence else ""
    return f"object {number} of frame {frame}{of}"
