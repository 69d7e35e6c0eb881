"""Run a reproduction: everything that the log does not have yet, then tables, figures, report.

A fit is independent of all others, so that they are made in worker processes; its seed is the
number of its run, so that results (but for times) do not depend on how many work at once.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trellis import __version__
from trellis.errors import DataError
from trellis.files import display_name
from trellis.progress import Reporter
from trellis.reproduce.companions import (
    COMPANIONS,
    companion_key,
    companion_task,
    measure,
)
from trellis.reproduce.fits import perform
from trellis.reproduce.log import Log
from trellis.reproduce.protocol import PROTOCOLS, Protocol
from trellis.reproduce.study import Study
from trellis.reproduce.tasks import TaskData, available_tasks, checked_tasks, task_data

__all__ = ["LOG", "Outcome", "render", "reproduce"]

LOG = "log.jsonl"
_Call = tuple[str, str, Callable[..., dict[str, Any]], tuple[Any, ...]]  # key, name, function, args


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
    >>> from trellis.reproduce import reproduce
    >>> reproduce(tempfile.mkdtemp(), tasks=["parsing"])
    Traceback (most recent call last):
    trellis.errors.DataError: unknown task 'parsing'; known: pos, bio-ner, word-seg, ...
    """
    setting = _protocol(protocol)
    names = checked_tasks(list(tasks)) if tasks is not None else available_tasks(setting)
    if n_jobs is not None and (not isinstance(n_jobs, int) or n_jobs < 1):
        raise DataError(f"n_jobs must be None or a positive integer, got {n_jobs!r}")
    if figures:
        from trellis.reproduce.figures import check_matplotlib

        check_matplotlib()
    folder = _folder(out, resume)
    reporter = Reporter(verbose, always=True)
    log = Log(folder / LOG)
    started = time.perf_counter()
    run = _run_record(setting, names, n_jobs)
    log.add(run)
    pool = _Pool(log, n_jobs, reporter)
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
    from trellis.reproduce.report import write_report

    folder = Path(os.fsdecode(out))
    if not (folder / LOG).is_file():
        raise DataError(f"{display_name(folder)} holds no {LOG}: nothing was run there")
    outcome = _outcome(Log(folder / LOG))
    if figures:
        from trellis.reproduce.figures import draw_all

        draw_all(outcome, folder)
    write_report(outcome, folder)
    return outcome


def _protocol(protocol: str | Protocol) -> Protocol:
    if isinstance(protocol, Protocol):
        return protocol
    if protocol not in PROTOCOLS:
        raise DataError(f"protocol must be one of {', '.join(PROTOCOLS)}, got {protocol!r}")
    return PROTOCOLS[protocol]


def _folder(out: str | os.PathLike[Any], resume: bool) -> Path:
    folder = Path(os.fsdecode(out))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK)
    except OSError as error:
        raise DataError(
            f"cannot make the folder {display_name(folder)}: {error.strerror or error}"
        ) from error
    if not writable:
        raise DataError(f"cannot write to the folder {display_name(folder)}; name another")
    if (folder / LOG).exists() and not resume:
        raise DataError(
            f"{display_name(folder)} holds a run already; go on from it with resume (--resume), "
            "or name another folder"
        )
    return folder


def _run_record(protocol: Protocol, tasks: list[str], n_jobs: int | None) -> dict[str, Any]:
    import numba
    import numpy
    import scipy

    return {
        "key": "run",
        "kind": "run",
        "protocol": asdict(protocol),
        "tasks": tasks,
        "n_jobs": n_jobs,
        "n_cores": os.cpu_count(),
        "versions": {
            "Trellis": __version__,
            "Python": platform.python_version(),
            "NumPy": numpy.__version__,
            "SciPy": scipy.__version__,
            "Numba": numba.__version__,
        },
        "machine": f"{platform.system()} {platform.machine()}",
        "seconds": None,
    }


# ------------------------------------------------------------------------------- computing


class _Pool:
    """Makes records that the log does not have yet."""

    def __init__(self, log: Log, n_jobs: int | None, reporter: Reporter) -> None:
        self.log, self._reporter = log, reporter
        self._n_jobs = -1 if n_jobs is None else n_jobs

    def complete(self, calls: Sequence[_Call]) -> None:
        """Call what is missing, in worker processes; each result is logged as it comes."""
        from joblib import Parallel, delayed

        missing = [call for call in calls if call[0] not in self.log.records]
        done = len(calls) - len(missing)
        if done:
            self._reporter.line(f"  {done} of {len(calls)} results are in the log")
        parallel = Parallel(self._n_jobs, batch_size=1, return_as="generator_unordered")
        work = (
            delayed(_numbered)(i, function, args)
            for i, (_, _, function, args) in enumerate(missing)
        )
        with closing(parallel(work)) as results:
            for i, record in results:
                key, name, _, _ = missing[i]
                self.log.add({"key": key} | record)
                done += 1
                self._reporter.line(f"  {done}/{len(calls)}  {name}{_summary(record)}")


def _numbered(
    number: int, function: Callable[..., dict[str, Any]], args: tuple[Any, ...]
) -> tuple[int, dict[str, Any]]:
    return number, function(*args)


def _summary(record: dict[str, Any]) -> str:
    if record["kind"] != "fit":
        return ""
    return (
        f": dev {100 * record['dev']:.2f}, test {100 * record['test']:.2f}, "
        f"{record['seconds']:.1f} s of training"
    )


def _compute(pool: _Pool, name: str, protocol: Protocol, names: list[str]) -> None:
    """Everything about one task."""
    data = task_data(name, protocol)
    facts = {"key": _data_key(name), "kind": "data"} | data.facts()
    pool.log.add(facts)
    study = Study(name, protocol, facts, pool.log.records)
    extra = _companions(data, facts, protocol) if companion_task(names) == name else []
    for fits in study.stages():
        calls: list[_Call] = [(fit.key(facts), str(fit), perform, (fit, data)) for fit in fits()]
        pool.complete([*extra, *calls])
        extra = []


def _companions(data: TaskData, facts: dict[str, Any], protocol: Protocol) -> list[_Call]:
    return [
        (
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
