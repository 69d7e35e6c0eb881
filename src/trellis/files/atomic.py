"""Writing files that are never half there, not even after a power cut.

The new content goes to a temporary name in the same folder, is flushed to the disk, and then takes
the place of the old file in one step (``os.replace``); then the folder, which holds the names, is
flushed, too. Whoever looks at the path sees the old file or the complete new one, nothing between.

A temporary name says which file it is for and which process writes it. A process that was killed
leaves its file behind; the next one that writes the same file removes it.
"""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Literal, overload

from trellis.files.paths import display_name

__all__ = ["atomic_write", "sync_folder"]

# The longest part of a target's name that its temporary name shows, in bytes: some systems allow
# 143 in all.
_SHOWN = 40
_WRITER = re.compile(r"(?P<process>[1-9][0-9]{0,9})-(?P<started>[0-9]*)-[0-9a-f]{8}-")


@overload
def atomic_write(
    path: str | os.PathLike[Any], *, binary: Literal[True] = True
) -> AbstractContextManager[IO[bytes]]: ...
@overload
def atomic_write(
    path: str | os.PathLike[Any], *, binary: Literal[False]
) -> AbstractContextManager[IO[str]]: ...
@contextmanager
def atomic_write(path: str | os.PathLike[Any], *, binary: bool = True) -> Iterator[IO[Any]]:
    r"""Open a file for writing that appears at `path` only once it is complete.

    If the block raises anything (a full disk and Ctrl-C included), what was written is removed and
    an older file at `path` stays as it was. A new file gets the usual permissions (umask), a
    replaced one keeps its own; a symbolic link is followed.

    Parameters
    ----------
    path
        Where the file shall be.
    binary
        True for a binary file, False for a text file (UTF-8, lines end in ``\n`` everywhere).

    Yields
    ------
    file
        The open file. Do not close it.

    Raises
    ------
    OSError
        If the folder is missing, `path` is not a regular file or write-protected, or writing
        fails; the message names the path.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with atomic_write(folder / "tags.txt", binary=False) as file:
    ...     _ = file.write("The DT\n")
    >>> (folder / "tags.txt").read_text()
    'The DT\n'
    """
    name = os.fsdecode(path)
    old_mode = _mode_of_replaced(name)
    target = Path(os.path.realpath(name))
    if not target.parent.is_dir():
        raise FileNotFoundError(
            errno.ENOENT,
            f"Cannot write {display_name(name)}, create its folder",
            str(target.parent),
        )
    _remove_abandoned(target)
    temporary = target.parent / _temporary_name(target.name)
    file: IO[Any] | None = None
    try:
        if binary:
            file = temporary.open("xb")
        else:
            file = temporary.open("x", encoding="utf-8", newline="\n")
        if old_mode is not None:  # before the first byte, so that a private file stays private
            temporary.chmod(old_mode)
        yield file
        file.flush()
        os.fsync(file.fileno())
        file.close()
        temporary.replace(target)
        sync_folder(target.parent)
    except BaseException as error:
        if file is not None:
            with suppress(OSError):  # closing flushes, which fails again on a full disk
                file.close()
        with suppress(OSError):
            temporary.unlink()
        # A failed write() knows no file name; one raised by open() or replace() does.
        if isinstance(error, OSError) and error.errno is not None and error.filename is None:
            reason = f"{error.strerror} (while writing)"
            raise OSError(error.errno, reason, name) from error
        raise


def _mode_of_replaced(name: str) -> int | None:
    """Return the permissions of the file about to be replaced, None if there is none."""
    try:
        mode = os.stat(name).st_mode  # noqa: PTH116 (pathlib would turn "" into the folder ".")
    except FileNotFoundError:
        if not name:
            raise
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "Cannot write a file over a directory", name)
    if not stat.S_ISREG(mode):  # replacing /dev/null or a pipe would remove it
        raise OSError(errno.EINVAL, "Cannot replace what is not a regular file", name)
    if not os.access(name, os.W_OK):  # renaming over it would work, but is not what was meant
        raise PermissionError(errno.EACCES, "The existing file is write-protected", name)
    return stat.S_IMODE(mode)


def sync_folder(folder: Path) -> None:
    """Flush a folder, so that new names in it outlast a power cut; where a system can do that."""
    if os.name != "posix":  # a folder cannot be opened
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # it may be written to, but not read
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):  # not for folders here
            raise
    finally:
        os.close(descriptor)


# ------------------------------------------------------------------------------- temporary names
#
#     .trellis-TARGET-HOST-PROCESS-START-RANDOM-name.tmp
#
# TARGET is a hash of the target's name, HOST one of the machine, and START the time at which the
# process was started, which tells it from a later one with its number.


def _temporary_name(target: str) -> str:
    process = os.getpid()
    shown = target
    while len(os.fsencode(shown)) > _SHOWN:
        shown = shown[:-1]
    return f"{_mark_of(target)}{process}-{_started(process)}-{secrets.token_hex(4)}-{shown}.tmp"


def _mark_of(target: str) -> str:
    """What the temporary names of a target begin with, on this machine."""
    # Processes are numbered anew in each container.
    numbers = Path("/proc/self/ns/pid")
    space = numbers.readlink() if numbers.is_symlink() else ""
    return f".trellis-{_hash(os.fsencode(target))}-{_hash(f'{platform.node()} {space}'.encode())}-"


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:8]


def _remove_abandoned(target: Path) -> None:
    """Remove temporary files of this target whose processes have ended."""
    mark = _mark_of(target.name)
    with suppress(OSError):  # the folder may be written to, but not read
        for name in os.listdir(target.parent):  # noqa: PTH208 (no Path for each of many files)
            if not name.startswith(mark):
                continue
            writer = _WRITER.match(name, len(mark))
            if writer and not _is_alive(int(writer["process"]), writer["started"]):
                with suppress(OSError):  # open (Windows), another user's, or just removed
                    (target.parent / name).unlink()


def _is_alive(process: int, started: str) -> bool:
    """Whether a process of this machine, that began at this time, still goes on."""
    if os.name != "posix":  # there, files that are open cannot be removed
        return process == os.getpid()
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # of another user, or of no sensible number
        return True
    return _started(process) in ("", started)


def _started(process: int) -> str:
    """When a process was started, in ticks since the machine was; "" where that is not told."""
    try:
        line = Path(f"/proc/{process}/stat").read_text("latin-1")
    except OSError:
        return ""
    fields = line.rpartition(")")[2].split()  # from the third on: the second is the name in ()
    return "ended" if fields[0] in "ZX" else fields[19]  # Z: killed, and nobody has asked yet
