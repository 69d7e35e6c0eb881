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
from trellis.tracking.gap_model import GapModel, Gates, Skips
from trellis.tracking.hypotheses import Hypotheses
from trellis.tracking.link_chances import LinkChance
from trellis.tracking.link_probabilities import (
    chances_of_links,
    hypothesis_probabilities,
    linked_objects,
)
from trellis.tracking.movie import Movie, PairwiseSolution
from trellis.tracking.objects import FramePair, Link
from trellis.tracking.result import TrackEvent

__all__ = ["MovieProblem", "MovieSolution", "ScoredPair", "pairwise_solution"]

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
    """Links and events of some pairs of a movie.

    Parameters
    ----------
    n_pairs : int
        How many pairs.
    links : list of Link
        From their first frames.
    events : list of TrackEvent
        Objects that appeared or disappeared.
    chances : list of LinkChance
        Of each link, or empty.
    score, bound : float
        What was chosen scores; no choice scores more than the bound.
    """

    n_pairs: int
    links: list[Link]
    events: list[TrackEvent]
    chances: list[LinkChance]
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


class MovieProblem:
    """A movie to be tracked.

    Parameters
    ----------
    movie : Movie
        All its frames.
    score : callable
        Makes the hypotheses of a pair and scores them.
    space : Gates
        Gates and features of skips.
    gaps : GapModel or None
        What skips gain; None: there are none.
    """

    def __init__(self, movie: Movie, score: Score, space: Gates, gaps: GapModel | None) -> None:
        self.movie, self.score, self.space, self.gaps = movie, score, space, gaps
        self.solution = PairwiseSolution(movie)
        self.taken = np.zeros(movie.n_objects, bool)  # pasts that a skip of an earlier window has

    def solved(self, window: int, temperature: float | None = None) -> Iterator[MovieSolution]:
        """Solve window after window; with a temperature links have probabilities."""
        n = len(self.movie.pairs)
        behind = 0 if self.gaps is None else _BEHIND + self.gaps.most_missed
        known: dict[int, _Solved] = {}
        for first in range(0, n, window):
            last, end = min(first + window, n), min(first + window + behind, n)
            new = [i for i in range(first, end) if i not in known]
            scored = [self.score(self.movie.pairs[i]) for i in new]
            known |= dict(zip(new, _solve_pairs(scored, self.solution), strict=True))
            here = [known.pop(i) if i < last else known[i] for i in range(first, end)]
            kept = here[: last - first]
            if self.gaps is None and temperature is None:
                chosen, skips, chances = [one.chosen for one in kept], Skips.joined([]), []
                score, bound = sum(one.score for one in kept), sum(one.bound for one in kept)
            else:
                part = _Window(self, [one.scored for one in here], last - first)
                chosen, skips = part.chosen, part.kept
                score, bound = part.score_and_bound(alone=first == 0 and last == n)
                chances = part.chances(temperature) if temperature is not None else []
            links = [
                link
                for one, choice in zip(kept, chosen, strict=False)
                for link in links_of(one.scored.pair, one.scored.hypotheses, choice)
            ]
            events = [
                event
                for one, choice in zip(kept, chosen, strict=False)
                for event in _events(one.scored, choice, self.movie, self.taken)
            ]
            self.taken[skips.target] = True
            links += self.movie.links_over(skips.source, skips.target)
            order = sorted(range(len(links)), key=lambda i: links[i].frame)
            yield MovieSolution(
                last - first, [links[i] for i in order], events,
                [chances[i] for i in order] if temperature is not None else [], score, bound,
            )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Solved:
    """What was chosen of a pair by itself, its score, and a bound."""

    scored: ScoredPair
    chosen: Bools
    score: float
    bound: float


class _Window:
    """The assignment problem of some pairs, of which the first ``n_kept`` are decided.

    Attributes
    ----------
    chosen : list of bool, shape (H,)
        What is chosen of each pair.
    kept : Skips
        The skips that are chosen, from the pairs that are decided.
    """

    def __init__(self, problem: MovieProblem, scored: list[ScoredPair], n_kept: int) -> None:
        self.scored, self.n_kept, self.movie = scored, n_kept, problem.movie
        self.taken = problem.taken.copy()
        self.row_offsets = np.cumsum([0, *(one.n_rows for one in scored)])
        # The row of each object's fate and of its past, as far as they are in the window.
        fate, past = np.full(self.movie.n_objects, -1), np.full(self.movie.n_objects, -1)
        for one, row in zip(scored, self.row_offsets.tolist(), strict=False):
            m = row + len(one.pair.source)
            fate[self.movie.numbers(one.pair.frame)] = np.arange(row, m)
            past[self.movie.numbers(one.pair.frame + 1)] = np.arange(m, row + one.n_rows)
        skips, gains = Skips.joined([]), np.zeros(0)
        if problem.gaps is not None:
            frames = [one.pair.frame for one in scored]
            skips = problem.gaps.skips(problem.space, problem.solution, frames)
            gains = problem.gaps.gains(problem.solution, skips)
        use = (gains > 0) & (fate[skips.source] >= 0) & (past[skips.target] >= 0)
        use &= ~self.taken[skips.target]
        self.skips, self.gains = skips.take(use), gains[use]
        self.fate, self.past = fate[self.skips.source], past[self.skips.target]
        self._solve()

    def _solve(self) -> None:
        covers, scores, fixed, ends = self._pairs(len(self.scored))
        self.alone = np.zeros(self.row_offsets[-1])
        loose = covers[:, 1] < 0
        self.alone[covers[loose, 0]] = scores[loose]
        self.space = self._with_skips(covers, np.ones(len(self.skips), bool))
        self.scores = np.concatenate([scores, self.gains + self._both_alone])
        self.fixed = np.concatenate([fixed, np.full(len(self.skips), -1, np.int8)])
        self.best = best_assignment(self.space, self.scores, nodes=_NODES, fixed=self.fixed)
        self.n_pair_hypotheses = len(covers)
        self.chosen = np.split(self.best.chosen[: len(covers)], ends[1:-1])
        self.limit = self.row_offsets[self.n_kept]
        self.is_kept = self.best.chosen[len(covers) :] & (self.fate < self.limit)
        self.kept = self.skips.take(self.is_kept)
        self.end = ends[self.n_kept]

    @property
    def _both_alone(self) -> Float64s:
        """What source and target of each skip score without it."""
        score: Float64s = self.alone[self.fate] + self.alone[self.past]
        return score

    def _with_skips(self, covers: Int64s, which: Bools) -> AssignmentSpace:
        """The problem of the pairs with these covers, and of these skips."""
        none = np.full(len(self.fate), -1)
        both = np.stack([self.fate, self.past, none], axis=1)[which]
        every = np.concatenate([covers, both]).astype(np.int32)
        n_rows = covers.max(initial=-1) + 1
        return AssignmentSpace(every, np.array([0, len(every)]), np.array([0, n_rows]))

    def score_and_bound(self, alone: bool) -> tuple[float, float]:
        """What is kept scores, and a bound; ``alone`` if the window is the whole movie."""
        if alone:
            return float(self.best.values[0]), float(self.best.bounds[0])
        mine = np.flatnonzero(self.best.chosen[: self.end])
        score = float(self.scores[mine].sum())
        score += float((self.gains + self.alone[self.fate])[self.is_kept].sum())
        inside = self.is_kept & (self.past < self.limit)
        return score + float(self.alone[self.past[inside]].sum()), self._bound()

    def _bound(self) -> float:
        """The maximum of the pairs that are kept; skips into later ones count for their sources."""
        covers, scores, *_ = self._pairs(self.n_kept)
        inside = (self.fate < self.limit) & (self.past < self.limit)
        beyond = (self.fate < self.limit) & (self.past >= self.limit)
        more = np.zeros(self.limit)
        np.maximum.at(more, self.fate[beyond], self.gains[beyond])
        scores = np.where(covers[:, 1] < 0, scores + more[covers[:, 0]], scores)
        gained = (self.gains + self._both_alone)[inside]
        space = self._with_skips(covers, inside)
        best = best_assignment(space, np.concatenate([scores, gained]), nodes=_NODES)
        return float(best.bounds[0])

    def chances(self, temperature: float) -> list[LinkChance]:
        """How probable the links are that are kept: those of the pairs, then the skips."""
        shares = hypothesis_probabilities(self.space, self.scores, temperature, self.fixed)
        number = np.cumsum([0, *(len(one.hypotheses) for one in self.scored)]).tolist()
        hypothesis, source, target = [self.n_pair_hypotheses + np.arange(len(self.skips))], [], []
        for one, before in zip(self.scored, number, strict=False):
            rows, i, j = linked_objects(one.hypotheses)
            hypothesis.append(before + rows)
            source.append(self.movie.first[one.pair.frame] + i)
            target.append(self.movie.first[one.pair.frame + 1] + j)
        found = chances_of_links(
            np.concatenate(hypothesis), np.concatenate([self.skips.source, *source]),
            np.concatenate([self.skips.target, *target]), shares, self.best.chosen,
            self.movie.names,
        )  # fmt: skip
        row = self.movie.number_of
        wanted = [
            (row[link.frame, link.source_id], row[link.frame_target, link.target_id])
            for one, choice in zip(self.scored[: self.n_kept], self.chosen, strict=False)
            for link in links_of(one.pair, one.hypotheses, choice)
        ]
        wanted += list(zip(self.kept.source.tolist(), self.kept.target.tolist(), strict=True))
        return [found[ends] for ends in wanted]

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


def _solve_pairs(scored: list[ScoredPair], solution: PairwiseSolution) -> list[_Solved]:
    """Choose hypotheses of each pair by itself."""
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
    return list(map(_Solved, scored, chosen, best.values.tolist(), best.bounds.tolist()))


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
