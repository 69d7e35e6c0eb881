r"""Links from tables of objects that say which track each is of, and which track is its parent.

Let :math:`o_1, o_2, \ldots` be the objects of a track by frame. There is a link from each to the
next, over a gap where frames lie between; and if the track has a parent, one from the parent's last
object before :math:`o_1` to :math:`o_1`. A source with several links divides.

No track is an empty cell or a negative number; no parent is that, 0 (unless a track is called 0),
or the track itself. What stands for a parent anywhere in a track is the parent of the track.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from itertools import pairwise

import numpy as np

from trellis.arrays import Int64s
from trellis.files.table import Table

__all__ = ["links_of_tracks"]

_Track = tuple[str, int]
_GREATEST = 2.0**53  # up to here every integer is a float64


def links_of_tracks(table: Table) -> Table:
    """Return the table of links of objects with columns frame, id, track and, maybe, parent.

    The rows of links are those of their targets, so that complaints name these.

    Raises
    ------
    DataError
        If a track has two objects in a frame or two parents, or a parent has no object before.

    Examples
    --------
    >>> from trellis.files.table import read_table
    >>> tracks = {"frame": [0, 1, 1], "id": [7, 8, 9], "track": [1, 2, 3], "parent": [0, 1, 1]}
    >>> links = links_of_tracks(read_table(tracks, "tracks"))
    >>> for name in ("frame", "source_id", "frame_target", "target_id"):
    ...     print(name, links.columns[name].tolist())
    frame [0, 0]
    source_id [7, 7]
    frame_target [1, 1]
    target_id [8, 9]
    """
    sequence = table.texts("sequence")
    frame, ids = table.integers("frame"), table.integers("id")
    track, parent = _numbers(table, "track"), _numbers(table, "parent")
    members: dict[_Track, list[int]] = defaultdict(list)
    for row in np.lexsort((frame, track)).tolist():
        if track[row] >= 0:
            members[sequence[row], int(track[row])].append(row)
    frames = {key: frame[rows].tolist() for key, rows in members.items()}
    links: list[tuple[int, int]] = []
    for key, rows in members.items():
        for a, b in pairwise(rows):
            if frame[a] == frame[b]:
                raise table.fail(
                    max(a, b),
                    f"track {key[1]} is already in frame {frame[a]} ({table.place(min(a, b))}); "
                    "an object more in a frame is another track",
                )
            links.append((a, b))
        above = _parent_of(table, key, rows, parent, members)
        if above is not None:
            before = bisect_left(frames[above], frame[rows[0]])
            if not before:
                raise table.fail(
                    rows[0],
                    f"the parent {above[1]} of track {key[1]} has no object before frame "
                    f"{frame[rows[0]]}; correct the parent, or write -1 for none",
                )
            links.append((members[above][before - 1], rows[0]))
    sources, targets = np.array(sorted(links, key=lambda e: e[1]), np.int64).reshape(-1, 2).T
    columns = {
        "frame": frame[sources],
        "source_id": ids[sources],
        "frame_target": frame[targets],
        "target_id": ids[targets],
    }
    whole = table.subset(targets)
    if "sequence" in table.columns:
        columns["sequence"] = np.array(sequence, dtype=object)[targets]
    return Table(table.name, columns, whole.lines)


def _numbers(table: Table, column: str) -> Int64s:
    """Whole numbers, -1 where there is none."""
    if column not in table.columns:
        return np.full(len(table), -1)
    values = table.checked_numbers(column, missing=True)
    filled = np.where(np.isnan(values), -1, values)
    wrong = np.flatnonzero((filled != np.floor(filled)) | (np.abs(filled) > _GREATEST))
    if wrong.size:
        raise table.fail(
            wrong[0], "a track is called by a whole number up to 2^53; correct it", column
        )
    return filled.astype(np.int64)


def _parent_of(
    table: Table, key: _Track, rows: list[int], parent: Int64s, members: dict[_Track, list[int]]
) -> _Track | None:
    said: dict[int, int] = {}
    for row in rows:
        number = int(parent[row])
        if number > 0 or (number == 0 and (key[0], 0) in members):
            said.setdefault(number, row)
    said.pop(key[1], None)
    if not said:
        return None
    if len(said) > 1:
        (one, _), (other, row) = list(said.items())[:2]
        raise table.fail(row, f"track {key[1]} has two parents, {one} and {other}; remove one")
    ((number, row),) = said.items()
    if (key[0], number) not in members:
        raise table.fail(row, f"there is no track {number} to be the parent of track {key[1]}")
    return key[0], number
