"""The loop over passes: what is drawn and recorded, and when it stops."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from chain_problems import random_data
from trellis.decompose import ChainPieces, WholeSamples
from trellis.objectives import ChainWeights
from trellis.solvers import convergence_value, run_passes


class Scripted:
    """Returns the objectives it was given and remembers what it was shown."""

    def __init__(self, objectives, n_samples: int = 6) -> None:
        self.data = random_data(np.random.default_rng(0), n_samples=n_samples)
        self.objectives = list(objectives)
        self.seen: list[list[tuple[int, int]]] = []
        self.numbers: list[int] = []

    def one_pass(self, these, number):
        self.seen.append(list(zip(these.starts.tolist(), these.ends.tolist(), strict=True)))
        self.numbers.append(number)
        return self.objectives[number]

    def weights(self):
        return ChainWeights.zeros(len(self.seen), 2)  # tells how many passes there were


def run(learner, *, part=None, seed=0, **options):
    options = {"max_passes": len(learner.objectives), "tol": 0.0, **options}
    return list(run_passes(learner, part or WholeSamples(), np.random.default_rng(seed), **options))


def test_one_record_a_pass():
    objectives = [100.0, 50.0, 40.0, 35.0]
    learner = Scripted(objectives)
    records = run(learner)
    assert [r.number for r in records] == [1, 2, 3, 4]
    assert learner.numbers == [0, 1, 2, 3]
    assert [r.objective for r in records] == objectives
    assert [r.change for r in records] == [convergence_value(objectives[:p]) for p in (1, 2, 3, 4)]
    assert all(r.dev_score is None and r.seconds >= 0 for r in records)


def test_each_pass_visits_every_piece_once_in_a_fresh_order():
    learner = Scripted([3.0, 2.0])
    run(learner)
    first, second = learner.seen
    offsets = learner.data.encoded.offsets.tolist()
    assert sorted(first) == sorted(second) == list(itertools.pairwise(offsets))
    assert first != second


def test_pieces_are_drawn_anew_each_pass():
    learner = Scripted([3.0, 2.0], n_samples=20)
    run(learner, part=ChainPieces(1.5))
    first, second = (sorted(pieces) for pieces in learner.seen)
    assert first != second
    for pieces in (first, second):
        assert [t for a, b in pieces for t in range(a, b)] == list(
            range(learner.data.encoded.offsets[-1])
        )


def test_with_replacement_there_are_as_many_visits_with_repeats():
    learner = Scripted([3.0], n_samples=50)
    run(learner, visit="replacement")
    (seen,) = learner.seen
    assert len(seen) == 50 and len(set(seen)) < 50


def test_the_seed_decides_everything():
    passes = []
    for seed in (1, 1, 2):
        learner = Scripted([3.0, 2.0, 1.0])
        run(learner, part=ChainPieces(2.5), seed=seed)
        passes.append(learner.seen)
    assert passes[0] == passes[1] != passes[2]


def test_it_stops_when_the_change_falls_below_the_tolerance():
    objectives = [100.0, 50.0, 49.0, 48.9, 48.89, 48.88]
    changes = [convergence_value(objectives[:p]) for p in range(1, 7)]
    assert changes[3] > 0.3 > changes[4] > 0.2  # the numbers below mean something
    assert len(run(Scripted(objectives), tol=0.3)) == 5
    assert len(run(Scripted(objectives), tol=0.0)) == 6
    assert len(run(Scripted([1.0, 2.0, 3.0, 4.0]), tol=0.0)) == 3  # worse counts as converged
    assert len(run(Scripted([1.0, 2.0, 3.0, 4.0]), tol=-np.inf)) == 4


def test_it_never_exceeds_the_number_of_passes():
    assert len(run(Scripted([9.0, 8.0, 7.0]), max_passes=2)) == 2


@pytest.mark.parametrize(("patience", "expected"), [(1, 3), (2, 4), (3, 8), (None, 9)])
def test_patience_counts_passes_since_the_best_score(patience, expected):
    scores = [0.1, 0.5, 0.5, 0.4, 0.6, 0.6, 0.6, 0.6, 0.6]
    learner = Scripted([100.0 * 0.5**p for p in range(9)])
    asked = []

    def dev_score(weights):
        asked.append(len(weights.node))
        return scores[len(weights.node) - 1]

    records = run(learner, dev_score=dev_score, patience=patience)
    assert len(records) == expected
    assert [r.dev_score for r in records] == scores[:expected]
    assert asked == list(range(1, expected + 1))  # after each pass, with the weights of then


def test_patience_without_held_out_data_changes_nothing():
    assert len(run(Scripted([9.0, 8.0, 7.0, 6.0]), patience=1)) == 4


def test_passes_are_done_one_at_a_time():
    """A record can be acted upon (a progress line, an interrupt) before the next pass begins."""
    learner = Scripted([3.0, 2.0, 1.0])
    passes = run_passes(learner, WholeSamples(), np.random.default_rng(0), max_passes=3, tol=0.0)
    next(passes)
    assert learner.numbers == [0]
    next(passes)
    assert learner.numbers == [0, 1]
