"""Short vectors: each operation against NumPy, in both types."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from trellis.kernels._jit import _FASTMATH
from trellis.kernels.fast_exp import fast_exp
from trellis.kernels.lanes import (
    at_least,
    first_equal,
    floor,
    get,
    highest,
    load,
    load_half,
    load_one,
    padded,
    power_of_two,
    put,
    spread,
    spread_half,
    store,
    total,
    upper,
)

TYPES = [np.float32, np.float64]
compiled = numba.njit(fastmath=_FASTMATH, error_model="numpy")


@compiled
def arithmetic(a, b, out):
    x, y = load(a, 3), load(b, 11)
    store(out, 0, x + y)
    store(out, 8, x - y)
    store(out, 16, x * y)
    store(out, 24, x / y)
    store(out, 32, upper(x, y))
    store(out, 40, floor(x))
    store(out, 48, at_least(x, a.dtype.type(0.25), y))
    store(out, 56, load_one(a, 5))
    store(out, 64, spread(get(b, 2)))
    x += y
    store(out, 72, x)
    store(out, 80, load_half(a, 1) + spread_half(get(b, 0)))
    put(out, 84, get(a, 2))
    return total(load(a, 3)), highest(load(a, 3))


@pytest.mark.parametrize("kind", TYPES)
def test_operations_are_those_of_numpy(kind):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 3, 8)).astype(kind)
    out = np.zeros(88, kind)
    s, top = arithmetic(a, b, out)
    x, y, flat = a.ravel()[3:11], b.ravel()[11:19], b.ravel()
    wanted = [
        x + y, x - y, x * y, x / y, np.maximum(x, y), np.floor(x), np.where(x >= 0.25, y, 0),
        np.repeat(a.ravel()[5], 8), np.repeat(flat[2], 8), x + y,
    ]  # fmt: skip
    np.testing.assert_allclose(out[:80].reshape(10, 8), wanted, rtol=1e-6)
    np.testing.assert_allclose(out[80:84], a.ravel()[1:5] + flat[0], rtol=1e-6)
    assert out[84] == a.ravel()[2] and not out[85:].any()  # nothing is written beyond
    assert s == pytest.approx(x.sum(), rel=1e-5)
    assert top == x.max()


@compiled
def found(a, value):
    return first_equal(load(a, 0), spread(a.dtype.type(value)))


@pytest.mark.parametrize("kind", TYPES)
def test_first_equal_is_the_first(kind):
    a = np.array([1, 2, 2, 0, -np.inf, 5, np.nan, 5], kind)
    assert [found(a, v) for v in (1, 2, -np.inf, 5, 7, np.nan)] == [0, 1, 4, 5, 8, 8]


@compiled
def powers(a):
    store(a, 0, power_of_two(load(a, 0)))


@pytest.mark.parametrize("kind", TYPES)
def test_powers_of_two_are_exact(kind):
    k = np.array([0, 1, -1, 10, -30, 100, -126, 127], kind)
    a = k.copy()
    powers(a)
    assert a.tolist() == (2.0**k).tolist()


@compiled
def exponentials(x):
    for q in range(0, x.size, 8):
        store(x, q, fast_exp(load(x, q)))


@pytest.mark.parametrize(
    ("kind", "low", "error"), [(np.float32, -87, 4e-7), (np.float64, -700, 3e-14)]
)
def test_exponentials_of_lanes(kind, low, error):
    x = np.concatenate([np.linspace(low, 0, 8000), [-np.inf, low - 1, -1e30, 0, -0.0, low, -1, -2]])
    found = x.astype(kind)
    exact = np.exp(found.astype(np.float64))
    exact[found < low] = 0
    exponentials(found)
    assert (found[exact == 0] == 0).all()
    assert np.abs(found[exact > 0] / exact[exact > 0] - 1).max() < error


def test_rows_are_padded_to_eights():
    assert [padded(n) for n in (0, 1, 8, 9, 16, 1000)] == [0, 8, 8, 16, 16, 1000]
