"""Reading column files without a Python object per token.

A file is a byte buffer. ``split_fields`` finds its lines and fields; ``code_fields`` gives equal
fields equal integer codes, numbered in order of first appearance, by an open-addressing hash table
over the bytes themselves (exact: a hit is confirmed byte by byte). Python then decodes each
distinct field once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import kernel, subkernel
from trellis.kernels.rows import copy

__all__ = ["code_fields", "split_fields"]

Array = np.ndarray[Any, Any]

_NEWLINE, _RETURN, _TAB, _SPACE = 10, 13, 9, 32


@subkernel
def _starts_with(buffer: Array, start: int, end: int, prefix: Array) -> bool:
    if prefix.size == 0 or end - start < prefix.size:
        return False
    same = True
    for i in range(prefix.size):
        same &= buffer[start + i] == prefix[i]
    return same


@kernel
def split_fields(
    buffer: Array, tabs_only: bool, skip: Array
) -> tuple[Array, Array, Array, Array, Array]:
    """Find the fields of every line that is neither blank nor starts with ``skip``.

    Returns (line_ptr (n+1,), first (f,), last (f,), line_number (n,), sample_ptr (s+1,)): line k
    has the fields line_ptr[k]..line_ptr[k+1], field i the bytes first[i]..last[i], and blank lines
    end samples. Fields are separated by runs of spaces and tabs, or with ``tabs_only`` by single
    tabs (then fields may be empty).
    """
    size = buffer.size
    # First pass counts, second pass fills.
    line_ptr = np.zeros(1, np.int64)
    first = np.zeros(1, np.int64)
    last = np.zeros(1, np.int64)
    line_number = np.zeros(1, np.int64)
    sample_ptr = np.zeros(1, np.int64)
    for filling in range(2):
        n_lines = 0
        n_fields = 0
        n_samples = 0
        number = 0
        open_sample = False
        position = 0
        while position < size:
            number += 1
            start = position
            while position < size and buffer[position] != _NEWLINE:
                position += 1
            end = position
            position += 1
            if end > start and buffer[end - 1] == _RETURN:
                end -= 1
            blank = True
            for i in range(start, end):
                if buffer[i] != _SPACE and buffer[i] != _TAB:
                    blank = False
                    break
            if blank:
                if open_sample:
                    n_samples += 1
                    if filling:
                        sample_ptr[n_samples] = n_lines
                    open_sample = False
                continue
            if _starts_with(buffer, start, end, skip):
                continue
            open_sample = True
            i = start
            while i <= end:
                if tabs_only:
                    field_start = i
                    while i < end and buffer[i] != _TAB:
                        i += 1
                else:
                    while i < end and (buffer[i] == _SPACE or buffer[i] == _TAB):
                        i += 1
                    if i >= end:
                        break
                    field_start = i
                    while i < end and buffer[i] != _SPACE and buffer[i] != _TAB:
                        i += 1
                if filling:
                    first[n_fields] = field_start
                    last[n_fields] = i
                n_fields += 1
                i += 1
            if filling:
                line_number[n_lines] = number
                line_ptr[n_lines + 1] = n_fields
            n_lines += 1
        if open_sample:
            n_samples += 1
            if filling:
                sample_ptr[n_samples] = n_lines
        if not filling:
            line_ptr = np.zeros(n_lines + 1, np.int64)
            first = np.zeros(n_fields, np.int64)
            last = np.zeros(n_fields, np.int64)
            line_number = np.zeros(n_lines, np.int64)
            sample_ptr = np.zeros(n_samples + 1, np.int64)
    return line_ptr, first, last, line_number, sample_ptr


@subkernel
def _hash_bytes(buffer: Array, start: int, end: int) -> np.uint64:
    h = np.uint64(14695981039346656037)
    for i in range(start, end):
        h = (h ^ np.uint64(buffer[i])) * np.uint64(1099511628211)
    h = h ^ (h >> np.uint64(32))
    return h


@kernel
def code_fields(buffer: Array, first: Array, last: Array) -> tuple[Array, Array]:
    """Codes (n,) of the fields buffer[first[i]:last[i]], and the field where each code first stood.

    Returns (codes int32 (n,), where int64 (number of distinct fields,)).
    """
    n = first.size
    capacity = 1024
    slots = np.full(capacity, -1, np.int32)
    hashes = np.zeros(512, np.uint64)
    where = np.zeros(512, np.int64)
    n_codes = 0
    codes = np.empty(n, np.int32)
    for k in range(n):
        start = first[k]
        length = last[k] - start
        h = _hash_bytes(buffer, start, last[k])
        slot = np.int64(h & np.uint64(capacity - 1))
        code = -1
        while slots[slot] >= 0:
            candidate = slots[slot]
            if hashes[candidate] == h:
                other = first[where[candidate]]
                same = last[where[candidate]] - other == length
                if same:
                    for i in range(length):
                        if buffer[other + i] != buffer[start + i]:
                            same = False
                            break
                if same:
                    code = candidate
                    break
            slot = (slot + 1) & (capacity - 1)
        if code < 0:
            code = n_codes
            if n_codes == where.size:
                more_hashes = np.zeros(2 * n_codes, np.uint64)
                copy(hashes, more_hashes)
                hashes = more_hashes
                more_where = np.zeros(2 * n_codes, np.int64)
                copy(where, more_where)
                where = more_where
            hashes[code] = h
            where[code] = k
            slots[slot] = code
            n_codes += 1
            if 2 * n_codes > capacity:
                capacity *= 2
                slots = np.full(capacity, -1, np.int32)
                for c in range(n_codes):
                    slot = np.int64(hashes[c] & np.uint64(capacity - 1))
                    while slots[slot] >= 0:
                        slot = (slot + 1) & (capacity - 1)
                    slots[slot] = c
        codes[k] = code
    return codes, where[:n_codes].copy()
