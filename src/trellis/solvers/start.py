r"""Where learning from label sets starts: at zero, what is not known would be completed at random.

If the problem can be taken apart into nodes (chains, trees, graphs), the start is the max-margin
model of single positions,

.. math:: \min_w \; \lambda \lVert w\rVert^2 + \sum_{v: |A_v| = 1} c_v \max_y \bigl[\Delta(A_v, y)
    + s_v(y)\bigr] - s_v(g_v) ,

over those whose label :math:`g_v` is known, without structure: a convex problem. Else, and for the
ramp loss, it is the averaged perceptron of partial annotations, a few passes over the data.
"""

from __future__ import annotations

import numpy as np

from trellis.arrays import Float64s
from trellis.problems import HingeDual, HingeLoss, LabelProblem, PartialObjective
from trellis.solvers.frank_wolfe import run_frank_wolfe
from trellis.solvers.perceptron_partial import partial_perceptron

__all__ = ["start_weights"]


# Relative gap and most passes of single positions; passes of the perceptron.
_TOL, _PASSES, _PERCEPTRON_PASSES = 0.05, 30, 10


def start_weights(objective: PartialObjective, l2: float, seed: int | None = None) -> Float64s:
    """Weights (D,) to begin with; of single positions those of edges are zero."""
    problem = objective.problem
    # With the ramp loss all outputs are rewarded, right or wrong: it stays where it starts.
    rewarded = objective.loss.reward == "compatible"
    if not (l2 and rewarded and isinstance(problem, LabelProblem)):
        return partial_perceptron(problem, passes=_PERCEPTRON_PASSES, seed=seed)
    alone = problem.apart()
    weight = np.zeros(problem.n_samples)
    weight[objective.samples] = objective.sample_weight
    known = (problem.labels.table.sum(axis=1) == 1)[problem.labels.ids]
    shares = np.where(known, np.repeat(weight, np.diff(problem.offsets)), 0.0)
    labels = problem.labels.table.argmax(axis=1)[problem.labels.ids]
    dual = HingeDual(HingeLoss(alone, labels, shares), l2)
    result = run_frank_wolfe(dual, np.random.default_rng(0), max_passes=_PASSES, tol=_TOL)
    w = np.zeros(problem.n_weights)
    w[: alone.n_weights] = result.weights
    return w
