"""Where a study keeps what it computes: a folder with a log, and the workers that fill it.

A computation is a call with a key; what the log has under that key is not computed again. Calls are
independent of each other and made in worker processes, so results (but for times) do not depend on
how many work at once.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy
import scipy
from joblib import Parallel, delayed

from studies.log import Log
from trellis import __version__
from trellis.errors import DataError
from trellis.files import display_name
from trellis.pictures.style import check_matplotlib
from trellis.progress import Reporter, Task

__all__ = ["LOG", "Call", "Pool", "finished_log", "logged_run"]

LOG = "log.jsonl"


@dataclass(frozen=True)
class Call:
    """One computation: its key in the log, its name for people, and what is to be called.

    The function must be importable by the workers and returns a dict that JSON can hold. If it
    ``needs`` records of other calls, it gets the list of them as its last argument.
    """

    key: str
    name: str
    function: Callable[..., dict[str, Any]]
    args: tuple[Any, ...] = ()
    needs: tuple[str, ...] = ()  # keys


class Pool:
    """Makes the records that a log does not have yet.

    Parameters
    ----------
    log : Log
    n_jobs : int or None
        Calls made at once; None for one on each processor.
    reporter : Reporter
        Gets a line for each record.
    """

    def __init__(self, log: Log, n_jobs: int | None, reporter: Reporter) -> None:
        self.log, self.reporter = log, reporter
        self._n_jobs = -1 if n_jobs is None else n_jobs

    def complete(
        self,
        calls: Sequence[Call],
        summary: Callable[[dict[str, Any]], str] = lambda record: "",
    ) -> None:
        """Call what is missing, in worker processes; each result is logged as it comes.

        Calls that need the records of others are made after those that need none.

        The summary is what a line says of a record besides its name.
        """
        missing = [call for call in calls if call.key not in self.log.records]
        done = len(calls) - len(missing)
        if done:
            self.reporter.line(f"  {done} of {len(calls)} results are in the log")
        parallel = Parallel(self._n_jobs, batch_size=1, return_as="generator_unordered")
        steps = Task("result", len(calls), done)
        with self.reporter.under_way(steps):
            for stage in (
                [call for call in missing if not call.needs],
                [call for call in missing if call.needs],
            ):
                work = (
                    delayed(_numbered)(i, c.function, (*c.args, *self._needed(c)))
                    for i, c in enumerate(stage)
                )
                with closing(parallel(work)) as results:
                    for i, record in results:
                        self.log.add({"key": stage[i].key} | record)
                        done += 1
                        steps.at(done)
                        line = f"  {done}/{len(calls)}  {stage[i].name}{summary(record)}"
                        self.reporter.line(line)

    def _needed(self, call: Call) -> tuple[list[dict[str, Any]], ...]:
        """The last argument of a call that needs records."""
        return ([self.log.records[key] for key in call.needs],) if call.needs else ()


def _numbered(
    number: int, function: Callable[..., dict[str, Any]], args: tuple[Any, ...]
) -> tuple[int, dict[str, Any]]:
    return number, function(*args)


def logged_run(
    out: str | os.PathLike[Any],
    facts: dict[str, Any],
    compute: Callable[[Pool], None],
    *,
    n_jobs: int | None = None,
    resume: bool = False,
    figures: bool = True,
    verbose: bool = False,
) -> None:
    """Compute in a folder: checks, a pool to complete, and a log of the facts and the time taken.

    Parameters
    ----------
    out : path
        Folder; made if it does not exist, refused if it holds another run and ``resume`` is not
        set.
    facts : dict
        What the log is to say of the run besides machine and versions.
    compute : callable
        Completes a pool.
    n_jobs, resume, figures, verbose
        See :func:`studies.reproduce`.
    """
    if n_jobs is not None and (not isinstance(n_jobs, int) or n_jobs < 1):
        raise DataError(f"n_jobs must be None or a positive integer, got {n_jobs!r}")
    if figures:
        check_matplotlib("figures need", ", or go without figures (--no-figures)")
    folder = _new_folder(out, resume)
    log = Log(folder / LOG)
    started = time.perf_counter()
    run = _run_facts(n_jobs) | facts
    log.add(run)
    try:
        compute(Pool(log, n_jobs, Reporter(verbose)))
    except KeyboardInterrupt as stop:
        advice = f"what was finished is in {display_name(folder / LOG)}; resume goes on from there"
        raise KeyboardInterrupt(advice) from stop
    log.add(run | {"seconds": time.perf_counter() - started})


def _new_folder(out: str | os.PathLike[Any], resume: bool) -> Path:
    """Folder of a run; made if it does not exist, refused if it holds another run."""
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


def finished_log(out: str | os.PathLike[Any]) -> tuple[Path, Log]:
    """Folder and log of a run."""
    folder = Path(os.fsdecode(out))
    if not (folder / LOG).is_file():
        raise DataError(f"{display_name(folder)} holds no {LOG}: nothing was run there")
    return folder, Log(folder / LOG)


def _run_facts(n_jobs: int | None) -> dict[str, Any]:
    """What a report says about the machine and the versions."""
    return {
        "key": "run",
        "kind": "run",
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
