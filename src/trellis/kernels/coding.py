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

__all__ = ["assemble", "code_direct", "code_hashed", "fold_term", "rebuild_hash"]

Array = np.ndarray[Any, Any]


@kernel
def fold_term(
    keys: Array, codes: Array, offsets: Array, shift: int, radix: int, first: bool, marks: int
) -> None:
    """keys[t] ← keys[t] · radix + code of position t + shift, or −1 where there is nothing.

    Positions beyond the sample give nothing, or, with marks > 0, the boundary symbols
    0 .. marks − 1 (two for each distance: before, after), real codes then start at ``marks``.
    ``offsets`` are sample bounds relative to ``codes``.
    """
    for s in range(offsets.size - 1):
        a = offsets[s]
        b = offsets[s + 1]
        for t in range(a, b):
            u = t + shift
            if u < a:
                code = 2 * (a - u - 1) if marks > 0 else -1
            elif u >= b:
                code = 2 * (u - b) + 1 if marks > 0 else -1
            else:
                code = np.int64(codes[u])
                if code >= 0:
                    code += marks
            if first:
                keys[t] = code
            elif keys[t] < 0 or code < 0:
                keys[t] = -1
            else:
                keys[t] = keys[t] * radix + code


@kernel
def code_direct(keys: Array, table: Array, n_codes: int, grow: bool, out: Array) -> int:
    """out[t] ← table[keys[t]], giving new keys the next codes if ``grow``; number of codes."""
    for t in range(keys.size):
        key = keys[t]
        if key < 0:
            out[t] = -1
            continue
        code = table[key]
        if code < 0 and grow:
            code = n_codes
            table[key] = code
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
    keys: Array, slot_keys: Array, slot_codes: Array, n_codes: int, grow: bool, out: Array
) -> int:
    """As ``code_direct`` with a hash table, which must have room: 2 · (n_codes + keys) slots."""
    capacity = slot_keys.size
    for t in range(keys.size):
        key = keys[t]
        if key < 0:
            out[t] = -1
            continue
        slot = _slot(key, capacity)
        while slot_codes[slot] >= 0 and slot_keys[slot] != key:
            slot = (slot + 1) & (capacity - 1)
        if slot_codes[slot] < 0 and grow:
            slot_keys[slot] = key
            slot_codes[slot] = n_codes
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
    for t in range(n):
        count = 0
        for j in range(n_columns):
            if single[j, t] >= 0 and (j < n_plain or numbers[j - n_plain, t] != 0):
                count += 1
        for b in range(bag_ptr.shape[0]):
            for p in range(bag_ptr[b, t], bag_ptr[b, t + 1]):
                if bag_ids[p] >= 0:
                    count += 1
        indptr[t + 1] = indptr[t] + count
    indices = np.empty(indptr[n], np.int32)
    values = np.empty(indptr[n] if with_values else 0, np.float32)
    for t in range(n):
        q = indptr[t]
        for j in range(n_columns):
            if single[j, t] >= 0 and (j < n_plain or numbers[j - n_plain, t] != 0):
                indices[q] = single[j, t]
                if with_values:
                    values[q] = numbers[j - n_plain, t] if j >= n_plain else 1
                q += 1
        for b in range(bag_ptr.shape[0]):
            for p in range(bag_ptr[b, t], bag_ptr[b, t + 1]):
                if bag_ids[p] >= 0:
                    indices[q] = bag_ids[p]
                    if with_values:
                        values[q] = 1
                    q += 1
    return indptr, indices, values
