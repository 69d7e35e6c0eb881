"""Run a reproduction: everything that the log does not have yet, then tables, figures, report.

A fit is independent of all others, so that they are made in worker processes; its seed is the
number of its run, so that results (but for times) do not depend on how many work at once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from trellis.errors import DataError
from trellis.files import display_name
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
from trellis.reproduce.structure_regularisation.companions import (
    COMPANIONS,
    companion_key,
    companion_task,
    measure,
)
from trellis.reproduce.structure_regularisation.fits import perform
from trellis.reproduce.structure_regularisation.protocol import PROTOCOLS, Protocol
from trellis.reproduce.structure_regularisation.study import Study
from trellis.reproduce.structure_regularisation.tasks import (
    TaskData,
    available_tasks,
    checked_tasks,
    task_data,
)

__all__ = ["Outcome", "render", "reproduce"]


@dataclass(frozen=True)
class Outcome:
    """What a reproduction found: the studies of the tasks and the companions.

    Attributes
    ----------
    run : dict
        Of the last run: protocol, tasks, versions, seconds.
    studies : list of Study
        One for each task.
    companions : dict of str to dict
        Records of stability and rate, with the ``task`` they were measured on.
    """

    run: dict[str, Any]
    studies: list[Study]
    companions: dict[str, dict[str, Any]]


def reproduce(
    out: str | os.PathLike[Any],
    *,
    protocol: str | Protocol = "default",
    tasks: Sequence[str] | None = None,
    n_jobs: int | None = None,
    resume: bool = False,
    figures: bool = True,
    verbose: bool = False,
) -> Outcome:
    """Repeat the experiments of Sun (2014) on structure regularisation.

    Writes ``log.jsonl``, ``report.md``, ``results.json`` and figures to a folder.

    Parameters
    ----------
    out : path
        Folder; made if it does not exist.
    protocol : "quick", "default", "full" or Protocol
        How much to compute.
    tasks : list of str, optional
        Names of :data:`TASKS`. By default all of the paper and chunking; with "quick", those whose
        data are there.
    n_jobs : int or None
        Fits made at once; None for one on each processor.
    resume : bool
        Go on from the log in the folder; else a folder with a log is refused.
    figures : bool
        Draw figures, which needs matplotlib.
    verbose : bool
        One line for each fit on standard error.

    Returns
    -------
    Outcome

    Raises
    ------
    DataError
        If a task is unknown, its data are missing, the folder cannot be written or holds another
        run, or matplotlib is missing.

    Examples
    --------
    >>> import tempfile
    >>> from trellis.reproduce.structure_regularisation import reproduce
    >>> reproduce(tempfile.mkdtemp(), tasks=["parsing"])
    Traceback (most recent call last):
    trellis.errors.DataError: unknown task 'parsing'; known: pos, bio-ner, word-seg, ...
    """
    setting = _protocol(protocol)
    names = checked_tasks(list(tasks)) if tasks is not None else available_tasks(setting)
    checked_jobs(n_jobs)
    if figures:
        from trellis.reproduce.drawing import check_matplotlib

        check_matplotlib()
    folder = new_folder(out, resume)
    reporter = Reporter(verbose, always=True)
    log = Log(folder / LOG)
    started = time.perf_counter()
    run = run_facts(n_jobs) | {"protocol": asdict(setting), "tasks": names}
    log.add(run)
    pool = Pool(log, n_jobs, reporter, _summary)
    try:
        for name in names:
            reporter.line(f"{name}: reading data ...")
            _compute(pool, name, setting, names)
    except KeyboardInterrupt as stop:
        advice = f"what was finished is in {display_name(folder / LOG)}; resume goes on from there"
        raise KeyboardInterrupt(advice) from stop
    log.add(run | {"seconds": time.perf_counter() - started})
    reporter.line("writing the report ...")
    return render(folder, figures=figures)


def render(out: str | os.PathLike[Any], *, figures: bool = True) -> Outcome:
    """Write report, results and figures of a finished reproduction again, from its log alone.

    Parameters
    ----------
    out : path
        The folder.
    figures : bool
        Draw the figures, too.

    Returns
    -------
    Outcome

    Examples
    --------
    >>> render("no/such/folder")
    Traceback (most recent call last):
    trellis.errors.DataError: no/such/folder holds no log.jsonl: nothing was run there
    """
    from trellis.reproduce.structure_regularisation.report import write_report

    folder, log = finished_log(out)
    outcome = _outcome(log)
    if figures:
        from trellis.reproduce.structure_regularisation.figures import draw_all

        draw_all(outcome, folder)
    write_report(outcome, folder)
    return outcome


def _protocol(protocol: str | Protocol) -> Protocol:
    if isinstance(protocol, Protocol):
        return protocol
    if protocol not in PROTOCOLS:
        raise DataError(f"protocol must be one of {', '.join(PROTOCOLS)}, got {protocol!r}")
    return PROTOCOLS[protocol]


# ------------------------------------------------------------------------------- computing


def _summary(record: dict[str, Any]) -> str:
    if record["kind"] != "fit":
        return ""
    return (
        f": dev {100 * record['dev']:.2f}, test {100 * record['test']:.2f}, "
        f"{record['seconds']:.1f} s of training"
    )


def _compute(pool: Pool, name: str, protocol: Protocol, names: list[str]) -> None:
    """Everything about one task."""
    data = task_data(name, protocol)
    facts = {"key": _data_key(name), "kind": "data"} | data.facts()
    pool.log.add(facts)
    study = Study(name, protocol, facts, pool.log.records)
    extra = _companions(data, facts, protocol) if companion_task(names) == name else []
    for fits in study.stages():
        calls = [Call(fit.key(facts), str(fit), perform, (fit, data)) for fit in fits()]
        pool.complete([*extra, *calls])
        extra = []


def _companions(data: TaskData, facts: dict[str, Any], protocol: Protocol) -> list[Call]:
    return [
        Call(
            companion_key(what, facts, protocol), f"{data.task}, {what}", measure,
            (what, data.train, data.features, protocol),
        )
        for what in COMPANIONS
    ]  # fmt: skip


def _data_key(task: str) -> str:
    return f"data of {task}"


# ------------------------------------------------------------------------------- reading back


def _outcome(log: Log) -> Outcome:
    """What a log says, if its last run was finished."""
    records = log.records
    run = records.get("run")
    if run is None:
        raise DataError("the log holds no run; start one")
    protocol = Protocol(**{name: _tuples(value) for name, value in run["protocol"].items()})
    try:
        studies = [Study(t, protocol, records[_data_key(t)], records) for t in run["tasks"]]
        for study in studies:
            for fits in study.stages():
                for fit in fits():
                    records[fit.key(study.facts)]
        task = companion_task(run["tasks"])
        facts = records[_data_key(task)]
        companions = {
            what: records[companion_key(what, facts, protocol)] | {"task": task}
            for what in COMPANIONS
        }
    except KeyError:
        raise DataError("the run was not finished; go on from it with resume (--resume)") from None
    return Outcome(run, studies, companions)


def _tuples(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
