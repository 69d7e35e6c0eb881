"""Damaged and hostile files of every kind of model: refused, or a model that still predicts."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from fuzz.damage import Contents, damaged, sealed
from fuzz.every_model import EVERY
from fuzz.model_files import attacked, model_target

# Weights of 1e30 overflow, here and there.
pytestmark = pytest.mark.filterwarnings("ignore")
NAMES = pytest.mark.parametrize("name", EVERY)


@NAMES
def test_changed_contents_under_a_right_checksum(name: str, tmp_path: Path) -> None:
    file = tmp_path / "m"
    target = model_target(EVERY[name](), file)
    contents = Contents(target.data)
    rng = random.Random(name)
    outcomes = Counter(
        attacked(target, contents.changed([target.data], rng), file, raw=False) for _ in range(30)
    )
    assert outcomes["refused, sealed"] > 5


@NAMES
def test_changed_bytes_are_refused(name: str, tmp_path: Path) -> None:
    file = tmp_path / "m"
    target = model_target(EVERY[name](), file)
    rng = random.Random(name)
    for _ in range(10):
        mutant = damaged(target.data, [target.data], rng)
        assert attacked(target, mutant, file, raw=True) == "refused, damaged"
        # And with a checksum that is right, nothing worse happens.
        number = int.from_bytes(target.data[8:12], "little")
        attacked(target, sealed(target.data[:8], number, mutant[44:]), file, raw=False)
