"""Shared by all benchmarks: one core, alternating runs, ratios with their spread.

Timings on a shared machine are noisy, so two things are compared in one process by turns; the
ratio of each round is formed first, and its median, minimum and maximum are reported.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


def one_core() -> None:
    """Pin this process to a single core."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


@dataclass(frozen=True)
class Times:
    """Seconds of one contestant, round by round."""

    name: str
    seconds: list[float]

    @property
    def median(self) -> float:
        """Median of the rounds."""
        return statistics.median(self.seconds)


def alternate(runs: dict[str, Callable[[], object]], rounds: int) -> list[Times]:
    """Run all contestants by turns, ``rounds`` times."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            started = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - started)
    return [Times(name, found) for name, found in seconds.items()]


def ratio(slow: Times, fast: Times) -> str:
    """How many times longer ``slow`` takes: median over rounds, and the range."""
    ratios = [a / b for a, b in zip(slow.seconds, fast.seconds, strict=True)]
    return f"{statistics.median(ratios):.2f}× ({min(ratios):.2f}–{max(ratios):.2f})"


def table(header: list[str], rows: list[list[str]]) -> str:
    """Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])
