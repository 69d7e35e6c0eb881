r"""Features of hypotheses: numbers that say how likely an event looks, one list for each event.

For a hypothesis h of event e the features are :math:`F_h \in \mathbb R^{K_e}`, functions of its
objects; the score of a tracking y is :math:`\sum_h y_h \langle w_e, F_h \rangle` (after
:class:`~trellis.tracking.preconditioning.Preconditioner`). Those that are made of any table of
objects are in :mod:`trellis.tracking.default_features`; users add their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trellis.arrays import Float64s, Int64s
from trellis.domains import flag, strings, text
from trellis.errors import DataError
from trellis.tracking.objects import FramePair, Objects

if TYPE_CHECKING:
    from trellis.tracking.event_kinds import EventKind
    from trellis.tracking.hypothesis_set import Hypotheses

__all__ = [
    "EventFeature",
    "Frame",
    "Relations",
    "area_of",
    "average_of",
    "border_distance",
    "check_events_of",
    "event_features",
    "relative_difference",
    "roles",
]


@dataclass(frozen=True, eq=False)
class Frame:
    """All objects of a frame, and its field of view.

    Parameters
    ----------
    objects : Objects
        The objects.
    extent : tuple of 4 or 6 floats
        Least x, y (and z), then greatest x, y (and z).

    Examples
    --------
    >>> cells = Objects(np.arange(2), np.array([[1.0, 5.0], [6.0, 6.0]]),
    ...                 {"area": np.array([30.0, np.nan])})
    >>> frame = Frame(cells, (0.0, 0.0, 10.0, 8.0))
    >>> frame.average("area"), frame.border_distance(cells).tolist()
    (30.0, [1.0, 2.0])
    """

    objects: Objects
    extent: tuple[float, ...]

    def average(self, column: str) -> float:
        """Mean of a column over the objects that have it; NaN if none has."""
        return float(average_of(self.objects[column]))

    def border_distance(self, objects: Objects) -> Float64s:
        """Distance of centres to the nearest side of the field of view, shape (n,)."""
        return border_distance(objects.position, self.extent)


@dataclass(frozen=True, eq=False)
class Relations:
    """What is known of two objects together, for the hypotheses of an event.

    Parameters
    ----------
    matrices : mapping of str to scipy.sparse.csr_array, shape (n + m, n + m)
        The relations of a :class:`~trellis.tracking.objects.FramePair`.
    rows : int64, shape (H, R)
        The objects in each of the R roles of the event, targets after the n sources.

    Examples
    --------
    Of two moves, the pixels that source and target have in common:

    >>> from scipy.sparse import csr_array
    >>> shared = csr_array(([35.0], ([0], [1])), shape=(3, 3))
    >>> relations = Relations({"overlap": shared}, np.array([[0, 1], [0, 2]]))
    >>> relations.between("overlap", 0, 1)
    array([35.,  0.])
    """

    matrices: Mapping[str, Any]
    rows: Int64s

    def between(self, name: str, a: int, b: int, otherwise: float = 0.0) -> Float64s:
        """Values (H,) of a relation between the objects in role a and in role b.

        ``otherwise`` stands where the matrix has no entry. With a = b it is what concerns the
        object and the other frame as a whole.
        """
        matrix = self.matrices[name]
        size = max(matrix.shape[0], 1)
        entries = matrix.tocoo()
        keys = entries.row.astype(np.int64) * size + entries.col
        order = np.argsort(keys, kind="stable")
        wanted = self.rows[:, a] * size + self.rows[:, b]
        if not len(keys):
            return np.full(len(wanted), otherwise)
        at = np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)
        there = keys[order[at]] == wanted
        return np.where(there, entries.data[order[at]], otherwise)


@dataclass(frozen=True)
class EventFeature:
    """A feature of one kind of event.

    Parameters
    ----------
    event : str
        One of EVENTS, or the name of a kind of your own.
    name : str
        Name, each once for an event.
    values : callable
        Computes the feature of H hypotheses at once, shape (H,). It is given one
        :class:`~trellis.tracking.objects.Objects` of length H for each role:

        ============== ===========================================
        move           source, target
        division,split parent, first, second
        merge          first, second, target
        appear         target, frame (the :class:`Frame` of targets)
        disappear      source, frame (the :class:`Frame` of sources)
        ============== ===========================================

        A kind of one's own has the roles of a move, a division or a merge, by its numbers of
        sources and targets.
        "first" and "second" are in the order of their rows, which means nothing: a feature should
        be symmetric in them. NaN and infinity say that a value is missing.
    needs_frame : bool
        Whether the function wants a Frame as another argument: of move, division and split that of
        the sources, of merge that of the targets.
    relations : tuple of str
        Names of relations of the pair that values wants; if there are any, its last argument is a
        :class:`Relations`, in which roles are numbered as the arguments are.

    Examples
    --------
    A feature of moves, added to those that there are:

    >>> def swims_right(source, target):
    ...     return target.position[:, 0] - source.position[:, 0]
    >>> from trellis.tracking import default_features
    >>> features = default_features(["area"], ("move", "appear", "disappear"))
    >>> features.append(EventFeature("move", "swims right", swims_right))
    """

    event: str
    name: str
    values: Callable[..., Any]
    needs_frame: bool = False
    relations: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        text.check("event", self.event)
        text.check("name", self.name)
        strings.check("relations", self.relations)
        flag.check("needs_frame", self.needs_frame)
        if not callable(self.values):
            raise DataError(
                f"feature {self.name!r} of {self.event}: values is a "
                f"{type(self.values).__name__}, not a function"
            )


def border_distance(position: Float64s, extent: tuple[float, ...]) -> Float64s:
    """Distance of points (n, 2) or (n, 3) to the nearest side of a field of view.

    Of a volume without depth, such as that of a single slice, the sides above and below are none.
    """
    n = position.shape[1]
    low, high = np.array(extent[:n]), np.array(extent[n:])
    if n == 3 and low[2] == high[2]:
        return border_distance(position[:, :2], (*extent[:2], *extent[3:5]))
    nearest: Float64s = np.minimum(position - low, high - position).min(axis=1, initial=np.inf)
    return nearest


def area_of(objects: Objects) -> Float64s:
    """Areas of objects, NaN if nobody measured them."""
    return objects["area"] if "area" in objects else np.full(len(objects), np.nan)


def relative_difference(a: Float64s, b: Float64s) -> Float64s:
    """Relative difference |a - b| / max(a, b) of sizes; 0 where one is missing or both are 0."""
    larger = np.maximum(np.abs(a), np.abs(b))
    difference = np.abs(a - b) / np.where(larger > 0, larger, 1.0)
    return np.where(np.isfinite(difference), difference, 0.0)


def average_of(values: Float64s) -> Float64s:
    """Mean of each column over the values that are finite, NaN if there are none."""
    finite = np.isfinite(values)
    total = np.where(finite, values, 0.0).sum(axis=0)
    count = finite.sum(axis=0)
    mean: Float64s = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return mean


def event_features(
    pair: FramePair, hypotheses: Hypotheses, features: Sequence[EventFeature]
) -> list[Float64s]:
    """Compute the features of all hypotheses of a frame pair.

    Parameters
    ----------
    pair : FramePair
        The objects.
    hypotheses : Hypotheses
        Their hypotheses.
    features : sequence of EventFeature
        The features, of any events.

    Returns
    -------
    list of float64, shape (H_e, K_e)
        One array for each kind of the hypotheses (those of EVENTS first): its hypotheses in their
        order, its features in theirs. NaN where a value is missing.

    Raises
    ------
    DataError
        If two features of an event have one name or there is no such event, or a function fails,
        or returns something else than a number for each hypothesis.

    Examples
    --------
    >>> from trellis.tracking import make_hypotheses
    >>> a = Objects(np.array([0]), np.array([[5.0, 5.0]]), {"area": np.array([40.0])})
    >>> b = Objects(np.array([0]), np.array([[5.0, 8.0]]), {"area": np.array([50.0])})
    >>> pair = FramePair("film", 0, a, b, extent=(0.0, 0.0, 10.0, 10.0))
    >>> h = make_hypotheses(pair, max_distance=9.0)
    >>> growth = EventFeature("move", "growth", lambda a, b: b["area"] - a["area"])
    >>> moves, divisions, *rest = event_features(pair, h, [growth])
    >>> moves.tolist(), divisions.shape
    ([[10.0]], (0, 0))
    """
    names = [(feature.event, feature.name) for feature in features]
    for i, (event, name) in enumerate(names):
        if (event, name) in names[:i]:
            raise DataError(f"there are two features of {event} with the name {name!r}")
    check_events_of(features, [kind.name for kind in hypotheses.kinds])
    arrays = []
    for kind in hypotheses.kinds:
        of_event = [feature for feature in features if feature.event == kind.name]
        which = hypotheses.take(hypotheses.of(kind.name))
        table = np.empty((len(which), len(of_event)))
        if table.size:
            views, frame = roles(pair, which, kind)
            related = Relations(pair.relations, _rows_of_roles(pair, which, kind))
            alone = not (kind.n_sources and kind.n_targets)
            for k, feature in enumerate(of_event):
                given = (*views, frame) if feature.needs_frame or alone else views
                _check_relations(pair, feature)
                table[:, k] = _computed(
                    pair, feature, (*given, related) if feature.relations else given
                )
        arrays.append(table)
    return arrays


def _check_relations(pair: FramePair, feature: EventFeature) -> None:
    for name in feature.relations:
        if name not in pair.relations:
            raise DataError(
                f"sequence {pair.sequence!r}, frame {pair.frame}: feature {feature.name!r} of "
                f"{feature.event} wants the relation {name!r}, which the pair does not have; it "
                f"has {', '.join(pair.relations) or 'none'}"
            )


def check_events_of(features: Sequence[EventFeature], names: Sequence[str]) -> None:
    """Refuse features of events that there are not."""
    for feature in features:
        if feature.event not in names:
            raise DataError(
                f"feature {feature.name!r} is of the event {feature.event!r}, not one of "
                f"{', '.join(names)}"
            )


def roles(pair: FramePair, h: Hypotheses, kind: EventKind) -> tuple[tuple[Objects, ...], Frame]:
    """Objects in the roles of a kind, aligned with its hypotheses, and the frame of the one."""
    sources = [pair.source.take(h.source[:, i]) for i in range(kind.n_sources)]
    targets = [pair.target.take(h.target[:, j]) for j in range(kind.n_targets)]
    one = pair.source if kind.n_sources == 1 else pair.target
    return (*sources, *targets), Frame(one, pair.extent)


def _rows_of_roles(pair: FramePair, h: Hypotheses, kind: EventKind) -> Int64s:
    """Rows (H, R) of the objects in the roles; those of targets follow those of the sources."""
    sources, targets = h.source[:, : kind.n_sources], h.target[:, : kind.n_targets]
    return np.concatenate([sources, targets + len(pair.source)], axis=1)


def _computed(pair: FramePair, feature: EventFeature, arguments: tuple[Any, ...]) -> Float64s:
    """Values of a feature, checked, with NaN for whatever is not finite."""
    what = (
        f"sequence {pair.sequence!r}, frame {pair.frame}: feature {feature.name!r} of "
        f"{feature.event}"
    )
    n = len(arguments[0])
    try:
        values = np.asarray(feature.values(*arguments))
    except Exception as error:
        raise DataError(
            f"{what} failed: {type(error).__name__}: {error} (the objects have the columns "
            f"{', '.join(arguments[0].columns) or 'x and y only'})"
        ) from error
    if values.dtype.kind not in "fiub":
        raise DataError(f"{what} returned values of type {values.dtype}, not numbers")
    if values.shape != (n,):
        raise DataError(f"{what} returned an array of shape {values.shape}, not ({n},)")
    numbers = values.astype(np.float64)
    numbers[~np.isfinite(numbers)] = np.nan
    return numbers
