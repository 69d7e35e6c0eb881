"""Run a reproduction: everything that the log does not have yet, then tables, figures, report.

A fit is independent of all others, so that they are made in worker processes; its seed is the
number of its run, so that results (but for times) do not depend on how many work at once.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from studies.experiments import Study
from studies.folder import Call, Pool, finished_log, logged_run
from studies.log import Log
from studies.structure_regularisation.companions import (
    COMPANIONS,
    companion_key,
    companion_task,
    measure,
)
from studies.structure_regularisation.figures import draw_all
from studies.structure_regularisation.fits import perform
from studies.structure_regularisation.protocol import PROTOCOLS, Protocol
from studies.structure_regularisation.report import write_report
from studies.structure_regularisation.study import Outcome, TaskStudy
from studies.structure_regularisation.tasks import (
    TaskData,
    available_tasks,
    checked_tasks,
    task_data,
)
from trellis.errors import DataError

__all__ = ["STUDY", "render", "reproduce"]


def reproduce(
    out: str | os.PathLike[Any],
    *,
    protocol: str | Protocol = "default",
    tasks: Sequence[str] | None = None,
    figures: bool = True,
    **options: Any,
) -> Outcome:
    """Repeat the experiments; options are those of :func:`studies.reproduce`.

    The protocol may be one of one's own. Tasks are names of :data:`TASKS`; by default all of the
    paper and chunking.

    Examples
    --------
    >>> import tempfile
    >>> reproduce(tempfile.mkdtemp(), tasks=["parsing"])
    Traceback (most recent call last):
    trellis.errors.DataError: unknown task 'parsing'; known: pos, bio-ner, word-seg, ...
    """
    setting = _protocol(protocol)
    names = checked_tasks(list(tasks)) if tasks is not None else available_tasks(setting)

    def compute(pool: Pool) -> None:
        for name in names:
            pool.reporter.line(f"{name}: reading data ...")
            _compute(pool, name, setting, names)
        pool.reporter.line("writing the report ...")

    facts = {"protocol": asdict(setting), "tasks": names}
    logged_run(out, facts, compute, figures=figures, **options)
    return render(out, figures=figures)


def render(out: str | os.PathLike[Any], *, figures: bool = True) -> Outcome:
    """Write report, results and figures of a finished reproduction again, from its log alone."""
    folder, log = finished_log(out)
    with log.reading():
        outcome = _outcome(log)
        if figures:
            draw_all(outcome, folder)
        write_report(outcome, folder)
    return outcome


STUDY = Study(reproduce, render)


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
    study = TaskStudy(name, protocol, facts, pool.log.records)
    extra = _companions(data, facts, protocol) if companion_task(names) == name else []
    for fits in study.stages():
        with pool.log.reading():  # what to fit depends on the scores of fits before
            calls = [Call(fit.key(facts), str(fit), perform, (fit, data)) for fit in fits()]
        pool.complete([*extra, *calls], _summary)
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
        studies = [TaskStudy(t, protocol, records[_data_key(t)], records) for t in run["tasks"]]
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
