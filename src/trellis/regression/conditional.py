"""Unknown nodes of a Gaussian CRF given the known ones.

With M = K - I = sum_l gamma_l L_l, base predictions R (n, K), their weights a and what is smoothed
of them, t = R rho, the targets of the unknown nodes u given those of the known nodes o are

    y_u | y_o ~ N(m, (2 alpha K_uu)^-1)      K_uu m = (R a)_u + M_uu t_u + M_uo (t - y)_o

If no two unknown nodes are joined, K_uu is diagonal, and every node's answer is its own. Else K_uu
is factorised where that is affordable (exact), and where it is not, conjugate gradients give the
mean and random vectors the variances (:mod:`trellis.regression.spectral`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.arrays import Float64s
from trellis.regression.factorisation import Factorisation, is_affordable
from trellis.regression.spectral import inverse_diagonal, solve

__all__ = ["joined_to_known", "unknown_given_known"]


def unknown_given_known(
    M: Any,
    y: Float64s,
    mixed: Float64s,
    smoothed: Float64s,
    *,
    with_variance: bool = False,
    n_probes: int = 64,
    random_state: int = 0,
) -> tuple[Float64s, Float64s]:
    """Return means of all nodes, and diag(K_uu^-1), 0 for known nodes.

    Parameters
    ----------
    M : sparse (n, n)
    y : (n,)
        Targets, NaN where they are not known.
    mixed, smoothed : (n,)
        R a and R rho.
    with_variance : bool
        Else the second array is all 0.
    n_probes, random_state : int
        Random vectors where no factorisation is affordable.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> M = sp.csr_array([[1.0, -1.0], [-1.0, 1.0]])
    >>> none = np.zeros(2)
    >>> unknown_given_known(M, np.array([3.0, np.nan]), none, none, with_variance=True)
    (array([3. , 1.5]), array([0. , 0.5]))
    """
    unknown = np.isnan(y)
    u = np.flatnonzero(unknown)
    mean, variance = np.where(unknown, 0.0, y), np.zeros(len(y))
    if not len(u):
        return mean, variance
    rows = M if len(u) == len(y) else M[u]
    right = mixed[u] + rows @ np.where(unknown, smoothed, smoothed - mean)
    part = rows if len(u) == len(y) else rows[:, u].tocsr()
    own = 1.0 + part.diagonal()
    if not _has_edges(part):
        mean[u], variance[u] = right / own, 1.0 / own
    elif is_affordable(part):
        factors = Factorisation(_plus_identity(part))
        mean[u] = factors.solve(right)
        if with_variance:
            variance[u] = factors.inverse_diagonal()
    else:
        mean[u] = solve(part, 1.0, right)
        if with_variance:
            variance[u] = inverse_diagonal(part, 1.0, n_probes=n_probes, random_state=random_state)
    return mean, variance if with_variance else np.zeros(len(y))


def joined_to_known(
    mixed: Float64s, smoothed: Float64s, weight: Float64s, pull: Float64s
) -> tuple[Float64s, Float64s]:
    """Return means and diag(K_uu^-1) of nodes that are joined to known nodes only.

    Parameters
    ----------
    mixed, smoothed : (m,)
        R a and R rho.
    weight, pull : (m,)
        Sums over a node's neighbours: of what links them, and of that times their y - R rho.

    Examples
    --------
    >>> none = np.zeros(1)
    >>> joined_to_known(none, none, np.array([1.0]), np.array([3.0]))
    (array([1.5]), array([0.5]))
    """
    own = 1.0 + weight
    return (mixed + weight * smoothed + pull) / own, 1.0 / own


def _has_edges(part: Any) -> bool:
    """Whether any entry off the diagonal is not 0."""
    return bool(np.count_nonzero(part.data) > np.count_nonzero(part.diagonal()))


def _plus_identity(M: Any) -> Any:
    import scipy.sparse as sp

    return (M + sp.diags_array(np.ones(M.shape[0]))).tocsc()
