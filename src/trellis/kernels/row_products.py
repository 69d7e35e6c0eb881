"""Sums and products of rows of labels and of tables of label pairs, eight labels at a time.

A row is the n numbers of an array from a place on, places being counted through all axes, and a
table rows of n that follow each other. Both are padded with zeros to ``padded(L)`` labels
(:mod:`trellis.kernels.lanes`), but for ``add_scaled`` and what ``exponentiate_table`` starts from.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import fragment
from trellis.kernels.fast_exp import fast_exp
from trellis.kernels.lanes import (
    first_equal,
    get,
    highest,
    load,
    load_as,
    load_half,
    load_half_as,
    load_one,
    lower,
    lowest,
    padded,
    put,
    spread,
    spread_half,
    store,
    total,
    upper,
)

__all__ = [
    "add_outer_products",
    "add_scaled",
    "argmax_plus",
    "copy_row",
    "exponentiate_table",
    "few_max_plus",
    "max_plus",
    "multiply_row",
    "relative_exponentials",
    "row_max",
    "row_max_plus",
    "row_sum",
    "row_times",
    "scale_row",
    "table_times",
]

Array = np.ndarray[Any, Any]


@fragment
def row_sum(x: Array, at: int, n: int) -> float:
    """Sum of a row."""
    s = load(x, at)
    for j in range(8, n, 8):
        s += load(x, at + j)
    result: float = total(s)
    return result


@fragment
def row_max(x: Array, at: int, n: int) -> float:
    """Maximum of a row."""
    most = load(x, at)
    for j in range(8, n, 8):
        most = upper(most, load(x, at + j))
    top: float = highest(most)
    return top


@fragment
def copy_row(x: Array, at: int, n: int, out: Array, to: int) -> None:
    """Copy a row."""
    for j in range(0, n, 8):
        store(out, to + j, load(x, at + j))


@fragment
def scale_row(x: Array, at: int, n: int, by: float, out: Array, to: int) -> None:
    """Write a row times a number."""
    factor = spread(by)
    for j in range(0, n, 8):
        store(out, to + j, factor * load(x, at + j))


@fragment
def multiply_row(x: Array, at: int, y: Array, by: int, n: int, out: Array, to: int) -> None:
    """Write the products of the numbers of two rows."""
    for j in range(0, n, 8):
        store(out, to + j, load(x, at + j) * load(y, by + j))


@fragment
def relative_exponentials(x: Array, at: int, n: int, out: Array, to: int) -> float:
    """Write e^{x − max x} of a row x whose padding is −inf; returns max x."""
    top = row_max(x, at, n)
    for j in range(0, n, 8):
        store(out, to + j, fast_exp(load(x, at + j) - spread(top)))
    return top


@fragment
def add_scaled(W: Array, to: int, n: int, v: float, x: Array, at: int) -> None:
    """Add v times a row of n numbers, of either type, to a row; nothing is padded."""
    if n >= 8:
        last = n - 8
        by = spread(W.dtype.type(v))
        tail = load(W, to + last) + by * load_as(x, at + last, W)
        for j in range(0, last, 8):
            store(W, to + j, load(W, to + j) + by * load_as(x, at + j, W))
        store(W, to + last, tail)
    elif n >= 4:
        last = n - 4
        half = spread_half(W.dtype.type(v))
        rest = load_half(W, to + last) + half * load_half_as(x, at + last, W)
        store(W, to, load_half(W, to) + half * load_half_as(x, at, W))
        store(W, to + last, rest)
    else:
        for j in range(n):
            put(W, to + j, get(W, to + j) + v * get(x, at + j))


@fragment
def exponentiate_table(
    S: Array, at: int, step: int, n: int, E: Array, to: int, turned: int
) -> float:
    """Write e^{S − max S} of an n × n table, and its transpose; returns max S.

    The rows of S begin ``step`` numbers apart, those of E are padded, and their padding is left as
    it is.
    """
    width = padded(n)
    top = get(S, at)
    last = n - 8
    if last >= 0:
        most = load(S, at)
        for i in range(n):
            for j in range(0, last, 8):
                most = upper(most, load(S, at + i * step + j))
            most = upper(most, load(S, at + i * step + last))
        top = highest(most)
        less = spread(top)
        for i in range(n):
            for j in range(0, last, 8):
                store(E, to + i * width + j, fast_exp(load(S, at + i * step + j) - less))
            store(E, to + i * width + last, fast_exp(load(S, at + i * step + last) - less))
    else:
        for i in range(n):
            for j in range(n):
                top = max(top, get(S, at + i * step + j))
        for i in range(n):
            for j in range(n):
                put(E, to + i * width + j, fast_exp(get(S, at + i * step + j) - top))
    for block in range(0, n, 16):  # so that what is read and written is in the cache
        for j in range(n):
            for i in range(block, min(block + 16, n)):
                put(E, turned + j * width + i, get(E, to + i * width + j))
    result: float = top
    return result


@fragment
def row_times(x: Array, at: int, M: Array, table: int, n: int, out: Array, to: int) -> None:
    """Write the product of a row of n labels and a table.

    Up to 24 columns are summed in registers, four rows at a time, so that no sum waits for another.
    """
    width = padded(n)
    zero = spread(x.dtype.type(0))
    j = 0
    while width - j >= 24 and width - j != 32:
        x0 = x1 = x2 = x3 = y0 = y1 = y2 = y3 = z0 = z1 = z2 = z3 = zero
        for i in range(0, n, 4):
            q = table + i * width + j
            a = load_one(x, at + i)
            x0 += a * load(M, q)
            y0 += a * load(M, q + 8)
            z0 += a * load(M, q + 16)
            q += width
            a = load_one(x, at + i + 1)
            x1 += a * load(M, q)
            y1 += a * load(M, q + 8)
            z1 += a * load(M, q + 16)
            q += width
            a = load_one(x, at + i + 2)
            x2 += a * load(M, q)
            y2 += a * load(M, q + 8)
            z2 += a * load(M, q + 16)
            q += width
            a = load_one(x, at + i + 3)
            x3 += a * load(M, q)
            y3 += a * load(M, q + 8)
            z3 += a * load(M, q + 16)
        store(out, to + j, (x0 + x1) + (x2 + x3))
        store(out, to + j + 8, (y0 + y1) + (y2 + y3))
        store(out, to + j + 16, (z0 + z1) + (z2 + z3))
        j += 24
    while j < width:
        more = min(8, width - 8 - j)  # 0: the last eight are alone, and done twice
        x0 = x1 = x2 = x3 = y0 = y1 = y2 = y3 = zero
        for i in range(0, n, 4):
            q = table + i * width + j
            a = load_one(x, at + i)
            x0 += a * load(M, q)
            y0 += a * load(M, q + more)
            q += width
            a = load_one(x, at + i + 1)
            x1 += a * load(M, q)
            y1 += a * load(M, q + more)
            q += width
            a = load_one(x, at + i + 2)
            x2 += a * load(M, q)
            y2 += a * load(M, q + more)
            q += width
            a = load_one(x, at + i + 3)
            x3 += a * load(M, q)
            y3 += a * load(M, q + more)
        store(out, to + j, (x0 + x1) + (x2 + x3))
        store(out, to + j + more, (y0 + y1) + (y2 + y3))
        j += 16


@fragment
def table_times(M: Array, table: int, x: Array, at: int, n: int, out: Array, to: int) -> None:
    """Write the product of a table and a row (as a column) of n labels."""
    width = padded(n)
    for j in range(0, width, 8):
        store(out, to + j, spread(x.dtype.type(0)))
    for i in range(n):
        s = load(M, table + i * width) * load(x, at)
        for j in range(8, width, 8):
            s += load(M, table + i * width + j) * load(x, at + j)
        put(out, to + i, total(s))


@fragment
def row_max_plus(
    x: Array, at: int, n: int, M: Array, table: int, width: int, step: int, out: Array, to: int
) -> None:
    """Write max_i x_i + M_ij of a row of n labels and a table of n rows, ``step`` apart.

    Of its columns ``width`` ≥ 8 count, up to 24 at a time; nothing is padded.
    """
    last = width - 8
    j = 0
    while width - j > 16:
        third = min(j + 16, last)  # where fewer than 24 columns are left, some are done twice
        a = load_one(x, at)
        x0 = a + load(M, table + j)
        y0 = a + load(M, table + j + 8)
        z0 = a + load(M, table + third)
        x1, y1, z1 = x0, y0, z0
        for i in range(1, n - 1, 2):
            q = table + i * step
            a = load_one(x, at + i)
            x0 = upper(x0, a + load(M, q + j))
            y0 = upper(y0, a + load(M, q + j + 8))
            z0 = upper(z0, a + load(M, q + third))
            q += step
            a = load_one(x, at + i + 1)
            x1 = upper(x1, a + load(M, q + j))
            y1 = upper(y1, a + load(M, q + j + 8))
            z1 = upper(z1, a + load(M, q + third))
        if n % 2 == 0:
            q = table + (n - 1) * step
            a = load_one(x, at + n - 1)
            x0 = upper(x0, a + load(M, q + j))
            y0 = upper(y0, a + load(M, q + j + 8))
            z0 = upper(z0, a + load(M, q + third))
        store(out, to + j, upper(x0, x1))
        store(out, to + j + 8, upper(y0, y1))
        store(out, to + third, upper(z0, z1))
        j += 24
    if j < width:
        first = min(j, last)
        a = load_one(x, at)
        x0 = a + load(M, table + first)
        y0 = a + load(M, table + last)
        x1, y1 = x0, y0
        for i in range(1, n - 1, 2):
            q = table + i * step
            a = load_one(x, at + i)
            x0 = upper(x0, a + load(M, q + first))
            y0 = upper(y0, a + load(M, q + last))
            q += step
            a = load_one(x, at + i + 1)
            x1 = upper(x1, a + load(M, q + first))
            y1 = upper(y1, a + load(M, q + last))
        if n % 2 == 0:
            q = table + (n - 1) * step
            a = load_one(x, at + n - 1)
            x0 = upper(x0, a + load(M, q + first))
            y0 = upper(y0, a + load(M, q + last))
        store(out, to + first, upper(x0, x1))
        store(out, to + last, upper(y0, y1))


@fragment
def few_max_plus(x: Array, at: int, n: int, M: Array, tops: Array, out: Array, to: int) -> int:
    """Write what ``row_max_plus`` does of a whole table (n, n), looking at as few rows as it can.

    ``tops`` (n,) are at least the maxima of the rows of M: a row i with x_i + tops_i below all that
    the rows before have brought changes nothing. Returns the number of rows.
    """
    last = n - 8
    best = 0
    top = get(x, at)
    for i in range(1, n):
        a = get(x, at + i)
        if a > top:
            top = a
            best = i
    first = spread(top)
    least = first + load(M, best * n + last)
    store(out, to + last, least)
    for j in range(0, last, 8):
        y = first + load(M, best * n + j)
        least = lower(least, y)
        store(out, to + j, y)
    low = lowest(least)
    rows = 1
    for i in range(n):
        a = get(x, at + i)
        if a + get(tops, i) <= low:
            continue
        rows += 1
        by = spread(a)
        least = upper(by + load(M, i * n + last), load(out, to + last))
        store(out, to + last, least)
        for j in range(0, last, 8):
            y = upper(by + load(M, i * n + j), load(out, to + j))
            least = lower(least, y)
            store(out, to + j, y)
        low = lowest(least)
    return rows


@fragment
def max_plus(x: Array, at: int, y: Array, by: int, n: int) -> float:
    """The maximum of the sum of two rows of n ≥ 8; nothing is padded."""
    last = n - 8
    most = load(x, at + last) + load(y, by + last)
    for j in range(0, last, 8):
        most = upper(most, load(x, at + j) + load(y, by + j))
    top: float = highest(most)
    return top


@fragment
def argmax_plus(x: Array, at: int, y: Array, by: int, n: int) -> int:
    """The first place of the maximum of the sum of two rows of n ≥ 8; nothing is padded."""
    last = n - 8
    top = spread(max_plus(x, at, y, by, n))
    for j in range(0, last, 8):
        q = first_equal(load(x, at + j) + load(y, by + j), top)
        if q < 8:
            return int(j + q)
    return int(last + first_equal(load(x, at + last) + load(y, by + last), top))


@fragment
def add_outer_products(
    a: Array, of: int, b: Array, by: int, n: int, n_labels: int, M: Array, to: int
) -> None:
    """Add Σ_r a_r b_rᵀ to a table, over n rows a_r and b_r.

    Four rows of up to 24 columns are summed in registers, each number in the order of r.
    """
    width = padded(n_labels)
    for i in range(0, n_labels, 4):
        j = 0
        while width - j >= 24:
            q0 = to + i * width + j
            q1 = q0 + width
            q2 = q1 + width
            q3 = q2 + width
            x0 = load(M, q0)
            y0 = load(M, q0 + 8)
            z0 = load(M, q0 + 16)
            x1 = load(M, q1)
            y1 = load(M, q1 + 8)
            z1 = load(M, q1 + 16)
            x2 = load(M, q2)
            y2 = load(M, q2 + 8)
            z2 = load(M, q2 + 16)
            x3 = load(M, q3)
            y3 = load(M, q3 + 8)
            z3 = load(M, q3 + 16)
            for r in range(n):
                p = by + r * width + j
                x = load(b, p)
                y = load(b, p + 8)
                z = load(b, p + 16)
                p = of + r * width + i
                w = load_one(a, p)
                x0 += w * x
                y0 += w * y
                z0 += w * z
                w = load_one(a, p + 1)
                x1 += w * x
                y1 += w * y
                z1 += w * z
                w = load_one(a, p + 2)
                x2 += w * x
                y2 += w * y
                z2 += w * z
                w = load_one(a, p + 3)
                x3 += w * x
                y3 += w * y
                z3 += w * z
            store(M, q0, x0)
            store(M, q0 + 8, y0)
            store(M, q0 + 16, z0)
            store(M, q1, x1)
            store(M, q1 + 8, y1)
            store(M, q1 + 16, z1)
            store(M, q2, x2)
            store(M, q2 + 8, y2)
            store(M, q2 + 16, z2)
            store(M, q3, x3)
            store(M, q3 + 8, y3)
            store(M, q3 + 16, z3)
            j += 24
        while j < width:
            q0 = to + i * width + j
            q1 = q0 + width
            q2 = q1 + width
            q3 = q2 + width
            x0 = load(M, q0)
            x1 = load(M, q1)
            x2 = load(M, q2)
            x3 = load(M, q3)
            for r in range(n):
                x = load(b, by + r * width + j)
                p = of + r * width + i
                x0 += load_one(a, p) * x
                x1 += load_one(a, p + 1) * x
                x2 += load_one(a, p + 2) * x
                x3 += load_one(a, p + 3) * x
            store(M, q0, x0)
            store(M, q1, x1)
            store(M, q2, x2)
            store(M, q3, x3)
            j += 8
