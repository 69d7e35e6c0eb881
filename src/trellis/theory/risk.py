r"""Overfitting: how far the risk can lie above the empirical risk (Sun 2014, Theorems 4, 13, 14).

With risk R(f) = E_z[ℒ(f, z)/n] and empirical risk R_e(f) = (1/mn) Σ_i ℒ(f, z_i), the minimiser f of
Eq. (8) satisfies, with probability at least 1 − δ over the draw of the training set,

    R(f) ≤ R_e(f) + overfit-bound.

Two versions of the overfit-bound are in print. With B = d τ² ρ² v² n² / (m λ):

    arXiv (Eq. 9 and 29)   2B/α + ((4m − 2) B/α  + γ) √(ln(1/δ) / 2m)      of order 1/α     (Eq. 30)
    NIPS 2014 (Eq. 9)      2B/α + ((4m − 2) B/α² + γ) √(α ln(1/δ) / 2m)    of order 1/α^1.5 (Eq. 10)

The arXiv version is the later one, and the one that follows from its appendix: Theorem 13 with the
stability of a full sample of Corollary 12. The other can be had by its name, ``"nips2014"``. Its
term with γ *rises* with α, so that it falls faster in α only where that term is small.

Symbols: γ bounds the point-wise loss, 0 ≤ ℓ ≤ γ; all others as in :mod:`trellis.theory.stability`.
"""

from __future__ import annotations

import math

from trellis.theory.checks import at_least, choice, fraction, positive, strength, within_floats
from trellis.theory.stability import sample_stability_bound

__all__ = [
    "VARIANTS",
    "overfit_bound",
    "overfit_order",
    "risk_bound",
    "risk_bound_from_stability",
]

VARIANTS = ("arxiv", "nips2014")
"""The two printed versions of the overfit-bound."""


@within_floats
def overfit_bound(
    *,
    m: float,
    n: float,
    d: float,
    alpha: float,
    lam: float,
    gamma: float,
    v: float = 1.0,
    rho: float = 1.0,
    tau: float = 1.0,
    delta: float = 0.05,
    variant: str = "arxiv",
) -> float:
    """Overfit-bound: what is added to the empirical risk in Theorem 4 (Eq. 9; also Theorem 14).

    With B = d τ² ρ² v² n² / (m λ),

    - arxiv:    2B/α + ((4m − 2) B/α  + γ) √(ln(1/δ) / 2m)
    - nips2014: 2B/α + ((4m − 2) B/α² + γ) √(α ln(1/δ) / 2m)

    Both are the same at α = 1, that is, without structure regularisation.

    Parameters
    ----------
    m, n, d, alpha, lam, v, rho, tau : float
        As in :func:`~trellis.theory.mini_sample_stability_bound`.
    gamma : float
        Bound γ on the point-wise loss, at least 0.
    delta : float
        δ in (0, 1): the bound holds with probability at least 1 − δ.
    variant : "arxiv" or "nips2014"
        Which printed version.

    Examples
    --------
    >>> from trellis.theory import overfit_bound
    >>> round(overfit_bound(m=10_000, n=20, d=100, alpha=1, lam=1.0, gamma=2.0), 2)
    1966.12
    >>> round(overfit_bound(m=10_000, n=20, d=100, alpha=10, lam=1.0, gamma=2.0), 2)
    196.63
    >>> at_ten = dict(m=10_000, n=20, d=100, alpha=10, lam=1.0, gamma=2.0)
    >>> round(overfit_bound(**at_ten, variant="nips2014"), 2)
    62.8
    """
    choice("variant", variant, VARIANTS)
    bound = sample_stability_bound(m=m, n=n, d=d, alpha=alpha, lam=lam, v=v, rho=rho, tau=tau).loss
    if variant == "nips2014":
        # The stability of one mini-sample and α times the variance of McDiarmid's inequality.
        return 2 * bound + _deviation(bound / alpha, m, gamma, delta) * math.sqrt(alpha)
    return 2 * bound + _deviation(bound, m, gamma, delta)


@within_floats
def overfit_order(
    *,
    m: float,
    n: float,
    d: float,
    alpha: float,
    lam: float,
    delta: float = 0.05,
    variant: str = "arxiv",
) -> float:
    """Order of the overfit-bound, small terms and constants left out.

    - arxiv, Eq. (30):        d n² √ln(1/δ) / (λ α √m)
    - nips2014, its Eq. (10): d n² √ln(1/δ) / (λ α^1.5 √m)

    A number to compare settings by, not a bound. The parameters are those of :func:`overfit_bound`.

    Examples
    --------
    >>> from trellis.theory import overfit_order
    >>> whole = overfit_order(m=1000, n=20, d=100, alpha=1, lam=1.0)
    >>> round(whole / overfit_order(m=1000, n=20, d=100, alpha=4, lam=1.0), 6)
    4.0
    >>> round(whole / overfit_order(m=1000, n=20, d=100, alpha=4, lam=1.0, variant="nips2014"), 6)
    8.0
    """
    choice("variant", variant, VARIANTS)
    strength(alpha, n)
    at_least(1, m=m, d=d)
    positive(lam=lam)
    fraction(one=False, delta=delta)
    power = 1.5 if variant == "nips2014" else 1.0
    return float(d * n**2 * math.sqrt(math.log(1 / delta)) / (lam * alpha**power * math.sqrt(m)))


@within_floats
def risk_bound_from_stability(
    empirical_risk: float,
    *,
    stability: float,
    m: float,
    gamma: float,
    tau: float = 1.0,
    delta: float = 0.05,
) -> float:
    """Bound on the risk from the stability of the learning algorithm (Theorem 13, Eq. 27).

    R(f) ≤ R_e(f) + 2τΔ̄ + ((4m − 2) τΔ̄ + γ) √(ln(1/δ) / 2m)

    Parameters
    ----------
    empirical_risk : float
        R_e(f), the mean loss of a position on the training set; at least 0.
    stability : float
        Δ̄, the function stability for the removal of a full sample; at least 0.
    m, gamma, tau, delta : float
        As in :func:`overfit_bound`.

    Examples
    --------
    >>> from trellis.theory import risk_bound_from_stability
    >>> bound = risk_bound_from_stability(0.1, stability=1e-4, m=1000, gamma=1.0, delta=0.05)
    >>> round(bound, 4)
    0.1544
    """
    at_least(0, empirical_risk=empirical_risk, stability=stability)
    at_least(1, m=m)
    positive(tau=tau)
    loss = tau * stability
    return float(empirical_risk + 2 * loss + _deviation(loss, m, gamma, delta))


@within_floats
def risk_bound(
    empirical_risk: float,
    *,
    m: float,
    n: float,
    d: float,
    alpha: float,
    lam: float,
    gamma: float,
    v: float = 1.0,
    rho: float = 1.0,
    tau: float = 1.0,
    delta: float = 0.05,
    variant: str = "arxiv",
) -> float:
    """Bound on the risk under structure and weight regularisation (Theorem 14, Eq. 29).

    R(f) ≤ R_e(f) + :func:`overfit_bound`. It is Theorem 13 with the stability of Corollary 12.

    Parameters
    ----------
    empirical_risk : float
        R_e(f), the mean loss of a position on the training set; at least 0.
    m, n, d, alpha, lam, gamma, v, rho, tau, delta, variant
        As in :func:`overfit_bound`.

    Examples
    --------
    >>> from trellis.theory import risk_bound
    >>> round(risk_bound(0.1, m=10_000, n=20, d=100, alpha=10, lam=1.0, gamma=2.0), 2)
    196.73
    """
    at_least(0, empirical_risk=empirical_risk)
    excess = overfit_bound(
        m=m, n=n, d=d, alpha=alpha, lam=lam, gamma=gamma, v=v, rho=rho, tau=tau, delta=delta,
        variant=variant,
    )  # fmt: skip
    return float(empirical_risk + excess)


def _deviation(loss_stability: float, m: float, gamma: float, delta: float) -> float:
    """McDiarmid's term: ((4m − 2) Δ_l + γ) √(ln(1/δ) / 2m)."""
    at_least(0, gamma=gamma)
    fraction(one=False, delta=delta)
    spread = (4 * m - 2) * loss_stability + gamma
    return float(spread * math.sqrt(math.log(1 / delta) / (2 * m)))
