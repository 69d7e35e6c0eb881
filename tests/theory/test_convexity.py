"""A decomposition keeps the objective convex, and the penalty makes it strongly convex."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from chain_problems import problems, random_data
from trellis.decompose import ChainPieces, WholeSamples
from trellis.problems import LogLikelihood, Weights

sizes = st.one_of(st.none(), st.floats(1, 6))
seeds = st.integers(0, 2**32 - 1)


def flat(w: Weights) -> np.ndarray:
    return np.concatenate([w.node.ravel(), w.transitions.ravel()])


def random_problem(seed, size):
    """The objective of one decomposition as a function of flat weights, and two random points."""
    rng = np.random.default_rng(seed)
    data = random_data(rng, n_samples=4, n_features=5)
    rule = WholeSamples() if size is None else ChainPieces(size)
    visits = data.visits(rule.draw(data.encoded.offsets, rng))
    objective = LogLikelihood(data)

    def f(w):
        matrix = w.reshape(-1, 3)
        value, gradient = objective.value_and_gradient(Weights(matrix[:5], matrix[5:]), visits)
        return value, flat(gradient)

    return f, *rng.normal(scale=3, size=(2, 24))


@settings(max_examples=30)
@given(seeds, sizes)
def test_decomposed_objective_is_convex(seed, size):
    f, w, u = random_problem(seed, size)
    middle, slope = f((w + u) / 2)
    assert middle <= (f(w)[0] + f(u)[0]) / 2 + 1e-9
    # and it lies above its tangents
    assert f(w)[0] >= middle + slope @ (w - u) / 2 - 1e-9


@settings(max_examples=30)
@given(seeds, sizes, st.floats(0.01, 10))
def test_penalty_makes_it_strongly_convex(seed, size, l2):
    """Modulus c = 2 l2: g(w) ≥ g(u) + ∇g(u)·(w − u) + (c/2)‖w − u‖² (Eq. 11)."""
    f, w, u = random_problem(seed, size)
    (fw, _), (fu, slope) = f(w), f(u)
    gw, gu = fw + l2 * w @ w, fu + l2 * u @ u
    away = w - u
    assert gw >= gu + (slope + 2 * l2 * u) @ away + l2 * away @ away - 1e-8


@settings(max_examples=40)
@given(problems(partial=False))
def test_convex_between_zero_and_any_weights(problem):
    loss = LogLikelihood(problem.data)
    w = problem.weights
    half = Weights(w.node / 2, w.transitions / 2)
    zero = Weights(0 * w.node, 0 * w.transitions)
    ends = [loss.value_and_gradient(x, problem.visits)[0] for x in (w, zero)]
    assert loss.value_and_gradient(half, problem.visits)[0] <= sum(ends) / 2 + 1e-9
