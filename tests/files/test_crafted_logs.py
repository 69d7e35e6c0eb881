"""Logs that someone has changed: documented errors, or a log."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from crafted import STRANGE
from studies.log import Log
from trellis.errors import DataError
from trellis.files.tuning_log import TuningLog


def tuning(path: Path) -> TuningLog:
    return TuningLog(path, "data")


def filled(opened: type[Log] | object, path: Path) -> list[bytes]:
    log = opened(path)  # type: ignore[operator]
    if isinstance(log, TuningLog):
        log.add("a", {"l2": 1.0}, 0, 0.5, 0.1)
        log.add("b", {"l2": 2.0}, 1, 0.25, 0.1)
    else:
        log.add({"key": "a", "score": 0.5})
        log.add({"key": "b", "score": 0.25})
    return path.read_bytes().splitlines(keepends=True)


def changed(lines: list[bytes], rng: np.random.Generator) -> bytes:
    """The lines with one of them, an entry of it, or its bytes changed."""
    lines = list(lines)
    i = rng.integers(len(lines))
    what = rng.integers(5)
    if what == 0:
        record = json.loads(lines[i])
        key = sorted(record)[rng.integers(len(record))]
        if rng.integers(4):
            record[key] = STRANGE[rng.integers(len(STRANGE))]
        else:
            del record[key]
        lines[i] = json.dumps(record).encode() + b"\n"
    elif what == 1:
        line = bytearray(lines[i])
        line[rng.integers(len(line))] = rng.integers(256)
        lines[i] = bytes(line)
    elif what == 2:
        deep = [b"[" * 100_000, b'{"a":' * 100_000, b"9" * 5000, b"1e999", b"\xff", b"null", b""]
        lines[i] = deep[rng.integers(len(deep))] + b"\n"
    elif what == 3:
        lines.insert(i, lines[rng.integers(len(lines))])
    else:
        lines = [b"".join(lines)[: rng.integers(len(b"".join(lines)))]]
    return b"".join(lines)


@pytest.mark.parametrize("opened", [tuning, Log])
def test_no_changed_log_gives_another_error(opened, tmp_path: Path) -> None:
    path = tmp_path / "log"
    lines = filled(opened, path)
    refused = 0
    for number in range(400):
        path.write_bytes(changed(lines, np.random.default_rng(number)))
        try:
            opened(path)
        except DataError as error:
            assert str(path) in str(error)
            refused += 1
    assert 100 < refused < 390


@pytest.mark.parametrize(
    "score", ["1" + "0" * 400, "NaN", "1e999", "-1e999", "true", '"1"', "null"]
)
def test_scores_that_are_none(score: str, tmp_path: Path) -> None:
    path = tmp_path / "log"
    tuning(path)
    with path.open("a") as file:
        file.write(f'{{"key": "a", "score": {score}, "seconds": 1}}\n')
    with pytest.raises(DataError, match="line 2: not a record of this log"):
        tuning(path)
