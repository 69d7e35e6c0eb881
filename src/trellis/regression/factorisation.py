"""K = I + gamma L factorised: solutions, log|K| and diag(K^-1), all of them exact.

With an order P of the nodes that keeps the factors sparse, K = P' F D F' P, F unit lower triangular
(SciPy's SuperLU; minimum degree). Graphs of near places have small separators, so F has 12 to 60
entries a node, and a million nodes are factorised in seconds. On a random graph almost everything
is joined to everything after a few steps: its factors fill up, and :func:`is_affordable` says so
before anything is computed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.arrays import Float64s
from trellis.errors import DataError

__all__ = ["Factorisation", "is_affordable"]

_WIDEST = 3000  # nodes of a separator; its cube is the number of operations
_SHARE = 0.1  # of all nodes that a separator may have: beyond, dense matrices are faster


def is_affordable(L: Any) -> bool:
    """Whether factors of a graph's matrix are sparse enough, by the widest level of a search.

    Examples
    --------
    >>> from trellis.regression import knn_graph, laplacian
    >>> near = laplacian(knn_graph(np.random.default_rng(0).uniform(size=(2000, 2))))
    >>> is_affordable(near)
    True
    """
    from trellis.kernels.sparse_inverse import widest_level

    widest = int(widest_level(L.indptr, L.indices))
    return bool(widest <= min(_WIDEST, 100 + _SHARE * L.shape[0]))


class Factorisation:
    """The factors of a sparse symmetric positive definite matrix.

    Parameters
    ----------
    K : sparse (n, n)

    Raises
    ------
    DataError
        If it is singular in floating point.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> factors = Factorisation(sp.diags_array([2.0, 4.0]))
    >>> factors.solve(np.ones(2)), round(factors.log_determinant(), 3), factors.inverse_diagonal()
    (array([0.5 , 0.25]), 2.079, array([0.5 , 0.25]))
    """

    def __init__(self, K: Any) -> None:
        from scipy.sparse.linalg import splu

        try:
            # Without pivoting the factors keep the symmetry: K is diagonally dominant.
            self._lu = splu(
                K.tocsc(),
                permc_spec="MMD_AT_PLUS_A",
                diag_pivot_thresh=0.0,
                options={"SymmetricMode": True},
            )
        except RuntimeError as error:
            raise DataError(f"smoothing over the graph has no solution: {error}") from error
        if not np.array_equal(self._lu.perm_r, self._lu.perm_c):
            raise DataError("smoothing over the graph has no solution: its matrix is singular")

    def solve(self, b: Float64s) -> Float64s:
        """Return K^-1 b for a vector or the columns of a matrix."""
        solution: Float64s = self._lu.solve(np.ascontiguousarray(b))
        return solution

    def log_determinant(self) -> float:
        """Return log|K|."""
        return float(np.log(self._lu.U.diagonal()).sum())

    def inverse_diagonal(self) -> Float64s:
        """Return diag(K^-1)."""
        from trellis.kernels.sparse_inverse import inverse_diagonal

        F = self._lu.L
        values = inverse_diagonal(
            F.indptr, F.indices, np.array(F.data), np.array(self._lu.U.diagonal())
        )
        diagonal: Float64s = values[self._lu.perm_c]
        return diagonal
