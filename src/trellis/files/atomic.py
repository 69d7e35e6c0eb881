"""Writing files that are never half there.

The new content goes to a temporary name in the same folder, is flushed to the disk, and then takes
the place of the old file in one step (``os.replace``). Whoever looks at the path sees the old file
or the complete new one, nothing between.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Literal, overload

from trellis.files.paths import display_name

__all__ = ["atomic_write"]


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
    temporary = target.parent / f".trellis-{secrets.token_hex(8)}.tmp"
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
