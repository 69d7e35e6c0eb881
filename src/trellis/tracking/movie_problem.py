r"""The assignment problem of a whole movie, solved in windows of frames.

Each object has a row for its fate and a row for its past. The hypotheses of a frame pair cover
fates of frame t and pasts of frame t + 1; a skip (:mod:`trellis.tracking.gap_model`) covers the
fate of an object and the past of one of a later frame. So without skips the pairs are problems of
their own, and with skips a movie is one problem,

.. math:: \max_y \sum_h s_h y_h \quad \text{s.t. each fate and each past is covered once.}

**Windows** bound the memory. A window of W pairs is solved together with some pairs behind it; what
is decided of the W pairs stays, and a skip that leads behind them has taken the past of its target
when the next window is solved.

**Bound.** Without its skips into later windows a window is a problem of its own. If each of them is
counted for its source alone, as if its target could still have another past, the maxima of the
windows add up to at least the maximum of the movie.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Bools, Float64s, Int64s
from trellis.structures.assignment import AssignmentSpace, best_assignment
from trellis.tracking.annotation import events_of, links_of
from trellis.tracking.gap_model import GapModel, Skips
from trellis.tracking.hypotheses import Hypotheses
from trellis.tracking.hypothesis_space import HypothesisSpace
from trellis.tracking.movie import Movie, PairwiseSolution
from trellis.tracking.objects import FramePair, Link
from trellis.tracking.result import TrackEvent

__all__ = ["MovieSolution", "ScoredPair", "pairwise_solution", "solve_movie"]

_NODES = 200  # of a search tree, for each component that is hard: seconds at most
_BEHIND = 8  # pairs behind a window that are solved with it


@dataclass(frozen=True, eq=False)
class ScoredPair:
    """A frame pair with its hypotheses and their scores."""

    pair: FramePair
    hypotheses: Hypotheses
    scores: Float64s

    @property
    def n_rows(self) -> int:
        """Fates and pasts."""
        return len(self.pair.source) + len(self.pair.target)


@dataclass(frozen=True, eq=False)
class MovieSolution:
    """Links and events of a movie; its score, and a bound that no tracking exceeds."""

    links: list[Link]
    events: list[TrackEvent]
    score: float
    bound: float


Score = Callable[[FramePair], ScoredPair]
"""Makes the hypotheses of a pair and scores them."""


def pairwise_solution(movie: Movie, score: Score, window: int) -> PairwiseSolution:
    """Solve each pair of a movie by itself."""
    solution = PairwiseSolution(movie)
    for first in range(0, len(movie.pairs), window):
        scored = [score(pair) for pair in movie.pairs[first : first + window]]
        _solve_pairs(scored, solution)
    return solution


def solve_movie(
    movie: Movie,
    score: Score,
    gaps: GapModel | None,
    space: HypothesisSpace,
    window: int,
    after: Callable[[int], object] = lambda n: None,
) -> MovieSolution:
    """Track a movie.

    Parameters
    ----------
    movie : Movie
        All its frames.
    score : callable
        Makes the hypotheses of a pair and scores them.
    gaps : GapModel or None
        What skips gain; None: there are none.
    space : HypothesisSpace
        Gates and features of skips.
    window : int
        Pairs that are decided at a time.
    after : callable
        Called after each window with the number of pairs that it has decided.
    """
    solution, n = PairwiseSolution(movie), len(movie.pairs)
    links: list[Link] = []
    events: list[TrackEvent] = []
    value, bound = 0.0, 0.0
    known: dict[int, tuple[ScoredPair, Bools, float, float]] = {}
    taken = np.zeros(movie.n_objects, bool)  # pasts that a skip of an earlier window has
    for first in range(0, n, window):
        last = min(first + window, n)
        end = last if gaps is None else min(last + _BEHIND + gaps.most_missed, n)
        new = [i for i in range(first, end) if i not in known]
        scored = [score(movie.pairs[i]) for i in new]
        known |= dict(zip(new, _solve_pairs(scored, solution), strict=True))
        here = [known.pop(i) if i < last else known[i] for i in range(first, end)]
        kept = here[: last - first]
        if gaps is None:
            value += sum(one[2] for one in kept)
            bound += sum(one[3] for one in kept)
            chosen, skips = [one[1] for one in kept], Skips.joined([])
        else:
            part = _Window(solution, [one[0] for one in here], last - first, gaps, space, taken)
            chosen, skips, score_here, bound_here = part.solved(alone=last == n and not first)
            value, bound = value + score_here, bound + bound_here
        for one, choice in zip(kept, chosen, strict=False):
            links += links_of(one[0].pair, one[0].hypotheses, choice)
            events += _events(one[0], choice, movie, taken)
        taken[skips.target] = True
        links += _links_over(movie, skips)
        after(last - first)
    links.sort(key=lambda link: (link.frame, link.frame_target))
    return MovieSolution(links, events, value, max(value, bound))


class _Window:
    """The assignment problem of some pairs, of which the first ``n_kept`` are decided."""

    def __init__(
        self,
        solution: PairwiseSolution,
        scored: list[ScoredPair],
        n_kept: int,
        gaps: GapModel,
        space: HypothesisSpace,
        taken: Bools,
    ) -> None:
        self.scored, self.n_kept, self.taken = scored, n_kept, taken
        self.movie = solution.movie
        frames = [one.pair.frame for one in scored]
        skips = gaps.skips(space, solution, frames)
        gains = gaps.gains(solution, skips)
        # The row of each object's fate and of its past, as far as they are in the window.
        fate, past = np.full(self.movie.n_objects, -1), np.full(self.movie.n_objects, -1)
        row = 0
        for one in scored:
            m, k = len(one.pair.source), len(one.pair.target)
            fate[self.movie.numbers(one.pair.frame)] = np.arange(row, row + m)
            past[self.movie.numbers(one.pair.frame + 1)] = np.arange(row + m, row + m + k)
            row += m + k
        self.row_offsets = np.cumsum([0, *(one.n_rows for one in scored)])
        use = (gains > 0) & (fate[skips.source] >= 0) & (past[skips.target] >= 0)
        use &= ~taken[skips.target]
        self.skips, self.gains = skips.take(use), gains[use]
        self.fate, self.past = fate[self.skips.source], past[self.skips.target]

    def solved(self, alone: bool) -> tuple[list[Bools], Skips, float, float]:
        """What is chosen of the pairs and of the skips that are kept; its score, and a bound."""
        covers, scores, fixed, ends = self._pairs(len(self.scored))
        single = np.zeros(self.row_offsets[-1])
        loose = covers[:, 1] < 0
        single[covers[loose, 0]] = scores[loose]
        none = np.full(len(self.fate), -1)
        both = np.stack([self.fate, self.past, none], axis=1)
        gained = self.gains + single[self.fate] + single[self.past]
        space = AssignmentSpace(
            np.concatenate([covers, both]).astype(np.int32),
            np.array([0, len(covers) + len(both)]),
            self.row_offsets[[0, -1]],
        )
        best = best_assignment(
            space, np.concatenate([scores, gained]), nodes=_NODES,
            fixed=np.concatenate([fixed, np.full(len(both), -1, np.int8)]),
        )  # fmt: skip
        chosen = np.split(best.chosen[: len(covers)], ends[1:-1])
        limit = self.row_offsets[self.n_kept]
        kept = best.chosen[len(covers) :] & (self.fate < limit)
        if alone:
            return chosen, self.skips.take(kept), float(best.values[0]), float(best.bounds[0])
        mine = best.chosen[: ends[self.n_kept]]
        value = float(
            scores[: len(mine)][mine].sum() + (self.gains + single[self.fate])[kept].sum()
        )
        value += float(single[self.past[kept & (self.past < limit)]].sum())
        return chosen, self.skips.take(kept), value, self._bound(single)

    def _bound(self, single: Float64s) -> float:
        """The maximum of the pairs that are kept; skips into later ones count for their sources."""
        covers, scores, *_ = self._pairs(self.n_kept)
        limit = self.row_offsets[self.n_kept]
        inside = (self.fate < limit) & (self.past < limit)
        beyond = (self.fate < limit) & (self.past >= limit)
        more = np.zeros(limit)
        np.maximum.at(more, self.fate[beyond], self.gains[beyond])
        scores = np.where(covers[:, 1] < 0, scores + more[covers[:, 0]], scores)
        both = np.stack([self.fate, self.past, np.full(len(self.fate), -1)], axis=1)[inside]
        gained = (self.gains + single[self.fate] + single[self.past])[inside]
        space = AssignmentSpace(
            np.concatenate([covers, both]).astype(np.int32),
            np.array([0, len(covers) + len(both)]),
            np.array([0, limit]),
        )
        best = best_assignment(space, np.concatenate([scores, gained]), nodes=_NODES)
        return float(best.bounds[0])

    def _pairs(self, n: int) -> tuple[Int64s, Float64s, NDArray[np.int8], Int64s]:
        """Covers, scores and fixed variables of the first n pairs, and where each ends."""
        covers, ends = [np.zeros((0, 3), np.int64)], [0]
        fixed = []
        for one, row in zip(self.scored[:n], self.row_offsets.tolist(), strict=False):
            here = one.hypotheses.covers(len(one.pair.source)).astype(np.int64)
            covers.append(np.where(here >= 0, here + row, -1))
            ends.append(ends[-1] + len(here))
            fixed.append(_appears_elsewhere(one, self.movie, self.taken))
        scores = np.concatenate([np.zeros(0), *(one.scores for one in self.scored[:n])])
        told = np.concatenate([np.zeros(0, np.int8), *fixed])
        return np.concatenate(covers), scores, told, np.array(ends)


def _solve_pairs(
    scored: list[ScoredPair], solution: PairwiseSolution
) -> list[tuple[ScoredPair, Bools, float, float]]:
    """Choose hypotheses of each pair by itself; with what they score, and a bound."""
    rows = np.cumsum([0, *(one.n_rows for one in scored)])
    ends = np.cumsum([0, *(len(one.hypotheses) for one in scored)])
    covers = [np.zeros((0, 3), np.int32)]
    for one, row in zip(scored, rows.tolist(), strict=False):
        here = one.hypotheses.covers(len(one.pair.source))
        covers.append(np.where(here >= 0, here + np.int32(row), here))
    space = AssignmentSpace(np.concatenate(covers).astype(np.int32), ends, rows)
    scores = np.concatenate([np.zeros(0), *(one.scores for one in scored)])
    best = best_assignment(space, scores, nodes=_NODES)
    chosen = np.split(best.chosen, ends[1:-1]) if scored else []
    for one, choice in zip(scored, chosen, strict=True):
        solution.record(one.pair, one.hypotheses, choice, one.scores)
    return list(zip(scored, chosen, best.values.tolist(), best.bounds.tolist(), strict=True))


def _appears_elsewhere(one: ScoredPair, movie: Movie, taken: Bools) -> NDArray[np.int8]:
    """Fixed variables (H,): targets whose past a skip has appear, for all that the pair knows."""
    fixed = np.full(len(one.hypotheses), -1, np.int8)
    gone = taken[movie.numbers(one.pair.frame + 1)]
    if gone.any():
        appears = np.flatnonzero(one.hypotheses.of("appear"))
        fixed[appears[gone[one.hypotheses.target[appears, 0]]]] = 1
    return fixed


def _events(one: ScoredPair, chosen: Bools, movie: Movie, taken: Bools) -> Iterator[TrackEvent]:
    pair = one.pair
    came, went = events_of(pair, one.hypotheses, chosen)
    missed = set(pair.target.ids[taken[movie.numbers(pair.frame + 1)]].tolist())
    for i in came.tolist():
        if i not in missed:
            yield TrackEvent(pair.sequence, pair.frame + 1, i, "appear")
    for i in went.tolist():
        yield TrackEvent(pair.sequence, pair.frame, i, "disappear")


def _links_over(movie: Movie, skips: Skips) -> list[Link]:
    """Skips as links."""
    frames = np.array(list(movie.frames))
    firsts = np.array([movie.first[t] for t in movie.frames])
    ends = []
    for number in (skips.source, skips.target):
        at = np.searchsorted(firsts, number, side="right") - 1
        places = zip(frames[at].tolist(), (number - firsts[at]).tolist(), strict=True)
        ends.append([(t, int(movie.frames[t].ids[row])) for t, row in places])
    return [Link(movie.sequence, t, i, k, "move", u) for (t, i), (u, k) in zip(*ends, strict=True)]
