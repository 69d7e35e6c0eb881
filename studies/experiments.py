"""Studies made of experiments: each computes some records and makes a section of the report.

An experiment lists its computations for a protocol ("quick", "default" or "full"), turns their
records into Markdown, and may draw a figure; running, resuming and writing is the same for all.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from studies.datasets.folder import data_folder, is_there
from studies.folder import LOG, Call, Pool, finished_log, logged_run
from studies.log import Log
from trellis.errors import DataError
from trellis.files import atomic_write, display_name
from trellis.pictures import picture_style

__all__ = ["PROTOCOLS", "Computation", "Experiment", "Records", "Study", "study_of"]

PROTOCOLS = ("quick", "default", "full")

Records = Mapping[str, dict[str, Any]]
"""What was computed, by key."""


@dataclass(frozen=True)
class Computation:
    """A function, and where the log has its results: under a name, the protocol and arguments.

    Examples
    --------
    >>> squares = Computation("squares", lambda x, protocol: {"square": x * x})
    >>> call = squares.call("the square of 3", "quick", 3)
    >>> call.key, call.args
    ('squares/quick/3', (3, 'quick'))
    >>> squares.of({call.key: call.function(*call.args)}, "quick", 3)
    {'square': 9}
    """

    name: str
    function: Callable[..., dict[str, Any]]

    def call(
        self,
        title: str,
        protocol: str,
        *args: Any,
        sizes: Any = None,
        needs: Sequence[Call] = (),
    ) -> Call:
        """Call the function with the arguments, and the protocol or its sizes behind them.

        If it needs what other calls find, the list of their records comes last.
        """
        last = protocol if sizes is None else sizes
        keys = tuple(call.key for call in needs)
        return Call(self._key(protocol, args), title, self.function, (*args, last), keys)

    def of(self, records: Records, protocol: str, *args: Any) -> dict[str, Any]:
        """What was computed with these arguments."""
        return records[self._key(protocol, args)]

    def _key(self, protocol: str, args: tuple[Any, ...]) -> str:
        words = (f"{a:g}" if isinstance(a, float) else str(a) for a in args)
        return "/".join((self.name, protocol, *words))


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
        Protocol to list of :class:`~studies.folder.Call`.
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


@dataclass(frozen=True)
class Study:
    """How a study is run and its report written.

    Parameters
    ----------
    run : callable
        Takes a folder and the options of :func:`studies.reproduce`; computes what the log of the
        folder does not have yet and writes everything.
    render : callable
        Takes a folder and ``figures``; writes ``report.md``, ``results.json`` and figures from the
        log alone.
    """

    run: Callable[..., Any]
    render: Callable[..., Any]


def study_of(title: str, experiments: Sequence[Experiment]) -> Study:
    """The study that is made of these experiments, in the order of the report."""
    return Study(
        functools.partial(_run, title, experiments), functools.partial(_render, title, experiments)
    )


def _run(
    title: str,
    experiments: Sequence[Experiment],
    out: str | os.PathLike[Any],
    *,
    protocol: str = "default",
    tasks: Sequence[str] | None = None,
    figures: bool = True,
    **options: Any,
) -> Records:
    chosen = _chosen(experiments, protocol, tasks)

    def compute(pool: Pool) -> None:
        for experiment in chosen:
            pool.reporter.line(f"{experiment.name}:")
            pool.complete(experiment.calls(protocol))

    facts = {"protocol": protocol, "tasks": [e.name for e in chosen]}
    logged_run(out, facts, compute, figures=figures, **options)
    return _render(title, experiments, out, figures=figures)


def _render(
    title: str,
    experiments: Sequence[Experiment],
    out: str | os.PathLike[Any],
    *,
    figures: bool = True,
) -> Records:
    folder, log = finished_log(out)
    with log.reading():
        parts = [f"# {title}", *_sections(experiments, folder, log, figures)]
    with atomic_write(folder / "report.md", binary=False) as file:
        file.write("\n\n".join(parts) + "\n")
    with atomic_write(folder / "results.json", binary=False) as file:
        json.dump(log.records, file, indent=1)
        file.write("\n")
    return log.records


def _sections(
    experiments: Sequence[Experiment], folder: Path, log: Log, figures: bool
) -> Iterator[str]:
    """What the log says, if its last run was finished; draws the figures, too."""
    facts = log.records.get("run")
    if facts is None or "protocol" not in facts:
        raise DataError(f"{display_name(folder / LOG)} holds no run; start one")
    protocol = facts["protocol"]
    yield _facts_text(facts)
    for experiment in experiments:
        if experiment.name not in facts["tasks"]:
            continue
        if any(call.key not in log.records for call in experiment.calls(protocol)):
            raise DataError("the run was not finished; go on from it with resume (--resume)")
        yield f"## {experiment.title}"
        yield experiment.report(protocol, log.records)
        image = folder / f"{experiment.name}.png"
        if experiment.draw is not None:
            if figures:
                with picture_style():
                    experiment.draw(protocol, log.records, image)
            if image.exists():
                yield f"![{experiment.title}]({image.name})"


def _chosen(
    experiments: Sequence[Experiment], protocol: str, tasks: Sequence[str] | None
) -> list[Experiment]:
    if protocol not in PROTOCOLS:
        raise DataError(f"protocol must be one of {', '.join(PROTOCOLS)}, got {protocol!r}")
    known = {e.name: e for e in experiments}
    for name in tasks or ():
        if name not in known:
            raise DataError(f"unknown task {name!r}; known: {', '.join(known)}")
    chosen = [e for e in experiments if tasks is None or e.name in tasks]
    if not chosen:
        raise DataError(f"name at least one task; known: {', '.join(known)}")
    there = [e for e in chosen if all(is_there(d) for d in e.data)]
    if protocol == "quick" and tasks is None and there:
        return there
    for e in chosen:
        for name in e.data:
            data_folder(name)  # raises, and says where the data should be
    return chosen


def _facts_text(facts: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    seconds = facts["seconds"]
    time_text = "" if seconds is None else f"; {seconds:.0f} s on {facts['n_cores']} cores"
    return f"Protocol: {facts['protocol']}; {versions}; {facts['machine']}{time_text}."
