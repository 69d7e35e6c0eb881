"""Studies made of experiments: each computes some records and makes a section of the report.

An experiment lists its computations for a protocol ("quick", "default" or "full"), turns their
records into Markdown, and may draw a figure; running, resuming and writing is the same for all.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trellis.errors import DataError
from trellis.files import atomic_write, display_name
from trellis.progress import Reporter
from trellis.reproduce.folder import (
    LOG,
    Call,
    Pool,
    checked_jobs,
    finished_log,
    new_folder,
    run_facts,
)
from trellis.reproduce.log import Log

__all__ = ["PROTOCOLS", "Experiment", "Records", "render_study", "run_study"]

PROTOCOLS = ("quick", "default", "full")

Records = Mapping[str, dict[str, Any]]
"""What was computed, by key."""


@dataclass(frozen=True)
class Experiment:
    """One table or figure of a study.

    Parameters
    ----------
    name : str
        What ``tasks`` calls it.
    title : str
        Heading of its section.
    calls : callable
        Protocol to list of :class:`~trellis.reproduce.folder.Call`.
    report : callable
        Protocol and records to Markdown.
    data : tuple of str
        Data sets it reads.
    draw : callable, optional
        Protocol, records and path: writes a figure, which the report shows.
    """

    name: str
    title: str
    calls: Callable[[str], list[Call]]
    report: Callable[[str, Records], str]
    data: tuple[str, ...] = ()
    draw: Callable[[str, Records, Path], None] | None = None


def run_study(
    title: str,
    experiments: Sequence[Experiment],
    out: str | os.PathLike[Any],
    *,
    protocol: str = "default",
    tasks: Sequence[str] | None = None,
    n_jobs: int | None = None,
    resume: bool = False,
    figures: bool = True,
    verbose: bool = False,
) -> Records:
    """Compute what the log does not have yet, write everything; returns the records."""
    chosen = _chosen(experiments, protocol, tasks)
    checked_jobs(n_jobs)
    if figures:
        from trellis.reproduce.drawing import check_matplotlib

        check_matplotlib()
    folder = new_folder(out, resume)
    reporter = Reporter(verbose, always=True)
    log = Log(folder / LOG)
    started = time.perf_counter()
    facts = run_facts(n_jobs) | {"protocol": protocol, "tasks": [e.name for e in chosen]}
    log.add(facts)
    pool = Pool(log, n_jobs, reporter)
    try:
        for experiment in chosen:
            reporter.line(f"{experiment.name}:")
            pool.complete(experiment.calls(protocol))
    except KeyboardInterrupt as stop:
        advice = f"what was finished is in {display_name(folder / LOG)}; resume goes on from there"
        raise KeyboardInterrupt(advice) from stop
    log.add(facts | {"seconds": time.perf_counter() - started})
    return render_study(title, experiments, out, figures=figures)


def render_study(
    title: str,
    experiments: Sequence[Experiment],
    out: str | os.PathLike[Any],
    *,
    figures: bool = True,
) -> Records:
    """Write ``report.md``, ``results.json`` and figures from the log alone."""
    folder, log = finished_log(out)
    facts = log.records.get("run")
    if facts is None or "protocol" not in facts:
        raise DataError(f"{display_name(folder / LOG)} holds no run; start one")
    protocol = facts["protocol"]
    parts = [f"# {title}", _facts_text(facts)]
    for experiment in experiments:
        if experiment.name not in facts["tasks"]:
            continue
        if any(call.key not in log.records for call in experiment.calls(protocol)):
            raise DataError("the run was not finished; go on from it with resume (--resume)")
        section = [f"## {experiment.title}", experiment.report(protocol, log.records)]
        image = folder / f"{experiment.name}.png"
        if experiment.draw is not None:
            if figures:
                experiment.draw(protocol, log.records, image)
            if image.exists():
                section.append(f"![{experiment.title}]({image.name})")
        parts += section
    with atomic_write(folder / "report.md", binary=False) as file:
        file.write("\n\n".join(parts) + "\n")
    with atomic_write(folder / "results.json", binary=False) as file:
        json.dump(log.records, file, indent=1)
        file.write("\n")
    return log.records


def _chosen(
    experiments: Sequence[Experiment], protocol: str, tasks: Sequence[str] | None
) -> list[Experiment]:
    from trellis.datasets.real import data_folder

    if protocol not in PROTOCOLS:
        raise DataError(f"protocol must be one of {', '.join(PROTOCOLS)}, got {protocol!r}")
    known = {e.name: e for e in experiments}
    for name in tasks or ():
        if name not in known:
            raise DataError(f"unknown task {name!r}; known: {', '.join(known)}")
    chosen = [e for e in experiments if tasks is None or e.name in tasks]
    if not chosen:
        raise DataError(f"name at least one task; known: {', '.join(known)}")
    there = [e for e in chosen if all(_is_there(d) for d in e.data)]
    if protocol == "quick" and tasks is None and there:
        return there
    for e in chosen:
        for name in e.data:
            data_folder(name)  # raises, and says where the data should be
    return chosen


def _is_there(name: str) -> bool:
    from trellis.datasets.real import data_folder

    try:
        data_folder(name)
    except DataError:
        return False
    return True


def _facts_text(facts: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    seconds = facts["seconds"]
    time_text = "" if seconds is None else f"; {seconds:.0f} s on {facts['n_cores']} cores"
    return f"Protocol: {facts['protocol']}; {versions}; {facts['machine']}{time_text}."
