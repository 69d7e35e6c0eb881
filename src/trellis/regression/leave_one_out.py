r"""Leave-one-out error of a Gaussian CRF: what is learnt from it, in closed form.

    p(y) ~ exp(-sum_k alpha_k |y - R_k|^2 - sum_l beta_l (y - R rho)' L_l (y - R rho))

has y ~ N(K^-1 s, (2 alpha K)^-1) with alpha = sum_k alpha_k, a_k = alpha_k / alpha, gamma_l =
beta_l / alpha and

    K = I + sum_l gamma_l L_l          s = R a + (K - I) R rho

(rho = 0 is the published model: neighbours have similar targets. With rho = 1 they have similar
*residuals*.) Given all other targets, node i has the mean y_i - e_i and the variance 1 / (2 alpha
K_ii), where

    e_i = [K y - R a - (K - I) R rho]_i / K_ii.

No determinant, no solution: the error costs a product with L. It is linear in a and rho, so for
each gamma these are a least-squares problem with a_k, rho_k >= 0, sum_k a_k = 1 and
sum_k rho_k <= 2 (:func:`learn`; rho = 700 can have the least error at forty nodes, and nowhere
else). alpha then is the one of the pseudo-likelihood, 1 / (2 mean_i K_ii e_i^2).

Among neighbours R a counts for little, and where there are none it is all there is. So every node
counts twice: what is minimised is the mean of e_i^2 plus that of (y_i - R_i a)^2, the error without
any neighbour.

Where the targets of some nodes are not known (u), these are integrated out. With an observation
noise t that is next to nothing and O the diagonal of known nodes, P = K + O / t gives

    e_i = (y_i - m_i) / (1 - P^-1_ii / t)     m = P^-1 (s + O y / t)

and (1 - P^-1_ii / t) / t takes the place of K_ii. This needs the diagonal of an inverse
(:mod:`trellis.regression.factorisation`), on a part of the graph if it is large.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from trellis.arrays import Float64s
from trellis.regression.factorisation import Factorisation, is_affordable

__all__ = ["Learnt", "learn", "residuals"]

Criterion = Literal["leave-one-out", "pseudo-likelihood"]

_LOGS = np.linspace(-6.0, 7.0, 27)  # of gamma; beyond, neighbours say nothing or everything
_LARGEST_RHO = 2.0  # a base that dares too little may be doubled
_VARIANCE_FLOOR = 1e-10
_NOISE = 1e-8  # of known targets, where others are unknown, beside their own variance
_LARGEST_PART = 20_000  # nodes of a graph with unknown targets that are learnt from


@dataclass(frozen=True)
class Learnt:
    """Parameters, and what they leave at the known nodes.

    Attributes
    ----------
    alpha : float
    a, rho : (K,)
    gamma : (B,)
    residuals : (n,)
        e, the leave-one-out errors.
    precisions : (n,)
        K_ii, or what takes its place.
    alone : (K,)
        The best a if there were no graph.
    error, error_alone : float
        Mean squared leave-one-out errors, with the graphs and without.
    """

    alpha: float
    a: Float64s
    rho: Float64s
    gamma: Float64s
    residuals: Float64s
    precisions: Float64s
    alone: Float64s
    error: float
    error_alone: float


@dataclass(frozen=True)
class _Terms:
    """e = y_part - R_part a - smooth_part rho, and the precisions, for one gamma."""

    y: Float64s
    R: Float64s
    smooth: Float64s
    precision: Float64s


Terms = Callable[[Float64s], _Terms]


def learn(
    laplacians: Sequence[Any],
    y: Float64s,
    R: Float64s,
    *,
    criterion: Criterion = "leave-one-out",
    smooth_bases: bool = True,
) -> Learnt:
    """Minimise the leave-one-out error, or maximise the pseudo-likelihood.

    Parameters
    ----------
    laplacians : list of sparse (n, n)
    y : (n,)
        Targets, NaN where they are not known.
    R : (n, K)
        Base predictions, out-of-fold at known nodes.
    criterion : "leave-one-out" or "pseudo-likelihood"
    smooth_bases : bool
        Whether rho is learnt; else it is 0.

    Examples
    --------
    >>> from trellis.regression import knn_graph, laplacian, normalise
    >>> place = np.linspace(0, 1, 60)[:, None]
    >>> L = laplacian(normalise(knn_graph(place, 2)))
    >>> found = learn([L], np.sin(9 * place[:, 0]), np.zeros((60, 1)))
    >>> bool(found.gamma[0] > 10), bool(abs(found.residuals).mean() < 0.03)
    (True, True)
    """
    known = ~np.isnan(y)
    # a sums to 1 and L 1 = 0, so nothing but rounding depends on where numbers begin.
    centre = float(np.mean(y[known]))
    y, R = y - centre, R - centre
    if known.all():
        terms = _all_known(laplacians, y, R)
    else:
        part = _part(sum(laplacians), known)
        if len(part) < len(y):
            laplacians, y, R = [_among(L, part) for L in laplacians], y[part], R[part]
        if is_affordable(sum(laplacians)):
            terms = _some_known(laplacians, y, R)
        else:  # among themselves the known ones are still a graph
            chosen = np.flatnonzero(~np.isnan(y))
            y, R = y[chosen], R[chosen]
            terms = _all_known([_among(L, chosen) for L in laplacians], y, R)
    floor = _VARIANCE_FLOOR * float(np.var(y[~np.isnan(y)])) + np.finfo(float).tiny

    without = terms(np.zeros(len(laplacians)))
    e_alone, alone = _fitted(without, "leave-one-out", False)
    apart = without if criterion == "leave-one-out" else None

    def cost(gamma: Float64s) -> float:
        t = terms(gamma)
        e, weights = _fitted(t, criterion, smooth_bases, apart)
        if apart is not None:
            far = apart.y - apart.R @ weights[: R.shape[1]]
            return float(np.mean(e**2) + np.mean(far**2))
        spread = max(float(np.mean(t.precision * e**2)), floor)
        return float(np.log(spread) - np.mean(np.log(t.precision)))

    gamma = _search(cost, len(laplacians))
    t = terms(gamma)
    e, weights = _fitted(t, criterion, smooth_bases, apart)
    alpha = 0.5 / max(float(np.mean(t.precision * e**2)), floor)
    k = R.shape[1]
    return Learnt(
        alpha, weights[:k], weights[k:], gamma, e, t.precision, alone[:k],
        float(np.mean(e**2)), float(np.mean(e_alone**2)),
    )  # fmt: skip


def residuals(laplacians: Sequence[Any], y: Float64s, s: Float64s, gamma: Float64s) -> _Terms:
    """Return e (as `y`) and the precisions of a model whose s, the mean times K, is known."""
    t = _all_known(laplacians, y, np.zeros((len(y), 1)))(gamma)
    return _Terms(t.y - s / t.precision, t.R, t.smooth, t.precision)


def _all_known(laplacians: Sequence[Any], y: Float64s, R: Float64s) -> Terms:
    of_y = [L @ y for L in laplacians]
    of_R = [L @ R for L in laplacians]
    degrees = [L.diagonal() for L in laplacians]

    def terms(gamma: Float64s) -> _Terms:
        precision = 1.0 + _weighted(gamma, degrees)
        each = precision[:, None]
        smooth = _weighted(gamma, of_R)
        return _Terms((y + _weighted(gamma, of_y)) / precision, R / each, smooth / each, precision)

    return terms


def _some_known(laplacians: Sequence[Any], y: Float64s, R: Float64s) -> Terms:
    import scipy.sparse as sp

    known = ~np.isnan(y)
    values = np.where(known, y, 0.0)
    of_R = [L @ R for L in laplacians]
    largest = [float(L.diagonal().max()) for L in laplacians]
    k = R.shape[1]

    def terms(gamma: Float64s) -> _Terms:
        noise = _NOISE / float(np.sqrt(1.0 + np.dot(gamma, largest)))  # cut off, lost: as much
        P = sp.diags_array(1.0 + known / noise) + _weighted(gamma, laplacians)
        factors = Factorisation(P)
        sides = np.column_stack([values / noise, R, _weighted(gamma, of_R)])
        left = 1.0 - factors.inverse_diagonal()[known] / noise
        solved = factors.solve(sides)[known]
        return _Terms(
            (y[known] - solved[:, 0]) / left,
            solved[:, 1 : 1 + k] / left[:, None],
            solved[:, 1 + k :] / left[:, None],
            left / noise,
        )

    return terms


def _weighted(gamma: Float64s, parts: Sequence[Any]) -> Any:
    return sum(g * part for g, part in zip(gamma, parts, strict=True))


def _fitted(
    t: _Terms, criterion: Criterion, smooth_bases: bool, apart: _Terms | None = None
) -> tuple[Float64s, Float64s]:
    """Return e, and a and rho one after the other, the best ones for a gamma.

    With `apart`, the terms without neighbours, also for these.
    """
    from scipy.optimize import nnls

    k = t.R.shape[1]
    columns = np.column_stack([t.R, t.smooth]) if smooth_bases else t.R
    scale = np.sqrt(t.precision) if criterion == "pseudo-likelihood" else np.ones(len(t.y))
    rows = np.column_stack([columns, t.y]) * scale[:, None]
    if apart is not None:
        none = np.zeros((len(apart.y), columns.shape[1] - k))
        rows = np.vstack([rows, np.column_stack([apart.R, none, apart.y])])
    # All that least squares need of the rows is a triangle with a side for each column.
    triangle: Any = np.linalg.qr(rows, mode="r")
    size = 1.0 + np.abs(triangle).max()
    heavy = 1e5 * size  # so heavy a row that a sums to 1 to ten digits
    sums = np.zeros((2, columns.shape[1]))
    sums[0, :k] = sums[1, k:] = heavy
    sides = np.append(triangle[:, -1], [heavy, _LARGEST_RHO * heavy])
    weights, _ = nnls(np.vstack([triangle[:, :-1], sums[:1]]), sides[:-1])
    if weights[k:].sum() > _LARGEST_RHO:  # convex: then the best there is has this sum
        weights, _ = nnls(np.vstack([triangle[:, :-1], sums]), sides)
        weights[k:] *= _LARGEST_RHO / weights[k:].sum()
    weights[:k] /= weights[:k].sum()
    e: Float64s = t.y - columns @ weights
    return e, np.concatenate([weights, np.zeros(2 * k - len(weights))])


def _search(cost: Callable[[Float64s], float], n_graphs: int) -> Float64s:
    """Minimise over gamma >= 0: one graph after the other, until none changes much."""
    from scipy.optimize import minimize_scalar

    gamma, best = np.zeros(n_graphs), cost(np.zeros(n_graphs))
    for _ in range(1 if n_graphs == 1 else 4):
        before = best
        for index in range(n_graphs):

            def at(log_gamma: float, gamma: Float64s = gamma, index: int = index) -> float:
                return cost(_replaced(gamma, index, np.exp(log_gamma)))

            costs = [at(v) for v in _LOGS]
            i = int(np.argmin(costs))
            bounds = _LOGS[max(i - 1, 0)], _LOGS[min(i + 1, len(_LOGS) - 1)]
            minimum: Any = minimize_scalar(
                at, bounds=bounds, method="bounded", options={"xatol": 1e-3}
            )
            without = _replaced(gamma, index, 0.0)
            for found, value in (
                (without, cost(without)),
                (_replaced(gamma, index, np.exp(_LOGS[i])), costs[i]),
                (_replaced(gamma, index, np.exp(minimum.x)), float(minimum.fun)),
            ):
                if value < best:
                    best, gamma = value, found
        if before - best < 1e-4 * abs(before):
            break
    return gamma


def _replaced(gamma: Float64s, index: int, value: float) -> Float64s:
    changed = gamma.copy()
    changed[index] = value
    return changed


def _among(L: Any, nodes: npt.NDArray[np.intp]) -> Any:
    """Return the Laplacian of some nodes, without the edges that lead out of them."""
    import scipy.sparse as sp

    part = L[nodes][:, nodes]
    return (part - sp.diags_array(np.asarray(part.sum(axis=1)).ravel())).tocsr()


def _part(L: Any, known: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """Return the nodes to learn from: all, or those around some of the known if they are many."""
    from scipy.sparse.csgraph import breadth_first_order

    n = L.shape[0]
    if n <= _LARGEST_PART:
        return np.arange(n)
    chosen = np.zeros(n, dtype=bool)
    for start in np.flatnonzero(known)[:: max(1, int(known.sum()) // 64)]:
        if chosen[start]:
            continue
        near = breadth_first_order(L, start, directed=False, return_predecessors=False)
        chosen[near[: _LARGEST_PART // 4]] = True
        if chosen.sum() >= _LARGEST_PART:
            break
    return np.flatnonzero(chosen)
