"""Guesses at a learning problem: how much they count, and when others know better."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from trellis.datasets import Lab, simulate_cells
from trellis.tracking import EVENTS, FramePair, Objects, PairAnnotation, TrackingModel, event_kinds
from trellis.tracking.guesses import Guesses

KINDS = EVENTS[:4]
LAB = Lab(over_segmentation=0.0, under_segmentation=0.0, cycle=16.0)  # no splits and merges
MOVIE = simulate_cells(60, 6, lab=LAB, seed=1)


def bare(pairs):
    return [replace(pair, annotation=None) for pair in pairs]


# ---------------------------------------------------------------------- weight of guesses


def test_guesses_count_less_beside_what_is_annotated_elsewhere():
    problem = TrackingModel(KINDS).learning_problems({"": bare(MOVIE)})[""]
    n = Guesses.of(problem).n_objects
    assert n == sum(len(pair.source) for pair in MOVIE)
    assert Guesses.of(problem).weight == 1.0
    assert Guesses.of(problem, 16_000).weight == pytest.approx(800**2 / (4_000 * n))
    assert Guesses.of(problem, 10**9) is None
    whole = TrackingModel(KINDS).learning_problems({"": MOVIE})[""]
    assert Guesses.of(whole) is None


def test_losses_have_the_weights_of_what_they_are_of():
    problem = TrackingModel(KINDS).learning_problems({"": [*MOVIE[:2], *bare(MOVIE[2:4])]})[""]
    guesses = replace(Guesses.of(problem), weight=0.25)
    assert guesses.samples.tolist() == [2, 3]
    w = np.random.default_rng(0).normal(size=problem.n_weights)
    for objective in (guesses.by_flow("bridge"), guesses.by_model(w, "bridge")):
        done = objective.problem
        assert done.n_samples == 4 and done.complete.all()
        best, known = (
            done.maxima(w, space, loss=space == "all") for space in ("all", "compatible")
        )
        each = best.values - known.values
        assert objective.value(w) == pytest.approx(each[:2].sum() + 0.25 * each[2:].sum())


# ---------------------------------------------------------------------- what flow cannot say


def often(n, *, splits=0, merges=0):
    """A frame pair of n objects with so many splits and merges."""
    ids = np.arange(n)
    frame = Objects(ids, np.zeros((n, 2)))
    links = [(i, 2 * i + k, "split") for i in range(splits) for k in (0, 1)]
    links += [(n - 1 - 2 * i - k, n - 1 - i, "merge") for i in range(merges) for k in (0, 1)]
    return FramePair("", 0, frame, frame, PairAnnotation(tuple(links)))


class Stub:
    """A problem of which a model thinks this."""

    def __init__(self, *pairs):
        self.pairs = list(pairs)
        self.hypothesis_space = SimpleNamespace(kinds=event_kinds.KINDS)

    def completed(self, w, samples):
        return [self.pairs[i] for i in samples]


@pytest.mark.parametrize(
    ("here", "outdone"), [(0, False), (2, False), (5, True), (20, True), (60, True), (80, False)]
)
def test_what_the_flow_tracker_cannot_find_is_left_to_those_who_find_it_as_often(here, outdone):
    """There it is 20 of 1,000: not surely more than 40 or less than 10 is about as often."""
    there = Stub(often(500, splits=5, merges=5), often(500, merges=10))
    guesses = Guesses(Stub(often(1000, splits=here)), np.array([0]), 1.0)
    assert guesses.outdone_by([there], lambda: np.zeros(0)) is outdone


def test_few_splits_and_merges_say_nothing_and_no_model_is_learned_for_them():
    def learn():
        raise AssertionError

    guesses = Guesses(Stub(often(1000, splits=9)), np.array([0]), 1.0)
    assert not guesses.outdone_by([Stub(often(1000, splits=9))], learn)
