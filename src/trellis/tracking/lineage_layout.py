"""Where the tracks of a lineage stand: family trees without crossing lines.

Time runs to the right. The leaves of a family tree take consecutive rows, in the order of its
tracks, and a parent the mean of the rows of its first and its last daughter; so no two lines cross.
Tracks without parent and daughters stand below the families, closer together and as many in a row
as fit.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence

from trellis.tracking.result import Track

__all__ = ["lineage_layout"]

_LONE = 0.6  # height of a row of lone tracks


def lineage_layout(
    tracks: Sequence[Track],
) -> tuple[dict[int, float], dict[int, int], float]:
    """Row and family of each track (by number; family -1 for lone tracks), and rows in all.

    Parameters
    ----------
    tracks : sequence of Track
        Tracks of one sequence, parents among them.

    Examples
    --------
    >>> tracks = [Track("", 1, 0, 4, -1), Track("", 2, 5, 8, 1), Track("", 3, 5, 9, 1)]
    >>> lineage_layout(tracks)
    ({2: 0.0, 3: 1.0, 1: 0.5}, {1: 0, 2: 0, 3: 0}, 2.0)
    """
    daughters: dict[int, list[int]] = defaultdict(list)
    for track in sorted(tracks, key=lambda t: (t.begin, t.track)):
        daughters[track.parent].append(track.track)
    row: dict[int, float] = {}
    family: dict[int, int] = {}
    n_rows = 0.0
    n_families = 0
    lone = []
    for root in daughters[-1]:
        if root not in daughters:
            lone.append(root)
            continue
        order = []
        stack = [root]
        while stack:
            track_number = stack.pop()
            order.append(track_number)
            family[track_number] = n_families
            if track_number in daughters:
                stack.extend(reversed(daughters[track_number]))
            else:
                row[track_number] = n_rows
                n_rows += 1
        for track_number in reversed(order):  # daughters before their parent
            if track_number in daughters:
                children = daughters[track_number]
                row[track_number] = (row[children[0]] + row[children[-1]]) / 2
        n_families += 1
    ends = {track.track: (track.begin, track.end) for track in tracks}
    n_rows += bool(n_families and lone)  # a free row between families and lone tracks
    free: list[tuple[int, float]] = []  # last frame in a row of lone tracks, row
    for track_number in lone:
        begin, end = ends[track_number]
        if free and free[0][0] + 1 < begin:  # one frame between them, to tell them apart
            place = heapq.heappop(free)[1]
        else:
            place = n_rows
            n_rows += _LONE
        row[track_number] = place
        family[track_number] = -1
        heapq.heappush(free, (end, place))
    return row, family, n_rows
