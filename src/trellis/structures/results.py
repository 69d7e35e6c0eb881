"""What the questions about labellings and probabilities answer, and how sure the answers are."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from trellis.arrays import Bools, Float64s, Int32s, Int64s, as_array
from trellis.errors import DataError

__all__ = ["Best", "Marginals", "in_unit"]


def in_unit(values: Float64s, unit: float) -> Float64s:
    """Scores that were measured in a unit, as they are; ±inf beyond the largest float."""
    if unit == 1.0:
        return values
    with np.errstate(over="ignore"):
        scores: Float64s = values / unit
    return scores


class Best(tuple[Int32s, Float64s]):
    """Labellings of high score, each with an upper bound on the best.

    It is the pair of labels and scores, ``labels, scores = best(p)``, and has the rest besides.

    Parameters
    ----------
    labels : int32, shape (N,)
        The labels, stacked as the node scores are.
    scores : float64, shape (S,)
        Their scores. ``-inf`` where ``"dual"`` or ``"lp"`` found no labelling that is allowed.
    bounds : float64, shape (S,)
        No labelling has a higher score than this. Equal to the score where that is exact.
    exact : bool, shape (S,)
        Whether the labelling is the best: whether its score is within 1e-6 (and rounding) of the
        bound.
    method : tuple of str, length S
        How each labelling was found.
    """

    bounds: Float64s
    exact: Bools
    method: tuple[str, ...]

    def __new__(
        cls,
        labels: Int32s,
        scores: Float64s,
        bounds: Float64s,
        exact: Bools,
        method: tuple[str, ...],
    ) -> Self:
        """Make the pair and add the rest."""
        new = super().__new__(cls, (labels, scores))
        new.bounds, new.exact, new.method = bounds, exact, method
        return new

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.labels, self.scores, self.bounds, self.exact, self.method

    @classmethod
    def exactly(cls, labels: Int32s, scores: Float64s, method: str) -> Self:
        """The best labellings, found by one method for all samples."""
        n = len(scores)
        return cls(labels, scores, scores, np.ones(n, np.bool_), (method,) * n)

    def in_unit(self, unit: float) -> Best:
        """The same with scores and bounds that were measured in a unit as they are."""
        scores, bounds = in_unit(self.scores, unit), in_unit(self.bounds, unit)
        return Best(self.labels, scores, bounds, self.exact, self.method)

    @property
    def labels(self) -> Int32s:
        """The labels."""
        return self[0]

    @property
    def scores(self) -> Float64s:
        """Their scores."""
        return self[1]

    @property
    def gap(self) -> Float64s:
        """How much better than the labelling the best may be."""
        return self.bounds - self.scores


class Marginals(tuple[Float64s, Float64s]):
    """Probabilities of labels and of pairs of labels.

    It is the pair of log Z and the probabilities of labels, ``log_z, node = marginals(p)``, and has
    the rest besides.

    Parameters
    ----------
    log_z : float64, shape (S,)
        Logarithm of the normaliser of each sample.
    node : float64, shape (N, L)
        Probability of each label at each position or node.
    pair : float64, shape (N, L, L) of chains, (E, L, L) of graphs, optional
        Of chains, P(y_{t-1} = i, y_t = j) in entry [t, i, j], zero at the first position of a
        sample; of graphs, the probability of each pair of labels at each edge, indexed as its table
        is. None where it was not asked for.
    exact : bool, shape (S,), optional
        Whether they are exact rather than those of loopy belief propagation; by default they are.
    converged : bool, shape (S,), optional
        Whether the messages settled; true of exact methods.
    n_iterations : int64, shape (S,), optional
        Number of turns of the messages; 0 for elimination, 1 on chains and forests.
    """

    exact: Bools
    converged: Bools
    n_iterations: Int64s
    _pair: Float64s | None

    def __new__(
        cls,
        log_z: Float64s,
        node: Float64s,
        pair: Float64s | None = None,
        *,
        exact: Bools | None = None,
        converged: Bools | None = None,
        n_iterations: Int64s | None = None,
    ) -> Self:
        """Make the pair and add the rest."""
        log_z = as_array(log_z, np.float64, "log_z", (None,))
        node = as_array(node, np.float64, "node", (None, None))
        if pair is not None:
            pair = as_array(pair, np.float64, "pair", (None, None, None))
        new = super().__new__(cls, (log_z, node))
        n = len(log_z)
        new._pair = pair
        new.exact = np.ones(n, np.bool_) if exact is None else exact
        new.converged = np.ones(n, np.bool_) if converged is None else converged
        new.n_iterations = np.ones(n, np.int64) if n_iterations is None else n_iterations
        return new

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.log_z, self.node

    @property
    def log_z(self) -> Float64s:
        """Logarithm of the normaliser of each sample."""
        return self[0]

    @property
    def node(self) -> Float64s:
        """Probabilities of labels."""
        return self[1]

    @property
    def pair(self) -> Float64s:
        """Probabilities of pairs of labels."""
        if self._pair is None:
            raise DataError("pairs of labels were not asked for; use marginals(p, pairs=True)")
        return self._pair
