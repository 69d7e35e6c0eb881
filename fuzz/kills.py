"""Processes killed amid their work: nothing torn, nothing lost, and in the end the same bits.

A case runs one of the jobs below in a process of its own, kills it (``SIGKILL``) at a moment
between its beginning and the end that the same job came to without a kill, looks at what is on the
disk, and lets another process go on. Then

* what was there before is there whole, or what takes its place is;
* all that was acknowledged is there;
* the result is that of a run which nobody killed, to the bit;
* no temporary file is left once a later writer has been there.

The moment a kill falls on is not known beforehand: a case is known by its number, but may end
otherwise the next time. Kills before the beginning and after the end are counted apart; «midway»
are those that struck the work, «on the way» those of them after which it was taken up from a
checkpoint or a log.
"""

from __future__ import annotations

import atexit
import io
import json
import logging
import os
import select
import shutil
import signal
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression

from fuzz import BrokenPromiseError
from studies.log import Log
from studies.structure_regularisation.protocol import PROTOCOLS
from studies.structure_regularisation.run import reproduce
from trellis import (
    ChainCRF,
    ChainPerceptron,
    Corpus,
    GraphCRF,
    GraphPerceptron,
    MaxMargin,
    TreeCRF,
    TreePerceptron,
    load_model,
    write_conll,
)
from trellis.cheap import ActiveLearner, AnnotationLog
from trellis.cli.main import main as trellis_main
from trellis.datasets import simulate_cells
from trellis.errors import DataError
from trellis.features import prepare
from trellis.files.checkpoint import CheckpointFile
from trellis.regression import GLACER, knn_graph
from trellis.tracking import TrackingModel
from trellis.tuning import tune

__all__ = ["Job", "cases", "jobs", "killed", "struck"]

Acknowledge = Callable[[int], None]


@dataclass(frozen=True)
class Job:
    """Something that can be killed and done again.

    Parameters
    ----------
    run : callable
        Does the work in a folder, from wherever it is; calls its second argument with a number for
        everything that must not be lost from then on.
    result : callable
        What came of it, to be compared.
    inspect : callable
        Looks at the folder after a kill: gets the numbers acknowledged, raises BrokenPromiseError
        for what is torn or lost, and says whether there is something to go on from.
    names : tuple of str
        The files that are left in the end.
    """

    run: Callable[[Path, Acknowledge], None]
    result: Callable[[Path], Any]
    inspect: Callable[[Path, list[int]], bool]
    names: tuple[str, ...]


# ------------------------------------------------------------------------- killing


def killed(job: Job, folder: Path, seconds: float) -> tuple[str, list[int]]:
    """Run a job in a child of this process for so long; how it ended, and what it acknowledged."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _be_child(job, folder, writer)
    os.close(writer)
    told = b""
    begun: float | None = None
    try:
        while True:
            wait = None if begun is None else max(0.0, begun + seconds - time.monotonic())
            ready, _, _ = select.select([reader], [], [], wait)
            if ready:
                part = os.read(reader, 1 << 16)
                if not part:
                    break
                told += part
                if begun is None and b"begin\n" in told:
                    begun = time.monotonic()
            elif wait is not None:
                os.kill(child, signal.SIGKILL)
                break
        _, status = os.waitpid(child, 0)
        while part := os.read(reader, 1 << 16):
            told += part
    finally:
        os.close(reader)
    lines = told.decode(errors="replace").split("\n")[:-1]  # the last may be cut off
    acknowledged = [int(line[4:]) for line in lines if line.startswith("ack ")]
    if failed := [line for line in lines if line.startswith("error ")]:
        raise BrokenPromiseError(failed[0][6:])
    if "end" in lines:
        return "done", acknowledged
    if not os.WIFSIGNALED(status) or os.WTERMSIG(status) != signal.SIGKILL:
        raise BrokenPromiseError(f"it ended by itself, with status {status}")
    return "midway" if "begin" in lines else "before", acknowledged


def _be_child(job: Job, folder: Path, writer: int) -> None:
    """Do the work and tell how far it is; never returns."""
    code = 1
    try:
        os.write(writer, b"begin\n")

        def acknowledge(i: int) -> None:
            os.write(writer, f"ack {i}\n".encode())

        job.run(folder, acknowledge)
        os.write(writer, b"end\n")
        code = 0
    except BaseException as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}: {error}"
        os.write(writer, f"error {' '.join(text.split())}\n".encode())
    finally:
        os._exit(code)


def struck(job: Job, folder: Path, moments: list[float], wanted: Any) -> str:
    """Kill a job after so many seconds each time, let it come to its end, and compare."""
    midway, goes_on = 0, False
    for seconds in moments:
        end, acknowledged = killed(job, folder, seconds)
        midway += end == "midway"
        goes_on = job.inspect(folder, acknowledged) or goes_on
        if end == "done":
            break
    last, acknowledged = killed(job, folder, 600.0)
    _promise(last == "done", "it does not come to an end")
    job.inspect(folder, acknowledged)
    _promise(job.result(folder) == wanted, "another result than without a kill")
    left = {file.name for file in folder.iterdir()} - set(job.names)
    _promise(not left, f"left behind: {', '.join(sorted(left))}")
    if not midway:
        return "finished before" if end == "done" else "killed before it began"
    return f"{midway} killed midway, {'on the way' if goes_on else 'anew'}"


# ------------------------------------------------------------------------- training

_RNG = np.random.default_rng(0)
_LABELS = ("A", "B", "C")
_WORDS = [[f"w{k}" for k in _RNG.integers(0, 40, 12)] for _ in range(150)]
_TAGS = [[_LABELS[int(w[1:]) % 3 if _RNG.random() < 0.8 else 0] for w in s] for s in _WORDS]
_TREES = [[(int(_RNG.integers(0, i)), i) for i in range(1, len(s))] for s in _WORDS]
_RINGS = [[*((i, i + 1) for i in range(3)), (0, 3)] for s in _WORDS]


def _trained(model: Any, *, passes: int, n: int = 150, **more: Any) -> Job:
    """Learning with a checkpoint, and the model saved."""
    data = {name: values[:n] for name, values in more.items()}

    def run(folder: Path, _: Acknowledge) -> None:
        fresh = type(model)(**{**model.get_params(), "max_passes": passes})
        X, y = _WORDS[:n], _TAGS[:n]
        fresh.fit(X, y, **data, checkpoint=folder / "c", checkpoint_minutes=0, resume=True)
        fresh.save(folder / "m")

    return Job(run, lambda folder: (folder / "m").read_bytes(), _whole_checkpoint, ("m",))


def _whole_checkpoint(folder: Path, _: list[int]) -> bool:
    """Read what is there, which raises if it is torn."""
    if (folder / "m").exists():
        load_model(folder / "m")
    stored = CheckpointFile(folder / "c").read()
    return stored is not None


_X = _RNG.uniform(size=(80, 3))
_Y = np.sin(6 * _X[:, 0]) + _X[:, 1] + 0.1 * _RNG.normal(size=80)
_GRAPH = knn_graph(_X[:, :2], 4)


def _glacer() -> Job:
    def run(folder: Path, _: Acknowledge) -> None:
        model = GLACER(4, base=LinearRegression(), random_state=0, max_swaps=12)
        model.fit(_X, _Y, graph=_GRAPH, checkpoint=folder / "c", resume=True)
        for record in model.history_:
            object.__setattr__(record, "seconds", 0.0)  # what differs from run to run
        model.save(folder / "m")

    return Job(run, lambda folder: (folder / "m").read_bytes(), _whole_checkpoint, ("c", "m"))


_FILM = simulate_cells(20, 8, seed=0)


def _tracking() -> Job:
    """Learning without a checkpoint: it begins anew."""

    def run(folder: Path, _: Acknowledge) -> None:
        TrackingModel(knots=0, max_iter=40, random_state=0).fit(_FILM).save(folder / "m")

    return Job(run, lambda folder: (folder / "m").read_bytes(), _whole_checkpoint, ("m",))


def _command() -> Job:
    """``trellis train``, as a user runs it."""
    text = _text_file()

    def run(folder: Path, _: Acknowledge) -> None:
        words = ["train", str(text), "-o", str(folder / "m"), "--resume", "--tol", "-1"]
        words += ["--max-passes", "250", "--features", "word[-1..0]", "--seed", "0"]
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as complaints:
            if trellis_main(words):
                raise RuntimeError(complaints.getvalue())

    def inspect(folder: Path, _: list[int]) -> bool:
        if (folder / "m").exists():
            load_model(folder / "m")
        return CheckpointFile(folder / "m.checkpoint").read() is not None

    return Job(run, lambda folder: (folder / "m").read_bytes(), inspect, ("m",))


def _text_file() -> Path:
    """The sequences as a column file, which goes away with this process."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    write_conll(folder / "text", Corpus.from_columns({"word": _WORDS}, _TAGS))
    return folder / "text"


# ------------------------------------------------------------------------- files


def _replacing(name: str, writers: list[Callable[[Path], None]], times: int) -> Job:
    """Three files written to one place, one after the other, again and again."""
    folder = Path(tempfile.mkdtemp())
    contents = []
    for write in writers:
        write(folder / name)
        contents.append((folder / name).read_bytes())
    shutil.rmtree(folder)

    def run(folder: Path, acknowledge: Acknowledge) -> None:
        for i in range(times):
            writers[i % 3](folder / name)
            acknowledge(i)

    def inspect(folder: Path, acknowledged: list[int]) -> bool:
        last = max(acknowledged, default=-1)
        if not (folder / name).exists():
            _promise(last < 0, "the file is gone")
            return False
        data = (folder / name).read_bytes()
        _promise(data in contents, "neither the old file nor the new one")
        if last >= 0:
            _promise((contents.index(data) - last) % 3 < 2, "an older file is back")
        return True

    return Job(run, lambda folder: (folder / name).read_bytes(), inspect, (name,))


def _saving() -> Job:
    models = [ChainPerceptron("word", max_passes=n, random_state=0) for n in (1, 2, 3)]
    writers: list[Callable[[Path], None]] = [m.fit(_WORDS, _TAGS).save for m in models]
    return _replacing("m", writers, 30)


def _preparing() -> Job:
    def writer(n: int) -> Callable[[Path], None]:
        corpus = Corpus.from_columns({"word": _WORDS[:n]}, _TAGS[:n])

        def write(path: Path) -> None:
            prepare(corpus, path, "word[-2..2]")

        return write

    return _replacing("p", [writer(n) for n in (100, 120, 150)], 16)


# ------------------------------------------------------------------------- logs


def _tuning() -> Job:
    grid: dict[str, list[Any]] = {"l2": [0.1, 0.3, 1.0, 3.0], "piece_size": [None, 2.5, 4.0]}

    def run(folder: Path, _: Acknowledge) -> None:
        model = ChainCRF("word", max_passes=3, random_state=0)
        data = (_WORDS[:60], _TAGS[:60])
        chosen = tune(model, *data, grid=grid, folds=2, n_jobs=1, log=folder / "log")
        table = [[str(trial.params), trial.scores] for trial in chosen.table]
        (folder / "r").write_text(json.dumps([table, str(chosen.best.params)]))

    def inspect(folder: Path, _: list[int]) -> bool:
        lines = (folder / "log").read_bytes().split(b"\n") if (folder / "log").exists() else [b""]
        records = [json.loads(line) for line in lines[:-1]]  # whole, but for the last
        return len(records) > 1

    return Job(run, lambda folder: (folder / "r").read_text(), inspect, ("log", "r"))


def _annotating() -> Job:
    """Answers written to a log, as fast as it goes."""

    def run(folder: Path, acknowledge: Acknowledge) -> None:
        with AnnotationLog(folder / "log") as log:
            log.begin(pool="p", strategy="random", seed=0)
            for i in range(len(log.entries()), 25):
                log.add(i, [str(i), None])
                acknowledge(i)

    return Job(run, _log_entries, _inspect_answers, ("log",))


def _log_entries(folder: Path) -> Any:
    with AnnotationLog(folder / "log") as log:
        return [(e.number, e.sample, str(e.annotation)) for e in log.entries()]


def _inspect_answers(folder: Path, acknowledged: list[int]) -> bool:
    if not (folder / "log").exists():
        _promise(not acknowledged, "the log is gone")
        return False
    with AnnotationLog(folder / "log") as log:
        numbers = [entry.number for entry in log.entries()]
    _promise(numbers == list(range(1, len(numbers) + 1)), "rows are missing")
    _promise(len(numbers) > max(acknowledged, default=-1), "an acknowledged answer is lost")
    return bool(numbers)


_POOL = [sample[:4] for sample in _WORDS[:14]]
_ANSWERS = [tags[:4] for tags in _TAGS[:14]]


def _learning() -> Job:
    """An active learner that asks and is told; it goes on from its log."""

    def run(folder: Path, acknowledge: Acknowledge) -> None:
        model = MaxMargin("word", l2=0.1, max_passes=20, random_state=0)
        learner = ActiveLearner(model, labels=_LABELS, log=folder / "log", random_state=0)
        i = -1
        with suppress(DataError):  # killed after the last answer: nothing is left to ask for
            i = learner.query(_POOL)
        for n in range(len(learner.annotated_), len(_POOL)):
            learner.tell(i, _ANSWERS[i])
            acknowledge(n)
            if n + 1 < len(_POOL):
                i = learner.query(_POOL)
        learner.finish().save(folder / "m")
        learner.close()

    def result(folder: Path) -> Any:
        return _log_entries(folder), (folder / "m").read_bytes()

    return Job(run, result, _inspect_answers, ("log", "m"))


def _study_log() -> Job:
    def run(folder: Path, acknowledge: Acknowledge) -> None:
        log = Log(folder / "log")
        for i in range(len(log.records), 60):
            log.add({"key": str(i), "kind": "fit", "score": i / 7})
            acknowledge(i)

    def inspect(folder: Path, acknowledged: list[int]) -> bool:
        if not (folder / "log").exists():
            _promise(not acknowledged, "the log is gone")
            return False
        records = Log(folder / "log").records
        _promise(list(records) == [str(i) for i in range(len(records))], "records are missing")
        _promise(len(records) > max(acknowledged, default=-1), "an acknowledged record is lost")
        return bool(records)

    return Job(run, lambda folder: (folder / "log").read_bytes(), inspect, ("log",))


_TINY = replace(
    PROTOCOLS["quick"], name="tiny", runs=1, train_limit=15, test_limit=12, retrain=False,
    crf={"max_passes": 1}, perceptron={"max_passes": 1}, resamples=20, tokens=1500, small=5,
    rates=(0.1,),
)  # fmt: skip


def _study() -> Job:
    """A whole study, if tiny: what ``trellis reproduce --resume`` does."""

    def run(folder: Path, _: Acknowledge) -> None:
        reproduce(
            folder, protocol=_TINY, tasks=["roles"], n_jobs=1, figures=False, verbose=False,
            resume=(folder / "log.jsonl").exists(),
        )  # fmt: skip

    def records(folder: Path) -> dict[str, Any]:
        times = ("seconds", "cpu_seconds", "wall_seconds")
        log = Log(folder / "log.jsonl")
        fits = {key: r for key, r in log.records.items() if r["kind"] == "fit"}
        return {k: {n: v for n, v in r.items() if n not in times} for k, r in fits.items()}

    def inspect(folder: Path, _: list[int]) -> bool:
        if (folder / "results.json").exists():
            json.loads((folder / "results.json").read_text())
        return (folder / "log.jsonl").exists() and bool(records(folder))

    return Job(run, records, inspect, ("log.jsonl", "report.md", "results.json"))


def _promise(kept: bool, what: str) -> None:
    if not kept:
        raise BrokenPromiseError(what)


# ------------------------------------------------------------------------- the attack


def jobs() -> dict[str, Job]:
    """All that is killed, by name."""
    same: dict[str, Any] = {"random_state": 0, "tol": -1.0}
    margin: dict[str, Any] = {"random_state": 0, "tol": 0.0}
    word, both = "word", "word; word[-1]"
    newton = ChainCRF("word[-2..2]", solver="lbfgs", l2=1e-7, **same)
    return {
        "ChainCRF": _trained(ChainCRF(both, **same), passes=250),
        "ChainCRF, adf": _trained(ChainCRF(both, solver="adf", **same), passes=3),
        "ChainCRF, lbfgs": _trained(newton, passes=350),
        "ChainCRF, rich": _trained(ChainCRF(both, rich_edges=True, **same), passes=150),
        "ChainPerceptron": _trained(ChainPerceptron(both, **same), passes=400),
        "TreeCRF": _trained(TreeCRF(word, **same), passes=120, edges=_TREES),
        "TreePerceptron": _trained(TreePerceptron(word, **same), passes=240, edges=_TREES),
        "GraphCRF": _trained(GraphCRF(word, **same), passes=100, edges=_RINGS),
        "GraphPerceptron": _trained(GraphPerceptron(word, **same), passes=160, edges=_RINGS),
        "MaxMargin": _trained(MaxMargin(word, **margin), passes=500),
        "MaxMargin, sgd": _trained(MaxMargin(word, solver="sgd", **margin), passes=1200),
        "GLACER": _glacer(),
        "TrackingModel": _tracking(),
        "trellis train": _command(),
        "save": _saving(),
        "prepare": _preparing(),
        "tune": _tuning(),
        "AnnotationLog": _annotating(),
        "ActiveLearner": _learning(),
        "study log": _study_log(),
        "study": _study(),
    }


def cases() -> Callable[[np.random.Generator], str]:
    """A function that kills one of the jobs, and lets it go on."""
    logging.getLogger("trellis").setLevel(logging.CRITICAL)
    expected: dict[str, tuple[float, Any]] = {}
    every = jobs()
    names = sorted(every)

    def reference(name: str) -> tuple[float, Any]:
        """Seconds and result of the job when nobody kills it."""
        if name not in expected:
            for _ in range(2):  # the first warms up what children inherit
                folder = Path(tempfile.mkdtemp())
                started = time.monotonic()
                every[name].run(folder, lambda _: None)
                expected[name] = time.monotonic() - started, every[name].result(folder)
                shutil.rmtree(folder)
        return expected[name]

    def case(rng: np.random.Generator) -> str:
        name = names[rng.integers(len(names))]
        seconds, wanted = reference(name)
        folder = Path(tempfile.mkdtemp())
        try:
            moments = rng.uniform(0, seconds, rng.choice([1, 1, 2, 3])).tolist()
            return struck(every[name], folder, moments, wanted)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    return case
