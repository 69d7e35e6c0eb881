r"""The mean of all assignments: what share of them chooses each hypothesis.

.. math::

    p_h = \frac{1}{|\mathcal Y|} \sum_{y \in \mathcal Y} y_h, \qquad
    \mathcal Y = \Bigl\{y \in \{0, 1\}^H : \sum_{h \ni j} y_h = 1 \;\; \forall j, \;
    y_h = y^*_h \text{ where } h \text{ is fixed}\Bigr\} ,

so that :math:`F^\top p` are the mean features of a tracking of which a part is known, the reward of
the loss «max» (Cour, Sapp & Taskar 2011).

**Fixed variables fall out**, and so does what follows from them: a row with one hypothesis left
takes it. The rest is made of components that share no row. Their assignments combine freely, so
each is counted by itself (:mod:`trellis.kernels.assignment_counts`): exactly, by deciding row after
row, with tables over the rows that are next. That takes all components of which a few tens of rows
are undecided, and longer ones if they are narrow.

**Where tables would be too large** each row is counted with the rows around it, and belief
propagation stands for what is farther away. On pairs of crowded cells that can be counted this
changes the mean features by 0.0002 of their norm at most; belief propagation alone, the stationary
point of the Bethe free energy, by up to 0.08. ``exact`` tells which samples have it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Bools, Float64s, Int64s, as_array
from trellis.domains import instance, number, takes
from trellis.errors import InfeasibleError
from trellis.structures.assignment import (
    AssignmentSpace,
    best_assignment,
    refuse_infeasible,
)

__all__ = ["MeanAssignment", "mean_assignment"]

# Entries of the tables of a component (8 MB, some tens of milliseconds) and of a window, of which
# there are some tens in a component of hundreds of rows.
_ENTRIES, _WINDOWS = 1 << 20, 1 << 16
_ROUNDS, _TOLERANCE = 1_000, 1e-9  # of belief propagation


@dataclass(frozen=True, eq=False)
class MeanAssignment:
    """Mean of all assignments of each sample.

    Parameters
    ----------
    shares : float64, shape (H,)
        Share of the assignments of the sample that choose a hypothesis.
    log_counts : float64, shape (S,)
        Logarithm of the number of assignments.
    exact : bool, shape (S,)
        Whether all were counted; otherwise a part of the shares is very nearly right, and of the
        count there is the estimate of belief propagation, which is a few per cent too low or high.
    """

    shares: Float64s
    log_counts: Float64s
    exact: Bools


@takes(space=instance(AssignmentSpace), entries=number(at_least=0), windows=number(at_least=0))
def mean_assignment(
    space: AssignmentSpace,
    fixed: Any = None,
    *,
    entries: float = _ENTRIES,
    windows: float = _WINDOWS,
) -> MeanAssignment:
    """Find the mean of all assignments of each sample.

    Parameters
    ----------
    space : AssignmentSpace
        The hypotheses.
    fixed : int, shape (H,), optional
        1: chosen, 0: not chosen, -1: free.
    entries : float
        A component is counted exactly if its tables have at most so many entries.
    windows : float
        Entries of the tables of a row and those around it, in other components; 0 for belief
        propagation alone.

    Returns
    -------
    MeanAssignment

    Raises
    ------
    InfeasibleError
        If a sample has no assignment; the message names the sample.

    Examples
    --------
    Two objects before and one after: either one of them moved, or neither did.

    >>> space = AssignmentSpace(
    ...     [[0, 2, -1], [1, 2, -1], [0, -1, -1], [1, -1, -1], [2, -1, -1]], [0, 5], [0, 3]
    ... )
    >>> mean = mean_assignment(space)
    >>> mean.shares.round(3).tolist(), round(float(np.exp(mean.log_counts[0])), 3)
    ([0.333, 0.333, 0.667, 0.667, 0.333], 3.0)
    >>> mean_assignment(space, fixed=[0, -1, -1, -1, -1]).shares.tolist()
    [0.0, 0.5, 1.0, 0.5, 0.5]
    """
    from trellis.kernels.assignment_counts import INFEASIBLE, PROPAGATED, count_assignments

    f = np.full(len(space), -1, np.int8)
    if fixed is not None:
        f = as_array(fixed, np.int8, "fixed", (len(space),), low=-1, high=2)
    n_rows = int(space.row_offsets[-1])
    sample = np.repeat(np.arange(space.n_samples), np.diff(space.row_offsets))
    chosen, free, failed = _consequences(space, f, n_rows)
    bad = np.zeros(space.n_samples, bool)
    bad[sample[failed]] = True
    shares = np.zeros(len(space))
    part, logs = np.empty(n_rows, np.int64), np.zeros(n_rows)
    status = np.zeros(n_rows, np.int8)
    n_parts = count_assignments(
        space.covers.astype(np.int64), free, n_rows, float(entries), float(windows),
        _ROUNDS, _TOLERANCE, shares, part, logs, status,
    )  # fmt: skip
    shares[chosen] = 1.0
    # A component lies in one sample.
    own = np.zeros(n_parts, np.int64)
    own[part[part >= 0]] = sample[part >= 0]
    bad[own[status[:n_parts] == INFEASIBLE]] = True
    refuse_infeasible(bad)
    exact = np.ones(space.n_samples, bool)
    exact[own[status[:n_parts] == PROPAGATED]] = False
    _check_feasible(space, f, np.flatnonzero(~exact))
    counts = np.zeros(space.n_samples)
    np.add.at(counts, own, logs[:n_parts])
    return MeanAssignment(shares, counts, exact)


def _consequences(
    space: AssignmentSpace, fixed: NDArray[np.int8], n_rows: int
) -> tuple[Bools, Bools, Bools]:
    """Hypotheses that must be chosen, those that may be, and rows that cannot be covered once."""
    covers, used = space.covers, space.covers >= 0
    place = np.where(used, covers, n_rows)  # one row more, for what is no row
    chosen, free = fixed == 1, fixed < 0
    while True:
        covered = np.bincount(place[chosen].ravel(), minlength=n_rows + 1)[:n_rows]
        taken = np.append(covered > 0, False)
        free &= ~taken[place].any(1)
        left = np.bincount(place[free].ravel(), minlength=n_rows + 1)[:n_rows]
        alone = np.append((left == 1) & (covered == 0), False)
        forced = free & alone[place].any(1)
        if not forced.any():
            return chosen, free, (covered > 1) | ((covered == 0) & (left == 0))
        chosen |= forced
        free &= ~forced


def _check_feasible(space: AssignmentSpace, fixed: NDArray[np.int8], samples: Int64s) -> None:
    """Raise if one of these samples has no assignment, which belief propagation cannot tell."""
    if not len(samples):
        return
    part, index = space.part(samples)
    try:
        best_assignment(part, np.zeros(len(part)), fixed=fixed[index], exact=False)
    except InfeasibleError as error:
        assert error.sample is not None
        raise InfeasibleError(error.reason, sample=int(samples[error.sample])) from None
