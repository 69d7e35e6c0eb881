"""Standard deviations that residuals bear out.

A Gaussian CRF gives node i, all others known, the variance v_i / (2 alpha) with v_i = 1 / K_ii:
the more neighbours, and the nearer they are, the less. Residuals say whether it is so. Their
logarithms,

    log e_i^2 = constant + p log v_i + noise        (noise of variance pi^2 / 2 for a Gaussian)

give a power p, which is 1 if the model is right and is drawn there (a normal prior, standard
deviation 1/2). On real maps p often is a third: near neighbours are worth less than the model has
it, and without this intervals far from all that is known would be far too wide. Then

    std_i = min(c sqrt(v_i^p / (2 alpha)), s)

where c makes 90 % of the residuals lie within 1.645 std_i, and s is one and a half times what the
base models alone would need for that: residuals tell nothing of nodes that are farther from all
that is known than the known nodes are from each other, and where nothing is near, the base is as
wrong as elsewhere, or somewhat more.
"""

from __future__ import annotations

import numpy as np

from trellis.arrays import Float64s

__all__ = ["NORMAL_90", "deviations", "limit_of", "scale_of", "spread_of"]

NORMAL_90 = 1.6448536269514722
"""Half the width of a 90 % interval in standard deviations."""

_PRIOR = 20.0  # the variance of the noise, over that of the prior of p
_LARGEST_POWER = 1.5
_FAR = 1.5  # times the base's own standard deviation
_SMALLEST = 1e-6  # of residuals, beside the root of their mean square: the logarithm of 0 says much


def spread_of(left: Float64s, v: Float64s) -> tuple[float, float]:
    """Return c and p.

    Parameters
    ----------
    left : (n,)
        Residuals, times sqrt(2 alpha).
    v : (n,)

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> v = np.exp(rng.uniform(-3, 0, 20_000))
    >>> c, p = spread_of(2 * rng.normal(size=20_000) * v**0.25, v)
    >>> round(c, 1), round(p, 1)
    (2.0, 0.5)
    """
    x = np.log(v) - np.mean(np.log(v))
    size = float(np.sqrt(np.mean(left**2)))
    if size == 0:
        return scale_of(left, v), 1.0
    logs = 2 * np.log(np.maximum(np.abs(left) / size, _SMALLEST))
    p = float(np.clip((x @ logs + _PRIOR) / (x @ x + _PRIOR), 0.0, _LARGEST_POWER))
    return scale_of(left, v**p), p


def deviations(variance: Float64s, alpha: float, c: float, p: float, s: float) -> Float64s:
    """Return std_i, 0 where the variance v_i is (its target is known).

    Examples
    --------
    >>> deviations(np.array([0.0, 0.25]), 0.5, c=2.0, p=0.0, s=9.0)
    array([0., 2.])
    """
    known = variance == 0
    std: Float64s = c * np.sqrt(np.where(known, 1.0, variance) ** p / (2 * alpha))
    return np.where(known, 0.0, np.minimum(std, s))


def limit_of(errors: Float64s) -> float:
    """Return s, from errors of the base models alone.

    Examples
    --------
    >>> round(limit_of(np.array([1.0, -1.0])) * NORMAL_90, 9)
    1.5
    """
    return _FAR * scale_of(errors, np.ones(len(errors)))


def scale_of(left: Float64s, variance: Float64s) -> float:
    """Return what standard deviations are to be multiplied by, for 90 % of residuals.

    Examples
    --------
    >>> scale_of(np.array([1.0, -1.0]), np.ones(2)) * NORMAL_90
    1.0
    """
    level = min(1.0, np.ceil((len(left) + 1) * 0.9) / len(left))
    return float(np.quantile(np.abs(left) / np.sqrt(variance), level)) / NORMAL_90
