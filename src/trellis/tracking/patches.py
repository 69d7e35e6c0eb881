r"""Patches of a frame pair: small problems to ask an annotator about.

The field of view is divided by a grid of squares in x and y; in three dimensions a patch is all
that lies above one, since volumes are wide rather than deep and are looked at from above. An object
belongs to the patch that its centre lies in, sources and targets alike: only geometry counts, so
that a pool of patches can be made before anything is annotated. What is annotated stays with a
patch if all objects of the event are in it. An event across a border is dropped, and its objects
become *not annotated* in their patches: it is not known there what happened to them, and "appeared"
or "disappeared" would be wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from trellis.arrays import Bools, Float64s, Int64s
from trellis.domains import number, one_of
from trellis.errors import DataError
from trellis.tracking.annotation import annotated_hypotheses, links_of
from trellis.tracking.event_kinds import SOME_EVENTS, EventKind, all_kinds
from trellis.tracking.objects import FramePair, PairAnnotation, checked_pairs

__all__ = ["patchify"]


_MOST_SQUARES = 1e9


def patchify(
    pairs: Iterable[FramePair],
    size: float | Literal["auto"] = "auto",
    *,
    objects: float = 20,
    events: Sequence[str | EventKind] = (),
) -> list[FramePair]:
    """Divide frame pairs into square patches.

    Parameters
    ----------
    pairs : iterable of FramePair
        The pairs, annotated or not.
    size : float or "auto"
        Side of the squares. The last ones of a row or column are narrower or wider by up to a half,
        so that there are no slivers. "auto": such that a patch has about ``objects`` sources.
    objects : float
        Sources of a patch on average, if the size is to be found; over all pairs.
    events : sequence of EventKind or str
        Kinds of your own that are annotated.

    Returns
    -------
    list of FramePair
        Pair by pair, row by row; patches without any object are left out. Every object is in one
        of them. Sequence, frame and extent are those of the pair. A complete annotation remains
        complete where no event crosses the border of the patch; elsewhere its lists of known
        objects say which still are.

    Raises
    ------
    DataError
        If the size is not positive or ``objects`` less than 1, a centre is not finite, or an
        annotation is contradictory.

    Examples
    --------
    Two cells move, one of them across the border at x = 5:

    >>> from trellis.tracking.objects import Objects
    >>> before = Objects(np.array([0, 1]), np.array([[1.0, 2.0], [4.0, 2.0]]))
    >>> after = Objects(np.array([0, 1]), np.array([[2.0, 2.0], [6.0, 2.0]]))
    >>> note = PairAnnotation(((0, 0, "move"), (1, 1, "move")))
    >>> pair = FramePair("film", 0, before, after, note, extent=(0.0, 0.0, 10.0, 5.0))
    >>> left, right = patchify([pair], 5.0)
    >>> left.source.ids, left.annotation.links, left.annotation.known_sources
    (array([0, 1]), ((0, 0, 'move'),), (0,))
    >>> right.target.ids, right.annotation.links, right.annotation.known_targets
    (array([1]), (), ())
    """
    pairs = checked_pairs(pairs)
    (one_of("auto") | number(above=0)).check("size", size)
    number(at_least=1).check("objects", objects)
    SOME_EVENTS.check("events", events)
    side = _side(pairs, objects) if isinstance(size, str) else float(size)
    kinds = all_kinds(events)
    return [patch for pair in pairs for patch in _patches(pair, side, kinds)]


def _field(pair: FramePair) -> tuple[Float64s, Float64s]:
    """Least and greatest x, y: of the field of view, or of the objects if that is not known."""
    n = pair.dimensions
    position = np.concatenate([pair.source.position, pair.target.position])
    if not np.isfinite(position).all():
        raise DataError(
            f"sequence {pair.sequence!r}, frame {pair.frame}: a centre is not finite; remove the "
            f"object or give its {' and '.join('xyz'[:n])}"
        )
    low, high = np.array(pair.extent[:2]), np.array(pair.extent[n : n + 2])
    if (np.isfinite(low) & np.isfinite(high)).all() or not len(position):
        return low, high
    return position[:, :2].min(axis=0), position[:, :2].max(axis=0)


def _side(pairs: list[FramePair], objects: float) -> float:
    """Side of squares that have about so many sources each."""
    area = sources = 0.0
    for pair in pairs:
        if len(pair.source):
            low, high = _field(pair)
            area += float(np.prod(high - low))
            sources += len(pair.source)
    side = float(np.sqrt(area * objects / sources)) if sources else 0.0
    # Fields without an area cannot be divided by density: each is one patch.
    return side if side > 0 else np.inf


def _patches(pair: FramePair, side: float, kinds: Sequence[EventKind]) -> list[FramePair]:
    if not len(pair.source) and not len(pair.target):
        return []
    low, high = _field(pair)
    squares = np.maximum(1, np.rint((high - low) / side))
    if squares.prod() > _MOST_SQUARES:
        raise DataError(
            f"sequence {pair.sequence!r}, frame {pair.frame}: patches of size {side} would divide "
            f"the field into {squares.prod():.0e} squares; make them larger"
        )

    def cell(position: Float64s) -> Int64s:
        place = np.floor((position[:, :2] - low) / side)
        column, row = np.clip(place, 0, squares - 1).astype(np.int64).T
        return np.asarray(row * int(squares[0]) + column)

    cells = np.concatenate([cell(pair.source.position), cell(pair.target.position)])
    n = len(pair.source)
    annotations = _annotations(pair, cells, kinds)
    return [
        pair.part(cells[:n] == square, cells[n:] == square, annotations.get(square))
        for square in np.unique(cells).tolist()
    ]


def _annotations(
    pair: FramePair, cells: Int64s, kinds: Sequence[EventKind]
) -> dict[int, PairAnnotation]:
    """What is known in each patch; ``cells`` are those of all sources, then of all targets."""
    if pair.annotation is None:
        return {}
    known = annotated_hypotheses(pair, pair.annotation, kinds)
    n = len(pair.source)
    covers = known.covers(n)
    home = cells[covers[:, 0]]
    whole = ((cells[covers] == home[:, None]) | (covers < 0)).all(axis=1)
    settled = np.zeros(len(cells), dtype=bool)
    rows = covers[whole]
    settled[rows[rows >= 0]] = True

    def listed(ids: Int64s, inside: Bools, settled: Bools) -> tuple[int, ...] | None:
        return None if settled[inside].all() else tuple(ids[inside & settled].tolist())

    annotations = {}
    for square in np.unique(cells).tolist():
        inside = cells == square
        links = links_of(pair, known, whole & (home == square))
        annotations[square] = PairAnnotation(
            tuple((link.source_id, link.target_id, link.kind) for link in links),
            listed(pair.source.ids, inside[:n], settled[:n]),
            listed(pair.target.ids, inside[n:], settled[n:]),
            _gaps_of(pair.annotation, pair.source.ids[inside[:n]]),
        )
    return annotations


def _gaps_of(annotation: PairAnnotation, sources: Int64s) -> tuple[tuple[int, int, int], ...]:
    here = set(sources.tolist())
    return tuple(gap for gap in annotation.gaps if gap[0] in here)
