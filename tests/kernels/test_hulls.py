"""Convex hulls of two regions, against those of all corners of their pixels."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial import ConvexHull

from trellis.tracking.regions import Regions


def corners(rank, regions):
    y, x = np.nonzero(np.isin(rank, regions))
    return np.concatenate([np.stack([y + a, x + b], axis=1) for a in (0, 1) for b in (0, 1)])


@given(arrays(np.int64, (6, 7), elements=st.integers(0, 4)), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_hulls_are_those_of_all_corners(mask, seed):
    image = np.random.default_rng(seed).random(mask.shape)
    regions = Regions.of(mask, image)
    n = len(regions)
    pairs = np.array([(a, b) for a in range(n) for b in range(a, n)], np.int64).reshape(-1, 2)
    area, count, mass = regions.hulls(pairs)
    middles = np.stack(np.nonzero(mask >= 0), axis=1) + 0.5
    for p, pair in enumerate(pairs):
        hull = ConvexHull(corners(regions.rank, pair))
        np.testing.assert_allclose(area[p], hull.volume)
        beyond = (middles @ hull.equations[:, :2].T + hull.equations[:, 2]).max(axis=1)
        others = ~np.isin(regions.rank.ravel(), pair)
        # A centre on the very edge may count as inside or outside.
        filling, sure = (beyond < 1e-9) & others, (beyond < -1e-9) & others
        assert sure.sum() <= count[p] <= filling.sum()
        assert image.ravel()[sure].sum() - 1e-9 <= mass[p] <= image.ravel()[filling].sum() + 1e-9
