"""Where results go: standard output, written to the last byte, or a file that must be possible.

What a command says about its work goes to standard error.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path

from trellis.errors import DataError

__all__ = ["check_folder", "check_target", "flush_stdout", "say", "write_stdout"]


def say(text: str, *, quiet: bool = False) -> None:
    """Write a line to standard error, unless the command is to be quiet."""
    if not quiet:
        print(text, file=sys.stderr, flush=True)


def write_stdout(text: str, encoding: str | None = None) -> None:
    """Write a text to standard output and flush it.

    With no encoding, that of the terminal or pipe is used and what it cannot show is escaped.

    Raises
    ------
    OSError
        If not all of it could be written; the message names standard output.
    """
    if sys.stdout is None:  # the shell's >&-
        raise OSError(errno.EBADF, "It is closed", "standard output")
    raw = getattr(sys.stdout, "buffer", None)
    if raw is None:  # replaced by something that takes text only, e.g. in a notebook
        sys.stdout.write(text)
        return
    if encoding is None:
        left = memoryview(text.encode(sys.stdout.encoding or "utf-8", "backslashreplace"))
    else:
        left = memoryview(text.encode(encoding))
    try:
        sys.stdout.flush()
        while left:  # unbuffered (python -u), a nearly full disk takes a part and says so
            left = left[raw.write(left) :]
    except OSError as error:
        _discard_stdout()
        raise OSError(error.errno, error.strerror, "standard output") from error
    flush_stdout()


def flush_stdout() -> None:
    """Flush standard output here, where an error can still be told."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError as error:
        _discard_stdout()
        raise OSError(error.errno, error.strerror, "standard output") from error


def _discard_stdout() -> None:
    """Send what is left to nowhere; Python would try, and complain, once more at its exit."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def check_target(path: str) -> None:
    """Refuse an impossible output file before the work, not after."""
    target = Path(path)
    if target.is_dir():
        raise DataError(f"{path} is a folder; name a file to write")
    if target.exists() and not target.is_file():
        raise DataError(f"{path} is not a regular file; name a file to write")
    if not target.absolute().parent.is_dir():
        raise DataError(f"cannot write {path}: the folder {target.parent} does not exist")


def check_folder(path: str, option: str) -> Path:
    """The folder that an option names; refuses the name of a file."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is a file; name a folder with {option}")
    return folder
