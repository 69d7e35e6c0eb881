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

from trellis.theory.checks import at_least, positive, strength, within_floats

__all__ = [
    "Stability",
    "mini_sample_stability_bound",
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


@within_floats
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


@within_floats
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
    m, n, d : float
        Training samples; positions of a sample (structure complexity); features of a position.
    alpha : float
        Strength α of structure regularisation, in [1, n]: mini-samples have n/α positions.
    lam : float
        λ of the penalty (λ/2) ‖w‖² beside the loss divided by mn (Eq. 8).
    v, rho, tau : float
        Bound on feature values, admissibility (Eq. 2) and Lipschitz constant of the loss (Eq. 1).

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


@within_floats
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
