"""Training pass by pass: draw pieces, visit them, look at the objective and at held-out data.

What happens at a visit is the learner's business (SGD, ADF, perceptron); the loop here is the same
for all: fresh pieces and a fresh order each pass, one record a pass, and the rules for stopping.

Where a run is, is a :class:`Progress`. With it and the learner's state, a run that was cut off goes
on to the same bits: the pieces of a pass follow from the state of the random numbers at its start.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from trellis.decompose import Partitioner, visits
from trellis.problems import LabelProblem, Weights
from trellis.problems.visits import Visits
from trellis.solvers.convergence import convergence_value

__all__ = ["BatchLearner", "Learner", "PassRecord", "Progress", "out_of_patience", "run_passes"]

# Positions visited by one kernel call, so that Ctrl-C is noticed within a fraction of a second.
BLOCK = 1 << 17


class Learner(Protocol):
    """Something that learns from pieces, a part of a pass at a time."""

    windows: int
    """Parts of a pass after each of which ``end_window`` is called."""

    @property
    def problem(self) -> LabelProblem:
        """The samples."""
        ...

    def visit(self, these: Visits, number: int, done: int, total: int) -> float:
        """Visit pieces of pass ``number`` (from 0), ``done`` of ``total`` being visited already.

        Returns the objective met.
        """
        ...

    def end_window(self, number: int, visited: int, total: int) -> None:
        """Do what is due after a window in which so many pieces were visited."""
        ...

    def end_pass(self, number: int) -> float:
        """Do what is due after a pass; returns the penalty, to be added to the objective."""
        ...

    def weights(self) -> Weights:
        """The weights to predict with, as of now."""
        ...

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that later visits depend on."""
        ...

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take up a state."""
        ...


@runtime_checkable
class BatchLearner(Protocol):
    """Something that learns from all samples at once, in iterations of its own."""

    stop_reason: str
    """Why the run ended, as a code."""
    resumable: bool
    """Whether a run that was cut off can go on from its state."""

    @property
    def problem(self) -> LabelProblem:
        """The samples."""
        ...

    def run(
        self,
        *,
        max_iterations: int,
        tol: float,
        dev_score: Callable[[Weights], float] | None = None,
        patience: int | None = None,
        progress: Progress | None = None,
        save: Callable[[Progress], None] | None = None,
        report: Callable[[PassRecord], None] | None = None,
    ) -> Progress:
        """Iterate; the records are those of the progress returned, and ``report`` sees each."""
        ...

    def weights(self) -> Weights:
        """The weights to predict with, as of now."""
        ...

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that later iterations depend on."""
        ...

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take up a state."""
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


def run_passes(
    learner: Learner,
    partitioner: Partitioner,
    rng: np.random.Generator,
    *,
    max_passes: int,
    tol: float,
    visit: str = "pooled",
    dev_score: Callable[[Weights], float] | None = None,
    patience: int | None = None,
    progress: Progress | None = None,
    save: Callable[[Progress], None] | None = None,
) -> Iterator[PassRecord]:
    """Train, yielding a record a pass, until converged, out of patience or out of passes.

    With ``progress`` of an earlier run (and a learner in that run's state) go on from there;
    ``save`` is called with the progress after every block of pieces.
    """
    now = Progress() if progress is None else progress
    if now.generator:
        rng.bit_generator.state = now.generator
    while not _finished(now.records, max_passes, tol, patience):
        number = len(now.records)
        started = time.perf_counter() - now.seconds
        now.generator = dict(rng.bit_generator.state)
        pieces = partitioner.draw(learner.problem.encoded.offsets, rng)
        order = visits(pieces, rng, visit)
        these = learner.problem.visits(pieces, order)
        total = len(these)
        for window in _windows(total, learner.windows):
            for block in these[window].blocks(BLOCK):
                first, last = window.start + block.start, window.start + block.stop
                if last <= now.visited:
                    continue
                now.met += learner.visit(these[first:last], number, first, total)
                if last == window.stop:
                    learner.end_window(number, window.stop - window.start, total)
                now.visited, now.seconds = last, time.perf_counter() - started
                if save is not None and last < total:
                    save(now)
        objective = now.met + learner.end_pass(number)
        seconds = time.perf_counter() - started
        change = convergence_value([*(r.objective for r in now.records), objective])
        score = dev_score(learner.weights()) if dev_score is not None else None
        record = PassRecord(number + 1, objective, change, score, seconds)
        now.records.append(record)
        now.visited, now.met, now.seconds = 0, 0.0, 0.0
        now.generator = dict(rng.bit_generator.state)
        yield record
        if save is not None:
            save(now)


def out_of_patience(records: list[PassRecord], patience: int | None) -> bool:
    """Whether the last passes, as many as patience goes, brought no better score."""
    if patience is None or not records or records[-1].dev_score is None:
        return False
    scores = [-np.inf if r.dev_score is None else r.dev_score for r in records]
    return len(scores) - 1 - int(np.argmax(scores)) >= patience


def _finished(records: list[PassRecord], max_passes: int, tol: float, patience: int | None) -> bool:
    if not records:
        return max_passes < 1
    last = records[-1]
    if out_of_patience(records, patience):
        return True
    return len(records) >= max_passes or (last.change is not None and last.change < tol)


def _windows(total: int, n: int) -> list[slice]:
    bounds = np.unique(np.linspace(0, total, n + 1).astype(int))
    return [slice(int(a), int(b)) for a, b in itertools.pairwise(bounds)]
