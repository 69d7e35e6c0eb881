"""Checkpoints of training: where a run is, so that it can be taken up after any end.

A checkpoint holds the learner's state, the progress (records of passes, how far the pass under way
has come, the state of the random numbers at its start) and the best weights so far. It belongs to
one run: a fingerprint of parameters and data says which. Taken up, a run ends with the same bits as
one that was never interrupted.

Written after a pass, and within a pass every so many minutes, as long as writing stays below a
tenth of the time; whole or not at all.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.domains import is_number
from trellis.errors import DataError
from trellis.files import fingerprint
from trellis.files.checkpoint import CheckpointFile
from trellis.files.container import loading
from trellis.files.stored import header_value
from trellis.problems import LabelProblem, Weights
from trellis.solvers.passes import PassRecord, Progress, Stateful

__all__ = ["Checkpoint", "Resumed", "run_fingerprint"]


@dataclasses.dataclass
class Resumed:
    """What a checkpoint file holds."""

    seed: int
    run: str
    progress: Progress
    arrays: dict[str, NDArray[Any]]
    best: float | None

    def restore(self, learner: Stateful, like: Weights) -> Weights | None:
        """Put the learner into the state saved; returns the best weights, if any were kept."""
        shapes = {name: (a.shape, a.dtype) for name, a in learner.state().items()}
        stored = {
            name: (a.shape, a.dtype)
            for name, a in self.arrays.items()
            if not name.startswith("best_")
        }
        if shapes != stored:
            raise DataError("the checkpoint's arrays are not those of this run")
        learner.restore(self.arrays)
        if self.best is None:
            return None
        best = like.copy()
        for name, array in best.named("best_").items():
            array[...] = self.arrays[name]
        return best


class Checkpoint(CheckpointFile):
    """A checkpoint file of one run.

    Parameters
    ----------
    path
        The file.
    minutes : float
        Time between checkpoints within a pass.
    required : bool
        Whether to refuse solvers whose runs cannot be taken up; else they go without.
    """

    def __init__(
        self, path: str | os.PathLike[Any], minutes: float = 5.0, *, required: bool = True
    ) -> None:
        if not (is_number(minutes) and minutes >= 0):
            raise DataError(f"checkpoint_minutes must be a number of at least 0, got {minutes!r}")
        super().__init__(path)
        self.minutes, self.required = minutes, required
        self._last = time.monotonic()
        self._cost = 0.0

    def load(self) -> Resumed | None:
        """What the file holds; None if there is none."""
        stored = self.read()
        if stored is None:
            return None
        header = stored.header
        with loading(self.path):
            records = [PassRecord(**r) for r in header_value(header, "records", list)]
            progress = Progress(
                records,
                header_value(header, "visited", int),
                float(header_value(header, "met", float)),
                float(header_value(header, "seconds", float)),
                _numbers(header_value(header, "generator", dict)),
            )
            best = header["best"]
            best = None if best is None else float(best)
            return Resumed(stored.seed, stored.run, progress, stored.arrays, best)

    def save(
        self, progress: Progress, learner: Stateful, best: tuple[float, Weights] | None
    ) -> None:
        """Write a checkpoint, if it is time."""
        passed = time.monotonic() - self._last
        due = 60 * self.minutes if progress.visited else 10 * self._cost
        met = [progress.met, *(r.objective for r in progress.records)]
        if passed < due or not np.isfinite(met).all():  # diverged: nothing to come back to
            return
        started = time.monotonic()
        header = {
            "records": [dataclasses.asdict(r) for r in progress.records],
            "visited": progress.visited,
            "met": progress.met,
            "seconds": progress.seconds,
            "generator": _texts(progress.generator),
            "best": None if best is None else best[0],
        }
        arrays = dict(learner.state())
        if best is not None:
            arrays |= best[1].named("best_")
        self.write(header, arrays)
        self._last = time.monotonic()
        self._cost = self._last - started


def run_fingerprint(
    parameters: Mapping[str, Any], problem: LabelProblem, dev: LabelProblem | None
) -> str:
    """Fingerprint of everything that the result of a run depends on."""
    parts = [(part.labels.classes, part.identity()) for part in (problem, dev) if part is not None]
    return fingerprint(parameters, parts)


def _texts(state: Any) -> Any:
    """A generator's state as JSON can hold it: its integers have up to 128 bits."""
    if isinstance(state, dict):
        return {key: _texts(value) for key, value in state.items()}
    return f"#{state}" if isinstance(state, int | np.integer) else state


def _numbers(state: Any) -> Any:
    if isinstance(state, dict):
        return {key: _numbers(value) for key, value in state.items()}
    return int(state[1:]) if isinstance(state, str) and state.startswith("#") else state
