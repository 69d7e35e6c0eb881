"""Stochastic steps of hinge losses against all labellings, listed."""

from __future__ import annotations

import numpy as np
import pytest

from chain_problems import altered
from label_problems import COSTS, STRUCTURES, Enumerated
from trellis.decompose import GraphPieces
from trellis.errors import DataError
from trellis.problems import HingeSteps
from trellis.problems.log_objective import whole_samples

FORESTS = [(s, m) for s, m in STRUCTURES if s != "graph"]


def as_learned(problem, flat):
    """Weights of the type that models learn with."""
    return problem.weights(flat).map(lambda a: a.astype(np.float32))


@pytest.mark.parametrize(("structure", "more"), FORESTS)
@pytest.mark.parametrize("cost", ["hamming", COSTS], ids=["hamming", "costs"])
@pytest.mark.parametrize("seed", range(4))
def test_loss_and_step_are_those_of_the_enumerated_labellings(structure, more, cost, seed):
    p = Enumerated(seed, structure, cost=cost, **more)
    w = p.weights().astype(np.float32).astype(np.float64)
    expected = p.values(w, "all", loss=True) - p.values(w, "compatible")
    weights = as_learned(p.problem, w)
    visits = whole_samples(p.problem)
    met = HingeSteps(p.problem).descend(
        weights, visits, np.array([1.0, 0.0]), rate=0.5, batch_size=len(visits)
    )
    assert met == pytest.approx(expected.sum(), rel=1e-5)
    zero = as_learned(p.problem, np.zeros(len(w)))
    chance = HingeSteps(p.problem).descend(zero, visits, np.array([1.0, 0.0]), rate=0.0)
    assert HingeSteps(p.problem).at_zero(visits) == pytest.approx(chance)
    # All steps of a batch are taken at the same weights: a subgradient step of the whole.
    slope = np.zeros(len(w))
    for s in range(p.n_samples):
        ys = list(p.labellings(s))
        high = max(ys, key=lambda y: p.score(w, s, y) + p.loss(s, y))
        fits = max(p.labellings(s, "compatible"), key=lambda y: p.score(w, s, y))
        slope += p.phi(s, high) - p.phi(s, fits)
    np.testing.assert_allclose(p.problem.flat(weights), w - 0.5 * slope, atol=1e-5)


@pytest.mark.parametrize(("structure", "more"), FORESTS)
def test_rates_fall_and_penalties_shrink(structure, more):
    p = Enumerated(1, structure, known=1.0, **more)
    visits = whole_samples(p.problem)
    w = p.weights()
    plain, shrunk = (as_learned(p.problem, w) for _ in range(2))
    HingeSteps(p.problem).descend(plain, visits, np.array([1.0, 0.0]), rate=0.3, decay=0.5)
    state = np.array([1.0, 4.0])
    HingeSteps(p.problem).descend(shrunk, visits, state, rate=0.3, decay=0.5, shrink=0.2)
    keep = np.prod([1 / (1 + 2 * 0.3 * 0.5**k * 0.2) for k in range(len(visits))])
    np.testing.assert_allclose(p.problem.flat(shrunk), keep * p.problem.flat(plain), rtol=1e-5)
    assert state.tolist() == [1.0, 4.0 + len(visits)]
    one = as_learned(p.problem, w)
    for k in range(len(visits)):  # visit by visit, with the rates written out
        HingeSteps(p.problem).descend(
            one, visits[k : k + 1], np.array([1.0, 0.0]), rate=0.3 * 0.5**k
        )
    np.testing.assert_allclose(p.problem.flat(one), p.problem.flat(plain), atol=1e-5)


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_threads_change_nothing(n_jobs):
    p = Enumerated(2, "chain", n_samples=12)
    visits = whole_samples(p.problem)
    w = p.weights()
    results = []
    for jobs in (1, n_jobs):
        weights = as_learned(p.problem, w)
        met = HingeSteps(p.problem, jobs).descend(
            weights, visits, np.array([1.0, 0.0]), rate=0.1, batch_size=5
        )
        results.append((met, p.problem.flat(weights).tobytes()))
    assert results[0] == results[1]


def test_pieces_with_loops_are_refused():
    p = Enumerated(0, "graph").problem
    pieces = GraphPieces(p.edges, None, "graph").draw(p.offsets, np.random.default_rng(0))
    with pytest.raises(DataError, match="steps of best labellings are for pieces that are trees"):
        HingeSteps(p).descend(
            as_learned(p, np.zeros(p.n_weights)), p.visits(pieces), np.array([1.0, 0.0])
        )


def test_what_is_not_annotated_says_nothing():
    p = Enumerated(0, "chain", known=0.0)
    unknown = altered(p.problem)
    weights = as_learned(unknown, p.weights())
    before = unknown.flat(weights)
    met = HingeSteps(unknown).descend(weights, whole_samples(unknown), np.array([1.0, 0.0]))
    assert met == 0 and np.array_equal(unknown.flat(weights), before)
