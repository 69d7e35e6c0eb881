"""What a max-margin solver needs of a problem: loss-augmented inference, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from trellis.arrays import Float64s
from trellis.problems.cut import Cut

__all__ = ["StructuredOracle", "summed_risk"]


class StructuredOracle(Protocol):
    """A learning problem as the solvers see it: loss-augmented inference and nothing else.

    Give ``risk`` to :func:`trellis.solvers.minimise_bundle`, or ``best`` to
    :func:`trellis.solvers.minimise_frank_wolfe`; :func:`summed_risk` makes the former of the
    latter.

    Examples
    --------
    Multi-class classification as the smallest structure there is, one label:

    >>> class MultiClass:
    ...     def __init__(self, x, gold, n_classes):
    ...         self.x, self.gold, self.shape = x, gold, (n_classes, x.shape[1])
    ...         self.n_samples, self.n_weights = len(x), n_classes * x.shape[1]
    ...     def best(self, i, w):
    ...         scores = w.reshape(self.shape) @ self.x[i]
    ...         y = int((scores + (np.arange(self.shape[0]) != self.gold[i])).argmax())
    ...         psi = np.zeros(self.shape)
    ...         psi[self.gold[i]] += self.x[i]
    ...         psi[y] -= self.x[i]
    ...         return psi.ravel(), float(y != self.gold[i])
    ...     def risk(self, w):
    ...         return summed_risk(self.best, self.n_samples, self.n_weights)(w)
    >>> x = np.array([[2.0, 0, 1], [1, 0, 1], [0, 2, 1], [0, 1, 1]])
    >>> problem = MultiClass(x, np.array([0, 0, 1, 1]), 2)
    >>> from trellis.solvers import minimise_bundle, minimise_frank_wolfe
    >>> a = minimise_bundle(problem.risk, problem.n_weights, l2=0.1, floor=0.0, tol=1e-6)
    >>> b = minimise_frank_wolfe(problem.best, 4, problem.n_weights, l2=0.1, tol=1e-6, seed=0)
    >>> round(a.objective, 3), round(b.objective, 3)
    (0.1, 0.1)
    """

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        ...

    @property
    def n_weights(self) -> int:
        """Number of weights D."""
        ...

    def risk(self, w: Float64s) -> Any:
        """Return the sum of all losses and a subgradient, or a ``Cut`` if inference is inexact."""
        ...

    def best(self, i: int, w: Float64s) -> Any:
        """Return psi and loss of the labelling of sample i that attains its hinge loss.

        psi is the features of the gold labelling less those of this, dense or as indices and
        values. If the labelling need not be the best, an upper bound of the hinge loss follows.
        """
        ...


def summed_risk(
    best: Callable[[int, Float64s], Any],
    n_samples: int,
    n_weights: int,
    sample_weight: Float64s | None = None,
) -> Callable[[Float64s], Any]:
    """Make the risk of the bundle method from an oracle for single samples.

    Parameters
    ----------
    best : function of a sample's number and w
        As :meth:`StructuredOracle.best`.
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
