r"""Stitching: tracks of any tracker that end and begin again are joined afterwards.

Tracks are given. An object i that ends and an object k that begins some frames later may be one;
joining them gains :math:`g_{ik}` (:mod:`trellis.tracking.gap_model`, learned from the tracks
themselves), and

.. math:: \max_y \sum_{ik} g_{ik} y_{ik} \quad \text{s.t.} \quad
    \sum_k y_{ik} \le 1, \; \sum_i y_{ik} \le 1, \quad y_{ik} \in \{0, 1\}

says which are. The links there are stay as they are. A :class:`~trellis.tracking.TrackingModel`
decides both at once, and can take back a link that stands in the way.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from trellis.domains import instance, number, takes, whole
from trellis.errors import DataError
from trellis.structures.assignment import AssignmentSpace, best_assignment
from trellis.tracking.default_features import default_features
from trellis.tracking.features import EventFeature
from trellis.tracking.gap_model import GapModel
from trellis.tracking.hypothesis_space import common_columns
from trellis.tracking.movie import PairwiseSolution, movies_of
from trellis.tracking.objects import FramePair, Link, checked_pairs
from trellis.tracking.result import TrackingResult, assemble_tracks

__all__ = ["close_gaps"]

_MARGIN = 1.5  # times the longest moves, the longest hundredth left out


@dataclass(frozen=True)
class _Gates:
    n_neighbors: int
    max_distance: float
    features: tuple[EventFeature, ...]


@takes(
    result=instance(TrackingResult),
    max_gap=whole(0),
    n_neighbors=whole(1),
    max_distance=number(above=0) | instance(type(None)),
)
def close_gaps(
    result: TrackingResult,
    pairs: Iterable[FramePair],
    *,
    max_gap: int = 2,
    n_neighbors: int = 6,
    max_distance: float | None = None,
) -> TrackingResult:
    """Join tracks of objects that were missed for a frame or more.

    Parameters
    ----------
    result : TrackingResult
        Tracks of any tracker.
    pairs : sequence of FramePair
        The movies that were tracked, whole.
    max_gap : int
        Most frames in a row that an object may be missed for.
    n_neighbors : int
        Nearest objects that one may be.
    max_distance : float, optional
        Farthest objects that one may be; one and a half times the longest moves by default, the
        longest hundredth of them left out.

    Returns
    -------
    TrackingResult
        With more links, of kind move, and fewer events; without what is known of its score and of
        probabilities.

    Raises
    ------
    DataError
        If pairs are patches, or not those of the result.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from trellis.datasets import simulate_cells
    >>> from trellis.tracking import FlowTracker
    >>> pairs = simulate_cells(60, 9, seed=0)
    >>> seen = np.ones(len(pairs[4].source), bool)
    >>> seen[:5] = False  # five cells of frame 4 are missed
    >>> pairs[3] = replace(pairs[3], target=pairs[3].target.take(seen), annotation=None)
    >>> pairs[4] = replace(pairs[4], source=pairs[4].source.take(seen), annotation=None)
    >>> result = FlowTracker(12.0).predict(pairs)
    >>> 0 < sum(link.gap for link in close_gaps(result, pairs).links) <= 5
    True
    """
    listed = checked_pairs(pairs)
    movies = movies_of(listed, max_gap)
    if movies is None:
        raise DataError("pairs are patches, or frames that disagree; give whole movies")
    if not max_gap or not movies:
        return result
    solutions = [PairwiseSolution.of_links(movie, result.links) for movie in movies]
    far = _reach(solutions) if max_distance is None else max_distance
    features = default_features(common_columns(listed), ("move",))
    gates = _Gates(n_neighbors, far, tuple(features))
    gaps = GapModel.learned(solutions, gates, max_gap)
    if gaps is None:
        return result
    links = [link for solution in solutions for link in _joined(solution, gaps, gates)]
    gone = {("disappear", link.sequence, link.frame, link.source_id) for link in links}
    new = {("appear", link.sequence, link.frame_target, link.target_id) for link in links}
    events = [e for e in result.events if (e.kind, e.sequence, e.frame, e.id) not in gone | new]
    every = [pair for movie in movies for pair in movie.pairs]
    return assemble_tracks(every, [*result.links, *links], events)


def _reach(solutions: list[PairwiseSolution]) -> float:
    """How far objects go, by their moves."""
    ways = [np.zeros(0)]
    for solution in solutions:
        places = np.concatenate([o.position for o in solution.movie.frames.values()])
        moved = np.flatnonzero(solution.onward >= 0)
        ways.append(np.linalg.norm(places[solution.onward[moved]] - places[moved], axis=1))
    every = np.concatenate(ways)
    far = _MARGIN * float(np.quantile(every, 0.99)) if len(every) else 0.0
    return far if far > 0 else 1.0


def _joined(solution: PairwiseSolution, gaps: GapModel, gates: _Gates) -> list[Link]:
    """Links over gaps of one movie."""
    skips = gaps.skips(gates, solution)
    loose = solution.loose(skips.source, skips.target) & (skips.missed > 0)
    gains = gaps.gains(solution, skips)
    skips, gains = skips.take(loose & (gains > 0)), gains[loose & (gains > 0)]
    if not len(skips):
        return []
    ends, i = np.unique(skips.source, return_inverse=True)
    begins, k = np.unique(skips.target, return_inverse=True)
    none, n = np.full(len(skips), -1), len(ends) + len(begins)
    alone = np.stack([np.arange(n), np.full(n, -1), np.full(n, -1)], axis=1)
    covers = np.concatenate([np.stack([i, len(ends) + k, none], axis=1), alone])
    space = AssignmentSpace(covers.astype(np.int32), np.array([0, len(covers)]), np.array([0, n]))
    chosen = best_assignment(space, np.concatenate([gains, np.zeros(n)])).chosen[: len(skips)]
    return solution.movie.links_over(skips.source[chosen], skips.target[chosen])
