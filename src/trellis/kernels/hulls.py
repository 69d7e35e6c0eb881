r"""Convex hulls of two regions of a label image, and what fills them.

The outline of region i is given by the grid lines between rows of pixels: where line
:math:`y = t_i + k` touches the region it does so from :math:`x = l_{ik}` to :math:`x = r_{ik}`.
Its hull lies, at height y, between the greatest convex function below l and the least concave one
above r; that of two regions likewise, with the lesser l and the greater r of both. Between two
lines both functions are linear, so the area is a sum of trapezoids. Nothing is checked here.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from trellis.kernels._jit import kernel, subkernel

__all__ = ["hulls_of_two"]

Float64s = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]


@subkernel
def _minorant(values: Float64s, known: int, corners: Int64s) -> None:
    """Replace values (inf where there is none) by the greatest convex function below them."""
    n = 0
    for k in range(known):
        if values[k] == np.inf:
            continue
        while n > 1:
            i, j = corners[n - 2], corners[n - 1]
            if (values[j] - values[i]) * (k - j) < (values[k] - values[j]) * (j - i):
                break
            n -= 1
        corners[n] = k
        n += 1
    for c in range(n - 1):
        i, j = corners[c], corners[c + 1]
        slope = (values[j] - values[i]) / (j - i)
        for k in range(i + 1, j):
            values[k] = values[i] + slope * (k - i)


@kernel
def hulls_of_two(
    pairs: Int64s, top: Int64s, start: Int64s, left: Int64s, right: Int64s, rank: Int64s,
    image: Float64s | None, area: Float64s, count: Float64s, mass: Float64s,
) -> None:  # fmt: skip
    """Hulls of regions a and b, a row of ``pairs`` each (which may be one and the same).

    ``rank`` is the image of regions, -1 outside of all. ``left`` is very large where a line does
    not touch the region, ``right`` very small. ``area`` is filled with the areas of the hulls, and
    ``count`` with the number of pixels of other regions, or of none, whose centres lie in them;
    ``mass`` is the sum of the image there, unless that is None.
    """
    longest = 2 + rank.shape[0]
    low, high = np.empty(longest), np.empty(longest)
    corners = np.empty(longest, np.int64)
    for p in range(len(pairs)):
        a, b = pairs[p]
        first = min(top[a], top[b])
        last = max(top[a] + start[a + 1] - start[a], top[b] + start[b + 1] - start[b])
        n = last - first
        low[:n] = np.inf
        high[:n] = np.inf
        for i in (a, b):
            for k in range(start[i + 1] - start[i]):
                at = top[i] - first + k
                if left[start[i] + k] <= right[start[i] + k]:
                    low[at] = min(low[at], left[start[i] + k])
                    high[at] = min(high[at], -right[start[i] + k])
        _minorant(low, n, corners)
        _minorant(high, n, corners)
        area[p] = 0.0
        count[p] = 0.0
        mass[p] = 0.0
        for k in range(n - 1):
            begin, end = (low[k] + low[k + 1]) / 2, -(high[k] + high[k + 1]) / 2
            area[p] += end - begin
            y = first + k
            for x in range(int(np.ceil(begin - 0.5)), int(np.floor(end - 0.5)) + 1):
                if rank[y, x] != a and rank[y, x] != b:
                    count[p] += 1
                    if image is not None:
                        mass[p] += image[y, x]
