"""Machines that are full, locked or without a home: one-line errors, and nothing is lost.

What concerns the cache of compiled kernels is tested with it; here a cache is given.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import trellis
from trellis.cli import main
from trellis.kernels._jit import cache_dir

TEXT = "The D\ncat N\nsat V\n\na D\ndog N\nran V\n\n" * 4


def run(*commands: str, **options):
    """Run commands in a program of its own, one after the other, until one fails."""
    code = "import sys; from trellis.cli import main; "
    code += "sys.exit(next(filter(None, (main(a.split()) for a in sys.argv[1:])), 0))"
    return subprocess.run(
        [sys.executable, "-c", code, *commands],
        capture_output=True, text=True, check=False, **options,
    )  # fmt: skip


def environment(**changes: str | None) -> dict[str, str]:
    """The environment, but for some variables; the kernels stay where they are."""
    names = {**os.environ, "TRELLIS_CACHE": str(cache_dir().parent)}
    names |= {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    return {n: v for n, v in (names | changes).items() if v is not None}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "train.txt").write_text(TEXT)
    return tmp_path


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


@pytest.mark.skipif(os.name != "posix", reason="HOME")
@pytest.mark.parametrize("home", [None, "/nonexistent", "/proc"])
def test_without_a_home(place: Path, home: str | None) -> None:
    """Whatever HOME is, files are read and written where they are named, and nowhere else."""
    env = environment(HOME=home, XDG_CACHE_HOME=None, XDG_CONFIG_HOME=None)
    done = run("train train.txt -o m --quiet", "tag m train.txt", cwd=place, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("The D D\n") or done.stdout.startswith("The D\n")
    assert names(place) == ["m", "train.txt"]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="a folder that nobody can write to")
def test_a_folder_that_cannot_be_written(place: Path) -> None:
    done = run("train train.txt -o /proc/m", cwd=place, env=environment())
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("trellis: error: /proc/")
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="permissions")
def test_a_read_only_install(place: Path) -> None:
    """Nothing is written beside the code: a copy that nobody may write to works as well."""
    source = Path(trellis.__file__).parent
    copy = place / "site" / "trellis"
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
    before = sorted(p for p in copy.rglob("*"))
    for path in (*before, copy, copy.parent):
        path.chmod(0o555 if path.is_dir() else 0o444)
    env = environment(PYTHONPATH=str(copy.parent), PYTHONDONTWRITEBYTECODE="1")
    try:
        done = run("train train.txt -o m --quiet", "inspect m", cwd=place, env=env)
        assert (done.returncode, done.stderr) == (0, "")
        assert sorted(p for p in copy.rglob("*")) == before
    finally:
        for path in (copy.parent, copy, *before):
            path.chmod(0o755)


@pytest.mark.skipif(os.name != "posix", reason="RLIMIT_FSIZE")
def test_full_disk_everywhere(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every command that writes, with room for 300 bytes: one line, and the old file stays."""
    import resource

    monkeypatch.chdir(place)
    assert main(["train", "train.txt", "-o", "model", "--quiet"]) == 0
    (place / "out").write_text("old")
    (place / "long.txt").write_text(TEXT * 20)
    before = names(place)
    for line in (
        "train train.txt -o out --no-checkpoint",
        "train train.txt -o out",
        "prepare train.txt -o out",
        "tag model long.txt -o out",
        "tune train.txt --l2 1 --piece-size whole --folds 2 -o out",
    ):
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300, hard))
        try:
            code = main(line.split())
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        said = capsys.readouterr().err
        assert code == 1, line
        errors = [x for x in said.splitlines() if x.startswith("trellis: error: ")]
        assert len(errors) == 1, said
        assert "File too large" in errors[0]
        assert "Traceback" not in said
        assert (place / "out").read_text() == "old"
        assert names(place) == before


@pytest.mark.skipif(os.name != "posix", reason="RLIMIT_FSIZE")
def test_a_log_on_a_full_disk_goes_on_when_there_is_room(tmp_path: Path) -> None:
    """A record that did not fit is not there; those before it and after it are."""
    code = f"""
import resource, signal
from trellis.files.tuning_log import TuningLog
path = {str(tmp_path / "log")!r}
log = TuningLog(path, "data")
log.add("a", {{}}, 0, 0.5, 0.1)
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (200, hard))
try:
    log.add("b" * 500, {{}}, 0, 0.5, 0.1)
except OSError as error:
    print(error.strerror)
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
log.add("c", {{}}, 0, 0.5, 0.1)
print(sorted(TuningLog(path, "data").done))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("File too large\n['a', 'c']\n", "")
