"""When to stop: the mean relative improvement over up to the last ten passes (Sun 2014).

With objectives o_1 … o_p, at pass p ≥ 3,

    value = (o_{p−k} − o_p) / (m · |o_p|),    k = min(p − 1, 10),

where m = k, except that m = 9 once k = 10: the authors' program takes the oldest objective out of
its window before it divides. Training has converged when the value falls below a tolerance (the
paper's is 1e-4).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trellis.arrays import as_array

__all__ = ["convergence_value"]

_WINDOW = 10


def convergence_value(objectives: Sequence[float]) -> float | None:
    """Convergence value after the last objective; None before the third.

    Examples
    --------
    >>> convergence_value([100.0, 80.0]) is None
    True
    >>> convergence_value([100.0, 80.0, 75.0])
    0.16666666666666666
    """
    objectives = as_array(objectives, np.float64, "objectives", (None,)).tolist()
    if len(objectives) < 3:
        return None
    current = objectives[-1]
    before = objectives[-1 - _WINDOW : -1]
    divisor = len(before) - 1 if len(before) == _WINDOW else len(before)
    if current == 0:
        return 0.0
    return (before[0] - current) / divisor / abs(current)
