"""Planes in their places: what is left after some go, and their products."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.solvers.bundle import Bundle


def test_aggregate_lies_below_the_planes_and_keeps_the_bound():
    rng = np.random.default_rng(0)
    planes = Bundle(6)
    for slope, offset in zip(rng.normal(size=(20, 6)), rng.normal(size=20), strict=True):
        planes.add(slope, float(offset))
    points = rng.normal(size=(50, 6))
    before = [max(planes.height(w), 0.0) for w in points]
    alpha = rng.random(len(planes))
    alpha /= 2 * alpha.sum()
    slopes, offsets = planes.slopes.copy(), planes.offsets.copy()
    spare = planes.slopes[1].copy()
    planes.add(spare, -1e3)  # not in use: the first to go
    assert len(planes.compress(np.append(alpha, 0.0), len(alpha), 0.0)) == len(alpha)
    np.testing.assert_array_equal(planes.slopes, slopes)
    new = planes.compress(alpha, 3, 0.0)
    assert len(planes) == 3
    assert new.tolist() == [1, 0, 0]
    np.testing.assert_allclose(planes.slopes[0], alpha @ slopes)
    assert planes.offsets[0] == pytest.approx(alpha @ offsets)
    np.testing.assert_allclose(planes.slopes[1:], slopes[-2:])
    np.testing.assert_allclose(planes.gram, planes.slopes @ planes.slopes.T)
    assert all(planes.height(w) <= h + 1e-9 for w, h in zip(points, before, strict=True))


def rows(planes):
    """Planes as a set: slope, offset, domain."""
    parts = (planes.slopes, planes.offsets[:, None], planes.domains[:, None])
    return sorted(np.hstack(parts).tolist())


@given(seed=st.integers(0, 5000), n_domains=st.integers(1, 3), moved=st.booleans())
def test_planes_come_and_go(seed, n_domains, moved):
    """Against a list of planes, in the order in which they came."""
    rng = np.random.default_rng(seed)
    planes = Bundle(4, n_domains)
    origin = rng.normal(size=(n_domains, 4)) if moved else np.zeros((n_domains, 4))
    if moved:
        planes.set_origin(origin)
    there, memory = [], 2 * n_domains + 3
    for _ in range(40):
        d = int(rng.integers(n_domains))
        there.append([*rng.normal(size=5), d])
        planes.add(np.array(there[-1][:4]), there[-1][4], d)
        if len(planes) > memory:
            alpha = np.zeros(len(planes))
            used = rng.permutation(len(planes))[: rng.integers(1, memory)]
            alpha[used] = rng.random(len(used))
            heavy = {tuple(planes.slopes[i]) for i in used}
            left = planes.compress(alpha, memory)
            assert sorted(left[left > 0]) == sorted(alpha[used])
            assert {tuple(planes.slopes[i]) for i in np.flatnonzero(left)} == heavy
            oldest = next(k for k, plane in enumerate(there) if tuple(plane[:4]) not in heavy)
            del there[oldest]
        assert rows(planes) == sorted(there)
        np.testing.assert_allclose(planes.gram, planes.slopes @ planes.slopes.T, atol=1e-12)
        tilts = np.einsum("td,td->t", planes.slopes, origin[planes.domains])
        np.testing.assert_allclose(planes.origin_heights, planes.offsets + tilts, atol=1e-12)


def test_a_mean_of_each_domain():
    rng = np.random.default_rng(1)
    planes = Bundle(3, 2)
    origin = rng.normal(size=(2, 3))
    for i in range(9):
        planes.add(rng.normal(size=3), float(i), i % 2)
    planes.set_origin(origin)
    alpha = rng.random(9) / 9
    domains, share = planes.domains.copy(), alpha.copy()
    slopes, offsets = planes.slopes.copy(), planes.offsets.copy()
    left = planes.compress(alpha, 5, floor=-2.0)
    assert len(planes) == 5
    assert sorted(left.tolist()) == [0, 0, 0, 1, 1]
    for d in range(2):
        (mean,) = np.flatnonzero((left == 1) & (planes.domains == d))
        own = domains == d
        np.testing.assert_allclose(planes.slopes[mean], share[own] @ slopes[own])
        rest = -2.0 * (1 - share[own].sum())
        assert planes.offsets[mean] == pytest.approx(share[own] @ offsets[own] + rest)
        height = planes.slopes[mean] @ origin[d] + planes.offsets[mean]
        assert planes.origin_heights[mean] == pytest.approx(height)
    assert sorted(planes.offsets[left == 0]) == [6, 7, 8]
    sums = planes.sums(left)
    np.testing.assert_allclose(sums, [share[domains == d] @ slopes[domains == d] for d in (0, 1)])
