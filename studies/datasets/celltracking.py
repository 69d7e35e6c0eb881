"""Two real movies of dividing cells with true links, and thinner copies of them.

``cellmigration`` (fluorescent nuclei, few divisions, some detections that are no cell) and
``epidermis`` (two regions of a living tissue, many divisions, cells that leave it) are read from
the sub-folder ``celltracking`` of ``$TRELLIS_DATA``; see :mod:`studies.datasets.folder`. A
detection that is no cell appears and disappears. :func:`drop_detections` leaves detections out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

import numpy as np

from studies.datasets.folder import data_folder
from trellis.errors import DataError
from trellis.tracking.objects import FramePair, Objects, PairAnnotation
from trellis.tracking.reading import read_detections

__all__ = ["drop_detections", "load_cells"]

_SOURCES = ("cellmigration", "epidermis")


def load_cells(
    source: str,
    *,
    sequences: Collection[str] | None = None,
    frames: tuple[int, int] | None = None,
    thin: int = 1,
) -> list[FramePair]:
    """Load a real data set of dividing cells, completely annotated.

    Parameters
    ----------
    source : {"cellmigration", "epidermis"}
    sequences : collection of str, optional
        Sequences to take: "cellmigration"; "epidermis_area1", "epidermis_area2". Default: all.
    frames : (int, int), optional
        First frame, and the frame before which to stop. Default: all.
    thin : int
        Take only frames whose number is a multiple of this, and number them 0, 1, 2, … (the old
        number divided by ``thin``). An object is linked to those of its descendants that the next
        frame taken shows: to one by a move, even if it divided and lost the others; to two by a
        division; of more than two only to the two nearest, while the others appear.

    Returns
    -------
    list of FramePair
        Sorted by sequence and frame.

    Raises
    ------
    DataError
        If the files are missing or damaged, or the arguments leave no pair of frames.

    Examples
    --------
    >>> pairs = load_cells("epidermis", sequences=["epidermis_area1"])  # doctest: +SKIP
    >>> len(pairs), len(pairs[0].source)  # doctest: +SKIP
    (14, 317)
    >>> load_cells("dermis")
    Traceback (most recent call last):
    trellis.errors.DataError: unknown cells 'dermis'; known: cellmigration, epidermis
    """
    if source not in _SOURCES:
        raise DataError(f"unknown cells {source!r}; known: {', '.join(_SOURCES)}")
    if not isinstance(thin, int | np.integer) or isinstance(thin, bool) or thin < 1:
        raise DataError(f"thin must be an integer, at least 1; got {thin!r}")
    start, stop = _span(frames)
    folder = data_folder("celltracking")
    objects, links = (folder / f"{source}_{what}.csv.xz" for what in ("objects", "links"))
    pairs = read_detections(objects, links)
    if sequences is not None:
        known = sorted({pair.sequence for pair in pairs})
        wanted = {sequences} if isinstance(sequences, str) else set(sequences)
        if not wanted <= set(known):
            lost = ", ".join(map(repr, sorted(wanted - set(known))))
            raise DataError(f"no sequence {lost} in {source}; known: {', '.join(known)}")
        pairs = [pair for pair in pairs if pair.sequence in wanted]
    pairs = [pair for pair in pairs if start <= pair.frame and pair.frame + 1 < stop]
    if thin > 1:
        pairs = _thinned(pairs, int(thin))
    if not pairs:
        raise DataError(
            f"no two frames of {source} are left by sequences {sequences!r}, frames {frames!r} "
            f"and thin {thin}; take more"
        )
    return pairs


def _span(frames: tuple[int, int] | None) -> tuple[float, float]:
    if frames is None:
        return -np.inf, np.inf
    try:
        start, stop = (int(frame) for frame in frames)
    except (TypeError, ValueError):
        raise DataError(
            f"frames must be a pair (first, stop) of integers, got {frames!r}"
        ) from None
    return start, stop


def _thinned(pairs: list[FramePair], k: int) -> list[FramePair]:
    """Every k-th frame, with links from each object to its descendants k frames later.

    Links are moves and divisions, so an object has one past, and one ancestor.
    """
    at = {(pair.sequence, pair.frame): pair for pair in pairs}
    thinned = []
    for (sequence, frame), first in at.items():
        run = [at.get((sequence, t)) for t in range(frame, frame + k)]
        if frame % k or any(pair is None for pair in run):
            continue
        steps = [pair for pair in run if pair is not None]
        annotation = _composed(steps)
        target = steps[-1].target
        thinned.append(
            FramePair(sequence, frame // k, first.source, target, annotation, first.extent)
        )
    return thinned


def _composed(steps: list[FramePair]) -> PairAnnotation:
    """Annotation of the first frame's objects and the last frame's."""
    source, target = steps[0].source, steps[-1].target
    descendants = {i: [i] for i in source.ids.tolist()}
    for step in steps:
        fates: dict[int, list[int]] = {}
        if step.annotation is not None:
            for a, b, _ in step.annotation.links:
                fates.setdefault(a, []).append(b)
        descendants = {
            i: [b for a in found for b in fates.get(a, ())] for i, found in descendants.items()
        }
    place = {j: row for row, j in enumerate(target.ids.tolist())}
    links = []
    for row, i in enumerate(source.ids.tolist()):
        found = sorted(descendants[i])
        if len(found) > 2:
            away = target.position[[place[j] for j in found]] - source.position[row]
            nearest = np.argsort(np.hypot(away[:, 0], away[:, 1]), kind="stable")[:2]
            found = sorted(found[n] for n in nearest)
        links += [(i, j, "division" if len(found) == 2 else "move") for j in found]
    return PairAnnotation(tuple(links))


def drop_detections(pairs: Iterable[FramePair], share: float, *, seed: int) -> list[FramePair]:
    """Leave out detections at random, as if the cells had been missed.

    Parameters
    ----------
    pairs : iterable of FramePair
        Annotated in full, with moves and divisions, and no gaps yet.
    share : float
        Probability that a detection is left out, at least 0 and less than 1.
    seed : int
        Which ones.

    Returns
    -------
    list of FramePair
        Sorted by sequence and frame. An object is linked to those of its descendants that the next
        frame still shows, to one by a move, to two by a division; if there is none, and one in the
        first later frame that shows any, over a gap. A cell that divided while it was missed ends,
        and its daughters begin.

    Raises
    ------
    DataError
        If the share is none, or something is annotated that cannot be followed.

    Examples
    --------
    >>> cell = Objects(np.array([7]), np.zeros((1, 2)))
    >>> note = PairAnnotation(((7, 7, "move"),))
    >>> whole = [FramePair("film", t, cell, cell, note) for t in range(4)]
    >>> pairs = drop_detections(whole, 0.3, seed=0)
    >>> [pair.source.ids.tolist() for pair in pairs], pairs[0].annotation.gaps
    ([[7], [], [], []], ((7, 7, 4),))
    """
    if not 0 <= share < 1:
        raise DataError(f"share must be at least 0 and less than 1, got {share!r}")
    listed = sorted(pairs, key=lambda pair: (pair.sequence, pair.frame))
    frames: dict[_Place, Objects] = {}
    children: dict[_Place, dict[int, list[int]]] = {}
    for pair in listed:
        where = f"{pair.sequence}, frame {pair.frame}"
        note = pair.annotation
        if note is None or not note.complete or note.gaps:
            raise DataError(f"{where} must be annotated in full, without gaps")
        if other := {kind for *_, kind in note.links} - {"move", "division"}:
            raise DataError(f"{where} has a link of kind {min(other)!r}; only cells are followed")
        frames.setdefault((pair.sequence, pair.frame), pair.source)
        frames.setdefault((pair.sequence, pair.frame + 1), pair.target)
        fates = children.setdefault((pair.sequence, pair.frame), {})
        for a, b, _ in note.links:
            fates.setdefault(a, []).append(b)
    rng = np.random.default_rng(seed)
    left = {
        place: objects.take(np.flatnonzero(rng.random(len(objects)) >= share))
        for place, objects in sorted(frames.items(), key=lambda item: item[0])
    }
    seen = {place: set(objects.ids.tolist()) for place, objects in left.items()}
    dropped = []
    for pair in listed:
        links: list[tuple[int, int, str]] = []
        gaps: list[tuple[int, int, int]] = []
        for i in left[pair.sequence, pair.frame].ids.tolist():
            frame, found = _seen_next((pair.sequence, pair.frame), i, children, seen)
            if frame == pair.frame + 1:
                links += [(i, j, "division" if len(found) == 2 else "move") for j in found]
            elif len(found) == 1:
                gaps.append((i, found[0], frame))
        dropped.append(
            replace(
                pair,
                source=left[pair.sequence, pair.frame],
                target=left[pair.sequence, pair.frame + 1],
                annotation=PairAnnotation(tuple(links), gaps=tuple(gaps)),
            )
        )
    return dropped


_Place = tuple[str, int]  # sequence, frame


def _seen_next(
    place: _Place,
    number: int,
    children: dict[_Place, dict[int, list[int]]],
    seen: dict[_Place, set[int]],
) -> tuple[int, list[int]]:
    """First later frame that shows descendants of an object, and which; none at the end."""
    sequence, frame = place
    living = [number]
    while living:
        fates = children.get((sequence, frame), {})
        living = sorted(b for a in living for b in fates.get(a, ()))
        frame += 1
        if found := [b for b in living if b in seen[sequence, frame]]:
            return frame, found
    return frame, []
