"""Training pass by pass: draw pieces, visit them, look at the objective and at held-out data.

What happens at a visit is the visitor's business (SGD, ADF, perceptron); the loop here is the same
for all: fresh pieces and a fresh order each pass, one record a pass, and the rules for stopping.
What learns from all samples at once (L-BFGS, Frank–Wolfe, planes) is a learner of its own.

Where a run is, is a :class:`Progress`. With it and the learner's state, a run that was cut off goes
on to the same bits: the pieces of a pass follow from the state of the random numbers at its start.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from trellis.decompose import VISITS, Partitioner, visits
from trellis.domains import generator, has, instance, nothing, number, one_of, whole
from trellis.problems import LabelProblem, Weights
from trellis.problems.visits import Visits
from trellis.solvers.convergence import convergence_value

__all__ = [
    "Learner",
    "PassRecord",
    "Passes",
    "Progress",
    "Stateful",
    "Visitor",
    "Watch",
    "check_run",
]

# Positions visited by one kernel call, so that Ctrl-C is noticed within a fraction of a second.
BLOCK = 1 << 17

# A first pass has diverged beyond so many times the objective of zero weights; fresh starts.
# Rounding may add so much at each position.
_FIRST, _RESTARTS, _ROUNDING = 2.0, 8, 1e-4


class Stateful(Protocol):
    """Something that learns from samples and can be put back to where it was."""

    problem: LabelProblem
    """The samples."""
    unbounded: tuple[str, ...] = ()
    """Arrays of the state that may hold infinite numbers."""

    def weights(self) -> Weights:
        """The weights to predict with, as of now."""
        ...

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that what is still to come depends on: the arrays themselves."""
        ...

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take up a state of these names, types and shapes; refuses numbers out of range."""
        for name, array in self.state().items():
            array[...] = state[name]


class Visitor(Stateful, Protocol):
    """Something that learns from pieces, a part of a pass at a time."""

    windows: int = 1
    """Parts of a pass after each of which ``end_window`` is called."""

    def visit(self, these: Visits, number: int, done: int, total: int) -> float:
        """Visit pieces of pass ``number`` (from 0), ``done`` of ``total`` being visited already.

        Returns the objective met.
        """
        ...

    def end_window(self, number: int, visited: int, total: int) -> None:
        """Do what is due after a window in which so many pieces were visited: nothing."""
        return

    def end_pass(self, number: int) -> float:
        """Do what is due after a pass; returns the penalty, to be added to the objective."""
        return 0.0

    def limit(self, these: Visits) -> float:
        """Objective of pieces above which a pass is worse than having learned nothing."""
        return np.inf

    def restart(self) -> str:
        """Go back to where the run began, with smaller steps; returns a line about it.

        It is for those that have a limit.
        """
        return ""


class Learner(Stateful, Protocol):
    """Something that learns from samples, in passes or iterations of its own."""

    stop_reason: str = ""
    """Why the run ended, as a code."""
    resumable: bool = True
    """Whether a run that was cut off can go on from its state."""
    slowed_down: str = ""
    """What a user should know about a run that began again with smaller steps."""
    step: str = "pass"
    """What a record is about: a pass, or an iteration."""

    def run(self, *, max_passes: int, tol: float, watch: Watch | None = None) -> Progress:
        """Make passes, or iterations, each with a record in the progress that is returned."""
        ...


@dataclass(frozen=True)
class PassRecord:
    """What one pass brought.

    Parameters
    ----------
    number : int
        1 for the first pass.
    objective : float
        CRF: summed loss met during the pass plus the penalty; perceptron: positions labelled
        wrong; max-margin: least objective met so far.
    change : float or None
        The convergence value (see :mod:`trellis.solvers.convergence`), from the third pass on.
    dev_score : float or None
        Score on held-out data after the pass, if there are any.
    seconds : float
        Seconds this pass took, scoring not counted.
    lower_bound : float or None
        The objective has no value below this, where that is known.
    """

    number: int
    objective: float
    change: float | None
    dev_score: float | None
    seconds: float
    lower_bound: float | None = None

    @property
    def gap(self) -> float:
        """By how much the optimum may be lower; infinite if nothing is known of it."""
        return np.inf if self.lower_bound is None else max(0.0, self.objective - self.lower_bound)


@dataclass
class Progress:
    """How far a run has come.

    Parameters
    ----------
    records : list of PassRecord
        The passes that are done.
    visited : int
        Pieces visited in the pass under way.
    met : float
        Objective met in the pass under way.
    seconds : float
        Seconds spent on the pass under way.
    generator : dict
        State of the random numbers at the start of the pass under way.
    """

    records: list[PassRecord] = field(default_factory=list)
    visited: int = 0
    met: float = 0.0
    seconds: float = 0.0
    generator: dict[str, Any] = field(default_factory=dict)


def _ignore(_: Any) -> None:
    pass


@dataclass
class Watch:
    """Who looks on while a learner goes: held-out data, patience, checkpoints, reports.

    Parameters
    ----------
    progress : Progress
        How far the run is; a run goes on from there, and its records are added.
    dev_score : function of weights, optional
        Scores them on held-out data.
    patience : int, optional
        End after so many scores that are not better.
    save : function of the progress
        Called wherever a run that is cut off could be taken up.
    report : function of a record
        Called with each.
    moved : function of a number
        Called with the share of the pass under way that is done.
    """

    progress: Progress = field(default_factory=Progress)
    dev_score: Callable[[Weights], float] | None = None
    patience: int | None = None
    save: Callable[[Progress], None] = _ignore
    report: Callable[[PassRecord], None] = _ignore
    moved: Callable[[float], None] = _ignore

    def change(self, objective: float) -> float | None:
        """Convergence value, with the objective of the pass under way."""
        return convergence_value([*(r.objective for r in self.progress.records), objective])

    def record(
        self,
        learner: Learner,
        objective: float,
        seconds: float,
        *,
        change: float | None = None,
        lower_bound: float | None = None,
        scored: bool = True,
    ) -> bool:
        """Keep the record of a pass, and the score of the weights; whether patience has ended."""
        records, score = self.progress.records, None
        if scored and self.dev_score is not None:
            score = self.dev_score(learner.weights())
        records.append(PassRecord(len(records) + 1, objective, change, score, seconds, lower_bound))
        self.report(records[-1])
        return self.patience_ended

    @property
    def patience_ended(self) -> bool:
        """Whether the last scores, as many as patience goes, were not better."""
        scores = [r.dev_score for r in self.progress.records if r.dev_score is not None]
        if self.patience is None or not scores:
            return False
        return len(scores) - 1 - int(np.argmax(scores)) >= self.patience


class Passes:
    """A learner that visits pieces, drawn anew in each pass.

    Parameters
    ----------
    visitor : Visitor
        Who learns.
    partitioner : Partitioner
        Draws the pieces.
    rng : numpy.random.Generator
        Source of pieces and orders.
    visit : str
        The order (see :func:`trellis.decompose.visits`).
    """

    resumable = True
    step = "pass"
    slowed_down = ""
    unbounded: tuple[str, ...] = ()

    def __init__(
        self,
        visitor: Visitor,
        partitioner: Partitioner,
        rng: np.random.Generator,
        visit: str = "pooled",
    ) -> None:
        has("visit", "end_pass", words="a learner that visits pieces").check("visitor", visitor)
        has("draw", words="a partitioner").check("partitioner", partitioner)
        generator.check("rng", rng)
        one_of(*VISITS).check("visit", visit)
        self.visitor, self.partitioner, self.rng, self.visit = visitor, partitioner, rng, visit
        self.weights, self.state, self.restore = visitor.weights, visitor.state, visitor.restore
        self.problem, self.stop_reason = visitor.problem, ""

    def run(self, *, max_passes: int, tol: float, watch: Watch | None = None) -> Progress:
        """Make passes until the objective has come to rest.

        ``stop_reason`` is "tol", "rising" (the objective no longer fell), "patience", "max_passes"
        or "diverged" (it stayed above that of zero weights, with ever smaller steps; the weights
        are then those that the run began with).
        """
        check_run(max_passes, tol, watch)
        watch = Watch() if watch is None else watch
        now, visitor, rng = watch.progress, self.visitor, self.rng
        restarts = 0
        if now.generator:
            rng.bit_generator.state = now.generator
        while restarts <= _RESTARTS and not self._ended(watch, max_passes, tol):
            number = len(now.records)
            started = time.perf_counter() - now.seconds
            now.generator = dict(rng.bit_generator.state)
            pieces = self.partitioner.draw(self.problem.encoded.offsets, rng)
            these = self.problem.visits(pieces, visits(pieces, rng, self.visit))
            total = len(these)
            for window in _windows(total, visitor.windows):
                for block in these[window].blocks(BLOCK):
                    first, last = window.start + block.start, window.start + block.stop
                    if last <= now.visited:
                        continue
                    now.met += visitor.visit(these[first:last], number, first, total)
                    if last == window.stop:
                        visitor.end_window(number, window.stop - window.start, total)
                    now.visited, now.seconds = last, time.perf_counter() - started
                    watch.moved(last / total)
                    if last < total:
                        watch.save(now)
            objective = now.met + visitor.end_pass(number)
            # Samples met for the first time may be worse than that without harm.
            limit = visitor.limit(these) * (_FIRST if number == 0 else 1.0)
            limit += _ROUNDING * float((these.ends - these.starts).sum())  # where one label is all
            diverged = limit < np.inf and not objective <= limit
            now.visited, now.met, now.seconds = 0, 0.0, 0.0
            now.generator = dict(rng.bit_generator.state)
            if diverged:
                restarts += 1
                now.records.clear()
                self.slowed_down = visitor.restart()
            else:
                seconds = time.perf_counter() - started
                watch.record(self, objective, seconds, change=watch.change(objective))
            watch.save(now)
        if restarts > _RESTARTS:
            self.stop_reason = "diverged"
        return now

    def _ended(self, watch: Watch, max_passes: int, tol: float) -> bool:
        records = watch.progress.records
        change = records[-1].change if records else None
        if watch.patience_ended:
            self.stop_reason = "patience"
        elif len(records) >= max_passes:
            self.stop_reason = "max_passes"
        elif change is not None and change < tol:
            self.stop_reason = "rising" if change < 0 else "tol"
        else:
            return False
        return True


def check_run(max_passes: int, tol: float, watch: Watch | None) -> None:
    """Refuse what a run cannot be asked for."""
    whole(0).check("max_passes", max_passes)
    number(infinite=True).check("tol", tol)
    (nothing | instance(Watch)).check("watch", watch)


def _windows(total: int, n: int) -> list[slice]:
    bounds = np.unique(np.linspace(0, total, n + 1).astype(int))
    return [slice(int(a), int(b)) for a, b in itertools.pairwise(bounds)]
