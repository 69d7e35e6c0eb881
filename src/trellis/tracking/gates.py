r"""How far an object may go between two frames: the gate of the hypotheses.

With links, annotated or guessed, the gate is one and a half times the longest of them, the longest
hundredth left out, of the kind (move, division, ...) that goes farthest:
:math:`1.5 \max_e q_{0.99}(\lVert x' - x\rVert_e)`. Without links it is twice the distance
between neighbours within a frame, or four times that to the nearest object of the next frame if
that is more; medians both, and generous, since the number of neighbours bounds the hypotheses, too.

A tracker with prices made by hand needs the *usual reach*, beyond which a move is unlikely. It is
three times the median distance of objects that are each other's nearest. In movies with many frames
that is less than the way from a mother to her daughters, who lie about a cell apart; so it is at
least half the median distance between neighbours within a frame.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trellis.tracking.objects import FramePair

__all__ = ["learned_gate", "usual_reach"]

# Displacements in a plane that are normal and alike in all directions are in 99 of 100 cases below
# 2.6 times their median; fast cells go a little farther.
_MEDIANS = 3.0
_SPACINGS = 0.5
_SEEN = 20  # frame pairs that tell it


def learned_gate(pairs: Sequence[FramePair]) -> float:
    """Find the gate of frame pairs.

    Parameters
    ----------
    pairs : sequence of FramePair
        Annotated or not.

    Returns
    -------
    float
        Positive.

    Examples
    --------
    >>> from trellis.tracking import FramePair, Objects, PairAnnotation
    >>> cells = Objects(np.array([0, 1]), np.array([[0.0, 0.0], [0.0, 8.0]]))
    >>> learned_gate([FramePair("", 0, cells, cells)])
    16.0
    >>> later = Objects(np.array([0]), np.array([[0.0, 2.0]]))
    >>> learned_gate([FramePair("", 0, cells, later, PairAnnotation(((0, 0, "move"),)))])
    3.0
    """
    lengths: dict[str, list[float]] = {}
    for pair in pairs:
        for kind, length in _lengths(pair):
            lengths.setdefault(kind, []).append(length)
    gate = 1.5 * max([float(np.quantile(known, 0.99)) for known in lengths.values()], default=0.0)
    if gate > 0:
        return gate
    return _widest(pairs)


def usual_reach(pairs: Sequence[FramePair]) -> float:
    """How far objects usually go, at most, judged by the places of objects alone.

    Parameters
    ----------
    pairs : sequence of FramePair
        Their annotations are not looked at.

    Returns
    -------
    float
        Positive.

    Examples
    --------
    >>> from trellis.tracking import FramePair, Objects
    >>> cells = Objects(np.array([0, 1]), np.array([[0.0, 0.0], [0.0, 8.0]]))
    >>> later = Objects(np.array([0, 1]), np.array([[0.0, 2.0], [0.0, 10.0]]))
    >>> usual_reach([FramePair("", 0, cells, later)])
    6.0
    """
    some = pairs[:: max(1, -(-len(pairs) // _SEEN))]
    steps = [_mutual(pair.source.position, pair.target.position) for pair in some]
    moved = np.concatenate([np.zeros(0), *steps])
    reach = max(
        _MEDIANS * float(np.median(moved)) if len(moved) else 0.0, _SPACINGS * _spacing(some)
    )
    return reach if reach > 0 else _widest(some)


def _widest(pairs: Sequence[FramePair]) -> float:
    """How far objects are apart."""
    step = [np.zeros(0)]
    step += [_nearest(pair.target.position, pair.source.position, 1) for pair in pairs]
    between = np.concatenate(step)
    far = max(2 * _spacing(pairs), 4 * float(np.median(between)) if len(between) else 0.0)
    return far if far > 0 else 1.0


def _spacing(pairs: Sequence[FramePair]) -> float:
    """Median distance of neighbours within a frame; 0 if there are none."""
    places = [pair.source.position for pair in pairs if len(pair.source) > 1]
    apart = np.concatenate([np.zeros(0), *(_nearest(place, place, 2) for place in places)])
    return float(np.median(apart)) if len(apart) else 0.0


def _mutual(source: NDArray[np.float64], target: NDArray[np.float64]) -> NDArray[np.float64]:
    """Distances of the sources and targets that are each other's nearest."""
    from scipy.spatial import cKDTree

    source, target = (p[np.isfinite(p).all(axis=1)] for p in (source, target))
    if not (len(source) and len(target)):
        return np.zeros(0)
    far, onward = cKDTree(target).query(source)
    back = np.asarray(cKDTree(source).query(target)[1])
    agreed = back[onward] == np.arange(len(source))
    distance: NDArray[np.float64] = np.asarray(far)[agreed]
    return distance[np.isfinite(distance)]


def _lengths(pair: FramePair) -> list[tuple[str, float]]:
    """Kinds and lengths of the annotated links."""
    place = [
        {int(i): p for i, p in zip(objects.ids, objects.position, strict=True)}
        for objects in (pair.source, pair.target)
    ]
    links = () if pair.annotation is None else pair.annotation.links
    return [
        (kind, float(np.hypot.reduce(place[1][b] - place[0][a])))
        for a, b, kind in links
        if a in place[0] and b in place[1]  # others are refused where hypotheses are made
    ]


def _nearest(
    others: NDArray[np.float64], points: NDArray[np.float64], k: int
) -> NDArray[np.float64]:
    """Distance from each point to the k-th nearest of the others.

    Centres that are not finite are left out; they are refused where hypotheses are made.
    """
    from scipy.spatial import cKDTree

    points, others = (p[np.isfinite(p).all(axis=1)] for p in (points, others))
    if not (len(points) and len(others)):
        return np.zeros(0)
    distance = np.asarray(cKDTree(others).query(points, k=[k])[0])[:, 0]
    finite: NDArray[np.float64] = distance[np.isfinite(distance)]
    return finite
