r"""Annotations as choices of hypotheses, and back.

An annotation names true events. Each object has one fate or one past, so a true hypothesis h makes
those false that share an object with it: of the variables :math:`y \in \{0, 1\}^H` it fixes

.. math:: y_h = 1, \qquad y_g = 0 \quad \text{for } g \ne h,\; g \cap h \ne \emptyset ,

and leaves the others free. A choice that covers every object once is a complete annotation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from trellis.arrays import Bools, Int8s, Int64s
from trellis.errors import DataError, InfeasibleError
from trellis.tracking.event_kinds import KINDS, EventKind
from trellis.tracking.hypothesis_set import (
    Hypotheses,
    hypothesis_keys,
    in_canonical_order,
    place_of,
)
from trellis.tracking.objects import EVENTS, FramePair, Link, Objects, PairAnnotation

__all__ = ["annotated_hypotheses", "annotation_of", "events_of", "fixed_variables", "links_of"]


APPEAR, DISAPPEAR = EVENTS.index("appear"), EVENTS.index("disappear")


def annotated_hypotheses(
    pair: FramePair, annotation: PairAnnotation, kinds: Sequence[EventKind] = KINDS
) -> Hypotheses:
    """List the hypotheses that an annotation says are true.

    Parameters
    ----------
    pair : FramePair
        The objects; its own annotation is not looked at.
    annotation : PairAnnotation
        Links between them, and objects whose fate or past is known.
    kinds : sequence of EventKind
        Kinds of events: those of EVENTS, then those of one's own.

    Returns
    -------
    Hypotheses
        In canonical order. A known object that no link names has appeared or disappeared, and so
        has the source of a gap: within the pair it is not seen again.

    Raises
    ------
    DataError
        If an id is not in its frame or there more than once, a kind of link is not known, an object
        has two fates or two pasts, a division, split or merge is not one of two objects, or a gap
        leads to the next frame or an earlier one.

    Examples
    --------
    >>> cells = Objects(np.array([4, 5]), np.zeros((2, 2)))
    >>> pair = FramePair("film", 0, cells, cells)
    >>> h = annotated_hypotheses(pair, PairAnnotation(((4, 5, "move"),), known_targets=()))
    >>> [h.kinds[kind].name for kind in h.kind], h.source.tolist(), h.target.tolist()
    (['move', 'disappear'], [[0, -1], [1, -1]], [[1, -1], [-1, -1]])
    """
    where = place_of(pair)
    source_row = _row_of_id(pair.source, f"{where}: source")
    target_row = _row_of_id(pair.target, f"{where}: target")
    fates: dict[int, list[tuple[int, str]]] = defaultdict(list)
    pasts: dict[int, list[tuple[int, str]]] = defaultdict(list)
    number = {k.name: i for i, k in enumerate(kinds) if k.n_sources and k.n_targets}
    forks = {k.name for k in kinds if k.n_targets == 2}
    joins = {k.name for k in kinds if k.n_sources == 2}
    for source, target, kind in annotation.links:
        if kind not in number:
            raise DataError(
                f"{where}: the link from {source} to {target} is of kind {kind!r}, "
                f"not {', '.join(number)}; a kind of your own must be given as an object in events"
            )
        _check_known(source, source_row, f"{where}: the link ({source}, {target}, {kind!r})")
        _check_known(
            target, target_row, f"{where}: the link ({source}, {target}, {kind!r})", pair.frame + 1
        )
        fates[source].append((target, kind))
        pasts[target].append((source, kind))

    events = []
    for source, links in fates.items():
        said = {kind for _, kind in links}
        targets = sorted(target_row[target] for target, _ in links)
        two = len(said) == 1 and links[0][1] in forks
        if two and (len(targets) != 2 or targets[0] == targets[1]):
            raise DataError(
                f"{where}: the {links[0][1]} of source {source} has the targets "
                f"{[target for target, _ in links]}, not two; call it a move if only one is there, "
                "or leave the source and its targets out of the annotation"
            )
        if not two and len(links) > 1:
            raise DataError(f"{where}: source {source} has two fates: {_listed('to', links)}")
        if links[0][1] not in joins:
            second = targets[1] if two else -1
            events.append((number[links[0][1]], source_row[source], -1, targets[0], second))
    for target, links in pasts.items():
        kind = links[0][1]
        merged = kind in joins and all(other == kind for _, other in links)
        sources = sorted(source_row[source] for source, _ in links)
        if merged and len(sources) != 2:
            raise DataError(
                f"{where}: the {kind} into target {target} has the sources "
                f"{[source for source, _ in links]}, not two; call it a move if only one is there, "
                "or leave the target and its sources out of the annotation"
            )
        if not merged and len(links) > 1:
            raise DataError(f"{where}: target {target} has two pasts: {_listed('from', links)}")
        if merged:
            events.append((number[kind], sources[0], sources[1], target_row[target], -1))

    for source, target, frame in annotation.gaps:
        gap = f"{where}: the gap from {source} to {target} of frame {frame}"
        _check_known(source, source_row, gap)
        if frame <= pair.frame + 1:
            raise DataError(f"{gap} is none; call it a link, or name a frame after the next")
        if source in fates:
            raise DataError(f"{gap} is a second fate of source {source}; remove its links or it")
    known_sources, known_targets = annotation.known_sources, annotation.known_targets
    missed = [source for source, _, _ in annotation.gaps]
    if len(set(missed)) < len(missed):
        twice = next(source for source in missed if missed.count(source) > 1)
        raise DataError(f"{where}: source {twice} has two gaps; remove one of them")
    for source in source_row if known_sources is None else dict.fromkeys((*known_sources, *missed)):
        _check_known(source, source_row, f"{where}: known_sources")
        if source not in fates:
            events.append((DISAPPEAR, source_row[source], -1, -1, -1))
    for target in target_row if known_targets is None else known_targets:
        _check_known(target, target_row, f"{where}: known_targets", pair.frame + 1)
        if target not in pasts:
            events.append((APPEAR, -1, -1, target_row[target], -1))

    table = np.array(events, dtype=np.int64).reshape(-1, 5)
    known = Hypotheses(table[:, 0].astype(np.int8), table[:, 1:3], table[:, 3:], tuple(kinds))
    return in_canonical_order([known], len(pair.source), len(pair.target))


def fixed_variables(
    pair: FramePair, hypotheses: Hypotheses, annotation: PairAnnotation | None
) -> Int8s:
    """Translate an annotation into variables that are known.

    What is annotated is true; every other hypothesis about one of the same objects is false, since
    an object has one fate and one past; the rest is free.

    Parameters
    ----------
    pair, hypotheses : FramePair, Hypotheses
        The objects, and what may have happened to them.
    annotation : PairAnnotation or None
        What is known; None: nothing.

    Returns
    -------
    int8, shape (H,)
        1 true, 0 false, -1 free.

    Raises
    ------
    DataError
        If the annotation is contradictory (see :func:`annotated_hypotheses`).
    InfeasibleError
        If what is annotated is not among the hypotheses, or leaves an object without any.

    Examples
    --------
    >>> from trellis.tracking import make_hypotheses
    >>> cells = Objects(np.array([4, 5]), np.array([[0.0, 0.0], [9.0, 0.0]]))
    >>> pair = FramePair("film", 0, cells, cells)
    >>> h = make_hypotheses(pair, events=("move", "appear", "disappear"), max_distance=20.0)
    >>> fixed_variables(pair, h, PairAnnotation(((4, 4, "move"),), (), ())).tolist()
    [1, 0, 0, -1, 0, -1, 0, -1]
    """
    fixed = np.full(len(hypotheses), -1, dtype=np.int8)
    if annotation is None:
        return fixed
    n, m = len(pair.source), len(pair.target)
    _check_rows(pair, hypotheses)
    known = annotated_hypotheses(pair, annotation, hypotheses.kinds)
    keys, wanted = hypothesis_keys(hypotheses, n, m), hypothesis_keys(known, n, m)
    order = np.argsort(keys, kind="stable")
    at = np.searchsorted(keys, wanted, sorter=order)
    present = at < len(keys)
    present[present] = keys[order[at[present]]] == wanted[present]
    if not present.all():
        missing = known.take(np.flatnonzero(~present)[:1])
        raise InfeasibleError(
            f"{place_of(pair)}: the annotated {_described(pair, missing)} is not among the "
            "hypotheses; make them with more neighbours or a larger max_distance, or with "
            "annotated=True from a pair that has this annotation"
        )
    # Rows that no hypothesis covers (-1) look into the last entry, which stays False.
    taken = np.zeros(n + m + 1, dtype=bool)
    taken[known.covers(n).ravel()] = True
    taken[-1] = False
    covers = hypotheses.covers(n)
    fixed[taken[covers].any(axis=1)] = 0
    fixed[order[at]] = 1
    left = np.zeros(n + m + 1, dtype=bool)
    left[covers[fixed != 0].ravel()] = True
    if not left[:-1].all():
        row = int(np.argmin(left[:-1]))
        name = _object_name(pair, row)
        raise InfeasibleError(
            f"{place_of(pair)}: the annotation leaves no hypothesis for {name}; every object needs "
            "one of appearing or disappearing"
        )
    return fixed


def annotation_of(pair: FramePair, hypotheses: Hypotheses, chosen: Bools) -> PairAnnotation:
    """Write a choice of hypotheses that covers every object once as a complete annotation.

    Parameters
    ----------
    pair, hypotheses : FramePair, Hypotheses
        The objects, and what may have happened to them.
    chosen : bool, shape (H,)
        Which hypotheses are true.

    Returns
    -------
    PairAnnotation
        The links; every object is known.

    Raises
    ------
    DataError
        If an object is not covered once.

    Examples
    --------
    >>> from trellis.tracking import make_hypotheses
    >>> cells = Objects(np.array([4]), np.zeros((1, 2)))
    >>> pair = FramePair("film", 0, cells, cells)
    >>> h = make_hypotheses(pair, max_distance=1.0)
    >>> annotation_of(pair, h, np.array([True, False, False])).links
    ((4, 4, 'move'),)
    """
    chosen = _checked_choice(pair, hypotheses, chosen)
    n = len(pair.source)
    rows = hypotheses.take(chosen).covers(n)
    counts = np.bincount(rows[rows >= 0], minlength=n + len(pair.target))
    if (counts != 1).any():
        row = int(np.argmax(counts != 1))
        name = _object_name(pair, row)
        raise DataError(
            f"{place_of(pair)}: {counts[row]} of the chosen hypotheses are about {name}, not one"
        )
    links = links_of(pair, hypotheses, chosen)
    return PairAnnotation(tuple((link.source_id, link.target_id, link.kind) for link in links))


def links_of(pair: FramePair, hypotheses: Hypotheses, chosen: Bools) -> list[Link]:
    """List the links of the chosen hypotheses, in their order.

    A move has one link; a division, split or merge has two. The parameters are those of
    :func:`annotation_of`.

    Examples
    --------
    >>> from trellis.tracking import make_hypotheses
    >>> cells = Objects(np.array([4]), np.zeros((1, 2)))
    >>> pair = FramePair("film", 7, cells, cells)
    >>> links_of(pair, make_hypotheses(pair, max_distance=1.0), np.array([True, False, False]))
    [Link(sequence='film', frame=7, source_id=4, target_id=4, kind='move', frame_target=8)]
    """
    chosen = _checked_choice(pair, hypotheses, chosen)
    linking = chosen & (hypotheses.source[:, 0] >= 0) & (hypotheses.target[:, 0] >= 0)
    h = hypotheses.take(linking)
    # All four corners; a link is where both of its ends are.
    source, target = np.repeat(h.source, 2, axis=1).ravel(), np.tile(h.target, 2).ravel()
    kind = np.repeat(h.kind, 4)
    real = (source >= 0) & (target >= 0)
    return [
        Link(pair.sequence, pair.frame, a, b, hypotheses.kinds[e].name)
        for a, b, e in zip(
            pair.source.ids[source[real]].tolist(),
            pair.target.ids[target[real]].tolist(),
            kind[real].tolist(),
            strict=True,
        )
    ]


def events_of(pair: FramePair, hypotheses: Hypotheses, chosen: Bools) -> tuple[Int64s, Int64s]:
    """Ids of the objects that appear (in the second frame) and that disappear (in the first).

    The parameters are those of :func:`annotation_of`.

    Examples
    --------
    >>> from trellis.tracking import make_hypotheses
    >>> cells = Objects(np.array([4]), np.zeros((1, 2)))
    >>> pair = FramePair("film", 0, cells, cells)
    >>> events_of(pair, make_hypotheses(pair, max_distance=1.0), np.array([False, True, True]))
    (array([4]), array([4]))
    """
    chosen = _checked_choice(pair, hypotheses, chosen)
    appear = hypotheses.target[chosen & hypotheses.of("appear"), 0]
    disappear = hypotheses.source[chosen & hypotheses.of("disappear"), 0]
    return pair.target.ids[appear], pair.source.ids[disappear]


# ------------------------------------------------------------------------------ checks and messages


def _object_name(pair: FramePair, row: int) -> str:
    n = len(pair.source)
    return f"source {pair.source.ids[row]}" if row < n else f"target {pair.target.ids[row - n]}"


def _listed(preposition: str, links: Sequence[tuple[int, str]]) -> str:
    return ", ".join(f"a {kind} {preposition} {other}" for other, kind in links)


def _described(pair: FramePair, one: Hypotheses) -> str:
    """Name a single hypothesis by the ids of its objects."""
    sources = [str(pair.source.ids[i]) for i in one.source[0] if i >= 0]
    targets = [str(pair.target.ids[j]) for j in one.target[0] if j >= 0]
    text: str = one.kinds[one.kind[0]].name
    if sources:
        text += f" of source {' and '.join(sources)}"
    if targets:
        text += f" {'to' if sources else 'of'} target {' and '.join(targets)}"
    return text


def _check_rows(pair: FramePair, hypotheses: Hypotheses) -> None:
    n, m = len(pair.source), len(pair.target)
    if hypotheses.source.max(initial=-1) >= n or hypotheses.target.max(initial=-1) >= m:
        raise DataError(
            f"{place_of(pair)}: the hypotheses are of another pair: it has {n} sources and "
            f"{m} targets, they have more"
        )


def _checked_choice(pair: FramePair, hypotheses: Hypotheses, chosen: Bools) -> Bools:
    _check_rows(pair, hypotheses)
    mask = np.asarray(chosen)
    if mask.shape != (len(hypotheses),) or mask.dtype != np.bool_:
        raise DataError(
            f"{place_of(pair)}: the choice is an array of {mask.dtype} of shape {mask.shape}, "
            f"not of bool of shape ({len(hypotheses)},)"
        )
    return mask


def _row_of_id(objects: Objects, name: str) -> dict[int, int]:
    rows = {identity: row for row, identity in enumerate(objects.ids.tolist())}
    if len(rows) < len(objects):
        ids, counts = np.unique(objects.ids, return_counts=True)
        raise DataError(f"{name} id {ids[np.argmax(counts > 1)]} is there more than once")
    return rows


def _check_known(identity: int, rows: dict[int, int], what: str, frame: int | None = None) -> None:
    if identity not in rows:
        place = "the first frame" if frame is None else f"the second frame, {frame}"
        raise DataError(f"{what} names object {identity}, which is not in {place}")
