r"""Features of objects that come from label images: what their pixels say of an event.

:func:`~trellis.tracking.read_label_images` gives frame pairs columns and relations that tables do
not have; where these are, events have more features. With :math:`A` the areas and :math:`O_{ij}`
the area that the masks of i and j share, in one and the same field of view,

- a move has the overlap :math:`O_{ij} / (A_i + A_j - O_{ij})` and the shares :math:`O_{ij} / A_i`,
  :math:`O_{ij} / A_j`; a split or merge the share of the one object that both others cover, and the
  lesser of the shares of the two that the one covers; appearance and disappearance the share of the
  object that any object of the other frame covers;
- the *filling* of two objects is what their convex hull has beside them. With C the area of the
  hull, *compactness* is :math:`1 - (C - A_j - A_k) / (A_j + A_k)`, 1 for two halves of a convex
  object; *mass evenness* is the mean intensity of the filling over that of the two objects (0
  without filling): low where the two are apart, high where one object was cut in two;
- the intensity distributions of objects are compared by the earth mover's distance, the mean
  distance of their quantile functions, divided by the greater of the two means. The distribution of
  two objects together is the mixture with their areas as weights;
- appearance and disappearance have the share of the outline that lies on the border of the image.

Overlap, hulls and fillings belong to two objects, not to one, and are only known where there were
images; so they are *relations* of a frame pair, sparse matrices between objects, rather than
columns of objects: a number for each two objects that may meet in an event, instead of outlines in
every table. A distribution belongs to one object, and is eight columns.

Compactness, mass evenness, border overlap and the distance of histograms are those of Lou and
Hamprecht's tracker. All is measured on demand only (``read_label_images(..., pixels=...)``): in one
region of an epidermis overlaps of moves and ends made links and divisions a little better, in
another one, and in simulated movies, they did not; compactness and border overlap never did. Where
cells are detected in parts, or two as one, overlaps find more of these splits and merges. Divisions
have no overlap: daughters lie in their mother whether they are hers or not.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from trellis.arrays import Float64s
from trellis.tracking.features import EventFeature, Relations
from trellis.tracking.objects import Objects

__all__ = ["PIXEL_RELATIONS", "describes_pixels", "distributions", "pixel_features"]

PIXEL_RELATIONS = ("overlap", "hull", "filling")
"""Relations of which there are features: shared area, area of hulls, intensity of fillings."""

_QUANTILE = re.compile(r"(.+)_quantile_(\d+)")
_BORDER = "on_border"


def describes_pixels(column: str) -> bool:
    """Whether a column has a meaning here, rather than that of any column of numbers.

    Examples
    --------
    >>> [describes_pixels(name) for name in ("area", "on_border", "intensity_quantile_3")]
    [False, True, True]
    """
    return column == _BORDER or _QUANTILE.fullmatch(column) is not None


def distributions(columns: Sequence[str]) -> dict[str, list[str]]:
    """Columns that are quantiles of one and the same distribution, in order, by its name.

    Examples
    --------
    >>> distributions(["area", "red_quantile_2", "red_quantile_1"])
    {'red': ['red_quantile_1', 'red_quantile_2']}
    """
    groups: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for column in columns:
        found = _QUANTILE.fullmatch(column)
        if found:
            groups[found[1]].append((int(found[2]), column))
    return {name: [column for _, column in sorted(group)] for name, group in groups.items()}


def pixel_features(
    event: str, columns: Sequence[str], relations: Sequence[str]
) -> list[EventFeature]:
    """Features of an event that these columns and relations allow.

    Examples
    --------
    >>> [feature.name for feature in pixel_features("move", ["area"], ["overlap"])]
    ['overlap', 'source covered', 'target covered']
    """
    sized = "area" in columns
    known = set(relations) if sized else set()
    features: list[EventFeature] = []
    if event == "move":
        features += _overlap_of_moves() if "overlap" in known else []
        features += [_distribution_of_moves(*one) for one in distributions(columns).items()]
    elif event in ("appear", "disappear"):
        if "overlap" in known:
            features.append(EventFeature(event, "covered", _covered, relations=("overlap",)))
        if _BORDER in columns:
            features.append(EventFeature(event, "outline on the border", lambda o, f: o[_BORDER]))
    else:
        features += _of_parts(event, columns, known)
        if sized:
            groups = distributions(columns).items()
            features += [_distribution_of_parts(event, *one) for one in groups]
    return features


def _share(part: Float64s, whole: Float64s) -> Float64s:
    share: Float64s = np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0)
    return share


def _overlap_of_moves() -> list[EventFeature]:
    def overlap(source: Objects, target: Objects, relations: Relations) -> Float64s:
        shared = relations.between("overlap", 0, 1)
        return _share(shared, source["area"] + target["area"] - shared)

    def covered(source: Objects, target: Objects, relations: Relations) -> Float64s:
        return _share(relations.between("overlap", 0, 1), source["area"])

    def covers(source: Objects, target: Objects, relations: Relations) -> Float64s:
        return _share(relations.between("overlap", 0, 1), target["area"])

    names = {"overlap": overlap, "source covered": covered, "target covered": covers}
    return [EventFeature("move", n, f, relations=("overlap",)) for n, f in names.items()]


def _covered(objects: Objects, frame: object, relations: Relations) -> Float64s:
    return _share(relations.between("overlap", 0, 0), objects["area"])


def _of_parts(event: str, columns: Sequence[str], known: set[str]) -> list[EventFeature]:
    """Overlap (of splits and merges) and fillings of one object against two."""
    a, b, one = (0, 1, 2) if event == "merge" else (1, 2, 0)

    def overlap(*given: Objects | Relations) -> Float64s:
        objects, relations = _roles(given)
        both = relations.between("overlap", a, one) + relations.between("overlap", b, one)
        return _share(both, objects[one]["area"])

    def least(*given: Objects | Relations) -> Float64s:
        objects, relations = _roles(given)
        return np.minimum(
            _share(relations.between("overlap", a, one), objects[a]["area"]),
            _share(relations.between("overlap", b, one), objects[b]["area"]),
        )

    def compactness(*given: Objects | Relations) -> Float64s:
        objects, relations = _roles(given)
        areas = objects[a]["area"] + objects[b]["area"]
        return 2 - _share(relations.between("hull", a, b, np.nan), areas)

    def mass_evenness(*given: Objects | Relations) -> Float64s:
        objects, relations = _roles(given)
        areas = objects[a]["area"] + objects[b]["area"]
        mass = sum(objects[i]["area"] * objects[i]["mean_intensity"] for i in (a, b))
        return _share(relations.between("filling", a, b, np.nan) * areas, np.asarray(mass))

    wanted: list[tuple[str, str, Callable[..., Float64s]]] = [
        ("overlap", "covered by both", overlap),
        ("overlap", "cover of the lesser", least),
        ("hull", "compactness", compactness),
    ]
    if "mean_intensity" in columns:
        wanted.append(("filling", "mass evenness", mass_evenness))
    return [
        EventFeature(event, name, measure, relations=(relation,))
        for relation, name, measure in wanted
        if relation in known and not (relation == "overlap" and event == "division")
    ]


def _roles(given: Sequence[Objects | Relations]) -> tuple[list[Objects], Relations]:
    objects = [one for one in given if isinstance(one, Objects)]
    relations = given[-1]
    assert isinstance(relations, Relations)
    return objects, relations


# ------------------------------------------------------------------------------- distributions


def _earth_movers(a: Float64s, b: Float64s) -> Float64s:
    """Distance of distributions (H, K) given by quantiles, divided by the greater mean."""
    scale = np.maximum(np.abs(a.mean(axis=1)), np.abs(b.mean(axis=1)))
    distance = np.abs(a - b).mean(axis=1)
    relative: Float64s = np.divide(distance, scale, out=np.zeros(len(a)), where=scale > 0)
    return relative


def mixture(a: Float64s, b: Float64s, weight: Float64s) -> Float64s:
    """Quantiles (H, K) of mixtures of two distributions; ``weight`` (H,) is that of the first.

    Each distribution is one of K equally likely values; the mixture of both is that of 2K values,
    of which the quantiles are read off.

    Examples
    --------
    >>> mixture(np.array([[1.0, 3.0]]), np.array([[2.0, 9.0]]), np.array([0.5]))
    array([[1., 3.]])
    """
    k = a.shape[1]
    values = np.concatenate([a, b], axis=1)
    weights = np.concatenate(
        [np.repeat(weight[:, None], k, axis=1), np.repeat(1 - weight[:, None], k, axis=1)], axis=1
    )
    order = np.argsort(values, axis=1, kind="stable")
    values = np.take_along_axis(values, order, axis=1)
    reached = np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1) / k
    levels = (np.arange(k) + 0.5) / k
    at = (reached[:, :, None] < levels - 1e-12).sum(axis=1)
    return np.take_along_axis(values, np.minimum(at, 2 * k - 1), axis=1)


def _quantiles(objects: Objects, columns: Sequence[str]) -> Float64s:
    return np.stack([objects[column] for column in columns], axis=1)


def _distribution_of_moves(name: str, columns: Sequence[str]) -> EventFeature:
    def values(source: Objects, target: Objects) -> Float64s:
        return _earth_movers(_quantiles(source, columns), _quantiles(target, columns))

    return EventFeature("move", f"{name} distribution change", values)


def _distribution_of_parts(event: str, name: str, columns: Sequence[str]) -> EventFeature:
    a, b, one = (0, 1, 2) if event == "merge" else (1, 2, 0)

    def values(*objects: Objects) -> Float64s:
        first, second = (_quantiles(objects[i], columns) for i in (a, b))
        areas = objects[a]["area"], objects[b]["area"]
        both = mixture(first, second, _share(areas[0], areas[0] + areas[1]))
        return _earth_movers(_quantiles(objects[one], columns), both)

    return EventFeature(event, f"{name} distribution change", values)
