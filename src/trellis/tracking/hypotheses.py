r"""Hypotheses of a frame pair that lie within the gates, or that its annotation names.

The gates are those of Lou and Hamprecht's tracker [1]_: a source moves to one of its k nearest
targets within a distance. They are used from both sides here (a target also has come from one of
*its* k nearest sources), since in a crowd a source's k nearest may all be other cells' targets. A
division or split is a source with any two of its k nearest targets, a merge a target with any two
of its k nearest sources: at most k (k - 1) / 2 for each object. (Originally the pairs were formed
within a frame first, by the same rule of neighbours, and the gate was between the centres of the
object and of the pair.)

References
----------
.. [1] X. Lou, F. A. Hamprecht. Structured Learning for Cell Tracking. NIPS 2011.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trellis.arrays import Float64s, Int64s
from trellis.domains import flag, instance, number, one_of, sequence_of, whole
from trellis.errors import DataError, ParameterError
from trellis.estimator import old_arguments
from trellis.tracking.annotation import annotated_hypotheses
from trellis.tracking.hypothesis_set import Hypotheses, in_canonical_order, place_of
from trellis.tracking.objects import EVENTS, FramePair

__all__ = ["SOME_EVENTS", "Hypotheses", "check_gates", "check_positions", "make_hypotheses"]

_FAR = 1e150  # squares of larger numbers are infinite

SOME_EVENTS = sequence_of(one_of(*EVENTS), f"a list of {', '.join(EVENTS)}")
"""Kinds of events there may be."""


@old_arguments(neighbours="n_neighbors")
def make_hypotheses(
    pair: FramePair,
    *,
    events: Sequence[str] = ("move", "division", "appear", "disappear"),
    n_neighbors: int = 4,
    max_distance: float,
    annotated: bool = True,
) -> Hypotheses:
    """List what may have happened between two frames.

    Parameters
    ----------
    pair : FramePair
        The objects.
    events : sequence of str
        Kinds of events there may be, "move", "appear" and "disappear" among them: without these
        three some frames could not be explained at all.
    n_neighbors : int
        Number k of nearest objects of the other frame that an object may be linked with. Objects at
        the same distance: the first ones.
    max_distance : float
        Greatest distance of the centres of linked objects.
    annotated : bool
        Whether to add what the annotation of the pair names, if it is outside the gates.

    Returns
    -------
    Hypotheses
        Each once, in canonical order.

    Raises
    ------
    DataError
        If an argument is out of range, a centre is not finite, or the annotation is contradictory
        or names an event that is not among ``events``.

    Examples
    --------
    >>> from trellis.tracking import Objects
    >>> one = Objects(np.array([0]), np.array([[5.0, 5.0]]))
    >>> two = Objects(np.array([0, 1]), np.array([[3.0, 5.0], [7.0, 5.0]]))
    >>> h = make_hypotheses(FramePair("film", 0, one, two), max_distance=10.0)
    >>> for kind, source, target in zip(h.kind, h.source, h.target):
    ...     print(EVENTS[kind], source, target)
    move [ 0 -1] [ 0 -1]
    move [ 0 -1] [ 1 -1]
    division [ 0 -1] [0 1]
    appear [-1 -1] [ 0 -1]
    appear [-1 -1] [ 1 -1]
    disappear [ 0 -1] [-1 -1]
    """
    instance(FramePair).check("pair", pair)
    flag.check("annotated", annotated)
    check_gates(events, n_neighbors, max_distance)
    check_positions(pair)
    n, m = len(pair.source), len(pair.target)
    onward = _nearest(pair.source.position, pair.target.position, n_neighbors, max_distance)
    back = _nearest(pair.target.position, pair.source.position, n_neighbors, max_distance)
    to_two, from_two = _with_two(onward), _with_two(back)
    ends = {
        "move": _rows(
            np.concatenate([np.repeat(np.arange(n), onward.shape[1]), back.ravel()]),
            np.concatenate([onward.ravel(), np.repeat(np.arange(m), back.shape[1])]),
        ),
        "division": _rows(to_two[:, 0], to_two[:, 1], to_two[:, 2]),
        "appear": _rows(np.full(m, -1), np.arange(m), complete=False),
        "disappear": _rows(np.arange(n), np.full(n, -1), complete=False),
        "split": _rows(to_two[:, 0], to_two[:, 1], to_two[:, 2]),
        "merge": _rows(from_two[:, 1], from_two[:, 0], second_source=from_two[:, 2]),
    }
    parts = [
        Hypotheses(np.full(len(ends[event][0]), kind, dtype=np.int8), *ends[event])
        for kind, event in enumerate(EVENTS)
        if event in events
    ]
    if annotated and pair.annotation is not None:
        known = annotated_hypotheses(pair, pair.annotation)
        for kind in np.unique(known.kind):
            if EVENTS[kind] not in events:
                raise DataError(
                    f"{place_of(pair)}: a {EVENTS[kind]} is annotated, but the events are "
                    f"{', '.join(events)}; add it to the events or remove it from the annotation"
                )
        parts.append(known)
    return in_canonical_order(parts, n, m)


def _rows(
    source: Int64s,
    target: Int64s,
    second_target: Int64s | None = None,
    *,
    second_source: Int64s | None = None,
    complete: bool = True,
) -> tuple[Int64s, Int64s]:
    """Two columns of sources and of targets; ``complete`` leaves out what lacks a first one."""
    none = np.full(len(source), -1)
    sources = np.stack([source, none if second_source is None else second_source], axis=1)
    targets = np.stack([target, none if second_target is None else second_target], axis=1)
    if complete:
        kept = (source >= 0) & (target >= 0)
        return sources[kept], targets[kept]
    return sources, targets


def _nearest(points: Float64s, others: Float64s, k: int, max_distance: float) -> Int64s:
    """Rows of the k nearest others of each point (n, k), nearest first, -1 where there are fewer.

    Among others at the same distance the first rows are taken. A tree promises no order of ties, so
    it is asked for more neighbours until there is a gap behind the k-th.
    """
    from scipy.spatial import KDTree

    n, m = len(points), len(others)
    k = min(k, m)
    nearest = np.full((n, k), -1, dtype=np.int64)
    if n == 0 or k == 0:
        return nearest
    tree = KDTree(others)
    todo = np.arange(n)
    width = min(k + 1, m)
    rounding = 1 + 1e-9
    while todo.size:
        answer = tree.query(
            points[todo], k=np.arange(1, width + 1), distance_upper_bound=max_distance * rounding
        )
        far, rows = np.asarray(answer[0]), np.asarray(answer[1])
        settled = ~(far[:, -1] <= far[:, k - 1] * rounding) | np.isinf(far[:, -1]) | (width == m)
        here, rows = todo[settled], rows[settled]
        step = others[np.minimum(rows, m - 1)] - points[here, None]
        distance = np.sqrt((step**2).sum(axis=2))
        rows = np.where((rows < m) & (distance <= max_distance), rows, m)
        distance[rows == m] = np.inf
        order = np.lexsort((rows, distance), axis=1)[:, :k]
        rows = np.take_along_axis(rows, order, axis=1)
        nearest[here] = np.where(rows < m, rows, -1)
        todo = todo[~settled]
        width = min(2 * width, m)
    return nearest


def _with_two(nearest: Int64s) -> Int64s:
    """Every row of a table of neighbours with every two of its neighbours (P, 3)."""
    first, second = np.triu_indices(nearest.shape[1], 1)
    pairs = np.sort(np.stack([nearest[:, first], nearest[:, second]], axis=2), axis=2)
    rows = np.broadcast_to(np.arange(len(nearest))[:, None, None], (*pairs.shape[:2], 1))
    triples = np.concatenate([rows, pairs], axis=2).reshape(-1, 3)
    return triples[triples[:, 1] >= 0]


def check_gates(events: Sequence[str], n_neighbors: int, max_distance: float = 1.0) -> None:
    """Refuse parameters of :func:`make_hypotheses` that are out of range."""
    SOME_EVENTS.check("events", events)
    if not {"move", "appear", "disappear"} <= set(events):
        wanted = "a list with move, appear and disappear, or some frames could not be explained"
        raise ParameterError("events", events, wanted)
    whole(1).check("n_neighbors", n_neighbors)
    number(above=0, infinite=True).check("max_distance", max_distance)


def check_positions(pair: FramePair) -> None:
    """Refuse objects whose centres are no numbers, or so large that distances are none."""
    for objects, frame in ((pair.source, pair.frame), (pair.target, pair.frame + 1)):
        bad = ~(np.abs(objects.position) < _FAR).all(axis=1)
        if not bad.any():
            continue
        i = int(np.argmax(bad))
        where = f"sequence {pair.sequence!r}, frame {frame}: the centre of object {objects.ids[i]}"
        if np.isfinite(objects.position[i]).all():
            raise DataError(f"{where} is beyond {_FAR:g}; measure in a larger unit")
        axes = " and ".join("xyz"[: pair.dimensions])
        raise DataError(f"{where} is not finite; remove the object or give its {axes}")
