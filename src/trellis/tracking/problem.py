r"""Frame pairs as a learning problem: score, task loss and maxima over trackings.

A tracking of a frame pair is a choice y of hypotheses such that every object is covered once
(:mod:`trellis.structures.assignment`); its score is

.. math:: f(x, y; w) = \sum_h y_h \langle w, F_h\rangle = \langle w, F^\top y\rangle ,

F (H, D) holding the preconditioned features of each hypothesis in the columns of its event. An
annotation fixes variables. The task loss counts those that a tracking has otherwise,

.. math:: \Delta(y^*, y) = \sum_{h: y^*_h = 1} (1 - y_h) + \sum_{h: y^*_h = 0} y_h ,

so a wrong link costs two: the true event is missing and a false one is there. It is linear in y,
and therefore part of the scores in loss-augmented inference. With ``cost="recall"`` only the first
sum counts, as in the program of the original authors; they also divide by the number of true
events, which ``normalise`` does.

Learning does not wait for the few problems that are very hard, as they are under weights that make
no sense yet: there the best tracking that was found stands, with a bound (``exact=False`` of
:func:`trellis.structures.best_assignment`).

The mean of all compatible trackings has the share of them that choose a hypothesis in place of
:math:`y_h` (:mod:`trellis.structures.mean_assignment`): counted, but where many objects that could
be linked to each other are not annotated, as in crowded pairs of which little is known; there the
shares are those of belief propagation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Bools, Float64s, Int64s
from trellis.errors import DataError, InfeasibleError
from trellis.problems.problem import Measure, Space
from trellis.structures.assignment import (
    Assignment,
    AssignmentSpace,
    best_assignment,
    best_incompatible_assignment,
    ranked_assignments,
)
from trellis.structures.mean_assignment import mean_assignment
from trellis.tracking.annotation import fixed_variables
from trellis.tracking.guesses import completed
from trellis.tracking.hypotheses import Hypotheses
from trellis.tracking.hypothesis_space import HypothesisSpace
from trellis.tracking.objects import FramePair, Link, PairAnnotation
from trellis.tracking.patches import patchify

if TYPE_CHECKING:
    import scipy.sparse

__all__ = ["TrackingMaxima", "TrackingProblem", "as_annotation"]


# To copy rows of F takes as long as to multiply some ten times as many by the weights.
_FEW = 0.1


@dataclass(eq=False)
class _Sample:
    """A pair with its hypotheses, features, and variables that are fixed."""

    pair: FramePair
    hypotheses: Hypotheses
    matrix: scipy.sparse.csr_array
    fixed: NDArray[np.int8]
    space: AssignmentSpace


@dataclass(frozen=True, eq=False)
class _Stack:
    """Samples one after the other."""

    space: AssignmentSpace
    matrix: scipy.sparse.csr_array
    fixed: NDArray[np.int8]
    rows: Int64s | None = None  # of the matrix that are those of the hypotheses; None: all

    def scores(self, w: Float64s) -> Float64s:
        scores: Float64s = self.matrix @ w
        return scores if self.rows is None else scores[self.rows]


@dataclass(frozen=True, eq=False)
class TrackingMaxima:
    """Trackings of n pairs; see :class:`trellis.problems.Maxima`.

    Parameters
    ----------
    values, losses, bounds : float64, shape (n,)
        Maxima, task losses, and upper bounds of the maxima.
    totals : float64, shape (n, D)
        Features of each tracking.
    """

    values: Float64s
    losses: Float64s
    bounds: Float64s
    totals: Float64s

    def features(self, weight: Float64s | None = None) -> Float64s:
        """Weighted sum of the features (D,)."""
        total: Float64s = self.totals.sum(0) if weight is None else weight @ self.totals
        return total


class TrackingProblem:
    """Frame pairs with what is known of them; a :class:`trellis.problems.Problem`.

    Parameters
    ----------
    pairs : sequence of FramePair
        The samples; their annotations are taken over.
    hypothesis_space : HypothesisSpace
        How hypotheses and features are made.
    cost : "hamming" or "recall"
        Task loss.
    normalise : bool
        Whether the loss of a pair is divided by the number of annotated events in it.
    """

    def __init__(
        self,
        pairs: Sequence[FramePair],
        hypothesis_space: HypothesisSpace,
        *,
        cost: str = "hamming",
        normalise: bool = False,
    ) -> None:
        self.hypothesis_space = hypothesis_space
        self.cost = cost
        self.normalise = normalise
        self._samples = [self._sample(pair) for pair in pairs]
        self._stacked: _Stack | None = None
        self._means: Float64s | None = None

    def _sample(self, pair: FramePair) -> _Sample:
        h = self.hypothesis_space.hypotheses(pair, annotated=True)
        n = len(pair.source)
        rows = np.array([0, n + len(pair.target)])
        space = AssignmentSpace(h.covers(n), np.array([0, len(h)]), rows)
        fixed = fixed_variables(pair, h, pair.annotation)
        return _Sample(pair, h, self.hypothesis_space.matrix(pair, h), fixed, space)

    @property
    def n_samples(self) -> int:
        """Number of frame pairs."""
        return len(self._samples)

    @property
    def n_weights(self) -> int:
        """Number of weights D."""
        return self.hypothesis_space.n_weights

    @property
    def bias_columns(self) -> Int64s:
        """Numbers of the weights that say how often an event happens, whatever it looks like."""
        return self.hypothesis_space.preconditioner.bias_columns

    def divided(self, objects: float = 20) -> TrackingProblem:
        """Return the same problem with patches as samples, to hold some of a few pairs out."""
        kinds = self.hypothesis_space.kinds
        patches = patchify(self.pairs, objects=objects, events=kinds)
        return TrackingProblem(
            patches, self.hypothesis_space, cost=self.cost, normalise=self.normalise
        )

    @property
    def pairs(self) -> list[FramePair]:
        """The frame pairs, with what is known of them now."""
        return [sample.pair for sample in self._samples]

    @property
    def hypotheses(self) -> list[tuple[FramePair, Hypotheses]]:
        """The frame pairs with their hypotheses, in the order of :meth:`scores`."""
        return [(sample.pair, sample.hypotheses) for sample in self._samples]

    def scores(self, w: Float64s) -> tuple[AssignmentSpace, Float64s]:
        """Return the assignment problems of all pairs, and the scores of their hypotheses (H,)."""
        stack = self._stack()
        scores: Float64s = stack.matrix @ w
        return stack.space, scores

    @property
    def annotated(self) -> Bools:
        """Whether anything is known of each pair."""
        return np.array([(sample.fixed >= 0).any() for sample in self._samples], bool)

    @property
    def complete(self) -> Bools:
        """Whether everything is known of each pair."""
        return np.array([(sample.fixed >= 0).all() for sample in self._samples], bool)

    @property
    def n_known(self) -> int:
        """Number of events that are known."""
        return sum(int((sample.fixed == 1).sum()) for sample in self._samples)

    def extended(self, samples: Int64s, pairs: Sequence[FramePair]) -> TrackingProblem:
        """Return a problem of some of these samples, as they are now, and of more pairs."""
        both = TrackingProblem(
            pairs, self.hypothesis_space, cost=self.cost, normalise=self.normalise
        )
        both._samples = [*(self._samples[i] for i in samples.tolist()), *both._samples]
        return both

    def completed(self, w: Float64s, samples: Int64s) -> list[FramePair]:
        """Return pairs completed by the best tracking, what is annotated held fixed."""
        some = [self._samples[i] for i in samples.tolist()]
        return completed((s.pair, s.hypotheses, s.matrix @ w) for s in some)

    @property
    def n_open(self) -> Int64s:
        """Number of objects of each pair of which not everything is known."""
        return np.array([len(self.open_nodes(i)) for i in range(self.n_samples)], np.int64)

    def open_nodes(self, i: int) -> Int64s:
        """Objects of pair i of which not everything is known, numbered as for `weakest_part`."""
        sample = self._samples[i]
        if (sample.fixed >= 0).all():
            return np.zeros(0, np.int64)
        told = _rows(sample.space, sample.fixed == 1)
        return np.setdiff1d(np.arange(sample.space.row_offsets[1]), told)

    def annotate(self, i: int, annotation: Any) -> None:
        """Add what an annotator said of pair i: PairAnnotation, its dict, or links.

        Raises
        ------
        DataError
            If there is no such pair, or the annotation names what is not there or contradicts
            itself. Nothing is changed then.
        InfeasibleError
            If it contradicts what was said before. Nothing is changed then.
        """
        if not 0 <= i < self.n_samples:
            raise DataError(f"there is no pair {i}; they are numbered 0 to {self.n_samples - 1}")
        old = self._samples[i]
        note = as_annotation(annotation)
        both = _merged(old.pair, note)
        try:
            new = self._sample(replace(old.pair, annotation=both))
        except DataError as error:
            self._sample(replace(old.pair, annotation=note))  # raises if it is wrong by itself
            raise InfeasibleError(f"{error}; that is with what was annotated before") from None
        self._samples[i] = new
        self._means = None
        if self._stacked is not None:
            if len(new.hypotheses) == len(old.hypotheses):
                rows = slice(*self._stacked.space.offsets[i : i + 2])
                self._stacked.fixed[rows] = new.fixed
            else:  # the annotation named a hypothesis outside the gates
                self._stacked = None

    def _stack(self) -> _Stack:
        import scipy.sparse

        if self._stacked is None:
            samples = self._samples
            offsets = np.cumsum([0, *(len(s.hypotheses) for s in samples)])
            rows = np.cumsum([0, *(int(s.space.row_offsets[1]) for s in samples)])
            covers = [np.zeros((0, 3), np.int32)]
            covers += [
                np.where(s.space.covers >= 0, s.space.covers + row, -1)
                for s, row in zip(samples, rows[:-1], strict=True)
            ]
            matrix = scipy.sparse.csr_array((0, self.n_weights))
            if samples:
                matrix = scipy.sparse.vstack([s.matrix for s in samples], format="csr")
            fixed = np.concatenate([np.zeros(0, np.int8), *(s.fixed for s in samples)])
            space = AssignmentSpace(np.concatenate(covers), offsets, rows)
            self._stacked = _Stack(space, matrix, fixed)
        return self._stacked

    def _part(self, samples: Int64s | None) -> _Stack:
        if samples is not None and len(samples) == 1:
            s = self._samples[int(samples[0])]
            return _Stack(s.space, s.matrix, s.fixed)
        stack = self._stack()
        if samples is None or np.array_equal(samples, np.arange(self.n_samples)):
            return stack
        space, index = stack.space.part(np.asarray(samples, np.int64))
        if len(index) < _FEW * len(stack.space):
            return _Stack(space, stack.matrix[index], stack.fixed[index])
        return _Stack(space, stack.matrix, stack.fixed[index], index)

    # ---------------------------------------------------------------- maxima

    def maxima(
        self, w: Float64s, space: Space, *, loss: bool = False, samples: Int64s | None = None
    ) -> TrackingMaxima:
        """Maximise score (plus task loss) over the trackings of all pairs, or of those named."""
        part = self._part(samples)
        if space == "mean":
            totals = self._mean_features(samples)
            return TrackingMaxima(totals @ w, np.zeros(len(totals)), totals @ w, totals)
        constant, slope = self._loss(part)
        scores = part.scores(w)
        offered = scores + slope if loss else scores
        if space == "compatible":
            best = self._compatible(part, offered)
        elif space == "incompatible":
            best = best_incompatible_assignment(part.space, offered, part.fixed)
        elif space == "all":
            best = best_assignment(part.space, offered, exact=False)
        else:
            raise DataError(f"there is no space {space!r} of trackings")
        losses = constant + part.space.sums(np.where(best.chosen, slope, 0.0))
        more = constant if loss else np.zeros(len(constant))
        return TrackingMaxima(
            best.values + more, losses, best.bounds + more, _totals(part, best.chosen)
        )

    def _compatible(self, part: _Stack, scores: Float64s) -> Assignment:
        if (part.fixed >= 0).all():
            chosen = part.fixed == 1
            values = part.space.sums(np.where(chosen, scores, 0.0))
            return Assignment(chosen, values, values)
        return best_assignment(part.space, scores, fixed=part.fixed, exact=False)

    def _loss(self, part: _Stack) -> tuple[Float64s, Float64s]:
        """Task loss as constant (n,) and slope (H,)."""
        true = part.space.sums(part.fixed == 1)
        slope = np.where(part.fixed == 1, -1.0, 0.0)
        if self.cost == "hamming":
            slope += part.fixed == 0
        if self.normalise:
            scale = 1 / np.maximum(true, 1.0)
            return true * scale, slope * np.repeat(scale, np.diff(part.space.offsets))
        return true, slope

    def _mean_features(self, samples: Int64s | None) -> Float64s:
        if self._means is None:
            part = self._part(None)
            self._means = _totals(part, mean_assignment(part.space, part.fixed).shares)
        return self._means if samples is None else self._means[samples]

    # ---------------------------------------------------------------- learning on-line

    def update(self, i: int, w: Float64s, *, most: float | None = None) -> bool:
        r"""Learn from a pair in place; False if there is nothing to learn.

        The step is that of the perceptron, from the best tracking to the best compatible one. With
        ``most`` it is passive-aggressive (Crammer et al. 2006): from the best tracking
        :math:`\hat y`, its task loss added, by so much as the loss asks for,
        :math:`\min(\text{most}, \ell / \lVert F^\top (y^* - \hat y)\rVert^2)`, so that weights
        which know much are not lost in a step.
        """
        sample = self._samples[i]
        part = _Stack(sample.space, sample.matrix, sample.fixed)
        scores = sample.matrix @ w
        constant, slope = self._loss(part) if most is not None else (np.zeros(1), np.zeros(1))
        best = best_assignment(part.space, scores + slope, exact=False)
        wrong = (sample.fixed >= 0) & (best.chosen != (sample.fixed == 1))
        if not wrong.any():
            return False
        known = self._compatible(part, scores)
        change = sample.matrix.T @ (known.chosen.astype(np.float64) - best.chosen)
        if most is not None:
            loss = float(constant[0] + best.values[0] - known.values[0])
            if loss <= 0 or not change.any():
                return False
            change *= min(most, loss / float(change @ change))
        w += change
        return True

    def margins(self, w: Float64s, measure: Measure, samples: Int64s) -> Float64s:
        """How sure the model is of each pair, among the trackings that what is known allows.

        Larger is surer; infinite where there is no second best.
        """
        if measure not in ("scoring", "best-vs-worst", "best-vs-second"):
            raise DataError(f"there is no measure {measure!r}")
        part = self._part(samples)
        scores = part.scores(w)
        if measure == "best-vs-second":
            best, second = ranked_assignments(part.space, scores, 2, fixed=part.fixed, exact=False)
            margins: Float64s = best.values - second.values
            return np.where(best.bounds > best.values, 0.0, margins)  # not even the best is known
        best = self._compatible(part, scores)
        if measure == "best-vs-worst":
            return best.values + self._compatible(part, -scores).values
        return best.values

    def weakest_part(self, i: int, w: Float64s, size: int) -> Int64s:
        """Objects of pair i to ask for: those in which best and second best differ, and neighbours.

        Sources are numbered 0..n-1, targets n..n+m-1. There are ``size`` of them, or as many as
        differ; none of which everything is known.
        """
        if size < 1:
            raise DataError(f"size is {size}; a part has at least one object")
        sample = self._samples[i]
        scores = sample.matrix @ w
        best, second = ranked_assignments(sample.space, scores, 2, fixed=sample.fixed, exact=False)
        there_are_two = second.values[0] > -np.inf
        asked = _rows(sample.space, (best.chosen != second.chosen) & there_are_two)
        left = self.open_nodes(i)
        if len(asked) >= size or not len(left):
            return asked
        place = np.concatenate([sample.pair.source.position, sample.pair.target.position])
        centre = place[asked if len(asked) else left].mean(0)
        rest = np.setdiff1d(left, asked)
        near = np.argsort(np.hypot.reduce(place[rest] - centre, axis=1), kind="stable")
        return np.sort(np.concatenate([asked, rest[near][: size - len(asked)]]))


def _rows(space: AssignmentSpace, chosen: Bools) -> Int64s:
    """Rows that some hypotheses cover, each once."""
    covers = space.covers[chosen]
    return np.unique(covers[covers >= 0]).astype(np.int64)


def _totals(part: _Stack, shares: Bools | Float64s) -> Float64s:
    """Features of the tracking of each sample (n, D), or of a mixture of trackings."""
    import scipy.sparse

    index = np.flatnonzero(shares)
    ptr = np.searchsorted(index, part.space.offsets)
    rows = index if part.rows is None else part.rows[index]
    choice = scipy.sparse.csr_array(
        (shares[index].astype(np.float64), rows, ptr),
        (part.space.n_samples, part.matrix.shape[0]),
    )
    totals: Float64s = (choice @ part.matrix).toarray()
    return totals


def as_annotation(value: Any) -> PairAnnotation:
    """Turn what an annotator may say of a pair into an annotation.

    Parameters
    ----------
    value : PairAnnotation, dict, or list of links
        A list of links (``Link`` or (source id, target id, kind)) says nothing of other objects.

    Examples
    --------
    >>> as_annotation([(3, 4, "move")])
    PairAnnotation(links=((3, 4, 'move'),), known_sources=(), known_targets=(), gaps=())
    """
    try:
        if isinstance(value, PairAnnotation):
            return value
        if isinstance(value, dict):
            return PairAnnotation.from_dict(value)
        links = [
            (one.source_id, one.target_id, one.kind) if isinstance(one, Link) else one
            for one in value
        ]
        plain = tuple((int(a), int(b), str(kind)) for a, b, kind in links)
    except (TypeError, ValueError, AttributeError):
        raise DataError(
            "an annotation is a PairAnnotation, its dict, or a list of (source id, target id, "
            f"kind); got {value!r:.80}"
        ) from None
    return PairAnnotation(plain, (), ())


def _merged(pair: FramePair, new: PairAnnotation) -> PairAnnotation:
    """What was known and what is new together."""
    old = pair.annotation
    if old is None:
        return new

    def known(a: tuple[int, ...] | None, b: tuple[int, ...] | None) -> tuple[int, ...] | None:
        return None if a is None or b is None else tuple(sorted({*a, *b}))

    links = tuple(sorted({*old.links, *new.links}))
    both = PairAnnotation(
        links,
        known(old.known_sources, new.known_sources),
        known(old.known_targets, new.known_targets),
        tuple(sorted({*old.gaps, *new.gaps})),
    )
    for ends, one, other, what in (
        (0, old, new, "source"),
        (1, old, new, "target"),
        (0, new, old, "source"),
        (1, new, old, "target"),
    ):
        linked = {link[ends] for link in one.links}
        listed = one.known_sources if what == "source" else one.known_targets
        objects = pair.source if what == "source" else pair.target
        alone = (set(objects.ids.tolist()) if listed is None else set(listed)) - linked
        alone |= {gap[0] for gap in one.gaps} if what == "source" else set()
        clash = sorted(alone & {link[ends] for link in other.links})
        if clash:
            raise InfeasibleError(
                f"sequence {pair.sequence!r}, frame {pair.frame}: {what} {clash[0]} has a link in "
                "one annotation and none in another"
            )
    return both
