"""Sparse factors: solutions, determinants and diagonals of inverses, against dense matrices."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.errors import DataError
from trellis.regression import knn_graph, laplacian, normalise
from trellis.regression.factorisation import Factorisation, is_affordable


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 60),
    density=st.sampled_from([0.0, 0.05, 0.3, 1.0]),
    gamma=st.sampled_from([0.0, 0.1, 5.0, 1e6]),
)
def test_against_dense_matrices(seed, n, density, gamma):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < density), 1)
    K = np.eye(n) + gamma * (np.diag((upper + upper.T).sum(axis=1)) - upper - upper.T)
    factors = Factorisation(sp.csr_array(K))
    b = rng.normal(size=(n, 2))
    np.testing.assert_allclose(factors.solve(b), np.linalg.solve(K, b), atol=1e-6)
    np.testing.assert_allclose(factors.solve(b[:, 0]), np.linalg.solve(K, b[:, 0]), atol=1e-6)
    assert factors.log_determinant() == pytest.approx(np.linalg.slogdet(K)[1], abs=1e-6)
    np.testing.assert_allclose(factors.inverse_diagonal(), np.diag(np.linalg.inv(K)), rtol=1e-6)


def test_a_map_of_thousands():
    rng = np.random.default_rng(0)
    L = laplacian(normalise(knn_graph(rng.uniform(size=(3000, 2)))))
    K = np.eye(3000) + 30 * L.toarray()
    factors = Factorisation(sp.csr_array(K))
    np.testing.assert_allclose(factors.inverse_diagonal(), np.diag(np.linalg.inv(K)), rtol=1e-9)
    assert factors.log_determinant() == pytest.approx(np.linalg.slogdet(K)[1], rel=1e-10)


def test_a_singular_matrix_is_refused():
    with pytest.raises(DataError, match="smoothing over the graph has no solution"):
        Factorisation(sp.csr_array(np.zeros((3, 3))))


def test_what_is_affordable():
    rng = np.random.default_rng(0)
    near = laplacian(knn_graph(rng.uniform(size=(5000, 2))))
    anyone = sp.random_array((5000, 5000), density=0.002, rng=rng, format="csr")
    assert is_affordable(near)
    assert not is_affordable(laplacian(anyone + anyone.T))
    assert is_affordable(sp.csr_array((5, 5)))
    chain = sp.diags_array([np.ones(9999), np.ones(9999)], offsets=[-1, 1], format="csr")
    assert is_affordable(laplacian(chain))
