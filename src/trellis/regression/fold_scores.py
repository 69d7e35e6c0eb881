"""Measures of predictions of rows that were not trained on, with intervals.

    RMSE      root of the mean squared error
    MAE       mean absolute error
    R2        1 - mean squared error / variance of the targets
    coverage  share of targets within their 90 % intervals, mean +- 1.645 std
    width     mean width of these

Intervals of measures are percentiles over 1,000 bootstrap samples. What is drawn are *groups* of
rows that stay together: cells of the map where rows have coordinates, for errors of neighbours are
alike. All models are measured on the same samples, so that a difference of two has an interval of
its own, narrower than either's. What depends on the draw of the training rows is not in them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s, Int64s

__all__ = ["NORMAL_90", "FoldScores", "Measured", "measured"]

NORMAL_90 = 1.6448536269514722
"""Half the width of a 90 % interval in standard deviations."""

_SAMPLES = 1000
_ENDS = (0.05, 0.95)


@dataclass(frozen=True)
class Measured:
    """A measure and its 90 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class FoldScores:
    """What one model reached.

    Attributes
    ----------
    rmse, mae, r2 : Measured
    coverage : Measured or None
        None where a model has no standard deviations.
    width : float
        NaN where it has none.
    more : Measured or None
        By how many per cent the RMSE is above that of the model compared with.
    seconds : float
        For training and prediction, a fold.
    """

    rmse: Measured
    mae: Measured
    r2: Measured
    coverage: Measured | None
    width: float
    more: Measured | None
    seconds: float


def measured(
    y: Float64s,
    means: dict[str, Float64s],
    stds: dict[str, Float64s | None],
    groups: Int64s,
    *,
    reference: str,
    seconds: dict[str, float] | None = None,
    random_state: int = 0,
) -> dict[str, FoldScores]:
    """Measure predictions of the same rows by several models.

    Parameters
    ----------
    y : (n,)
        Targets.
    means, stds : dict of str to (n,) arrays
        Predictions by name, and standard deviations or None.
    groups : (n,)
        Which rows stay together in bootstrap samples.
    reference : str
        The model that the others are compared with.
    seconds : dict of str to float, optional
    random_state : int
        Seed of the samples.

    Examples
    --------
    >>> y = np.arange(40.0)
    >>> found = measured(y, {"a": y + 1, "b": y - 2}, {"a": np.ones(40), "b": None},
    ...                  np.arange(40), reference="a")
    >>> found["a"].rmse.value, found["b"].more.value, found["a"].coverage.value
    (1.0, 100.0, 1.0)
    """
    _, group = np.unique(groups, return_inverse=True)
    n_groups = int(group.max()) + 1
    rng = np.random.default_rng(random_state)
    drawn = rng.multinomial(n_groups, np.full(n_groups, 1 / n_groups), size=_SAMPLES)

    def sums(values: Float64s) -> Float64s:
        """Sums of all rows, then of the rows of each sample."""
        own = np.bincount(group, weights=values, minlength=n_groups)
        return np.append(own.sum(), drawn @ own)

    count = sums(np.ones(len(y)))
    there = count > 0
    count = np.where(there, count, 1.0)
    spread = sums(y**2) / count - (sums(y) / count) ** 2
    spread = np.where(spread > 0, spread, np.nan)
    square = {name: sums((y - mean) ** 2) / count for name, mean in means.items()}
    results = {}
    for name, mean in means.items():
        std = stds[name]
        covered, width, more = None, float("nan"), None
        if std is not None:
            within = (np.abs(y - mean) <= NORMAL_90 * std).astype(np.float64)
            covered = _interval(sums(within) / count, there)
            width = float(2 * NORMAL_90 * std.mean())
        if name != reference:
            base = np.where(square[reference] > 0, square[reference], np.nan)
            more = _interval(100 * (np.sqrt(square[name] / base) - 1), there)
        results[name] = FoldScores(
            _interval(np.sqrt(square[name]), there),
            _interval(sums(np.abs(y - mean)) / count, there),
            _interval(1 - square[name] / spread, there),
            covered,
            width,
            more,
            (seconds or {}).get(name, float("nan")),
        )
    return results


def _interval(values: Float64s, there: NDArray[np.bool_]) -> Measured:
    """Of all rows, and of the samples."""
    samples = values[1:][there[1:]]
    samples = samples[np.isfinite(samples)]
    low, high = np.quantile(samples, _ENDS) if len(samples) else (np.nan, np.nan)
    return Measured(float(values[0]), float(low), float(high))
