r"""The integer program of an assignment problem, solved by HiGHS.

.. math::

    \max_y \sum_h s_h y_h \quad \text{s.t.} \quad \sum_{h \ni j} y_h = 1 \;\; \forall j, \qquad
    \sum_h a_{ch} y_h \ge b_c \;\; \text{for each cut } c, \qquad y_h \in \{0, 1\}.

The linear relaxation comes first: in nearly all cases it has no fractions. Cuts exclude assignments
that are known, for the next best, or those that agree with what is fixed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Bools, Float64s
from trellis.errors import DataError

__all__ = ["AssignmentProgram"]

_DONE, _CUT_OFF, _NONE = 0, 1, 2  # what SciPy says of a solution


class AssignmentProgram:
    """The program of one sample.

    Parameters
    ----------
    covers : int, shape (H, 3)
        Rows of each hypothesis, from 0; -1 after the last.
    n_rows : int
        Number of rows.
    s : float64, shape (H,)
        Scores; -inf for what is not allowed.
    f : int8, shape (H,), optional
        1: chosen, 0: not chosen, -1: free.
    """

    def __init__(
        self, covers: NDArray[Any], n_rows: int, s: Float64s, f: NDArray[np.int8] | None = None
    ) -> None:
        import scipy.sparse

        h, k = np.nonzero(covers >= 0)
        self.rows = scipy.sparse.csr_array((np.ones(len(h)), (covers[h, k], h)), (n_rows, len(s)))
        f = np.full(len(s), -1, np.int8) if f is None else f
        allowed = np.isfinite(s)
        self.score, self.power = _in_reach(np.where(allowed, s, 0.0))
        self.lower = (f == 1).astype(np.float64)
        self.upper = ((f != 0) & allowed).astype(np.float64)
        self.cuts: list[tuple[Float64s, float]] = []  # coefficients, least sum

    def exclude(self, y: Bools) -> None:
        """Every assignment covers each row once, so none has all of another's and more."""
        self.cuts.append((-y.astype(np.float64), 1.0 - float(y.sum())))

    def contradict(self, f: NDArray[np.int8]) -> None:
        """Leave only assignments that differ from what is fixed."""
        sign = np.where(f == 1, -1.0, np.where(f == 0, 1.0, 0.0))
        self.cuts.append((sign, 1.0 - float((f == 1).sum())))

    def solve(self, relax: bool = True) -> Bools | None:
        """Return the best assignment; None if there is none."""
        if relax and not self.cuts and len(self.score):
            return self.best_within(None)[0]
        x = self._highs(integers=False)[0] if relax else None
        if relax and x is None:
            return None
        if x is None or not _whole(x):
            x = self._highs(integers=True)[0]
        return None if x is None else x > 0.5

    def best_within(self, nodes: int | None) -> tuple[Bools | None, float]:
        """Return the best that ``nodes`` of the tree find, if any, and an upper bound of all.

        A program with fractions is solved among the hypotheses that the prices of the relaxation
        leave cheap, first a few, then all that can be in a better solution than was found.
        """
        relaxed = self._relaxation()
        if relaxed is None:
            return None, -np.inf
        relaxation, bound, loss = relaxed
        if _whole(relaxation):
            return relaxation > 0.5, bound
        k = min(2 * self.rows.shape[0], len(loss) - 1)
        few = loss <= np.partition(loss, k)[k]
        best, value, most = None, -np.inf, bound
        while True:
            x, among = self._highs(integers=True, nodes=nodes, few=few)
            if x is not None and self._value(x) > value:
                best, value = x > 0.5, self._value(x)
            enough = loss < bound - value
            if not (enough & ~few).any():
                return best, max(value, min(most, among))
            few = enough

    def _value(self, x: Float64s) -> float:
        return math.ldexp(float(self.score @ np.round(x)), -self.power)

    def _relaxation(self) -> tuple[Float64s, float, Float64s] | None:
        """Solution of the linear relaxation, its value, and what each hypothesis would lose."""
        import scipy.optimize as opt

        # SciPy's annotations know no sparse rows, nor bounds in an array.
        rows: Any = self.rows
        bounds: Any = np.stack([self.lower, self.upper], axis=1)
        solved = opt.linprog(-self.score, None, None, rows, np.ones(rows.shape[0]), bounds)
        if solved.status == _NONE:
            return None
        if solved.status != _DONE or solved.x is None or solved.fun is None:
            raise DataError(f"the solver could not solve the assignment problem: {solved.message}")
        loss = np.maximum(-self.score - self.rows.T @ solved.eqlin.marginals, 0.0)
        x: Float64s = solved.x
        return x, math.ldexp(-float(solved.fun), -self.power), np.ldexp(loss, -self.power)

    def _highs(
        self, integers: bool, nodes: int | None = None, few: Bools | None = None
    ) -> tuple[Float64s | None, float]:
        """Solution and upper bound, of some hypotheses or of all."""
        import scipy.optimize as opt

        n = len(self.score)
        if n == 0:
            return np.zeros(0) if self.rows.shape[0] == 0 and not self.cuts else None, 0.0
        constraints = [opt.LinearConstraint(self.rows, 1.0, 1.0)] if self.rows.shape[0] else []
        constraints += [opt.LinearConstraint(a[None], least, np.inf) for a, least in self.cuts]
        options: Any = {"mip_rel_gap": 0.0} | ({} if nodes is None else {"node_limit": nodes})
        solved = opt.milp(
            -self.score,
            constraints=constraints,
            bounds=opt.Bounds(self.lower, self.upper if few is None else self.upper * few),
            integrality=np.full(n, int(integers)),
            options=options,
        )
        if solved.status not in (_DONE, _NONE) and not (nodes and solved.status == _CUT_OFF):
            raise DataError(f"the solver could not solve the assignment problem: {solved.message}")
        x: Float64s | None = solved.x
        best = solved.mip_dual_bound if integers else solved.fun
        bound = np.inf if best is None else math.ldexp(-float(best), -self.power)
        return x, bound


def _whole(x: Float64s) -> bool:
    return bool(np.abs(x - np.round(x)).max(initial=0.0) <= 1e-6)


def _in_reach(scores: Float64s) -> tuple[Float64s, int]:
    """The scores times a power of two: HiGHS takes 1e20 for infinite and 1e-7 for nothing."""
    size = float(np.abs(scores).max(initial=0.0))
    if size == 0 or 1 <= size <= 1 << 20:
        return scores, 0
    power = 10 - math.frexp(size)[1]
    scaled: Float64s = np.ldexp(scores, power)
    return scaled, power
