"""Checkpoints that someone has made by hand: documented errors, or a run, but nothing else."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from rich_models import switches

import trellis.files.checkpoint as checkpoint_module
import trellis.solvers.completion as completion_module
import trellis.solvers.lbfgs as lbfgs_module
import trellis.solvers.passes as passes_module
from crafted import mutants
from trellis import ChainCRF, ChainPerceptron, CorruptModelError, DataError, MaxMargin
from trellis.models import Checkpoint

X, Y = switches(12)
DEV = switches(4, seed=1)
SOME = [[y if i % 3 else None for i, y in enumerate(labels)] for labels in Y]

RUNS: dict[str, tuple[Any, dict[str, Any], Any, Any]] = {
    "sgd": (ChainCRF, {"learning_rate": 0.2}, Y, None),
    "sgd, dev": (ChainCRF, {"rich_edges": "both", "patience": 2}, Y, DEV),
    "adf": (ChainCRF, {"solver": "adf", "piece_size": 2.5}, Y, DEV),
    "lbfgs": (ChainCRF, {"solver": "lbfgs", "l1": 0.1}, Y, None),
    "perceptron": (ChainPerceptron, {"piece_size": 2.5}, Y, DEV),
    "frank-wolfe": (MaxMargin, {"solver": "frank-wolfe", "l2": 0.5}, Y, DEV),
    "frank-wolfe, partial": (MaxMargin, {"solver": "frank-wolfe", "l2": 0.5}, SOME, None),
    "max-margin sgd": (MaxMargin, {"solver": "sgd", "learning_rate": 0.1}, Y, None),
}


class Killed(BaseException):
    """As if the process ended here."""


class Free(Checkpoint):
    """Written however long that takes."""

    def save(self, *arguments: Any) -> None:
        self._cost = 0.0
        super().save(*arguments)


def model_of(name: str) -> tuple[Any, Any, Any]:
    kind, options, y, dev = RUNS[name]
    return kind("word", max_passes=5, tol=1e-9, random_state=0, **options), y, dev


@pytest.fixture(params=RUNS)
def begun(request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Path]:
    """A run that was cut off after its second checkpoint, or its first."""
    monkeypatch.setattr(passes_module, "BLOCK", 30)
    monkeypatch.setattr(lbfgs_module, "LEG", 2)
    monkeypatch.setattr(completion_module, "_LOOK", 2)
    real, written = checkpoint_module.write_container, []

    def write(*arguments: Any) -> None:
        real(*arguments)
        written.append(arguments)
        if len(written) == 2:
            raise Killed

    file = tmp_path / "c"
    model, y, dev = model_of(request.param)
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint_module, "write_container", write)
        with pytest.raises(Killed):
            model.fit(X, y, dev=dev, checkpoint=Free(file, 0))
    return request.param, file


def test_no_crafted_checkpoint_gives_another_error(begun: tuple[str, Path]) -> None:
    name, file = begun
    refused = {"it": 0, "its content": 0}
    for number in mutants(file, 150, seed=len(name)):
        model, y, dev = model_of(name)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # numbers that overflow
                model.fit(X, y, dev=dev, checkpoint=file, resume=True)
        except CorruptModelError as error:
            assert str(error).startswith(f"{file}: "), number
            refused["it"] += 1
        except DataError:
            refused["its content"] += 1
    assert 70 < refused["it"] < 150
    assert refused["its content"] < 30  # what diverges
