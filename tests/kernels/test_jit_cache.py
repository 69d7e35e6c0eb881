"""Where compiled kernels are kept, and that a bad cache costs time, never an error."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
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


@needs_root
def test_a_link_of_somebody_else_is_not_followed_to_a_folder_of_ours(choose, tmp_path):
    """They could point it to a folder of theirs once it has been looked at."""
    ours = tmp_path / "ours"
    ours.mkdir(mode=0o700)
    link = tmp_path / "tmp" / f"trellis-{_jit._user()}"
    link.symlink_to(ours)
    os.chown(link, 12345, 12345, follow_symlinks=False)
    folder = choose()
    assert not any(part.is_symlink() for part in [folder, *folder.parents])
    # What is used cannot be exchanged by whoever owns the link.
    link.unlink()
    link.symlink_to(tmp_path)
    assert folder.is_dir() and folder.is_relative_to(ours)


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="permissions are of another kind here")
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777, 0o720, 0o702])
@pytest.mark.parametrize("depth", ["folder", "parent"])
def test_a_folder_that_others_may_write_to_is_not_trusted(choose, tmp_path, caplog, mode, depth):
    folder = choose(HOME=tmp_path)
    place = folder if depth == "folder" else folder.parent
    place.chmod(mode)
    assert not choose(HOME=tmp_path).is_relative_to(tmp_path / ".cache")
    assert f"others may write to {place} (chmod go-w would change that)" in caplog.text
    place.chmod(0o700)
    assert choose(HOME=tmp_path) == folder


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="permissions are of another kind here")
def test_nor_one_in_a_folder_where_anybody_may_move_things(choose, tmp_path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    assert not choose(XDG_CACHE_HOME=tmp_path / "open").is_relative_to(tmp_path / "open")
    assert not choose(TRELLIS_CACHE=tmp_path / "open").is_relative_to(tmp_path / "open")
    (tmp_path / "open").chmod(0o1777)  # as folders of temporary files are
    assert choose(XDG_CACHE_HOME=tmp_path / "open").is_relative_to(tmp_path / "open")
    assert choose(TRELLIS_CACHE=tmp_path / "open").is_relative_to(tmp_path / "open")


@needs_root
def test_a_folder_inside_one_of_somebody_else_is_for_those_who_name_it(choose, tmp_path):
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o755)
    os.chown(theirs, 12345, 12345)
    assert not choose(HOME=theirs).is_relative_to(theirs)
    assert choose(TRELLIS_CACHE=theirs).is_relative_to(theirs)


def test_a_new_folder_is_private_whatever_the_umask(choose, tmp_path):
    before = os.umask(0)
    try:
        folder = choose(HOME=tmp_path)
    finally:
        os.umask(before)
    for place in (folder, folder.parent):
        assert stat.S_IMODE(place.stat().st_mode) == 0o700 or os.name == "nt"


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


def test_no_flipped_bit_reaches_the_processor(cached, tmp_path):
    """Of a hundred flipped bits in machine code, some would end the interpreter."""
    cached()
    (file,) = tmp_path.glob("*.nbc")
    whole = file.read_bytes()
    rng = np.random.default_rng(0)
    for place in [*rng.integers(0, len(whole), 200), *range(60)]:
        flipped = bytearray(whole)
        flipped[place] ^= 1 << int(rng.integers(8))
        file.write_bytes(flipped)
        function = _jit.kernel(doubled)
        key = function._cache._index_key((numba.float64[::1],), function.targetctx.codegen())
        assert function._cache._cache_file.load(key) is None
    file.write_bytes(whole)
    assert cached() == ([3.0], 1)


def test_code_of_another_signature_is_not_taken(cached, tmp_path):
    cached(KINDS)
    one, two = sorted(tmp_path.glob("*.nbc"))
    two.write_bytes(one.read_bytes())
    assert cached(KINDS) == ([3.0, 3.0], 1)
    assert cached(KINDS) == ([3.0, 3.0], 2)


def test_what_a_killed_process_left_is_swept_a_day_later(cached, tmp_path):
    old, new = tmp_path / "doubled.x.nbc.1.tmp", tmp_path / "doubled.x.nbc.2.tmp"
    for file in (old, new):
        file.write_bytes(b"half")
    os.utime(old, (0, 0))
    _jit._sweep.cache_clear()
    cached()
    assert not old.exists() and new.exists()


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


def run(file: Path, environment: dict[str, str], **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(file)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


@pytest.fixture
def program(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    return file


def test_several_processes_at_once(program, tmp_path):
    environment = os.environ | {"TRELLIS_CACHE": str(tmp_path / "cache")}
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: run(program, environment), range(4)))
    for result in results:
        assert result.returncode == 0, result.stderr
        assert result.stdout.startswith("3.0")
    assert len(list((tmp_path / "cache").rglob("*.nbc"))) == 1
    assert not list((tmp_path / "cache").rglob("*.tmp"))
    assert run(program, environment).stdout == "3.0 1\n"


def test_a_full_disk_costs_the_cache_only(program, tmp_path):
    resource = pytest.importorskip("resource")
    environment = os.environ | {"TRELLIS_CACHE": str(tmp_path / "cache")}

    def no_large_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # the write fails instead
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    result = run(program, environment, preexec_fn=no_large_files)
    assert (result.returncode, result.stdout) == (0, "3.0 0\n"), result.stderr
    assert "compiled kernel not kept" in result.stderr
    assert not [file for file in (tmp_path / "cache").rglob("*") if file.is_file()]


AS_NOBODY = """
import os, sys, tempfile
import numba, numpy as np
from trellis.kernels._jit import cache_dir, kernel

numba.njit(lambda x: x[0] * 2)(np.ones(1))  # what Numba imports late may not be readable later
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
tempfile.tempdir = sys.argv[1]

@kernel
def doubled(x):
    return x[0] * 2

print(doubled(np.full(1, 1.5)), sum(doubled.stats.cache_hits.values()), cache_dir())
"""


@needs_root
def test_an_install_that_cannot_be_written_and_no_home(tmp_path):
    """As a service runs: the package belongs to root, the user is nobody and lives nowhere."""
    closed = [p for p in Path(_jit.__file__).resolve().parents if not p.stat().st_mode & 0o001]
    if closed:
        pytest.skip("nobody may not look into the folder of the package")
    program, kept = tmp_path / "program.py", ("PATH", "PYTHONPATH")
    program.write_text(AS_NOBODY)
    environment = {name: value for name, value in os.environ.items() if name in kept}
    with tempfile.TemporaryDirectory() as shared:  # nobody may not look into that of the tests
        Path(shared).chmod(0o1777)

        def answer() -> list[str]:
            result = subprocess.run(
                [sys.executable, str(program), shared],
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            assert result.returncode == 0, result.stderr
            return result.stdout.split()

        value, hits, folder = answer()
        assert (value, hits) == ("3.0", "0")
        assert Path(folder).parent == Path(shared).resolve() / "trellis-65534"
        status = Path(folder).stat()
        assert status.st_uid == 65534 and stat.S_IMODE(status.st_mode) == 0o700
        assert answer() == ["3.0", "1", folder]
