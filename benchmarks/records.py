"""Records of benchmarks: what a run showed, by which command, of which commit, where and when.

A benchmark that is run with ``--record`` writes ``benchmarks/records/NAME.json`` when it has ended
well; one that fails or is killed leaves the old record as it was. ``python -m benchmarks.page``
makes the page of benchmarks from the records. They tell of a machine what figures depend on, and
nothing that names it, its users or its folders.
"""

from __future__ import annotations

import atexit
import json
import math
import os
import platform
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import TracebackType
from typing import Any

from trellis.files import atomic_write

FOLDER = Path(__file__).parent / "records"
PEERS = (
    "python-crfsuite", "sklearn-crfsuite", "pytoulbar2", "laptrack", "motile", "trackpy",
    "crowd-kit", "PyKrige", "spreg", "py-ctcmetrics",
)  # fmt: skip
LIBRARIES = ("NumPy", "Numba", "SciPy", "scikit-learn", *PEERS)
HOW = ("rounds", "slow_rounds", "repeats", "seeds", "draws", "steps", "log", "peer_python", "cache")
"""Options that say how often or where, not what: a run with others of them is the same record."""

# Text changes no figure, and is written while records are made.
_CODE = ("--", ".", ":!benchmarks/records", ":!docs", ":!*.md")


@dataclass(frozen=True)
class Shown:
    """A table as it was shown, and the numbers behind its cells (None where there was text)."""

    title: str
    headings: list[str]
    rows: list[list[str]]
    numbers: list[list[Any]]


@dataclass(frozen=True)
class Record:
    """What a run of a benchmark showed, and all that says where it comes from."""

    name: str
    part: str
    """What options chose, as in the name of the file; "" for the whole benchmark."""
    command: str
    commit: str
    changed: bool
    """Whether code differed from the commit."""
    date: str
    machine: dict[str, Any]
    versions: dict[str, str]
    seconds: float
    tables: list[Shown]

    @property
    def file(self) -> str:
        """Name of its file."""
        return ".".join([self.name, *([self.part] if self.part else []), "json"])

    def text(self) -> str:
        """What its file holds."""
        return json.dumps(asdict(self), ensure_ascii=False, indent=1, allow_nan=False) + "\n"

    @classmethod
    def read(cls, path: Path) -> Record:
        """The record in a file."""
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            record = cls(**found | {"tables": [Shown(**table) for table in found["tables"]]})
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(
                f"benchmarks/records/{path.name} is no record of a benchmark ({error}); "
                "remove it, and run the benchmark again with --record"
            ) from error
        if record.file != path.name:
            raise ValueError(
                f"benchmarks/records/{path.name} holds the record {record.file}; give it its name"
            )
        return record


def records(folder: Path | None = None) -> list[Record]:
    """All records, by name; that of a whole benchmark before those of its parts."""
    found = [Record.read(path) for path in (folder or FOLDER).glob("*.json")]
    return sorted(found, key=lambda record: (record.name, record.part))


# ------------------------------------------------------------------------- what is recorded


def raw(cell: object) -> Any:
    """Number or numbers behind a cell; None for text and for what is not finite."""
    if isinstance(cell, list):
        return [raw(one) for one in cell]
    return cell if isinstance(cell, int | float) and math.isfinite(cell) else None


def part_of(given: Mapping[str, Any]) -> str:
    """Name for what options choose, such as ``only-nodes``; "" if they choose nothing."""
    parts = []
    for name, value in given.items():
        if name not in HOW:
            values = value if isinstance(value, list) else [] if value is True else [value]
            told = (f"{v:g}" if isinstance(v, float) else str(v) for v in values)
            parts.append("-".join([name, *told]))
    return re.sub(r"[^\w.-]+|_", "-", ".".join(parts))


def command_of(name: str, words: list[str]) -> str:
    """The command that ran; of the names of files the last part."""
    kept = (re.sub(r"[^=]*[/\\]", "", word) for word in words if word != "--record")
    return shlex.join(["python", "-m", f"benchmarks.{name}", *kept])


def commit() -> tuple[str, bool]:
    """The commit that the code is of, and whether it was changed since; "" if nobody knows."""

    def git(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["git", *words], cwd=Path(__file__).parents[1], capture_output=True, text=True,
            check=False,
        )  # fmt: skip

    try:
        found = git("rev-parse", "--short", "HEAD")
        if found.returncode:
            return "", False
        return found.stdout.strip(), git("diff", "--quiet", "HEAD", *_CODE).returncode != 0
    except OSError:  # there is no git
        return "", False


def machine() -> dict[str, Any]:
    """What figures depend on, and no name."""
    processor = platform.processor() or platform.machine()
    if (told := Path("/proc/cpuinfo")).exists():
        names = re.findall(r"^model name\s*: (.*)$", told.read_text(), re.MULTILINE)
        processor = names[0].strip() if names else processor
    allowed = getattr(os, "sched_getaffinity", None)
    cores = len(allowed(0)) if allowed else os.cpu_count()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": processor, "cores": cores, "memory_gb": round(memory / 1e9),
        "system": platform.system(),
    }  # fmt: skip


def versions() -> dict[str, str]:
    """Python, the libraries that the work is done by, and the peers that are installed."""
    found = {"Python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


# ------------------------------------------------------------------------- a run


class _Run:
    """A run that is to be recorded when the process ends, unless by an error."""

    def __init__(self, part: str) -> None:
        self.process, self.failed = os.getpid(), False
        self.tables: list[Shown] = []
        name = Path(sys.argv[0]).stem
        self.about: dict[str, Any] = {"name": name, "part": part}
        self.about["command"] = command_of(name, sys.argv[1:])
        self.about["commit"], self.about["changed"] = commit()  # as the code is that runs
        self.about |= {"machine": machine(), "versions": versions()}
        self.began, self.hook = time.perf_counter(), sys.excepthook
        sys.excepthook = self.fail
        atexit.register(self.end)

    def fail(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        """Tell of an error, which ends the run without a record."""
        self.failed = True
        self.hook(kind, error, trace)

    def end(self) -> None:
        """Write the record of what was shown."""
        if self.failed or not self.tables or os.getpid() != self.process:
            return
        record = Record(
            **self.about, date=datetime.now(UTC).date().isoformat(), tables=self.tables,
            seconds=round(time.perf_counter() - self.began, 1),
        )  # fmt: skip
        FOLDER.mkdir(exist_ok=True)
        with atomic_write(FOLDER / record.file, binary=False) as file:
            file.write(record.text())
        print(f"recorded: {record.file}; now python -m benchmarks.page", file=sys.stderr)


_run: list[_Run] = []


def begin(given: Mapping[str, Any]) -> None:
    """Record this run; ``given`` are the options that are not as usual."""
    _run[:] = [_Run(part_of(given))]


def take(table: Shown) -> None:
    """Add a table to the record, if there is to be one."""
    for run in _run:
        run.tables.append(table)
