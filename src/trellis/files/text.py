"""Text files: their name in messages, and their text, in UTF-8 without a byte-order mark."""

from __future__ import annotations

import os
from typing import IO, Any

from trellis.errors import DataError
from trellis.files.reading import open_text_bytes, source_name

__all__ = ["NOT_UTF8", "Source", "encode_text", "read_bytes", "read_text"]

Source = str | os.PathLike[Any] | IO[bytes] | IO[str]
"""Where a reader may read from: a path, ``"-"`` for standard input, or an open file."""

NOT_UTF8 = "not UTF-8 text; convert the file to UTF-8"

_BOM = b"\xef\xbb\xbf"


def read_bytes(source: Source) -> tuple[str, bytes]:
    """Name and content of a text file, without a byte-order mark; refuses NUL bytes."""
    name = source_name(source, "input")
    data = open_text_bytes(source).removeprefix(_BOM)
    if b"\0" in data:
        line = data[: data.index(b"\0")].count(b"\n") + 1
        raise DataError(f"{name}, line {line}: a NUL byte; this is not a text file")
    return name, data


def read_text(source: Source) -> tuple[str, str]:
    """Name and text of a file."""
    name, data = read_bytes(source)
    try:
        return name, data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise DataError(f"{name}, line {line}: {NOT_UTF8}") from None


def encode_text(text: str) -> bytes:
    """UTF-8 bytes of a file; if they start with a mark, with one more, since readers drop one."""
    data = text.encode("utf-8")
    return _BOM + data if data.startswith(_BOM) else data
