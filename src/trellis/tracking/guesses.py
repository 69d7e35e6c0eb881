r"""Guesses: what a tracker makes of objects that nobody has annotated, as weak annotation.

With few links a model that starts from zero knows less than a tracker with prices made by hand: it
has seen no division, perhaps, and so never finds one. But the movie is full of links that are easy
to see. :class:`~trellis.tracking.FlowTracker` completes each pair, what is annotated held fixed,
and the completed pairs are learned from beside the annotated ones, with a weight:

.. math:: \min_w\; \lambda \lVert w\rVert^2 + \sum_{n \text{ annotated}} \ell(x_n, y^*_n; w)
    + \alpha \sum_{n \text{ guessed}} \ell(x_n, \hat y_n; w), \qquad
    \alpha = \min\Bigl(1, \frac{K^2}{N \hat N}\Bigr),

N being the number of annotated events, :math:`\hat N` that of guessed ones and K = 800: all guesses
together weigh as much as the annotated events where there are K of them, more where there are
fewer, and :math:`(K / N)^2` as much where there are more. A model is smoother than the prices, so
that what it learns from their guesses is usually better than they are; a second model learns from
the guesses of the first.

Beside annotated data of related laboratories guesses count less: N then has a quarter of the events
that are annotated there, too. The flow tracker knows nothing of splits and merges, nor of a
kind of one's own without a price. Where the data
of a related laboratory has at least ten, a model of that laboratory may know more of this one than
the guesses do; it is believed unless it surely finds them more than twice as often here, or less
than half as often, by the standard error of the logarithm of a ratio of counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from trellis.arrays import Float64s, Int64s
from trellis.problems.partial import PartialLoss, PartialObjective
from trellis.structures.assignment import AssignmentSpace, best_assignment
from trellis.tracking.annotation import annotation_of, fixed_variables
from trellis.tracking.baselines import FlowTracker
from trellis.tracking.event_kinds import EventKind
from trellis.tracking.gates import usual_reach
from trellis.tracking.hypotheses import Hypotheses, make_hypotheses
from trellis.tracking.objects import FramePair

if TYPE_CHECKING:
    from trellis.tracking.problem import TrackingProblem

__all__ = [
    "Guesses",
    "completed",
    "few_of",
    "flow_guesses",
    "share_of_regulariser",
    "weight_of_guesses",
]

MOST = 10_000
"""Objects of pairs that are guessed at: more teach nothing new."""

_AS_MANY = 800.0  # K
_IDLE = 0.01  # of the weight of the annotated events: guesses are left out
_PLENTY = 4000  # events of which the regulariser, as it is by default, is a small part
_ELSEWHERE = 0.25  # of an event here is one that is annotated in related data
_ALIKE = 2.0  # times as often, or as rarely, is about as often
_SEEN = 10  # events that say how often there are any


@dataclass(frozen=True, eq=False)
class Guesses:
    """What is guessed at in a learning problem, and how much that counts.

    Parameters
    ----------
    problem : TrackingProblem
        Frame pairs with what is known of them.
    samples : int64, shape (n,)
        Those that are guessed at.
    weight : float
        Weight of each guess.
    """

    problem: TrackingProblem
    samples: Int64s
    weight: float

    @classmethod
    def of(cls, problem: TrackingProblem, elsewhere: int = 0) -> Self | None:
        """Guesses at a problem; None if there is nothing to guess, or enough is known.

        ``elsewhere`` is the number of events that are annotated in related data.
        """
        known, pairs = problem.annotated, problem.pairs
        few = {id(pair) for pair in few_of([p for p, k in zip(pairs, known, strict=True) if not k])}
        chosen = (known & ~problem.complete) | [id(pair) in few for pair in pairs]
        guesses = cls(problem, np.flatnonzero(chosen), 0.0)
        weight = weight_of_guesses(problem.n_known + _ELSEWHERE * elsewhere, guesses.n_objects)
        return replace(guesses, weight=weight) if weight else None

    @property
    def n_objects(self) -> int:
        """Objects that are guessed at."""
        return sum(len(pair.source) for pair in self.pairs)

    @property
    def pairs(self) -> list[FramePair]:
        """Pairs that are guessed at."""
        pairs = self.problem.pairs
        return [pairs[i] for i in self.samples.tolist()]

    @property
    def n_events(self) -> float:
        """Number of events that the annotated and the guessed ones count like."""
        return self.problem.n_known + self.weight * self.n_objects

    def by_flow(self, loss: str | PartialLoss) -> PartialObjective:
        """Losses of the pairs that are annotated in full, and of the flow tracker's guesses."""
        events = self.problem.hypothesis_space.events
        whole = np.flatnonzero(self.problem.complete)
        return self._objective(whole, flow_guesses(self.pairs, events), loss)

    def by_model(self, w: Float64s, loss: str | PartialLoss) -> PartialObjective:
        """Losses of all that is annotated, and of the guesses of a model."""
        known = np.flatnonzero(self.problem.annotated)
        return self._objective(known, self.problem.completed(w, self.samples), loss)

    def _objective(
        self, known: Int64s, guesses: Sequence[FramePair], loss: str | PartialLoss
    ) -> PartialObjective:
        together = self.problem.extended(known, guesses)
        weights = np.repeat([1.0, self.weight], [len(known), len(guesses)])
        return PartialObjective(together, loss, sample_weight=weights)

    def outdone_by(self, related: Sequence[TrackingProblem], learn: Callable[[], Float64s]) -> bool:
        """Whether a model of related data finds here as often what the flow tracker cannot find.

        ``learn`` gives the weights of the model; it is called only if there is enough to compare.
        """
        kinds = self.problem.hypothesis_space.kinds
        there = [pair for problem in related for pair in problem.pairs if pair.annotation]
        count, often = _unknown_to_flow(there, kinds)
        if count < _SEEN:
            return False
        found, here = _unknown_to_flow(self.problem.completed(learn(), self.samples), kinds)
        error = np.sqrt(1 / count + 1 / max(found, 0.5))
        return bool(abs(np.log(here / often)) < np.log(_ALIKE) + 2 * error)


def share_of_regulariser(n_events: float) -> float:
    """Part of the regulariser that so many events are learned with, annotated or guessed."""
    return min(1.0, n_events / _PLENTY)


def _unknown_to_flow(pairs: Sequence[FramePair], kinds: Sequence[EventKind]) -> tuple[int, float]:
    """Number of events without a price, and that (half of one, if there is none) by object."""
    found = 0
    unknown = {kind.name: kind for kind in kinds if kind.price is None}
    for pair in pairs:
        assert pair.annotation is not None
        links = [link for link in pair.annotation.links if link[2] in unknown]
        found += len({(kind, a if unknown[kind].n_sources == 1 else b) for a, b, kind in links})
    return found, max(found, 0.5) / max(sum(len(pair.source) for pair in pairs), 1)


def few_of(pairs: Sequence[FramePair], most: int = MOST) -> list[FramePair]:
    """Take pairs from all over a movie, that have about so many objects together.

    Examples
    --------
    >>> from trellis.datasets import simulate_cells
    >>> pairs = simulate_cells(20, 9, seed=0)
    >>> [pair.frame for pair in few_of(pairs, most=60)]
    [0, 4]
    """
    objects = sum(len(pair.source) for pair in pairs)
    n = max(1, round(len(pairs) * most / max(objects, 1)))
    if n >= len(pairs):
        return list(pairs)
    return [pairs[i * len(pairs) // n] for i in range(n)]


def flow_guesses(pairs: Sequence[FramePair], events: Sequence[str | EventKind]) -> list[FramePair]:
    """Complete pairs by the flow tracker, what is annotated held fixed.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from trellis.datasets import simulate_cells
    >>> from trellis.tracking import PairAnnotation
    >>> pair = simulate_cells(20, 2, seed=0)[0]
    >>> source, target = int(pair.source.ids[0]), int(pair.target.ids[-1])
    >>> odd = PairAnnotation(((source, target, "move"),), (), ())
    >>> guess, = flow_guesses([replace(pair, annotation=odd)], ("move", "appear", "disappear"))
    >>> guess.annotation.complete, (source, target, "move") in guess.annotation.links
    (True, True)
    """
    tracker = FlowTracker(usual_reach(pairs))
    possible = [
        (pair, make_hypotheses(
            pair, events=events, n_neighbors=tracker.n_neighbors, max_distance=2 * tracker.gate
        ))
        for pair in pairs
    ]  # fmt: skip
    return completed((pair, h, tracker.scores(pair, h)) for pair, h in possible)


def completed(scored: Iterable[tuple[FramePair, Hypotheses, Float64s]]) -> list[FramePair]:
    """Complete pairs by the best tracking under scores, what is annotated held fixed."""
    done = []
    for pair, hypotheses, scores in scored:
        n = len(pair.source)
        n_rows, n_columns = n + len(pair.target), len(hypotheses)
        ends = np.array([0, n_columns]), np.array([0, n_rows])
        space = AssignmentSpace(hypotheses.covers(n), *ends)
        fixed = fixed_variables(pair, hypotheses, pair.annotation)
        chosen = best_assignment(space, scores, fixed=fixed, exact=False).chosen
        done.append(replace(pair, annotation=annotation_of(pair, hypotheses, chosen)))
    return done


def weight_of_guesses(known: float, guessed: int) -> float:
    """Weight of a guess beside so many annotated events; 0: guesses are not worth the time.

    Examples
    --------
    >>> [weight_of_guesses(known, 4000) for known in (0, 200, 1600, 16000)]
    [1.0, 0.8, 0.1, 0.0]
    """
    if not guessed:
        return 0.0
    weight = min(1.0, _AS_MANY**2 / (max(known, 1) * guessed))
    return weight if weight * guessed >= _IDLE * known else 0.0
