r"""The mean of all assignments: what share of them chooses each hypothesis.

.. math::

    p_h = \frac{1}{|\mathcal Y|} \sum_{y \in \mathcal Y} y_h, \qquad
    \mathcal Y = \Bigl\{y \in \{0, 1\}^H : \sum_{h \ni j} y_h = 1 \;\; \forall j, \;
    y_h = y^*_h \text{ where } h \text{ is fixed}\Bigr\} ,

so that :math:`F^\top p` are the mean features of a tracking of which a part is known, the reward of
the loss «max» (Cour, Sapp & Taskar 2011). With scores assignments are not alike: :math:`p_h` is the
probability of h under

.. math:: P(y) = \frac{1}{Z} \exp \sum_h s_h y_h, \qquad
    \frac{\partial \log Z}{\partial s_h} = p_h .

**Fixed variables fall out**, and so does what follows from them: a row with one hypothesis left
takes it. The rest is made of components that share no row. Their assignments combine freely, so
each is counted by itself (:mod:`trellis.kernels.assignment_counts`): exactly, by deciding row after
row, with tables over the rows that are next. That takes all components of which a few tens of rows
are undecided, and longer ones if they are narrow.

**Where tables would be too large** each row is counted with the rows around it, and belief
propagation stands for what is farther away. On pairs of crowded cells that can be counted this
changes the mean features by 0.0002 of their norm at most; belief propagation alone, the stationary
point of the Bethe free energy, by up to 0.08. ``exact`` tells which samples have it.

**By scores most hypotheses are out of the question**, and components are small without them. With
prices that prove the best assignment best, an assignment with hypothesis h is at most
:math:`e^{-r_h}` times as probable as one in which a part is replaced by that of the best
(:mod:`trellis.kernels.assignment_pruning`); where :math:`r_h` is more than ``reach``, h has the
probability 0. So every assignment that is left out is at most :math:`e^{-\text{reach}}` (1.1e-7)
times as probable as one that is counted. Components that are too large nevertheless are divided by
a reach of 9 (1.2e-4) and then 5 (0.0067), before windows take what is left of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Bools, Float64s, Int64s, as_array
from trellis.domains import instance, nothing, number, takes
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
_WEIGHED, _WEIGHED_WINDOWS = 1 << 14, 1 << 12  # entries likewise, of logarithms
_REACH, _NEARER = 16.0, (9.0, 5.0)
_PRICED = 60  # rounds of price updates


@dataclass(frozen=True, eq=False)
class MeanAssignment:
    """Mean of all assignments of each sample.

    Parameters
    ----------
    shares : float64, shape (H,)
        Share of the assignments of the sample that choose a hypothesis; with scores, its
        probability.
    log_counts : float64, shape (S,)
        Logarithm of the number of assignments; with scores, log Z.
    exact : bool, shape (S,)
        Whether all, or all within reach, were counted; otherwise a part of the shares is very
        nearly right, and of the count there is the estimate of belief propagation, which is a few
        per cent too low or high.
    """

    shares: Float64s
    log_counts: Float64s
    exact: Bools


@takes(
    space=instance(AssignmentSpace),
    entries=nothing | number(at_least=0),
    windows=nothing | number(at_least=0),
    reach=number(at_least=0, infinite=True),
)
def mean_assignment(
    space: AssignmentSpace,
    fixed: Any = None,
    scores: Any = None,
    *,
    entries: float | None = None,
    windows: float | None = None,
    reach: float = _REACH,
) -> MeanAssignment:
    """Find the mean of all assignments of each sample, all alike or by scores.

    Parameters
    ----------
    space : AssignmentSpace
        The hypotheses.
    fixed : int, shape (H,), optional
        1: chosen, 0: not chosen, -1: free.
    scores : float, shape (H,), optional
        Logarithms of weights: an assignment counts the exponential of its sum of scores. -inf for
        what is not allowed. None: all assignments count alike.
    entries : float, optional
        A component is counted exactly if its tables have at most so many entries (2²⁰; by scores,
        which takes longer, 2¹⁴).
    windows : float, optional
        Entries of the tables of a row and those around it (2¹⁶; by scores 2¹²), in other
        components; 0 for belief propagation alone.
    reach : float
        With scores: assignments that are less probable than others by more than this, in
        logarithms, are left out; infinite for none.

    Returns
    -------
    MeanAssignment

    Raises
    ------
    InfeasibleError
        If a sample has no assignment; the message names the sample.
    DataError
        If scores are NaN or +inf.

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

    The first move is nine times as probable as each other assignment:

    >>> mean_assignment(space, scores=np.log([9, 1, 1, 1, 1])).shares.round(3).tolist()
    [0.818, 0.091, 0.182, 0.909, 0.091]
    """
    from trellis.kernels.assignment_counts import INFEASIBLE, PROPAGATED, count_assignments

    f = np.full(len(space), -1, np.int8)
    if fixed is not None:
        f = as_array(fixed, np.int8, "fixed", (len(space),), low=-1, high=2)
    if scores is not None:
        return _by_scores(
            space, as_array(scores, np.float64, "scores", (len(space),)), f, float(reach),
            _WEIGHED if entries is None else float(entries),
            _WEIGHED_WINDOWS if windows is None else float(windows),
        )  # fmt: skip
    n_rows = int(space.row_offsets[-1])
    sample = np.repeat(np.arange(space.n_samples), np.diff(space.row_offsets))
    chosen, free, failed = _consequences(space, f, n_rows)
    bad = np.zeros(space.n_samples, bool)
    bad[sample[failed]] = True
    shares = np.zeros(len(space))
    part, logs = np.empty(n_rows, np.int64), np.zeros(n_rows)
    status = np.zeros(n_rows, np.int8)
    n_parts = count_assignments(
        space.covers.astype(np.int64), free, None, n_rows,
        _ENTRIES if entries is None else float(entries),
        _WINDOWS if windows is None else float(windows),
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


def _by_scores(
    space: AssignmentSpace, s: Float64s, f: NDArray[np.int8], reach: float, entries: float,
    windows: float,
) -> MeanAssignment:  # fmt: skip
    """The mean by scores: what can be counted with all hypotheses in reach, the rest with fewer."""
    from trellis.kernels.assignment_counts import LEFT, PROPAGATED, count_assignments
    from trellis.kernels.assignment_pruning import keep_probable

    best = best_assignment(space, s, fixed=f, exact=False).chosen  # refuses what scores cannot be
    f = np.where(np.isneginf(s), np.int8(0), f)
    n_rows = int(space.row_offsets[-1])
    sample = np.repeat(np.arange(space.n_samples), np.diff(space.row_offsets))
    covers = space.covers.astype(np.int64)
    place = np.where(covers >= 0, covers, n_rows)
    shares, sums = np.zeros(len(space)), np.zeros(space.n_samples)
    exact = np.ones(space.n_samples, bool)
    steps = [reach, *(step for step in _NEARER if step < reach < np.inf)]
    todo = np.append(np.ones(n_rows, bool), False)  # rows; the last is for what is no row
    for step in steps:
        chosen, free, _ = _consequences(space, f, n_rows)
        free &= todo[place].any(1)
        kept, slack, price = np.zeros(len(space), bool), np.zeros(len(space)), np.zeros(n_rows)
        keep_probable(covers, s, free, best, n_rows, step, _PRICED, kept, slack, price)
        f = np.where(free & ~kept, np.int8(0), f)
        chosen, left, _ = _consequences(space, f, n_rows)
        part, logs = np.empty(n_rows, np.int64), np.zeros(n_rows)
        status = np.zeros(n_rows, np.int8)
        n_parts = count_assignments(
            covers, left & free, -slack, n_rows, entries, windows,
            _ROUNDS if step == steps[-1] else 0, _TOLERANCE, shares, part, logs, status,
        )  # fmt: skip
        mine = chosen & todo[place].any(1)
        shares[mine] = 1.0
        sums += space.sums(np.where(mine, s, 0.0))
        own = np.zeros(n_parts, np.int64)
        own[part[part >= 0]] = sample[part >= 0]
        open_parts = status[:n_parts] == LEFT
        exact[own[open_parts | (status[:n_parts] == PROPAGATED)]] = False
        np.add.at(sums, own[~open_parts], logs[:n_parts][~open_parts])
        counted = (part >= 0) & np.append(~open_parts, False)[part]
        np.add.at(sums, sample[counted], price[counted])
        todo[:-1] = (part >= 0) & ~counted
        if not todo.any():
            break
    return MeanAssignment(shares, sums, exact)


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
