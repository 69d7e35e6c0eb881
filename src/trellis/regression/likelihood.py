"""The likelihood of a Gaussian CRF and its maximum.

Given base predictions r and the Laplacian L of n nodes, the targets have the density

    p(y) ~ exp(-alpha |y - r|^2 - beta y'Ly),   that is   y ~ N(mu, (2Q)^-1)
    Q = alpha I + beta L,   mu = Q^-1 alpha r.

With gamma = beta/alpha and K = I + gamma L,

    -ll = alpha S(gamma) - (n/2) log alpha - 1/2 log|K|,   S(gamma) = y'Ky - 2 y'r + r'K^-1 r,

up to (n/2) log pi. The best alpha is n / (2 S(gamma)), and what is left is a search over one number
gamma >= 0 (:func:`search`); gamma = 0 is compared by itself. When r reproduces y, S vanishes and
alpha has no bound: it is capped where the standard deviation of a node is 1e-5 of that of y.

Several base predictions R (n, K) and several graphs L_1..L_B have Q = sum(alpha) I + sum_l beta_l
L_l and mu = Q^-1 R alpha; then

    d(-ll)/d alpha_k = y'y - 2 y'R_k + 2 R_k'mu - mu'mu - 1/2 tr Q^-1
    d(-ll)/d beta_l  = y'L_l y - mu'L_l mu - 1/2 tr Q^-1 L_l

and L-BFGS runs over the logarithms (:func:`search_many`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import pi
from typing import Any, Protocol

import numpy as np

from trellis.arrays import Float64s
from trellis.errors import DataError
from trellis.regression.factorisation import Factorisation, is_affordable
from trellis.regression.spectral import (
    Lanczos,
    eigen,
    largest_component,
    neighbours_together,
    own_generator,
    random_signs,
    solve,
)

__all__ = [
    "Many",
    "Optimum",
    "Profile",
    "SpectralProfile",
    "dense_profile",
    "exact_is_affordable",
    "maximise",
    "search",
    "search_error",
    "search_factorised",
    "search_many",
    "search_stochastic",
]


_DENSE_UP_TO = 1500  # nodes of the largest connected component
_FACTORISED_UP_TO = 20_000  # nodes; a search factorises some thirty times
_LOG_GAMMA = (-14.0, 14.0)  # beyond, mu is r or the component means to six digits
_VARIANCE_FLOOR = 1e-10


@dataclass(frozen=True)
class Optimum:
    """The parameters that maximise the likelihood, and its logarithm."""

    alpha: float
    gamma: float
    log_likelihood: float


class Profile(Protocol):
    """What the search needs: n, the variance of y, and S and log|K| at an array of gammas."""

    n: int
    variance: float

    def __call__(self, gammas: Float64s) -> tuple[Float64s, Float64s]:
        """Return S(gamma) and log|K(gamma)|."""
        ...


class SpectralProfile:
    """S and log|K| from the spectral measures of r and of the trace.

    Parameters
    ----------
    L : sparse (n, n)
    y, r : (n,)
    of_r, of_trace : (values, weights)
        r'f(L)r = sum w f(t) and tr f(L) = sum w f(t).
    """

    def __init__(
        self,
        L: Any,
        y: Float64s,
        r: Float64s,
        of_r: tuple[Float64s, Float64s],
        of_trace: tuple[Float64s, Float64s],
    ) -> None:
        self.n = len(y)
        self.variance = float(np.var(y))
        self._yLy = float(y @ (L @ y))
        self._fit = float((y - r) @ (y - r))  # y'y - 2y'r + r'r, without cancellation
        self._of_r, self._of_trace = of_r, of_trace

    def __call__(self, gammas: Float64s) -> tuple[Float64s, Float64s]:
        """Return S(gamma) and log|K(gamma)|."""
        g = gammas[:, None]
        (t, w), (values, multiplicity) = self._of_r, self._of_trace
        shrunk = (g * t / (1.0 + g * t)) @ w  # r'r - r'K^-1 r
        S = self._fit + gammas * self._yLy - shrunk
        return S, np.log1p(g * values) @ multiplicity


def exact_is_affordable(L: Any) -> bool:
    """Whether an eigendecomposition of L takes seconds at most."""
    return L.shape[0] <= 2 * _DENSE_UP_TO and largest_component(L) <= _DENSE_UP_TO


def dense_profile(L: Any, y: Float64s, r: Float64s) -> SpectralProfile:
    """Return the exact profile from an eigendecomposition of L."""
    values, vectors = eigen(L)
    return SpectralProfile(L, y, r, (values, (vectors.T @ r) ** 2), (values, np.ones(len(values))))


def search(profile: Profile) -> Optimum:
    """Maximise the likelihood over alpha and gamma: a grid over log gamma, zoomed in on."""
    n = profile.n
    floor = n * _VARIANCE_FLOOR * profile.variance + np.finfo(float).tiny  # for constant y

    def cost(gammas: Float64s) -> tuple[Float64s, Float64s]:
        S, log_det = profile(gammas)
        S = np.maximum(S, floor)
        return 0.5 * n * np.log(2 * S / n) - 0.5 * log_det, S

    at_zero, S_zero = cost(np.zeros(1))
    best, gamma, S = float(at_zero[0]), 0.0, float(S_zero[0])
    if floor < S:  # a perfect fit needs no neighbours
        low, high = _LOG_GAMMA
        while True:
            logs = np.linspace(low, high, 33)
            costs, sums = cost(np.exp(logs))
            i = int(np.argmin(costs))
            step = logs[1] - logs[0]
            # Values of the cost tell gammas apart to about the root of the rounding error.
            if step < 1e-7:
                break
            low, high = logs[max(i - 1, 0)], logs[min(i + 1, 32)]
        if costs[i] < best:
            best, gamma, S = float(costs[i]), float(np.exp(logs[i])), float(sums[i])
    return Optimum(n / (2 * S), gamma, -best - 0.5 * n - 0.5 * n * np.log(pi))


def maximise(
    laplacians: Sequence[Any],
    y: Float64s,
    R: Float64s,
    criterion: str,
    *,
    method: str = "auto",
    random_state: int = 0,
) -> tuple[Float64s, Float64s, float]:
    """Return alpha (K,), beta (B,) and the log-likelihood at its maximum, or at the least error.

    Parameters
    ----------
    laplacians : list of sparse (n, n)
    y : (n,)
    R : (n, K)
    criterion : "likelihood" or "error"
    method : "auto", "exact" or "stochastic"
    random_state : int
    """
    if R.shape[1] > 1 or len(laplacians) > 1:
        if criterion == "error":
            raise DataError("criterion='error' is for one base model and one graph")
        return search_many(laplacians, y, R, random_state=random_state)
    L, r = laplacians[0], R[:, 0]
    small = L.shape[0] <= _FACTORISED_UP_TO
    if criterion == "error":
        optimum = search_error(L, y, r)
    elif method != "stochastic" and exact_is_affordable(L):
        optimum = search(dense_profile(L, y, r))
    elif (method == "exact" or (method == "auto" and small)) and is_affordable(L):
        optimum = search_factorised(L, y, r)
    elif method == "exact":
        optimum = search(dense_profile(L, y, r))
    else:
        optimum = search_stochastic(L, y, r, random_state=random_state)
    alpha = np.array([optimum.alpha])
    return alpha, optimum.gamma * alpha, optimum.log_likelihood


def search_factorised(L: Any, y: Float64s, r: Float64s) -> Optimum:
    """Maximise the likelihood exactly, factorising K for each gamma that is tried."""
    import scipy.sparse as sp
    from scipy.optimize import minimize_scalar

    n = len(y)
    floor = n * _VARIANCE_FLOOR * float(np.var(y)) + np.finfo(float).tiny
    unit, yLy = sp.eye_array(n, format="csr"), float(y @ (L @ y))
    fit = float((y - r) @ (y - r))

    def cost(gamma: float) -> tuple[float, float]:
        factors = Factorisation(unit + gamma * L)
        # r'r - r'K^-1 r = r'K^-1 (gamma L) r, so that nothing cancels when gamma is small.
        S = fit + gamma * yLy - float(factors.solve(r) @ (gamma * (L @ r)))
        S = max(S, floor)
        return 0.5 * n * np.log(2 * S / n) - 0.5 * factors.log_determinant(), S

    S_zero = max(fit, floor)
    best, gamma, S = 0.5 * n * np.log(2 * S_zero / n), 0.0, S_zero
    if floor < S_zero:  # a perfect fit needs no neighbours
        logs = np.linspace(*_LOG_GAMMA, 15)
        costs = [cost(float(np.exp(v)))[0] for v in logs]
        i = int(np.argmin(costs))
        bounds = logs[max(i - 1, 0)], logs[min(i + 1, len(logs) - 1)]
        minimum: Any = minimize_scalar(
            lambda v: cost(float(np.exp(v)))[0], bounds=bounds, method="bounded",
            options={"xatol": 1e-7},
        )  # fmt: skip
        if minimum.fun < best:
            gamma = float(np.exp(minimum.x))
            best, S = cost(gamma)
    return Optimum(n / (2 * S), gamma, -best - 0.5 * n - 0.5 * n * np.log(pi))


def search_stochastic(L: Any, y: Float64s, r: Float64s, *, random_state: int = 0) -> Optimum:
    """Maximise the likelihood on a large graph by Lanczos quadrature.

    The quadrature is refined until it does not move log gamma by more than 1e-3.
    """
    n = len(y)
    order, L = neighbours_together(L)
    y, r = y[order], r[order]
    rng = own_generator(random_state, 1)
    n_probes = int(np.clip(np.ceil(4e5 / n), 3, 128))
    run = Lanczos(L, np.column_stack([r, random_signs(rng, n, n_probes)]))
    optimum: Optimum | None = None
    for steps in (25, 25, 50, 100, 200):
        run.extend(steps)
        values, weights = run.measure(slice(1, None))
        of_trace = values, weights / n_probes
        before, optimum = (
            optimum,
            search(SpectralProfile(L, y, r, run.measure(slice(0, 1)), of_trace)),
        )
        if (
            before is not None
            and abs(np.log((optimum.gamma + 1e-6) / (before.gamma + 1e-6))) < 1e-3
        ):
            break
    assert optimum is not None
    return optimum


def search_error(L: Any, y: Float64s, r: Float64s) -> Optimum:
    """Minimise the squared error |y - K^-1 r|^2 over gamma instead; alpha as for the likelihood.

    The log-likelihood is left out (NaN): its determinant is not needed here.
    """
    from scipy.optimize import minimize_scalar

    def error(log_gamma: float) -> float:
        e = y - solve(L, float(np.exp(log_gamma)), r)
        return float(e @ e)

    logs = np.linspace(-7.0, 7.0, 15)
    i = int(np.argmin([error(v) for v in logs]))
    bounds = (logs[max(i - 1, 0)], logs[min(i + 1, 14)])
    minimum: Any = minimize_scalar(error, bounds=bounds, method="bounded", options={"xatol": 1e-5})
    gamma = float(np.exp(minimum.x)) if minimum.fun < (y - r) @ (y - r) else 0.0
    e = y - solve(L, gamma, r)
    n = len(y)
    S = max(float(e @ e + gamma * (e @ (L @ e))), n * _VARIANCE_FLOOR * float(np.var(y)))
    return Optimum(n / (2 * S), gamma, float("nan"))


class Many:
    """-ll of several base predictions and several graphs, over (alpha_1.., beta_1..).

    Exact with its gradient up to 1,500 nodes; above without: exact by sparse factors where there
    are such, else by Lanczos quadrature with fixed probes.
    """

    def __init__(
        self, laplacians: Sequence[Any], y: Float64s, R: Float64s, *, random_state: int = 0
    ) -> None:
        self._laplacians, self._y, self._R = list(laplacians), y, R
        self.n, self.k = R.shape
        self.exact = self.n <= _DENSE_UP_TO
        self._factorise = self.n <= _FACTORISED_UP_TO and is_affordable(sum(self._laplacians))
        self._fixed = np.concatenate(
            [y @ y - 2 * (y @ R), [float(y @ (L @ y)) for L in self._laplacians]]
        )
        if self.exact:
            self._dense = [L.toarray() for L in self._laplacians]
        elif not self._factorise:
            rng = own_generator(random_state, 1)
            self._probes = random_signs(rng, self.n, int(np.clip(np.ceil(4e5 / self.n), 3, 64)))
            if len(self._laplacians) == 1:  # the spectrum of a single graph is needed once
                self._spectrum = self._trace_measure(self._laplacians[0], 120)

    def value_and_gradient(self, parameters: Float64s) -> tuple[float, Float64s]:
        """Return -ll (without (n/2) log pi) and its gradient; small graphs only."""
        from scipy.linalg import cho_factor, cho_solve

        alpha, beta = parameters[: self.k], parameters[self.k :]
        Q = np.eye(self.n) * alpha.sum()
        for weight, L in zip(beta, self._dense, strict=True):
            Q += weight * L
        factor = cho_factor(Q, lower=True)
        b = self._R @ alpha
        mu = cho_solve(factor, b)
        log_det = 2 * float(np.log(np.diag(factor[0])).sum())
        inverse = cho_solve(factor, np.eye(self.n))
        value = float(parameters @ self._fixed + b @ mu) - 0.5 * log_det
        gradient = self._fixed.copy()
        gradient[: self.k] += 2 * (self._R.T @ mu) - mu @ mu - 0.5 * np.trace(inverse)
        for index, L in enumerate(self._dense):
            gradient[self.k + index] -= mu @ (L @ mu) + 0.5 * np.vdot(inverse, L)
        return value, gradient

    def value(self, parameters: Float64s) -> float:
        """Return -ll by sparse factors or, without these, Lanczos quadrature (large graphs)."""
        alpha, beta = parameters[: self.k], parameters[self.k :]
        total = alpha.sum()
        L = sum(w / total * L for w, L in zip(beta, self._laplacians, strict=True))
        b = self._R @ alpha
        if self._factorise:
            import scipy.sparse as sp

            factors = Factorisation(sp.eye_array(self.n, format="csr") + L)
            log_det = factors.log_determinant() + self.n * np.log(total)
            return float(parameters @ self._fixed + b @ factors.solve(b) / total - 0.5 * log_det)
        if len(beta) == 1:
            values, weights = self._spectrum
            values = values * (beta[0] / total)
        else:
            values, weights = self._trace_measure(L, 60)
        log_det = np.log1p(values) @ weights + self.n * np.log(total)
        return float(parameters @ self._fixed + b @ solve(L, 1.0, b) / total - 0.5 * log_det)

    def _trace_measure(self, L: Any, steps: int) -> tuple[Float64s, Float64s]:
        run = Lanczos(L, self._probes)
        run.extend(steps)
        values, weights = run.measure(slice(None))
        return values, weights / self._probes.shape[1]


def search_many(
    laplacians: Sequence[Any], y: Float64s, R: Float64s, *, random_state: int = 0
) -> tuple[Float64s, Float64s, float]:
    """Maximise the likelihood over all alpha_k >= 0 and beta_l >= 0.

    Returns
    -------
    alpha, beta : arrays (K,), (B,)
    log_likelihood : float
    """
    from scipy import optimize

    n, k = R.shape
    many = Many(laplacians, y, R, random_state=random_state)
    floor = _VARIANCE_FLOOR * float(np.var(y))
    misfit = max(float(np.min(np.mean((R - y[:, None]) ** 2, axis=0))), floor)
    start = np.full(k + len(laplacians), 0.5 / misfit)
    start[:k] /= k
    centre = np.log(start)
    # Parameters at the lower bound are zero; the upper bound is the cap on alpha.
    low, high = centre - 16.0, np.maximum(centre + 16.0, np.log(0.5 / floor))
    scale = 1.0 / n

    def exact(logs: Float64s) -> tuple[float, Float64s]:
        parameters = np.exp(logs)
        value, gradient = many.value_and_gradient(parameters)
        return float(value * scale), gradient * parameters * scale

    def sampled(logs: Float64s) -> float:
        return float(many.value(np.exp(logs)) * scale)

    minimise: Any = optimize.minimize
    minimum = minimise(
        exact if many.exact else sampled,
        centre,
        jac=True if many.exact else None,
        method="L-BFGS-B",
        bounds=list(zip(low, high, strict=True)),
        options={"maxiter": 300, "ftol": 1e-13 if many.exact else 1e-8, "gtol": 1e-9},
    )
    parameters = np.where(minimum.x <= low + 1.0, 0.0, np.exp(minimum.x))
    if not parameters[:k].any():
        parameters = np.exp(minimum.x)
    return parameters[:k], parameters[k:], -float(minimum.fun) / scale - 0.5 * n * np.log(pi)
