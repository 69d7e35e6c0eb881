"""What a max-margin solver needs of a problem: loss-augmented inference, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from trellis.arrays import Float64s, Int64s, as_array
from trellis.corpus.sample_weights import sample_weights
from trellis.domains import function, is_finite, takes, whole
from trellis.errors import DataError
from trellis.problems.cut import Cut

__all__ = ["as_answer", "summed_risk"]


def as_answer(answer: Any, w: Float64s, i: int) -> tuple[Int64s, Float64s, float, float | None]:
    """Return the answer of an oracle for sample i, checked: indices, psi, loss, bound or None.

    Raises
    ------
    DataError
        If it is not what :func:`summed_risk` says, or a number is not finite.
    """
    what = f"sample {i}: the oracle's"
    if not isinstance(answer, tuple | list) or len(answer) not in (2, 3):
        raise DataError(f"{what} answer is not psi and loss of a labelling, and maybe a bound")
    psi, *values = answer
    if not all(map(is_finite, values)):
        raise DataError(f"{what} features or loss are not finite")
    if isinstance(psi, tuple) and len(psi) == 2:
        index = as_array(psi[0], np.int64, f"{what} indices", (None,), low=0, high=len(w))
        if len(np.unique(index)) < len(index):
            raise DataError(f"{what} indices must be distinct, with a value each")
        psi = as_array(psi[1], np.float64, f"{what} features", index.shape)
    else:
        dense = as_array(psi, np.float64, f"{what} features", w.shape)
        index = np.flatnonzero(dense)
        psi = dense[index]
    if not np.isfinite(psi).all():
        raise DataError(f"{what} features or loss are not finite")
    loss, *bound = (float(value) for value in values)
    return index, psi, loss, bound[0] if bound else None


@takes(best=function, n_samples=whole(0), n_weights=whole(0))
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
    weight = sample_weights(sample_weight, n_samples, all_zero=True)

    def risk(w: Float64s) -> Cut:
        w = as_array(w, np.float64, "w", (n_weights,))
        upper = lower = 0.0
        slope = np.zeros(n_weights)
        for i in range(n_samples):
            index, psi, loss, bound = as_answer(best(i, w), w, i)
            value = loss - float(psi @ w[index])
            lower += float(weight[i]) * value
            upper += float(weight[i]) * (value if bound is None else bound)
            slope[index] -= weight[i] * psi
        return Cut(upper, lower, slope)

    return risk
