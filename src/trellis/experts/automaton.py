"""Acyclic automata whose paths are experts.

A path of l edges, one for each position, names the expert to follow at each position; edge e goes
from state o(e) to state d(e) and stands for expert j(e) at position k(e). All paths start in state
0; all end, after l edges, in a state that no edge leaves. So the states lie in layers and every
algorithm here walks the layers once, in time linear in the number of edges.

With log weights a(e), a path weighs the sum of its edges' and has probability ∝ exp of it.
*Weight pushing* (Mohri 1997) turns them into probabilities of the edges that leave a state:

    V(q) = 0 in final states, else log Σ_{e: o(e)=q} exp(a(e) + V(d(e)))
    w(e) = exp(a(e) + V(d(e)) - V(o(e)))        Σ_{e: o(e)=q} w(e) = 1

and the probability that a path uses e is F(o(e)) w(e), F the forward mass of a state. Normalising
over the edges that leave a state *without* V, Eq. (3) of Cortes, Kuznetsov and Mohri (2014), is the
same only if V(d(e)) is equal for all edges of a layer, as in the complete automaton.

Arrays over edges may have further axes: (E, ...) runs many weightings at once.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trellis.arrays import as_array, held
from trellis.errors import DataError

__all__ = ["PathAutomaton", "check_experts"]


@dataclass(frozen=True, eq=False)
class PathAutomaton:
    """Acyclic automaton over p experts and l positions; paths are experts.

    Edges are kept in the order of their positions, then of their origins, then as given.

    Parameters
    ----------
    origin, destination : int (E,)
        States; 0 is the start.
    expert : int (E,)
        The expert whose answer the edge stands for, from 0.
    positions : int (E,) or None
        The position of each edge, from 0; None: worked out from the states. If given it is checked.

    Attributes
    ----------
    position : int64 (E,)
        The position of each edge, from 0.
    n_states, n_edges, n_experts, length : int

    Examples
    --------
    Three positions and two experts; once the second expert is followed it is followed to the end.

    >>> import numpy as np
    >>> from trellis.experts import PathAutomaton
    >>> stay = PathAutomaton.restricted(2, 3, np.array([[True, True], [False, True]]))
    >>> stay.n_paths
    4
    >>> stay.edge_marginals(np.zeros(stay.n_edges)).round(2).tolist()
    [0.75, 0.25, 0.5, 0.25, 0.25, 0.25, 0.25, 0.5]
    """

    origin: NDArray[np.int64]
    destination: NDArray[np.int64]
    expert: NDArray[np.int64]
    positions: InitVar[NDArray[np.int64] | None] = None
    position: NDArray[np.int64] = field(init=False)
    n_experts: int = field(init=False)
    n_states: int = field(init=False)
    length: int = field(init=False)

    def __post_init__(self, positions: NDArray[np.int64] | None) -> None:
        origin = as_array(self.origin, np.int64, "origin", (None,), low=0)
        shape = origin.shape
        destination = as_array(self.destination, np.int64, "destination", shape, low=0)
        expert = as_array(self.expert, np.int64, "expert", shape, low=0, high=2**31)
        if not len(origin):
            raise DataError("an automaton needs one edge at least")
        n_states = int(max(origin.max(), destination.max())) + 1
        if n_states > len(origin) + 1:  # before arrays of that many states are made
            numbers = np.arange(len(origin) + 2)
            lost = int(np.setdiff1d(numbers, np.append(destination, 0))[0])
            raise DataError(f"state {lost} cannot be reached from state 0; leave it out")
        layer = _layers(origin, destination, n_states)
        final = np.setdiff1d(np.arange(n_states), origin)
        length = int(layer.max())
        if (layer[final] != length).any():
            state = int(final[layer[final] != length][0])
            raise DataError(
                f"state {state} is a dead end after {layer[state]} of {length} positions: every "
                "path must pass all positions"
            )
        place = layer[origin]
        if positions is not None and not np.array_equal(
            place, as_array(positions, np.int64, "positions")
        ):
            raise DataError(
                "positions: that of an edge must be the number of edges before it on a path"
            )
        order = np.lexsort((origin, place))
        for name, array in (
            ("origin", origin), ("destination", destination), ("expert", expert),
            ("position", place),
        ):  # fmt: skip
            object.__setattr__(self, name, held(array[order]))
        object.__setattr__(self, "n_experts", int(expert.max()) + 1)
        object.__setattr__(self, "n_states", n_states)
        object.__setattr__(self, "length", length)

    # ------------------------------------------------------------------ makers

    @classmethod
    def complete(cls, n_experts: int, length: int) -> PathAutomaton:
        """All p^l paths: one state a position (Figure 1 of the paper)."""
        _check_size(n_experts, length)
        states = np.repeat(np.arange(length), n_experts)
        return cls(states, states + 1, np.tile(np.arange(n_experts), length))

    @classmethod
    def restricted(cls, n_experts: int, length: int, allowed_switch: ArrayLike) -> PathAutomaton:
        """Paths that go from expert i to expert j only where ``allowed_switch[i, j]``."""
        _check_size(n_experts, length)
        allowed = np.asarray(allowed_switch)
        if allowed.shape != (n_experts, n_experts) or allowed.dtype != bool:
            raise DataError(f"allowed_switch must be bool ({n_experts}, {n_experts})")
        if not allowed.any(axis=1).all():
            expert = int(np.flatnonzero(~allowed.any(axis=1))[0])
            raise DataError(
                f"allowed_switch lets nobody follow expert {expert}; allow one at least"
            )
        return cls._with_memory(n_experts, length, 2, allowed)

    @classmethod
    def ngram(cls, n_experts: int, length: int, n: int) -> PathAutomaton:
        """All paths, in states that remember the last n - 1 experts.

        The edges then tell n-grams of experts apart, so weights and losses may depend on them.
        """
        _check_size(n_experts, length)
        if n < 1:
            raise DataError(f"n must be at least 1, got {n!r}")
        everything = np.ones((n_experts, n_experts), bool)
        return cls._with_memory(n_experts, length, n, everything)

    @classmethod
    def _with_memory(cls, p: int, length: int, n: int, allowed: NDArray[np.bool_]) -> PathAutomaton:
        """States are the last min(k, n - 1) experts; numbered layer by layer."""
        state_of: dict[tuple[int, ...], int] = {(): 0}
        edges: list[tuple[int, int, int]] = []
        n_states = 1
        for _ in range(length):
            new: dict[tuple[int, ...], int] = {}
            for memory, state in state_of.items():
                for j in range(p):
                    if memory and not allowed[memory[-1], j]:
                        continue
                    longer = (*memory, j)
                    ahead = longer[max(0, len(longer) - n + 1) :]
                    if ahead not in new:
                        new[ahead] = n_states
                        n_states += 1
                    edges.append((state, new[ahead], j))
            state_of = new
        origin, destination, expert = np.array(edges).T
        return cls(origin, destination, expert)

    # ------------------------------------------------------------------ size

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return len(self.origin)

    @property
    def n_paths(self) -> int:
        """Number of paths."""
        count = np.array([1] * self.n_states, dtype=object)
        for edges in reversed(self._by_position()):
            count[np.unique(self.origin[edges])] = 0
            for e in edges:
                count[self.origin[e]] += count[self.destination[e]]
        return int(count[0])

    @property
    def is_complete(self) -> bool:
        """Whether every position has one state and one edge for each expert."""
        p, length = self.n_experts, self.length
        if self.n_states != length + 1 or self.n_edges != p * length:
            return False
        return all(len(set(self.expert[e])) == p for e in self._by_position())

    def check_experts(self, n_experts: int) -> None:
        """Refuse an expert that is not there."""
        check_experts(self.n_experts, n_experts)

    def check_samples(self, lengths: NDArray[np.int64], n_experts: int) -> None:
        """Refuse samples of another length, and an expert that is not there."""
        self.check_experts(n_experts)
        if (lengths != self.length).any():
            sample = int(np.flatnonzero(lengths != self.length)[0])
            raise DataError(
                f"sample {sample} (counted from 0) has {lengths[sample]} positions, the "
                f"automaton {self.length}; give a PathFamily for samples of different lengths"
            )

    # ------------------------------------------------------------------ algorithms

    def push(self, log_weights: NDArray[Any]) -> NDArray[np.float64]:
        """Return log w(e), the log probability of each edge among those that leave its origin."""
        values = self._checked(log_weights).copy()
        if not np.isfinite(values).all():
            raise DataError("log weights of edges must be finite; leave impossible edges out")
        ahead = np.zeros((self.n_states, *values.shape[1:]))
        for edges, starts, states in self._segments(reverse=True):
            part = values[edges] + ahead[self.destination[edges]]
            total = np.logaddexp.reduceat(part, starts, axis=0)
            ahead[states] = total
            values[edges] = part - ahead[self.origin[edges]]
        return values

    def edge_marginals(self, log_weights: NDArray[Any]) -> NDArray[np.float64]:
        """Return the probability that a path uses each edge; they sum to 1 at every position."""
        return self.pushed_marginals(np.exp(self.push(log_weights)))

    def pushed_marginals(self, probabilities: NDArray[Any]) -> NDArray[np.float64]:
        """Return the edge marginals of weights that are pushed: F(o(e)) w(e)."""
        values = self._checked(probabilities).copy()
        mass = np.zeros((self.n_states, *values.shape[1:]))
        mass[0] = 1
        for edges in self._by_position():
            values[edges] *= mass[self.origin[edges]]
            np.add.at(mass, self.destination[edges], values[edges])
        return values

    def expert_marginals(self, marginals: NDArray[Any]) -> NDArray[np.float64]:
        """Sum edge marginals to W[k, j], the probability of following expert j at position k."""
        values = self._checked(marginals)
        table = np.zeros((self.length, self.n_experts, *values.shape[1:]))
        np.add.at(table, (self.position, self.expert), values)
        return table

    def best_path(self, scores: NDArray[Any]) -> NDArray[np.int64]:
        """Return the edges (l, ...) of the path with the largest sum of scores, first on ties."""
        values = self._checked(scores)
        ahead = np.zeros((self.n_states, *values.shape[1:]))
        choice = np.zeros((self.n_states, *values.shape[1:]), np.int64)
        for edges, starts, states in self._segments(reverse=True):
            part = values[edges] + ahead[self.destination[edges]]
            best = np.maximum.reduceat(part, starts, axis=0)
            ahead[states] = best
            number = edges.reshape(-1, *[1] * (values.ndim - 1))
            first = np.where(part == ahead[self.origin[edges]], number, self.n_edges)
            choice[states] = np.minimum.reduceat(first, starts, axis=0)
        path = np.empty((self.length, *values.shape[1:]), np.int64)
        state = np.zeros(values.shape[1:], np.int64)
        for k in range(self.length):
            path[k] = np.take_along_axis(choice, state[None], axis=0)[0]
            state = self.destination[path[k]]
        return path

    def sample(
        self, log_weights: NDArray[Any], size: int, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Draw ``size`` paths, as edges (size, l)."""
        return self.sample_pushed(
            np.exp(self.push(self._checked(log_weights, flat=True))), size, rng
        )

    def sample_pushed(
        self, weights: NDArray[Any], size: int, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Draw ``size`` paths; the weights of the edges that leave a state are their chances.

        They need not sum to 1, so edge marginals may be given, which the paths drawn then have.
        """
        values = self._checked(weights, flat=True)
        upto = np.concatenate([[0.0], np.cumsum(values)])
        first, after = self._ranges()
        paths = np.empty((size, self.length), np.int64)
        state = np.zeros(size, np.int64)
        for k in range(self.length):
            low, high = upto[first[state]], upto[after[state]]
            edge = np.searchsorted(upto, low + rng.random(size) * (high - low), side="right") - 1
            paths[:, k] = np.clip(edge, first[state], after[state] - 1)
            state = self.destination[paths[:, k]]
        return paths

    def paths(self) -> NDArray[np.int64]:
        """All paths as edges (n_paths, l); for small automata."""
        if self.n_paths > 1_000_000:
            raise DataError(f"{self.n_paths} paths are too many to list; sample them instead")
        paths = [[e] for e in np.flatnonzero(self.origin == 0).tolist()]
        for _ in range(1, self.length):
            paths = [
                [*path, e]
                for path in paths
                for e in np.flatnonzero(self.origin == self.destination[path[-1]]).tolist()
            ]
        return np.array(paths, np.int64)

    # ------------------------------------------------------------------ inside

    def _checked(self, values: NDArray[Any], flat: bool = False) -> NDArray[np.float64]:
        array = as_array(values, np.float64, "weights of edges")
        if array.shape[:1] != (self.n_edges,) or (flat and array.ndim != 1):
            raise DataError(f"expected one number for each of the {self.n_edges} edges")
        if np.isnan(array).any():
            raise DataError("weights of edges must not be NaN")
        return array

    def _by_position(self) -> list[NDArray[np.int64]]:
        cuts = np.searchsorted(self.position, np.arange(1, self.length))
        return np.split(np.arange(self.n_edges), cuts)

    def _ranges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Edges of state q are first[q]:after[q], since edges are sorted by layer and origin."""
        first = np.zeros(self.n_states, np.int64)
        after = np.zeros(self.n_states, np.int64)
        states, begin, count = np.unique(self.origin, return_index=True, return_counts=True)
        first[states] = begin
        after[states] = begin + count
        return first, after

    def _segments(
        self, reverse: bool
    ) -> list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
        """Layer by layer: edges, where each origin's edges start among them, and the origins."""
        layers = []
        for edges in self._by_position():
            states, starts = np.unique(self.origin[edges], return_index=True)
            layers.append((edges, starts, states))
        return layers[::-1] if reverse else layers


def check_experts(spoken_of: int, n_experts: int) -> None:
    """Refuse an automaton that speaks of more experts than there are."""
    if spoken_of > n_experts:
        raise DataError(f"the automaton speaks of {spoken_of} experts, there are {n_experts}")


def _layers(
    origin: NDArray[np.int64], destination: NDArray[np.int64], n_states: int
) -> NDArray[np.int64]:
    """Return the layer of each state: the number of edges before it, equal on all ways to it."""
    layer = np.full(n_states, -1, np.int64)
    layer[0] = 0
    depth = 0
    front = np.array([0])
    order = np.argsort(origin, kind="stable")
    first = np.searchsorted(origin[order], np.arange(n_states + 1))
    while len(front):
        edges = np.concatenate([order[first[q] : first[q + 1]] for q in front])
        ahead = np.unique(destination[edges])
        depth += 1
        seen = ahead[layer[ahead] >= 0]
        if len(seen):
            raise DataError(
                f"state {int(seen[0])} is reached after {int(layer[seen[0]])} and after {depth} "
                "edges; every state must stand at one position, and there must be no cycle"
            )
        layer[ahead] = depth
        front = ahead
    if (layer < 0).any():
        lost = int(np.flatnonzero(layer < 0)[0])
        raise DataError(f"state {lost} cannot be reached from state 0; leave it out")
    return layer


def _check_size(n_experts: int, length: int) -> None:
    if n_experts < 1 or length < 1:
        raise DataError(
            f"an automaton needs one expert and one position at least, got {n_experts} and {length}"
        )
