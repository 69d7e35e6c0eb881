r"""Gaps: whether an object that begins is the one that ended some frames before.

A *skip* (i, k) says that object i of frame t and object k of frame t + 1 + m are one, which was
missed m times. Where frame pairs are solved by themselves, i disappears and k appears; a skip is
both at once, and *gains* a number g:

.. math:: s_{ik} = s_{\text{disappear}}(i) + s_{\text{appear}}(k) + g_{ik}, \qquad
    g_{ik} = \frac{1}{\kappa} \langle v, G_{ik}\rangle .

**Similarity.** The features of moves are measured between the two frames. In runs of m + 1 moves it
is known which objects are one, and so a logistic regression learns the logarithm of the density
ratio :math:`\log p(x \mid \text{same}) / p(x \mid \text{other})`.

**Decision.** G holds a constant for each m (how often objects are missed), the similarity, and how
often i was seen before and k afterwards: what flickers is seldom a cell. A second logistic
regression says how probable skips are,

.. math:: \operatorname{logit} p_{ik} = \langle v, G_{ik}\rangle - \kappa\, \Delta_{ik} ,

:math:`\Delta_{ik}` being what the events are worth that i and k would have to give up. So
:math:`\kappa` is the scale between log odds and scores, and in the assignment problem of the movie
a skip is chosen where it is more probable than not.

**Where nothing is annotated** only objects that both end and begin are thought to be one, and two
that were seen once each never. The share :math:`\pi` of missed ones among those that end follows
from the movie by expectation maximisation, with :math:`o_{ik} = \frac{\pi}{1 - \pi}
\frac{1}{\bar n} \frac{p(x \mid \text{same})}{p(x \mid \text{other})}` and
:math:`\bar n` the mean number of candidates,

.. math:: p_{ik} = \frac{o_{ik}}{1 + \sum_{k'} o_{ik'} + \sum_{i'} o_{i'k} - o_{ik}}, \qquad
    \pi = \frac{1}{n} \Bigl(\sum p_{ik} - \sum_\text{decoys} p_{ik}\Bigr)_+ .

*Decoys* are objects that end, and others that begin as many frames too early: they look alike by
chance, and as many skips do. So where nothing is missed next to nothing is found. The decision is
learned from these probabilities, beside what is annotated. Links from frame to frame cannot say
that an object was missed: annotations without any link over a gap say only that what has no link
at all is not part of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Bools, Float64s, Int64s
from trellis.errors import CorruptModelError
from trellis.files.stored import header_value, take
from trellis.solvers.logistic import fit_logistic
from trellis.tracking.features import EventFeature, event_features
from trellis.tracking.hypotheses import make_hypotheses
from trellis.tracking.movie import Movie, PairwiseSolution
from trellis.tracking.objects import EVENTS
from trellis.tracking.preconditioning import Preconditioner

__all__ = ["GapModel", "Gates", "Similarity", "Skips"]

_MOVES = ("move", "appear", "disappear")
_KNOTS = 3
_ENOUGH = 20  # runs of moves that say what one and the same object looks like
_PLENTY = 5_000  # likewise
_WIDER = (1.0, 4.0, 16.0)  # times the gate, until there are others to compare with
_SURE = 12.0  # log density ratios beyond it are not believed
_RUN = 6  # frames of a run that are counted
_LEAST_KAPPA = 0.1
_N_DECISION = 7  # features of the decision beside the constants


class Gates(Protocol):
    """Which objects may be one; a :class:`HypothesisSpace` says it of moves."""

    @property
    def n_neighbors(self) -> int:
        """Nearest objects considered."""
        ...

    @property
    def max_distance(self) -> float:
        """Farthest objects considered."""
        ...

    @property
    def features(self) -> Sequence[EventFeature]:
        """Features, those of moves among them."""
        ...


@dataclass(frozen=True, eq=False)
class Skips:
    """Objects that may be one, after so many missed frames.

    Parameters
    ----------
    missed : int64, shape (S,)
        Number of frames between.
    source, target : int64, shape (S,)
        Numbers of the objects in the movie.
    similarity : float64, shape (S,)
        Logarithm of the density ratio.
    """

    missed: Int64s
    source: Int64s
    target: Int64s
    similarity: Float64s

    def __len__(self) -> int:
        return len(self.missed)

    def take(self, rows: Int64s | Bools) -> Skips:
        """Return some of them."""
        return Skips(self.missed[rows], self.source[rows], self.target[rows], self.similarity[rows])

    @classmethod
    def joined(cls, parts: Sequence[Skips]) -> Skips:
        """Return all of several."""
        number = np.zeros(0, np.int64)
        return cls(
            np.concatenate([number, *(part.missed for part in parts)]),
            np.concatenate([number, *(part.source for part in parts)]),
            np.concatenate([number, *(part.target for part in parts)]),
            np.concatenate([np.zeros(0), *(part.similarity for part in parts)]),
        )


@dataclass(frozen=True, eq=False)
class Similarity:
    """How much two objects look as if they were one, after so many missed frames.

    Parameters
    ----------
    scale : Preconditioner
        Of the features of moves.
    weights : float64, shape (K + 1,)
        The constant is the last.
    """

    scale: Preconditioner
    weights: Float64s

    @classmethod
    def learned(cls, table: Float64s, same: Bools) -> Similarity:
        """Learn from the features of pairs of objects (n, K), and whether they are the same."""
        scale = Preconditioner.learn([_alone(table)], bias=True, events=("move",), knots=_KNOTS)
        columns = scale.transform(_alone(table))[0]
        precision = np.ones(columns.shape[1])
        precision[-1] = 1e-6
        weights = fit_logistic(columns, same, np.zeros(len(precision)), precision)
        weights[-1] -= np.log(same.sum() / (~same).sum())
        return cls(scale, weights)

    def of(self, table: Float64s) -> Float64s:
        """Log density ratio of each row."""
        return np.clip(self.scale.transform(_alone(table))[0] @ self.weights, -_SURE, _SURE)


@dataclass(frozen=True, eq=False)
class GapModel:
    """How probable it is that two objects are one that was missed between.

    Parameters
    ----------
    similarities : tuple of Similarity
        After 0, 1, 2, ... missed frames.
    weights : float64, shape (7 + len(similarities),)
        Of the decision, in units of scores: that of what is given up is -1, the constants are last.
    """

    similarities: tuple[Similarity, ...]
    weights: Float64s

    @property
    def most_missed(self) -> int:
        """Frames that an object may be missed for."""
        return len(self.similarities) - 1

    def limited(self, max_gap: int) -> GapModel:
        """Return the same, for so many missed frames at most."""
        fewer = max(0, self.most_missed - max_gap)
        n = len(self.similarities) - fewer
        return GapModel(self.similarities[:n], self.weights[: _N_DECISION + n])

    @classmethod
    def learned(
        cls, solutions: Sequence[PairwiseSolution], space: Gates, max_gap: int
    ) -> Self | None:
        """Learn from movies that are solved pair by pair; None if too few objects go on in them."""
        similarities = []
        for missed in range(max_gap + 1):
            known = _known_runs(solutions, space, missed)
            if known is None:
                break
            similarities.append(Similarity.learned(*known))
        if len(similarities) < 2:
            return None
        model = cls(tuple(similarities), np.zeros(0))
        gaps = any(
            pair.annotation is not None and pair.annotation.gaps
            for solution in solutions
            for pair in solution.movie.pairs
        )
        tables, right = [], []
        for solution in solutions:
            skips = model.skips(space, solution)
            if not solution.scored:  # what skips would have to give up is not known
                skips = skips.take(solution.loose(skips.source, skips.target))
            annotated, told = _annotated(solution.movie, skips, gaps=gaps)
            tables.append(_decision_features(solution, skips, len(similarities)))
            guessed = _guessed(solution, skips, model.decoys(space, solution))
            right.append(np.where(told, annotated, guessed))
        table = np.concatenate(tables)
        precision = np.full(table.shape[1], 0.01)
        weights = fit_logistic(table, np.concatenate(right), np.zeros(len(precision)), precision)
        return cls(model.similarities, weights / max(-weights[0], _LEAST_KAPPA))

    def skips(
        self,
        space: Gates,
        solution: PairwiseSolution,
        frames: Iterable[int] | None = None,
    ) -> Skips:
        """Find all skips within the gates, from these frames or from all.

        Those to the next frame are between objects that end and begin only.
        """
        parts = []
        for t in solution.movie.frames if frames is None else frames:
            for missed, similarity in enumerate(self.similarities):
                near = _near(solution.movie, t, t + 1 + missed, space)
                if near is None:
                    continue
                source, target, table = near
                number = np.full(len(source), missed)
                here = Skips(number, source, target, similarity.of(table))
                if not missed:
                    here = here.take(solution.loose(source, target))
                parts.append(here)
        return Skips.joined(parts)

    def decoys(self, space: Gates, solution: PairwiseSolution) -> Skips:
        """Find objects that end and begin, but begin as many frames too early: none can be one."""
        parts, run = [], solution.first_of_run()
        for t in solution.movie.frames:
            for missed, similarity in enumerate(self.similarities[1:], start=1):
                near = _near(solution.movie, t, t - 1 - missed, space)
                if near is None:
                    continue
                source, target, table = near
                apart = solution.loose(source, target) & (run[source] != target)
                number = np.full(len(source), missed)
                parts.append(Skips(number, source, target, similarity.of(table)).take(apart))
        return Skips.joined(parts)

    def stored(self) -> tuple[dict[str, Any], dict[str, Float64s]]:
        """Return what JSON can hold, and arrays, for a model file."""
        scales = [similarity.scale.as_dict() for similarity in self.similarities]
        similar = np.stack([similarity.weights for similarity in self.similarities])
        return {"scales": scales}, {"gap_similarity": similar, "gap_decision": self.weights}

    @classmethod
    def restored(
        cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], n_features: int
    ) -> Self:
        """Undo :meth:`stored`, checking everything; features of moves are so many."""
        stored = header_value(header, "scales", list, items=dict)
        scales = tuple(map(Preconditioner.from_dict, stored))
        shape = (_KNOTS, n_features)
        if len(scales) < 2 or any(s.knots[0].shape != shape or not s.bias[0] for s in scales):
            raise CorruptModelError("how alike objects are over gaps does not fit its features")
        width = n_features * _KNOTS + 1
        similar = take(arrays, "gap_similarity", np.float64, (len(scales), width))
        decision = take(arrays, "gap_decision", np.float64, (_N_DECISION + len(scales),))
        return cls(tuple(map(Similarity, scales, similar)), decision)

    def gains(self, solution: PairwiseSolution, skips: Skips) -> Float64s:
        """What each skip gains, beside a disappearance and an appearance."""
        table = _decision_features(solution, skips, len(self.similarities))
        gains: Float64s = table[:, 1:] @ self.weights[1:]
        return gains


# ------------------------------------------------------------------------------- what is measured


def _alone(table: Float64s) -> list[Float64s]:
    """Features of moves, as if there were no other events."""
    return [table, *[np.zeros((0, 0))] * (len(EVENTS) - 1)]


def _near(
    movie: Movie, t: int, other: int, space: Gates, wider: float = 1.0
) -> tuple[Int64s, Int64s, Float64s] | None:
    """Numbers of objects of two frames that are near, and the features of moves between them."""
    pair = movie.apart(t, other)
    if pair is None:
        return None
    near = make_hypotheses(
        pair, events=_MOVES, n_neighbors=space.n_neighbors,
        max_distance=wider * space.max_distance, annotated=False,
    )  # fmt: skip
    near = near.take(near.of("move"))
    # What is known of two objects together, such as overlap, is known of consecutive frames only.
    moves = [f for f in space.features if f.event == "move" and not f.relations]
    table = event_features(pair, near, moves)[0]
    return movie.first[t] + near.source[:, 0], movie.first[other] + near.target[:, 0], table


def _decision_features(solution: PairwiseSolution, skips: Skips, n_lengths: int) -> Float64s:
    """Features of the decision (S, 7 + n_lengths): what is given up first, the constants last."""
    before, after = (
        solution.seen_before(_RUN)[skips.source],
        solution.seen_after(_RUN)[skips.target],
    )
    lost = solution.worth_out[skips.source] + solution.worth_in[skips.target]
    flickers = (before == 1) & (after == 1)
    runs = [before == 1, after == 1, flickers, np.minimum(before, after), np.maximum(before, after)]
    shared = [lost, skips.similarity, *runs]
    lengths = [skips.missed == missed for missed in range(n_lengths)]
    return np.stack([*shared, *lengths], axis=1).astype(np.float64)


def _known_runs(
    solutions: Sequence[PairwiseSolution], space: Gates, missed: int
) -> tuple[Float64s, Bools] | None:
    """Features of objects beside those at the other end of their runs; None if there are few.

    Others have to be farther away where objects are sparse.
    """
    for wider in _WIDER:
        tables: list[Float64s] = []
        same: list[Bools] = [np.zeros(0, np.bool_)]
        for solution in solutions:
            end = solution.onward
            for _ in range(missed):
                end = np.where(end >= 0, solution.onward[end], -1)
            step = max(1, int((end >= 0).sum()) // _PLENTY)
            for t in list(solution.movie.frames)[::step]:
                near = _near(solution.movie, t, t + 1 + missed, space, wider)
                if near is None:
                    continue
                source, target, table = near
                known = end[source] >= 0
                tables.append(table[known])
                same.append(end[source[known]] == target[known])
        right: Bools = np.concatenate(same)
        if right.sum() < _ENOUGH:
            return None
        if (~right).sum() >= _ENOUGH:
            return np.concatenate(tables), right
    return None


# ------------------------------------------------------------------------------- what is known


def _annotated(movie: Movie, skips: Skips, *, gaps: bool) -> tuple[Float64s, Bools]:
    """Whether each skip is annotated as right, and whether the annotation says anything of it.

    Without any annotated gap (``gaps``) it may be that nobody could say so, as in links from frame
    to frame: then only skips from or to what is annotated as seen once are known to be wrong.
    """
    known, linked, until = _annotated_ends(movie)
    told = known[0][skips.source]
    if not gaps:
        once = known[1] & ~linked[1], known[0] & ~linked[0]
        told &= once[0][skips.source] | once[1][skips.target] | (skips.missed == 0)
    return (until[skips.source] == skips.target).astype(np.float64), told


def _annotated_ends(movie: Movie) -> tuple[tuple[Bools, Bools], tuple[Bools, Bools], Int64s]:
    """Objects whose fate and past are known, which of them have links, and where moves lead."""
    n = movie.n_objects
    known, linked = (tuple(np.zeros(n, np.bool_) for _ in range(2)) for _ in range(2))
    until = np.full(n, -1)
    row = {t: {i: r for r, i in enumerate(o.ids.tolist())} for t, o in movie.frames.items()}
    for pair in movie.pairs:
        note, here = pair.annotation, (pair.frame, pair.frame + 1)
        if note is None:
            continue
        first = [movie.first[t] for t in here]
        for end, ids in enumerate((note.known_sources, note.known_targets)):
            if ids is None:
                known[end][movie.numbers(here[end])] = True
            else:
                known[end][[first[end] + row[here[end]][i] for i in ids]] = True
        for i, k, kind in note.links:
            a, b = first[0] + row[here[0]][i], first[1] + row[here[1]][k]
            known[0][a] = known[1][b] = linked[0][a] = linked[1][b] = True
            if kind == "move":
                until[a] = b
        for i, k, frame in note.gaps:
            a = first[0] + row[here[0]][i]
            known[0][a] = linked[0][a] = True
            if k in row.get(frame, {}):
                until[a] = b = movie.first[frame] + row[frame][k]
                known[1][b] = linked[1][b] = True
    return (known[0], known[1]), (linked[0], linked[1]), until


def _guessed(solution: PairwiseSolution, skips: Skips, decoys: Skips) -> Float64s:
    """Probability of each skip between objects that end and begin, by how often there are any."""
    able, false = _able(solution, skips), _able(solution, decoys)
    last = solution.movie.numbers(max(solution.movie.frames))
    n_ends = int(solution.ends.sum()) - int(solution.ends[last].sum())
    p = np.zeros(len(skips))
    if not able.any():
        return p
    true, wrong = skips.take(able), decoys.take(false)
    n, crowd = solution.movie.n_objects, max(1.0, len(true) / n_ends)
    share = 0.3
    for _ in range(100):
        p[able] = _posterior(true, share / (1 - share) / crowd, n)
        found = p.sum() - _posterior(wrong, share / (1 - share) / crowd, n).sum()
        last_share, share = share, (max(found, 0.0) + 0.5) / (n_ends + 1)
        if abs(share - last_share) < 1e-6:
            break
    return p


def _able(solution: PairwiseSolution, skips: Skips) -> Bools:
    """Skips between objects that end and begin and were not both seen once."""
    before, after = solution.seen_before(2), solution.seen_after(2)
    loose = solution.loose(skips.source, skips.target) & (skips.missed > 0)
    return loose & ((before[skips.source] > 1) | (after[skips.target] > 1))


def _posterior(skips: Skips, odds: float, n: int) -> Float64s:
    """Probability of each of these skips, given the odds before anything is seen of them."""
    each = odds * np.exp(skips.similarity)
    rivals = np.bincount(skips.source, each, n)[skips.source]
    rivals += np.bincount(skips.target, each, n)[skips.target]
    likely: Float64s = each / (1 + rivals - each)
    return likely
