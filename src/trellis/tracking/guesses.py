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
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from trellis.arrays import Float64s
from trellis.structures.assignment import AssignmentSpace, best_assignment
from trellis.tracking.annotation import annotation_of, fixed_variables
from trellis.tracking.baselines import FlowTracker
from trellis.tracking.gates import usual_reach
from trellis.tracking.hypotheses import Hypotheses, make_hypotheses
from trellis.tracking.objects import FramePair

__all__ = ["completed", "few_of", "flow_guesses", "weight_of_guesses"]

MOST = 10_000
"""Objects of pairs that are guessed at: more teach nothing new."""

_AS_MANY = 800.0  # K
_IDLE = 0.01  # of the weight of the annotated events: guesses are left out


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


def flow_guesses(pairs: Sequence[FramePair], events: Sequence[str]) -> list[FramePair]:
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


def weight_of_guesses(known: int, guessed: int) -> float:
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
