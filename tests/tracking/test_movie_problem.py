"""Whole movies, solved in windows, against listing every tracking of them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from trellis.tracking import FramePair, Objects, assemble_tracks
from trellis.tracking.gap_model import Skips
from trellis.tracking.hypotheses import make_hypotheses
from trellis.tracking.movie import Movie, movies_of
from trellis.tracking.movie_problem import MovieProblem, ScoredPair


class Gaps:
    """Skips between all objects of a movie, with random gains."""

    def __init__(self, movie: Movie, most_missed: int, rng: np.random.Generator) -> None:
        self.most_missed = most_missed
        rows = [
            (missed, i, k)
            for t in movie.frames
            for missed in range(1, most_missed + 1)
            if t + 1 + missed in movie.frames
            for i in movie.numbers(t).tolist()
            for k in movie.numbers(t + 1 + missed).tolist()
        ]
        table = np.array(rows, np.int64).reshape(-1, 3)
        self.every = Skips(*table.T, rng.normal(0.5, 2.0, len(table)))
        self.frame = {k: t for t in movie.frames for k in movie.numbers(t).tolist()}

    def skips(self, space: Any, solution: Any, frames: Any) -> Skips:
        known = set(frames)
        return self.every.take(np.array([self.frame[i] in known for i in self.every.source], bool))

    def gains(self, solution: Any, skips: Skips) -> NDArray[np.float64]:
        return skips.similarity


def problem(seed: int, sizes: list[int], most_missed: int) -> MovieProblem:
    rng = np.random.default_rng(seed)
    frames = [Objects(10 + np.arange(n), rng.uniform(0, 9, (n, 2))) for n in sizes]
    pairs = [FramePair("film", t, a, b) for t, (a, b) in enumerate(pairwise(frames))]
    (movie,) = movies_of(pairs) or ()
    scored: dict[int, ScoredPair] = {}

    def score(pair: FramePair) -> ScoredPair:
        if pair.frame not in scored:
            h = make_hypotheses(pair, n_neighbors=2, max_distance=99.0)
            scored[pair.frame] = ScoredPair(
                pair, h, np.random.default_rng([seed, pair.frame]).normal(size=len(h))
            )
        return scored[pair.frame]

    gaps = Gaps(movie, most_missed, rng) if most_missed else None
    return MovieProblem(movie, score, None, gaps)  # type: ignore[arg-type]  # stand-ins


def every_tracking(p: MovieProblem) -> list[tuple[float, frozenset[tuple[int, int]]]]:
    """Score and links, by numbers of their ends, of all trackings of a movie."""
    options: list[tuple[frozenset[tuple[str, int]], float, frozenset[tuple[int, int]]]] = []
    alone: dict[tuple[str, int], float] = {}
    for pair in p.movie.pairs:
        one, first = p.score(pair), [p.movie.first[pair.frame + end] for end in (0, 1)]
        for h in range(len(one.hypotheses)):
            source = [first[0] + r for r in one.hypotheses.source[h].tolist() if r >= 0]
            target = [first[1] + r for r in one.hypotheses.target[h].tolist() if r >= 0]
            rows = frozenset([*(("fate", i) for i in source), *(("past", k) for k in target)])
            links = frozenset((i, k) for i in source for k in target)
            options.append((rows, float(one.scores[h]), links))
            if len(rows) == 1:
                alone[next(iter(rows))] = float(one.scores[h])
    if p.gaps is not None:
        s = p.gaps.skips(None, None, list(p.movie.frames))  # type: ignore[arg-type]
        for i, k, gain in zip(s.source.tolist(), s.target.tolist(), s.similarity, strict=True):
            rows = frozenset([("fate", i), ("past", k)])
            if rows <= set(alone):
                worth = float(gain) + sum(alone[row] for row in rows)
                options.append((rows, worth, frozenset([(i, k)])))
    found: list[tuple[float, frozenset[tuple[int, int]]]] = []

    def complete(left: frozenset[tuple[str, int]], score: float, links: Any) -> None:
        if not left:
            found.append((score, links))
            return
        row = min(left)
        for rows, worth, more in options:
            if row in rows and rows <= left:
                complete(left - rows, score + worth, links | more)

    complete(frozenset(alone), 0.0, frozenset())
    return found


def solved(p: MovieProblem, window: int, temperature: float | None = None) -> Any:
    parts = list(p.solved(window, temperature))
    links = [link for part in parts for link in part.links]
    assert sum(part.n_pairs for part in parts) == len(p.movie.pairs)
    ends = frozenset(
        (p.movie.number_of[link.frame, link.source_id],
         p.movie.number_of[link.frame_target, link.target_id])
        for link in links
    )  # fmt: skip
    assert len(ends) == len(links)
    chances = [chance for part in parts for chance in part.chances]
    return ends, sum(x.score for x in parts), sum(x.bound for x in parts), parts, links, chances


sizes = st.lists(st.integers(0, 2), min_size=2, max_size=4)


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), sizes, st.integers(0, 2))
def test_one_window_has_the_best_tracking(seed: int, sizes: list[int], missed: int) -> None:
    p = problem(seed, sizes, missed)
    best, links = max(every_tracking(p), key=lambda one: one[0])
    ends, score, bound, *_ = solved(p, 50)
    assert score == pytest.approx(best) and bound == pytest.approx(best)
    assert ends == links


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), sizes, st.integers(0, 2), st.integers(1, 2))
def test_windows_have_a_tracking_and_a_bound(
    seed: int, sizes: list[int], missed: int, window: int
) -> None:
    p = problem(seed, sizes, missed)
    known = {links: score for score, links in sorted(every_tracking(p), key=lambda one: one[0])}
    best = max(known.values())
    ends, score, bound, parts, links, _ = solved(p, window)
    assert ends in known and score <= known[ends] + 1e-9  # of two events with these links the best
    assert score <= best + 1e-9 <= bound + 2e-9
    # What has no link appeared or disappeared, once.
    told = [event for part in parts for event in part.events]
    assert len(set(told)) == len(told)
    fates = {i for i, _ in ends}
    n_last = p.movie.numbers(max(p.movie.frames))
    gone = {p.movie.number_of[e.frame, e.id] for e in told if e.kind == "disappear"}
    assert gone == set(range(p.movie.n_objects)) - fates - set(n_last.tolist())
    new = {p.movie.number_of[e.frame, e.id] for e in told if e.kind == "appear"}
    first = set(p.movie.numbers(min(p.movie.frames)).tolist())
    assert new == set(range(p.movie.n_objects)) - {k for _, k in ends} - first
    assemble_tracks(p.movie.pairs, links)


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), sizes, st.integers(0, 2), st.sampled_from([0.5, 2.0]))
def test_probabilities_count_all_trackings(
    seed: int, sizes: list[int], missed: int, temperature: float
) -> None:
    """Skips without a gain are left out."""
    p = problem(seed, sizes, missed)
    if p.gaps is not None:
        p.gaps.every = p.gaps.every.take(p.gaps.every.similarity > 0)  # type: ignore[attr-defined]
    every = every_tracking(p)
    weight = np.exp((np.array([score for score, _ in every]) - max(every)[0]) / temperature)
    _, _, _, _, links, chances = solved(p, 50, temperature)
    assert len(links) == len(chances)
    for link, chance in zip(links, chances, strict=True):
        ends = (p.movie.number_of[link.frame, link.source_id],
                p.movie.number_of[link.frame_target, link.target_id])  # fmt: skip
        share = sum(w for w, (_, found) in zip(weight, every, strict=True) if ends in found)
        assert chance.probability == pytest.approx(share / weight.sum(), abs=1e-5)


def test_a_skip_into_the_next_window_has_taken_the_past_of_its_target() -> None:
    """Alone at first and last; the window ends between."""
    p = problem(0, [1, 0, 1, 1], 1)
    assert p.gaps is not None
    p.gaps.every.similarity[:] = 100.0  # type: ignore[attr-defined]
    assert p.gaps.every.similarity.flags.writeable  # type: ignore[attr-defined]
    for window in (1, 2, 3):
        q = problem(0, [1, 0, 1, 1], 1)
        q.gaps = p.gaps
        ends, score, bound, parts, *_ = solved(q, window)
        assert (0, 1) in ends
        kinds = [(e.frame, e.kind) for part in parts for e in part.events]
        assert (0, "disappear") not in kinds and (2, "appear") not in kinds
        assert score == pytest.approx(bound) or window < 3
