"""The attack on model files: a fixed number of cases, and that it sees what it looks for."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trellis.files.container
from fuzz import BrokenPromiseError, limits, model_files
from fuzz.every_model import EVERY
from fuzz.limits import limited_memory
from fuzz.watch import run_attack
from fuzz.worker import outcome
from trellis import CorruptModelError, load_model
from trellis.files.registry import ESTIMATORS


def test_no_mutant_does_harm() -> None:
    report = run_attack("model_files", n_cases=450)
    assert report.failures == []
    assert report.n_cases == 450
    assert report.counts["refused, damaged"] > 150
    assert report.counts["refused, sealed"] > 90
    assert report.counts["used"] > 15


def test_every_estimator_is_attacked(tmp_path: Path) -> None:
    names = model_files.targets(tmp_path / "file")
    assert set(ESTIMATORS) <= {name.partition(",")[0] for name in names}
    assert {"prepared chains", "prepared trees", "checkpoint, sgd"} <= set(names)


def test_unchanged_files_are_used(tmp_path: Path) -> None:
    file = tmp_path / "file"
    for target in model_files.targets(file).values():
        assert model_files.attacked(target, target.data, file, raw=False) == "used"


def test_a_changed_model_that_is_believed_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    case = model_files.cases()
    monkeypatch.setattr(trellis.files.container, "_check_digest", lambda *_: None)
    failures = [outcome(case, 0, number)[1] for number in range(60)]
    texts = [failure["text"] for failure in failures if failure is not None]
    assert "a damaged file was loaded" in texts


def test_a_model_that_changes_when_saved_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    count = 0

    def changing(path: Path) -> Any:
        nonlocal count
        count += 1
        model = load_model(path)
        model.weights_.node *= -count
        return model

    monkeypatch.setattr(model_files, "load_model", changing)
    target = model_files.model_target(EVERY["ChainCRF"](), file)
    with pytest.raises(BrokenPromiseError, match="answers otherwise"):
        model_files.attacked(target, target.data, file, raw=False)


def test_a_refusal_that_does_not_name_the_file_is_seen(tmp_path: Path) -> None:
    def load(_: Path) -> Any:
        raise CorruptModelError("something is wrong")

    target = model_files.Target(b"", load, lambda *_: None, CorruptModelError)
    with pytest.raises(BrokenPromiseError, match="does not name the file"):
        model_files.attacked(target, b"", tmp_path / "file", raw=False)


def test_memory_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "GROWTH", 64 << 20)
    with pytest.raises(BrokenPromiseError, match="too much memory"), limited_memory():
        np.zeros(1 << 40, np.uint8)
    # Growth counts from the most that the process has ever held.
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    with pytest.raises(BrokenPromiseError, match=r"took \d+ MiB"), limited_memory():
        np.ones(most, np.uint8)
    with limited_memory():
        np.ones(1 << 20, np.uint8)
