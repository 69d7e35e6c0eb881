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

from trellis.arrays import Float64s, Int64s, as_array
from trellis.domains import flag, instance, number, whole
from trellis.errors import DataError, ParameterError
from trellis.estimator import old_arguments
from trellis.tracking.annotation import annotated_hypotheses
from trellis.tracking.event_kinds import (
    SOME_EVENTS,
    EventKind,
    Neighbours,
    all_kinds,
    event_names,
)
from trellis.tracking.hypothesis_set import Hypotheses, in_canonical_order, place_of
from trellis.tracking.objects import FramePair

__all__ = ["Hypotheses", "check_gates", "check_positions", "make_hypotheses"]

_FAR = 1e150  # squares of larger numbers are infinite


@old_arguments(neighbours="n_neighbors")
def make_hypotheses(
    pair: FramePair,
    *,
    events: Sequence[str | EventKind] = ("move", "division", "appear", "disappear"),
    n_neighbors: int = 4,
    max_distance: float,
    annotated: bool = True,
) -> Hypotheses:
    """List what may have happened between two frames.

    Parameters
    ----------
    pair : FramePair
        The objects.
    events : sequence of str or EventKind
        Kinds of events there may be, "move", "appear" and "disappear" among them: without these
        three some frames could not be explained at all. Kinds of your own are objects.
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
    ...     print(h.kinds[kind].name, source, target)
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
    kinds, names = all_kinds(events), event_names(events)
    onward = _nearest(pair.source.position, pair.target.position, n_neighbors, max_distance)
    back = _nearest(pair.target.position, pair.source.position, n_neighbors, max_distance)
    near = Neighbours(pair, onward, back)
    parts = [
        _candidates(index, kinds, near) for index, kind in enumerate(kinds) if kind.name in names
    ]
    if annotated and pair.annotation is not None:
        known = annotated_hypotheses(pair, pair.annotation, kinds)
        for index in np.unique(known.kind):
            if kinds[index].name not in names:
                raise DataError(
                    f"{place_of(pair)}: a {kinds[index].name} is annotated, but the events are "
                    f"{', '.join(names)}; add it to the events or remove it from the annotation"
                )
        parts.append(known)
    return in_canonical_order(parts, len(pair.source), len(pair.target))


def _candidates(index: int, kinds: Sequence[EventKind], near: Neighbours) -> Hypotheses:
    """Hypotheses of the kind of this number, as it gives them."""
    kind = kinds[index]
    what = f"{type(kind).__name__}.hypotheses"
    where = place_of(near.pair)
    try:
        given = kind.hypotheses(near)
    except Exception as error:
        raise DataError(f"{where}: {what} failed: {type(error).__name__}: {error}") from error
    if not isinstance(given, tuple) or len(given) != 2:
        raise DataError(f"{what} does not give two arrays, rows of sources and of targets")
    ends = []
    for name, one, objects, width in (
        ("sources", given[0], near.pair.source, kind.n_sources),
        ("targets", given[1], near.pair.target, kind.n_targets),
    ):
        rows = as_array(one, np.int64, f"{name} of {what}", (None, width), low=0, high=len(objects))
        full = np.full((len(rows), 2), -1)
        full[:, :width] = np.sort(rows, axis=1)
        if width == 2 and (full[:, 0] == full[:, 1]).any():
            raise DataError(f"{name} of {what} have an object twice in a row")
        ends.append(full)
    if len(ends[0]) != len(ends[1]):
        raise DataError(f"{what} gives {len(ends[0])} rows of sources, {len(ends[1])} of targets")
    number = np.full(len(ends[0]), index, np.int8)
    return Hypotheses(number, ends[0], ends[1], tuple(kinds))


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


def check_gates(
    events: Sequence[str | EventKind], n_neighbors: int, max_distance: float = 1.0
) -> None:
    """Refuse parameters of :func:`make_hypotheses` that are out of range."""
    SOME_EVENTS.check("events", events)
    kinds, names = all_kinds(events), event_names(events)
    if any(kind.always and kind.name not in names for kind in kinds):
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
