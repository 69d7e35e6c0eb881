"""The diffs that CONTRIBUTING shows are of the code as it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def diffs() -> list[tuple[str, str]]:
    """Files that diffs change, and the lines that must be there: kept or taken out."""
    found = []
    for block in re.findall(r"```diff\n(.*?)```", TEXT, re.DOTALL):
        parts = re.split(r"^# ([\w/.]+)(?::.*)?\n", block, flags=re.MULTILINE)[1:]
        found += list(zip(parts[::2], parts[1::2], strict=True))
    return found


def test_there_are_diffs():
    assert len(diffs()) >= 10


@pytest.mark.parametrize(("file", "change"), diffs())
def test_what_a_diff_starts_from_is_there(file, change):
    needed = [line for line in change.splitlines() if line[:1] != "+" and line.strip() != "..."]
    if not needed:  # a new file, or new lines only
        return
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    missing = [line for line in needed if line[1:] not in lines]
    assert not missing


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`((?:tests|docs)/[\w./-]+)`", TEXT))))
def test_named_files_are_there(name):
    assert (ROOT / name).exists()


def test_every_package_is_in_the_table():
    packages = {
        p.stem for p in (ROOT / "src" / "trellis").glob("[a-z]*") if p.suffix in ("", ".py")
    }
    table = TEXT[TEXT.index("| packages |") : TEXT.index("`load_model` finds")]
    assert packages == set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\|(.*?)\|", table, re.M))))
