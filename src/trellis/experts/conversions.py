"""From the distributions of on-line learning to one batch rule.

On-line learning gives distributions p_1, ..., p_T over path experts; p_t has seen the samples
before t, and L_t = E_{h ~ p_t} L(h(x_t), y_t) is its loss on sample t. Two ways to one rule:

**A good set of distributions** (Cortes, Kuznetsov and Mohri 2014): choose the set P that minimises

    Γ(P) = (1/|P|) Σ_{p_t ∈ P} L_t + M sqrt(log(1/δ) / |P|)

over a collection, by default the suffixes {p_t, ..., p_T}, and use the average of its members.

**One distribution** (Cesa-Bianchi, Conconi and Gentile 2004): choose the p_t that minimises

    (1/(T-t+1)) Σ_{s ≥ t} E_{h ~ p_t} L(h(x_s), y_s) + c(T-t+1)
    c(n) = M sqrt(log(T(T+1)/δ) / 2(n+1))

its loss on the samples that it has not seen.

Both are worked out in one pass over the samples. The first 256 rounds are all kept apart; after
that rounds are pooled into blocks of 2, 4, 8, ... so that a few hundred tables suffice however long
the stream is, and suffixes (or single distributions) begin at blocks. M = 1 throughout: losses are
normalised.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s
from trellis.errors import DataError

__all__ = ["Candidates", "Suffixes", "best_set", "gamma", "held_out_penalty", "suffix_gammas"]


_APART = 256


def gamma(losses: NDArray[Any], delta: float, bound: float = 1.0) -> float:
    """Γ of the set of distributions whose round losses these are.

    Examples
    --------
    >>> import numpy as np
    >>> from trellis.experts.conversions import gamma
    >>> round(gamma(np.array([0.25, 0.5, 0.75, 0.5]), delta=0.05), 4)
    1.3654
    """
    return float(np.mean(losses)) + bound * math.sqrt(math.log(1 / delta) / len(losses))


def suffix_gammas(losses: NDArray[Any], delta: float, bound: float = 1.0) -> Float64s:
    """Γ of the suffix sets that begin with round 1, 2, ..., T, all in time linear in T."""
    count = np.arange(len(losses), 0, -1)
    means = np.cumsum(np.asarray(losses, np.float64)[::-1])[::-1] / count
    values: Float64s = means + bound * np.sqrt(math.log(1 / delta) / count)
    return values


def held_out_penalty(n: NDArray[Any], n_rounds: int, delta: float, bound: float = 1.0) -> Float64s:
    """Return c(n), the price of trusting n samples that the distribution has not seen."""
    values: Float64s = bound * np.sqrt(math.log(n_rounds * (n_rounds + 1) / delta) / (2 * (n + 1)))
    return values


def best_set(
    collection: Callable[[int], Iterable[Sequence[int]]] | Iterable[Sequence[int]],
    losses: NDArray[Any],
    delta: float,
) -> tuple[NDArray[np.int64], float, int]:
    """Return the set of rounds that minimises Γ, its Γ, and how many sets there were.

    Parameters
    ----------
    collection : sets of rounds, counted from 0, or a function from T to such sets
    losses : float (T,)
    delta : float
    """
    sets = list(collection(len(losses)) if callable(collection) else collection)
    best: tuple[float, NDArray[np.int64]] | None = None
    for rounds in sets:
        members = np.unique(np.asarray(rounds, np.int64))
        if not len(members) or members[0] < 0 or members[-1] >= len(losses):
            raise DataError(
                f"collection: a set must hold rounds between 0 and {len(losses) - 1}, "
                f"got {list(rounds)[:5]!r}"
            )
        value = gamma(losses[members], delta)
        if best is None or value < best[0]:
            best = value, members
    if best is None:
        raise DataError("collection holds no set of rounds; give one at least")
    return best[1], best[0], len(sets)


class Suffixes:
    """Sums of the tables p_t over blocks of consecutive rounds; suffixes begin at blocks."""

    def __init__(self) -> None:
        self.size = 1
        self.starts: list[int] = []
        self.log_sums: list[Float64s] = []
        self.n_rounds = 0

    def room(self) -> int:
        """Return the number of rounds until the present block is full."""
        return self.size - self.n_rounds % self.size

    def add(self, log_sum: Float64s, n_rounds: int) -> None:
        """Add the log of the sum of the tables of the next rounds; within one block."""
        if self.n_rounds % self.size == 0:
            self.starts.append(self.n_rounds)
            self.log_sums.append(log_sum)
        else:
            self.log_sums[-1] = self._joined(len(self.starts) - 1, log_sum)
        self.n_rounds += n_rounds
        if len(self.starts) > _APART and self.n_rounds % (2 * self.size) == 0:
            self.log_sums = [
                self._joined(i, self.log_sums[i + 1]) for i in range(0, len(self.starts), 2)
            ]
            self.starts = self.starts[::2]
            self.size *= 2

    def _joined(self, block: int, later: Float64s) -> Float64s:
        end = self.starts[block + 1] if block + 1 < len(self.starts) else self.n_rounds
        return np.logaddexp(_grown(self.log_sums[block], end - self.starts[block], later), later)

    def best(self, losses: NDArray[Any], delta: float) -> tuple[int, float]:
        """Return the first round of the suffix that minimises Γ, and its Γ."""
        values = suffix_gammas(losses, delta)[self.starts]
        first = int(values.argmin())
        return self.starts[first], float(values[first])

    def log_average(self, start: int) -> Float64s:
        """Return the log of the average table over the rounds from ``start`` on."""
        block = self.starts.index(start)
        total = self.log_sums[-1]
        for i in range(len(self.starts) - 2, block - 1, -1):
            n = self.starts[i + 1] - self.starts[i]
            total = np.logaddexp(total, _grown(self.log_sums[i], n, total))
        average: Float64s = total - math.log(self.n_rounds - start)
        return average


def _grown(log_sum: Float64s, n_rounds: int, like: Float64s) -> Float64s:
    """Add the rows that a table did not have yet: their weights were 1 in all of its rounds."""
    missing = len(like) - len(log_sum)
    if not missing:
        return log_sum
    return np.concatenate([log_sum, np.full((missing, *log_sum.shape[1:]), math.log(n_rounds))])


class Candidates:
    """Tables p_t, each with its loss on the samples from t on; for the choice of one of them."""

    def __init__(self) -> None:
        self.size = 1
        self.starts: list[int] = []
        self.tables: list[Float64s] = []
        self._weights: list[Float64s] = []
        self.losses: Float64s = np.zeros(0)
        self.n_rounds = 0

    def room(self) -> int:
        """Return the number of rounds until the next candidate is due."""
        return self.size - self.n_rounds % self.size

    def begin(self, log_table: Float64s) -> None:
        """Take the present table as a candidate, if one is due."""
        if self.n_rounds % self.size:
            return
        if len(self.starts) >= (_APART if self.size == 1 else 64):
            while len(self.starts) > 32:
                self.size *= 2
                kept = [i for i, start in enumerate(self.starts) if start % self.size == 0]
                self.starts = [self.starts[i] for i in kept]
                self.tables = [self.tables[i] for i in kept]
                self._weights = [self._weights[i] for i in kept]
                self.losses = self.losses[kept]
            if self.n_rounds % self.size:
                return
        self.starts.append(self.n_rounds)
        self.tables.append(log_table)
        self._weights.append(np.exp(log_table))
        self.losses = np.append(self.losses, 0.0)

    def stack(self, n_rows: int) -> Float64s:
        """Return all tables as weights (C, p, K); those of rows a table lacks are 1."""
        for i, table in enumerate(self._weights):
            if len(table) < n_rows:
                new = np.ones((n_rows - len(table), *table.shape[1:]))
                self._weights[i] = np.concatenate([table, new])
        return np.stack(self._weights, axis=-1)

    def add(self, losses: NDArray[Any], n_rounds: int) -> None:
        """Add the summed losses (K,) of the candidates on the next ``n_rounds`` samples."""
        self.losses = self.losses + losses
        self.n_rounds += n_rounds

    def best(self, delta: float) -> tuple[int, float, float]:
        """Return which candidate is chosen, its penalised and its plain mean loss."""
        unseen = self.n_rounds - np.array(self.starts)
        means = self.losses / unseen
        values = means + held_out_penalty(unseen, self.n_rounds, delta)
        chosen = int(values.argmin())
        return chosen, float(values[chosen]), float(means[chosen])
