r"""How far an object may go between two frames: the gate of the hypotheses.

With annotated links the gate is one and a half times the longest of them, the longest hundredth
left out, of the kind (move, division, ...) that goes farthest:
:math:`1.5 \max_e q_{0.99}(\lVert x' - x\rVert_e)`. Without links it is twice the distance
between neighbours within a frame, or four times that to the nearest object of the next frame if
that is more; medians both, and generous, since the number of neighbours bounds the hypotheses, too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trellis.tracking.objects import FramePair

__all__ = ["learned_gate"]


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
    spacing, step = [np.zeros(0)], [np.zeros(0)]
    for pair in pairs:
        if len(pair.source) > 1:
            spacing.append(_nearest(pair.source.position, pair.source.position, 2))
        if len(pair.source) and len(pair.target):
            step.append(_nearest(pair.target.position, pair.source.position, 1))
    inside, between = np.concatenate(spacing), np.concatenate(step)
    far = max(
        2 * float(np.median(inside)) if len(inside) else 0.0,
        4 * float(np.median(between)) if len(between) else 0.0,
    )
    return far if far > 0 else 1.0


def _lengths(pair: FramePair) -> list[tuple[str, float]]:
    """Kinds and lengths of the annotated links."""
    place = [
        {int(i): p for i, p in zip(objects.ids, objects.position, strict=True)}
        for objects in (pair.source, pair.target)
    ]
    links = () if pair.annotation is None else pair.annotation.links
    return [
        (kind, float(np.hypot(*(place[1][b] - place[0][a]))))
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
