"""Checkpoints: where a training run is, in a file, so that it can be taken up after any end.

A checkpoint holds the learner's state, the progress (records of passes, how far the pass under way
has come, the state of the random numbers at its start) and the best weights so far. It belongs to
one run: a fingerprint of parameters and data says which. Taken up, a run ends with the same bits as
one that was never interrupted.

Written after a pass, and within a pass every so many minutes, as long as writing stays below a
tenth of the time; whole or not at all.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from trellis.domains import is_number
from trellis.errors import DataError
from trellis.persistence import loading, read_container, write_container
from trellis.problems import ChainData, Weights
from trellis.solvers.passes import PassRecord, Progress
from trellis.solvers.sgd import restore_weights, weight_state
from trellis.stored import header_value

__all__ = ["Checkpoint", "Resumed", "fingerprint"]


class _Learner(Protocol):
    def state(self) -> dict[str, NDArray[Any]]: ...

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None: ...


@dataclasses.dataclass
class Resumed:
    """What a checkpoint file holds."""

    seed: int
    run: str
    progress: Progress
    arrays: dict[str, NDArray[Any]]
    best: float | None

    def restore(self, learner: _Learner, like: Weights) -> Weights | None:
        """Put the learner into the state saved; returns the best weights, if any were kept."""
        shapes = {name: (a.shape, a.dtype) for name, a in learner.state().items()}
        found = {
            name: (a.shape, a.dtype)
            for name, a in self.arrays.items()
            if not name.startswith("best_")
        }
        if shapes != found:
            raise DataError("the checkpoint's arrays are not those of this run")
        learner.restore(self.arrays)
        if self.best is None:
            return None
        best = like.copy()
        restore_weights(best, self.arrays, "best_")
        return best


class Checkpoint:
    """A checkpoint file of one run.

    Parameters
    ----------
    path
        The file.
    minutes : float
        Time between checkpoints within a pass.
    """

    def __init__(self, path: str | os.PathLike[Any], minutes: float = 5.0) -> None:
        if not (is_number(minutes) and minutes >= 0):
            raise DataError(f"checkpoint_minutes must be a number of at least 0, got {minutes!r}")
        self.path = Path(path)
        self.minutes = minutes
        self.run = ""
        self.seed = 0
        self._last = time.monotonic()
        self._cost = 0.0

    def load(self) -> Resumed | None:
        """What the file holds; None if there is none."""
        if not self.path.exists():
            return None
        header, arrays = read_container(self.path)
        with loading(self.path):
            if header_value(header, "estimator", str) != "checkpoint":
                raise DataError("this is a model, not a checkpoint")
            records = [PassRecord(**r) for r in header_value(header, "records", list)]
            progress = Progress(
                records,
                header_value(header, "visited", int),
                float(header_value(header, "met", float)),
                float(header_value(header, "seconds", float)),
                _numbers(header_value(header, "generator", dict)),
            )
            best = header["best"]
            return Resumed(
                int(header_value(header, "seed", str)),
                header_value(header, "run", str),
                progress,
                arrays,
                None if best is None else float(best),
            )

    def save(
        self, progress: Progress, learner: _Learner, best: tuple[float, Weights] | None
    ) -> None:
        """Write a checkpoint, if it is time."""
        passed = time.monotonic() - self._last
        due = 60 * self.minutes if progress.visited else 10 * self._cost
        met = [progress.met, *(r.objective for r in progress.records)]
        if passed < due or not np.isfinite(met).all():  # diverged: nothing to come back to
            return
        started = time.monotonic()
        header = {
            "estimator": "checkpoint",
            "seed": str(self.seed),
            "run": self.run,
            "records": [dataclasses.asdict(r) for r in progress.records],
            "visited": progress.visited,
            "met": progress.met,
            "seconds": progress.seconds,
            "generator": _texts(progress.generator),
            "best": None if best is None else best[0],
        }
        arrays = dict(learner.state())
        if best is not None:
            arrays |= weight_state(best[1], "best_")
        write_container(self.path, header, arrays)
        self._last = time.monotonic()
        self._cost = self._last - started

    def remove(self) -> None:
        """Remove the file: the run is over."""
        self.path.unlink(missing_ok=True)


def fingerprint(parameters: Mapping[str, Any], data: ChainData, dev: ChainData | None) -> str:
    """Digest of everything that the result of a run depends on."""
    digest = hashlib.sha256(repr(sorted((k, repr(v)) for k, v in parameters.items())).encode())
    for part in (data, dev):
        if part is None:
            continue
        digest.update(repr(part.labels.classes).encode())
        for array in part.identity():
            digest.update(repr((array.shape, array.dtype.str)).encode())
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _texts(state: Any) -> Any:
    """A generator's state as JSON can hold it: its integers have up to 128 bits."""
    if isinstance(state, dict):
        return {key: _texts(value) for key, value in state.items()}
    return f"#{state}" if isinstance(state, int | np.integer) else state


def _numbers(state: Any) -> Any:
    if isinstance(state, dict):
        return {key: _numbers(value) for key, value in state.items()}
    return int(state[1:]) if isinstance(state, str) and state.startswith("#") else state
