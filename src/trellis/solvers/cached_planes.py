r"""Frank–Wolfe with cached planes: each labelling that inference found is used again and again.

In the dual of structured hinge losses (:mod:`trellis.solvers.frank_wolfe`) sample i has a
distribution :math:`\alpha_i` over its labellings, here over the few that were found so far, its
*planes* (Shah, Kolmogorov & Lampert, *A multi-plane block-coordinate Frank-Wolfe algorithm*, 2015).
With :math:`h_p = \Delta_p - \langle w, \psi_p\rangle` the dual rises with the share of plane p at
the rate :math:`c_i h_p`. A visit without inference takes the values of all planes at the present
weights and moves shares from the lowest of those in use to the highest (pairwise steps),

.. math::

    \gamma = \frac{2\lambda (h_s - h_a)}{c_i \lVert\psi_s - \psi_a\rVert^2}
    \quad\text{cut to } [0, \alpha_a], \qquad
    w \leftarrow w + \gamma \frac{c_i}{2\lambda} (\psi_s - \psi_a),

until the planes of the sample bring no more: the products of its planes are known, so that h
follows without w. Inference, which costs far more, is asked of many samples at the same weights;
planes that were found long ago are weighed anew in every visit, so that nothing is lost by it.

If a sample has too many planes, one that is not in use is dropped; else the two with the smallest
shares become one, their mean, which is a plane, too. All points are feasible: the dual is a lower
bound of min J, whatever weights the planes were found at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s, Int64s
from trellis.problems import HingeLoss

__all__ = ["CachedPlanes"]

# Most samples whose labellings are found at the same weights, and the fewest blocks of a pass.
_BLOCK, _BLOCKS = 32, 5
# Visits of each sample by its planes alone, after those with inference.
_ROUNDS = 8
# Most planes of a sample, and most numbers in those of all samples.
_PLANES, _MEMORY = 10, 1 << 26
# A step that gains less than this share of the values brings nothing; most steps of a visit.
_NOTHING, _STEPS = 1e-10, 20


class _Sample:
    """The planes of a sample: rows of a matrix on the weights that any of them has.

    It starts with the rewarded labelling, whose features and loss are zero.
    """

    __slots__ = ("alpha", "index", "losses", "products", "rows")

    def __init__(self) -> None:
        self.index = np.zeros(0, np.int64)
        self.rows = np.zeros((1, 0))
        self.losses = np.zeros(1)
        self.products = np.zeros((1, 1))
        self.alpha = np.ones(1)

    def add(self, index: Int64s, psi: Float64s, loss: float, most: int) -> None:
        """Add a plane, unless it is known."""
        row = self._row(index, psi)
        if ((self.losses == loss) & (self.rows == row).all(axis=1)).any():
            return
        if len(self.rows) >= most:
            self._make_room()
            row = self._row(index, psi)
        across = self.rows @ row
        n = len(self.rows)
        products = np.empty((n + 1, n + 1))
        products[:n, :n], products[n, :n], products[:n, n] = self.products, across, across
        products[n, n] = row @ row
        self.products = products
        self.rows = np.vstack([self.rows, row])
        self.losses, self.alpha = np.append(self.losses, loss), np.append(self.alpha, 0.0)

    def _row(self, index: Int64s, psi: Float64s) -> Float64s:
        """A plane as a row of the matrix, which has columns for it from now on."""
        self.widen(index)
        row = np.zeros(len(self.index))
        row[np.searchsorted(self.index, index)] = psi
        return row

    def widen(self, index: Int64s) -> None:
        """Make columns for more weights."""
        both = np.union1d(self.index, index)
        if len(both) > len(self.index):
            rows = np.zeros((len(self.rows), len(both)))
            rows[:, np.searchsorted(both, self.index)] = self.rows
            self.index, self.rows = both, rows

    def _make_room(self) -> None:
        """Forget a plane that is not in use, the oldest, or make one of two."""
        unused = np.flatnonzero(self.alpha == 0)
        if len(unused):
            self._keep(np.delete(np.arange(len(self.rows)), unused[0]))
            return
        a, b = np.sort(np.argsort(self.alpha, kind="stable")[:2])
        share = self.alpha[a] + self.alpha[b]
        mix = np.zeros(len(self.rows))
        mix[[a, b]] = self.alpha[[a, b]] / share
        self.rows[a], self.losses[a], self.alpha[a] = mix @ self.rows, mix @ self.losses, share
        self._keep(np.delete(np.arange(len(self.rows)), b))
        self.products = self.rows @ self.rows.T

    def _keep(self, planes: Int64s) -> None:
        self.rows, self.losses, self.alpha = (
            self.rows[planes], self.losses[planes], self.alpha[planes],
        )  # fmt: skip
        self.products = self.products[np.ix_(planes, planes)]
        used = (self.rows != 0).any(axis=0)
        if used.sum() < len(used) // 2:
            self.index, self.rows = self.index[used], np.ascontiguousarray(self.rows[:, used])

    def ascend(self, w: Float64s, factor: float) -> None:
        """Move shares while that raises the dual, and w with them; ``factor`` is c / 2λ."""
        heights: Float64s = self.losses - self.rows @ w[self.index]
        alpha, G = self.alpha.copy(), self.products
        for _ in range(_STEPS):
            best = int(heights.argmax())
            worst = int(np.where(alpha > 0, heights, np.inf).argmin())
            gain = float(heights[best] - heights[worst])
            if gain <= _NOTHING * max(1.0, abs(float(heights[best]))):
                break
            curve = factor * float(G[best, best] + G[worst, worst] - 2 * G[best, worst])
            limit = float(alpha[worst])
            step = limit if gain >= limit * curve else gain / curve
            alpha[best] += step
            alpha[worst] = 0.0 if step == limit else limit - step
            heights += (step * factor) * (G[worst] - G[best])
        moved = alpha - self.alpha
        if moved.any():
            w[self.index] += factor * (moved @ self.rows)
            self.alpha = alpha


class CachedPlanes:
    """A dual point of l2 ||w||² + R(w); a :class:`trellis.solvers.FrankWolfeState`.

    Parameters
    ----------
    loss : HingeLoss
        The losses R, of samples of any structure.
    l2 : float
        Factor of ||w||².
    """

    def __init__(self, loss: HingeLoss, l2: float) -> None:
        self.loss, self.l2 = loss, l2
        self.exact = True
        self._w = np.zeros(loss.n_weights)
        self._samples = [_Sample() for _ in range(loss.n_samples)]
        self._factor = (loss.sample_weight / (2 * l2)).tolist()

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self.loss.n_samples

    def sweep(self, order: Int64s) -> None:
        """Visit samples in this order."""
        order = order[self.loss.sample_weight[order] > 0]
        held = sum(each.rows.size for each in self._samples)
        size = max(1, min(_BLOCK, len(order) // _BLOCKS))
        for first in range(0, len(order), size):
            block = order[first : first + size]
            answers = self.loss.best_of(block, self._w)
            for (index, psi), loss, bound in answers:
                self._note(loss - float(psi @ self._w[index]), bound)
            for i, ((index, psi), loss, _) in zip(block.tolist(), answers, strict=True):
                sample = self._samples[i]
                held -= sample.rows.size
                sample.add(index, psi, loss, _PLANES if held <= _MEMORY else 2)
                held += sample.rows.size
                sample.ascend(self._w, self._factor[i])
        for _ in range(_ROUNDS):
            for i in order.tolist():
                self._samples[i].ascend(self._w, self._factor[i])

    def _note(self, value: float, upper: float) -> None:
        self.exact = self.exact and upper - value <= 1e-9 * max(1.0, abs(value))

    def reward(self, gold: NDArray[np.int64]) -> None:
        """Exchange the labellings that are rewarded."""
        problem = self.loss.problem
        batch = problem.batch()
        changes = problem.differences(batch, gold, self.loss.gold)
        for sample, factor, (index, psi) in zip(self._samples, self._factor, changes, strict=True):
            if len(index):
                sample.widen(index)
                sample.rows[:, np.searchsorted(sample.index, index)] += psi
                sample.products = sample.rows @ sample.rows.T
                self._w[index] += factor * psi
        self.loss = self.loss.rewarding(gold)

    def dual(self) -> float:
        """Value of the dual: at most min J."""
        losses = sum(
            c * float(each.alpha @ each.losses)
            for c, each in zip(self.loss.sample_weight.tolist(), self._samples, strict=True)
        )
        return float(losses) - self.l2 * float(self._w @ self._w)

    def weights(self) -> Float64s:
        """The weights of the dual point, valid until the next sweep."""
        return self._w

    def objective(self, w: Float64s) -> float:
        """J(w), or an upper bound if inference is not exact: of all samples together."""
        best, c = self.loss.problem.maxima(w, "all", loss=True), self.loss.sample_weight
        slack = (best.bounds - best.values)[c > 0]
        self.exact = self.exact and bool((slack <= 1e-9 * np.abs(best.bounds[c > 0]).clip(1)).all())
        return self.l2 * float(w @ w) + float(c @ best.bounds - self.loss.gold_features @ w)

    def state(self) -> dict[str, NDArray[Any]]:
        """Nothing: planes of all sizes are not kept in a checkpoint."""
        return {}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take up nothing."""
