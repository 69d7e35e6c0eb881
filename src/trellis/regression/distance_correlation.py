"""Distance correlation: zero only under independence (Székely, Rizzo and Bakirov, 2007).

For paired samples x_i in R^p, z_i in R^q, i = 1..N, let a_ij = |x_i - x_j|, b_ij = |z_i - z_j|, and
A, B the same with row means, column means removed and the grand mean added. Then

    dCov^2(x, z)  = (1/N^2) sum_ij A_ij B_ij            (the V-statistic)
    dCorr^2(x, z) = dCov^2(x, z) / sqrt(dCov^2(x, x) dCov^2(z, z)),  0 if the root is 0

Three ways to compute it, the first two exact:

* z fixed, x univariate and changing: rows of B sum to 0, so sum_ij A_ij B_ij = sum_ij a_ij B_ij.
  The means are found once (:class:`CentredDistances`), a row of B is made anew for all x together,
  and dVar^2(x) = dCov^2(x, x) needs only a sort. Memory is linear in N.
* both univariate: sum_ij a_ij b_ij in O(N log N).
* N too large for N x N operations: dCov^2(x, z) = C_q E_u dCov^2(x, u'z) over random directions u,
  C_q = sqrt(pi) Gamma((q+1)/2) / Gamma(q/2) (Huang and Huo, 2017). The same directions serve every
  x, so that candidates are compared on equal terms; the value itself has an error of some percent.
"""

from __future__ import annotations

from math import frexp, ldexp, lgamma, log, pi
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from trellis.arrays import Float64s, as_array
from trellis.domains import nothing, one_of, whole
from trellis.errors import DataError
from trellis.regression.rows import finite_rows
from trellis.regression.spectral import own_generator

__all__ = ["CentredDistances", "distance_correlation", "distance_covariance"]

_EXACT_UP_TO = 10_000  # rows: a hundred million distances
_LARGE = 1e70  # whose fourth power, and the sum of many, is a float


def distance_covariance(
    x: Any,
    z: Any,
    *,
    method: Literal["auto", "exact", "projections"] = "auto",
    n_projections: int = 200,
    random_state: int = 0,
) -> float:
    """Return dCov(x, z), the root of the V-statistic dCov^2.

    The parameters are those of :func:`distance_correlation`.

    Examples
    --------
    >>> distance_covariance([0, 1], [0, 3])
    0.8660254037844386
    """
    (a, a_scale), (b, b_scale) = _scaled(x, "x"), _scaled(z, "z")
    covariance, _, _ = _moments(a, b, method, n_projections, random_state)
    return float(np.sqrt(covariance) * np.sqrt(a_scale) * np.sqrt(b_scale))


def distance_correlation(
    x: Any,
    z: Any,
    *,
    method: Literal["auto", "exact", "projections"] = "auto",
    n_projections: int = 200,
    random_state: int = 0,
) -> float:
    """Return dCorr(x, z), between 0 (independent) and 1.

    Parameters
    ----------
    x, z : array of shape (n,) or (n, p) and (n, q)
        Paired observations; p and q may differ.
    method : {"auto", "exact", "projections"}
        "auto" is exact unless one side is multivariate and n above 10,000.
    n_projections : int
        Random directions, for "projections".
    random_state : int
        Seed of the directions.

    Raises
    ------
    DataError
        If the sizes differ, there is no observation, or a value is not finite.

    Examples
    --------
    >>> round(distance_correlation([1, 2, 3], [[3, 0], [5, 0], [7, 0]]), 12)
    1.0
    >>> round(distance_correlation([-1, 0, 1], [1, 0, 1]), 6)
    0.562341
    """
    (a, _), (b, _) = _scaled(x, "x"), _scaled(z, "z")
    covariance, x_variance, z_variance = _moments(a, b, method, n_projections, random_state)
    return float(np.sqrt(_ratio(np.array([covariance]), np.array([x_variance]), z_variance)[0]))


class CentredDistances:
    """The double-centred distances of fixed observations, ready for many univariate partners.

    Parameters
    ----------
    Z : array of shape (n, q) or (n,)
        The fixed observations.
    n_projections : int or None
        None: exact up to 10,000 rows, 200 random directions above. A number: that many.
    random_state : int
        Seed of the directions.

    Attributes
    ----------
    variance : float
        dCov^2(Z, Z).

    Examples
    --------
    >>> fixed = CentredDistances([[3.0, 0.0], [5.0, 0.0], [7.0, 0.0]])
    >>> fixed.correlation_squared(np.array([1.0, 2.0, 3.0])).round(12)
    array([1.])
    """

    def __init__(self, Z: Any, *, n_projections: int | None = None, random_state: int = 0) -> None:
        whole(0).check("random_state", random_state)
        self._Z = finite_rows(Z, "Z", flat=True)
        _check_size(self._Z, "Z")
        n, q = self._Z.shape
        if n_projections is None and n > _EXACT_UP_TO and q > 1:
            n_projections = 200
        (nothing | whole(1)).check("n_projections", n_projections)
        self._projected: list[Float64s] | None = None
        if q == 1:  # one direction is all there are
            self._projected = [self._Z[:, 0]]
            self._constant = 1.0
            self.variance = _univariate_variance(self._Z[:, 0])
        elif n_projections is not None:
            rng = own_generator(random_state, 3)
            directions = rng.normal(size=(2, n_projections, q))
            directions /= np.linalg.norm(directions, axis=2, keepdims=True)
            self._projected = [self._Z @ u for u in directions[0]]
            self._constant = float(np.exp(0.5 * log(pi) + lgamma((q + 1) / 2) - lgamma(q / 2)))
            # Two independent directions a term: E_u E_v dCov^2(u'Z, v'Z).
            pairs = zip(self._projected, directions[1], strict=True)
            terms = [_univariate_covariance(a, self._Z @ v) for a, v in pairs]
            self.variance = self._constant**2 * max(float(np.mean(terms)), 0.0)
        else:
            self._means = _mean_distances(self._Z)
            self.variance = _covariance(self._Z, self._means, self._Z, self._means)

    def covariance_squared(self, x: Any) -> Float64s:
        """Return dCov^2(x, Z) for each row of `x`, (c, n) or (n,)."""
        rows, n = self._rows(x), len(self._Z)
        if self._projected is None:
            from trellis.kernels.regression import weighted_difference_sums

            grand = float(self._means.mean())
            sums: Float64s = weighted_difference_sums(rows, self._Z, self._means, grand)
            return np.maximum(sums / n**2, 0.0)
        terms = [[_univariate_covariance(row, p) for p in self._projected] for row in rows]
        return np.asarray(self._constant * np.maximum(np.mean(terms, axis=1), 0.0))

    def correlation_squared(self, x: Any) -> Float64s:
        """Return dCorr^2(x, Z) for each row of `x`, (c, n) or (n,)."""
        rows = self._rows(x)
        covariance = self.covariance_squared(rows)
        variances = np.array([_univariate_variance(row) for row in rows])
        return _ratio(covariance, variances, self.variance)

    def _rows(self, x: Any) -> Float64s:
        """Observations to be paired with Z, (c, n)."""
        rows, n = np.atleast_2d(as_array(x, np.float64, "x")), len(self._Z)
        if rows.ndim != 2 or rows.shape[1] != n:
            raise DataError(f"expected rows of {n} numbers, got an array of {rows.shape}")
        if not np.isfinite(rows).all():
            raise DataError("x holds a NaN or an infinite value")
        _check_size(rows, "x")
        return rows


def _check_size(rows: Float64s, name: str) -> None:
    """Refuse numbers whose squares are no floats; they are never scaled in silence here."""
    most = float(np.abs(rows).max(initial=0.0))
    if most > _LARGE:
        raise DataError(f"numbers of {name} are beyond {_LARGE:.0e}: their squares overflow")
    if 0 < most < 1 / _LARGE:
        raise DataError(f"numbers of {name} are all below {1 / _LARGE:.0e}: their squares vanish")


def _scaled(values: Any, name: str) -> tuple[Float64s, float]:
    """Observations and a factor; what is so large or small that squares overflow is scaled to 1."""
    rows = finite_rows(values, name, flat=True)
    most = float(np.abs(rows).max())
    if most == 0 or 1 / _LARGE < most < _LARGE:
        return rows, 1.0
    scale = ldexp(1.0, frexp(most)[1] - 1)  # the power of two that is next below
    return rows / scale, scale


def _moments(
    a: Float64s, b: Float64s, method: str, n_projections: int, random_state: int
) -> tuple[float, float, float]:
    """Return dCov^2(a, b), dVar^2(a), dVar^2(b)."""
    if len(a) != len(b):
        raise DataError(f"x has {len(a)} observations but z has {len(b)}; they are paired")
    one_of("auto", "exact", "projections").check("method", method)
    whole(1).check("n_projections", n_projections)
    whole(0).check("random_state", random_state)
    if a.shape[1] > 1 and b.shape[1] == 1:
        covariance, b_variance, a_variance = _moments(b, a, method, n_projections, random_state)
        return covariance, a_variance, b_variance
    if b.shape[1] == 1:
        x_variance, z_variance = _univariate_variance(a[:, 0]), _univariate_variance(b[:, 0])
        return max(_univariate_covariance(a[:, 0], b[:, 0]), 0.0), x_variance, z_variance
    if method == "exact" and len(a) > _EXACT_UP_TO:
        raise DataError(f"the exact way needs {len(a)} x {len(a)} distances; use projections")
    projected = method == "projections" or len(a) > _EXACT_UP_TO
    if a.shape[1] == 1:
        fixed = CentredDistances(
            b, n_projections=n_projections if projected else None, random_state=random_state
        )
        covariance = float(fixed.covariance_squared(a[:, 0])[0])
        return covariance, _univariate_variance(a[:, 0]), fixed.variance
    if projected:
        raise DataError(
            "random projections need a univariate side, and two multivariate samples of more than"
            f" {_EXACT_UP_TO} rows do not fit; draw a sample of the rows"
        )
    a_means, b_means = _mean_distances(a), _mean_distances(b)
    covariance = max(_covariance(a, a_means, b, b_means), 0.0)
    return covariance, _covariance(a, a_means, a, a_means), _covariance(b, b_means, b, b_means)


def _ratio(covariance: Float64s, x_variance: Float64s, z_variance: float) -> Float64s:
    root = np.sqrt(x_variance) * np.sqrt(z_variance)
    ratio = np.divide(covariance, root, out=np.zeros_like(covariance), where=root > 0)
    return np.asarray(np.minimum(ratio, 1.0))


def _mean_distances(Z: Float64s) -> Float64s:
    """Return the mean of |z_i - z_j| over j, for each i."""
    from trellis.kernels.regression import distance_sums

    means: Float64s = distance_sums(Z) / len(Z)
    return means


def _covariance(a: Float64s, a_means: Float64s, b: Float64s, b_means: Float64s) -> float:
    """Return dCov^2(a, b) of two multivariate samples, from their mean distances."""
    from trellis.kernels.regression import centred_products

    grand = float(a_means.mean()), float(b_means.mean())
    return float(centred_products(a, a_means, grand[0], b, b_means, grand[1])) / len(a) ** 2


def _distance_means(x: Float64s, order: npt.NDArray[np.intp]) -> Float64s:
    """Return the mean of |x_i - x_j| over j, for each i; `order` sorts `x`."""
    n = len(x)
    ascending = x[order]
    below = np.arange(n)
    prefix = np.cumsum(ascending) - ascending
    total = prefix[-1] + ascending[-1]
    sums = (2 * below - n + 1) * ascending + total - ascending - 2 * prefix
    means = np.empty(n)
    means[order] = sums / n
    return means


def _univariate_variance(x: Float64s) -> float:
    """Return dCov^2(x, x) of a univariate sample in O(n log n)."""
    n = len(x)
    low, high = x.min(), x.max()
    if low == high:
        return 0.0
    unit = (x - x.mean()) / (high - low)  # so that neither offset nor size costs digits
    means = _distance_means(unit, np.argsort(unit, kind="stable"))
    squares = 2 * float(unit @ unit) / n - 2 * float(unit.mean()) ** 2
    value = squares - 2 * float(means @ means) / n + float(means.mean()) ** 2
    return max(value, 0.0) * float(high - low) * float(high - low)


def _univariate_covariance(x: Float64s, y: Float64s) -> float:
    """Return dCov^2(x, y) of two univariate samples in O(n log n)."""
    from trellis.kernels.regression import difference_products

    n = len(x)
    x_size, y_size = float(np.ptp(x)), float(np.ptp(y))
    if x_size == 0 or y_size == 0:
        return 0.0
    x, y = (x - x.mean()) / x_size, (y - y.mean()) / y_size
    by_x, by_y = np.argsort(x, kind="stable"), np.argsort(y, kind="stable")
    rank = np.empty(n, dtype=np.int64)
    rank[by_y] = np.arange(1, n + 1)
    products = difference_products(x[by_x], y[by_x], rank[by_x])
    a, b = _distance_means(x, by_x), _distance_means(y, by_y)
    value = products / n**2 - 2 * float(a @ b) / n + float(a.mean() * b.mean())
    return value * x_size * y_size
