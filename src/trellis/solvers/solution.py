"""What the solvers of this package answer with: a point, and how good it is known to be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from trellis.arrays import Float64s

__all__ = ["Solution"]


@dataclass(frozen=True, eq=False)
class Solution:
    """Outcome of a run.

    Parameters
    ----------
    weights : float64, shape (D,)
        The best point met.
    objective : float
        J there; an upper bound of it, if an oracle is not exact.
    gap : float
        By how much the optimum may be lower; infinite where J is not convex.
    stop_reason : str
        "gap", "interrupted"; "max_passes", "max_iterations" or "max_rounds"; "no progress": a pass
        did not raise the dual, or the oracles have nothing to add, as happens when one is not exact
        or the gap is down to rounding errors; "eta": J fell by next to nothing in a round of full
        precision (if that was not reached, the reason is that of the inner solver).
    exact : bool
        Whether all inference was exact; the gap is valid all the same.
    records : list
        What each pass, iteration or round brought.
    lower_bound : float
        J has no value below this, as far as is known.
    n_planes : int
        How often the maxima of all samples were computed for planes.

    Examples
    --------
    >>> Solution(np.zeros(1), 2.0, 0.5, "max_iterations", True, [], lower_bound=1.5).gap
    0.5
    """

    weights: Float64s
    objective: float
    gap: float
    stop_reason: str
    exact: bool
    records: list[Any]
    lower_bound: float = -np.inf
    n_planes: int = 0

    @property
    def rounds(self) -> list[Any]:
        """The records, as the concave-convex procedure calls them."""
        return self.records
