"""Negative log-likelihood of label sets, summed over pieces (the CRF objective without penalty).

    ℓ(w) = Σ_pieces weight · ( log Σ_y e^{s(y)} − log Σ_{y allowed} e^{s(y)} )

Fully annotated positions make the second sum one term; positions without annotation allow every
label. With pieces = whole samples and single labels it is the usual conditional log-likelihood.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trellis.objectives.chain import ChainData, ChainWeights, Visits

__all__ = ["LogLikelihood"]

# Positions between two refreshes of e^transitions: long enough to make short pieces cheap, short
# enough that transitions lag by no more than a sentence or two.
_REFRESH = 48


class LogLikelihood:
    """The CRF loss of a chain problem.

    Examples
    --------
    >>> import numpy as np
    >>> from trellis.corpus import as_corpus
    >>> from trellis.decompose import WholeSamples
    >>> from trellis.features import AttributeEncoder
    >>> from trellis.objectives import ChainData, ChainWeights, LogLikelihood
    >>> corpus = as_corpus([[["a"], ["b"]]], [["X", "Y"]])
    >>> data = ChainData(AttributeEncoder().learn(corpus), corpus.labels, np.ones(1))
    >>> loss = LogLikelihood(data)
    >>> pieces = data.visits(WholeSamples().draw(corpus.offsets, np.random.default_rng(0)))
    >>> value, gradient = loss.value_and_gradient(ChainWeights.zeros(2, 2, float), pieces)
    >>> round(value, 4)  # log 4: all four labellings are as likely
    1.3863
    """

    def __init__(self, data: ChainData) -> None:
        self.data = data

    def value_and_gradient(
        self, weights: ChainWeights, visits: Visits
    ) -> tuple[float, ChainWeights]:
        """Exact summed loss of the pieces and its gradient, in float64."""
        from trellis.kernels.chain_crf import crf_gradient

        n_features, n_labels = weights.node.shape
        gradient = ChainWeights.zeros(n_features, n_labels, np.float64)
        value = crf_gradient(
            *self.data.arrays(),
            visits.starts,
            visits.ends,
            visits.weights,
            np.ascontiguousarray(weights.node, np.float64),
            np.ascontiguousarray(weights.transitions, np.float64),
            gradient.node,
            gradient.transitions,
        )
        return float(value), gradient

    def descend(
        self,
        weights: ChainWeights,
        scale: float,
        visits: Visits,
        *,
        rate: float,
        decay: float,
        shrink: float,
        state: NDArray[np.float64] | None = None,
    ) -> tuple[float, float]:
        """One SGD step for each piece (rate · decay^k for the k-th); weights change in place.

        True node weights are scale · weights.node. Returns the summed loss met on the way and the
        new scale. ``shrink`` is the L2 penalty's share of one step. The new scale is also left in
        ``state[0]``: an interrupt strikes as soon as the kernel is done, before anything returns.
        """
        from trellis.kernels.chain_crf import crf_sgd

        state = np.empty(1) if state is None else state
        state[0] = scale
        loss = crf_sgd(
            *self.data.arrays(),
            visits.starts,
            visits.ends,
            visits.weights,
            weights.node,
            weights.transitions,
            state,
            float(rate),  # a NumPy number of another type would have the kernel compiled anew
            float(decay),
            float(shrink),
            _REFRESH,
        )
        return float(loss), float(state[0])
