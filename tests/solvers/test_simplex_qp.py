"""Quadratic programs over the simplex against SciPy and against their optimality conditions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from trellis.errors import DataError
from trellis.solvers.simplex_qp import solve_simplex_qp


def reference(G, b, at_most):
    """SLSQP from several starts; the best value. It needs numbers of ordinary size."""
    n = len(b)
    size = max(1.0, float(np.abs(G).max(initial=0.0)))
    G, b = G / size, b / size
    kind = "ineq" if at_most else "eq"
    starts = [np.full(n, 1 / n), *np.eye(n)[:3]]
    found = [
        minimize(
            lambda a: (0.5 * a @ G @ a - b @ a, G @ a - b), a, jac=True, method="SLSQP",
            bounds=[(0, 1)] * n,
            constraints={"type": kind, "fun": lambda a: 1 - a.sum(), "jac": lambda a: -np.ones(n)},
            options={"ftol": 1e-13, "maxiter": 500},
        )
        for a in starts
    ]  # fmt: skip
    return size * min(f.fun for f in found if abs(min(0, 1 - f.x.sum())) < 1e-8)


@given(
    n=st.integers(1, 9),
    rank=st.integers(0, 10),
    at_most=st.booleans(),
    scale=st.sampled_from([1e-3, 1.0, 1e4]),
    warm=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_agrees_with_scipy(n, rank, at_most, scale, warm, seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, rank))
    G, b = A @ A.T * scale, rng.normal(size=n)
    start = rng.random(n) if warm else None
    found = solve_simplex_qp(G, b, at_most=at_most, start=start)
    assert (found.alpha >= 0).all()
    assert found.alpha.sum() <= 1 + 1e-12
    if not at_most:
        assert found.alpha.sum() == pytest.approx(1, abs=1e-12)
    size = 1 + abs(found.value)
    assert found.gap <= 1e-9 * size
    assert found.value == pytest.approx(0.5 * found.alpha @ G @ found.alpha - b @ found.alpha)
    wanted = reference(G, b, at_most)
    assert found.value <= wanted + 1e-7 * size
    assert found.value >= wanted - 1e-5 * size


@given(
    seed=st.integers(0, 1000),
    n=st.integers(20, 150),
    rank=st.integers(1, 60),
    at_most=st.booleans(),
)
def test_gap_closes_on_many_planes(seed, n, rank, at_most):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, rank)) + rng.normal(size=rank)
    A = A[rng.integers(0, n, n)]  # repeated rows: singular, and more than one solution
    b = rng.normal(size=n)
    found = solve_simplex_qp(A @ A.T, b, at_most=at_most)
    gradient = A @ (A.T @ found.alpha) - b
    least = min(gradient.min(), 0.0) if at_most else gradient.min()
    assert gradient @ found.alpha - least <= 1e-8 * (1 + abs(found.value))


def test_start_at_the_solution_takes_one_step():
    rng = np.random.default_rng(0)
    A, b = rng.normal(size=(80, 30)), rng.normal(size=80)
    cold = solve_simplex_qp(A @ A.T, b)
    warm = solve_simplex_qp(A @ A.T, b, start=cold.alpha)
    assert warm.steps <= 2 < cold.steps
    assert warm.value == pytest.approx(cold.value, rel=1e-12)


def test_linear_problem_goes_to_the_best_corner():
    found = solve_simplex_qp(np.zeros((3, 3)), [1.0, 3.0, 2.0], start=[1.0, 0.0, 0.0])
    assert found.alpha.tolist() == [0, 1, 0]
    nothing = solve_simplex_qp(np.zeros((2, 2)), [-1.0, -2.0], at_most=True)
    assert nothing.alpha.tolist() == [0, 0]
    assert nothing.value == 0


def test_out_of_steps_says_how_far_it_is():
    rng = np.random.default_rng(1)
    A, b = rng.normal(size=(40, 20)), rng.normal(size=40)
    short = solve_simplex_qp(A @ A.T, b, max_steps=3)
    exact = solve_simplex_qp(A @ A.T, b)
    assert short.gap >= short.value - exact.value > 0


@pytest.mark.parametrize(
    ("G", "b", "start", "message"),
    [
        (np.eye(2), np.zeros(3), None, "G must be"),
        (np.zeros((0, 0)), np.zeros(0), None, "n >= 1"),
        (np.array([[np.nan]]), np.zeros(1), None, "finite"),
        (np.array([[1.0, 0.5], [0.0, 1.0]]), np.zeros(2), None, "symmetric"),
        (np.eye(2), np.zeros(2), np.zeros(3), "start must be 2 finite"),
    ],
)
def test_bad_input(G, b, start, message):
    with pytest.raises(DataError, match=message):
        solve_simplex_qp(G, b, start=start)
