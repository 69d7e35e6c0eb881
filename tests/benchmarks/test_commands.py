"""Commands that the documentation quotes are there, with their options."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("studies/**/*.md"),
    *ROOT.glob("benchmarks/*.py"),
]  # fmt: skip
QUOTED = sorted(
    {
        (name, flag)
        for page in PAGES
        for name, more in re.findall(r"python -m benchmarks\.(\w+)([^`#\n]*)", page.read_text())
        for flag in re.findall(r"--[\w-]+", more) or [""]
        if name != "NAME"
    }
)


def test_commands_are_found():
    assert len({name for name, _ in QUOTED}) > 15


@pytest.mark.parametrize(("name", "flag"), QUOTED)
def test_command(name, flag):
    source = (ROOT / "benchmarks" / f"{name}.py").read_text()
    assert "__main__" in source
    option = flag.removeprefix("--").replace("-", "_")
    assert not option or option in ("small", "record") or f"{option}=(" in source
