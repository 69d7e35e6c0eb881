"""Movies, and what was found of them pair by pair, against going through them object by object."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.datasets import simulate_cells
from trellis.tracking import FlowTracker, FramePair, Objects, TrackingModel, patchify
from trellis.tracking.movie import PairwiseSolution, movies_of
from trellis.tracking.movie_problem import pairwise_solution

PAIRS = simulate_cells(12, 7, seed=3)


def objects(n: int) -> Objects:
    return Objects(np.arange(n), np.stack([np.arange(n), np.zeros(n)], axis=1))


def pairs_of(sizes: dict[int, int], sequence: str = "film") -> list[FramePair]:
    """Pairs of the frames that are there, with so many objects each."""
    frames = {t: objects(n) for t, n in sizes.items()}
    return [FramePair(sequence, t, frames[t], frames[t + 1]) for t in frames if t + 1 in frames]


def test_frames_and_numbers() -> None:
    (movie,) = movies_of(pairs_of({4: 2, 5: 0, 6: 3})[::-1]) or ()
    assert list(movie.frames) == [4, 5, 6] and movie.n_objects == 5
    assert [movie.numbers(t).tolist() for t in (4, 5, 6)] == [[0, 1], [], [2, 3, 4]]
    assert movie.names[2] == (6, 0) and movie.number_of[6, 2] == 4
    skip = movie.apart(4, 6)
    assert skip is not None and (len(skip.source), len(skip.target)) == (2, 3)
    assert movie.apart(5, 7) is None and movie.apart(3, 4) is None


def test_missing_frames_are_filled_if_they_are_few() -> None:
    pairs = pairs_of({0: 1, 1: 2, 4: 3, 5: 1})
    (apart,) = movies_of(pairs, fill=1) or ()
    assert [pair.frame for pair in apart.pairs] == [0, 4] and apart.apart(1, 4) is not None
    (whole,) = movies_of(pairs, fill=2) or ()
    assert [pair.frame for pair in whole.pairs] == [0, 1, 2, 3, 4]
    assert [len(whole.frames[t]) for t in range(6)] == [1, 2, 0, 0, 3, 1]
    assert whole.n_objects == apart.n_objects == 7


def test_patches_and_frames_that_disagree_are_no_movies() -> None:
    assert movies_of(patchify(PAIRS, objects=4)) is None
    first, second = pairs_of({0: 1, 1: 2, 2: 1})
    other = FramePair("film", 1, objects(3), second.target)
    assert movies_of([first, other]) is None
    assert len(movies_of([first, *pairs_of({0: 1, 1: 2}, "other")]) or ()) == 2


def test_an_excerpt_is_where_most_is_annotated() -> None:
    movie = (movies_of([*pairs_of(dict.fromkeys(range(20), 2))]) or [])[0]
    assert [pair.frame for pair in movie.excerpt(8).pairs] == [0, 1, 2, 3]
    assert movie.excerpt(10**6) is movie
    known = [pair.frame in (7, 8) for pair in movie.pairs]
    note = simulate_cells(1, 2, seed=0)[0].annotation
    marked = [
        FramePair("film", p.frame, p.source, p.target, note if k else None)
        for p, k in zip(movie.pairs, known, strict=True)
    ]
    frames = [pair.frame for pair in (movies_of(marked) or [])[0].excerpt(8).pairs]
    assert {7, 8} <= set(frames) and len(frames) == 4


def test_a_solution_of_hypotheses_is_that_of_its_links() -> None:
    model = TrackingModel(max_gap=0).fit(PAIRS)
    (movie,) = movies_of(PAIRS) or ()
    found = pairwise_solution(movie, model._scored, 2)
    told = PairwiseSolution.of_links(movie, model.predict(PAIRS).links)
    for name in ("onward", "past", "ends", "begins"):
        np.testing.assert_array_equal(getattr(found, name), getattr(told, name))
    assert ((found.worth_out > 0) <= ~found.ends).all()
    assert (found.worth_in[found.past >= 0] == found.worth_out[found.past[found.past >= 0]]).all()


@given(st.integers(0, 10_000), st.integers(2, 6))
def test_how_often_objects_were_seen(seed: int, most: int) -> None:
    pairs = simulate_cells(8, 7, seed=seed)
    (movie,) = movies_of(pairs) or ()
    solution = PairwiseSolution.of_links(movie, FlowTracker(12.0).predict(pairs).links)

    def seen(beside: np.ndarray, loose: np.ndarray, k: int) -> int:
        if beside[k] < 0 and not loose[k]:
            return most  # another event
        n = 1
        while beside[k] >= 0 and n < most:
            k, n = beside[k], n + 1
        return n

    for found, beside, loose in (
        (solution.seen_before(most), solution.past, solution.begins),
        (solution.seen_after(most), solution.onward, solution.ends),
    ):
        assert found.tolist() == [seen(beside, loose, k) for k in range(movie.n_objects)]


@pytest.mark.parametrize("gap", [0, 1])
def test_links_over_gaps_are_no_part_of_a_solution_of_pairs(gap: int) -> None:
    (movie,) = movies_of(pairs_of({0: 1, 1: 1, 2: 1})) or ()
    links = [("film", 0, 0, 0, "move", 1 + gap)]
    from trellis.tracking.objects import checked_links

    solution = PairwiseSolution.of_links(movie, checked_links(links))
    assert (solution.onward >= 0).sum() == (gap == 0)
