r"""The features that any table of objects allows, for each event.

The measures are those of Lou and Hamprecht's tracker, as far as a table of objects allows:

- the Euclidean distance of centres;
- the normalised difference :math:`\|a - b\| / \max(\|a\|, \|b\|)` of a quantity (0 if both are 0),
  "change" in the names;
- the angle pattern of a division, the cosine between the vectors from parent to daughters (0 if one
  of them is 0): -1 if they leave in opposite directions;
- the evenness min / max of the two daughters or parts (0 if both are 0);
- the distance to the border of the field of view, and the normalised difference from the frame's
  average object, for appearance and disappearance.

Added here are, of a move, by how much it is longer than the shortest of its source or its target,
and its distance from the *flow*, the median step of the sources around, each to its nearest target;
of a division the distances of both daughters, ratios of areas with their sign, and the angle
between the parent's long axis and the line between the daughters; the distance between daughters or
parts; the change of orientation (modulo π) of a move; and a few quantities relative to the frame's
average with their sign. What two objects are *together* is the sum of ``area``, the maximum of
``max_intensity`` and the mean of anything else. Every feature of two daughters or parts is
symmetric in them. A value that is missing (NaN) makes its features NaN. Centres have two or three
coordinates; an orientation is an angle in the plane of x and y, and compared with lines as they
look from above.

Where objects were read from label images there are features of pixels, too
(:mod:`trellis.tracking.pixel_features`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s
from trellis.domains import strings
from trellis.errors import DataError
from trellis.tracking.features import EventFeature, Frame, average_of
from trellis.tracking.objects import EVENTS, Objects
from trellis.tracking.pixel_features import describes_pixels, pixel_features

if TYPE_CHECKING:
    from trellis.tracking.event_kinds import EventKind

__all__ = ["default_features", "of_divisions", "of_ends", "of_moves", "of_parts"]


_AROUND = 12  # sources whose steps make the flow


# ----------------------------------------------------------------------------------------- measures


def _ratio(a: Float64s, b: Float64s, otherwise: float = np.nan) -> Float64s:
    """Divide a by b; ``otherwise`` where b is 0."""
    a, b = np.broadcast_arrays(a, b)
    quotient = np.full(a.shape, otherwise)
    np.divide(a, b, out=quotient, where=b != 0)
    return quotient


def _norm(vectors: Float64s) -> Float64s:
    norm: Float64s = np.sqrt((vectors * vectors).sum(axis=-1))
    return norm


def _distance(a: Float64s, b: Float64s) -> Float64s:
    return _norm(a - b)


def _normalised_difference(a: Float64s, b: Float64s) -> Float64s:
    """||a - b|| / max(||a||, ||b||) of numbers (n,) or vectors (n, d), 0 if both are 0."""
    if a.ndim == 1:
        return _ratio(np.abs(a - b), np.maximum(np.abs(a), np.abs(b)), 0.0)
    return _ratio(_norm(a - b), np.maximum(_norm(a), _norm(b)), 0.0)


def _evenness(a: Float64s, b: Float64s) -> Float64s:
    """Divide the lesser by the greater; 0 if that is 0."""
    return _ratio(np.minimum(a, b), np.maximum(a, b), 0.0)


def _cosine(a: Float64s, b: Float64s) -> Float64s:
    """Cosine of the angle between vectors (n, d), 0 if one of them is 0."""
    return _ratio((a * b).sum(axis=1), _norm(a) * _norm(b), 0.0)


def _orientation_difference(a: Float64s, b: Float64s) -> Float64s:
    """Angle in [0, π/2] between two lines, given their angles modulo π."""
    turn = np.mod(a - b, np.pi)
    return np.minimum(turn, np.pi - turn)


def _middle(first: Objects, second: Objects) -> Float64s:
    return (first.position + second.position) / 2


# --------------------------------------------------------------------------------------- quantities


@dataclass(frozen=True)
class _Quantity:
    """Something measured: of each object, and of two objects taken together."""

    name: str
    of: Callable[[Objects], Float64s]
    together: Callable[[Float64s, Float64s], Float64s]
    in_divisions: bool

    def of_both(self, first: Objects, second: Objects) -> Float64s:
        return self.together(self.of(first), self.of(second))


_MASS = "area*mean_intensity"
# Divisions have features of these that say more than a change from the parent to the daughters.
_SHAPES = ("mean_intensity", "max_intensity", "eccentricity", "perimeter", "solidity")
_AXES = ("major_axis", "minor_axis")


def _mean(a: Float64s, b: Float64s) -> Float64s:
    return (a + b) / 2


def _quantities(columns: Sequence[str]) -> list[_Quantity]:
    """What can be compared: every column but angles, and what follows from two of them."""

    def column(name: str) -> _Quantity:
        together = {"area": np.add, "max_intensity": np.maximum}.get(name, _mean)
        return _Quantity(name, lambda o: o[name], together, name not in (*_SHAPES, *_AXES))

    axes = all(name in columns for name in _AXES)
    quantities = [
        column(name)
        for name in columns
        if name != "orientation" and not (axes and name in _AXES) and not describes_pixels(name)
    ]
    if "area" in columns and "mean_intensity" in columns:
        quantities.append(_Quantity(_MASS, lambda o: o["area"] * o["mean_intensity"], np.add, True))
    if axes:
        quantities.append(
            _Quantity("axes", lambda o: np.stack([o[a] for a in _AXES], axis=1), _mean, False)
        )
    return quantities


def _eccentricity(columns: Sequence[str]) -> Callable[[Objects], Float64s] | None:
    """How long an object is, in [0, 1), from the column or from the axes of an ellipse."""
    if "eccentricity" in columns:
        return lambda o: o["eccentricity"]
    if all(name in columns for name in _AXES):
        return lambda o: np.sqrt(
            np.maximum(0.0, 1 - _evenness(o["minor_axis"], o["major_axis"]) ** 2)
        )
    return None


def _excess(source: Objects, target: Objects, ids: NDArray[np.int64]) -> Float64s:
    """By how much a link is longer than the shortest of the same object."""
    distance = _distance(source.position, target.position)
    distinct, number = np.unique(ids, return_inverse=True)
    least = np.full(len(distinct), np.inf)
    np.minimum.at(least, number, distance)
    excess: Float64s = distance - least[number]
    return excess


def _off_the_flow(source: Objects, target: Objects) -> Float64s:
    """Distance of a target from where the source would be if it went with those around it.

    They are the nearest sources, each supposed to have gone to its nearest target; the flow is the
    median of their steps, so that a few wrong ones do not count.
    """
    from scipy.spatial import cKDTree

    step = target.position - source.position
    nearest = _excess(source, target, source.ids) == 0
    if not nearest.any():
        return np.zeros(len(step))
    known = source.position[nearest]
    around = cKDTree(known).query(source.position, k=range(1, 1 + min(_AROUND, len(known))))[1]
    flow = np.median(step[nearest][around], axis=1)
    return _norm(step - flow)


# ----------------------------------------------------------------------------------------- defaults


def default_features(
    columns: Iterable[str],
    events: Sequence[str | EventKind],
    relations: Sequence[str] = (),
) -> list[EventFeature]:
    """Features that make use of the columns at hand.

    Known are ``area``, ``mean_intensity``, ``max_intensity``, ``eccentricity``, ``orientation``,
    ``major_axis``, ``minor_axis``, ``perimeter`` and ``solidity``, and the columns of
    :mod:`trellis.tracking.pixel_features`. Of any other column the
    normalised differences are taken: between source and target, between one object and two
    together, between an object and the frame's average.

    Parameters
    ----------
    columns : iterable of str
        Names of the columns of the objects.
    events : sequence of str or EventKind
        Events that the model has.
    relations : sequence of str
        Names of the relations of the frame pairs; those that are not known make no features.

    Returns
    -------
    list of EventFeature
        In the order of EVENTS, each of which has at least one; then those of kinds of your own.

    Examples
    --------
    >>> for feature in default_features(["area"], ("move", "division")):
    ...     print(feature.event, "-", feature.name)
    move - distance
    move - farther than the nearest target
    move - farther than the nearest source
    move - off the flow
    move - area change
    division - distance to the middle
    division - distance between
    division - area change
    division - area evenness
    division - angle
    division - distance of the nearer
    division - distance of the farther
    division - area ratio
    division - larger daughter
    division - daughters' area
    division - parent's area
    """
    names: list[str] = list(columns) if isinstance(columns, Iterator | Set) else columns  # type: ignore[assignment]  # checked below
    strings.check("columns", names)
    names = list(dict.fromkeys(names))
    strings.check("relations", relations)
    # Kinds of events are made of the functions below; late, since they import this module.
    from trellis.tracking.event_kinds import KINDS, SOME_EVENTS, all_kinds, event_names

    SOME_EVENTS.check("events", events)
    wanted = event_names(events)
    return [
        _DefaultFeature(
            f.event, f.name, f.values, f.needs_frame, f.relations, tuple(names),
            kind.name if kind in KINDS else kind, tuple(relations),
        )
        for kind in all_kinds(events)
        if kind.name in wanted
        for f in (
            *_checked(kind, kind.features(names)),
            *(pixel_features(kind.name, names, relations) if kind.name in EVENTS else ()),
        )
    ]  # fmt: skip


@dataclass(frozen=True)
class _DefaultFeature(EventFeature):
    """A feature that is pickled by its name and kind, since its function cannot be."""

    columns: tuple[str, ...] = ()
    kind: str | EventKind = ""
    known_relations: tuple[str, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return _named, (self.kind, self.name, self.columns, self.known_relations)


def _named(
    kind: str | EventKind, name: str, columns: Sequence[str], relations: Sequence[str] = ()
) -> EventFeature:
    return next(f for f in default_features(columns, (kind,), relations) if f.name == name)


def _checked(kind: EventKind, features: Sequence[EventFeature]) -> Sequence[EventFeature]:
    """Features that a kind gives, refused if they are not its own."""
    for feature in features:
        if not isinstance(feature, EventFeature) or feature.event != kind.name:
            raise DataError(
                f"{type(kind).__name__}.features gives {feature!r:.80}, which is no EventFeature "
                f"of {kind.name!r}"
            )
    return features


def of_moves(event: str, columns: Sequence[str]) -> list[EventFeature]:
    """Features of one object and the same in the next frame."""
    feature = partial(EventFeature, event)

    def change(q: _Quantity) -> EventFeature:
        return feature(f"{q.name} change", lambda a, b: _normalised_difference(q.of(a), q.of(b)))

    def turn(source: Objects, target: Objects) -> Float64s:
        return _orientation_difference(source["orientation"], target["orientation"])

    features = [
        feature("distance", lambda a, b: _distance(a.position, b.position)),
        feature("farther than the nearest target", lambda a, b: _excess(a, b, a.ids)),
        feature("farther than the nearest source", lambda a, b: _excess(a, b, b.ids)),
        feature("off the flow", _off_the_flow),
        *(change(q) for q in _quantities(columns)),
    ]
    if "orientation" in columns:
        features.append(feature("orientation change", turn))
    return features


def of_parts(
    event: str,
    columns: Sequence[str],
    quantities: Sequence[_Quantity] | None = None,
    *,
    joined: bool = False,
) -> list[EventFeature]:
    """Features of one object against two, or of two ``joined`` in one."""
    quantities = _quantities(columns) if quantities is None else quantities

    def feature(
        name: str, measure: Callable[[Objects, Objects, Objects], Float64s]
    ) -> EventFeature:
        if joined:
            return EventFeature(event, name, lambda a, b, one: measure(one, a, b))
        return EventFeature(event, name, measure)

    def change(q: _Quantity) -> EventFeature:
        return feature(
            f"{q.name} change",
            lambda one, a, b: _normalised_difference(q.of(one), q.of_both(a, b)),
        )

    def evenness(column: str) -> EventFeature:
        return feature(f"{column} evenness", lambda one, a, b: _evenness(a[column], b[column]))

    return [
        feature("distance to the middle", lambda one, a, b: _distance(one.position, _middle(a, b))),
        feature("distance between", lambda one, a, b: _distance(a.position, b.position)),
        *(change(q) for q in quantities),
        *(evenness(name) for name in ("area", "mean_intensity") if name in columns),
    ]


def of_divisions(columns: Sequence[str]) -> list[EventFeature]:
    """Features of a mother and her daughters."""
    quantities = [q for q in _quantities(columns) if q.in_divisions]
    features = of_parts("division", columns, quantities)
    feature = partial(EventFeature, "division")

    def angle(parent: Objects, first: Objects, second: Objects) -> Float64s:
        return _cosine(first.position - parent.position, second.position - parent.position)

    def axis(parent: Objects, first: Objects, second: Objects) -> Float64s:
        # Orientation is the angle between the y axis and the long axis, as scikit-image has it.
        line = (second.position - first.position)[:, :2]
        towards = np.where(_norm(line) > 0, np.arctan2(line[:, 0], line[:, 1]), np.nan)
        return _orientation_difference(parent["orientation"], towards)

    def relative(column: str) -> EventFeature:
        def values(parent: Objects, first: Objects, second: Objects, frame: Frame) -> Float64s:
            return _ratio(parent[column], np.asarray(frame.average(column)))

        return feature(f"parent's {column}", values, needs_frame=True)

    def reach(which: Callable[..., Float64s]) -> Callable[[Objects, Objects, Objects], Float64s]:
        return lambda one, a, b: which(
            _distance(one.position, a.position), _distance(one.position, b.position)
        )

    def share_of_parent(which: Callable[..., Float64s]) -> Callable[..., Float64s]:
        return lambda one, a, b: _ratio(which(a["area"], b["area"]), one["area"])

    def together(parent: Objects, first: Objects, second: Objects, frame: Frame) -> Float64s:
        return _ratio(first["area"] + second["area"], np.asarray(frame.average("area")))

    features += [
        feature("angle", angle),
        feature("distance of the nearer", reach(np.minimum)),
        feature("distance of the farther", reach(np.maximum)),
    ]
    if "area" in columns:
        features += [
            feature("area ratio", share_of_parent(np.add)),
            feature("larger daughter", share_of_parent(np.maximum)),
            feature("daughters' area", together, needs_frame=True),
        ]
    if "orientation" in columns:
        features.append(feature("axis", axis))
    eccentricity = _eccentricity(columns)
    if eccentricity is not None:
        features.append(feature("parent's eccentricity", lambda one, a, b: eccentricity(one)))
    features += [relative(name) for name in ("area", "mean_intensity") if name in columns]
    return features


def of_ends(event: str, columns: Sequence[str]) -> list[EventFeature]:
    """Features of appearance and disappearance."""

    def unlike(q: _Quantity) -> EventFeature:
        def values(objects: Objects, frame: Frame) -> Float64s:
            average = average_of(q.of(frame.objects))
            quantity = q.of(objects)
            return _normalised_difference(quantity, np.broadcast_to(average, quantity.shape))

        return EventFeature(event, f"{q.name} unlike the average", values)

    def relative(column: str) -> EventFeature:
        return EventFeature(
            event,
            f"relative {column}",
            lambda objects, frame: _ratio(objects[column], np.asarray(frame.average(column))),
        )

    return [
        EventFeature(event, "border distance", lambda o, frame: frame.border_distance(o)),
        *(unlike(q) for q in _quantities(columns)),
        *(relative(name) for name in ("area", "mean_intensity") if name in columns),
    ]
