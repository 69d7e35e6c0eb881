"""Longest matches, from left to right, that do not overlap.

At a position where the longest entry of a list that starts there has m symbols, the match covers
positions t .. t + m − 1 and the search goes on behind it; where none starts, at the next position.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import kernel

__all__ = ["mark_matches"]

Array = np.ndarray[Any, Any]


@kernel
def mark_matches(longest: Array, marks: Array) -> None:
    """marks[t] ← 0 begins, 1 continues, 2 ends an entry, 3 is a whole one, −1 none of these.

    longest[t] is the length of the longest entry that starts at t, 0 for none; entries end within
    the sample.
    """
    t = 0
    while t < longest.size:
        m = longest[t]
        if m <= 1:
            marks[t] = 3 if m == 1 else -1
            t += 1
            continue
        marks[t] = 0
        for u in range(t + 1, t + m - 1):
            marks[u] = 1
        marks[t + m - 1] = 2
        t += m
