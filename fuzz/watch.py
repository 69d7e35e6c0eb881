"""Running an attack in processes of its own, and seeing what becomes of them.

A process that dies at case ``i`` is a crash of case ``i``, one that stays at it for more than
:data:`PATIENCE` seconds is a hang; another process goes on behind it. Workers share the numbers of
cases in blocks, so that several of them do together what one would.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["PATIENCE", "Report", "run_attack"]

PATIENCE = 60.0  # seconds; compiling what a fresh process needs is among them
_ROOT = Path(__file__).parent.parent


@dataclass
class Report:
    """What came of an attack.

    Parameters
    ----------
    attack : str
        Its name.
    seed : int
        Seed of all cases.
    counts : Counter
        How often each word was the outcome; «crashed» and «hung» among them.
    failures : list of dict
        The cases that failed, with what is known of each.
    """

    attack: str
    seed: int
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[dict[str, Any]] = field(default_factory=list)

    @property
    def n_cases(self) -> int:
        """How many cases were run."""
        return sum(self.counts.values())

    def summary(self) -> str:
        """A line with all counts and one for each kind of failure, with its first case."""
        words = ", ".join(f"{n:,} {word}" for word, n in sorted(self.counts.items()))
        lines = [f"{self.attack}: {self.n_cases:,} cases (seed {self.seed}): {words or 'none'}"]
        kinds: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for failure in self.failures:
            kinds.setdefault((failure["error"], failure["at"]), []).append(failure)
        for (error, place), alike in sorted(kinds.items(), key=lambda item: -len(item[1])):
            lines.append(
                f"  {len(alike)} × {error} at {place}, "
                f"first in case {alike[0]['case']}: {alike[0]['text']}"
            )
        return "\n".join(lines)


def run_attack(
    attack: str,
    *,
    seed: int = 0,
    first: int = 0,
    n_cases: int | None = None,
    minutes: float | None = None,
    block: int = 20_000,
) -> Report:
    """Run cases of an attack, one process after the other, and report.

    Parameters
    ----------
    attack : str
        A module of this package, or the whole name of another.
    seed, first : int
        The cases are numbers ``first``, ``first + 1``, … of ``seed``.
    n_cases : int, optional
        How many; None: as many as fit.
    minutes : float, optional
        The time; None: as long as it takes.
    block : int
        Cases that one process runs at most, so that no leak goes unseen for long and none piles up.
    """
    report = Report(attack, seed)
    end = time.monotonic() + (float("inf") if minutes is None else 60 * minutes)
    last = 2**62 if n_cases is None else first + n_cases
    while first < last and time.monotonic() < end:
        first = _run_block(report, first, min(first + block, last), end - time.monotonic())
    return report


def _run_block(report: Report, first: int, last: int, seconds: float) -> int:
    """Run one process; return the number of the next case."""
    inside = (Path(__file__).parent / f"{report.attack}.py").exists()
    module = f"fuzz.{report.attack}" if inside else report.attack
    seconds = min(seconds, 10.0**6)
    with tempfile.NamedTemporaryFile() as mark, tempfile.TemporaryFile("w+b") as output:
        mark.write(first.to_bytes(8, "little"))
        mark.flush()
        words = [module, report.seed, first, last, seconds, mark.name]
        process = subprocess.Popen(
            [sys.executable, "-m", "fuzz.worker", *map(str, words)],
            stdout=output,
            cwd=_ROOT,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # on small matrices, threads only wait
        )
        place, since, hung = first, time.monotonic(), False
        try:
            while True:
                try:
                    process.wait(timeout=1.0)
                    break
                except subprocess.TimeoutExpired:
                    here = int.from_bytes(Path(mark.name).read_bytes(), "little")
                    if here != place:
                        place, since = here, time.monotonic()
                    elif time.monotonic() - since > PATIENCE:
                        hung = True
                        process.kill()
        finally:
            process.kill()
        here = int.from_bytes(Path(mark.name).read_bytes(), "little")
        output.seek(0)
        counted = first
        for line in output.read().decode().splitlines():
            message = json.loads(line)
            if "failure" in message:
                report.failures.append(message["failure"])
            else:
                report.counts.update(message["counts"])
                counted = message["next"]
    if process.returncode == 0:
        return counted
    if process.returncode == 1 and not hung:  # an error outside of all cases: of the attack itself
        raise RuntimeError(f"the attack {report.attack} does not run; see above")
    # What was done since the last counts is not known word by word.
    report.counts["not told apart"] += here - counted
    code = -process.returncode
    what = "hung" if hung else "crashed"
    text = f"more than {PATIENCE:.0f} s" if hung else signal.Signals(code).name
    report.counts[what] += 1
    report.failures.append({"case": here, "error": what, "at": "the process", "text": text})
    return here + 1
