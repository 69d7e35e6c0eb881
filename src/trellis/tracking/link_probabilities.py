r"""How probable a link is: the share of all trackings that have it, by what they score.

The scores s of a model rank trackings; they are no logarithms of probabilities. A *temperature* T
makes them so,

.. math:: P(y) = \frac{1}{Z} \exp\Bigl(\frac{1}{T} \sum_h s_h y_h\Bigr) , \qquad
    P(i \to j) = \sum_{h \text{ links } i \text{ and } j} P(y_h = 1) ,

over the trackings y that explain every object once, counted by
:func:`trellis.structures.mean_assignment`. The probability of a link is thus that the two objects
belong together, whatever the event: a move, or a division with any second daughter. So is a link
counted as right (:mod:`trellis.tracking.scores`).

**One number is chosen**, T, by maximum likelihood of events that are known. With what is annotated
fixed, and :math:`\beta = 1 / T`,

.. math:: \frac{\partial}{\partial \beta} \bigl(\log Z_\text{known}(\beta) - \log Z(\beta)\bigr) =
    \sum_h s_h \bigl(P(y_h \mid \text{known}) - P(y_h)\bigr) ,

so at the best T the mean score of the trackings is that of the known ones. These are pairs that the
weights were learned from. Where they are few the model may explain them without a mistake, which
says nothing of others; so T is at least 1, the scale of the margins that are learned.

**With next to nothing annotated** the events are those that the flow tracker guesses. It errs where
the model errs, too, so T is one and a half times what its guesses say; a mistake that both make
nevertheless, such as a link of something that is no cell, is taken for sure.

References
----------
C. Guo, G. Pleiss, Y. Sun, K. Weinberger, *On calibration of modern neural networks*, 2017.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Bools, Float64s, Int64s
from trellis.structures.assignment import AssignmentSpace
from trellis.structures.mean_assignment import mean_assignment
from trellis.tracking.guesses import few_of, flow_guesses
from trellis.tracking.hypotheses import Hypotheses
from trellis.tracking.link_chances import LinkChance

if TYPE_CHECKING:
    from trellis.tracking.problem import TrackingProblem

__all__ = [
    "Witness",
    "chances_of_links",
    "hypothesis_probabilities",
    "likeliest_temperature",
    "linked_objects",
]

MOST = 1_000
"""Objects of the pairs that the temperature is chosen by."""

_ENOUGH = 200  # annotated events that tell the temperature
_SHARED_ERRORS = 1.5  # times the temperature that guesses say
_HOTTEST = 50.0
_DOUBLED = 0.7  # step of the logarithm of the temperature
_PRECISION = 0.03


def hypothesis_probabilities(
    space: AssignmentSpace,
    scores: Float64s,
    temperature: float,
    fixed: NDArray[np.int8] | None = None,
) -> Float64s:
    """Probability of each hypothesis (H,).

    Parameters
    ----------
    space : AssignmentSpace
        Hypotheses of frame pairs, or of a whole movie.
    scores : float64, shape (H,)
        Their scores.
    temperature : float
        What they are divided by.
    fixed : int8, shape (H,), optional
        1: chosen, 0: not chosen, -1: free.

    Examples
    --------
    One object before and one after, linked or not:

    >>> space = AssignmentSpace([[0, 1, -1], [0, -1, -1], [1, -1, -1]], [0, 3], [0, 2])
    >>> scores = np.log([9.0, 1.0, 1.0])
    >>> hypothesis_probabilities(space, scores, 1.0).round(3).tolist()
    [0.9, 0.1, 0.1]
    >>> hypothesis_probabilities(space, scores, 2.0).round(3).tolist()
    [0.75, 0.25, 0.25]
    """
    shares = mean_assignment(space, fixed, scores / temperature).shares
    return np.clip(shares, 0.0, 1.0)


def likeliest_temperature(
    space: AssignmentSpace,
    scores: Float64s,
    known: NDArray[np.int8],
    *,
    coldest: float = 1.0,
    hottest: float = _HOTTEST,
) -> float:
    """Temperature of the greatest likelihood of known events, between two bounds.

    Parameters
    ----------
    space : AssignmentSpace
        Hypotheses.
    scores : float64, shape (H,)
        Their scores.
    known : int8, shape (H,)
        1: it happened, 0: it did not, -1: not known.

    Examples
    --------
    Of ten objects with the same score nine went on:

    >>> covers = [[[2 * i, 2 * i + 1, -1], [2 * i, -1, -1], [2 * i + 1, -1, -1]] for i in range(10)]
    >>> space = AssignmentSpace(np.concatenate(covers), 3 * np.arange(11), 2 * np.arange(11))
    >>> known = np.array([1, 0, 0] * 9 + [0, 1, 1], np.int8)
    >>> t = likeliest_temperature(space, np.array([4.0, 0.0, 0.0] * 10), known)
    >>> round(float(np.exp(4 / t)))
    9
    """

    def surplus(log_t: float) -> float:
        """How much higher the known events score than trackings do."""
        t = float(np.exp(log_t))
        said = known == 1
        if (known < 0).any():
            said = hypothesis_probabilities(space, scores, t, known)
        return float(scores @ (said - hypothesis_probabilities(space, scores, t)))

    low, high = np.log(coldest), np.log(coldest)
    at_low = at_high = surplus(low)
    if at_low >= 0:
        return coldest
    while at_high < 0:  # the surplus rises with T; hot trackings are many, and take longer
        low, at_low = high, at_high
        high = min(high + _DOUBLED, np.log(hottest))
        at_high = surplus(high)
        if at_high <= 0 and high == np.log(hottest):
            return hottest
    # Regula falsi, with the Illinois step against a bound that stays.
    side, here = 0, low
    while high - low > _PRECISION:
        before = here
        here = (low * at_high - high * at_low) / (at_high - at_low)
        value = surplus(here)
        if abs(here - before) < _PRECISION / 2:
            break
        if value < 0:
            low, at_low = here, value
            at_high *= 0.5 if side == -1 else 1.0
            side = -1
        else:
            high, at_high = here, value
            at_low *= 0.5 if side == 1 else 1.0
            side = 1
    return float(np.exp(here))


@dataclass(frozen=True, eq=False)
class Witness:
    """Events by which a temperature is chosen.

    Parameters
    ----------
    space : AssignmentSpace
        Hypotheses of some pairs.
    scores : float64, shape (H,)
        What the model says of them.
    known : int8, shape (H,)
        What happened.
    guessed : bool
        Whether the flow tracker says so.
    """

    space: AssignmentSpace
    scores: Float64s
    known: NDArray[np.int8]
    guessed: bool

    @classmethod
    def of(cls, problem: TrackingProblem, weights: Float64s) -> Witness:
        """The annotated pairs of a problem, some if they are many; guesses if they are few."""
        events = problem.hypothesis_space.events
        guessed = problem.n_known < _ENOUGH
        if guessed:
            pairs = flow_guesses(few_of(problem.pairs, MOST), events)
        else:
            known = problem.annotated
            pairs = [p for p, k in zip(problem.pairs, known, strict=True) if k]
            pairs = few_of(pairs, MOST)
        some = problem.extended(np.zeros(0, np.int64), pairs)
        space, scores = some.scores(weights)
        return cls(space, scores, some.known_variables, guessed)

    def temperature(self) -> float:
        """Choose it."""
        t = likeliest_temperature(self.space, self.scores, self.known)
        return t * _SHARED_ERRORS if self.guessed else t


def linked_objects(hypotheses: Hypotheses) -> tuple[Int64s, Int64s, Int64s]:
    """Numbers of hypotheses, rows of a source and of a target that each links: (K,) all."""
    numbers, sources, targets = [], [], []
    for a in range(2):
        for b in range(2):
            both = (hypotheses.source[:, a] >= 0) & (hypotheses.target[:, b] >= 0)
            numbers.append(np.flatnonzero(both))
            sources.append(hypotheses.source[both, a])
            targets.append(hypotheses.target[both, b])
    return np.concatenate(numbers), np.concatenate(sources), np.concatenate(targets)


def chances_of_links(
    hypothesis: Int64s,
    source: Int64s,
    target: Int64s,
    shares: Float64s,
    chosen: Bools,
    names: Sequence[tuple[int, int]],
) -> dict[tuple[int, int], LinkChance]:
    """Chances of the links that a tracking chooses, by numbers of their ends.

    Parameters
    ----------
    hypothesis, source, target : int64, shape (K,)
        A hypothesis links an object to a later one; objects are numbered through all frames.
    shares : float64, shape (H,)
        Probabilities of the hypotheses.
    chosen : bool, shape (H,)
        Those of the tracking.
    names : sequence of (frame, id)
        Of each object.
    """
    n = len(names)
    p = shares[hypothesis]
    keys, first, place = np.unique(source * n + target, return_index=True, return_inverse=True)
    a, b = source[first], target[first]
    linked = np.bincount(place, p, len(keys))
    taken = np.zeros(len(keys), bool)
    taken[place[chosen[hypothesis]]] = True
    event = np.zeros(len(keys))
    np.maximum.at(event, place, np.where(chosen[hypothesis], p, 0.0))
    others = {}
    for what, ends in (("past", b), ("fate", a)):
        full = target if what == "past" else source
        # A merge or a division links an object twice, which is one past or one fate.
        once = np.unique(hypothesis * n + full)
        some = np.bincount(once % n, shares[once // n], n)
        left = np.where(taken, -1.0, linked)
        order = np.lexsort((-left, ends))
        best = order[np.unique(ends[order], return_index=True)[1]]
        rival, chance = np.full(n, -1), np.clip(1.0 - some, 0.0, 1.0)
        better = left[best] > chance[ends[best]]
        which = best[better]
        chance[ends[which]] = left[which]
        rival[ends[which]] = (a if what == "past" else b)[which]
        others[what] = rival, chance
    result = {}
    for k in np.flatnonzero(taken):
        i, j = int(a[k]), int(b[k])
        (before, past), (after, fate) = others["past"], others["fate"]
        result[i, j] = LinkChance(
            min(float(linked[k]), 1.0),
            float(event[k]),
            None if before[j] < 0 else names[before[j]],
            float(past[j]),
            None if after[i] < 0 else names[after[i]],
            float(fate[i]),
        )
    return result
