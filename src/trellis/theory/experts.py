"""Guarantees of ensembles of structured experts (Cortes, Kuznetsov and Mohri 2014), as functions.

m = T samples drawn independently, p experts, l positions, N path experts (log N = l log p if all
paths are allowed), losses in [0, M]. A bound fails with probability δ at most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from trellis.domains import number, sequence_of, whole
from trellis.errors import DataError
from trellis.theory.checks import at_least, fraction, positive, within_floats

__all__ = [
    "boosting_margin_bound",
    "boosting_risk_bound",
    "hoeffding_deviation",
    "majority_vote_bound",
    "massart_complexity",
    "randomised_excess",
    "regret_bound",
]


@within_floats
def randomised_excess(
    n_experts: int, length: float, n_samples: int, delta: float = 0.05, bound: float = 1.0
) -> float:
    """Theorem 1: how far the expected loss of H_Rand is above that of the best path expert.

    2M sqrt(l log p / T) + 2M sqrt(log(2/δ) / T), for the best choice of β. With weights that are
    tied in C contexts, ``length`` is C and the best is among the p^C functions from contexts to
    experts.

    Examples
    --------
    >>> from trellis.theory import randomised_excess
    >>> round(randomised_excess(n_experts=5, length=10, n_samples=200), 3)
    0.839
    """
    positive(length=length, n_samples=n_samples, bound=bound)
    number(at_least=1).check("n_experts", n_experts)
    fraction(one=False, delta=delta)
    paths = math.sqrt(length * math.log(n_experts) / n_samples)
    return 2 * bound * (paths + math.sqrt(math.log(2 / delta) / n_samples))


@within_floats
def regret_bound(log_experts: float, n_rounds: int, eta: float, bound: float = 1.0) -> float:
    """Regret of exponential weights with β = exp(-η): Σ_t L_t - min_h Σ_t L(h) is at most this.

    log N / η + η T M² / 8, for losses in [0, M] and any sequence of samples.

    Examples
    --------
    >>> import math
    >>> from trellis.theory import regret_bound
    >>> round(regret_bound(10 * math.log(5), n_rounds=200, eta=0.8), 2)
    40.12
    """
    at_least(0, log_experts=log_experts)
    positive(n_rounds=n_rounds, eta=eta, bound=bound)
    return log_experts / eta + eta * n_rounds * bound**2 / 8


@within_floats
def hoeffding_deviation(n: int, delta: float, bound: float = 1.0) -> float:
    """How far the mean of n losses in [0, M] strays from its expectation: M sqrt(log(1/δ) / 2n).

    Examples
    --------
    >>> from trellis.theory import hoeffding_deviation
    >>> round(hoeffding_deviation(200, 0.05), 4)
    0.0865
    """
    positive(n=n, bound=bound)
    fraction(one=False, delta=delta)
    return bound * math.sqrt(math.log(1 / delta) / (2 * n))


@within_floats
def majority_vote_bound(randomised_loss: float) -> float:
    """Proposition 2: the Hamming loss of H_MVote is at most twice that of H_Rand.

    A label that wins the vote though it is wrong leaves the right one at most half of the weight.

    Examples
    --------
    >>> from trellis.theory import majority_vote_bound
    >>> majority_vote_bound(0.1)
    0.2
    """
    at_least(0, randomised_loss=randomised_loss)
    return min(1.0, 2 * randomised_loss)


@within_floats
def boosting_margin_bound(errors: Sequence[float], rho: float) -> float:
    """Theorem 5: 2^T Π_t sqrt(ε_t^(1-ρ) (1-ε_t)^(1+ρ)) bounds the empirical margin loss.

    Parameters
    ----------
    errors : sequence of float
        Weighted error ε_t of each round of ESPBoost, in (0, 1/2).
    rho : float
        Margin, relative to ‖α‖₁.

    Examples
    --------
    >>> from trellis.theory import boosting_margin_bound
    >>> round(boosting_margin_bound([0.2, 0.25, 0.3], rho=0.1), 3)
    0.75
    """
    at_least(0, rho=rho)
    sequence_of(number(), "a list of numbers").check("errors", errors)
    value = 1.0
    for error in errors:
        if not 0 < error < 0.5:
            raise DataError(f"errors must lie in (0, 1/2), got {error!r}: ESPBoost stops otherwise")
        value *= 2 * math.sqrt(error ** (1 - rho) * (1 - error) ** (1 + rho))
    return value


@within_floats
def massart_complexity(n_functions: float, n_samples: int) -> float:
    """Massart's bound on the Rademacher complexity of N functions into [0, 1]: sqrt(2 log N / m).

    For Theorem 4, H^k has N = p |Y_k| functions 1[expert j says y].

    Examples
    --------
    >>> from trellis.theory import massart_complexity
    >>> round(massart_complexity(5 * 26, 200), 3)
    0.221
    """
    at_least(1, n_functions=n_functions)
    positive(n_samples=n_samples)
    return math.sqrt(2 * math.log(n_functions) / n_samples)


@within_floats
def boosting_risk_bound(
    margin_loss: float,
    rho: float,
    n_labels: Sequence[int],
    complexities: Sequence[float],
    n_samples: int,
    delta: float = 0.05,
) -> float:
    """Theorem 4: the expected Hamming loss of H_Boost.

    R_ρ + (2 / ρl) Σ_k |Y_k|² R_m(H^k) + sqrt(log(l/δ) / 2m)

    Parameters
    ----------
    margin_loss : float
        Empirical margin loss at ρ.
    rho : float
    n_labels, complexities : sequences of length l
        |Y_k| and the Rademacher complexity of H^k (see :func:`massart_complexity`).
    n_samples : int
    delta : float

    Examples
    --------
    >>> from trellis.theory import boosting_risk_bound, massart_complexity
    >>> complexity = massart_complexity(5 * 2, 10**6)
    >>> round(boosting_risk_bound(0.1, 0.5, [2] * 10, [complexity] * 10, 10**6), 3)
    0.136
    """
    positive(rho=rho, n_samples=n_samples)
    fraction(one=False, delta=delta)
    at_least(0, margin_loss=margin_loss)
    sequence_of(whole(1), "a list of positive integers").check("n_labels", n_labels)
    sequence_of(number(at_least=0), "a list of numbers").check("complexities", complexities)
    if len(n_labels) != len(complexities) or not len(n_labels):
        raise DataError(
            f"{len(n_labels)} label counts and {len(complexities)} complexities; one of each is "
            "needed for every position"
        )
    length = len(n_labels)
    total = sum(n**2 * r for n, r in zip(n_labels, complexities, strict=True))
    return (
        margin_loss
        + 2 / (rho * length) * total
        + math.sqrt(math.log(length / delta) / (2 * n_samples))
    )
