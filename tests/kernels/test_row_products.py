"""Rows and tables, eight labels at a time, against NumPy: any number of labels, any place."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.kernels import row_products
from trellis.kernels._jit import _FASTMATH

rows = {
    name: numba.njit(fastmath=_FASTMATH, error_model="numpy")(getattr(row_products, name).py_func)
    for name in row_products.__all__
}
KINDS = st.sampled_from([np.float32, np.float64])
SEEDS = st.integers(0, 2**32 - 1)
GUARD = 17  # numbers before and after what a function may write to


def close(found, wanted, kind):
    np.testing.assert_allclose(found, wanted, rtol=3e-5 if kind == np.float32 else 1e-11, atol=1e-5)


def width(n):
    return -(-n // 8) * 8


def room(size, kind):
    return np.full(GUARD + size + GUARD, 77, kind)


def inside(out):
    assert (out[:GUARD] == 77).all() and (out[-GUARD:] == 77).all(), "written beyond the row"
    return out[GUARD:-GUARD]


def padded_rows(rng, m, n, kind, fill=0.0):
    """Rows (m, P) of n random numbers each."""
    out = np.full((m, width(n)), fill, kind)
    out[:, :n] = rng.normal(size=(m, n))
    return out


@given(st.integers(1, 70), KINDS, SEEDS)
def test_sums_maxima_and_products_of_rows(n, kind, seed):
    rng = np.random.default_rng(seed)
    x, P = padded_rows(rng, 3, n, kind), width(n)
    close(rows["row_sum"](x, P, P), x[1].sum(), kind)
    low = np.where(np.arange(P) < n, x, -np.inf).astype(kind)
    assert rows["row_max"](low, P, P) == x[1, :n].max()
    out = room(P, kind)
    rows["copy_row"](x, 2 * P, P, out, GUARD)
    assert (inside(out) == x[2]).all()
    rows["scale_row"](x, P, P, kind(1.5), out, GUARD)
    close(inside(out), 1.5 * x[1], kind)
    rows["multiply_row"](x, 0, x, P, P, out, GUARD)
    close(inside(out), x[0] * x[1], kind)
    assert rows["relative_exponentials"](low, P, P, out, GUARD) == x[1, :n].max()
    close(inside(out)[:n], np.exp(x[1, :n] - x[1, :n].max()), kind)
    assert not inside(out)[n:].any()


@given(st.integers(0, 70), KINDS, KINDS, SEEDS)
def test_a_row_is_added_to_a_row(n, kind, other, seed):
    rng = np.random.default_rng(seed)
    W, x = room(n, kind), rng.normal(size=n + 3).astype(other)
    before = rng.normal(size=n).astype(kind)
    W[GUARD : GUARD + n] = before
    rows["add_scaled"](W, GUARD, n, kind(-0.5), x, 3)
    close(inside(W), before - 0.5 * x[3:], kind)


@given(st.integers(1, 40), st.integers(0, 5), KINDS, SEEDS)
def test_tables_are_exponentiated_and_turned(n, more, kind, seed):
    rng = np.random.default_rng(seed)
    S, P = rng.normal(size=(n, n + more)).astype(kind), width(n)
    E = np.zeros((2, P, P), kind)
    assert rows["exponentiate_table"](S, 0, n + more, n, E, 0, P * P) == S[:, :n].max()
    wanted = np.zeros((P, P))
    wanted[:n, :n] = np.exp(S[:, :n] - S[:, :n].max())
    close(E[0], wanted, kind)
    close(E[1], wanted.T, kind)


@given(st.integers(1, 90), KINDS, SEEDS)
def test_a_row_times_a_table(n, kind, seed):
    rng = np.random.default_rng(seed)
    P = width(n)
    x, M, out = padded_rows(rng, 2, n, kind), np.zeros((2, P, P), kind), room(P, kind)
    M[1, :n] = padded_rows(rng, n, n, kind)
    rows["row_times"](x, P, M, P * P, n, out, GUARD)
    close(inside(out), x[1].astype(float) @ M[1].astype(float), kind)
    rows["table_times"](M, P * P, x, P, n, out, GUARD)
    close(inside(out), M[1].astype(float) @ x[1], kind)


@given(st.integers(1, 60), st.integers(0, 9), KINDS, SEEDS)
def test_outer_products_are_added_up(n, m, kind, seed):
    rng = np.random.default_rng(seed)
    P = width(n)
    a, b = padded_rows(rng, m, n, kind), padded_rows(rng, m, n, kind)
    out = room(P * P, kind)
    start = padded_rows(rng, P, n, kind)
    start[n:] = 0
    out[GUARD:-GUARD] = start.ravel()
    rows["add_outer_products"](a, 0, b, 0, m, n, out, GUARD)
    close(inside(out).reshape(P, P), start + a.astype(float).T @ b, kind)


@given(st.integers(8, 70), st.integers(0, 3), st.integers(0, 7), KINDS, SEEDS)
def test_maxima_of_sums(n, more, fewer, kind, seed):
    rng = np.random.default_rng(seed)
    # Few values, so that there are ties, and some that are forbidden.
    x = rng.choice([0, 1, 2, -np.inf], size=n, p=[0.3, 0.3, 0.3, 0.1]).astype(kind)
    M = rng.choice([0, 1, 2, -np.inf], size=(n, n + more), p=[0.3, 0.3, 0.3, 0.1]).astype(kind)
    for m in (n, n - fewer):
        out = room(n, kind)
        rows["row_max_plus"](x, 0, m, M, 0, n, n + more, out, GUARD)
        assert (inside(out) == (x[:m, None] + M[:m, :n]).max(axis=0)).all()
    for i in range(n):
        assert rows["argmax_plus"](x, 0, M, i * (n + more), n) == np.argmax(x + M[i, :n])
        assert rows["max_plus"](x, 0, M, i * (n + more), n) == (x + M[i, :n]).max()


@given(
    n=st.integers(8, 60),
    spread=st.sampled_from([0.0, 1.0, 20.0]),
    loose=st.sampled_from([0.0, 3.0, np.inf]),
    forbidden=st.sampled_from([0.0, 0.2, 1.0]),
    seed=st.integers(0, 99),
)
def test_few_rows_bring_the_same_maxima(n, spread, loose, forbidden, seed):
    """However loose the bounds of the rows are."""
    rng = np.random.default_rng(seed)
    x = (spread * rng.normal(size=n)).astype(np.float32)
    x[rng.random(n) < forbidden] = -np.inf
    M = rng.integers(-3, 4, (n, n)).astype(np.float32)
    out = room(n, np.float32)
    tops = M.max(axis=1) + np.float32(loose)
    rows["few_max_plus"](x, 0, n, M, tops, out, GUARD)
    assert (inside(out) == (x[:, None] + M).max(axis=0)).all()


@pytest.mark.parametrize("n", [8, 13, 24])
def test_where_all_is_forbidden_the_first_place_is_named(n):
    x = np.full(n, -np.inf, np.float32)
    assert rows["argmax_plus"](x, 0, np.zeros(n, np.float32), 0, n) == 0
