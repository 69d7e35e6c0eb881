"""Reading column files without a Python object per token.

A file is a byte buffer. ``split_fields`` finds its lines and fields; ``code_fields`` gives equal
fields equal integer codes, numbered in order of first appearance, by an open-addressing hash table
over the bytes themselves (exact: a hit is confirmed by all bytes). Python then decodes each
distinct field once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import kernel, subkernel
from trellis.kernels.eight_bytes import eight_bytes
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
    n_lines, n_fields = _at_most(buffer, tabs_only)
    line_ptr = np.zeros(n_lines + 1, np.int64)
    first = np.empty(n_fields, np.int64)
    last = np.empty(n_fields, np.int64)
    line_number = np.empty(n_lines, np.int64)
    sample_ptr = np.zeros(n_lines + 1, np.int64)
    n_lines = n_fields = n_samples = number = position = 0
    open_sample = False
    while position < size:
        number += 1
        start = position
        blank = True
        while position < size and buffer[position] != _NEWLINE:
            position += 1
        end = position
        position += 1
        if end > start and buffer[end - 1] == _RETURN:
            end -= 1
        for i in range(start, end):
            if buffer[i] != _SPACE and buffer[i] != _TAB:
                blank = False
                break
        if blank:
            if open_sample:
                n_samples += 1
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
            first[n_fields] = field_start
            last[n_fields] = i
            n_fields += 1
            i += 1
        line_number[n_lines] = number
        n_lines += 1
        line_ptr[n_lines] = n_fields
    if open_sample:
        n_samples += 1
        sample_ptr[n_samples] = n_lines
    return (
        line_ptr[: n_lines + 1],
        first[:n_fields],
        last[:n_fields],
        line_number[:n_lines],
        sample_ptr[: n_samples + 1].copy(),  # what outlives the rest
    )


@subkernel
def _at_most(buffer: Array, tabs_only: bool) -> tuple[int, int]:
    """Numbers of lines and of fields that a buffer has at most."""
    n_lines = n_tabs = n_starts = 1
    for i in range(buffer.size):
        n_lines += buffer[i] == _NEWLINE
        n_tabs += buffer[i] == _TAB
    for i in range(buffer.size - 1):
        n_starts += _divides(buffer[i]) & (not _divides(buffer[i + 1]))
    return n_lines, n_lines + n_tabs if tabs_only else n_starts


@subkernel
def _divides(byte: int) -> bool:
    return (byte == _SPACE) | (byte == _TAB) | (byte == _NEWLINE)


# Strings as numbers. One of up to seven bytes is its number: the bytes, and their count in the
# eighth. A longer one has its hash, with an eighth byte that is no such count, and is compared.
_SHORT, _TOP, _LONG = 8, np.uint64(56), np.uint64(255)
_ODD, _HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)


@subkernel
def _number(buffer: Array, start: int, length: int) -> np.uint64:
    if length < _SHORT:
        number = np.uint64(0)
        if start + 8 <= buffer.size:
            kept = (np.uint64(1) << np.uint64(8 * length)) - np.uint64(1)
            number = eight_bytes(buffer, start) & kept
        else:
            for i in range(length):
                number |= np.uint64(buffer[start + i]) << np.uint64(8 * i)
        return number | (np.uint64(length) << _TOP)
    number = np.uint64(length)
    for i in range(0, length - 7, 8):
        number = _mixed(number ^ eight_bytes(buffer, start + i))
    return _mixed(number ^ eight_bytes(buffer, start + length - 8)) | (_LONG << _TOP)


@subkernel
def _mixed(number: np.uint64) -> np.uint64:
    number *= _ODD
    return number ^ (number >> _HALF)


@subkernel
def _same(buffer: Array, a: int, b: int, length: int) -> bool:
    i = 0
    while i < length and buffer[a + i] == buffer[b + i]:
        i += 1
    return i == length


@kernel
def code_fields(buffer: Array, first: Array, last: Array) -> tuple[Array, Array]:
    """Codes (n,) of the fields buffer[first[i]:last[i]], and the field where each code first stood.

    Returns (codes int32 (n,), where int64 (number of distinct fields,)).
    """
    codes = np.empty(first.size, np.int32)
    capacity = 1024
    slot_codes = np.full(capacity, -1, np.int32)
    slot_numbers = np.empty(capacity, np.uint64)
    where = np.empty(capacity // 2, np.int64)
    done = n_codes = 0
    while True:
        done, n_codes = _code_some(
            buffer, first, last, done, slot_codes, slot_numbers, where, n_codes, codes
        )
        if done == first.size:
            return codes, where[:n_codes].copy()
        capacity *= 4
        more_codes = np.full(capacity, -1, np.int32)
        more_numbers = np.empty(capacity, np.uint64)
        mask = np.uint64(capacity - 1)
        for k in range(slot_codes.size):
            if slot_codes[k] >= 0:
                slot = _mixed(slot_numbers[k]) & mask
                while more_codes[slot] >= 0:
                    slot = (slot + np.uint64(1)) & mask
                more_codes[slot] = slot_codes[k]
                more_numbers[slot] = slot_numbers[k]
        more_where = np.empty(capacity // 2, np.int64)
        copy(where, more_where)
        slot_codes, slot_numbers, where = more_codes, more_numbers, more_where


@subkernel
def _code_some(
    buffer: Array,
    first: Array,
    last: Array,
    start: int,
    slot_codes: Array,
    slot_numbers: Array,
    where: Array,
    n_codes: int,
    codes: Array,
) -> tuple[int, int]:
    """Code the fields from ``start`` on, until all are or the table is half full.

    Returns the first field that is not coded, and the number of codes.
    """
    mask = np.uint64(slot_codes.size - 1)
    for k in range(start, first.size):
        length = last[k] - first[k]
        number = _number(buffer, first[k], length)
        slot = _mixed(number) & mask
        while True:
            code = slot_codes[slot]
            if code < 0:
                if n_codes == where.size:
                    return k, n_codes
                code = n_codes
                slot_codes[slot] = code
                slot_numbers[slot] = number
                where[code] = k
                n_codes += 1
                break
            if slot_numbers[slot] == number:
                other = where[code]
                if length < _SHORT or (
                    last[other] - first[other] == length
                    and _same(buffer, first[other], first[k], length)
                ):
                    break
            slot = (slot + np.uint64(1)) & mask
        codes[k] = code
    return first.size, n_codes
