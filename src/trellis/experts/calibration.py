r"""Levels of confidence that mean what they say (Platt 1999).

An answer with the raw confidence r is right with the probability

.. math:: p = \sigma(a + b\,\mathrm{logit}(r)),

in which a and b maximise the likelihood of answers that are known to be right or wrong, with a
normal prior around a = 0 and b = 1 (nothing is changed) worth a few answers.

References
----------
J. Platt, *Probabilistic outputs for support vector machines*, 1999.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s

__all__ = ["Calibration"]

_EDGE = 1e-4  # no answer is surer than this
_PRIOR = np.array([1.0, 1.0])


@dataclass(frozen=True)
class Calibration:
    """The two numbers; the default changes nothing.

    Examples
    --------
    >>> import numpy as np
    >>> raw = np.full(1000, 0.9)
    >>> right = np.arange(1000) < 700  # not nine of ten, but seven
    >>> round(float(Calibration.of(raw, right).levels(raw)[0]), 2)
    0.7
    """

    offset: float = 0.0
    slope: float = 1.0

    @classmethod
    def of(cls, raw: NDArray[np.float64], right: NDArray[np.bool_]) -> Calibration:
        """Learn from answers that are known to be right or wrong."""
        if not len(raw):
            return cls()
        inputs = np.stack([np.ones(len(raw)), _logit(raw)], axis=1)
        mean = np.array([0.0, 1.0])
        w = mean.copy()
        target = right.astype(np.float64)

        def loss(w: Float64s) -> float:
            scores = np.where(right, 1.0, -1.0) * (inputs @ w)
            return float(np.logaddexp(0, -scores).sum() + _PRIOR @ (w - mean) ** 2)

        for _ in range(50):  # Newton's method on a convex function of two numbers
            p = 1 / (1 + np.exp(-np.clip(inputs @ w, -30, 30)))
            slope = inputs.T @ (p - target) + 2 * _PRIOR * (w - mean)
            curve = (inputs * (p * (1 - p))[:, None]).T @ inputs + 2 * np.diag(_PRIOR)
            step = np.linalg.solve(curve, slope)
            size = 1.0  # whole steps may go too far where most answers are nearly sure
            while size > 1e-6 and loss(w - size * step) > loss(w) - 1e-4 * size * (slope @ step):
                size /= 2
            w = w - size * step
            if np.abs(step).max() < 1e-10:
                break
        return cls(float(w[0]), float(w[1]))

    def levels(self, raw: NDArray[np.float64]) -> Float64s:
        """Probability that answers with these raw confidences are right."""
        scores = self.offset + self.slope * _logit(raw)
        p: Float64s = 1 / (1 + np.exp(-np.clip(scores, -30, 30)))
        return p


def _logit(raw: NDArray[np.float64]) -> Float64s:
    inside = np.clip(raw, _EDGE, 1 - _EDGE)
    scores: Float64s = np.log(inside) - np.log1p(-inside)
    return scores
