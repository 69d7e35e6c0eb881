"""Cells and sentences that several sections share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

__all__ = [
    "compared",
    "difference",
    "interval",
    "mean_se",
    "percent_interval",
    "percent_se",
    "ratio_text",
    "within_noise",
]


def mean_se(values: ArrayLike) -> tuple[float, float]:
    """Mean and its standard error; an error of 0 for a single value.

    Examples
    --------
    >>> mean_se([1.0, 3.0])
    (2.0, 1.0)
    """
    array = np.asarray(values, np.float64)
    n = len(array)
    return float(array.mean()), float(array.std(ddof=1) / np.sqrt(n)) if n > 1 else 0.0


def interval(values: ArrayLike) -> tuple[float, float]:
    """Mean over runs, and half the width of its 95 % interval (Student's t); 0 for a single run.

    Examples
    --------
    >>> mean, half = interval([1.0, 2.0, 3.0])
    >>> mean, round(half, 2)
    (2.0, 2.48)
    """
    from scipy.stats import t

    mean, error = mean_se(values)
    n = np.size(values)
    return mean, error * float(t.ppf(0.975, n - 1)) if n > 1 else 0.0


def percent_interval(values: ArrayLike, digits: int = 2) -> str:
    """Mean over runs ± half its 95 % interval in per cent; the mean alone for a single run.

    Examples
    --------
    >>> percent_interval([0.01, 0.02, 0.03]), percent_interval([0.25], 1)
    ('2.00 ± 2.48', '25.0')
    """
    mean, half = interval(values)
    text = f"{100 * mean:.{digits}f}"
    return text if np.size(values) < 2 else f"{text} ± {100 * half:.{digits}f}"


def percent_se(values: ArrayLike) -> str:
    """Mean ± standard error in per cent.

    Examples
    --------
    >>> percent_se([0.01, 0.03])
    '2.00 ± 1.00'
    """
    mean, error = mean_se(values)
    return f"{100 * mean:.2f} ± {100 * error:.2f}"


def difference(runs: Sequence[Sequence[float]], base: Sequence[float]) -> tuple[float, float]:
    """Mean of runs (R, n) less a baseline (n,), with its standard error.

    The error is that of the mean over the n frame pairs, which are paired, and over the runs.

    Examples
    --------
    >>> difference([[2.0, 4.0]], [1.0, 1.0])
    (2.0, 1.0)
    """
    away = np.asarray(runs, np.float64) - np.asarray(base, np.float64)
    mean, over_pairs = mean_se(away.mean(axis=0))
    _, over_runs = mean_se(away.mean(axis=1))
    return mean, float(np.hypot(over_pairs, over_runs))


def compared(a: str, first: Sequence[float], b: str, second: Sequence[float]) -> str:
    """Sentence on the losses of two methods on the same frame pairs.

    Examples
    --------
    >>> compared("A", [0.1, 0.2, 0.1], "B", [0.3, 0.3, 0.3])
    'A before B: yes (loss lower by 16.67 ± 3.33 points)'
    >>> compared("A", [0.3], "B", [0.3])
    'A before B: within noise (loss lower by 0.00 ± 0.00 points)'
    """
    gain, error = difference([second], first)
    verdict = "within noise" if abs(gain) <= 2 * error or gain == 0 else "yes" if gain > 0 else "NO"
    side = "lower" if gain >= 0 else "higher"
    points = f"loss {side} by {100 * abs(gain):.2f} ± {100 * error:.2f} points"
    return f"{a} before {b}: {verdict} ({points})"


def within_noise(away: Mapping[int, tuple[float, float]]) -> tuple[int | None, int | None]:
    """The first share that is within noise of a baseline, and the first from which on all are.

    By share: how far it is from the baseline, and the standard error; noise is two of those.

    Examples
    --------
    >>> within_noise({10: (0.1, 0.1), 20: (0.5, 0.1), 50: (0.2, 0.1), 80: (-0.3, 0.1)})
    (10, 50)
    >>> within_noise({10: (0.1, 0.1), 20: (0.5, 0.1)})
    (10, None)
    """
    same = [share for share, (mean, error) in away.items() if mean <= 2 * error]
    steady = [s for s in same if all(t in same for t in away if t > s)]
    return min(same, default=None), min(steady, default=None)


def ratio_text(values: Sequence[float]) -> str:
    """Mean of ratios over runs ± half its 95 % interval.

    Examples
    --------
    >>> ratio_text([2.0, 3.0, 4.0]), ratio_text([3.0])
    ('3.0 ± 2.5', '3.0')
    """
    mean, half = interval(values)
    return f"{mean:.1f}" if len(values) < 2 else f"{mean:.1f} ± {half:.1f}"
