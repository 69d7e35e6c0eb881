"""Records what a program does to files, in order, as the kernel sees it.

A program runs under ``strace``, which prints one line for each system call. Of those that change a
file or flush it, :func:`recorded` makes events:

    open PATH      opened for writing, so that it could be changed in its place
    write PATH     bytes went to the system, not to the disk
    sync PATH      everything written so far is on the disk; of a folder: the names in it
    rename PATH    to TARGET
    remove PATH
    truncate PATH

The program says where it is by writing a word to a file called ``marks``. What a disk holds after a
power cut at some moment is what was synced before; nothing may be presumed of the rest, neither
that it is there nor that it is not.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Event", "recorded", "why_not"]

_CALLS = {
    "write": "write", "pwrite64": "write", "writev": "write",
    "fsync": "sync", "fdatasync": "sync",
    "rename": "rename", "renameat": "rename", "renameat2": "rename",
    "unlink": "remove", "unlinkat": "remove",
    "truncate": "truncate", "ftruncate": "truncate",
    "open": "open", "openat": "open",
}  # fmt: skip
_LINE = re.compile(r"(?P<call>\w+)\((?P<args>.*)\)\s+= (?P<result>-?\d+)")
_FILE = re.compile(r"^\d+<(?P<path>[^>]*)>")  # a descriptor, as -y prints it
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Event:
    """Something that happened to a file."""

    what: str
    path: str
    target: str = ""


def why_not() -> str:
    """Why nothing can be recorded here; "" if it can."""
    if sys.platform != "linux" or shutil.which("strace") is None:
        return "strace is not installed"
    tried = subprocess.run(["strace", "-f", "true"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else "strace may not trace here"


def recorded(program: str, folder: Path) -> dict[str, list[Event]]:
    """What a program did to files of a folder, before each of its marks."""
    out = folder.parent / f"{folder.name}.strace"
    marks = str(folder / "marks")
    command = ["strace", "-f", "-y", "-s", "40", "-o", str(out), "-e", f"trace={','.join(_CALLS)}"]
    code = f"import os\nmarks = os.open({marks!r}, os.O_CREAT | os.O_WRONLY)\n{program}"
    done = subprocess.run(
        [*command, sys.executable, "-c", code],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    parts: dict[str, list[Event]] = {}
    events: list[Event] = []
    for line in _whole_lines(out.read_text(errors="replace")):
        event = _event(line)
        if event is None or not event.path.startswith(f"{folder}/"):
            if event != Event("sync", str(folder)):
                continue
        elif Path(event.path).name.startswith("#"):  # a file without a name, gone after any end
            continue
        if event.path == marks:
            if event.what == "write":
                parts[event.target] = events
                events = []
            continue
        events.append(event)
    return parts


def _whole_lines(text: str) -> list[str]:
    """Lines of the record, those put together that another thread interrupted."""
    begun: dict[str, str] = {}
    lines = []
    for line in text.splitlines():
        thread, _, rest = line.partition(" ")
        rest = rest.strip()
        if rest.endswith("<unfinished ...>"):
            begun[thread] = rest.removesuffix("<unfinished ...>")
        elif rest.startswith("<... "):
            lines.append(begun.pop(thread, "") + rest.partition("resumed>")[2])
        else:
            lines.append(rest)
    return lines


def _event(line: str) -> Event | None:
    match = _LINE.match(line)
    if match is None or int(match["result"]) < 0:
        return None
    what, args = _CALLS[match["call"]], match["args"]
    texts = _TEXT.findall(args)
    if what in ("write", "sync", "truncate") and (file := _FILE.match(args)):
        return Event(what, file["path"], texts[0] if texts else "")
    if what == "open" and not re.search(r"O_WRONLY|O_RDWR|O_TRUNC|O_APPEND", args):
        return None
    if what == "rename":
        return Event(what, texts[0], texts[1])
    return Event(what, texts[0]) if texts else None
