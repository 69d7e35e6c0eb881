"""Stochastic gradient descent with the schedule of Sun (2014).

At the k-th visited piece of pass p (N pieces a pass) the rate is r_0 · β^(p + k/N): it falls by β a
pass, smoothly. The gradient of a piece is not divided by anything; the penalty reg·‖w‖² is spread
evenly over the pass (each visit takes the proximal step of its share reg/N) or, as in the authors'
program, applied once at the end of the pass with the last rate.

``calibrate`` finds r_0 by trial, as Bottou's CRF programs do: the rate with the lowest loss on one
pass over a small part of the data, searched by doubling and halving.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trellis.decompose import Partitioner
from trellis.objectives import ChainData, ChainWeights, LogLikelihood
from trellis.objectives.chain import Visits
from trellis.solvers.passes import BLOCK

__all__ = ["StochasticGradient", "calibrate"]

# Trials of learning rates: fewest visits, and the range that is searched. The lower end is for a
# squared feature norm of one: where new samples cannot be predicted at all, the smallest rate would
# look best, and nothing would be learned.
_TRIAL_VISITS = 64
_SLOWEST, _FASTEST = 1e-3, 1.0


class StochasticGradient:
    """SGD on the penalised log-likelihood of pieces.

    Parameters
    ----------
    objective : LogLikelihood
    start : ChainWeights
        Initial weights (float32 or float64); changed in place.
    learning_rate, decay : float
        r_0 and β; β = 1 is a fixed rate.
    l2 : float
        reg in sum of losses + reg · ‖w‖².
    l2_once : bool
        Apply the penalty once a pass instead of at every visit.
    """

    def __init__(
        self,
        objective: LogLikelihood,
        start: ChainWeights,
        *,
        learning_rate: float,
        decay: float,
        l2: float,
        l2_once: bool = False,
    ) -> None:
        self.objective = objective
        self.learning_rate, self.decay = learning_rate, decay
        self.l2, self.l2_once = l2, l2_once
        self._weights = start
        self._scale = np.ones(1)  # in place, so that it is right after an interrupt

    @property
    def data(self) -> ChainData:
        """The training data."""
        return self.objective.data

    def one_pass(self, these: Visits, number: int) -> float:
        """Visit the pieces; returns the summed loss met plus the penalty at the end."""
        n = max(1, len(these))
        loss = 0.0
        for block in these.blocks(BLOCK):
            part, _ = self.objective.descend(
                self._weights,
                self._scale[0],
                these[block],
                rate=self.learning_rate * self.decay ** (number + block.start / n),
                decay=self.decay ** (1 / n),
                shrink=0.0 if self.l2_once else self.l2 / n,
                state=self._scale,
            )
            loss += part
        if self.l2_once:
            last = self.learning_rate * self.decay ** (number + 1)
            keep = 1 / (1 + 2 * last * self.l2)
            self._scale[0] *= keep
            self._weights.transitions *= self._weights.transitions.dtype.type(keep)
        return loss + self.l2 * self.weights().squared_norm()

    def weights(self) -> ChainWeights:
        """The weights as of now (scaled in place; valid until the next pass)."""
        if self._scale[0] != 1.0:
            self._weights.node *= self._weights.node.dtype.type(self._scale[0])
            self._scale[0] = 1.0
        return self._weights


def calibrate(
    data: ChainData,
    partitioner: Partitioner,
    rng: np.random.Generator,
    *,
    l2: float,
    n_samples: int = 1000,
    first: float = 0.1,
) -> float:
    """Initial rate r_0 with the lowest loss on one pass over up to ``n_samples`` samples."""
    n = len(data.encoded.offsets) - 1
    chosen = np.sort(rng.choice(n, min(n, n_samples), replace=False))
    pieces = partitioner.draw(data.encoded.offsets, rng)
    mine = np.flatnonzero(np.isin(pieces.sample, chosen))
    trial_visits = data.visits(pieces, rng.permutation(mine))
    compact, trial_visits = _compact(data, trial_visits)
    # A few sequences are gone through several times: a single step says nothing about a rate.
    trial_visits = trial_visits.repeated(-(-_TRIAL_VISITS // max(1, len(trial_visits))))
    n_used = int(compact.encoded.indices.max(initial=-1)) + 1
    share = l2 / max(1, len(pieces))
    e = compact.encoded
    squares = (
        float(np.square(e.values, dtype=np.float64).sum()) if e.values.size else len(e.indices)
    )
    slowest = _SLOWEST * max(1, len(compact.labels)) / max(squares, 1.0)

    half = len(trial_visits) // 2
    parts = [slice(0, half), slice(half, None)]
    if n <= n_samples:
        # All data are in the trial: measure in a second pass. Where few noisy samples say nothing
        # about the next, the best rate for what is new would be none at all.
        parts = [slice(None), slice(None)]

    def loss(rate: float) -> float:
        """Loss met in the last part: the first steps from zero say little about a rate."""
        weights, scale, met = ChainWeights.zeros(n_used, data.n_labels), 1.0, np.inf
        for part in parts:
            met, scale = LogLikelihood(compact).descend(
                weights, scale, trial_visits[part], rate=rate, decay=1.0, shrink=share
            )
        return met if np.isfinite(met) else np.inf

    rate, best = first, loss(first)
    for factor in (2.0, 0.5):
        while slowest < rate * factor < _FASTEST and (tried := loss(rate * factor)) < best:
            rate, best = rate * factor, tried
        if rate != first:
            break
    # The trial is short and has no decay; a run of many passes with a falling rate ends lower
    # from twice its best rate (on every data set tried, of 4 to 49 labels, words or sensors).
    return 2 * rate


def _compact(data: ChainData, these: Visits) -> tuple[ChainData, Visits]:
    """The same visits over only the positions and features they touch, for cheap trials."""
    lengths = these.ends - these.starts
    ends = np.cumsum(lengths)
    starts = ends - lengths
    within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(starts, lengths)
    positions = np.repeat(these.starts, lengths) + within
    e = data.encoded
    counts = e.indptr[positions + 1] - e.indptr[positions]
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    where = np.repeat(e.indptr[positions] - indptr[:-1], counts) + np.arange(indptr[-1])
    _, indices = np.unique(e.indices[where], return_inverse=True)
    encoded = replace(
        e,
        indptr=indptr,
        indices=indices.astype(np.int32),
        values=e.values[where] if e.values.size else e.values,
    )
    compact = replace(data, encoded=encoded, labels=data.labels.take(positions))
    return compact, Visits(starts, ends, these.weights)
