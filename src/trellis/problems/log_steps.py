r"""A quick pass of gradient steps of the log-likelihood: what is learned of labels on the way.

.. math:: w \leftarrow w - r \nabla \ell_n(w) - \text{the share of } \lambda \lVert w\rVert^2

for one annotated sample n after the other, at a fixed rate r. It touches only the weights of
features that these samples have, and takes milliseconds; its probabilities say what is unsure.
"""

from __future__ import annotations

import numpy as np

from trellis.arrays import Float64s, Int64s
from trellis.problems.label_problem import LabelProblem
from trellis.problems.log_likelihood import LogLikelihood
from trellis.problems.log_objective import whole_samples
from trellis.problems.weights import Weights

__all__ = ["log_pass"]

# How far one step moves the scores of a position.
_PACE = 2.0


def log_pass(problem: LabelProblem, w: Float64s, samples: Int64s, l2: float) -> bool:
    """Make one pass over samples in this order, in place; False if nothing is known of them.

    Parameters
    ----------
    problem : LabelProblem
        The samples with what is known of them.
    w : float64, shape (D,)
        Weights.
    samples : int64, shape (n,)
        Numbers of samples.
    l2 : float
        Factor of the squared norm beside the sum of the losses.

    Examples
    --------
    >>> from trellis.corpus import as_corpus
    >>> from trellis.features import AttributeEncoder
    >>> corpus = as_corpus([[["a"], ["b"]]], [["X", "Y"]])
    >>> problem = LabelProblem(AttributeEncoder().learn(corpus), corpus.labels, 2)
    >>> w = np.zeros(problem.n_weights)
    >>> log_pass(problem, w, np.array([0]), 0.1)
    True
    >>> problem.weights(w).node.round(2).tolist()
    [[0.71, -0.71], [-0.71, 0.71]]
    """
    near = problem.near_annotated(samples)
    if not near.n_samples:
        return False
    part, met = near.with_features_met()
    e, state, flat = part.encoded, np.array([1.0, 0.0]), problem.weights(w)
    weights = Weights(flat.node[met], flat.transitions, flat.edge)
    squares = np.square(e.values).sum() if e.values.size else len(e.indices)
    # A step of a position with the mean squared norm of features m moves its score by rate m.
    rate = _PACE * len(part.labels) / max(float(squares), 1.0)
    LogLikelihood(part).descend(
        weights, whole_samples(part), state, rate=rate, shrink=l2 / part.n_samples
    )
    flat.node[met] = weights.node * state[0]  # the transitions have no scale
    if weights.edge is not None:
        weights.edge.values *= state[0]
    return True
