"""Text files: their name in messages, and their text, in UTF-8 without a byte-order mark."""

from __future__ import annotations

import io
import os
from typing import IO, Any

from trellis.errors import DataError
from trellis.files.atomic import atomic_write
from trellis.files.reading import open_text_bytes, source_name

__all__ = ["NOT_UTF8", "ReadText", "Source", "read_bytes", "read_text", "recoded", "write_text"]

Source = str | os.PathLike[Any] | IO[bytes] | IO[str]
"""Where a reader may read from: a path, ``"-"`` for standard input, or an open file."""

NOT_UTF8 = "not UTF-8 text; convert the file to UTF-8"

_BOM = b"\xef\xbb\xbf"


class ReadText(io.BytesIO):
    """What was read from a file, with its name: readers take it as it is.

    A second reading would drop what looks like a second byte-order mark, or unpack data once more.
    """

    def __init__(self, name: str, data: bytes) -> None:
        super().__init__(data)
        self.name = name


def read_bytes(source: Source) -> tuple[str, bytes]:
    """Name and content of a text file, without a byte-order mark; refuses NUL bytes."""
    if isinstance(source, ReadText):
        return source.name, source.getvalue()
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


def recoded(source: Source, encoding: str) -> ReadText:
    """A text file in another encoding, as readers take it."""
    name, data = source_name(source, "input"), open_text_bytes(source)
    try:
        text = data.decode(encoding)
    except LookupError:
        raise DataError(
            f"no encoding is called {encoding!r}; utf-8, cp1252 and utf-16 are"
        ) from None
    except UnicodeError:
        raise DataError(f"{name} is no text in {encoding}") from None
    return ReadText(name, text.removeprefix("\ufeff").encode("utf-8"))


def write_text(path: str | os.PathLike[Any], text: str) -> None:
    """Write a file that readers give back as this text, whole or not at all."""
    data = text.encode("utf-8")
    with atomic_write(path) as file:
        file.write(_BOM + data if data.startswith(_BOM) else data)  # readers drop one mark
