"""The profile after an exchange, from the decomposition before it, against a fresh one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.regression import check_graph, laplacian, normalise
from trellis.regression.likelihood import dense_profile
from trellis.regression.swaps import Decomposition, SwapProfile, exchanged


@settings(deadline=None, max_examples=40)
@given(
    st.integers(4, 25),
    st.sampled_from([0.0, 0.1, 0.4, 1.0]),
    st.integers(0, 10**6),
)
def test_swapped_profile_is_the_fresh_one(total, density, seed):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.uniform(size=(total, total)) * (rng.random((total, total)) < density), 1)
    S = check_graph(upper + upper.T)
    order = rng.permutation(total)
    size = int(rng.integers(2, total))
    nodes, out, new = np.sort(order[:size]), int(order[0]), int(order[size])
    after = exchanged(nodes, (out, new))
    assert set(after) == set(nodes) - {out} | {new}
    assert (np.diff(after) > 0).all()
    y, r = rng.normal(size=(2, size))
    swapped = SwapProfile(Decomposition(nodes, S), S, (out, new), y, r)
    fresh = dense_profile(laplacian(normalise(S[after][:, after].tocsr())), y, r)
    gammas = np.array([0.0, 1e-5, 0.2, 3.0, 1e3])
    for got, expected in zip(swapped(gammas), fresh(gammas), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-8, atol=1e-8)
    assert swapped.n == fresh.n
    assert swapped.variance == pytest.approx(fresh.variance)
