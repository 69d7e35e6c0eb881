"""Training pass by pass: draw pieces, visit them, look at the objective and at held-out data.

What happens at a visit is the learner's business (SGD, perceptron); the loop here is the same for
all: fresh pieces and a fresh order each pass, one record a pass, and the rules for stopping.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from trellis.decompose import Partitioner, visits
from trellis.objectives import ChainData, ChainWeights
from trellis.objectives.chain import Visits
from trellis.solvers.convergence import convergence_value

__all__ = ["Learner", "PassRecord", "run_passes"]

# Positions visited by one kernel call, so that Ctrl-C is noticed within a fraction of a second.
BLOCK = 1 << 17


class Learner(Protocol):
    """Something that learns from pieces, a pass at a time."""

    @property
    def data(self) -> ChainData:
        """The training data."""
        ...

    def one_pass(self, these: Visits, number: int) -> float:
        """Visit the pieces of pass ``number`` (from 0); returns the objective met."""
        ...

    def weights(self) -> ChainWeights:
        """The weights to predict with, as of now."""
        ...


@dataclass(frozen=True)
class PassRecord:
    """What one pass brought.

    Parameters
    ----------
    number : int
        1 for the first pass.
    objective : float
        CRF: summed loss met during the pass plus the penalty; perceptron: positions labelled wrong.
    change : float or None
        The convergence value (see :mod:`trellis.solvers.convergence`), from the third pass on.
    dev_score : float or None
        Score on held-out data after the pass, if there are any.
    seconds : float
        Seconds this pass took, scoring not counted.
    """

    number: int
    objective: float
    change: float | None
    dev_score: float | None
    seconds: float


def run_passes(
    learner: Learner,
    partitioner: Partitioner,
    rng: np.random.Generator,
    *,
    max_passes: int,
    tol: float,
    visit: str = "pooled",
    dev_score: Callable[[ChainWeights], float] | None = None,
    patience: int | None = None,
) -> Iterator[PassRecord]:
    """Train, yielding a record a pass, until converged, out of patience or out of passes."""
    objectives: list[float] = []
    best, best_pass = -np.inf, 0
    for number in range(max_passes):
        started = time.perf_counter()
        pieces = partitioner.draw(learner.data.encoded.offsets, rng)
        order = visits(pieces, rng, visit)
        objectives.append(learner.one_pass(learner.data.visits(pieces, order), number))
        seconds = time.perf_counter() - started
        change = convergence_value(objectives)
        score = dev_score(learner.weights()) if dev_score is not None else None
        yield PassRecord(number + 1, objectives[-1], change, score, seconds)
        if score is not None and score > best:
            best, best_pass = score, number
        if patience is not None and score is not None and number - best_pass >= patience:
            return
        if change is not None and change < tol:
            return
