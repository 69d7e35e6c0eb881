"""The number of threads changes no bit; lock-free threads change bits and little else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chain_problems import altered, random_data, same_bits
from rich_problems import partial_data, random_weights
from trellis.decompose import ChainPieces, WholeSamples
from trellis.problems import LogLikelihood, Penalty, PerceptronLoss, Weights
from trellis.solvers import (
    AdaptiveFrequency,
    AveragedPerceptron,
    Passes,
    StochasticGradient,
)

JOBS = (1, 2, 3, 5)
DATA = partial_data(np.random.default_rng(0), n_samples=80, real=True)


def start(edges: str, dtype=np.float64) -> Weights:
    return random_weights(np.random.default_rng(1), edges, size=0.1, dtype=dtype)


def make(name: str, edges: str, n_jobs: int, batch_size: int, dtype=np.float64):
    penalty = Penalty(l2=0.5)
    if name == "perceptron":
        return AveragedPerceptron(
            PerceptronLoss(DATA, n_jobs), start(edges, dtype), batch_size=batch_size
        )
    loss = LogLikelihood(DATA, n_jobs)
    options = {"learning_rate": 0.05, "penalty": penalty, "batch_size": batch_size}
    if name == "adf":
        return AdaptiveFrequency(loss, start(edges, dtype), **options)
    return StochasticGradient(loss, start(edges, dtype), decay=0.9, **options)


@pytest.mark.parametrize("batch_size", [1, 4, 30, 500])
@pytest.mark.parametrize("edges", ["plain", "dense", "sparse"])
@pytest.mark.parametrize("name", ["sgd", "adf", "perceptron"])
def test_training(name, edges, batch_size):
    ends = []
    for n_jobs in JOBS:
        dtype = np.float32 if name == "perceptron" else np.float64
        learner = make(name, edges, n_jobs, batch_size, dtype)
        rng = np.random.default_rng(0)
        records = Passes(learner, ChainPieces(3.5), rng).run(max_passes=2, tol=-np.inf).records
        ends.append(([r.objective for r in records], learner))
    assert not same_bits(ends[0][1].weights(), start(edges, dtype))
    for objectives, learner in ends[1:]:
        assert objectives == ends[0][0]
        assert same_bits(learner.weights(), ends[0][1].weights())
        for key, array in ends[0][1].state().items():
            assert np.array_equal(learner.state()[key], array), key


@pytest.mark.parametrize("name", ["sgd", "adf"])
def test_training_in_float32(name):
    ends = []
    for n_jobs in JOBS:
        learner = make(name, "sparse", n_jobs, 16, np.float32)
        rng = np.random.default_rng(0)
        Passes(learner, WholeSamples(), rng).run(max_passes=2, tol=-np.inf)
        ends.append(learner.weights())
    assert all(same_bits(end, ends[0]) for end in ends)


@pytest.mark.parametrize("edges", ["plain", "dense", "sparse"])
def test_value_and_gradient(edges):
    visits = DATA.visits(ChainPieces(2.5).draw(DATA.encoded.offsets, np.random.default_rng(0)))
    found = [
        LogLikelihood(DATA, n_jobs).value_and_gradient(start(edges), visits) for n_jobs in JOBS
    ]
    for value, gradient in found[1:]:
        assert value == found[0][0]
        assert same_bits(gradient, found[0][1])


def test_many_batches_of_the_exact_gradient(monkeypatch):
    """A small buffer makes value_and_gradient go through the pieces in several batches."""
    visits = DATA.visits(ChainPieces(1.5).draw(DATA.encoded.offsets, np.random.default_rng(0)))
    for edges in ("plain", "dense", "sparse"):
        whole, gradient = LogLikelihood(DATA).value_and_gradient(start(edges), visits)
        monkeypatch.setattr("trellis.problems.log_likelihood._BUFFER", 1)
        found = [LogLikelihood(DATA, n).value_and_gradient(start(edges), visits) for n in (1, 3)]
        monkeypatch.undo()
        assert found[0][0] == found[1][0] == pytest.approx(whole, rel=1e-12)
        assert same_bits(found[0][1], found[1][1])
        for a, b in zip(found[0][1].arrays(), gradient.arrays(), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-11)


def test_one_thread_may_own_no_feature():
    """All occurrences are of one feature, so the other threads have nothing to add."""
    data = random_data(np.random.default_rng(0), n_samples=30)
    same = replace(data.encoded, indices=np.full_like(data.encoded.indices, 7))
    data = altered(data, encoded=same)
    visits = data.visits(WholeSamples().draw(data.encoded.offsets, np.random.default_rng(0)))
    ends = []
    for n_jobs in JOBS:
        w = start("sparse")
        LogLikelihood(data, n_jobs).descend(
            w, visits, np.array([1.0, 0.0]), rate=0.1, batch_size=10
        )
        ends.append(w)
    assert all(same_bits(w, ends[0]) for w in ends)


# ------------------------------------------------------------------------- lock-free


@pytest.mark.parametrize("edges", ["plain", "sparse"])
def test_lock_free_threads_reach_about_the_same_objective(edges):
    data = random_data(np.random.default_rng(2), n_samples=200)
    visits = data.visits(WholeSamples().draw(data.encoded.offsets, np.random.default_rng(0)))
    penalty = Penalty(l2=1.0)
    reached = []
    for n_jobs, lock_free in ((1, False), (1, True), (4, True)):
        learner = StochasticGradient(
            LogLikelihood(data, n_jobs),
            start(edges, np.float32),
            learning_rate=0.1,
            decay=0.85,
            penalty=penalty,
            lock_free=lock_free,
        )
        rng = np.random.default_rng(0)
        records = Passes(learner, WholeSamples(), rng).run(max_passes=25, tol=-np.inf).records
        w = learner.weights()
        assert w.finite()
        value = LogLikelihood(data).value_and_gradient(w, visits)[0] + penalty.value(w)
        assert records[-1].objective == pytest.approx(value, rel=0.02)
        reached.append(value)
    assert reached[1] == pytest.approx(reached[0], rel=2e-3)
    assert reached[2] == pytest.approx(reached[0], rel=0.01)
