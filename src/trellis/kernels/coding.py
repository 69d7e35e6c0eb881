"""Column algebra on integer codes: shifting within samples, combining codes, coding keys.

A template is a product of terms; the value of a term at position t is a code ≥ 0, or −1 for
«nothing». A conjunction's *key* is the mixed-radix number of its terms' codes. Keys are turned into
dense ids by a direct table when the radix product is small and by an open-addressing hash table
otherwise; both are exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import kernel, subkernel
from trellis.kernels.prefetch import prefetch
from trellis.kernels.rows import fill

__all__ = ["assemble", "code_direct", "code_hashed", "fold_terms", "rebuild_hash", "take_ids"]

Array = np.ndarray[Any, Any]

_AHEAD = 16  # keys whose slots are fetched before they are looked at


@kernel
def fold_terms(codes: Array, terms: Array, offsets: Array, marks: int, keys: Array) -> None:
    """keys[t] ← the mixed-radix number of the terms' codes, or −1 where one of them is nothing.

    A row of ``terms`` is (row of ``codes``, shift, radix): its code at t is codes[row, t + shift].
    Positions beyond the sample give nothing, or, with marks > 0, the boundary symbols
    0 .. marks − 1 (two for each distance: before, after), real codes then start at ``marks``.
    ``offsets`` are sample bounds relative to ``codes``.
    """
    low = high = 0
    for i in range(len(terms)):
        low = min(low, terms[i, 1])
        high = max(high, terms[i, 1])
    # As if all were one sample: loops over slices from 0 on run several positions at a time.
    n = max(0, keys.size + low - high)
    inside = keys[-low : n - low]
    fill(inside, 0)
    for i in range(len(terms)):
        row, start, radix = terms[i, 0], terms[i, 1] - low, terms[i, 2]
        source = codes[row, start : start + n]
        for t in range(n):
            code = np.int64(source[t])
            inside[t] = inside[t] * radix + (code + marks) if (inside[t] | code) >= 0 else -1
    for s in range(offsets.size - 1):
        a, b = offsets[s], offsets[s + 1]
        left = min(a - low, b)
        for t in range(a, left):
            keys[t] = _key(codes, terms, a, b, marks, t)
        for t in range(max(left, b - high), b):
            keys[t] = _key(codes, terms, a, b, marks, t)


@subkernel
def _key(codes: Array, terms: Array, a: int, b: int, marks: int, t: int) -> int:
    """Key of position t of the sample a .. b − 1."""
    key = 0
    for i in range(len(terms)):
        u = t + terms[i, 1]
        if a <= u < b:
            code = int(codes[terms[i, 0], u])
            if code >= 0:
                code += marks
        elif marks > 0:
            code = 2 * (a - u - 1) if u < a else 2 * (u - b) + 1
        else:
            code = -1
        if code < 0:
            return -1
        key = key * terms[i, 2] + code
    return key


@kernel
def take_ids(codes: Array, ids: Array) -> None:
    """codes[t] ← ids[codes[t]]; −1 stays −1."""
    if ids.size == 0:
        fill(codes, -1)
        return
    for t in range(codes.size):
        at = ids[max(codes[t], 0)]
        codes[t] = at if codes[t] >= 0 else -1


@kernel
def code_direct(keys: Array, table: Array, n_codes: int, new_keys: Array, out: Array) -> int:
    """out[t] ← table[keys[t]]; number of codes.

    Keys that are new get the next codes, and are written to ``new_keys``, if that is as long as
    ``keys``; they have none if it is empty.
    """
    if new_keys.size == 0:
        if table.size == 0:
            fill(out, -1)
            return n_codes
        for t in range(keys.size):
            code = table[max(keys[t], 0)]
            out[t] = code if keys[t] >= 0 else -1
        return n_codes
    n_known = n_codes
    for t in range(keys.size):
        key = keys[t]
        if key < 0:
            out[t] = -1
            continue
        code = table[key]
        if code < 0:
            code = n_codes
            table[key] = code
            new_keys[n_codes - n_known] = key
            n_codes += 1
        out[t] = code
    return n_codes


@subkernel
def _slot(key: int, capacity: int) -> np.int64:
    h = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    h ^= h >> np.uint64(29)
    h *= np.uint64(0xBF58476D1CE4E5B9)
    h ^= h >> np.uint64(32)
    return np.int64(h & np.uint64(capacity - 1))


@kernel
def code_hashed(
    keys: Array, slot_keys: Array, slot_codes: Array, n_codes: int, new_keys: Array, out: Array
) -> int:
    """As ``code_direct`` with a hash table, which must have room: 2 · (n_codes + keys) slots."""
    capacity = slot_keys.size
    n_known = n_codes
    for t in range(keys.size):
        ahead = _slot(keys[min(t + _AHEAD, keys.size - 1)], capacity)
        prefetch(slot_keys, ahead, 0)
        prefetch(slot_codes, ahead, 0)
        key = keys[t]
        if key < 0:
            out[t] = -1
            continue
        slot = _slot(key, capacity)
        while slot_codes[slot] >= 0 and slot_keys[slot] != key:
            slot = (slot + 1) & (capacity - 1)
        if slot_codes[slot] < 0 and new_keys.size > 0:
            slot_keys[slot] = key
            slot_codes[slot] = n_codes
            new_keys[n_codes - n_known] = key
            n_codes += 1
        out[t] = slot_codes[slot]
    return n_codes


@kernel
def rebuild_hash(keys: Array, slot_keys: Array, slot_codes: Array) -> None:
    """Fill an empty hash table with keys 0 .. n − 1 in order."""
    capacity = slot_keys.size
    for code in range(keys.size):
        slot = _slot(keys[code], capacity)
        while slot_codes[slot] >= 0:
            slot = (slot + 1) & (capacity - 1)
        slot_keys[slot] = keys[code]
        slot_codes[slot] = code


@kernel
def assemble(
    single: Array,
    numbers: Array,
    bag_ptr: Array,
    bag_ids: Array,
    n_plain: int,
    with_values: bool,
) -> tuple[Array, Array, Array]:
    """CSR rows from single-valued columns and bags, dropping −1 and zero numbers.

    single (J, N): ids, of which rows n_plain.. carry the values ``numbers`` (J − n_plain, N);
    bag_ptr (B, N+1), bag_ids: B concatenated bags, with absolute pointers into bag_ids.
    Returns (indptr (N+1,), indices, values or empty).
    """
    n_columns, n = single.shape
    indptr = np.zeros(n + 1, np.int64)
    counts = indptr[1:]
    for j in range(n_plain):
        row = single[j]
        for t in range(n):
            counts[t] += row[t] >= 0
    for t in range(n):
        for j in range(n_plain, n_columns):
            counts[t] += single[j, t] >= 0 and numbers[j - n_plain, t] != 0
        for b in range(bag_ptr.shape[0]):
            for p in range(bag_ptr[b, t], bag_ptr[b, t + 1]):
                counts[t] += bag_ids[p] >= 0
        counts[t] += indptr[t]
    # With room for one more: what there is not is written, too, and written over by what follows.
    indices = np.empty(indptr[n] + 1, np.int32)
    values = np.empty(indptr[n] + 1 if with_values else 1, np.float32)
    q = 0
    for t in range(n):
        for j in range(n_plain):
            indices[q] = single[j, t]
            if with_values:
                values[q] = 1
            q += single[j, t] >= 0
        for j in range(n_plain, n_columns):
            indices[q] = single[j, t]
            values[q] = numbers[j - n_plain, t]
            q += single[j, t] >= 0 and values[q] != 0
        for b in range(bag_ptr.shape[0]):
            for p in range(bag_ptr[b, t], bag_ptr[b, t + 1]):
                indices[q] = bag_ids[p]
                if with_values:
                    values[q] = 1
                q += bag_ids[p] >= 0
    return indptr, indices[:q], values[: q if with_values else 0]
