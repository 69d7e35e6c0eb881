"""Kills at fixed moments of small jobs, some real ones, and that what goes wrong is seen."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from fuzz import BrokenPromiseError, kills
from fuzz.kills import Acknowledge, Job, killed, struck
from fuzz.watch import run_attack
from trellis.files import atomic_write
from trellis.files.registry import ESTIMATORS


def counting(folder: Path, acknowledge: Acknowledge) -> None:
    """Append ten lines, a hundredth of a second each, from wherever the file is."""
    file = folder / "f"
    for i in range(len(file.read_text().split()) if file.exists() else 0, 10):
        time.sleep(0.01)
        with file.open("a") as f:
            f.write(f"{i}\n")
        acknowledge(i)


def all_there(folder: Path, acknowledged: list[int]) -> bool:
    lines = (folder / "f").read_text().split() if (folder / "f").exists() else []
    if len(lines) <= max(acknowledged, default=-1):
        raise BrokenPromiseError("lost")
    return bool(lines)


def text(folder: Path) -> str:
    return (folder / "f").read_text()


COUNTING = Job(counting, text, all_there, ("f",))
WHOLE = "".join(f"{i}\n" for i in range(10))


def test_a_job_that_keeps_its_promises(tmp_path: Path) -> None:
    assert struck(COUNTING, tmp_path, [0.035, 0.03], WHOLE) == "2 killed midway, on the way"


def test_kills_that_come_too_late_count_apart(tmp_path: Path) -> None:
    assert struck(COUNTING, tmp_path, [30.0], WHOLE) == "finished before"


def test_what_is_acknowledged_is_told(tmp_path: Path) -> None:
    end, acknowledged = killed(COUNTING, tmp_path, 30.0)
    assert (end, acknowledged) == ("done", list(range(10)))
    end, acknowledged = killed(COUNTING, tmp_path, 0.0)
    assert end in ("midway", "done")


def test_lost_items_are_seen(tmp_path: Path) -> None:
    def late(folder: Path, acknowledge: Acknowledge) -> None:
        acknowledge(0)
        time.sleep(30)

    with pytest.raises(BrokenPromiseError, match="lost"):
        struck(Job(late, text, all_there, ("f",)), tmp_path, [0.1], "")


def test_another_result_is_seen(tmp_path: Path) -> None:
    def forgetful(folder: Path, _: Acknowledge) -> None:
        again = (folder / "f").exists()
        (folder / "f").write_text("twice" if again else "once")
        time.sleep(0.0 if again else 30.0)

    with pytest.raises(BrokenPromiseError, match="another result"):
        struck(Job(forgetful, text, all_there, ("f",)), tmp_path, [0.2], "once")


def test_leftovers_are_seen(tmp_path: Path) -> None:
    def untidy(folder: Path, _: Acknowledge) -> None:
        (folder / "f").write_text("x")
        (folder / ".f.tmp").write_text("x")

    with pytest.raises(BrokenPromiseError, match=r"left behind: \.f\.tmp"):
        struck(Job(untidy, text, all_there, ("f",)), tmp_path, [], "x")


def test_leftovers_of_a_killed_writer_are_swept_by_the_next(tmp_path: Path) -> None:
    def write(folder: Path, _: Acknowledge) -> None:
        again = any(folder.iterdir())
        with atomic_write(folder / "f", binary=False) as file:
            file.write("x")
            file.flush()
            time.sleep(0.0 if again else 30.0)

    job = Job(write, text, lambda folder, _: any(folder.iterdir()), ("f",))
    assert struck(job, tmp_path, [0.2], "x") == "1 killed midway, on the way"


def test_errors_of_a_job_are_seen(tmp_path: Path) -> None:
    def fail(folder: Path, _: Acknowledge) -> None:
        raise ValueError("no good")

    with pytest.raises(BrokenPromiseError, match=r"ValueError at test_kills\.py:\d+: no good"):
        killed(Job(fail, text, all_there, ()), tmp_path, 1.0)


def test_every_family_of_models_is_killed() -> None:
    families = {name.partition(",")[0] for name in kills.jobs()}
    learners = {n for n, home in ESTIMATORS.items() if home == "trellis.models"}
    assert learners | {"GLACER", "TrackingModel"} <= families


def test_nothing_is_lost() -> None:
    report = run_attack("kills", n_cases=3)
    assert report.failures == []
    assert sum(n for word, n in report.counts.items() if "midway" in word) >= 1
