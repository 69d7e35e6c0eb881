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
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.domains import is_number
from trellis.errors import CorruptModelError, DataError
from trellis.files import fingerprint
from trellis.files.checkpoint import CheckpointFile
from trellis.files.container import loading
from trellis.files.stored import header_value, take
from trellis.problems import LabelProblem, Weights
from trellis.solvers.passes import PassRecord, Progress, Stateful

__all__ = ["Checkpoint", "Resumed", "run_fingerprint"]


@dataclasses.dataclass
class Resumed:
    """What a checkpoint file holds."""

    path: Path
    seed: int
    run: str
    progress: Progress
    arrays: dict[str, NDArray[Any]]
    best: float | None

    def restore(self, learner: Stateful, like: Weights) -> Weights | None:
        """Put the learner into the state saved; returns the best weights, if any were kept."""
        with loading(self.path):
            best = None if self.best is None else like.copy()
            wanted = learner.state() | ({} if best is None else best.named("best_"))
            if set(wanted) != set(self.arrays):
                raise CorruptModelError("its arrays are not those of this run")
            for name, array in wanted.items():
                finite = name not in learner.unbounded
                stored = take(self.arrays, name, array.dtype, array.shape, finite=finite)
                if np.isnan(stored).any():
                    raise CorruptModelError(f"array {name!r} holds what is not a number")
            learner.restore(self.arrays)
            if best is not None:
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
            records = header_value(header, "records", list, items=dict)
            progress = Progress(
                [_record(record, number) for number, record in enumerate(records, 1)],
                header_value(header, "visited", int, low=0),
                header_value(header, "met", float),
                header_value(header, "seconds", float),
                _generator(header_value(header, "generator", dict)),
            )
            best = _number_or_none(header, "best")
            return Resumed(self.path, stored.seed, stored.run, progress, stored.arrays, best)

    def save(
        self, progress: Progress, learner: Stateful, best: tuple[float, Weights] | None
    ) -> None:
        """Write a checkpoint, if it is time."""
        passed = time.monotonic() - self._last
        due = 60 * self.minutes if progress.visited else 10 * self._cost
        if passed < due:
            return
        arrays = dict(learner.state())
        if best is not None:
            arrays |= best[1].named("best_")
        met = [progress.met, *(r.objective for r in progress.records)]
        bounded = [a for name, a in arrays.items() if name not in learner.unbounded]
        if not all(np.isfinite(a).all() for a in (np.array(met), *bounded)):
            return  # diverged: nothing to come back to
        started = time.monotonic()
        header = {
            "records": [dataclasses.asdict(r) for r in progress.records],
            "visited": progress.visited,
            "met": progress.met,
            "seconds": progress.seconds,
            "generator": _texts(progress.generator),
            "best": None if best is None else best[0],
        }
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


def _record(record: Mapping[str, Any], number: int) -> PassRecord:
    """The record of a pass, checked."""
    if set(record) != {field.name for field in dataclasses.fields(PassRecord)}:
        raise CorruptModelError("a record of a pass lacks an entry")
    return PassRecord(
        header_value(record, "number", int, choices=(number,)),
        header_value(record, "objective", float),
        _number_or_none(record, "change"),
        _number_or_none(record, "dev_score"),
        header_value(record, "seconds", float),
        _number_or_none(record, "lower_bound"),
    )


def _number_or_none(header: Mapping[str, Any], name: str) -> float | None:
    if name in header and header[name] is None:
        return None
    return header_value(header, name, float)


def _generator(stored: Mapping[str, Any]) -> dict[str, Any]:
    """The state of a generator, checked by one that takes it up; empty for a run without."""
    state = _numbers(stored)
    if state:
        np.random.PCG64(0).state = state
    return dict(state)


def _numbers(state: Any) -> Any:
    if isinstance(state, dict):
        return {key: _numbers(value) for key, value in state.items()}
    return int(state[1:]) if isinstance(state, str) and state.startswith("#") else state
