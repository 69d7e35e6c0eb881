r"""Weighted geometric medians argmin_x Σ_j w_j ‖x − x_j‖₂.

The objective is convex. A point x_k of the set is the median exactly if the pull of the others on
it, ‖Σ_{j: x_j ≠ x_k} w_j (x_j − x_k)/‖x_j − x_k‖ ‖, is at most its own weight. Else Weiszfeld's
iteration x ← Σ_j (w_j/d_j) x_j / Σ_j w_j/d_j, d_j = ‖x − x_j‖, finds it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from trellis.arrays import Float64s, as_array
from trellis.domains import number, whole
from trellis.errors import DataError

__all__ = ["geometric_median"]


def geometric_median(
    points: ArrayLike, weights: ArrayLike, *, max_iter: int = 200, tol: float = 1e-9
) -> Float64s:
    """Weighted geometric medians argmin_x Σ_j w_j ‖x − x_j‖ of many sets of points at once.

    A point is the median exactly if the pull of the others on it is at most its own weight; where
    none is, Weiszfeld's iteration finds it.

    Parameters
    ----------
    points : array of shape (m, k, p)
    weights : array of shape (m, k)
    max_iter : int
    tol : float
        Largest movement at which the iteration stops, relative to the spread of the points.

    Examples
    --------
    >>> import numpy as np
    >>> from trellis.regression import geometric_median
    >>> geometric_median(np.array([[[0.0], [1.0], [9.0]]]), np.ones((1, 3)))
    array([[1.]])
    """
    P = as_array(points, np.float64, "points", finite=True)
    w = as_array(weights, np.float64, "weights", finite=True)
    whole(0).check("max_iter", max_iter)
    number(at_least=0).check("tol", tol)
    if P.ndim != 3 or w.shape != P.shape[:2] or P.shape[1] < 1:
        raise DataError(f"points and weights have shapes {P.shape} and {w.shape}: expected "
                        "(m, k, p) and (m, k)")  # fmt: skip
    if not ((w >= 0).all() and (w.sum(1) > 0).all()):
        raise DataError("weights must not be negative, and not all 0 for a set of points")
    between = P[:, :, None, :] - P[:, None, :, :]
    far = np.linalg.norm(between, axis=3)  # (m, k, k)
    same = far == 0
    pull = np.divide(w[:, None, :], far, out=np.zeros_like(far), where=~same)
    force = np.linalg.norm(np.einsum("mij,mijp->mip", pull, between), axis=2)
    slack = (same * w[:, None, :]).sum(2) - force
    chosen = slack.argmax(1)
    x = np.take_along_axis(P, chosen[:, None, None], 1)[:, 0]
    left = np.flatnonzero(np.take_along_axis(slack, chosen[:, None], 1)[:, 0] < 0)
    spread = far.max((1, 2))
    x[left] = np.einsum("mk,mkp->mp", w[left], P[left]) / w[left].sum(1)[:, None]
    for _ in range(max_iter):
        if not len(left):
            break
        d = np.linalg.norm(P[left] - x[left][:, None], axis=2)
        # The median is no point of the set here; a visit to one is a coincidence, and is left.
        v = w[left] / np.maximum(d, 1e-12 * spread[left][:, None])
        new = np.einsum("mk,mkp->mp", v, P[left]) / v.sum(1)[:, None]
        moved = np.linalg.norm(new - x[left], axis=1)
        x[left] = new
        left = left[moved > tol * spread[left]]
    return x
