r"""Tracks that leave out frames, in parts without gaps.

The Cell Tracking Challenge wants every track to have an object in each of its frames. A track that
was missed in some is written in parts there: the first keeps its number, each other part gets a new
one and has the part before as parent, an only child; children of the track have the last part as
parent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from trellis.tracking.result import Track, TrackedObject

__all__ = ["without_gaps"]


def without_gaps(
    tracks: Iterable[Track], objects: Iterable[TrackedObject]
) -> tuple[list[Track], list[TrackedObject]]:
    """Return the tracks in parts without gaps, and the objects with the numbers of the parts.

    Examples
    --------
    >>> tracks = [Track("", 1, 0, 4, -1), Track("", 2, 5, 5, 1)]
    >>> seen = [TrackedObject("", t, 0, 1 + (t > 4), 0.0, 0.0) for t in (0, 1, 4, 5)]
    >>> for part in without_gaps(tracks, seen)[0]:
    ...     print(*part[1:])
    1 0 1 -1
    2 5 5 3
    3 4 4 1
    """
    tracks, objects = list(tracks), list(objects)
    frames: dict[tuple[str, int], list[int]] = defaultdict(list)
    for o in objects:
        frames[o.sequence, o.track].append(o.frame)
    last: dict[str, int] = defaultdict(int)
    for track in tracks:
        last[track.sequence] = max(last[track.sequence], track.track)
    first: list[Track] = []  # parts whose parent is that of the track
    later: list[Track] = []
    part_of: dict[tuple[str, int, int], int] = {}  # of an object: sequence, track, frame
    tail: dict[tuple[str, int], int] = {}
    for track in tracks:
        key = track.sequence, track.track
        runs: list[list[int]] = []
        for t in sorted(frames[key]):
            if runs and t == runs[-1][-1] + 1:
                runs[-1].append(t)
            else:
                runs.append([t])
        if len(runs) < 2:
            first.append(track)
            continue
        first.append(track._replace(end=runs[0][-1]))
        number = track.track
        for run in runs[1:]:
            last[track.sequence] += 1
            parent, number = number, last[track.sequence]
            later.append(Track(track.sequence, number, run[0], run[-1], parent))
            part_of |= {(*key, t): number for t in run}
        tail[key] = number
    parts = [
        part._replace(parent=tail.get((part.sequence, part.parent), part.parent)) for part in first
    ]
    parts += later
    parts.sort(key=lambda part: (part.sequence, part.track))
    moved = [
        o._replace(track=part_of.get((o.sequence, o.track, o.frame), o.track)) for o in objects
    ]
    return parts, moved
