"""Damage of text: lines, fields and characters of a good file changed, few or many at a time."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
from collections.abc import Callable, Sequence

from fuzz.damage import damaged

__all__ = ["damaged_text"]

# What readers may stumble over, whatever the format.
_NUMBERS = "-1 0 1 2 3 9 1.5 1e5 1e400 -1e-400 nan inf NaN 007 1_000 99999999999 ٣ ²"
_LETTERS = "_ - a é e\u0301 𝒳 \u200b \u2028 \ufeff \xa0 \x0b \x1c \x85 \x1b[2J \x7f B-X I-X O BMES"
_SYNTAX = '# ## \\ \\: : = == , ; " "" \' [ ] [-1..1] { } {} [] null true ( ) & | @ @edge %x[0,0]'
_NAMES = "word pos label x y frame id"
_WORDS = f"{_NUMBERS} {_LETTERS} {_SYNTAX} {_NAMES}".split(" ")
_RAW = [b"\r", b"\r\n", b"\n", b"\n\n", b"\t", b"\t\t", b" ", b"  ", b"\0", b"\xff", b"\xc3"]
_RAW += [b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xf0\x9f\x98\x80", b"@edge 1 2", b"9" * 400]
_RAW += [b"[" * 3000, b"(" * 300]
_COMPRESS: list[Callable[[bytes], bytes]] = [
    lambda data: gzip.compress(data, mtime=0),
    bz2.compress,
    lzma.compress,
]
_SEPARATORS = (b" ", b"\t", b",", b":", b'"', b"=")


def damaged_text(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    """Text with one to five changes; now and then compressed, and that damaged."""
    for _ in range(rng.choice([1, 1, 1, 2, 3, 5])):
        data = _changed(data, others, rng)
    if rng.random() < 0.02:
        data = rng.choice(_COMPRESS)(data)
        if rng.random() < 0.5:
            data = damaged(data, others, rng)
    return data


def _changed(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    what = rng.randrange(8)
    if what <= 1:
        return damaged(data, others, rng) if data else rng.randbytes(8)
    if what == 2:  # a hostile word, in place of characters or between them
        word = rng.choice([rng.choice(_WORDS).encode(), rng.choice(_RAW)])
        here = rng.randrange(len(data) + 1)
        return data[:here] + word + data[here + rng.choice([0, 0, 1, len(word)]) :]
    if what <= 4:
        return _parts_changed(data, b"\n", others, rng)
    separator = rng.choice(_SEPARATORS)
    lines = data.split(b"\n")
    here = rng.randrange(len(lines))
    if what == 5:  # one field of all lines
        place = rng.randrange(4)
        word = rng.choice(_WORDS).encode()
        rows = [line.split(separator) for line in lines]
        for row in rows:
            if len(row) > place:
                row[place] = word
        return b"\n".join(separator.join(row) for row in rows)
    lines[here] = _parts_changed(lines[here], separator, lines, rng)
    return b"\n".join(lines)


def _parts_changed(
    data: bytes, separator: bytes, others: Sequence[bytes], rng: random.Random
) -> bytes:
    """Parts between separators left out, doubled, exchanged, replaced or put in."""
    parts = data.split(separator)
    here, there = rng.randrange(len(parts)), rng.randrange(len(parts))
    what = rng.randrange(6)
    if what == 0:
        del parts[here]
    elif what == 1:
        parts.insert(there, parts[here])
    elif what == 2:
        parts[here], parts[there] = parts[there], parts[here]
    elif what == 3:
        parts[here] = rng.choice(_WORDS).encode()
    elif what == 4:
        parts.insert(here, rng.choice(rng.choice(others).split(separator)))
    else:
        parts[here:here] = parts[here : here + 1] * rng.choice([2, 3, 50])
    return separator.join(parts)
