"""Shared by all benchmarks: contestants by turns, ratios with their spread, tables.

Timings on a shared machine are noisy, so two things are compared in one process by turns; the
ratio of each round is formed first, and its median, minimum and maximum are reported.
"""

from __future__ import annotations

import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from benchmarks import records


class Seconds(list[float]):
    """Seconds of one contestant, round by round; as text the median and the range."""

    @property
    def median(self) -> float:
        """Median of the rounds."""
        return statistics.median(self)

    def __str__(self) -> str:
        return f"{short(self.median)} ({short(min(self))}–{short(max(self))})"


class Run(NamedTuple):
    """What was measured of one contestant."""

    name: str
    wall: Seconds
    cpu: Seconds
    kept: list[Any]
    """What was to be kept of the results, round by round."""


def alternate(
    runs: Mapping[str, Callable[[], Any]],
    rounds: int,
    keep: Callable[[Any], Any] = lambda result: None,
) -> list[Run]:
    """Run all contestants by turns, ``rounds`` times."""
    measured = [Run(name, Seconds(), Seconds(), []) for name in runs]
    for _ in range(rounds):
        for run in measured:
            cpu, wall = time.process_time(), time.perf_counter()
            result = runs[run.name]()
            run.wall.append(time.perf_counter() - wall)
            run.cpu.append(time.process_time() - cpu)
            run.kept.append(keep(result))
            del result  # some are large
    return measured


def once(run: Callable[[], Any]) -> tuple[Any, float]:
    """Result and wall seconds of a single run."""
    (measured,) = alternate({"": run}, 1, keep=lambda result: result)
    return measured.kept[0], measured.wall[0]


def ratio(slow: Seconds, fast: Seconds) -> str:
    """How many times longer ``slow`` takes: median over rounds, and the range."""
    ratios = [a / b for a, b in zip(slow, fast, strict=True)]
    return f"{statistics.median(ratios):.2f}× ({min(ratios):.2f}–{max(ratios):.2f})"


def short(number: float) -> str:
    """Three digits, or all those before the point."""
    is_whole = isinstance(number, int) or abs(number) >= 100
    return f"{number:,.0f}" if is_whole else f"{number:#.3g}"


def peak() -> float:
    """Peak resident memory of this process in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


class Table:
    """Rows that are told at once (on the standard error) and shown in Markdown at the end."""

    def __init__(self, title: str, *header: str) -> None:
        self.title, self.header = title, header
        self.rows: list[list[str]] = []
        self.numbers: list[list[Any]] = []

    def add(self, *cells: object) -> None:
        """Add a row; numbers are shortened."""
        row = [short(cell) if isinstance(cell, int | float) else str(cell) for cell in cells]
        if len(row) != len(self.header):
            raise ValueError(f"{len(row)} cells under {len(self.header)} headings: {row}")
        self.rows.append(row)
        self.numbers.append([records.raw(cell) for cell in cells])
        print(*row, sep="  ", file=sys.stderr, flush=True)

    def show(self, measured: bool = True) -> None:
        """Print title and rows, which go on record if they were ``measured`` by this run."""
        if measured:
            records.take(records.Shown(self.title, [*self.header], self.rows, self.numbers))
        rule = "|" + "---|" * len(self.header)
        rows = ["| " + " | ".join(row) + " |" for row in (self.header, *self.rows)]
        print(f"\n{self.title}\n", rows[0], rule, *rows[1:], sep="\n", flush=True)
