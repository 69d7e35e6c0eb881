"""Automata for samples of any length: moves between states that are the same at all positions.

Sentences differ in length, so «at most two switches of the expert» is not one acyclic automaton but
one for each length. A family is a finite automaton whose moves m go from state o(m) to state d(m)
and stand for expert j(m), at whatever position; its paths of l moves from state 0 to a final state
are those of a :class:`~trellis.experts.PathAutomaton` of l positions, the family *unrolled*.
Weights live on the moves, tied over positions and lengths.

A path expert of a family must answer samples of every length. It is a vector of scores of moves,
and follows in a sample of l positions the path of l moves with the largest sum

    h(l) = argmax_{paths m_1 ... m_l} Σ_k s(m_k)

What s(m) is, the learners say; it is a mean over the positions at which the move may be made, so
that moves which are possible at few positions (the first one, or after a switch) are not at a
disadvantage. In the complete family h follows one expert everywhere. If the moves of each position
are others, and all samples have one length, h is a path of the unrolled automaton and s may be any
numbers on its edges.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trellis.arrays import as_array, held
from trellis.domains import whole
from trellis.errors import DataError
from trellis.experts.automaton import PathAutomaton, check_experts

__all__ = ["PathFamily"]

_LONGEST = 1_000_000


@dataclass(frozen=True, eq=False)
class PathFamily:
    """Which paths of experts are allowed in samples of any length.

    Parameters
    ----------
    origin, destination : int (M,)
        States of each move; 0 is the start.
    expert : int (M,)
        The expert whose answer the move stands for, from 0.
    final : int (F,) or None
        States in which a path may end; None: all.

    Attributes
    ----------
    n_states, n_moves, n_experts : int

    Examples
    --------
    Two experts; a path goes over from one to the other once at most.

    >>> from trellis.experts import PathFamily
    >>> once = PathFamily.switching(2, max_switches=1)
    >>> [once.unrolled(length)[0].n_paths for length in (1, 2, 3, 4)]
    [2, 4, 6, 8]
    """

    origin: NDArray[np.int64]
    destination: NDArray[np.int64]
    expert: NDArray[np.int64]
    final: NDArray[np.int64] | None = None
    n_experts: int = field(init=False)
    n_states: int = field(init=False)
    _unrolled: dict[int, tuple[PathAutomaton, NDArray[np.int64]]] = field(
        init=False, repr=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        origin = as_array(self.origin, np.int64, "origin", (None,), low=0, high=2**31)
        shape = origin.shape
        destination = as_array(self.destination, np.int64, "destination", shape, low=0, high=2**31)
        expert = as_array(self.expert, np.int64, "expert", shape, low=0, high=2**31)
        if not len(origin):
            raise DataError("a family of automata needs one move at least")
        if not (origin == 0).any():
            raise DataError("no move leaves state 0, where all paths start")
        n_states = int(max(origin.max(), destination.max())) + 1
        if n_states > len(origin) + 1:
            raise DataError(f"{n_states} states are more than {len(origin)} moves can reach")
        order = np.argsort(origin, kind="stable")
        for name, array in (("origin", origin), ("destination", destination), ("expert", expert)):
            object.__setattr__(self, name, held(array[order]))
        if self.final is not None:
            final = as_array(self.final, np.int64, "final", (None,), low=0, high=n_states)
            object.__setattr__(self, "final", held(np.unique(final)))
        object.__setattr__(self, "n_experts", int(expert.max()) + 1)
        object.__setattr__(self, "n_states", n_states)

    # ------------------------------------------------------------------ makers

    @classmethod
    def complete(cls, n_experts: int) -> PathFamily:
        """All paths."""
        _check_experts(n_experts)
        zeros = np.zeros(n_experts, np.int64)
        return cls(zeros, zeros, np.arange(n_experts))

    @classmethod
    def restricted(cls, allowed_switch: ArrayLike) -> PathFamily:
        """Paths that go from expert i to expert j only where ``allowed_switch[i, j]``, (p, p)."""
        allowed = np.asarray(allowed_switch)
        n_experts = len(allowed) if allowed.ndim else 0
        _check_experts(n_experts)
        if allowed.shape != (n_experts, n_experts) or allowed.dtype != bool:
            raise DataError("allowed_switch must be bool and square, one row for each expert")
        before, after = np.nonzero(allowed)
        starts = np.arange(n_experts)
        return cls(
            np.concatenate([0 * starts, before + 1]),
            np.concatenate([starts, after]) + 1,
            np.concatenate([starts, after]),
        )

    @classmethod
    def switching(cls, n_experts: int, max_switches: int) -> PathFamily:
        """Paths that change the expert at most ``max_switches`` times."""
        _check_experts(n_experts)
        if max_switches < 0:
            raise DataError(f"max_switches must be at least 0, got {max_switches!r}")
        # State 1 + s p + j: expert j is followed, after s switches.
        moves = [(0, 1 + j, j) for j in range(n_experts)]
        for s in range(max_switches + 1):
            for i in range(n_experts):
                for j in range(n_experts):
                    switches = s + (i != j)
                    if switches <= max_switches:
                        moves.append((1 + s * n_experts + i, 1 + switches * n_experts + j, j))
        return cls._of(moves)

    @classmethod
    def staying(cls, n_experts: int, at_least: int) -> PathFamily:
        """Paths that stay with an expert for at least so many positions, but at the end."""
        _check_experts(n_experts)
        if at_least < 1:
            raise DataError(f"at_least must be at least 1, got {at_least!r}")
        # State 1 + (r - 1) p + j: expert j has been followed for r positions, or more if r is most.
        moves = [(0, 1 + j, j) for j in range(n_experts)]
        for r in range(at_least):
            for i in range(n_experts):
                ahead = min(r + 1, at_least - 1)
                moves.append((1 + r * n_experts + i, 1 + ahead * n_experts + i, i))
                if r == at_least - 1:
                    moves += [(1 + r * n_experts + i, 1 + j, j) for j in range(n_experts) if j != i]
        return cls._of(moves)

    @classmethod
    def _of(cls, moves: list[tuple[int, int, int]]) -> PathFamily:
        """Leave out states that no path reaches."""
        reached, front = {0}, [0]
        while front:
            ahead = {d for o, d, _ in moves if o in front} - reached
            reached |= ahead
            front = sorted(ahead)
        number = {state: k for k, state in enumerate(sorted(reached))}
        kept = [(number[o], number[d], j) for o, d, j in moves if o in reached]
        origin, destination, expert = np.array(kept).T
        return cls(origin, destination, expert)

    # ------------------------------------------------------------------ use

    @property
    def n_moves(self) -> int:
        """Number of moves."""
        return len(self.origin)

    def check_experts(self, n_experts: int) -> None:
        """Refuse an expert that is not there."""
        check_experts(self.n_experts, n_experts)

    def unrolled(self, length: int) -> tuple[PathAutomaton, NDArray[np.int64]]:
        """Return the automaton of the paths of one length, and the move of each of its edges."""
        whole(1, _LONGEST).check("length", length)
        if length not in self._unrolled:
            self._unrolled[length] = self._unroll(length)
        return self._unrolled[length]

    def best_paths(self, scores: ArrayLike, length: int) -> NDArray[np.int64]:
        """Return the moves (K, l) of the best paths of one length under scores (K, M).

        Of equals it is the path whose moves come first.
        """
        from trellis.kernels.experts import best_moves

        self.unrolled(length)  # refuses a length without paths
        shape = None, self.n_moves
        values = as_array(scores, np.float64, "scores of moves", shape, finite=True)
        moves = np.empty((len(values), length), np.int64)
        best_moves(self.origin, self.destination, self._ends(), values, moves)
        return moves

    def _ends(self) -> NDArray[np.bool_]:
        """Whether a path may end in each state."""
        if self.final is None:
            return np.ones(self.n_states, bool)
        return np.isin(range(self.n_states), self.final)

    def _unroll(self, length: int) -> tuple[PathAutomaton, NDArray[np.int64]]:
        alive = np.zeros((length + 1, self.n_states), bool)  # from which a final state is reached
        alive[length] = self._ends()
        for k in range(length - 1, -1, -1):
            alive[k, self.origin[alive[k + 1, self.destination]]] = True
        if not alive[0, 0]:
            raise DataError(f"the family has no path of {length} positions")
        number = np.zeros(1, np.int64)  # of the states of this layer, which are sorted
        states = np.zeros(1, np.int64)
        n_states = 1
        origins, destinations, moves = [], [], []
        for k in range(length):
            here = np.flatnonzero(
                np.isin(self.origin, states) & alive[k + 1, self.destination]
            )  # sorted by origin, as the moves are
            ahead = np.unique(self.destination[here])
            after = n_states + np.arange(len(ahead))
            origins.append(number[np.searchsorted(states, self.origin[here])])
            destinations.append(after[np.searchsorted(ahead, self.destination[here])])
            moves.append(here)
            states, number, n_states = ahead, after, n_states + len(ahead)
        move = np.concatenate(moves)
        net = PathAutomaton(
            np.concatenate(origins), np.concatenate(destinations), self.expert[move]
        )
        return net, held(move)


def _check_experts(n_experts: int) -> None:
    if n_experts < 1:
        raise DataError(f"a family of automata needs one expert at least, got {n_experts}")
