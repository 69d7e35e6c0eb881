"""Progressive multiple alignment of label sequences (see :mod:`trellis.experts.alignment`).

The network of a sample is an array (columns, rows) of codes: what each row says in each column,
the empty label where it says nothing there, −1 in the rows that have no sequence (yet).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import allocating, kernel, subkernel

__all__ = ["align_samples"]

Array = np.ndarray[Any, Any]

_MATCH, _SKIP, _INSERT = 0, 1, 2


@allocating
def _add_row(net: Array, row: int, x: Array, there: Array, empty: int, grow: bool) -> Array:
    """Network with the sequence ``x`` as its row ``row``; ``there`` (R,) are the rows it has.

    The cost of saying c in a column is the number of rows that do not say c there, that of a new
    column is their number. Without ``grow``, what would need a new column is left out.
    """
    width, n = net.shape[0], x.size
    n_rows = 0
    for q in range(there.size):
        if there[q]:
            n_rows += 1
    cost = np.empty((width + 1, n + 1), np.int64)
    skip = np.empty(width, np.int64)
    for j in range(n + 1):
        cost[0, j] = j * n_rows
    for c in range(width):
        skip[c] = n_rows
        for q in range(net.shape[1]):
            if net[c, q] == empty:
                skip[c] -= 1
        cost[c + 1, 0] = cost[c, 0] + skip[c]
        for j in range(n):
            match = cost[c, j] + n_rows
            for q in range(net.shape[1]):
                if net[c, q] == x[j]:
                    match -= 1
            cost[c + 1, j + 1] = min(match, cost[c, j + 1] + skip[c], cost[c + 1, j] + n_rows)
    moves = np.empty(width + n, np.int8)
    c, j, length = width, n, 0
    while c > 0 or j > 0:  # equal costs: match before skip before insert, from the end
        move = _INSERT
        if c > 0 and cost[c, j] == cost[c - 1, j] + skip[c - 1]:
            move = _SKIP
        if c > 0 and j > 0:
            match = cost[c - 1, j - 1] + n_rows
            for q in range(net.shape[1]):
                if net[c - 1, q] == x[j - 1]:
                    match -= 1
            if cost[c, j] == match:
                move = _MATCH
        moves[length] = move
        length += 1
        if move != _INSERT:
            c -= 1
        if move != _SKIP:
            j -= 1
    wide = 0
    for k in range(length):
        if grow or moves[k] != _INSERT:
            wide += 1
    grown = np.empty((wide, net.shape[1]), np.int32)
    at = 0
    for k in range(length - 1, -1, -1):
        if moves[k] == _INSERT:
            if grow:
                for q in range(net.shape[1]):
                    grown[at, q] = empty if there[q] else -1
                grown[at, row] = x[j]
                at += 1
            j += 1
        else:
            for q in range(net.shape[1]):
                grown[at, q] = net[c, q]
            grown[at, row] = empty if moves[k] == _SKIP else x[j]
            at += 1
            c += 1
            if moves[k] == _MATCH:
                j += 1
    return grown


@subkernel
def _equal(codes: Array, begin: int, end: int, x: Array) -> bool:
    if end - begin != x.size:
        return False
    for k in range(x.size):  # noqa: SIM110 (Numba has no all() of a generator)
        if codes[begin + k] != x[k]:
            return False
    return True


@kernel
def align_samples(
    codes: Array, start: Array, stop: Array, order: Array, empty: int, grow_last: bool
) -> tuple[Array, Array]:
    """Networks of all samples.

    Row r of sample i is ``codes[start[r, i]:stop[r, i]]``, or missing if ``start[r, i] < 0``.
    Rows of sample i are added in the order ``order[i]``, (S, R); the last of it adds columns only
    with ``grow_last``.
    Every network gets at least one column. Returns offsets (S + 1,) and codes (N, R).
    """
    n_all, n_samples = start.shape
    offsets = np.zeros(n_samples + 1, np.int64)
    out = np.empty((n_samples + 2 * codes.size // n_all, n_all), np.int32)
    n = 0
    for i in range(n_samples):
        net = np.empty((0, n_all), np.int32)
        there = np.zeros(n_all, np.bool_)
        for k in range(order.shape[1]):
            row = order[i, k]
            if start[row, i] >= 0:
                x = codes[start[row, i] : stop[row, i]]
                twin = -1
                for q in range(n_all):
                    if there[q] and _equal(codes, start[q, i], stop[q, i], x):
                        twin = q
                if twin >= 0:  # equal answers are aligned equally
                    for c in range(net.shape[0]):
                        net[c, row] = net[c, twin]
                else:
                    net = _add_row(net, row, x, there, empty, grow_last or k + 1 < order.shape[1])
                there[row] = True
        if net.shape[0] == 0:
            net = np.empty((1, n_all), np.int32)
            for r in range(n_all):
                net[0, r] = empty if there[r] else -1
        if n + net.shape[0] > out.shape[0]:
            larger = np.empty((2 * out.shape[0] + net.shape[0], n_all), np.int32)
            for c in range(n):
                for r in range(n_all):
                    larger[c, r] = out[c, r]
            out = larger
        for c in range(net.shape[0]):
            for r in range(n_all):
                out[n, r] = net[c, r]
            n += 1
        offsets[i + 1] = n
    return offsets, out[:n]
