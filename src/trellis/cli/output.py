"""Where results go: standard output, written to the last byte.

What a command says about its work goes to standard error. Labels, features and names of files are
other people's text: where people read it, it is printed with control characters escaped
(:func:`visible`), since these can rewrite a terminal. Results that are data, as of ``trellis tag``,
are exact in files and pipes, and escaped on a terminal only.
"""

from __future__ import annotations

import errno
import os
import sys
import unicodedata
from contextlib import suppress

from trellis.progress import nothing_drawn, write_line

__all__ = ["flush_stdout", "one_line", "say", "visible", "write_stdout"]

# Controls (but line breaks and tabs), format characters (those that turn the direction of writing
# among them, but not the joiners that Persian or Hindi need), lone surrogates, line separators.
_HIDDEN_CATEGORIES = ("Cc", "Cf", "Cs", "Zl", "Zp")
_HARMLESS = "\n\t\u200c\u200d"


def visible(text: str) -> str:
    r"""A text as it may be shown: control characters are escaped.

    Line breaks stay, Windows' as they are.

    Examples
    --------
    >>> print(visible("B-\x1b[2JNP"), visible("a\u202eb"), visible("caf\xe9"))
    B-\x1b[2JNP a\u202eb café
    """
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    lines = text.split("\r\n")
    return "\r\n".join("".join(map(_visible_character, line)) for line in lines)


def _visible_character(c: str) -> str:
    if c in _HARMLESS or unicodedata.category(c) not in _HIDDEN_CATEGORIES:
        return c
    return c.encode("unicode_escape").decode()


def one_line(text: str) -> str:
    r"""A text as it may be shown within a line: line breaks are escaped, too.

    Examples
    --------
    >>> print(one_line("two\nlines"))
    two\nlines
    """
    return visible(text).replace("\r", r"\r").replace("\n", r"\n")


def say(text: str, *, quiet: bool = False) -> None:
    """Write a line to standard error, unless the command is to be quiet."""
    if not quiet and sys.stderr is not None:
        write_line(visible(text), sys.stderr)


def write_stdout(text: str, encoding: str | None = None) -> None:
    """Write a text to standard output and flush it.

    With no encoding it is for people: that of the terminal or pipe is used, and what it cannot show
    and control characters are escaped. With one it is data, and exact unless a terminal shows it.

    Raises
    ------
    OSError
        If not all of it could be written; the message names standard output.
    """
    with nothing_drawn():
        _write_stdout(text, encoding)


def _write_stdout(text: str, encoding: str | None) -> None:
    if sys.stdout is None:  # the shell's >&-
        raise OSError(errno.EBADF, "It is closed", "standard output")
    if encoding is None or sys.stdout.isatty():
        text = visible(text)
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
