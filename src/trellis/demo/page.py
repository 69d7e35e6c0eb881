"""The demo's page: panels made side by side in processes of their own, then one HTML file.

The file needs nothing but a browser: style, scripts, data and pictures are in it, and it asks no
server for anything. Kernels are compiled before the first panel starts, so that what a panel times
is its work.
"""

from __future__ import annotations

import html
import importlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

from trellis import __version__
from trellis.demo.elements import asset, script, summary_of
from trellis.domains import whole
from trellis.errors import DataError, TrellisError

__all__ = ["PANELS", "Made", "compile_kernels", "make_page", "make_panels", "run_panel"]

PANELS = ("words", "cells", "systems", "map", "labelling", "timing")
"""Names of the panels, in the order of the page."""

_SLOWEST = ("words", "labelling", "systems", "cells", "map", "timing")  # start first
_COMPILED = ("warm_rich", "warm_marginals", "warm_assignments", "warm_plain", "warm_few", "warm")
_PAUSE = 0.05  # seconds between two looks at the processes


@dataclass(frozen=True)
class Made:
    """A panel as it was made: its HTML and the seconds that took, or what went wrong."""

    name: str
    title: str
    html: str
    seconds: float
    error: str = ""

    @property
    def summary(self) -> str:
        """What it shows, in a sentence."""
        return f"failed: {self.error}" if self.error else summary_of(self.html)


def load(name: str) -> ModuleType:
    """The module of a panel."""
    if name not in PANELS:
        raise DataError(f"there is no panel {name!r}; there are {', '.join(PANELS)}")
    return importlib.import_module(f"trellis.demo.panels.{name}")


def compile_kernels(names: Sequence[str] = PANELS) -> float:
    """Compile what panels need, side by side; returns the seconds that took."""
    from trellis.warmup import warmup

    started = time.perf_counter()
    # What takes long and what has little in common with it begin; what panels share is then there
    # when the next needs it.
    parts = dict.fromkeys(part for name in names for part in load(name).WARM)
    warmup(sorted(parts, key=lambda part: _COMPILED.index(part.__name__)))
    return time.perf_counter() - started


def run_panel(name: str, seed: int) -> Made:
    """Make one panel in this process.

    Examples
    --------
    >>> run_panel("words", 0).title  # doctest: +SKIP
    'Read text without spaces'
    """
    module = load(name)
    whole(0).check("seed", seed)
    started = time.perf_counter()
    try:
        made, error = module.panel(seed), ""
    except TrellisError as reason:  # of one panel: the others are shown all the same
        made, error = "", str(reason)
    return Made(name, module.TITLE, made, time.perf_counter() - started, error)


def make_panels(
    names: Sequence[str], seed: int, told: Callable[[Made], None] = lambda made: None
) -> list[Made]:
    """Make panels, as many at a time as there are cores; ``told`` hears of each that is ready."""
    modules = {name: load(name) for name in names}
    found: dict[str, Made] = {}
    waiting = sorted(modules, key=_SLOWEST.index)
    running: dict[str, subprocess.Popen[bytes] | None] = {}
    with tempfile.TemporaryDirectory(prefix="trellis-demo-") as folder:
        try:
            while waiting or running:
                while waiting and len(running) < _cores():
                    name = waiting.pop(0)
                    running[name] = _start(name, seed, _answer_file(folder, name))
                for name, process in list(running.items()):
                    if process is None or process.poll() is not None:
                        del running[name]
                        whole_answer = process is not None and process.returncode == 0
                        # A process that failed is tried once more here, where its error is seen.
                        found[name] = (
                            Made(**json.loads(_answer_file(folder, name).read_bytes()))
                            if whole_answer
                            else run_panel(name, seed)
                        )
                        told(found[name])
                time.sleep(_PAUSE)
        finally:
            for process in running.values():
                if process is not None:
                    process.kill()
                    process.wait()
    return [found[name] for name in modules]


def _answer_file(folder: str, name: str) -> Path:
    return Path(folder, f"{name}.json")


def _start(name: str, seed: int, path: Path) -> subprocess.Popen[bytes] | None:
    """Make a panel in a Python of its own, silently; None if that cannot be started."""
    code = (
        f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import answer; "
        f"answer({name!r}, {seed!r}, {os.fspath(path)!r})"
    )
    quiet = subprocess.DEVNULL
    # There is a panel for each core already: threads of linear algebra would only wait.
    alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    if not sys.executable:  # Python inside another program
        return None
    try:
        return subprocess.Popen(
            [sys.executable, "-c", code], stdin=quiet, stdout=quiet, stderr=quiet, env=alone
        )
    except OSError:
        return None


def answer(name: str, seed: int, path: str) -> None:
    """What such a Python does: make a panel and write it down."""
    Path(path).write_text(json.dumps(asdict(run_panel(name, seed))), encoding="utf-8")


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def make_page(panels: Sequence[Made], seconds: float, compiling: float) -> str:
    """The page as one HTML text.

    Parameters
    ----------
    panels : list of Made
        What to show, in this order.
    seconds, compiling : float
        How long all of it took, and how much of that the kernels.

    Examples
    --------
    >>> page = make_page([Made("words", "Words", "<p>1 < 2</p>", 0.5)], 1.0, 0.2)
    >>> page.count('<section class="panel"'), "http" in page
    (1, False)
    """
    links = "".join(f'<a href="#{p.name}">{html.escape(p.title)}</a>' for p in panels)
    sections = "\n".join(_section(p) for p in panels)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Trellis: structured prediction, live</title>
<style>
{asset("trellis.pictures", "page.css")}
{asset("trellis.demo", "page.css")}
</style>
</head>
<body>
<header>
<h1>Trellis</h1>
<p>Label the words of a text, the letters of a word, the cells of a movie; combine what several
systems say; predict numbers on a map: fast, from little annotation, with honest uncertainty.</p>
<p>Everything on this page was computed on this machine just now, in {seconds:.0f} s, of which
{compiling:.0f} s went into compiling (once).</p>
<nav>{links}</nav>
</header>
<main>
{sections}
</main>
<footer>
<p>{html.escape(_circumstances())} This page asks no server for anything.</p>
</footer>
{script(asset("trellis.demo", "page.js"))}
</body>
</html>
"""


def _section(panel: Made) -> str:
    body = (
        f'<p class="note">This panel could not be made: {html.escape(panel.error)}</p>'
        if panel.error
        else panel.html
    )
    return (
        f'<section class="panel" id="{panel.name}"><h2>{html.escape(panel.title)}</h2>{body}'
        f'<p class="note">Made in {panel.seconds:.1f} s.</p></section>'
    )


def _circumstances() -> str:
    """Where and when the page was made, without naming the machine."""
    today = datetime.now(UTC).date()
    system = f"{platform.system()} {platform.machine()}"
    return (
        f"Made by Trellis {__version__} on {today}, Python {platform.python_version()}, {system}, "
        f"{_cores()} cores."
    )
