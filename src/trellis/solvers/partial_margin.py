r"""Max-margin training from annotations, complete or partial: one call that chooses the solver.

.. math:: \min_w \; \Omega(w) + \sum_n c_n \, [P_n(w) - R_n(w)]_+

(:mod:`trellis.problems.partial`). Where the sum of the losses is convex, the bundle method finds
the optimum to a known gap. Where it is not, the concave-convex procedure finds a stationary point,
and where that lies depends on where it starts (:mod:`trellis.solvers.start`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trellis.arrays import Float64s
from trellis.errors import DataError
from trellis.problems import PartialObjective
from trellis.solvers.cccp import PlaneSurrogate, minimise_cccp
from trellis.solvers.planes import minimise_bundle
from trellis.solvers.solution import Solution
from trellis.solvers.start import start_weights

__all__ = ["minimise_partial", "planes_kept"]


# Numbers that all planes may take if nobody says how many to keep: 64 MB, or a few planes. An
# iteration reads all of them several times, which soon costs more than the inference: with 97,000
# weights, 86 planes took half the time of all (415), to the same objective.
_NUMBERS, _FEW = 1 << 23, 50


def planes_kept(n_weights: int) -> int:
    """Number of planes that are kept if nobody says how many."""
    return max(_FEW, _NUMBERS // max(n_weights, 1))


def minimise_partial(
    objective: PartialObjective,
    *,
    l2: float = 0.0,
    l1: float = 0.0,
    tol: float = 1e-2,
    memory: int | None = None,
    limit: int | None = None,
    start: Float64s | None = None,
    recycle: bool = True,
    adaptive: bool = True,
    seed: int | None = None,
    report: Callable[[Any], None] | None = None,
) -> Solution:
    """Minimise the regularised losses of annotated samples.

    Parameters
    ----------
    objective : PartialObjective
        The losses.
    l2, l1 : float
        Factor of ||w||^2 or of ||w||_1.
    tol : float
        Relative gap of the bundle method, and relative fall of the objective at which the
        concave-convex procedure ends.
    memory : int, optional
        Most planes kept; as many as 64 MB hold by default.
    limit : int, optional
        Most iterations (1000 by default), or rounds where the objective is not convex (50).
    start : float64, shape (D,), optional
        Where to begin if the objective is not convex.
    recycle, adaptive : bool
        Bounds recycling and adaptive precision of :mod:`trellis.solvers.cccp`.
    seed : int, optional
        Of the perceptron that finds the start, where it does.
    report : function, optional
        Called with the record of each iteration or round.

    Returns
    -------
    Solution

    Raises
    ------
    DataError
        If nothing is annotated.
    """
    if not len(objective.samples):
        raise DataError("nothing is annotated: there is nothing to learn from")
    n = objective.n_weights
    memory = planes_kept(n) if memory is None else memory
    if objective.convex:
        return minimise_bundle(
            objective.risk, n, l2=l2, l1=l1, floor=0.0, memory=memory, tol=tol,
            max_iterations=1000 if limit is None else limit, report=report,
        )  # fmt: skip
    if start is None:
        start = start_weights(objective, l2, seed)
    surrogate = PlaneSurrogate(
        objective.penalty, objective.reward, l2=l2, l1=l1, reward_below=True, recycle=recycle,
        memory=memory,
    )  # fmt: skip
    return minimise_cccp(
        surrogate, start, first_tol=max(tol, 0.1) if adaptive else tol, tol=tol, eta=tol,
        max_rounds=50 if limit is None else limit, report=report,
    )  # fmt: skip
