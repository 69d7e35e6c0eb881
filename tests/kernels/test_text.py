"""The byte-level kernels of the readers against plain Python."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.kernels.text import code_fields, split_fields

FILES = st.lists(
    st.sampled_from([b"a", b"bc", b" ", b"\t", b"\n", b"\r\n", b"\r", b"#", b"\xff", b"\n\n"]),
    max_size=25,
).map(b"".join)


def split(data, tabs_only, skip):
    """Per kept line (number, fields as byte strings), and where samples end."""
    lines, ends = [], [0]
    for number, raw in enumerate(data.split(b"\n"), 1):
        line = raw.removesuffix(b"\r")
        if not line.strip(b" \t"):
            ends.append(len(lines))
        elif not (skip and line.startswith(skip)):
            lines.append(
                (number, line.split(b"\t") if tabs_only else re.findall(rb"[^ \t]+", line))
            )
    return lines, sorted({*ends, len(lines)})


@pytest.mark.parametrize("skip", [b"", b"#", b"a#"])
@pytest.mark.parametrize("tabs_only", [False, True])
@given(data=FILES)
def test_split_fields(tabs_only, skip, data):
    buffer = np.frombuffer(data, np.uint8)
    line_ptr, first, last, number, sample_ptr = split_fields(
        buffer, tabs_only, np.frombuffer(skip, np.uint8)
    )
    fields = [data[a:b] for a, b in zip(first, last, strict=True)]
    found = [(n, fields[a:b]) for n, a, b in zip(number, line_ptr[:-1], line_ptr[1:], strict=True)]
    lines, ends = split(data, tabs_only, skip)
    assert found == lines
    assert sample_ptr.tolist() == ends
    assert line_ptr[-1] == len(fields)


# Short and long ones, many with the same beginning or end, with zeros, which are bytes as others.
FIELDS = st.binary(max_size=3) | st.text("\0ab", max_size=20).map(str.encode)
ALIKE = st.tuples(
    st.sampled_from([b"", b"abcdefgh", b"abcdefghijklmnop"]),
    st.binary(max_size=1),
    st.sampled_from([b"", b"h", b"ijklmnop"]),
).map(b"".join)


@given(st.lists(FIELDS | ALIKE, max_size=40))
def test_code_fields(fields):
    last = np.cumsum([len(f) for f in fields], dtype=np.int64)
    first = last - np.array([len(f) for f in fields], np.int64)
    codes, where = code_fields(np.frombuffer(b"".join(fields), np.uint8), first, last)
    order = list(dict.fromkeys(fields))
    assert codes.tolist() == [order.index(f) for f in fields]
    assert where.tolist() == [fields.index(f) for f in order]
    assert codes.dtype == np.int32


def test_many_distinct_fields():
    """The tables grow several times; equal fields far apart still meet."""
    fields = [str(i).encode() for i in [*range(5000), *range(4999, -1, -1)]]
    last = np.cumsum([len(f) for f in fields])
    first = np.concatenate([[0], last[:-1]])
    codes, where = code_fields(np.frombuffer(b"".join(fields), np.uint8), first, last)
    assert codes.tolist() == [*range(5000), *range(4999, -1, -1)]
    assert where.tolist() == list(range(5000))
