r"""Trackers that learn nothing but a distance: what a learned model has to beat.

All see pairs of frames one by one, and link objects whose centres are close. The *gate* g is the
distance up to which an object can have moved: given, or the 99th percentile of the annotated moves.

- :class:`NearestNeighbour`: the one-to-one assignment with the least sum of
  :math:`\min(d_{ij}, g)`, without the links as long as g. It knows no divisions.
- :class:`GraphMatching`: matching of two neighbourhood graphs in the manner of [1]_. Cells move
  with their neighbours, so the place where a cell is expected is its own shifted by the median
  displacement of its k nearest neighbours; a division is found afterwards, where an unmatched
  target is near a matched pair and the areas of both targets add up to that of the source.
- :class:`FlowTracker`: a flow of least cost with divisions in the manner of [2]_, where every event
  has a price made by hand, and all objects are explained at the least total price.

Both papers' trackers have parts for whole movies and for one kind of images that are not repeated
here; prices and tolerances are ours, in units of the gate, and the same for all data.
:mod:`trellis.tracking.local_classifiers` has the baselines with features.

References
----------
.. [1] F. Li, X. Zhou, J. Ma, S. T. C. Wong. Multiple nuclei tracking using integer programming for
   quantitative cancer cell cycle analysis. IEEE Transactions on Medical Imaging 29, 2010.
.. [2] D. Padfield, J. Rittscher, B. Roysam. Coupled minimum-cost flow cell tracking for
   high-throughput quantitative analysis. Medical Image Analysis 15, 2011.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol, Self

import numpy as np

from trellis.arrays import Bools, Float64s, Int64s, as_array
from trellis.domains import number, one_of, whole
from trellis.errors import DataError
from trellis.estimator import Estimator, changed, fitted, parameter, renamed
from trellis.files.storable import Storable
from trellis.files.stored import header_value
from trellis.tracking.annotation import annotated_hypotheses, annotation_of
from trellis.tracking.event_kinds import KINDS, Division, EventKind
from trellis.tracking.features import area_of, relative_difference, roles
from trellis.tracking.gates import usual_reach
from trellis.tracking.hypotheses import Hypotheses, check_positions, make_hypotheses
from trellis.tracking.objects import EVENTS, FramePair, PairAnnotation
from trellis.tracking.result import TrackingResult, annotated_events, assemble_tracks

_ENOUGH = 100  # moves whose lengths say by themselves how far objects go
_NEVER = 1e3  # a price that is never paid unless something is known

__all__ = ["FlowTracker", "GraphMatching", "NearestNeighbour", "Tracker", "moved_distances"]


class Tracker(Protocol):
    """What all trackers can do."""

    def fit(self, pairs: Sequence[FramePair]) -> Self:
        """Learn from annotated frame pairs."""
        ...

    def predict(self, pairs: Sequence[FramePair]) -> TrackingResult:
        """Track; annotations of the pairs are not looked at."""
        ...


def moved_distances(pairs: Sequence[FramePair]) -> Float64s:
    """Lengths of all annotated moves.

    Examples
    --------
    >>> from trellis.tracking import Objects
    >>> here, there = (Objects(np.array([0]), np.array([[x, 0.0]])) for x in (1.0, 4.0))
    >>> note = PairAnnotation(((0, 0, "move"),))
    >>> moved_distances([FramePair("", 0, here, there, note)]).tolist()
    [3.0]
    """
    lengths = [np.empty(0)]
    for pair in pairs:
        if pair.annotation is None:
            continue
        # Of kinds of one's own nobody need tell here.
        links = tuple(link for link in pair.annotation.links if link[2] in EVENTS)
        known = annotated_hypotheses(pair, replace(pair.annotation, links=links))
        moves = known.of("move")
        i, j = known.source[moves, 0], known.target[moves, 0]
        lengths.append(np.linalg.norm(pair.target.position[j] - pair.source.position[i], axis=1))
    return np.concatenate(lengths)


def predicted(
    pairs: Sequence[FramePair],
    annotations: Sequence[PairAnnotation],
    kinds: Sequence[EventKind] = KINDS,
) -> TrackingResult:
    """Tracks of complete annotations, one for each pair."""
    links, events = annotated_events(
        replace(pair, annotation=note) for pair, note in zip(pairs, annotations, strict=True)
    )
    return assemble_tracks(pairs, links, events, kinds=kinds)


def cheapest(
    pairs: Sequence[FramePair], hypotheses: Sequence[Hypotheses], scores: Sequence[Float64s]
) -> TrackingResult:
    """Tracks of the assignments with the greatest total scores."""
    from trellis.structures.assignment import AssignmentSpace, best_assignment

    rows = np.cumsum([0] + [len(pair.source) + len(pair.target) for pair in pairs])
    offsets = np.cumsum([0] + [len(candidates) for candidates in hypotheses])
    covers = [np.empty((0, 3), np.int32)]
    for pair, candidates, first in zip(pairs, hypotheses, rows, strict=False):
        here = candidates.covers(len(pair.source))
        covers.append(np.where(here >= 0, here + np.int32(first), here))
    space = AssignmentSpace(np.concatenate(covers).astype(np.int32), offsets, rows)
    chosen = best_assignment(space, np.concatenate([np.empty(0), *scores])).chosen
    parts = np.split(chosen, offsets[1:-1]) if len(pairs) else []
    notes = [annotation_of(*one) for one in zip(pairs, hypotheses, parts, strict=True)]
    return predicted(pairs, notes, hypotheses[0].kinds if hypotheses else KINDS)


class GatedTracker(Estimator, Storable, ABC):
    """A tracker with a gate that may be learned."""

    max_distance: float | str = parameter(
        one_of("auto") | number(above=0),
        """The gate; "auto": the 99th percentile of the annotated moves or, with fewer than a
        hundred of them, what objects usually move at most if that is more.""",
        default="auto",
        kw_only=False,
    )
    gate_: float = fitted()

    def fit(self, pairs: Sequence[FramePair]) -> Self:
        """Find the gate, if it is not given: from annotated moves, or without any."""
        self._check_parameters()
        if self.max_distance == "auto":
            if not len(pairs):
                raise DataError("there are no frame pairs to find the gate from")
            lengths = moved_distances(pairs)
            gate = float(np.percentile(lengths, 99)) if lengths.size else 0.0
            if lengths.size < _ENOUGH:
                gate = max(gate, usual_reach(pairs))
            self.gate_ = max(gate, np.finfo(float).tiny)
        return self

    @property
    def gate(self) -> float:
        """Distance up to which an object can have moved."""
        self._check_parameters()
        if self.max_distance != "auto":
            return float(self.max_distance)
        if not hasattr(self, "gate_"):
            raise DataError(
                f"{type(self).__name__} does not know how far objects move; fit it or give "
                "max_distance"
            )
        return self.gate_

    @abstractmethod
    def predict(self, pairs: Sequence[FramePair]) -> TrackingResult:
        """Track; annotations of the pairs are not looked at."""

    def _check_fitted(self) -> None:
        _ = self.gate

    def _is_fitted(self) -> bool:
        return self.max_distance != "auto" or hasattr(self, "gate_")

    def _state(self) -> dict[str, Any]:
        return {"gate": self.gate}

    def _restore(self, state: dict[str, Any]) -> None:
        gate = header_value(state, "gate", float, low=np.finfo(float).tiny)
        if self.max_distance == "auto":
            self.gate_ = gate


class LinkingTracker(GatedTracker):
    """A tracker that looks at a few of the nearest objects."""

    n_neighbors: int = parameter(
        whole(1), "Number of nearest objects an object may be linked with.", default=5
    )
    neighbours = renamed("n_neighbors")


class NearestNeighbour(GatedTracker):
    """One-to-one assignment of least total distance; no divisions.

    Examples
    --------
    >>> from trellis.datasets.cells import simulate_cells
    >>> pairs = simulate_cells(30, 5, seed=0)
    >>> result = NearestNeighbour().fit(pairs[:3]).predict(pairs[3:])
    >>> {link.kind for link in result.links}
    {'move'}
    """

    def predict(self, pairs: Sequence[FramePair]) -> TrackingResult:
        """Track; annotations of the pairs are not looked at."""
        gate = self.gate
        notes = []
        for pair in pairs:
            distance = _distances(pair.source.position, pair.target.position)
            notes.append(_moves(pair, *_matched(distance, gate)))
        return predicted(pairs, notes)


class GraphMatching(LinkingTracker):
    r"""Matching by place among the neighbours and by area; divisions where areas add up.

    With :math:`\delta(a, b) = |a - b| / \max(a, b)` the price of linking i with j is
    :math:`\|z_j - z_i - s_i\| / g + \delta(a_i, a_j) / 2`, where :math:`s_i` is the median
    displacement of the neighbours of i in a first matching by distance alone; the cheapest matching
    of links up to a price of 2 is made. A target k that is left makes the matched pair (i, j) a
    division if j and k lie within twice the gate of i, their middle within the gate, and
    :math:`a_j + a_k` differs from :math:`a_i` by at most ``tolerance`` of it; the one that fits
    best is taken. Of the other links those below a price of 1.5 are moves.

    Examples
    --------
    >>> from trellis.datasets.cells import simulate_cells
    >>> pairs = simulate_cells(100, 5, seed=0)
    >>> result = GraphMatching(max_distance=12.0).predict(pairs)
    >>> sorted({link.kind for link in result.links})
    ['division', 'move']
    """

    n_neighbors = changed(help="Number of neighbours of an object in the graph.", default=6)
    tolerance: float = parameter(
        number(at_least=0),
        """Relative error up to which areas add up. Without a column "area" only distances
        count.""",
        default=0.5,
    )

    def predict(self, pairs: Sequence[FramePair]) -> TrackingResult:
        """Track; annotations of the pairs are not looked at."""
        gate = self.gate
        return predicted(pairs, [self._match(pair, gate) for pair in pairs])

    def _match(self, pair: FramePair, gate: float) -> PairAnnotation:
        check_positions(pair)
        source, target = pair.source.position, pair.target.position
        distance = _distances(source, target)
        i, j = _matched(distance, gate)
        expected = source + self._shift(source, i, target[j] - source[i])
        areas = area_of(pair.source), area_of(pair.target)
        price = _distances(expected, target) / gate
        price += relative_difference(areas[0][:, None], areas[1][None, :]) / 2
        # A daughter is farther from its mother, and smaller, than one and the same cell would be.
        price[distance > 2 * gate] = np.inf
        i, j = _matched(price, 2.0)
        return self._divided(pair, gate, i, j, price[i, j] < 1.5)

    def _shift(self, source: Float64s, matched: Int64s, moves: Float64s) -> Float64s:
        """Median displacement of the nearest matched sources, for each source."""
        if not len(matched):
            return np.zeros_like(source)
        from scipy.spatial import cKDTree

        k = min(self.n_neighbors + 1, len(matched))
        _, near = cKDTree(source[matched]).query(source, k=np.arange(1, k + 1))
        itself = matched[near] == np.arange(len(source))[:, None]
        around = np.where(itself[:, :, None] & (k > 1), np.nan, moves[near])
        return np.asarray(np.nanmedian(around, axis=1), np.float64)

    def _divided(
        self, pair: FramePair, gate: float, i: Int64s, j: Int64s, moved: Bools
    ) -> PairAnnotation:
        source, target = pair.source.position, pair.target.position
        areas = area_of(pair.source), area_of(pair.target)
        rest = np.setdiff1d(np.arange(len(target)), j)
        middle = (target[j][:, None] + target[rest][None]) / 2 - source[i][:, None]
        off = np.linalg.norm(middle, axis=2) / gate
        both = areas[1][j][:, None] + areas[1][rest][None]
        excess = np.abs(both - areas[0][i][:, None]) / np.maximum(areas[0][i][:, None], 1e-12)
        excess = np.where(np.isfinite(excess), excess, 0.0)
        far = np.maximum(
            np.linalg.norm(target[j] - source[i], axis=1)[:, None],
            _distances(source[i], target[rest]),
        )
        fits = (off <= 1) & (far <= 2 * gate) & (excess <= self.tolerance)
        price = np.where(fits, off + excess, np.inf)
        second: dict[int, int] = {}
        for n in np.argsort(price, axis=None, kind="stable")[: int(fits.sum())]:
            p, r = divmod(int(n), len(rest))
            if p not in second and r not in second.values():
                second[p] = r
        links: list[tuple[int, int, str]] = []
        ids = pair.source.ids.tolist(), pair.target.ids.tolist()
        for p, (a, b) in enumerate(zip(i.tolist(), j.tolist(), strict=True)):
            if p in second:
                pair_of = sorted((b, int(rest[second[p]])))
                links += [(ids[0][a], ids[1][c], "division") for c in pair_of]
            elif moved[p]:
                links.append((ids[0][a], ids[1][b], "move"))
        return PairAnnotation(tuple(links))


class FlowTracker(LinkingTracker):
    r"""Explanation of all objects at the least total price, with prices made by hand.

    With :math:`\delta(a, b) = |a - b| / \max(a, b)` the prices are

    - move: :math:`\|z_j - z_i\| / g + \delta(a_i, a_j) / 2`;
    - appear and disappear: 1, or 1/4 plus the distance to the border over 2g where that is less;
    - division: ``division`` + :math:`\|(z_j + z_k)/2 - z_i\| / g + \delta(a_i, a_j + a_k) +
      \delta(a_j, a_k)`.

    Examples
    --------
    >>> from trellis.datasets.cells import simulate_cells
    >>> pairs = simulate_cells(100, 5, seed=0)
    >>> result = FlowTracker(max_distance=12.0).predict(pairs)
    >>> sorted({link.kind for link in result.links})
    ['division', 'move']
    """

    max_distance = changed(
        help="""The gate; "auto": the 99th percentile of the annotated moves or, with fewer than a
        hundred of them, what objects usually move at most if that is more. Daughters may be twice
        as far from their mother."""
    )
    division: float = parameter(
        number(at_least=0), "Price of a division that fits perfectly.", default=0.5
    )

    def predict(self, pairs: Sequence[FramePair]) -> TrackingResult:
        """Track; annotations of the pairs are not looked at."""
        gate = self.gate
        hypotheses = [
            make_hypotheses(
                pair, n_neighbors=self.n_neighbors, max_distance=2 * gate, annotated=False
            )
            for pair in pairs
        ]
        scores = [self.scores(*one) for one in zip(pairs, hypotheses, strict=True)]
        return cheapest(pairs, hypotheses, scores)

    def scores(self, pair: FramePair, hypotheses: Hypotheses) -> Float64s:
        """Prices of hypotheses with a minus sign; that of a kind without a price is huge."""
        prices = np.full(len(hypotheses), _NEVER)
        for kind in hypotheses.kinds:
            priced = Division(self.division) if isinstance(kind, Division) else kind
            here = hypotheses.of(kind.name)
            if priced.price is not None and here.any():
                objects, frame = roles(pair, hypotheses.take(here), kind)
                price = priced.price(*objects, frame=frame, gate=self.gate)
                what = f"prices of {kind.name}"
                prices[here] = as_array(price, np.float64, what, (int(here.sum()),), finite=True)
        return -prices


# ------------------------------------------------------------------ distances


def _distances(a: Float64s, b: Float64s) -> Float64s:
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(a, b), np.float64)


def _matched(price: Float64s, limit: float) -> tuple[Int64s, Int64s]:
    """Rows and columns of the cheapest matching; what costs the limit or more is not matched."""
    from scipy.optimize import linear_sum_assignment

    price = np.where(np.isnan(price), np.inf, price)
    i, j = linear_sum_assignment(np.minimum(price, limit))
    below = price[i, j] < limit
    return i[below].astype(np.int64), j[below].astype(np.int64)


def _moves(pair: FramePair, i: Int64s, j: Int64s) -> PairAnnotation:
    ids = zip(pair.source.ids[i].tolist(), pair.target.ids[j].tolist(), strict=True)
    return PairAnnotation(tuple((a, b, "move") for a, b in ids))
