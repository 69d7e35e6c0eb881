"""From a clone to the demo's page: how long a newcomer waits, and for what.

A fresh clone gets a new environment and everything from the package index (``make demo`` does the
same), and the demo is made with no kernel compiled before. All cores are used. How long the
installation takes depends on the network, and on what pip has kept from earlier ones.

    python -m benchmarks.demo
    python -m benchmarks.demo --rounds 1 --here      # no clone: this environment, empty cache
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.options import begin
from benchmarks.side_by_side import Seconds, Table, once

ROOT = Path(__file__).parents[1]


def call(*command: str, cwd: Path, cache: Path) -> str:
    """What a command says on its standard error; its kernels go to a folder of their own."""
    environment = {**os.environ, "TRELLIS_CACHE": str(cache)}
    ended = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    if ended.returncode:
        raise RuntimeError(f"{' '.join(command)}: {ended.stderr}")
    return ended.stderr


def a_round(folder: Path, here: bool, panels: list[str]) -> dict[str, float]:
    """Seconds of each step."""
    steps: dict[str, float] = {}
    at, python, cache = ROOT, sys.executable, folder / "cache"
    if not here:
        at = folder / "clone"
        clone = ("git", "clone", "--quiet", str(ROOT), str(at))
        steps["clone"] = once(lambda: call(*clone, cwd=folder, cache=cache))[1]
        install = ("make", "--silent", ".venv/.user")
        steps["environment and installation"] = once(lambda: call(*install, cwd=at, cache=cache))[1]
        python = str(at / ".venv" / "bin" / "python")
    demo = (
        python,
        "-m",
        "trellis",
        "demo",
        "--out",
        str(folder / "demo"),
        "--panels",
        ",".join(panels),
    )
    said, seconds = once(lambda: call(*demo, cwd=at, cache=cache))
    compiling = float(re.findall(r"ready after ([\d.]+) s", said)[0])
    steps["compiling"] = compiling
    steps["panels, page and start"] = seconds - compiling
    for title, took in re.findall(r"^(.*): ([\d.]+) s$", said, re.MULTILINE):
        steps[f"of which, side by side: {title}"] = float(took)
    return steps


def main() -> None:
    args = begin(
        __doc__,
        pin=False,
        rounds=(3, 1),
        here=(False, True, "no clone, no installation"),
        panels=(["words", "cells", "systems", "map", "labelling", "timing"], ["timing"]),
    )
    rounds = []
    for _ in range(args.rounds):
        with tempfile.TemporaryDirectory() as folder:
            rounds.append(a_round(Path(folder), args.here, args.panels))
    table = Table("from nothing to the page, wall", "step", "seconds (range over rounds)")
    parts = [name for name in rounds[0] if not name.startswith("of which")]
    table.add("all", Seconds(sum(r[name] for name in parts) for r in rounds))
    for name in rounds[0]:
        table.add(name, Seconds(r[name] for r in rounds))
    table.show()


if __name__ == "__main__":
    main()
