"""Runs that are cut off anywhere and taken up again end with the same bits."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import trellis.solvers.passes as passes_module
from chain_problems import same_bits
from rich_problems import partial_data, random_weights
from trellis.decompose import ChainPieces
from trellis.problems import LogLikelihood, Penalty, PerceptronLoss
from trellis.solvers import (
    AdaptiveFrequency,
    AveragedPerceptron,
    Passes,
    StochasticGradient,
    Watch,
)

DATA = partial_data(np.random.default_rng(0), n_samples=15)


def learner(name: str, edges: str):
    dtype = np.float32 if name == "perceptron" else np.float64
    start = random_weights(np.random.default_rng(1), edges, size=0.1, dtype=dtype)
    groups = np.arange(12, dtype=np.int32) // 4
    penalty = Penalty(l2=0.3, l1=0.05, group_lasso=0.05, groups=groups)
    if name == "perceptron":
        return AveragedPerceptron(PerceptronLoss(DATA), start, batch_size=2)
    if name == "adf":
        return AdaptiveFrequency(
            LogLikelihood(DATA), start, learning_rate=0.2, penalty=penalty, batch_size=2
        )
    return StochasticGradient(
        LogLikelihood(DATA),
        start,
        learning_rate=0.2,
        decay=0.9,
        penalty=penalty,
        l2_once=name == "sgd, penalty once a pass",
        batch_size=1 if name == "sgd" else 3,
        average_from=1 if name == "sgd, averaged" else None,
    )


def run(model, seed: int = 0, **options):
    passes = Passes(model, ChainPieces(2.5, 1), np.random.default_rng(seed))
    watch = Watch(**options)
    before = len(watch.progress.records)
    return passes.run(max_passes=3, tol=-np.inf, watch=watch).records[before:]


@pytest.mark.parametrize("edges", ["plain", "sparse"])
@pytest.mark.parametrize(
    "name",
    ["sgd", "sgd, averaged", "sgd, batches", "sgd, penalty once a pass", "adf", "perceptron"],
)
def test_a_run_goes_on_to_the_same_bits_from_any_block(monkeypatch, name, edges):
    monkeypatch.setattr(passes_module, "BLOCK", 12)
    whole = learner(name, edges)
    saved = []

    def save(progress):
        state = {key: a.copy() for key, a in whole.state().items()}
        saved.append((copy.deepcopy(progress), state))

    records = run(whole, save=save)
    places = {(len(p.records), p.visited) for p, _ in saved}
    assert len(places) == len(saved) > 15
    assert {n for n, _ in places} == {0, 1, 2, 3}
    for progress, state in saved:
        again = learner(name, edges)
        again.restore(state)
        n_done = len(progress.records)
        late = run(again, seed=99, progress=progress)  # the numbers are those of the progress
        assert [r.objective for r in late] == [r.objective for r in records[n_done:]]
        assert [r.change for r in late] == [r.change for r in records[n_done:]]
        assert same_bits(again.weights(), whole.weights())
        for key, a in whole.state().items():
            assert np.array_equal(again.state()[key], a), key


def test_a_state_of_other_weights_would_not_do(monkeypatch):
    """The comparison above can fail: without the state the ends differ."""
    monkeypatch.setattr(passes_module, "BLOCK", 12)
    whole = learner("sgd", "plain")
    saved = []
    run(whole, save=lambda progress: saved.append(copy.deepcopy(progress)))
    fresh = learner("sgd", "plain")
    run(fresh, progress=saved[4])
    assert not same_bits(fresh.weights(), whole.weights())


@pytest.mark.parametrize("name", ["sgd", "adf", "perceptron"])
def test_a_restored_learner_is_independent_of_the_state(name):
    first = learner(name, "dense")
    run(first)
    state = {key: a.copy() for key, a in first.state().items()}
    second = learner(name, "dense")
    second.restore(state)
    before = second.weights().copy()
    for a in state.values():
        a[...] = 0
    assert same_bits(second.weights(), before)
