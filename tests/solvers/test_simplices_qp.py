"""Quadratic programs over products of simplices against SciPy and their certificate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from trellis.errors import DataError
from trellis.solvers.simplices_qp import solve_simplices_qp


def reference(G, b, blocks, at_most):
    """SLSQP from several starts; the best feasible value."""
    n = len(b)
    size = max(1.0, float(np.abs(G).max(initial=0.0)))
    G, b = G / size, b / size
    rows = np.array([blocks == d for d in range(blocks.max() + 1)], float)
    even = 1 / rows.sum(1)[blocks]
    corner = np.zeros(n)
    corner[[np.flatnonzero(r)[0] for r in rows]] = 1.0
    found = [
        minimize(
            lambda a: (0.5 * a @ G @ a - b @ a, G @ a - b), a, jac=True, method="SLSQP",
            bounds=[(0, 1)] * n,
            constraints={"type": "ineq" if at_most else "eq",
                         "fun": lambda a: 1 - rows @ a, "jac": lambda a: -rows},
            options={"ftol": 1e-13, "maxiter": 500},
        )
        for a in (even, corner)
    ]  # fmt: skip
    return size * min(f.fun for f in found if (rows @ f.x <= 1 + 1e-8).all())


def random_blocks(rng, n, n_blocks):
    blocks = np.append(np.arange(n_blocks), rng.integers(0, n_blocks, n - n_blocks))
    return rng.permutation(blocks)


@settings(max_examples=30)
@given(
    n=st.integers(3, 10),
    n_blocks=st.sampled_from([1, 1, 2, 3]),
    rank=st.integers(0, 10),
    at_most=st.booleans(),
    scale=st.sampled_from([1e-3, 1.0, 1e4]),
    warm=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_agrees_with_scipy(n, n_blocks, rank, at_most, scale, warm, seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, rank))
    G, b = A @ A.T * scale, rng.normal(size=n)
    blocks = random_blocks(rng, n, n_blocks)
    start = rng.normal(size=n) if warm else None
    found = solve_simplices_qp(G, b, blocks, at_most=at_most, start=start)
    sums = np.bincount(blocks, found.alpha)
    assert (found.alpha >= 0).all()
    assert (sums <= 1 + 1e-12).all()
    if not at_most:
        np.testing.assert_allclose(sums, 1, atol=1e-12)
    size = 1 + abs(found.value)
    assert found.gap <= 1e-9 * size
    assert found.value == pytest.approx(0.5 * found.alpha @ G @ found.alpha - b @ found.alpha)
    wanted = reference(G, b, blocks, at_most)
    assert found.value <= wanted + 1e-7 * size
    assert found.value >= wanted - 1e-5 * size


@settings(max_examples=30)
@given(seed=st.integers(0, 1000), n=st.integers(1, 30), at_most=st.booleans())
def test_one_block_is_the_simplex(seed, n, at_most):
    """With no blocks given, and for a single variable."""
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(n, 8)), rng.normal(size=n)
    one = solve_simplices_qp(A @ A.T, b, at_most=at_most)
    found = solve_simplices_qp(A @ A.T, b, np.zeros(n, int), at_most=at_most)
    assert found.alpha.tolist() == one.alpha.tolist()
    if n == 1 and not at_most:
        assert one.alpha.tolist() == [1]


@given(
    seed=st.integers(0, 1000),
    n=st.integers(20, 150),
    rank=st.integers(1, 60),
    at_most=st.booleans(),
)
def test_gap_closes_on_one_simplex_of_many_planes(seed, n, rank, at_most):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, rank)) + rng.normal(size=rank)
    A = A[rng.integers(0, n, n)]  # repeated rows: singular, and more than one solution
    b = rng.normal(size=n)
    found = solve_simplices_qp(A @ A.T, b, at_most=at_most)
    gradient = A @ (A.T @ found.alpha) - b
    least = min(gradient.min(), 0.0) if at_most else gradient.min()
    assert gradient @ found.alpha - least <= 1e-8 * (1 + abs(found.value))


def test_start_at_the_solution_takes_one_step():
    rng = np.random.default_rng(0)
    A, b = rng.normal(size=(80, 30)), rng.normal(size=80)
    cold = solve_simplices_qp(A @ A.T, b)
    warm = solve_simplices_qp(A @ A.T, b, start=cold.alpha)
    assert warm.steps <= 2 < cold.steps
    assert warm.value == pytest.approx(cold.value, rel=1e-12)


def test_linear_problem_goes_to_the_best_corner():
    found = solve_simplices_qp(np.zeros((3, 3)), [1.0, 3.0, 2.0], start=[1.0, 0.0, 0.0])
    assert found.alpha.tolist() == [0, 1, 0]
    nothing = solve_simplices_qp(np.zeros((2, 2)), [-1.0, -2.0], at_most=True)
    assert nothing.alpha.tolist() == [0, 0]
    assert nothing.value == 0


@settings(max_examples=30)
@given(
    seed=st.integers(0, 1000),
    n=st.integers(20, 120),
    n_blocks=st.integers(2, 8),
    own=st.sampled_from([0.0, 1e-6, 1.0, 1e6]),
    at_most=st.booleans(),
)
def test_gap_closes_however_strongly_the_blocks_depend_on_each_other(
    seed, n, n_blocks, own, at_most
):
    rng = np.random.default_rng(seed)
    blocks = random_blocks(rng, n, n_blocks)
    A = rng.normal(size=(n, 15)) + rng.normal(size=15)
    A = A[rng.integers(0, n, n)]  # repeated rows: singular, and more than one solution
    b = rng.normal(size=n)
    gram = A @ A.T
    G = gram + own * gram * (blocks[:, None] == blocks)
    found = solve_simplices_qp(G, b, blocks, at_most=at_most)
    gradient = G @ found.alpha - b
    gap = 0.0
    for d in range(n_blocks):
        g, a = gradient[blocks == d], found.alpha[blocks == d]
        gap += g @ a - (min(g.min(), 0.0) if at_most else g.min())
    assert gap <= 1e-8 * (1 + abs(found.value))
    assert found.gap == pytest.approx(max(gap, 0.0), abs=1e-9 * (1 + abs(found.value)))


def test_blocks_without_common_terms_are_solved_apart():
    rng = np.random.default_rng(3)
    A, B = rng.normal(size=(12, 5)), rng.normal(size=(9, 4))
    b = rng.normal(size=21)
    G = np.zeros((21, 21))
    G[:12, :12], G[12:, 12:] = A @ A.T, B @ B.T
    found = solve_simplices_qp(G, b, np.repeat([0, 1], [12, 9]))
    parts = solve_simplices_qp(A @ A.T, b[:12]), solve_simplices_qp(B @ B.T, b[12:])
    assert found.value == pytest.approx(sum(p.value for p in parts), rel=1e-10)
    again = solve_simplices_qp(G, b, np.repeat([0, 1], [12, 9]), start=found.alpha)
    assert again.steps <= 2 < found.steps
    assert again.value == pytest.approx(found.value, rel=1e-12)


def test_linear_problem_goes_to_the_best_corners():
    b = [1.0, 3.0, -2.0, -1.0]
    found = solve_simplices_qp(np.zeros((4, 4)), b, [0, 0, 1, 1], start=[1.0, 0.0, 1.0, 0.0])
    assert found.alpha.tolist() == [0, 1, 0, 1]
    less = solve_simplices_qp(np.zeros((4, 4)), b, [0, 0, 1, 1], at_most=True)
    assert less.alpha.tolist() == [0, 1, 0, 0]
    assert less.value == -3


def test_out_of_steps_says_how_far_it_is():
    rng = np.random.default_rng(1)
    A, b = rng.normal(size=(40, 20)), rng.normal(size=40)
    blocks = random_blocks(rng, 40, 3)
    short = solve_simplices_qp(A @ A.T, b, blocks, max_steps=3)
    exact = solve_simplices_qp(A @ A.T, b, blocks)
    assert short.gap >= short.value - exact.value > 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"G": np.eye(3)},
            r"G must be \(n, n\) and b \(n,\) with n >= 1, got \(3, 3\) and \(2,\)$",
        ),
        ({"G": np.zeros((0, 0)), "b": np.zeros(0)}, r"n >= 1, got \(0, 0\) and \(0,\)$"),
        ({"G": np.full((2, 2), np.nan)}, "^G and b must be finite$"),
        ({"G": np.array([[1.0, 0.5], [0.0, 1.0]])}, "^G must be symmetric$"),
        ({"start": np.zeros(3)}, r"^start have shape \(3,\); expected \(2,\)$"),
        ({"blocks": [0]}, r"^blocks have shape \(1,\); expected \(2,\)$"),
        ({"blocks": [0.0, 1.0]}, "^blocks have dtype float64; expected integers$"),
        ({"blocks": [-1, 0]}, "^blocks hold -1 at index 0; expected 0 to 1$"),
        ({"blocks": [0, 2]}, "^blocks hold 2 at index 1; expected 0 to 1$"),
        (
            {"G": np.eye(3), "b": np.zeros(3), "blocks": [2, 0, 2]},
            r"^block 1 has no variable; number the blocks 0, 1, \.\.\.$",
        ),
    ],
)
def test_bad_input(change, message):
    arguments = {"G": np.eye(2), "b": np.zeros(2), "blocks": [0, 1]} | change
    with pytest.raises(DataError, match=message):
        solve_simplices_qp(**arguments)
