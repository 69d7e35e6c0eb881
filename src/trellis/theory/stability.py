r"""Stability: how far a model moves when a part of its training data is removed (Sun 2014, app. A).

A learning algorithm G maps a training set S of m samples to a function f = G_S with a real value
f(x, k) at each position k of a sample x. The point-wise loss ℓ(f, z, k) compares it with the label,
the sample-wise loss is its sum, ℒ(f, z) = Σ_k ℓ(f, z, k). With S\i the set without its i-th part,

    Definition 8    Δ   ≥ |f(x, k) − f\i(x, k)|          function stability
    Definition 9    Δ_l ≥ |ℓ(f, z, k) − ℓ(f\i, z, k)|    loss stability
                    Δ_s ≥ |ℒ(f, z) − ℒ(f\i, z)|          sample loss stability

for all z = (x, y), k, S and i. The bounds are for the minimiser f of Eq. (8),

    (1/mn) Σ_j ℒ(f, z'_j) + (λ/2) ‖f‖²   over the mα mini-samples z'_j.

Symbols: m samples of n positions each; d features at a position, of size at most v; α mini-samples
a sample, of n/α positions each; λ strength of the L2 penalty; τ Lipschitz constant of the loss,
|ℓ(f) − ℓ(f')| ≤ τ |f − f'| (Eq. 1); ρ admissibility, |f(x, k) − f'(x, k)| ≤ ρ ‖f − f'‖ ‖x‖ (Eq. 2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trellis.errors import DataError
from trellis.theory.checks import at_least, positive, strength

__all__ = [
    "Stability",
    "mini_sample_stability_bound",
    "observed_stability",
    "sample_stability_bound",
    "stability_from_function",
]


@dataclass(frozen=True)
class Stability:
    """The three stabilities of Definitions 8 and 9, measured or bounded.

    Attributes
    ----------
    function : float
        Δ, the change of a function value at one position.
    loss : float
        Δ_l, the change of the loss of one position.
    sample_loss : float
        Δ_s, the change of the loss of one sample.
    """

    function: float
    loss: float
    sample_loss: float


def observed_stability(
    values: ArrayLike,
    values_without: ArrayLike,
    losses: ArrayLike,
    losses_without: ArrayLike,
    offsets: ArrayLike,
) -> Stability:
    r"""Largest changes seen on some samples (Definitions 8 and 9).

    The definitions take the supremum over all samples and training sets. What is seen on some is a
    lower bound of that.

    Parameters
    ----------
    values, values_without : array (N, ...)
        Function values f(x, k) and f\i(x, k) at all positions; with several values a position (one
        for each label) the largest change counts.
    losses, losses_without : array (N,)
        Point-wise losses ℓ(f, z, k) and ℓ(f\i, z, k).
    offsets : array of int (S+1,)
        Sample s is the positions ``offsets[s]:offsets[s + 1]``.

    Returns
    -------
    Stability

    Examples
    --------
    >>> from trellis.theory import observed_stability
    >>> observed_stability([1.0, 2.0, 3.0], [1.5, 2.0, 3.0], [0, 1, 2], [0.25, 1.25, 1], [0, 2, 3])
    Stability(function=0.5, loss=1.0, sample_loss=1.0)
    """
    f, g = _floats(values, "values"), _floats(values_without, "values_without")
    a, b = _floats(losses, "losses"), _floats(losses_without, "losses_without")
    bounds = np.asarray(offsets)
    n = len(f) if f.ndim else 0
    for name, array, shape in (
        ("values_without", g, f.shape),
        ("losses", a, (n,)),
        ("losses_without", b, (n,)),
    ):
        if array.shape != shape:
            raise DataError(f"{name} has shape {array.shape}; expected {shape}")
    if not (
        bounds.ndim == 1
        and bounds.size > 1
        and bounds.dtype.kind in "iu"
        and bounds[0] == 0
        and bounds[-1] == n > 0
        and (np.diff(bounds) >= 0).all()
    ):
        raise DataError(f"offsets must rise from 0 to the number of positions, {n}, at least 1")
    change = np.concatenate([[0.0], np.cumsum(a - b)])[bounds]
    return Stability(
        float(np.abs(f - g).max()),
        float(np.abs(a - b).max()),
        float(np.abs(np.diff(change)).max()),
    )


def stability_from_function(function: float, *, n: float, tau: float = 1.0) -> Stability:
    """Loss stabilities that follow from a function stability (Lemma 10).

    Δ_l ≤ τ Δ  and  Δ_s ≤ n τ Δ.

    Parameters
    ----------
    function : float
        Δ, at least 0.
    n : float
        Positions of a sample, at least 1.
    tau : float
        Lipschitz constant τ of the loss in the function value.

    Returns
    -------
    Stability

    Examples
    --------
    >>> from trellis.theory import stability_from_function
    >>> stability_from_function(0.5, n=10, tau=2)
    Stability(function=0.5, loss=1.0, sample_loss=10.0)
    """
    at_least(0, function=function)
    at_least(1, n=n)
    positive(tau=tau)
    return Stability(float(function), float(tau * function), float(n * tau * function))


def mini_sample_stability_bound(
    *,
    m: float,
    n: float,
    d: float,
    alpha: float,
    lam: float,
    v: float = 1.0,
    rho: float = 1.0,
    tau: float = 1.0,
) -> Stability:
    """Bounds on the stability when one *mini-sample* is removed (Theorem 11, Eq. 24).

    Δ ≤ d τ ρ² v² n² / (m λ α²),  Δ_l ≤ τ · that,  Δ_s ≤ n τ · that.

    Parameters
    ----------
    m : float
        Training samples.
    n : float
        Structure complexity: positions of a sample.
    d : float
        Dimension of the feature vector of a position.
    alpha : float
        Strength α of structure regularisation, in [1, n]: mini-samples have n/α positions.
    lam : float
        λ of the penalty (λ/2) ‖w‖² beside the loss divided by mn (Eq. 8).
    v : float
        Bound on the size of a feature value.
    rho : float
        Admissibility ρ (Eq. 2).
    tau : float
        Lipschitz constant τ of the loss (Eq. 1).

    Returns
    -------
    Stability

    Examples
    --------
    >>> from trellis.theory import mini_sample_stability_bound
    >>> mini_sample_stability_bound(m=100, n=10, d=50, alpha=1, lam=0.5).function
    100.0
    >>> mini_sample_stability_bound(m=100, n=10, d=50, alpha=5, lam=0.5).function
    4.0
    """
    strength(alpha, n)
    function = _sup_times_alpha_squared(m, n, d, lam, v, rho, tau) / alpha**2
    return stability_from_function(function, n=n, tau=tau)


def sample_stability_bound(
    *,
    m: float,
    n: float,
    d: float,
    alpha: float,
    lam: float,
    v: float = 1.0,
    rho: float = 1.0,
    tau: float = 1.0,
) -> Stability:
    """Bounds on the stability when one *full sample* is removed (Corollary 12, Eq. 26).

    Δ̄ ≤ d τ ρ² v² n² / (m λ α),  Δ̄_l ≤ τ · that,  Δ̄_s ≤ n τ · that: each is α times the bound for
    one mini-sample.

    Parameters
    ----------
    m, n, d, alpha, lam, v, rho, tau : float
        As in :func:`mini_sample_stability_bound`.

    Returns
    -------
    Stability

    Examples
    --------
    >>> from trellis.theory import sample_stability_bound
    >>> sample_stability_bound(m=100, n=10, d=50, alpha=5, lam=0.5).function
    20.0
    """
    strength(alpha, n)
    function = _sup_times_alpha_squared(m, n, d, lam, v, rho, tau) / alpha
    return stability_from_function(function, n=n, tau=tau)


def _sup_times_alpha_squared(
    m: float, n: float, d: float, lam: float, v: float, rho: float, tau: float
) -> float:
    at_least(1, m=m, d=d)
    positive(lam=lam, v=v, rho=rho, tau=tau)
    return float(d * tau * rho**2 * v**2 * n**2 / (m * lam))


def _floats(array: ArrayLike, name: str) -> NDArray[Any]:
    try:
        numbers = np.asarray(array, np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must be numbers: {error}") from None
    if not np.isfinite(numbers).all():
        raise DataError(f"{name} must be finite; some are NaN or infinite")
    return numbers
