"""The diagonal of an inverse from factors, and widths of graphs, by brute force."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.kernels.sparse_inverse import inverse_diagonal, widest_level


def the_factors(A):
    """A = L diag(d) L' by elimination, L unit lower triangular."""
    C = np.linalg.cholesky(A)
    return C / np.diag(C), np.diag(C) ** 2


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 20), density=st.floats(0, 1))
def test_the_diagonal_of_an_inverse(seed, n, density):
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(n, n)) * (rng.uniform(size=(n, n)) < density)
    A = B @ B.T + n * np.eye(n)
    L, d = the_factors(A)
    # The pattern of a factor, filled entries that happen to be 0 among it.
    pattern = closed_pattern(A != 0)
    columns = sp.csc_array(pattern * 1.0)
    values = np.array(L.T[pattern.T])  # column by column
    order = np.arange(len(values))
    for j in range(n):  # rows of a column in any order
        rng.shuffle(order[columns.indptr[j] : columns.indptr[j + 1]])
    indices = columns.indices.astype(np.int32)[order]
    found = inverse_diagonal(columns.indptr.astype(np.int32), indices, values[order], d)
    np.testing.assert_allclose(found, np.diag(np.linalg.inv(A)), rtol=1e-8)


def closed_pattern(pattern):
    """Where the factor of a matrix of this pattern may not be 0."""
    L = np.tril(pattern).astype(bool)
    for j in range(len(L)):
        below = np.flatnonzero(L[j + 1 :, j]) + j + 1
        L[np.ix_(below, below)] |= np.tril(np.ones((len(below), len(below)), bool))
        L[j, j] = True
    return L


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 15), density=st.floats(0, 0.6))
def test_levels_of_a_search(seed, n, density):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.uniform(size=(n, n)) < density, 1)
    S = sp.csr_array((upper | upper.T).astype(float))
    widest = widest_level(S.indptr, S.indices)
    assert widest == max(width_from_the_end(S.toarray() > 0, part) for part in parts(S))


def parts(S):
    count, label = sp.csgraph.connected_components(S, directed=False)
    return [np.flatnonzero(label == c) for c in range(count)]


def levels(joined, start):
    """Nodes by distance, in the order in which a search finds them."""
    found, level = [[start]], {start}
    while found[-1]:
        step = []
        for i in found[-1]:
            for j in np.flatnonzero(joined[i]):
                if j not in level:
                    level.add(j)
                    step.append(j)
        found.append(step)
    return found[:-1]


def width_from_the_end(joined, nodes):
    last = levels(joined, nodes[0])[-1][-1]
    return max(len(level) for level in levels(joined, last))
