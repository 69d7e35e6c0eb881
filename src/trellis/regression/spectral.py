"""Linear algebra of K = I + gamma L, L the Laplacian of a similarity graph.

K is symmetric, its eigenvalues are 1 + gamma lambda_i with lambda_i >= 0, its rows sum to 1, and
its inverse has no negative entry. L may also be a principal submatrix of a Laplacian, which is what
is left when the values of some nodes are known: then rows of K sum to 1 or more. Needed are

    K^-1 r              conjugate gradients (condition number at most 1 + gamma lambda_max)
    r'K^-1 r, log|K|    for all gamma at once, from a *spectral measure*: values t_i and weights w_i
                        with  r' f(L) r = sum_i w_i f(t_i)  and  tr f(L) = sum_i w_i f(t_i)
    diag(K^-1)          predictive variances

The measure is exact from an eigendecomposition (small graphs; each connected component by itself),
or by Lanczos quadrature: m steps of the Lanczos recurrence from r give a tridiagonal matrix whose
eigenvalues are the t_i and whose squared first eigenvector entries are the w_i (times r'r). For the
trace the starting vectors are random signs ("stochastic Lanczos quadrature", Ubaru, Chen and Saad,
2017); the error of tr f is of the order of sqrt(n / probes), that is, tiny beside n.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from trellis.arrays import Float64s
from trellis.errors import DataError

__all__ = [
    "Lanczos",
    "eigen",
    "inverse_diagonal",
    "largest_component",
    "neighbours_together",
    "own_generator",
    "random_signs",
    "solve",
]


_ORDER_FROM = 50_000
_BLOCK = 300
_EXACT_DIAGONAL_UP_TO = 2000  # nodes of a connected component


def _components(L: Any) -> list[npt.NDArray[np.intp]]:
    """Return the nodes of each connected component."""
    from scipy.sparse.csgraph import connected_components

    count, label = connected_components(L, directed=False)
    order = np.argsort(label, kind="stable")
    return np.split(order, np.cumsum(np.bincount(label, minlength=count))[:-1])


def largest_component(L: Any) -> int:
    """Return the number of nodes of the largest connected component."""
    from scipy.sparse.csgraph import connected_components

    return int(np.bincount(connected_components(L, directed=False)[1]).max())


def eigen(L: Any) -> tuple[Float64s, Float64s]:
    """Return eigenvalues (n,) and eigenvectors (n, n) of L, each component by itself."""
    from scipy.linalg import eigh

    n = L.shape[0]
    values, vectors = np.zeros(n), np.zeros((n, n))
    place = 0
    for nodes in _components(L):
        stop = place + len(nodes)
        if len(nodes) == 1:
            vectors[nodes[0], place] = 1.0
        else:
            block = L[nodes][:, nodes].toarray()
            values[place:stop], vectors[nodes, place:stop] = eigh(block, driver="evd")
        place = stop
    return np.maximum(values, 0.0), vectors


def _factorised(K: Any, b: Float64s) -> Float64s:
    """Return K^-1 b."""
    from scipy.sparse.linalg import splu

    try:
        solution: Float64s = splu(K.tocsc(), permc_spec="MMD_AT_PLUS_A").solve(b)
    except RuntimeError as error:
        raise DataError(f"smoothing over the graph has no solution: {error}") from error
    return solution


def solve(L: Any, gamma: float, R: Float64s) -> Float64s:
    """Return (I + gamma L)^-1 R for a vector or the columns of a matrix."""
    import scipy.sparse as sp
    from scipy.sparse.linalg import cg

    if gamma == 0 or L.nnz == 0:
        return R.copy()
    n = L.shape[0]
    diagonal = 1.0 + gamma * L.diagonal()
    K = (sp.diags_array(np.ones(n)) + gamma * L).tocsr()
    jacobi = sp.diags_array(1.0 / diagonal)
    tolerance = 1e-12 if n <= 100_000 else 1e-9
    columns = R[:, None] if R.ndim == 1 else R
    result = np.empty_like(columns)
    for c in range(columns.shape[1]):
        b = np.ascontiguousarray(columns[:, c])
        start = b / diagonal
        x, failed = cg(K, b, x0=start, rtol=tolerance, maxiter=min(n, 2000), M=jacobi)
        # Strong smoothing over a long graph converges slowly: there a factorisation is affordable.
        result[:, c] = _factorised(K, b) if failed else x
    return result.reshape(R.shape)


def inverse_diagonal(
    L: Any, gamma: float, *, n_probes: int = 64, random_state: int = 0
) -> Float64s:
    """Return diag((I + gamma L)^-1): exact on small components, else a stochastic estimate.

    The estimate is the mean of z * K^-1 z over random signs z, kept within what is known of it:
    1 / K_ii <= (K^-1)_ii <= 1.
    """
    from scipy.linalg import inv

    n = L.shape[0]
    diagonal: Float64s = 1.0 / (1.0 + gamma * L.diagonal())  # right for nodes without neighbours
    if gamma == 0 or L.nnz == 0:
        return diagonal
    large: list[npt.NDArray[np.intp]] = []
    small: list[npt.NDArray[np.intp]] = [np.empty(0, dtype=np.intp)]
    for nodes in _components(L):
        if len(nodes) > _EXACT_DIAGONAL_UP_TO:
            large.append(nodes)
        elif len(nodes) > 1:  # many small components are inverted together
            if len(small[-1]) + len(nodes) > _BLOCK:
                small.append(nodes)
            else:
                small[-1] = np.concatenate([small[-1], nodes])
    for nodes in small:
        if len(nodes):
            block = np.eye(len(nodes)) + gamma * L[nodes][:, nodes].toarray()
            diagonal[nodes] = np.diag(inv(block, assume_a="pos"))
    if large:
        nodes = np.sort(np.concatenate(large))
        order, part = neighbours_together(L if len(nodes) == n else L[nodes][:, nodes].tocsr())
        nodes = nodes[order]
        total = np.zeros(len(nodes))
        rng = own_generator(random_state, 0)
        for _ in range(n_probes):
            z = random_signs(rng, len(nodes), 1)
            total += (z * solve(part, gamma, z))[:, 0]
        low = 1.0 / (1.0 + gamma * part.diagonal())
        diagonal[nodes] = np.clip(total / n_probes, low, 1.0)
    return diagonal


def neighbours_together(L: Any) -> tuple[npt.NDArray[np.intp], Any]:
    """Return an order of the nodes and L in that order, neighbours close to each other.

    Products with L are then several times faster on large graphs, because memory is read in turn.
    """
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    if L.shape[0] < _ORDER_FROM:
        return np.arange(L.shape[0]), L
    order = reverse_cuthill_mckee(L, symmetric_mode=True).astype(np.intp)
    ordered = L[order][:, order].tocsr()
    ordered.sort_indices()
    return order, ordered


def own_generator(seed: int, purpose: int) -> np.random.Generator:
    """Return a generator whose numbers no ``default_rng(seed)`` gives.

    Users draw data from ``default_rng(0)``, too; probes made of the same bits would depend on it.
    """
    return np.random.default_rng([seed, 0x7E11, purpose])


def random_signs(rng: np.random.Generator, n: int, count: int) -> Float64s:
    """Return an (n, count) array of -1 and 1."""
    return rng.integers(0, 2, size=(n, count)).astype(np.float64) * 2 - 1


class Lanczos:
    """The Lanczos recurrence on L from the columns of `start`, all side by side.

    No reorthogonalisation: it would cost memory for every step, and quadrature does without.
    """

    def __init__(self, L: Any, start: Float64s) -> None:
        self._L = L
        self._norms = np.linalg.norm(start, axis=0)
        safe = np.where(self._norms > 0, self._norms, 1.0)
        self._q = start / safe
        self._previous = np.zeros_like(start)
        self._alpha: list[Float64s] = []
        self._beta: list[Float64s] = [np.zeros(start.shape[1])]

    def extend(self, steps: int) -> None:
        """Take more steps."""
        for _ in range(steps):
            w = self._L @ self._q
            self._previous *= self._beta[-1]
            w -= self._previous
            alpha = np.einsum("ij,ij->j", self._q, w)
            w -= np.multiply(alpha, self._q, out=self._previous)
            beta = np.sqrt(np.einsum("ij,ij->j", w, w))
            # Below this the Krylov space is used up: the vector is rounding error, and a 0 ends it.
            alive = beta > 1e-13 * (1.0 + np.abs(alpha))
            w *= np.where(alive, 1.0 / np.where(alive, beta, 1.0), 0.0)
            self._previous, self._q = self._q, w
            self._alpha.append(alpha)
            self._beta.append(beta * alive)

    def measure(self, columns: slice) -> tuple[Float64s, Float64s]:
        """Return values and weights with sum_c start_c' f(L) start_c = sum_i w_i f(t_i)."""
        from scipy.linalg import eigh_tridiagonal

        alpha, beta = np.array(self._alpha), np.array(self._beta[1:-1])
        values, weights = [], []
        for c in range(*columns.indices(len(self._norms))):
            t, vectors = eigh_tridiagonal(alpha[:, c], beta[:, c])
            values.append(np.maximum(t, 0.0))
            weights.append(self._norms[c] ** 2 * vectors[0] ** 2)
        return np.concatenate(values), np.concatenate(weights)
