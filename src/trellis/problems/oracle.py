"""What a max-margin solver needs of a problem: loss-augmented inference, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from trellis.arrays import Float64s
from trellis.problems.cut import Cut

__all__ = ["summed_risk"]


def summed_risk(
    best: Callable[[int, Float64s], Any],
    n_samples: int,
    n_weights: int,
    sample_weight: Float64s | None = None,
) -> Callable[[Float64s], Cut]:
    """Make the risk of the bundle method from an oracle for single samples.

    Parameters
    ----------
    best : function of a sample's number and w
        Returns psi and loss of the labelling that attains the hinge loss of the sample, as for
        :func:`trellis.solvers.minimise_frank_wolfe`. psi is the features of the gold labelling less
        those of this, dense or as indices and values. If the labelling need not be the best, an
        upper bound of the hinge loss follows.
    n_samples, n_weights : int
        Numbers of samples and of weights.
    sample_weight : float64, shape (n_samples,), optional
        Weight of each sample.

    Returns
    -------
    function of w
        Returns a :class:`trellis.problems.Cut`.

    Examples
    --------
    >>> risk = summed_risk(lambda i, w: (np.ones(2), 1.0), 3, 2)
    >>> cut = risk(np.array([0.5, 0.0]))
    >>> cut.upper, cut.slope.tolist()
    (1.5, [-3.0, -3.0])

    Multi-class classification as the smallest structure there is, one label:

    >>> x = np.array([[2.0, 0, 1], [1, 0, 1], [0, 2, 1], [0, 1, 1]])
    >>> gold = np.array([0, 0, 1, 1])
    >>> def best(i, w):
    ...     y = int((w.reshape(2, 3) @ x[i] + (np.arange(2) != gold[i])).argmax())
    ...     psi = np.zeros((2, 3))
    ...     psi[gold[i]] += x[i]
    ...     psi[y] -= x[i]
    ...     return psi.ravel(), float(y != gold[i])
    >>> from trellis.solvers import minimise_bundle, minimise_frank_wolfe
    >>> a = minimise_bundle(summed_risk(best, 4, 6), 6, l2=0.1, floor=0.0, tol=1e-6)
    >>> b = minimise_frank_wolfe(best, 4, 6, l2=0.1, tol=1e-6, seed=0)
    >>> round(a.objective, 3), round(b.objective, 3)
    (0.1, 0.1)
    """
    weight = np.ones(n_samples) if sample_weight is None else sample_weight

    def risk(w: Float64s) -> Cut:
        upper = lower = 0.0
        slope = np.zeros(n_weights)
        for i in range(n_samples):
            psi, loss, *bound = best(i, w)
            index, values = psi if isinstance(psi, tuple) else (slice(None), psi)
            value = float(loss) - float(values @ w[index])
            lower += float(weight[i]) * value
            upper += float(weight[i]) * (float(bound[0]) if bound else value)
            slope[index] -= weight[i] * values
        return Cut(upper, lower, slope)

    return risk
