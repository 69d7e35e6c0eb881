"""Reading whole inputs.

An input is a path, ``"-"`` for standard input, or an open file. Whether it is compressed (gzip,
bzip2, xz; any number of concatenated streams) is told from its first bytes, not its name.

A few kilobytes can decompress to more than any memory holds. So what is decompressed may not exceed
64 MiB, or 100 times the compressed size, whichever is more; text is compressed to a third or a
tenth. The environment variable ``TRELLIS_MAX_EXPANSION`` holds another number of times.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from trellis.errors import DataError
from trellis.files.paths import display_name

__all__ = ["open_text_bytes", "source_name"]

_CHUNK = 1 << 16
_MOST_AT_ONCE = 1 << 20  # bytes that one step may decompress to
_ALWAYS_ALLOWED = 1 << 26
_EXPANSION, _VARIABLE = 100.0, "TRELLIS_MAX_EXPANSION"
# A bzip2 stream opens with its level and then the first block's mark (or, when empty, the end
# mark); asking for both keeps a text that happens to begin with "BZh" a text.
_BZIP2_MARKS = (b"1AY&SY", b"\x17\x72\x45\x38\x50\x90")


def open_text_bytes(source: str | os.PathLike[Any] | IO[bytes] | IO[str]) -> bytes:
    r"""Read the whole of an input, decompressed.

    Parameters
    ----------
    source
        A path, ``"-"`` for standard input, or an open binary or text file. What a text file gives
        is returned as UTF-8.

    Returns
    -------
    bytes
        The content; gzip, bzip2 and xz are recognised by content and undone.

    Raises
    ------
    DataError
        If the input is missing, cannot be read, or is compressed and truncated, damaged, or would
        become larger than is allowed (see :mod:`trellis.files.reading`).

    Examples
    --------
    >>> import gzip, io
    >>> open_text_bytes(io.BytesIO(gzip.compress(b"The DT\n")))
    b'The DT\n'
    >>> open_text_bytes("no/such/file")
    Traceback (most recent call last):
    trellis.errors.DataError: cannot read no/such/file: No such file or directory
    """
    name = source_name(source, "the open file")
    try:
        data = _read_all(source)
    except OSError as error:
        raise DataError(f"cannot read {name}: {error.strerror or error}") from error
    except UnicodeError as error:
        raise DataError(f"cannot read {name}: not valid text: {error}") from error
    except ValueError as error:  # a closed file, a NUL in a path
        raise DataError(f"cannot read {name}: {error}") from error
    kind, new_decompressor = _compression(data)
    if new_decompressor is None:
        return data
    expansion = _max_expansion()
    try:
        return _decompress(data, new_decompressor, max(_ALWAYS_ALLOWED, expansion * len(data)))
    except _TooLargeError:
        raise DataError(
            f"cannot read {name}: decompressed, the {kind} data would take more than 64 MiB and "
            f"more than {expansion:g} times their size, as if made to fill the memory; if they are "
            f"what you expect, decompress the file first, or set the environment variable "
            f"{_VARIABLE} to a larger number of times"
        ) from None
    except MemoryError:
        raise
    except EOFError as error:
        raise DataError(f"cannot read {name}: the {kind} data is truncated") from error
    except Exception as error:  # each format has its own: zlib.error, LZMAError, OSError
        raise DataError(f"cannot read {name}: the {kind} data is damaged ({error})") from error


def source_name(source: object, unnamed: str) -> str:
    """How messages call an input: its path, the name of an open file, or what is given."""
    if isinstance(source, (str, os.PathLike)):
        return "standard input" if source == "-" else display_name(source)
    if not hasattr(source, "read"):
        kind = type(source).__name__
        raise DataError(f"cannot read a {kind}: give a path, '-' or an open file")
    name = getattr(source, "name", None)
    return display_name(name) if isinstance(name, str) else unnamed


def _read_all(source: str | os.PathLike[Any] | IO[bytes] | IO[str]) -> bytes:
    if isinstance(source, str) and source == "-":
        # A replaced sys.stdin (a StringIO, say) may have no bytes beneath it.
        source = getattr(sys.stdin, "buffer", sys.stdin)
    if isinstance(source, (str, os.PathLike)):
        return Path(os.fsdecode(source)).read_bytes()
    content: object = source.read()
    if isinstance(content, str):
        return content.encode()
    if isinstance(content, bytes):
        return content
    raise ValueError(f"its read() gave {type(content).__name__}, not bytes or str")


def _compression(data: bytes) -> tuple[str, Callable[[], Any] | None]:
    """Name the compression of `data` and give a maker of decompressors (None when plain)."""
    # Imported here because a Python may be built without one of them.
    if data.startswith(b"\x1f\x8b\x08"):
        import zlib

        return "gzip", lambda: zlib.decompressobj(wbits=31)  # 31: expect a gzip header and CRC
    if data.startswith(b"BZh") and data[4:10] in _BZIP2_MARKS:
        import bz2

        return "bzip2", bz2.BZ2Decompressor
    if data.startswith(b"\xfd7zXZ\x00"):
        import lzma

        return "xz", lambda: lzma.LZMADecompressor(format=lzma.FORMAT_XZ)
    return "plain", None


class _TooLargeError(Exception):
    """The data become larger than allowed."""


def _max_expansion() -> float:
    """How many times its own size an input may become."""
    text = os.environ.get(_VARIABLE) or str(_EXPANSION)
    try:
        times = float(text)
    except ValueError:
        times = math.nan
    if not times >= 1:
        raise DataError(f"{_VARIABLE} must be a number of at least 1, got {text!r}")
    return times


def _decompress(data: bytes, new_decompressor: Callable[[], Any], most: float) -> bytes:
    """Undo all concatenated streams of `data`; anything after them but zero padding is an error.

    The standard library's ``decompress`` functions drop a damaged second stream without a word,
    and copy the rest of the data at each stream; feeding chunks does neither.
    """
    parts: list[bytes] = []
    position = length = 0
    while position < len(data):
        if data[position] == 0:  # padding, allowed between and after streams
            chunk = data[position : position + _CHUNK]
            position += len(chunk) - len(chunk.lstrip(b"\0"))
            continue
        stream = new_decompressor()
        while not stream.eof:
            # gzip's gives back what it has not used, the others say that they need no more yet.
            more = getattr(stream, "needs_input", True)
            chunk = data[position : position + _CHUNK] if more else b""
            parts.append(stream.decompress(chunk, _MOST_AT_ONCE))
            if more and not chunk and not parts[-1]:
                raise EOFError
            left = len(stream.unused_data) + len(getattr(stream, "unconsumed_tail", b""))
            position += len(chunk) - left
            length += len(parts[-1])
            if length > most:
                raise _TooLargeError
    return b"".join(parts)
