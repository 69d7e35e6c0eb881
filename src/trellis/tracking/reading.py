r"""Detections and links of movies, read from CSV files or tables in memory.

Objects are rows (sequence, frame, id, x, y[, z], features ...), true assignments are rows
(sequence, frame, source_id, target_id, kind) from frame t to frame t + 1, or to frame_target. Both
become one
:class:`~trellis.tracking.objects.FramePair` for every two frames t, t + 1 that a sequence has;
where its frame numbers have a gap there is no pair, and tracks end there, but for links across it:
then the frames between are there, without objects.

The tracking model knows fates with at most two targets and pasts with at most two sources. What
data has beyond that is read as follows, and counted in one line of the log ``"trellis"``:

- the kind ``single_daughter``: a move; and so a division, split or merge with one link, where the
  annotation is complete; where it is not, the other link may be missing, and nothing is known;
- a division or split with three or more targets: that into the two nearest to the parent; the other
  targets appear;
- a merge of three or more sources: that of the two nearest; the other sources disappear;
- a division, split or merge of which an object is first seen in a later frame than the next, or
  last in an earlier one: what there is of it between two frames; the other appears (disappears);
- a detection that is no cell has no links: it appears and disappears.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s, Int64s
from trellis.errors import DataError
from trellis.files.table import MISSING, Table
from trellis.files.text import Source
from trellis.tracking.event_kinds import SOME_EVENTS, EventKind, all_kinds
from trellis.tracking.known_columns import has_tracks, known_table, open_table, without_headers
from trellis.tracking.late_links import LateLinks
from trellis.tracking.objects import FramePair, Objects, PairAnnotation
from trellis.tracking.track_table import links_of_tracks
from trellis.tracking.trackmate import links_of_edges

__all__ = ["read_detections"]


_log = logging.getLogger("trellis")

_OBJECT_COLUMNS = ("frame", "id", "x", "y")
_LINK_COLUMNS = ("frame", "source_id", "target_id")


def read_detections(
    objects: Source | Mapping[str, Any] | Any,
    links: Source | Mapping[str, Any] | Any | None = None,
    *,
    complete: bool = True,
    ignore: Collection[str] = ("track",),
    columns: Mapping[str, str] | None = None,
    events: Sequence[str | EventKind] = (),
) -> list[FramePair]:
    """Read detected objects, and what is known of how they belong together.

    Parameters
    ----------
    objects : path, open file, mapping of columns, or DataFrame
        Columns ``frame``, ``x``, ``y``; ``z`` in three dimensions; ``id`` (whole numbers; an id
        occurs once in a frame), else the objects of a frame are numbered from 0 in the order of the
        rows; ``sequence`` if there are several movies (default ""). Every other column that holds
        numbers is a feature, NaN where a cell is empty; a column without numbers is left out. How
        other programs call these is known (see the user's guide), what was understood is logged,
        and a track is never a feature. Files are CSV with a header, plain or compressed (gzip,
        bzip2, xz), with commas, semicolons, tabs or bars between cells; or files of TrackMate
        (XML), or a GEFF.
    links : path, open file, mapping of columns, or DataFrame, optional
        Columns ``frame`` (of the source), ``source_id``, ``target_id``; ``frame_target`` if objects
        may be missed for a frame or more (without, or where a cell is empty: the next frame);
        ``sequence`` if the objects have it; ``kind``: move, division, single_daughter, split or
        merge. A link without kind is a division if its source has several links, else a move.
        Or a table of objects with a column ``track`` and, maybe, ``parent`` (-1 or 0: none), as
        :meth:`TrackingResult.write` makes it; that may be the table of objects itself.
    complete : bool
        Whether the links of a pair of frames are all there are, so that an object without link
        appeared or disappeared; if not, nothing is known of it.
    ignore : collection of str
        Columns of the objects that are no features, such as the true track; by their name in the
        table.
    columns : mapping of str to str, optional
        Columns of the table by what they are: ``{"frame": "FRAME", "area": "Size"}``.
    events : sequence of EventKind or str
        Kinds of your own that links may be of, too; the names of others change nothing.

    Returns
    -------
    list of FramePair
        Sorted by sequence and frame, objects by id. Where no link is given ``annotation`` is
        None: nobody has looked at the pair. Links to later frames than the next are ``gaps`` of the
        annotation. The extent is the bounding box of all objects of the sequence.

    Raises
    ------
    DataError
        If a file cannot be read, or what it says cannot be; the message names file and line (or
        the row of a table, counted from 0).

    Examples
    --------
    >>> cells = {"frame": [0, 1, 1, 1], "id": [0, 0, 1, 2], "x": [5, 3, 8, 40], "y": [5, 4, 6, 9]}
    >>> division = {"frame": [0, 0], "source_id": [0, 0], "target_id": [0, 1]}
    >>> pair = read_detections(cells, division)[0]
    >>> len(pair.source), len(pair.target), pair.extent
    (1, 3, (3.0, 4.0, 40.0, 9.0))
    >>> pair.annotation.links, pair.annotation.complete
    (((0, 0, 'division'), (0, 1, 'division')), True)
    """
    if isinstance(ignore, str):
        raise DataError(f"ignore must be a collection of column names, not the string {ignore!r}")
    SOME_EVENTS.check("events", events)
    seen = known_table(open_table(objects, "objects"), columns, ignore)
    frames = _read_frames(seen.table, {*ignore, *seen.no_features})
    if links is None:
        annotations: dict[tuple[int, int], PairAnnotation] = {}
    else:
        known = _links_of(links, columns, frames)
        annotations = _read_links(known, frames, complete, all_kinds(events))
    pairs = []
    for sequence, frame in frames.pairs:
        source, target = (frames.objects[sequence, t] for t in (frame, frame + 1))
        note = annotations.get((sequence, frame))
        name, extent = frames.sequences[sequence], frames.extents[sequence]
        pairs.append(FramePair(name, frame, source, target, note, extent))
    return pairs


def _links_of(source: Any, columns: Mapping[str, str] | None, frames: _Frames) -> Table:
    """A table of links, or what a table of tracks or one of TrackMate's edges says."""
    if hasattr(source, "seek"):
        source.seek(0)  # the objects may have been read from it
    table = open_table(source, "links")
    if {"source_id", "target_id"} & set(table.columns):
        table.require(_LINK_COLUMNS)
        return table
    if {"SPOT_SOURCE_ID", "SPOT_TARGET_ID"} <= set(table.columns):
        return links_of_edges(
            without_headers(table, "SPOT_SOURCE_ID"), _frame_of_ids(table, frames)
        )
    here = {role: name for role, name in (columns or {}).items() if name in table.columns}
    if has_tracks(table, here):
        return links_of_tracks(known_table(table, here, quiet=True).table)
    table.require(("frame",))
    raise DataError(
        f"{table.name} has no column 'source_id', only {', '.join(table.columns)}; expected links "
        "with the columns frame, source_id and target_id, or objects with frame, id and track"
    )


def _frame_of_ids(table: Table, frames: _Frames) -> dict[int, int]:
    """The frame of each object by its id alone, which must not occur twice."""
    known: dict[int, int] = {}
    for (_, frame), objects in frames.objects.items():
        for number in objects.ids.tolist():
            if number in known:
                raise DataError(
                    f"{table.name} names spots by their IDs, but {frames.name} has the id {number} "
                    f"in the frames {known[number]} and {frame}; give the table of spots that "
                    "TrackMate wrote with it"
                )
            known[number] = frame
    return known


@dataclass(frozen=True)
class _Frames:
    """Objects by sequence (a number) and frame, and what it takes to find one by its id."""

    name: str
    sequences: list[str]
    extents: list[tuple[float, ...]]
    objects: dict[tuple[int, int], Objects]
    pairs: list[tuple[int, int]]


def _read_frames(table: Table, ignore: Collection[str]) -> _Frames:
    table.require(_OBJECT_COLUMNS)
    if len(table) == 0:
        raise DataError(f"{table.name} is empty: a header, but no objects")
    names, sequence = np.unique(np.array(table.texts("sequence")), return_inverse=True)
    frame, ids = table.integers("frame"), table.integers("id")
    position = np.stack([table.checked_numbers(axis) for axis in _axes(table)], axis=1)
    columns = _features(table, ignore)

    order = np.lexsort((ids, frame, sequence))
    keys = np.stack([sequence, frame, ids])[:, order]
    same = np.flatnonzero((keys[:, 1:] == keys[:, :-1]).all(axis=0))
    if same.size:
        first, second = np.sort(order[same[0] : same[0] + 2]).tolist()
        raise table.fail(
            second,
            f"id {ids[second]} is already in frame {frame[second]}"
            f"{_of(str(names[sequence[second]]))} ({table.place(first)}); give each object of a "
            "frame its own id, or name 'id' in ignore (--ignore id): they are numbered then",
        )
    position, ids = position[order], ids[order]
    columns = {name: values[order] for name, values in columns.items()}
    starts = np.flatnonzero(np.any(keys[:2, 1:] != keys[:2, :-1], axis=0)) + 1
    bounds = [0, *starts.tolist(), len(order)]
    objects = {}
    for a, b in pairwise(bounds):
        here = {name: values[a:b] for name, values in columns.items()}
        objects[int(keys[0, a]), int(keys[1, a])] = Objects(ids[a:b], position[a:b], here)
    firsts = np.searchsorted(keys[0], np.arange(len(names)))
    least, greatest = (reduce.reduceat(position, firsts) for reduce in (np.minimum, np.maximum))
    extents = [(*a, *b) for a, b in zip(least.tolist(), greatest.tolist(), strict=True)]
    pairs = [(s, t) for s, t in objects if (s, t + 1) in objects]
    if not pairs:
        raise DataError(
            f"{table.name}: no sequence has two frames t and t + 1; number the frames without gaps"
        )
    gaps = len(objects) - len(names) - len(pairs)
    if gaps:
        _log.info("%s: %d gap(s) between frames; tracks end there", table.name, gaps)
    return _Frames(table.name, names.tolist(), extents, objects, pairs)


def _axes(table: Table) -> str:
    """Coordinates that the objects have: x and y, and z if the column holds numbers."""
    deep = "z" in table.columns and not np.isnan(table.numbers("z")[0]).all()
    return "xyz" if deep else "xy"


def _features(table: Table, ignore: Collection[str]) -> dict[str, Float64s]:
    """Columns that hold numbers."""
    columns = {}
    without = []
    for name in table.columns:
        if name in {"sequence", *_OBJECT_COLUMNS, *_axes(table), *ignore}:
            continue
        if np.isnan(table.numbers(name)[0]).all():
            without.append(name)
        else:
            columns[name] = table.checked_numbers(
                name, missing=True, advice=f"; correct it, or name {name!r} in ignore"
            )
    if without:
        _log.info("%s: left out, for they hold no numbers: %s", table.name, ", ".join(without))
    return columns


def _of(sequence: str) -> str:
    return f" of sequence {sequence!r}" if sequence else ""


def _read_links(
    table: Table, frames: _Frames, complete: bool, events: Sequence[EventKind]
) -> dict[tuple[int, int], PairAnnotation]:
    """Annotations of the pairs that links name."""
    table.require(_LINK_COLUMNS)
    sequence = _sequence_numbers(table, frames)
    frame = table.integers("frame")
    ids = np.stack([table.integers(f"{end}_id") for end in ("source", "target")], axis=1)
    kinds = np.array(["" if k.lower() in MISSING else k for k in table.texts("kind")], dtype=object)
    known = [event.name for event in events if event.n_sources and event.n_targets]
    known.append("single_daughter")
    for row, kind in enumerate(kinds):
        if kind and kind not in known:
            raise table.fail(
                row,
                f"unknown kind {kind!r}; known are {', '.join(known)}"
                " (a kind of your own has to be given in events)",
            )
    late = LateLinks(table, sequence, frame, ids, kinds, complete=complete)
    _check_late(late, frames)
    order = np.lexsort((ids[:, 1], ids[:, 0], frame, sequence))
    order = order[late.near[order]]
    keys = np.stack([sequence, frame])[:, order]
    starts = np.flatnonzero(np.any(keys[:, 1:] != keys[:, :-1], axis=0)) + 1
    reader = _LinkReader(table, frames, ids, late.kinds_of_near, complete, events)
    annotations = {}
    for rows in np.split(order, starts) if len(order) else []:
        pair = int(sequence[rows[0]]), int(frame[rows[0]])
        annotations[pair] = reader.annotation(pair, rows)
    reader.n_late, reader.n_single = late.n_beyond, reader.n_single + late.n_single
    reader.n_half += late.n_half
    reader.report()
    return late.added_to(annotations)


def _check_late(late: LateLinks, frames: _Frames) -> None:
    """Refuse links to what is not there; frames that they pass over are there, if empty."""
    for row in late.rows:
        for end, key in enumerate(late.ends(row)):
            here = frames.objects.get(key[:2])
            if here is None or key[2] not in here.ids:
                raise late.table.fail(
                    row,
                    f"{('source', 'target')[end]}_id {key[2]} is not in frame {key[1]}"
                    f"{_of(frames.sequences[key[0]])} of {frames.name}; correct the link or add "
                    "the object",
                )
    for sequence, frame in late.passed(frames.objects):
        some = next(iter(frames.objects.values()))
        frames.objects[sequence, frame] = some.take(np.zeros(0, np.int64))
    frames.pairs[:] = [(s, t) for s, t in sorted(frames.objects) if (s, t + 1) in frames.objects]


def _sequence_numbers(table: Table, frames: _Frames) -> Int64s:
    """The number of each link's sequence among those of the objects."""
    if "sequence" not in table.columns:
        if len(frames.sequences) > 1:
            raise DataError(
                f"{table.name} has no column 'sequence', but {frames.name} has "
                f"{len(frames.sequences)} sequences; add the column"
            )
        return np.zeros(len(table), np.int64)
    number = {name: i for i, name in enumerate(frames.sequences)}
    names = table.texts("sequence")
    for row, name in enumerate(names):
        if name not in number:
            raise table.fail(row, f"{frames.name} has no sequence {name!r}")
    return np.array([number[name] for name in names], np.int64)


class _LinkReader:
    """Turns the links of a pair into an annotation; counts what the model cannot say."""

    def __init__(
        self, table: Table, frames: _Frames, ids: Int64s, kinds: NDArray[Any], complete: bool,
        events: Sequence[EventKind],
    ) -> None:  # fmt: skip
        self.table, self.frames, self.ids, self.kinds = table, frames, ids, kinds
        self.complete = complete
        self.forks = tuple(event.name for event in events if event.n_targets == 2)
        self.joins = tuple(event.name for event in events if event.n_sources == 2)
        self.n_single = 0
        self.n_half = 0
        self.n_many = 0
        self.n_late = 0

    def annotation(self, pair: tuple[int, int], rows: Int64s) -> PairAnnotation:
        """Annotation of one pair, from the rows of its links (sorted by source, then target)."""
        source, target = self._objects(pair, rows)
        a = self._find(source, rows, 0, pair)
        b = self._find(target, rows, 1, (pair[0], pair[1] + 1))
        again = np.flatnonzero((a[1:] == a[:-1]) & (b[1:] == b[:-1]))
        if again.size:
            first, second = np.sort(rows[again[0] : again[0] + 2]).tolist()
            raise self.table.fail(
                second,
                f"the link {self.ids[second, 0]} -> {self.ids[second, 1]} is already there "
                f"({self.table.place(first)}); remove one of them",
            )
        forks, joins = np.bincount(a)[a] > 1, np.bincount(b)[b] > 1
        kinds = self.kinds[rows]
        blank = kinds == ""
        kinds[blank] = np.where(forks[blank], "division", "move")
        for j in np.unique(b[joins]):
            self._check_group(rows[b == j], kinds[b == j], self.joins, "pasts", 1)
        for i in np.unique(a[forks]):
            self._check_group(rows[a == i], kinds[a == i], self.forks, "fates", 0)
        two = (*self.forks, *self.joins, "single_daughter")
        alone = ~forks & ~joins & np.isin(kinds.astype(str), two)
        half = alone & (kinds != "single_daughter") & (not self.complete)
        self.n_half += int(half.sum())
        self.n_single += int((alone & ~half).sum())
        kinds[alone] = "move"

        distance = np.linalg.norm(source.position[a] - target.position[b], axis=1)
        too_far = _beyond_two(a, distance), _beyond_two(b, distance)
        self.n_many += sum(
            len(np.unique(end[far])) for end, far in zip((a, b), too_far, strict=True)
        )
        rest = ~(too_far[0] | too_far[1] | half)
        ends = self.ids[rows]
        links = tuple(
            (i, j, str(kind))
            for (i, j), kind in zip(ends[rest].tolist(), kinds[rest].tolist(), strict=True)
        )
        if self.complete:
            return PairAnnotation(links)
        appeared, disappeared = ends[too_far[0], 1], ends[too_far[1], 0]
        return PairAnnotation(links, tuple(disappeared.tolist()), tuple(appeared.tolist()))

    def _objects(self, pair: tuple[int, int], rows: Int64s) -> tuple[Objects, Objects]:
        sequence, frame = pair
        for t in (frame, frame + 1):
            if (sequence, t) not in self.frames.objects:
                raise self.table.fail(
                    rows.min(),
                    f"{self.frames.name} has no frame {t}{_of(self.frames.sequences[sequence])}; "
                    f"a link of frame {frame} joins the frames {frame} and {frame + 1}",
                )
        return self.frames.objects[sequence, frame], self.frames.objects[sequence, frame + 1]

    def _find(self, objects: Objects, rows: Int64s, end: int, place: tuple[int, int]) -> Int64s:
        """Rows of the objects at this end of the links."""
        wanted = self.ids[rows, end]
        at: Int64s = np.minimum(np.searchsorted(objects.ids, wanted), len(objects) - 1)
        lost = np.flatnonzero(objects.ids[at] != wanted)
        if lost.size:
            row = rows[lost].min()
            sequence, frame = place
            raise self.table.fail(
                row,
                f"{('source', 'target')[end]}_id {self.ids[row, end]} is not in frame {frame}"
                f"{_of(self.frames.sequences[sequence])} of {self.frames.name}; correct the link "
                "or add the object",
            )
        return at

    def _check_group(
        self, rows: Int64s, kinds: NDArray[Any], allowed: tuple[str, ...], what: str, end: int
    ) -> None:
        """Refuse several links of one object unless all are of one of these kinds."""
        if kinds[0] in allowed and (kinds == kinds[0]).all():
            return
        order = np.argsort(rows)[:2]  # as the file has them
        (first, one), (second, two) = zip(rows[order].tolist(), kinds[order].tolist(), strict=True)
        others = self.ids[:, 1 - end]
        side = ("target", "source")[end]
        raise self.table.fail(
            second,
            f"object {self.ids[second, end]} has two {what}, {side} {others[first]} as {one} "
            f"({self.table.place(first)}) and {side} {others[second]} as {two}; remove one, or "
            f"call all of them {' or '.join(allowed)}",
        )

    def report(self) -> None:
        """Say in one line what was read as something else."""
        remarks = []
        if self.n_single:
            remarks.append(
                f"{self.n_single} division(s), split(s) or merge(s) with one link: moves"
            )
        if self.n_half:
            remarks.append(
                f"{self.n_half} division(s), split(s) or merge(s) with one link only: not annotated"
            )
        if self.n_many:
            remarks.append(f"{self.n_many} of three or more: only the two nearest")
        if self.n_late:
            remarks.append(
                f"{self.n_late} link(s) of divisions, splits or merges to a later frame than the "
                "next: no links"
            )
        if remarks:
            _log.warning(
                "%s: read as what the model knows: %s", self.table.name, "; ".join(remarks)
            )


def _beyond_two(group: Int64s, distance: Float64s) -> NDArray[np.bool_]:
    """Members of each group other than the two nearest (the first, if equally near)."""
    order = np.lexsort((distance, group))
    beyond = np.zeros(len(group), bool)
    beyond[order[2:]] = group[order[2:]] == group[order[:-2]]
    return beyond
