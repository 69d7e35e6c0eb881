"""Standard deviations that residuals bear out.

A Gaussian CRF gives node i, all others known, the variance v_i / (2 alpha) with v_i = 1 / K_ii:
the more neighbours, and the nearer they are, the less. Residuals say whether it is so:

    std_i = min(c sqrt(v_i^p / (2 alpha)), s)

c makes 90 % of the leave-one-out residuals lie within 1.645 std_i. How much wider intervals are
where less is known nearby, the power p, 1 if the model is right, comes

- of places, from residuals of whole regions that were left out (:mod:`trellis.regression.regions`):
  p is the least power with which 90 % of these lie within their intervals, too. s is five quarters
  of what base models that never saw the region would need for that: where nothing is near, the base
  is all there is.
- of nodes on a matrix, which has no regions, from the leave-one-out residuals alone,

      log e_i^2 = constant + p log v_i + noise      (noise of variance pi^2 / 2 for a Gaussian),

  drawn to 1 (a normal prior, standard deviation 1/2). s is one and a half times what the base
  models need at other nodes.

On real maps p often is a third: near neighbours are worth less than the model has it.
"""

from __future__ import annotations

import numpy as np

from trellis.arrays import Float64s

__all__ = ["NORMAL_90", "deviations", "limit_of", "scale_of", "spread_in_regions", "spread_of"]

NORMAL_90 = 1.6448536269514722
"""Half the width of a 90 % interval in standard deviations."""

_PRIOR = 20.0  # the variance of the noise, over that of the prior of p
_LARGEST_POWER = 1.5
_LARGEST_IN_REGIONS = 3.0  # regions may be few
_HALVINGS = 30
_FAR = 1.5  # times the base's own standard deviation, if it saw no region left out
_FAR_IN_REGIONS = 1.25
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


def spread_in_regions(
    left: Float64s, v: Float64s, far: Float64s, v_far: Float64s
) -> tuple[float, float]:
    """Return c and p, from residuals of nodes among others and in regions that were left out.

    Parameters
    ----------
    left, v : (n,)
        As of :func:`spread_of`.
    far, v_far : (m,)
        The same in regions.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> near, v = rng.normal(size=20_000), np.full(20_000, 0.25)
    >>> c, p = spread_in_regions(near, v, 2 * rng.normal(size=20_000), np.ones(20_000))
    >>> round(c, 1), round(p, 1)
    (2.0, 1.0)
    """

    def held(p: float) -> bool:
        std = scale_of(left, v**p) * np.sqrt(v_far**p)
        return bool(np.mean(np.abs(far) <= NORMAL_90 * std) >= 0.9)

    low, high = 0.0, _LARGEST_IN_REGIONS
    if held(low):
        high = low
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if held(middle) else (middle, high)
    return scale_of(left, v**high), high


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


def limit_of(errors: Float64s, in_regions: Float64s | None = None) -> float:
    """Return s, from errors of the base models alone, and those in regions that were left out.

    Examples
    --------
    >>> round(limit_of(np.array([1.0, -1.0])) * NORMAL_90, 9)
    1.5
    """
    near = scale_of(errors, np.ones(len(errors)))
    if in_regions is None:
        return _FAR * near
    return _FAR_IN_REGIONS * max(near, scale_of(in_regions, np.ones(len(in_regions))))


def scale_of(left: Float64s, variance: Float64s) -> float:
    """Return what standard deviations are to be multiplied by, for 90 % of residuals.

    Examples
    --------
    >>> scale_of(np.array([1.0, -1.0]), np.ones(2)) * NORMAL_90
    1.0
    """
    level = min(1.0, np.ceil((len(left) + 1) * 0.9) / len(left))
    return float(np.quantile(np.abs(left) / np.sqrt(variance), level)) / NORMAL_90
