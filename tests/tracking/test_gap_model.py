"""Gaps: what is learned of objects that were missed, and that it finds them again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from trellis import load_model
from trellis.datasets import LABS, simulate_cells
from trellis.errors import CorruptModelError
from trellis.tracking import (
    FlowTracker,
    FramePair,
    Link,
    PairAnnotation,
    TrackingModel,
    annotated_events,
    score_links,
)
from trellis.tracking.gap_model import GapModel, Similarity, Skips, _annotated, _guessed
from trellis.tracking.movie import PairwiseSolution, movies_of
from trellis.tracking.movie_problem import pairwise_solution

LAB = replace(LABS["a"], name="film", over_segmentation=0.0, under_segmentation=0.0)


def missing(pairs: list[FramePair], share: float, seed: int) -> list[FramePair]:
    """Leave some objects out; moves over one of them become gaps, if it is one that is missed."""
    rng = np.random.default_rng(seed)
    frames = {p.frame: p.source for p in pairs} | {p.frame + 1: p.target for p in pairs}
    here = {t: o.take(np.flatnonzero(rng.random(len(o)) >= share)) for t, o in frames.items()}
    ids = {t: set(o.ids.tolist()) for t, o in here.items()}
    move = {
        (p.frame, a): b
        for p in pairs
        for a, b, kind in (p.annotation or PairAnnotation()).links
        if kind == "move"
    }
    left = []
    for pair in pairs:
        t, note = pair.frame, pair.annotation
        assert note is not None
        both = [x for x in note.links if x[0] in ids[t] and x[1] in ids[t + 1]]
        twice = {x[0] for x in both if sum(y[0] == x[0] for y in both) == 2}
        links = tuple((a, b, kind if a in twice else "move") for a, b, kind in both)
        gaps = []
        for a in sorted(ids[t] - {x[0] for x in both}):
            b = move.get((t, a))
            c = None if b is None else move.get((t + 1, b))
            if c is not None and c in ids[t + 2]:
                gaps.append((a, c, t + 2))
        known = PairAnnotation(links, gaps=tuple(gaps))
        left.append(replace(pair, source=here[t], target=here[t + 1], annotation=known))
    return left


def bare(pairs: list[FramePair]) -> list[FramePair]:
    return [replace(pair, annotation=None) for pair in pairs]


MOVIE = missing(simulate_cells(60, 16, lab=LAB, seed=1), 0.08, 0)
TRAIN, TEST = MOVIE[:8], MOVIE[8:]


def found(links: list[Link], pairs: list[FramePair]) -> tuple[float, float]:
    """Precision and recall of links over gaps."""
    true = {link.ends for link in annotated_events(pairs)[0] if link.gap}
    made = {link.ends for link in links if link.gap}
    return len(true & made) / max(len(made), 1), len(true & made) / len(true)


@pytest.mark.parametrize("how", ["annotated", "alone", "frame to frame"])
def test_what_was_missed_is_found_again(how: str) -> None:
    train = {
        "annotated": TRAIN,
        "alone": bare(TEST),
        "frame to frame": [
            replace(pair, annotation=replace(pair.annotation, gaps=())) for pair in TRAIN
            if pair.annotation
        ],
    }[how]  # fmt: skip
    model = TrackingModel().fit(train)
    with_gaps = model.predict(bare(TEST)).links
    without = model.set_params(max_gap=0).predict(bare(TEST)).links
    assert not any(link.gap for link in without)
    precision, recall = found(with_gaps, TEST)
    assert precision > 0.8 and recall > (0.8 if how == "annotated" else 0.6)
    truth = annotated_events(TEST)[0]
    assert score_links(truth, with_gaps).links.f1 > score_links(truth, without).links.f1 + 0.01


def test_where_nothing_is_missed_next_to_nothing_is_found() -> None:
    whole = simulate_cells(60, 12, lab=LAB, seed=5)
    for train in (whole[:6], bare(whole)):
        made = TrackingModel().fit(train).predict(bare(whole[6:])).links
        assert sum(link.gap > 0 for link in made) <= 0.01 * len(made)


def test_a_model_and_its_file_find_the_same(tmp_path: Any) -> None:
    model = TrackingModel().fit(TRAIN)
    assert model.gap_model_ is not None and model.gap_model_.most_missed == 2
    model.save(tmp_path / "m.trellis")
    again = load_model(tmp_path / "m.trellis")
    assert again.predict(TEST) == model.predict(TEST)
    header, arrays = model.gap_model_.stored()
    n = len([f for f in model.hypothesis_space_.features if f.event == "move"])
    with pytest.raises(CorruptModelError, match="does not fit its features"):
        GapModel.restored(header, arrays, n + 1)
    with pytest.raises(CorruptModelError, match="does not fit its features"):
        GapModel.restored({"scales": header["scales"][:1]}, arrays, n)


def test_a_model_that_knows_nothing_of_gaps_asks_the_movie() -> None:
    model = TrackingModel().fit(TRAIN)
    model.gap_model_ = None
    precision, recall = found(model.predict(bare(TEST)).links, TEST)
    assert precision > 0.8 and recall > 0.7


def test_fitting_that_is_cut_off_keeps_no_old_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    """They belong to features that may be others now."""
    model = TrackingModel().fit(TRAIN)

    def interrupted(*given: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(TrackingModel, "_gaps_of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(TRAIN[:4])
    assert model.gap_model_ is None
    monkeypatch.undo()
    assert model.predict(bare(TEST)).links


def test_too_short_a_movie_has_no_gaps() -> None:
    model = TrackingModel().fit(TRAIN[:1])
    assert model.gap_model_ is None
    assert not any(link.gap for link in model.predict(TEST[:1]).links)


def test_similarity_is_the_log_of_the_density_ratio() -> None:
    """Of two normal distributions it is a line."""
    rng = np.random.default_rng(0)
    same = np.arange(40_000) % 4 == 0
    x = np.where(same, rng.normal(0, 1, len(same)), rng.normal(1, 1, len(same)))
    learned = Similarity.learned(x[:, None], same)
    at = np.array([-0.5, 0.0, 0.5, 1.0, 1.5])
    np.testing.assert_allclose(learned.of(at[:, None]), 0.5 - at, atol=0.1)


def solution_of(links: list[Link]) -> tuple[PairwiseSolution, list[FramePair]]:
    """Four cells in five frames, at ids 0 to 3."""
    cells = simulate_cells(20, 2, lab=LAB, seed=3)[0].source.take(np.arange(4))
    pairs = [FramePair("film", t, cells, cells) for t in range(4)]
    (movie,) = movies_of(pairs) or ()
    return PairwiseSolution.of_links(movie, links), pairs


def test_what_annotations_say_of_skips() -> None:
    moves = [Link("film", t, 0, 0, "move") for t in (0, 2)]
    _, pairs = solution_of(moves)
    skip = Skips(
        *np.array([[1, 1], [4, 6], [12, 14]]), np.zeros(2)
    )  # 0 and 2 of frame 1 to frame 3

    def said(notes: dict[int, PairAnnotation], *, gaps: bool) -> list[tuple[float, bool]]:
        marked = [replace(p, annotation=notes.get(p.frame)) for p in pairs]
        (movie,) = movies_of(marked) or ()
        right, told = _annotated(movie, skip, gaps=gaps)
        return list(zip(right.tolist(), told.tolist(), strict=True))

    gap = {1: PairAnnotation(gaps=((0, 0, 3),))}
    assert said(gap, gaps=True) == [(1.0, True), (0.0, True)]
    assert said({1: PairAnnotation((), (0,), ())}, gaps=True) == [(0.0, True), (0.0, False)]
    # Links from frame to frame: what was seen before and is seen again may have been missed.
    near = {t: PairAnnotation(((0, 0, "move"),)) for t in (0, 3)} | {1: PairAnnotation()}
    assert said(near, gaps=False) == [(0.0, False), (0.0, True)]
    assert said({}, gaps=False) == [(0.0, False), (0.0, False)]


def test_guesses_are_of_what_ends_and_begins_and_does_not_flicker() -> None:
    links = [Link("film", t, 0, 0, "move") for t in (0, 3)]
    solution, _ = solution_of(links)
    # From frame 1 to 3: the cell 0, whose track ends and begins; cell 1, seen once each time; the
    # wrong cell; and to the next frame.
    skips = Skips(
        np.array([1, 1, 1, 0]), np.array([4, 5, 4, 4]), np.array([12, 13, 13, 8]),
        np.array([8.0, 8.0, -8.0, 8.0]),
    )  # fmt: skip
    p = _guessed(solution, skips, skips.take(np.zeros(4, bool)))
    assert p[0] > 0.9 and p[1] == 0 and p[2] < 0.1 and p[3] == 0
    # As many decoys that look as much alike say that it is chance.
    assert _guessed(solution, skips, skips.take(np.array([0])))[0] < p[0]


def test_decoys_end_before_they_begin() -> None:
    model = TrackingModel().fit(bare(MOVIE))
    assert model.gap_model_ is not None
    (movie,) = movies_of(bare(MOVIE)) or ()
    solution = pairwise_solution(movie, model._scored, 50)
    decoys = model.gap_model_.decoys(model.hypothesis_space_, solution)
    frame = {k: t for t in movie.frames for k in movie.numbers(t).tolist()}
    assert len(decoys)
    for missed, i, k in zip(decoys.missed, decoys.source, decoys.target, strict=True):
        assert frame[k] == frame[i] - 1 - missed
        assert solution.ends[i] and solution.begins[k]
        while solution.past[i] >= 0:
            i = solution.past[i]  # the run back to its first
        assert i != k


def test_other_trackers_have_solutions_too() -> None:
    (movie,) = movies_of(bare(TEST)) or ()
    links = FlowTracker().fit(bare(TEST)).predict(bare(TEST)).links
    space = TrackingModel(max_gap=0).fit(bare(TEST)).hypothesis_space_
    learned = GapModel.learned([PairwiseSolution.of_links(movie, links)], space, 1)
    assert learned is not None and learned.most_missed == 1
