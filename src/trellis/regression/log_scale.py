"""Numbers whose logarithm was learnt, back on their own scale.

If the logarithm has a normal distribution with mean m and standard deviation s, the number itself
has the mean exp(m + s^2/2) and that times sqrt(exp(s^2) - 1) as its standard deviation; the ends of
its intervals are those of the logarithm, exp(m +- z s), and not symmetric.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from trellis.arrays import Float64s

__all__ = ["OwnScale", "looks_logarithmic"]

_SKEWED = 1.0


@dataclass(frozen=True)
class OwnScale:
    """What is predicted, in the units of the target.

    Attributes
    ----------
    mean, std : (n,) arrays
    low, high : (n,) arrays
        Ends of intervals.
    """

    mean: Float64s
    std: Float64s
    low: Float64s
    high: Float64s

    @classmethod
    def of(cls, mean: Float64s, std: Float64s, z: float, *, log: bool) -> Self:
        """From mean and standard deviation of the target, or, if `log`, of its logarithm.

        Examples
        --------
        >>> found = OwnScale.of(np.zeros(1), np.ones(1), 1.0, log=True)
        >>> [round(float(x[0]), 3) for x in (found.mean, found.std, found.low, found.high)]
        [1.649, 2.161, 0.368, 2.718]
        """
        low, high = mean - z * std, mean + z * std
        if not log:
            return cls(mean, std, low, high)
        with np.errstate(over="ignore"):
            middle = np.exp(mean + std**2 / 2)
            return cls(middle, middle * np.sqrt(np.expm1(std**2)), np.exp(low), np.exp(high))


def looks_logarithmic(y: Float64s) -> bool:
    """Whether numbers are all above 0, and skewed to the right unless their logarithm is taken.

    Examples
    --------
    >>> draws = np.random.default_rng(0).normal(size=500)
    >>> looks_logarithmic(np.exp(draws)), looks_logarithmic(draws + 9)
    (True, False)
    """
    from scipy.stats import skew

    if len(y) < 10 or not (y > 0).all() or np.ptp(y) == 0:
        return False
    plain = float(skew(y))
    return bool(plain > _SKEWED and abs(float(skew(np.log(y)))) < plain / 2)
