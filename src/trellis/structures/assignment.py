r"""Assignments: choose hypotheses such that every row is covered exactly once.

.. math::

    \max_{y \in \{0, 1\}^H} \sum_h s_h y_h \quad \text{s.t.} \quad
    \sum_{h: j \in h} y_h = 1 \quad \text{for each row } j .

In cell tracking a row is an object of one of two frames and a hypothesis an event that explains up
to three of them: a move covers a source and a target, a division a source and two targets, an
appearance only a target. «Every object of the first frame has one fate, every object of the second
one past» is then exactly the constraint (Lou et al., Eqs. 1.1-1.3). An annotation fixes variables.

Problems are solved by a primal-dual search of our own (:mod:`trellis.kernels.assignment`): it
proves its solution best, and is some tens of times faster than general solvers on problems of this
kind, of which learning solves hundreds of thousands. Where it gives up, HiGHS solves the few
components that it left open (:mod:`trellis.structures.assignment_components`), and HiGHS does what
the search does not do at all (:mod:`trellis.structures.assignment_program`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import (
    Bools,
    Float64s,
    Int64s,
    as_array,
    as_offsets,
    for_kernels,
    held,
    known,
)
from trellis.domains import flag, instance, nothing, number, one_of, takes, whole
from trellis.errors import DataError, InfeasibleError
from trellis.structures.assignment_components import settled
from trellis.structures.assignment_program import AssignmentProgram

__all__ = [
    "Assignment",
    "AssignmentSpace",
    "best_assignment",
    "best_incompatible_assignment",
    "kbest_assignments",
    "ranked_assignments",
    "refuse_infeasible",
    "second_best_assignment",
]


# Rounds of price updates before each attempt of the search, and how long an attempt may be: easy
# problems are solved after the first, and what is open after the last is left to HiGHS.
_ROUNDS = (12, 36, 108)
_SOON = 2  # attempts on large problems where a bound will do
_SMALL = 1_500  # hypotheses of a problem on which all attempts cost little
_BUDGET = 5_000


@dataclass(frozen=True, eq=False)
class AssignmentSpace:
    """Stacked assignment problems.

    Parameters
    ----------
    covers : int, shape (H, 3)
        Rows that each hypothesis covers, numbered through all samples; -1 after the last.
    offsets : int, shape (S + 1,)
        Sample s has the hypotheses ``offsets[s]:offsets[s + 1]``.
    row_offsets : int, shape (S + 1,)
        Sample s has the rows ``row_offsets[s]:row_offsets[s + 1]``.

    Raises
    ------
    DataError
        If an array does not hold integers in order, a hypothesis covers no row, one twice or one of
        another sample, or two hypotheses cover the same single row and no other.

    Examples
    --------
    One object before and one after; it moved, or one disappeared and another appeared:

    >>> space = AssignmentSpace([[0, 1, -1], [0, -1, -1], [1, -1, -1]], [0, 3], [0, 2])
    >>> best_assignment(space, [1.0, 0.0, 0.5]).chosen.tolist()
    [True, False, False]
    """

    covers: NDArray[np.int32]
    offsets: Int64s
    row_offsets: Int64s

    def __post_init__(self) -> None:
        covers = as_array(self.covers, np.int32, "covers", (None, 3), low=-1)
        offsets = as_offsets(self.offsets, end=len(covers))
        rows = as_offsets(self.row_offsets, "row_offsets")
        if len(offsets) != len(rows):
            raise DataError(f"there are {len(offsets)} offsets and {len(rows)} row_offsets")
        for name, array in (("covers", covers), ("offsets", offsets), ("row_offsets", rows)):
            vars(self)[name] = held(array, vars(self)[name])
        sample = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        inside = (covers >= rows[sample, None]) & (covers < rows[sample + 1, None])
        used = covers >= 0
        order = used[:, 0] & (used[:, 1] | ~used[:, 2])
        twice = (covers[:, 0] == covers[:, 1]) | (
            used[:, 1:].all(1) & (covers[:, 1] == covers[:, 2])
        )
        twice |= covers[:, 0] == covers[:, 2]
        wrong = np.flatnonzero(~order | (used & ~inside).any(1) | twice)
        if len(wrong):
            raise DataError(
                f"hypothesis {wrong[0]} covers {covers[wrong[0]].tolist()}; expected one to three "
                "different rows of its sample, then -1"
            )
        alone = covers[~used[:, 1], 0]
        if len(np.unique(alone)) < len(alone):
            raise DataError("two hypotheses cover the same single row and no other")

    @property
    def n_samples(self) -> int:
        """Number of samples S."""
        return len(self.offsets) - 1

    def __len__(self) -> int:
        return len(self.covers)

    def sums(self, values: NDArray[Any]) -> Float64s:
        """Sum values of hypotheses (H,) over each sample: (S,)."""
        ends = np.concatenate([np.zeros(1), np.cumsum(values, dtype=np.float64)])
        sums: Float64s = ends[self.offsets[1:]] - ends[self.offsets[:-1]]
        return sums

    def part(self, samples: Int64s) -> tuple[AssignmentSpace, Int64s]:
        """Return the space of these samples, and which hypotheses it has."""
        n, m = np.diff(self.offsets)[samples], np.diff(self.row_offsets)[samples]
        offsets, rows = (np.concatenate([[0], np.cumsum(a)]) for a in (n, m))
        index = np.arange(offsets[-1]) + np.repeat(self.offsets[:-1][samples] - offsets[:-1], n)
        covers = self.covers[index].astype(np.int64)
        shift = np.repeat(rows[:-1] - self.row_offsets[:-1][samples], n)
        covers += np.where(covers >= 0, shift[:, None], 0)
        covers = covers.astype(np.int32)
        return known(AssignmentSpace, covers=covers, offsets=offsets, row_offsets=rows), index


@dataclass(frozen=True, eq=False)
class Assignment:
    """One assignment for each sample.

    Parameters
    ----------
    chosen : bool, shape (H,)
        The hypotheses chosen; none where a sample has no such assignment.
    values : float64, shape (S,)
        Sums of their scores; -inf where a sample has no such assignment.
    bounds : float64, shape (S,)
        No assignment has a higher value than this; ``values`` where they are proven best.
    """

    chosen: Bools
    values: Float64s
    bounds: Float64s


_SPACE = instance(AssignmentSpace)


@takes(space=_SPACE, method=one_of("auto", "lp", "ilp"), exact=flag, nodes=nothing | whole(1))
def best_assignment(
    space: AssignmentSpace,
    scores: Any,
    *,
    fixed: Any = None,
    method: str = "auto",
    exact: bool = True,
    nodes: int | None = None,
) -> Assignment:
    """Find the best assignment of each sample; the worst is the best of the negated scores.

    Parameters
    ----------
    space : AssignmentSpace
        The hypotheses.
    scores : float, shape (H,)
        Scores; -inf for what is not allowed.
    fixed : int, shape (H,), optional
        1: chosen, 0: not chosen, -1: free.
    method : "auto", "lp" or "ilp"
        Our own search; HiGHS with the linear relaxation first; HiGHS at once with integers.
    exact : bool
        Whether HiGHS solves what our search gives up, however long it may take (some minutes, for
        a few hundred objects with scores that make no sense). Otherwise the best that was found
        stands, with a bound.
    nodes : int, optional
        Most nodes that HiGHS may spend on each component of what our search left open; then the
        best that was found stands, with a bound. None: until it is proven.

    Returns
    -------
    Assignment

    Raises
    ------
    InfeasibleError
        If a sample has no assignment; the message names the sample.

    Examples
    --------
    >>> space = AssignmentSpace([[0, 1, -1], [0, -1, -1], [1, -1, -1]], [0, 3], [0, 2])
    >>> best_assignment(space, [1.0, 0.0, 0.5]).values.tolist()
    [1.0]
    >>> best_assignment(space, [1.0, 0.0, 0.5], fixed=[-1, 1, -1]).chosen.tolist()
    [False, True, True]
    """
    s, f = _checked(space, scores, fixed)
    if method == "auto":
        chosen, _, status, bounds, price = search(space, s, f, two=False, exact=exact)
        states = status[:, 0]
    else:
        chosen, states = np.zeros(len(space), bool), np.zeros(space.n_samples, np.int8)
        bounds = np.full(space.n_samples, np.inf)
    any_chosen = space.sums(chosen) > 0
    for i in np.flatnonzero(states == 0):
        hypotheses = slice(space.offsets[i], space.offsets[i + 1])
        if any_chosen[i]:
            if exact:
                rows = slice(space.row_offsets[i], space.row_offsets[i + 1])
                covers = space.covers[hypotheses]
                chosen[hypotheses], excess = settled(
                    np.where(covers >= 0, covers - np.int32(rows.start), covers), s[hypotheses],
                    f[hypotheses], price[rows], chosen[hypotheses], nodes,
                )  # fmt: skip
                bounds[i] = s[hypotheses][chosen[hypotheses]].sum() + excess
                states[i] = excess == 0
            continue
        answer = _program(space, int(i), s, f).solve(relax=method != "ilp")
        states[i] = -1 if answer is None else 1
        chosen[hypotheses] = False if answer is None else answer
    refuse_infeasible(states < 0)
    values = space.sums(np.where(chosen, s, 0.0))
    return Assignment(chosen, values, np.where(states == 1, values, np.maximum(bounds, values)))


def second_best_assignment(space: AssignmentSpace, scores: Any, *, fixed: Any = None) -> Assignment:
    """Find the second best assignment of each sample.

    Parameters are those of :func:`best_assignment`; a sample that has only one assignment has the
    value -inf.

    Examples
    --------
    >>> space = AssignmentSpace([[0, 1, -1], [0, -1, -1], [1, -1, -1]], [0, 3], [0, 2])
    >>> second_best_assignment(space, [1.0, 0.0, 0.5]).values.tolist()
    [0.5]
    """
    return ranked_assignments(space, scores, 2, fixed=fixed)[1]


@takes(space=_SPACE, k=whole(1), diversity=number(at_least=0), exact=flag)
def kbest_assignments(
    space: AssignmentSpace,
    scores: Any,
    k: int,
    *,
    fixed: Any = None,
    diversity: float = 0.0,
    exact: bool = True,
) -> list[Assignment]:
    """Find the k best assignments of each sample, best first.

    Parameters
    ----------
    space, scores, fixed
        As for :func:`best_assignment`.
    k : int
        How many at most. The third and following take an integer program each.
    diversity : float
        If positive, the diverse k best (Batra et al. 2012) instead: each is the best where every
        hypothesis chosen before costs this much for each time. They need not differ.
    exact : bool
        As for :func:`best_assignment`; otherwise, where our search gives up, there is only the best
        that was found, and its bound is higher than its value.

    Returns
    -------
    list of Assignment
        As many as the sample with the most assignments has, at most k. Values are those of the
        scores as given; -inf where a sample has fewer.

    Examples
    --------
    >>> space = AssignmentSpace([[0, 1, -1], [0, -1, -1], [1, -1, -1]], [0, 3], [0, 2])
    >>> [ranked.values.tolist() for ranked in kbest_assignments(space, [1.0, 0.0, 0.5], 3)]
    [[1.0], [0.5]]
    """
    if not (diversity or k == 1):
        ranked = ranked_assignments(space, scores, k, fixed=fixed, exact=exact)
        return [one for one in ranked if (one.values > -np.inf).any() or one is ranked[0]]
    s, f = _checked(space, scores, fixed)
    diverse: list[Assignment] = []
    burden = np.zeros(len(space))
    for _ in range(k):
        chosen = best_assignment(space, s - diversity * burden, fixed=f, exact=exact).chosen
        burden += chosen
        values = space.sums(np.where(chosen, s, 0.0))
        diverse.append(Assignment(chosen, values, values))
    return diverse


def ranked_assignments(
    space: AssignmentSpace, scores: Any, k: int, *, fixed: Any = None, exact: bool = True
) -> list[Assignment]:
    """The k best, k at least 2, as far as there are any; the first two in any case."""
    s, f = _checked(space, scores, fixed)
    first, second, status, bounds, _ = search(space, s, f, two=True, exact=exact)
    kept = (status[:, 0] == 0) & (space.sums(first) > 0) & (not exact)
    status[kept, 0] = 1
    status[kept, 1] = -1
    solved = np.repeat(status == 1, np.diff(space.offsets), axis=0)
    ranks = [first & solved[:, 0], second & solved[:, 1]]
    ranked = [
        np.where(status[:, r] == 1, space.sums(np.where(ranks[r], s, 0.0)), -np.inf)
        for r in range(2)
    ]
    for i in np.flatnonzero((status == 0).any(1) | ((k > 2) & (status[:, 1] == 1))):
        hypotheses = slice(space.offsets[i], space.offsets[i + 1])
        program = _program(space, int(i), s, f)
        known = 0 if (status[i] == 0).any() else 2
        for r in range(k):
            if r >= known:
                answer = program.solve()
                if answer is None:
                    break
                if r == len(ranks):
                    ranks.append(np.zeros(len(space), bool))
                    ranked.append(np.full(space.n_samples, -np.inf))
                ranks[r][hypotheses] = answer
                ranked[r][i] = s[hypotheses][answer].sum()
            program.exclude(ranks[r][hypotheses])
    if (ranked[0] == -np.inf).any():
        best_assignment(space, s, fixed=f)  # raises, and says why
    assignments = [Assignment(y, v, v) for y, v in zip(ranks, ranked, strict=True)]
    first_bounds = np.where(kept, np.maximum(bounds, ranked[0]), ranked[0])
    return [Assignment(ranks[0], ranked[0], first_bounds), *assignments[1:]]


@takes(space=_SPACE)
def best_incompatible_assignment(space: AssignmentSpace, scores: Any, fixed: Any) -> Assignment:
    """Find the best assignment of each sample that contradicts at least one fixed variable.

    Parameters
    ----------
    space, scores
        As for :func:`best_assignment`.
    fixed : int, shape (H,)
        1: annotated as chosen, 0: as not chosen, -1: not annotated.

    Returns
    -------
    Assignment
        Value -inf where a sample has none.

    Examples
    --------
    >>> space = AssignmentSpace([[0, 1, -1], [0, -1, -1], [1, -1, -1]], [0, 3], [0, 2])
    >>> rival = best_incompatible_assignment(space, [1.0, 0.0, 0.5], [1, 0, 0])
    >>> rival.chosen.tolist(), rival.values.tolist()
    ([False, True, True], [0.5])
    """
    s, f = _checked(space, scores, fixed)
    free = best_assignment(space, s)
    against = space.sums((f >= 0) & (free.chosen != (f == 1)))
    chosen, values = free.chosen, free.values
    for i in np.flatnonzero(against == 0):
        hypotheses = slice(space.offsets[i], space.offsets[i + 1])
        program = _program(space, int(i), s, None)
        program.contradict(f[hypotheses])
        answer = program.solve()
        chosen[hypotheses] = False if answer is None else answer
        values[i] = -np.inf if answer is None else s[hypotheses][answer].sum()
    return Assignment(chosen, values, values)


def refuse_infeasible(infeasible: Bools) -> None:
    """Raise if a sample has no assignment."""
    bad = np.flatnonzero(infeasible)
    if len(bad):
        raise InfeasibleError(
            "has no assignment that covers every row once: what is fixed or not allowed leaves a "
            "row without a hypothesis, or gives one two",
            sample=int(bad[0]),
        )


def _checked(space: AssignmentSpace, scores: Any, fixed: Any) -> tuple[Float64s, NDArray[np.int8]]:
    _SPACE.check("space", space)
    s = as_array(scores, np.float64, "scores", (len(space),))
    if np.isnan(s).any() or np.isposinf(s).any():
        raise DataError("scores hold NaN or +inf")
    f = np.full(len(space), -1, np.int8)
    if fixed is not None:
        f = as_array(fixed, np.int8, "fixed", (len(space),), low=-1, high=2)
    # A hypothesis covers three rows at most: nor are there too many rows for memory.
    refuse_infeasible(np.diff(space.row_offsets) > 3 * np.diff(space.offsets))
    forced = np.flatnonzero((f == 1) & np.isneginf(s))
    if len(forced):
        raise DataError(f"hypothesis {forced[0]} is fixed to 1 but its score is -inf")
    return s, f


def search(
    space: AssignmentSpace, s: Float64s, f: NDArray[np.int8], two: bool, exact: bool = True
) -> tuple[Bools, Bools, NDArray[np.int8], Float64s, Float64s]:
    """Best, second best, status of both (1 solved, 0 given up, -1 none), bounds if so, prices."""
    from trellis.kernels.assignment import solve_assignments

    chosen, second = np.zeros(len(space), bool), np.zeros(len(space), bool)
    status, bound = np.zeros((space.n_samples, 2), np.int8), np.zeros(space.n_samples)
    rounds = np.array(_ROUNDS if exact else _ROUNDS[:_SOON])
    covers, offsets, rows = map(for_kernels, (space.covers, space.offsets, space.row_offsets))
    price = np.zeros(space.row_offsets[-1])
    solve_assignments(
        covers, s, f, offsets, rows, two, rounds, _BUDGET, chosen, second, status, bound, price
    )
    hard = np.flatnonzero((status[:, 0] == 0) & (np.diff(space.offsets) <= _SMALL))
    if len(hard) and not exact:
        part, index = space.part(hard)
        again = search(part, s[index], f[index], two)
        chosen[index], second[index], status[hard], bound[hard], _ = again
    return chosen, second, status, bound, price


def _program(
    space: AssignmentSpace, i: int, s: Float64s, f: NDArray[np.int8] | None
) -> AssignmentProgram:
    """The integer program of a sample."""
    own, first = slice(space.offsets[i], space.offsets[i + 1]), space.row_offsets[i]
    covers = space.covers[own].astype(np.int64)
    local = np.where(covers >= 0, covers - first, -1)
    n_rows = int(space.row_offsets[i + 1] - first)
    return AssignmentProgram(local, n_rows, s[own], None if f is None else f[own])
