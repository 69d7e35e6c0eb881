"""Stochastic gradient descent with the schedule of Sun (2014).

At the k-th visited piece of pass p (N pieces a pass) the rate is r_0 · β^(p + k/N): it falls by β a
pass, smoothly. The gradient of a piece is not divided by anything; ``batch_size`` pieces share the
weights that their gradients are taken at. Penalties:

- l2 · ‖w‖² is spread evenly over the pass: each visit takes the proximal step of its share l2/N,
  exactly and at no cost, since only a common scale changes; or, as in the authors' program, it is
  applied once at the end of the pass with the last rate (``l2_once``).
- L1 and the group lasso take one proximal step at the end of each pass. A weight whose summed
  gradient of a pass stays below l1 is then exactly zero, as optimality demands; steps after every
  visit would leave it to chance which weights are zero at the end.

With ``average_from`` the weights to predict with are the mean of those met at four places a pass,
from that pass on (Polyak & Juditsky 1992; Ruppert 1988). The mean is nearer to the optimum than any
of them, so that the rate need not fall: β = 1. Where it is taken at a few places it costs next to
nothing, and is as good as one over all steps, since weights change little between them.

``calibrate`` finds r_0 by trial, as Bottou's CRF programs do: the rate with the lowest loss on one
pass over a small part of the data, searched by doubling and halving. What is measured is the loss
of samples before they are visited for the first time (how well the weights generalise), or, for a
run that is to fit as well as it can in a few passes, where they are visited again. A rate whose
loss is above that of zero weights is none: beyond the rates that diverge there may be others, whose
loss is less than that of rates in between.

A run whose objective rises above that of zero weights all the same starts again at an eighth of the
rate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import for_kernels
from trellis.decompose import ChainPieces, GraphPieces, Partitioner, Pieces
from trellis.domains import (
    flag,
    function,
    generator,
    has,
    instance,
    nothing,
    number,
    takes,
    whole,
)
from trellis.errors import DataError
from trellis.problems import HingeSteps, LabelProblem, LogLikelihood, Penalty, Weights
from trellis.problems.threads import run_threads
from trellis.problems.visits import Visits
from trellis.solvers.passes import Visitor

__all__ = ["SLOWER", "StochasticGradient", "calibrate", "slowed_down"]

# Trials of learning rates: fewest visits, unless they are long, and the range that is searched. The
# lower end is for a squared feature norm of one: where new samples cannot be predicted at all, the
# smallest rate would look best, and nothing would be learned.
_TRIAL_VISITS, _TRIAL_POSITIONS = 64, 50_000
# Above a size, pieces are tried in short parts, then in long ones, of so many positions in all.
_LONG, _SHORT_PART, _LONG_PART, _PART_POSITIONS = 1000, 256, 8192, 16_384
_SLOWEST, _FASTEST = 1e-3, 1.0

_PLACES = 4  # of a pass, whose weights an average is of

_ROUNDING = 1e-3  # by which a loss in float32 may seem to be above that of zero weights

SLOWER = 0.125
"""Factor of the rate after a run that diverged."""


def slowed_down(before: float, rate: float) -> str:
    """Say that a run began again."""
    return (
        f"the learning rate {before:.3g} was too high: the objective rose above that of zero "
        f"weights, so that training began again at {rate:.3g}"
    )


class StochasticGradient(Visitor):
    """SGD on the penalised losses of pieces.

    Parameters
    ----------
    objective : LogLikelihood or HingeSteps
    start : Weights
        Initial weights (float32 or float64); changed in place.
    learning_rate, decay : float
        r_0 and β; β = 1 is a fixed rate.
    penalty : Penalty
    l2_once : bool
        Apply the L2 penalty once a pass instead of at every visit.
    batch_size : int
        Pieces of a mini-batch.
    lock_free : bool
        Let every thread of the objective's ``n_jobs`` take steps on its own share of the pieces,
        without waiting for the others (Niu et al. 2011): the result depends on chance.
    average_from : int, optional
        Pass (from 0) from which on weights are averaged; None: the last weights count.
    guarded : bool
        If the start is zero, begin again at a lower rate where the objective rises above that of
        zero weights.
    """

    @takes(
        objective=instance(LogLikelihood) | instance(HingeSteps), start=instance(Weights),
        learning_rate=number(above=0), decay=number(above=0, at_most=1), penalty=instance(Penalty),
        l2_once=flag, batch_size=whole(1), lock_free=flag, average_from=nothing | whole(0),
        guarded=flag,
    )  # fmt: skip
    def __init__(
        self,
        objective: LogLikelihood | HingeSteps,
        start: Weights,
        *,
        learning_rate: float,
        decay: float,
        penalty: Penalty,
        l2_once: bool = False,
        batch_size: int = 1,
        lock_free: bool = False,
        average_from: int | None = None,
        guarded: bool = True,
    ) -> None:
        self.objective, self.problem = objective, objective.problem
        self.learning_rate, self.decay = learning_rate, decay
        self.penalty, self.l2_once = penalty, l2_once
        self.batch_size, self.lock_free = batch_size, lock_free
        self._weights = start
        self.guarded = guarded and not start.any()
        self._state = np.array([1.0, 0.0])  # in place, so that it is right after an interrupt
        self.average_from = average_from
        self._mean = start.copy() if average_from is not None else None
        self._n_met = np.zeros(1, np.int64)  # places that the mean is of
        self.windows = 1 if average_from is None else _PLACES

    def visit(self, these: Visits, number: int, done: int, total: int) -> float:
        """Visit pieces; returns the summed loss met."""
        rate = self.learning_rate * self.decay ** (number + done / total)
        decay = self.decay ** (1 / total)
        shrink = 0.0 if self.l2_once else self.penalty.l2 / total
        if not self.lock_free:
            return self.objective.descend(
                self._weights, these, self._state, rate=rate, decay=decay, shrink=shrink,
                batch_size=self.batch_size,
            )  # fmt: skip
        return self._visit_lock_free(these, rate, decay, shrink)

    def _visit_lock_free(self, these: Visits, rate: float, decay: float, shrink: float) -> float:
        n = self.objective.n_jobs
        alone = LogLikelihood(self.problem)
        weights = self._scaled()  # the scale cannot be shared
        losses = np.zeros(n)

        def work(thread: int) -> None:
            share = these[slice(thread * len(these) // n, (thread + 1) * len(these) // n)]
            losses[thread] = alone.descend(
                weights, share, np.array([1.0, 0.0]), rate=rate, decay=decay**n
            )

        run_threads(n, work)
        self._shrink(1 / (1 + 2 * rate * shrink) ** len(these))
        return float(losses.sum())

    def end_pass(self, number: int) -> float:
        """Apply what is applied once a pass; returns the penalty."""
        if self.l2_once:
            last = self.learning_rate * self.decay ** (number + 1)
            self._shrink(1 / (1 + 2 * last * self.penalty.l2))
        weights = self._scaled()
        if not self.penalty.smooth:
            self.penalty.proximal(weights, self.learning_rate * self.decay ** (number + 0.5))
        return self.penalty.value(weights)

    def _shrink(self, keep: float) -> None:
        """Multiply all weights by a factor."""
        self._state[0] *= keep
        self._weights.transitions *= self._weights.transitions.dtype.type(keep)

    def end_window(self, number: int, visited: int, total: int) -> None:
        """Take the weights as of now into the mean, if it is time."""
        if self._mean is None or self.average_from is None or number < self.average_from:
            return
        from trellis.kernels.averages import scale_and_average

        self._n_met += 1
        weights = self._weights
        for mean, now in zip(self._mean.arrays(), weights.arrays(), strict=True):
            scale = 1.0 if now is weights.transitions else float(self._state[0])
            met, last = for_kernels(mean.reshape(-1)), for_kernels(now.reshape(-1))
            scale_and_average(met, last, scale, int(self._n_met[0]))
        self._state[0] = 1.0

    def limit(self, these: Visits) -> float:
        """Objective of zero weights."""
        return self.objective.at_zero(these) if self.guarded else np.inf

    def restart(self) -> str:
        """Go back to where the run began, at a lower rate; returns a line about it."""
        before, self.learning_rate = self.learning_rate, SLOWER * self.learning_rate
        self._weights.clear()
        self._state[0] = 1.0
        self._n_met[0] = 0
        return slowed_down(before, self.learning_rate)

    def weights(self) -> Weights:
        """The mean, or the weights as of now (valid until the next visit)."""
        return self._mean if self._mean is not None and self._n_met[0] else self._scaled()

    def _scaled(self) -> Weights:
        """The weights as of now, scaled in place."""
        if self._state[0] != 1.0:
            scale = self._weights.node.dtype.type(self._state[0])
            self._weights.node *= scale
            if self._weights.edge is not None:
                self._weights.edge.values *= scale
            self._state[0] = 1.0
        return self._weights

    def state(self) -> dict[str, NDArray[Any]]:
        """Weights, scale and rate, and the mean."""
        rate = np.array([self.learning_rate])
        state = self._weights.named() | {"state": self._state, "rate": rate}
        if self._mean is not None:
            state |= self._mean.named("mean_") | {"n_met": self._n_met}
        return state

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take up a state."""
        if self._mean is not None and state["n_met"][0] < 0:
            raise DataError("a mean of less than no weights")
        super().restore(state)
        self.learning_rate = float(state["rate"][0])


@takes(
    problem=instance(LabelProblem), partitioner=has("draw", words="a partitioner"), rng=generator,
    l2=number(at_least=0), like=instance(Weights), batch_size=whole(1), loss=function,
    n_samples=whole(1), first=number(above=0), unseen=flag,
)  # fmt: skip
def calibrate(
    problem: LabelProblem,
    partitioner: Partitioner,
    rng: np.random.Generator,
    *,
    l2: float,
    like: Weights,
    batch_size: int = 1,
    loss: Callable[..., LogLikelihood | HingeSteps] = LogLikelihood,
    n_samples: int = 1000,
    first: float = 0.1,
    unseen: bool = False,
) -> float:
    """Initial rate r_0 with the lowest loss on one pass over up to ``n_samples`` samples.

    ``like`` are weights of the model to be trained, ``loss`` is what it is trained with. Where all
    samples are in the trial, the loss is that of a second pass, unless it is to be that of samples
    ``unseen``; from so little data that these cannot be predicted at all, it is that all the same.
    Of pieces of thousands of positions, and the log-likelihood, some parts are tried, first short
    ones, then long ones, and the rate is made smaller in proportion to the size.
    """
    n = len(problem.encoded.offsets) - 1
    chosen = np.sort(rng.choice(n, min(n, n_samples), replace=False))
    pieces = partitioner.draw(problem.encoded.offsets, rng)
    numbers = np.flatnonzero(np.isin(pieces.sample, chosen))
    share, everything = l2 / max(1, len(pieces)), n <= n_samples

    def trial(
        pieces: Pieces, numbers: NDArray[np.int64], everything: bool, share: float, first: float
    ) -> float:
        these = problem.visits(pieces, rng.permutation(numbers))
        compact, these, zero = problem.compact(these, like)
        return _best_rate(loss(compact), these, zero, everything, unseen, share, first, batch_size)

    usual = _usual_size(pieces, numbers)
    if usual <= _LONG or loss is HingeSteps:  # whose steps take little time at any rate
        return trial(pieces, numbers, everything, share, first)
    # A gradient is a sum over positions: the longer the piece, the smaller the rate. Rates that are
    # too high for long pieces take a hundred times as long, and are found out by short ones.
    total = int(np.diff(pieces.offsets)[numbers].sum())
    before = 0.0
    for size in (_SHORT_PART, _LONG_PART if total > _PART_POSITIONS else total):
        pieces = _smaller(partitioner, problem, size).draw(problem.encoded.offsets, rng)
        numbers = rng.permutation(np.flatnonzero(np.isin(pieces.sample, chosen)))
        until = np.cumsum(np.diff(pieces.offsets)[numbers])
        numbers = numbers[: max(1, int(np.searchsorted(until, _PART_POSITIONS, side="right")))]
        now = _usual_size(pieces, numbers)
        first = trial(
            pieces, numbers, len(numbers) == len(pieces), share * now / usual,
            first * (before or now) / now,
        )  # fmt: skip
        before = now
    return first * before / usual


def _best_rate(
    objective: LogLikelihood | HingeSteps,
    these: Visits,
    zero: Weights,
    everything: bool,
    unseen: bool,
    share: float,
    first: float,
    batch_size: int,
) -> float:
    """Rate of the lowest loss on some visits, found by doubling and halving the first."""
    few = len(these) < _TRIAL_VISITS
    # A few sequences are gone through several times: a single step says nothing about a rate.
    times = -(-_TRIAL_VISITS // max(1, len(these)))
    length = int((these.ends - these.starts).sum())
    these = these.repeated(min(times, max(2, _TRIAL_POSITIONS // max(1, length))))
    e = objective.problem.encoded
    # Not np.square: samples with edges stay whole, and all their values may not fit into memory.
    squares = float(
        np.einsum("i,i", e.values, e.values, dtype=np.float64) if e.values.size else len(e.indices)
    )
    slowest = _SLOWEST * max(1, len(objective.problem.labels)) / max(squares, 1.0)

    half = len(these) // 2
    parts = [slice(0, half), slice(half, None)]
    if everything and (few or not unseen or not _teaches(objective, these, zero, 10 * slowest)):
        # All data are in the trial: measure in a second pass. Where few noisy samples say nothing
        # about the next, the best rate for what is new would be none at all.
        parts = [slice(None), slice(None)]

    limit = (1 + _ROUNDING) * objective.at_zero(these[parts[-1]])

    def met_at(rate: float) -> float:
        """Loss met in the last part: the first steps from zero say little about a rate."""
        weights, state, met = zero.zeros_like(np.float32), np.array([1.0, 0.0]), np.inf
        for part in parts:
            met = objective.descend(
                weights, these[part], state, rate=rate, shrink=share, batch_size=batch_size
            )
        return met if met <= limit else np.inf

    rate, best = first, met_at(first)
    for factor in (2.0, 0.5):
        while slowest < rate * factor < _FASTEST:
            tried = met_at(rate * factor)
            if not (tried < best or (factor < 1 and np.isinf(best))):
                break
            rate, best = rate * factor, tried
        if rate != first:
            break
    return rate


def _usual_size(pieces: Pieces, numbers: NDArray[np.int64]) -> float:
    """Size of the piece that a position is in, on average."""
    size = np.diff(pieces.offsets)[numbers].astype(np.float64)
    return float((size * size).sum() / max(1.0, size.sum()))


def _smaller(partitioner: Partitioner, problem: LabelProblem, size: int) -> Partitioner:
    """A partitioner of the same kind for pieces of another size."""
    if problem.structure == "chain":
        return ChainPieces(size)
    kind = partitioner.pieces if isinstance(partitioner, GraphPieces) else "tree"
    return GraphPieces(problem.edges, size, kind)


def _teaches(
    objective: LogLikelihood | HingeSteps, these: Visits, zero: Weights, rate: float
) -> bool:
    """Whether visiting the first half at a low rate makes the loss of the second half smaller."""
    half, met = len(these) // 2, []
    for learned in (these[slice(0, 0)], these[slice(0, half)]):
        weights, state = zero.zeros_like(np.float32), np.array([1.0, 0.0])
        objective.descend(weights, learned, state, rate=rate)
        met.append(objective.descend(weights, these[slice(half, None)], state, rate=1e-6 * rate))
    return met[1] < met[0]
