"""Loops over rows of labels that inference on chains and on trees share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from trellis.kernels._jit import subkernel

__all__ = [
    "copy",
    "draw",
    "fill",
    "list_depth",
    "longest_sample",
    "max_step",
    "merge",
    "padded_width",
    "row_max",
    "transpose",
]

Floats = npt.NDArray[np.floating[Any]]
Float64s = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]
_Array = npt.NDArray[Any]


@subkernel
def longest_sample(offsets: Int64s) -> int:
    """Positions of the longest sample, or nodes of the largest tree."""
    longest = 0
    for s in range(offsets.shape[0] - 1):
        longest = max(longest, offsets[s + 1] - offsets[s])
    return longest


@subkernel
def padded_width(n_labels: int) -> int:
    """Return the number of labels with forbidden ones added up to a multiple of four."""
    return (n_labels + 3) // 4 * 4


# Explicit loops compile in a fraction of the time of a[:] = b, which brings along the message for
# shapes that do not fit, and run as fast.


@subkernel
def fill(a: _Array, value: float) -> None:
    """Set every entry of a vector."""
    for j in range(a.shape[0]):
        a[j] = value


@subkernel
def copy(source: _Array, target: _Array) -> None:
    """Copy a vector into the beginning of another."""
    for j in range(source.shape[0]):
        target[j] = source[j]


@subkernel
def transpose(source: Floats, target: Float64s) -> None:
    """Copy a square matrix, turned, into the beginning of another."""
    for i in range(source.shape[0]):
        for j in range(source.shape[0]):
            target[j, i] = source[i, j]


@subkernel
def row_max(a: Floats, i: int) -> float:
    """Maximum of row i."""
    # Four maxima, because one alone would be a chain of steps that wait for each other.
    n_labels = a.shape[1]
    m0 = m1 = m2 = m3 = -np.inf
    whole = n_labels // 4 * 4
    for j in range(0, whole, 4):
        m0 = a[i, j] if a[i, j] > m0 else m0
        m1 = a[i, j + 1] if a[i, j + 1] > m1 else m1
        m2 = a[i, j + 2] if a[i, j + 2] > m2 else m2
        m3 = a[i, j + 3] if a[i, j + 3] > m3 else m3
    for j in range(whole, n_labels):
        m0 = a[i, j] if a[i, j] > m0 else m0
    return max(m0, m1, m2, m3)


@subkernel
def max_step(
    value: Float64s, row: int, tables: Float64s, slot: int, way: int, out: Float64s
) -> None:
    """Compute out[j] = max over i of value[row, i] + tables[slot, way, i, j], four i at a time.

    Rows and tables are padded.
    """
    width = out.shape[0]
    fill(out, -np.inf)
    for i in range(0, width, 4):
        a0, a1, a2, a3 = value[row, i], value[row, i + 1], value[row, i + 2], value[row, i + 3]
        for j in range(width):
            x0, x1 = a0 + tables[slot, way, i, j], a1 + tables[slot, way, i + 1, j]
            x2, x3 = a2 + tables[slot, way, i + 2, j], a3 + tables[slot, way, i + 3, j]
            x0 = x0 if x0 > x1 else x1
            x2 = x2 if x2 > x3 else x3
            x0 = x0 if x0 > x2 else x2
            out[j] = x0 if x0 > out[j] else out[j]


@subkernel
def draw(weights: Float64s, n: int, u: float) -> int:
    """Draw one of n labels: where the running sum of the weights passes u times their sum."""
    total = 0.0
    for i in range(n):
        total += weights[i]
    running = 0.0
    label = 0
    for i in range(n):
        if weights[i] > 0.0:
            # The last label of positive weight, should rounding keep the sum from passing.
            label = i
            running += weights[i]
            if running > u * total:
                break
    return label


@subkernel
def list_depth(k: int, n_labels: int, longest: int) -> int:
    """Length of lists of the k best: none is longer than the number of labellings L ** longest."""
    depth = 1
    for _ in range(longest):
        if depth < k:
            depth *= n_labels
    return min(depth, k)


@subkernel
def merge(
    values: Float64s,
    counts: Int64s,
    bonus: Float64s,
    heads: Int64s,
    out_values: Float64s,
    out_origins: Int64s,
) -> int:
    """Merge the lists values[i, :counts[i]] + bonus[i] into one, best first; return its length."""
    depth: int = out_values.shape[0]
    fill(heads, 0)
    for r in range(depth):
        best = -np.inf
        arg = -1
        for i in range(counts.shape[0]):
            if heads[i] < counts[i]:
                x = values[i, heads[i]] + bonus[i]
                if x > best:
                    best = x
                    arg = i
        if arg < 0:
            return r
        out_values[r] = best
        out_origins[r] = arg * depth + heads[arg]
        heads[arg] += 1
    return depth
