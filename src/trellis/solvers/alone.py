r"""The max-margin model of single positions: where learning from label sets starts.

.. math:: \min_w \; \lambda \lVert w\rVert^2 + \sum_{v: |A_v| = 1} c_v \max_y \bigl[\Delta(A_v, y)
    + s_v(y)\bigr] - s_v(g_v) ,

over the positions whose label :math:`g_v` is known, without structure: a convex problem. At zero,
what is not known would be completed at random.
"""

from __future__ import annotations

import numpy as np

from trellis.arrays import Float64s
from trellis.problems import HingeDual, HingeLoss, LabelProblem
from trellis.solvers.frank_wolfe import run_frank_wolfe

__all__ = ["alone_weights"]


# Relative gap, and most passes.
_TOL, _PASSES = 0.05, 30


def alone_weights(problem: LabelProblem, weight: Float64s, l2: float) -> Float64s:
    """Weights (D,) of the positions of samples with these weights (S,); those of edges are zero."""
    alone = problem.apart()
    known = (problem.labels.table.sum(axis=1) == 1)[problem.labels.ids]
    shares = np.where(known, np.repeat(weight, np.diff(problem.offsets)), 0.0)
    labels = problem.labels.table.argmax(axis=1)[problem.labels.ids]
    dual = HingeDual(HingeLoss(alone, labels, shares), l2)
    result = run_frank_wolfe(dual, np.random.default_rng(0), max_passes=_PASSES, tol=_TOL)
    w = np.zeros(problem.n_weights)
    w[: alone.n_weights] = result.weights
    return w
