"""Reading inputs of every kind, and writing that is all or nothing."""

from __future__ import annotations

import bz2
import errno
import functools
import gzip
import io
import lzma
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.errors import DataError
from trellis.files import atomic_write, display_name, open_text_bytes, reading

COMPRESSORS = {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress}
TEXT = "".join(f"token{i} NN\n" for i in range(3000)).encode() + "café\n".encode()
# Random bytes do not compress, so that these streams span several reading chunks.
NOISE = bytes((i * i * 31 + (i >> 3) * 17) % 251 for i in range(300_000))


def reading_error(source: object) -> str:
    with pytest.raises(DataError) as caught:
        open_text_bytes(source)  # type: ignore[arg-type]
    message = str(caught.value)
    assert "\n" not in message
    return message


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# ---------------------------------------------------------------------------- reading


@pytest.mark.parametrize("content", [b"", b"a\n", TEXT, b"BZh9 is how this text begins"])
def test_plain_sources(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "data.gz"  # a name that lies
    path.write_bytes(content)
    assert open_text_bytes(path) == content
    assert open_text_bytes(str(path)) == content
    assert open_text_bytes(io.BytesIO(content)) == content
    assert open_text_bytes(io.StringIO(content.decode())) == content
    with path.open("rb") as file:
        assert open_text_bytes(file) == content


@pytest.mark.parametrize("kind", COMPRESSORS)
@pytest.mark.parametrize("content", [b"", TEXT, NOISE])
def test_compression_is_told_by_content(tmp_path: Path, kind: str, content: bytes) -> None:
    path = tmp_path / "data.txt"
    path.write_bytes(COMPRESSORS[kind](content))
    assert open_text_bytes(path) == content


@pytest.mark.parametrize("kind", COMPRESSORS)
def test_concatenated_streams_and_padding(kind: str) -> None:
    one, two = COMPRESSORS[kind](NOISE), COMPRESSORS[kind](TEXT)
    many = b"".join(COMPRESSORS[kind](b"x") for _ in range(50))
    assert open_text_bytes(io.BytesIO(one + two + many)) == NOISE + TEXT + b"x" * 50
    assert open_text_bytes(io.BytesIO(one + bytes(8) + two + bytes(200_000))) == NOISE + TEXT


@given(st.binary(max_size=300), st.sampled_from(sorted(COMPRESSORS)))
def test_round_trip_of_any_content(content: bytes, kind: str) -> None:
    assert open_text_bytes(io.BytesIO(COMPRESSORS[kind](content))) == content


@pytest.mark.parametrize("kind", COMPRESSORS)
def test_truncated_anywhere(kind: str) -> None:
    whole = COMPRESSORS[kind](TEXT[:200])
    for length in range(10, len(whole)):
        source = io.BytesIO(whole[:length])
        source.name = "corpus.txt"
        assert reading_error(source) == f"cannot read corpus.txt: the {kind} data is truncated"
    # A truncated second stream is no less an error.
    assert "truncated" in reading_error(io.BytesIO(whole + whole[:-3]))


@pytest.mark.parametrize("kind", COMPRESSORS)
def test_damaged(kind: str) -> None:
    whole = COMPRESSORS[kind](TEXT[:2000])
    middle = len(whole) // 2
    damaged = whole[:middle] + bytes([whole[middle] ^ 0x55]) + whole[middle + 1 :]
    message = reading_error(io.BytesIO(damaged))
    assert message.startswith("cannot read the open file: the ")
    # Either is a fair description of wrong bits: they may hide the end of the stream.
    assert f"the {kind} data is damaged (" in message or "truncated" in message
    assert f"the {kind} data is damaged (" in reading_error(io.BytesIO(whole + b"garbage" * 9))
    assert f"the {kind} data is damaged (" in reading_error(io.BytesIO(whole + b"\xff" + whole[1:]))


BOMB = bytes(100_000_000)


@functools.cache
def bomb(kind: str) -> bytes:
    return COMPRESSORS[kind](BOMB)


@pytest.mark.parametrize("kind", COMPRESSORS)
def test_what_would_fill_the_memory(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRELLIS_MAX_EXPANSION", raising=False)
    source = io.BytesIO(bomb(kind))
    source.name = "corpus.txt"
    assert reading_error(source) == (
        f"cannot read corpus.txt: decompressed, the {kind} data would take more than 64 MiB and "
        "more than 100 times their size, as if made to fill the memory; if they are what you "
        "expect, decompress the file first, or set the environment variable TRELLIS_MAX_EXPANSION "
        "to a larger number of times"
    )
    for times in ("1e9", "inf"):
        monkeypatch.setenv("TRELLIS_MAX_EXPANSION", times)
        assert open_text_bytes(io.BytesIO(bomb(kind))) == BOMB


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory in use is not told")
@pytest.mark.parametrize("kind", COMPRESSORS)
def test_little_is_decompressed_before_it_is_refused(kind: str) -> None:
    """Not even one step goes far beyond the limit: 64 MiB of 300 MB, with 200 MB to have."""
    code = f"""
import io, resource
from test_reading_and_writing import bomb
from trellis.files import open_text_bytes
data = bomb({kind!r}) * 3
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + 200_000_000
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    open_text_bytes(io.BytesIO(data))
except Exception as error:
    print(type(error).__name__, "64 MiB" in str(error))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        cwd=Path(__file__).parent,
    )  # fmt: skip
    assert done.stdout == "DataError True\n"


def test_text_that_compresses_well_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    many = TEXT * 500  # 23 MB, 500 times the same
    assert open_text_bytes(io.BytesIO(lzma.compress(many, preset=0))) == many
    noisy = os.urandom(1_000_000)
    large = noisy + bytes(69_000_000)  # more than 64 MiB, 70 times its size
    assert open_text_bytes(io.BytesIO(gzip.compress(large, 1))) == large


def test_lack_of_memory_is_no_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    def decompress(*arguments: object) -> bytes:
        raise MemoryError

    monkeypatch.setattr(reading, "_decompress", decompress)
    with pytest.raises(MemoryError):
        open_text_bytes(io.BytesIO(gzip.compress(b"The DT\n")))


@pytest.mark.parametrize("times", ["0", "-1", "nan", "many", "0.5"])
def test_limits_that_are_none(times: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRELLIS_MAX_EXPANSION", times)
    message = f"TRELLIS_MAX_EXPANSION must be a number of at least 1, got {times!r}"
    assert reading_error(io.BytesIO(gzip.compress(b"x"))) == message
    assert open_text_bytes(io.BytesIO(b"not compressed")) == b"not compressed"


def test_unreadable_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = tmp_path / "none.txt"
    assert reading_error(missing) == f"cannot read {missing}: No such file or directory"
    assert reading_error(tmp_path) == f"cannot read {tmp_path}: Is a directory"
    assert reading_error("").startswith("cannot read '': ")
    assert "null byte" in reading_error("a\0b")
    assert reading_error("two\nlines").startswith(r"cannot read 'two\nlines': ")

    def refuse(self: Path) -> bytes:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert reading_error("secret.txt") == "cannot read secret.txt: Permission denied"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_real_permission(tmp_path: Path) -> None:
    path = tmp_path / "secret.txt"
    path.write_bytes(b"x")
    path.chmod(0)
    assert "Permission denied" in reading_error(path)


def test_unusable_objects(tmp_path: Path) -> None:
    assert reading_error(7) == "cannot read a int: give a path, '-' or an open file"
    closed = io.BytesIO(b"x")
    closed.close()
    assert reading_error(closed) == "cannot read the open file: I/O operation on closed file."

    class Strange:
        name = "strange"

        def read(self) -> None:
            return None

    assert reading_error(Strange()) == (
        "cannot read strange: its read() gave NoneType, not bytes or str"
    )
    path = tmp_path / "latin.txt"
    path.write_bytes("é".encode("latin-1"))
    with path.open(encoding="utf-8") as file:
        assert f"cannot read {path}: not valid text: " in reading_error(file)
    assert "not valid text" in reading_error(io.StringIO("\ud800"))


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import sys; from trellis.files import *; sys.stdout.buffer.write(open_text_bytes('-'))"
    for data in (TEXT, gzip.compress(TEXT)):
        done = subprocess.run([sys.executable, "-c", code], input=data, stdout=-1, check=True)
        assert done.stdout == TEXT
    monkeypatch.setattr(sys, "stdin", io.StringIO("é"))
    assert open_text_bytes("-") == "é".encode()
    monkeypatch.setattr(sys, "stdin", io.BytesIO(gzip.compress(TEXT)[:100]))
    assert reading_error("-") == "cannot read standard input: the gzip data is truncated"


# ---------------------------------------------------------------------------- writing


def test_new_file_and_replacement(tmp_path: Path) -> None:
    path = tmp_path / "out.bin"
    with atomic_write(path) as file:
        file.write(b"one")
        assert not path.exists()
    assert path.read_bytes() == b"one"
    with atomic_write(str(path)) as file:
        file.write(b"two")
        file.flush()
        assert path.read_bytes() == b"one"
    assert path.read_bytes() == b"two"
    assert names(tmp_path) == ["out.bin"]


def test_text_is_utf8_with_unix_lines(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    with atomic_write(path, binary=False) as file:
        file.write("café\n")
    assert path.read_bytes() == b"caf\xc3\xa9\n"


def test_name_as_long_as_the_system_allows(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    with atomic_write(path) as file:
        file.write(b"x")
    assert path.read_bytes() == b"x"


def test_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with atomic_write("out.bin") as file:
        file.write(b"x")
    assert (tmp_path / "out.bin").read_bytes() == b"x"


@pytest.mark.skipif(os.name != "posix", reason="POSIX permissions")
def test_permissions(tmp_path: Path) -> None:
    path = tmp_path / "out.bin"
    old_mask = os.umask(0o027)
    try:
        with atomic_write(path) as file:
            file.write(b"x")
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        for mode in (0o600, 0o666, 0o755):
            path.chmod(mode)
            with atomic_write(path) as file:
                (temporary,) = tmp_path.glob(".*")
                assert stat.S_IMODE(temporary.stat().st_mode) == mode
                file.write(b"y")
            assert stat.S_IMODE(path.stat().st_mode) == mode
    finally:
        os.umask(old_mask)


@pytest.mark.skipif(os.name != "posix", reason="POSIX links")
def test_symbolic_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "model", tmp_path / "link"
    link.symlink_to(target)
    for content in (b"through a dangling link", b"through a good one"):
        with atomic_write(link) as file:
            file.write(content)
        assert link.is_symlink()
        assert target.read_bytes() == content


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("existed", [True, False])
@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("boom"),
        KeyboardInterrupt(),
        SystemExit(3),
        FileNotFoundError(errno.ENOENT, "No such file", "some other file"),
        OSError("without a number"),
    ],
)
def test_any_exception_leaves_the_old_file(
    tmp_path: Path, binary: bool, existed: bool, error: BaseException
) -> None:
    path = tmp_path / "out"
    if existed:
        path.write_bytes(b"old")
    with pytest.raises(type(error)) as caught, atomic_write(path, binary=binary) as file:  # type: ignore[call-overload]
        file.write(b"half" if binary else "half")
        raise error
    assert caught.value is error
    assert names(tmp_path) == (["out"] if existed else [])
    assert not existed or path.read_bytes() == b"old"


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"old")

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if step == "fsync":
        monkeypatch.setattr(os, "fsync", fail)
    elif step == "replace":
        monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="No space left") as caught, atomic_write(path) as file:
        file.write(b"half")
        if step == "write":
            fail()
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(path)
    assert str(caught.value).endswith(f"(while writing): '{path}'")
    assert names(tmp_path) == ["out"]
    assert path.read_bytes() == b"old"


@pytest.mark.skipif(os.name != "posix", reason="RLIMIT_FSIZE")
@pytest.mark.parametrize("size", [5_000, 5_000_000])  # fails in flush, fails in write
def test_write_that_really_fails(tmp_path: Path, size: int) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"old")
    code = f"""
import resource
from trellis.files import atomic_write
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
try:
    with atomic_write({str(path)!r}) as file:
        file.write(bytes({size}))
except OSError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"[Errno {errno.EFBIG}] File too large (while writing): '{path}'\n"
    assert done.stderr == ""
    assert names(tmp_path) == ["out"]
    assert path.read_bytes() == b"old"


def test_failing_close_does_not_hide_the_interrupt(tmp_path: Path) -> None:
    code = f"""
import resource
from trellis.files import atomic_write
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
try:
    with atomic_write({str(tmp_path / "out")!r}) as file:
        file.write(bytes(5000))  # stays in the buffer, so that closing fails
        raise KeyboardInterrupt
except KeyboardInterrupt:
    print("interrupted")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("interrupted\n", "")
    assert names(tmp_path) == []


def test_places_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def attempt(path: str | Path, kind: type[OSError], match: str) -> None:
        before = names(tmp_path)
        with pytest.raises(kind, match=match) as caught, atomic_write(path):
            pytest.fail("the block must not run")
        assert "\n" not in str(caught.value)
        assert names(tmp_path) == before

    attempt(tmp_path / "no" / "out", FileNotFoundError, r"Cannot write .*out, create its folder: ")
    attempt(tmp_path, IsADirectoryError, "Cannot write a file over a directory: ")
    attempt("", FileNotFoundError, "No such file")
    (tmp_path / "file").write_bytes(b"old")
    attempt(tmp_path / "file" / "out", NotADirectoryError, "file/out")
    monkeypatch.setattr(os, "access", lambda *_: False)
    attempt(tmp_path / "file", PermissionError, "The existing file is write-protected: .*file")
    assert (tmp_path / "file").read_bytes() == b"old"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_a_pipe_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"), atomic_write(tmp_path / "pipe"):
        pytest.fail("the block must not run")
    assert (tmp_path / "pipe").is_fifo()


def test_display_name() -> None:
    assert display_name(Path("a b/é.txt")) == "a b/é.txt"
    assert display_name("") == "''"
    assert display_name("esc\x1b[31m") == r"'esc\x1b[31m'"
    assert display_name(os.fsdecode(b"\xff")) == r"'\udcff'"
