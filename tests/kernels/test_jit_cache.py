"""Where compiled kernels are kept, and that a bad cache costs time, never an error."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from trellis.kernels import _jit

KINDS = (np.float64, np.float32)


def doubled(x):
    return x[0] * 2


# ------------------------------------------------------------------------- the folder


@pytest.fixture
def choose(monkeypatch, tmp_path):
    """The folder chosen under some environment; the temporary folder is ``tmp_path / "tmp"``."""
    for name in ("TRELLIS_CACHE", "XDG_CACHE_HOME", "HOME", "USERPROFILE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))

    def chosen(**environment: Path) -> Path:
        for name, value in environment.items():
            monkeypatch.setenv(name, str(value))
        return _jit.cache_dir.__wrapped__()

    return chosen


def test_the_folder_can_be_chosen(choose, tmp_path):
    folder = choose(TRELLIS_CACHE=tmp_path / "not" / "there yet", HOME=tmp_path)
    assert folder.parent == tmp_path / "not" / "there yet"
    assert folder.name.startswith("kernels-")
    assert stat.S_IMODE(folder.stat().st_mode) & 0o077 == 0 or os.name == "nt"
    assert not (tmp_path / ".cache").exists()


def test_without_a_choice_it_is_the_users_cache(choose, tmp_path):
    assert choose(HOME=tmp_path).parent == tmp_path / ".cache" / "trellis"
    assert choose(XDG_CACHE_HOME=tmp_path / "x").parent == tmp_path / "x" / "trellis"


def test_a_home_that_cannot_be_written_is_passed_over(choose, tmp_path):
    (tmp_path / "home").write_text("a file, so that no folder can be made in it")
    assert choose(HOME=tmp_path / "home").is_relative_to(tmp_path / "tmp")


def test_a_read_only_home_is_passed_over(choose, tmp_path):
    (tmp_path / "home").mkdir(mode=0o500)
    if os.access(tmp_path / "home", os.W_OK):
        pytest.skip("this user may write anywhere")
    assert choose(HOME=tmp_path / "home").is_relative_to(tmp_path / "tmp")


def test_no_home_at_all_is_passed_over(choose, tmp_path):
    assert choose().is_relative_to(tmp_path / "tmp")


def test_an_unusable_choice_is_passed_over_too(choose, tmp_path):
    (tmp_path / "file").write_text("")
    folder = choose(TRELLIS_CACHE=tmp_path / "file", HOME=tmp_path)
    assert folder.parent == tmp_path / ".cache" / "trellis"


def test_nowhere_to_write_gives_a_folder_for_this_run(choose, tmp_path):
    mine = tmp_path / "tmp" / f"trellis-{_jit._user()}"
    mine.write_text("in the way")
    folder = choose()
    assert folder.is_dir() and folder.parent == tmp_path / "tmp"


needs_root = pytest.mark.skipif(
    not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can give a folder away"
)


@needs_root
def test_a_cache_folder_of_somebody_else_is_not_trusted(choose, tmp_path):
    theirs = choose(TRELLIS_CACHE=tmp_path / "shared")
    os.chown(theirs, 12345, 12345)
    assert not choose().is_relative_to(tmp_path / "shared")


@needs_root
def test_a_temporary_folder_of_somebody_else_is_not_trusted(choose, tmp_path):
    """In a shared /tmp anybody may make it first, and exchange what is in it later."""
    parent = tmp_path / "tmp" / f"trellis-{_jit._user()}"
    parent.mkdir(mode=0o777)
    os.chown(parent, 12345, 12345)
    assert not choose().is_relative_to(parent)


# ------------------------------------------------------------------------- the files


@pytest.fixture
def cached(monkeypatch, tmp_path):
    """Compile the kernel as a new process would; its answers and the number from the cache."""
    monkeypatch.setattr(_jit, "cache_dir", lambda: tmp_path)

    def compiled(kinds=KINDS[:1]) -> tuple[list[float], int]:
        function = _jit.kernel(doubled)
        answers = [float(function(np.full(1, 1.5, kind))) for kind in kinds]
        return answers, sum(function.stats.cache_hits.values())

    return compiled


def damage(folder: Path, pattern: str, how: str) -> None:
    (file,) = folder.glob(pattern)
    data = file.read_bytes()
    if how == "missing":
        file.unlink()
    else:
        content = {"empty": b"", "truncated": data[: len(data) // 2], "garbage": b"garbage\n" * 20}
        file.write_bytes(content[how])


def test_compiled_code_is_kept_and_found_again(cached, tmp_path):
    assert cached(KINDS) == ([3.0, 3.0], 0)
    assert len(list(tmp_path.glob("*.nbc"))) == 2
    assert cached(KINDS) == ([3.0, 3.0], 2)


@pytest.mark.parametrize("how", ["empty", "truncated", "garbage", "missing"])
def test_damaged_code_is_compiled_anew(cached, tmp_path, how):
    cached()
    damage(tmp_path, "*.nbc", how)
    assert cached() == ([3.0], 0)
    assert cached() == ([3.0], 1)


@pytest.mark.parametrize("how", ["empty", "truncated", "garbage"])
def test_a_damaged_index_is_begun_anew(cached, tmp_path, how):
    cached()
    damage(tmp_path, "*.nbi", how)
    assert cached() == ([3.0], 0)
    assert cached() == ([3.0], 1)


def test_a_missing_index_is_begun_anew(cached, tmp_path):
    cached()
    damage(tmp_path, "*.nbi", "missing")
    assert cached() == ([3.0], 0)
    assert cached() == ([3.0], 1)


def test_code_of_another_signature_is_not_taken(cached, tmp_path):
    """Two processes that compile at once may leave an index that points to the other's code."""
    cached(KINDS)
    one, two = sorted(tmp_path.glob("*.nbc"))
    two.write_bytes(one.read_bytes())
    assert cached(KINDS) == ([3.0, 3.0], 1)
    assert cached(KINDS) == ([3.0, 3.0], 2)


def test_a_folder_that_vanished_costs_the_cache_only(cached, monkeypatch, tmp_path, caplog):
    monkeypatch.setattr(_jit, "cache_dir", lambda: tmp_path / "gone")
    (tmp_path / "gone").write_text("a file where the folder was")
    assert cached() == ([3.0], 0)
    assert "compiled kernel not kept" in caplog.text


PROGRAM = """
import numpy as np
from trellis.kernels._jit import kernel

@kernel
def doubled(x):
    return x[0] * 2

print(doubled(np.full(1, 1.5)), sum(doubled.stats.cache_hits.values()))
"""


def test_two_processes_at_once(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    environment = os.environ | {"TRELLIS_CACHE": str(tmp_path / "cache")}

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(file)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    for process in (start(), start()):
        out, err = process.communicate()
        assert process.returncode == 0, err
        assert out.startswith("3.0")
    assert not list((tmp_path / "cache").rglob("*.tmp.*"))
    assert start().communicate()[0] == "3.0 1\n"
