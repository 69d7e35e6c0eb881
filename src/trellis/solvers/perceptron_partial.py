r"""The structured perceptron of partial annotations (Fernandes & Brefeld 2011).

A sample whose best output :math:`\hat y` is not compatible with what is known of it moves the
weights towards the best output that is,

.. math::

    w \leftarrow w + \Phi(x, y^+) - \Phi(x, \hat y), \qquad
    \hat y = \operatorname*{argmax}_{y \in \mathcal Y} f(x, y; w), \quad
    y^+ = \operatorname*{argmax}_{y \in \mathcal Y^*} f(x, y; w),

and the result is the average of the weights on the way. With complete annotations that is the
averaged structured perceptron (Collins 2002).
"""

from __future__ import annotations

import math

import numpy as np

from trellis.arrays import Float64s, as_array
from trellis.domains import flag, has, nothing, seed, takes, whole
from trellis.problems.problem import Problem

__all__ = ["partial_perceptron"]


# Adding so many weights to their sum costs about as much as a visit.
_CHEAP = 20_000


@takes(problem=has("update", "maxima"), passes=whole(1), average=flag, seed=nothing | seed)
def partial_perceptron(
    problem: Problem,
    *,
    passes: int,
    average: bool = True,
    start: Float64s | None = None,
    seed: int | None = None,
) -> Float64s:
    """Learn from partly annotated samples by perceptron steps.

    Parameters
    ----------
    problem : Problem
        The samples; those of which nothing is known are left out.
    passes : int
        Most passes over the samples; a pass without an error is the last.
    average : bool
        Return the average of the weights over the visits (every so many of them, if the weights are
        many) in place of the last.
    start : float64, shape (D,), optional
        Weights to start from; zero by default.
    seed : int, optional
        Seed of the order of the samples in each pass; in their own order by default.

    Returns
    -------
    float64, shape (D,)
        The weights.

    Raises
    ------
    DataError
        If ``passes`` or ``start`` do not fit.

    Examples
    --------
    >>> from trellis.corpus import as_corpus
    >>> from trellis.features import AttributeEncoder
    >>> from trellis.problems.label_problem import LabelProblem
    >>> corpus = as_corpus([[["a"], ["b"]], [["b"], ["a"]]], [["X", None], ["Y", None]])
    >>> problem = LabelProblem(AttributeEncoder().learn(corpus), corpus.labels, 2)
    >>> w = partial_perceptron(problem, passes=10)
    >>> problem.maxima(w, "all").losses.tolist()
    [0.0, 0.0]
    """
    w = np.zeros(problem.n_weights)
    if start is not None:
        w = as_array(start, np.float64, "start", w.shape).copy()
    samples = np.flatnonzero(problem.annotated)
    rng = None if seed is None else np.random.default_rng(seed)
    every = math.ceil(problem.n_weights / _CHEAP)
    total, visits, taken = np.zeros(len(w)), 0, 0
    for _ in range(passes):
        errors = 0
        order = samples if rng is None else rng.permutation(samples)
        for i in order.tolist():
            errors += problem.update(i, w)
            visits += 1
            if average and visits % every == 0:
                total += w
                taken += 1
        if not errors:
            break
    return total / taken if taken else w
