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
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s
from trellis.errors import CorruptModelError, DataError
from trellis.files.stored import check_range, header_value, take

__all__ = [
    "Blocks",
    "Candidates",
    "Leaders",
    "Suffixes",
    "best_set",
    "clearly_positive",
    "gamma",
    "held_out_penalty",
    "suffix_gammas",
]


_APART = 256


def gamma(losses: NDArray[Any], delta: float) -> float:
    """Γ of the set of distributions whose round losses these are.

    Examples
    --------
    >>> import numpy as np
    >>> from trellis.experts.conversions import gamma
    >>> round(gamma(np.array([0.25, 0.5, 0.75, 0.5]), delta=0.05), 4)
    1.3654
    """
    return float(np.mean(losses)) + math.sqrt(math.log(1 / delta) / len(losses))


def suffix_gammas(losses: NDArray[Any], delta: float) -> Float64s:
    """Γ of the suffix sets that begin with round 1, 2, ..., T, all in time linear in T."""
    count = np.arange(len(losses), 0, -1)
    means = np.cumsum(np.asarray(losses, np.float64)[::-1])[::-1] / count
    values: Float64s = means + np.sqrt(math.log(1 / delta) / count)
    return values


def held_out_penalty(n: NDArray[Any], n_rounds: int, delta: float) -> Float64s:
    """Return c(n), the price of trusting n samples that the distribution has not seen."""
    values: Float64s = np.sqrt(math.log(n_rounds * (n_rounds + 1) / delta) / (2 * (n + 1)))
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


def clearly_positive(gains: NDArray[Any]) -> bool:
    """Whether the mean of these is above 0 by more than a standard error.

    Of T gains it is 1 + 10/T standard errors, since that of few is itself unsure.

    Examples
    --------
    >>> import numpy as np
    >>> from trellis.experts.conversions import clearly_positive
    >>> clearly_positive(np.array([0.2, 0.3, 0.1] * 5)), clearly_positive(np.array([0.9, -0.8]))
    (True, False)
    """
    n = len(gains)
    if n < 2:
        return False
    error = float(gains.std(ddof=1)) / math.sqrt(n)
    return float(gains.mean()) > (1 + 10 / n) * error


class Blocks:
    """Blocks of ``size`` consecutive rounds, with a table each; the last one may not be full."""

    def __init__(self) -> None:
        self.size = 1
        self.n_rounds = 0
        self.tables: list[Float64s] = []

    @property
    def starts(self) -> range:
        """First round of each block."""
        return range(0, self.size * len(self.tables), self.size)

    def room(self) -> int:
        """Return the number of rounds until the present block is full."""
        return self.size - self.n_rounds % self.size

    def full(self) -> bool:
        """Whether there are so many blocks that two are to be made one, and all are in pairs."""
        return len(self.tables) > _APART and self.n_rounds % (2 * self.size) == 0

    def state(self) -> dict[str, Any]:
        """What a model file holds of it."""
        return {"size": self.size, "n_rounds": self.n_rounds, "tables": self.tables}

    def restore(self, state: Mapping[str, Any], shape: tuple[int, ...]) -> None:
        """Undo :meth:`state`, checking everything; a table of today has this shape."""
        self.size = header_value(state, "size", int, low=1)
        self.n_rounds = header_value(state, "n_rounds", int, low=1)
        tables = header_value(state, "tables", list, items=np.ndarray)
        wanted = (None if len(shape) > 1 else shape[0], *shape[1:])  # contexts may have come since
        self.tables = [
            take({"tables": table}, "tables", np.float64, wanted, finite=False) for table in tables
        ]
        rows = [len(table) for table in tables]
        if rows != sorted(rows) or rows[-1:] > [shape[0]]:
            raise CorruptModelError("the tables of blocks do not grow to the size of the weights")
        for table in tables:
            if not (table < np.inf).all():
                raise CorruptModelError("the tables of blocks are not the logarithms of numbers")
        if self.size & (self.size - 1) or len(tables) != -(-self.n_rounds // self.size):
            raise CorruptModelError("the blocks are not those of the rounds")


class Suffixes(Blocks):
    """Sums of the tables p_t over blocks, as logarithms; suffixes begin at blocks."""

    def add(self, log_sum: Float64s, n_rounds: int) -> None:
        """Add the log of the sum of the tables of the next rounds; within one block."""
        if self.n_rounds % self.size == 0:
            self.tables.append(log_sum)
        else:
            self.tables[-1] = self._joined(len(self.tables) - 1, log_sum)
        self.n_rounds += n_rounds
        if self.full():
            self.tables = [
                self._joined(i, self.tables[i + 1]) for i in range(0, len(self.tables), 2)
            ]
            self.size *= 2

    def _joined(self, block: int, later: Float64s) -> Float64s:
        n_rounds = min(self.size, self.n_rounds - block * self.size)
        return np.logaddexp(_grown(self.tables[block], n_rounds, later), later)

    def best(self, losses: NDArray[Any], delta: float) -> tuple[int, float]:
        """Return the first round of the suffix that minimises Γ, and its Γ."""
        values = suffix_gammas(losses, delta)[self.starts]
        first = int(values.argmin())
        return self.starts[first], float(values[first])

    def log_average(self, start: int) -> Float64s:
        """Return the log of the average table over the rounds from ``start`` on."""
        *earlier, total = self.tables[self.starts.index(start) :]
        for table in reversed(earlier):
            total = np.logaddexp(total, _grown(table, self.size, total))
        average: Float64s = total - math.log(self.n_rounds - start)
        return average

    def averages(self, start: int, like: Float64s) -> tuple[list[Float64s], NDArray[np.int64]]:
        """Return the log of the average table of each block from ``start`` on, and its rounds."""
        tables, counts = [], []
        for block in range(self.starts.index(start), len(self.tables)):
            n_rounds = min(self.size, self.n_rounds - block * self.size)
            tables.append(_grown(self.tables[block], n_rounds, like) - math.log(n_rounds))
            counts.append(n_rounds)
        return tables, np.array(counts)


def _grown(log_sum: Float64s, n_rounds: int, like: Float64s) -> Float64s:
    """Add the rows that a table did not have yet: their weights were 1 in all of its rounds."""
    missing = len(like) - len(log_sum)
    if not missing:
        return log_sum
    return np.concatenate([log_sum, np.full((missing, *log_sum.shape[1:]), math.log(n_rounds))])


class Leaders(Blocks):
    """Tables that cannot be averaged: that of the first round of a block stands for all of them.

    Blocks are those of :class:`Suffixes`.
    """

    def add(self, table: Float64s) -> None:
        """Add the table of the next round."""
        if self.n_rounds % self.size == 0:
            self.tables.append(table)
        self.n_rounds += 1
        if self.full():
            self.tables = self.tables[::2]
            self.size *= 2

    def since(self, start: int) -> tuple[Float64s, NDArray[np.int64]]:
        """Return the tables (K, ...) from round ``start`` on, and how many rounds each stands for.

        Examples
        --------
        >>> import numpy as np
        >>> from trellis.experts.conversions import Leaders
        >>> kept = Leaders()
        >>> for t in range(300):
        ...     kept.add(np.array([float(t)]))
        >>> tables, counts = kept.since(294)
        >>> tables[:, 0].tolist(), counts.tolist()
        ([294.0, 296.0, 298.0], [2, 2, 2])
        """
        first = start // self.size
        ends = np.minimum(np.array(self.starts) + self.size, self.n_rounds)
        return np.array(self.tables[first:]), (ends - np.array(self.starts))[first:]


class Candidates(Blocks):
    """Tables p_t at the starts of blocks, each with its loss on the samples from t on.

    ``weigh`` makes weights of a table; the losses of these are asked for.
    """

    def __init__(self, weigh: Callable[[Float64s], Float64s] = np.exp) -> None:
        super().__init__()
        self._weigh = weigh
        self._weights: list[Float64s] = []
        self.losses: Float64s = np.zeros(0)

    def begin(self, log_table: Float64s) -> None:
        """Take the present table as a candidate, if one is due."""
        if self.n_rounds % self.size:
            return
        if len(self.tables) >= (_APART if self.size == 1 else 64):
            while len(self.tables) > 32:
                self.size *= 2
                self.tables, self._weights = self.tables[::2], self._weights[::2]
                self.losses = self.losses[::2]
            if self.n_rounds % self.size:
                return
        self.tables.append(log_table)
        self._weights.append(self._weigh(log_table))
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

    def state(self) -> dict[str, Any]:
        """What a model file holds of it."""
        return super().state() | {"losses": self.losses}

    def restore(self, state: Mapping[str, Any], shape: tuple[int, ...]) -> None:
        """Undo :meth:`state`, checking everything; a table of today has this shape."""
        super().restore(state, shape)
        self.losses = take(state, "losses", np.float64, (len(self.tables),))
        check_range(self.losses, 0, np.inf, "losses of rounds")
        self._weights = [self._weigh(table) for table in self.tables]
