r"""How alike label sequences are, and where they differ (see :mod:`trellis.experts.consensus`).

Sequence r of a set is ``codes[offsets[r]:offsets[r + 1]]``. With :math:`L_{ij}` the length of the
longest run of labels that ends both at a_i and at b_j, an n-gram that ends at a_i occurs in b as
often as there are j with :math:`L_{ij} \ge n`. So common n-grams are counted by the same loop over
pairs of positions that finds the edit distance, without a table of n-grams.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import inner, kernel

__all__ = ["differences", "similarities"]

Array = np.ndarray[Any, Any]


@inner
def _common(a: Array, b: Array, occurrence: Array, run: Array, often: Array) -> int:
    """Common n-grams of a and b, an n-gram as often as it is in both; n = 1 to ``often.size``.

    ``occurrence[i, n - 1]`` says that the n-gram which ends at a_i is its so-many-th in a.
    """
    longest, found = often.size, 0
    for j in range(b.size + 1):
        run[j] = 0
    for i in range(a.size):
        for n in range(longest):
            often[n] = 0
        before = 0  # the run that ended at the positions before i and j
        for j in range(b.size):
            here = before + 1 if a[i] == b[j] else 0
            before = run[j + 1]
            run[j + 1] = here
            for n in range(min(here, longest)):
                often[n] += 1
        for n in range(min(i + 1, longest)):
            if occurrence[i, n] <= often[n]:
                found += 1
    return found


@inner
def _edits(a: Array, b: Array, row: Array) -> int:
    """Edit distance of a and b."""
    for j in range(b.size + 1):
        row[j] = j
    for i in range(a.size):
        before = row[0]
        row[0] = i + 1
        for j in range(b.size):
            here = min(before + (1 if a[i] != b[j] else 0), row[j] + 1, row[j + 1] + 1)
            before = row[j + 1]
            row[j + 1] = here
    edits: int = row[b.size]
    return edits


@kernel
def similarities(
    codes: Array,
    offsets: Array,
    others: Array,
    other_offsets: Array,
    longest: int,
    edit: bool,
    same: bool,
) -> tuple[Array, Array]:
    """Common n-grams of up to ``longest`` labels, and edit distances (0 without ``edit``), (A, B).

    They are those of each sequence in ``codes`` with each in ``others``; if these are the ``same``,
    each pair is looked at once.
    """
    n_a, n_b = offsets.size - 1, other_offsets.size - 1
    common, edits = np.zeros((n_a, n_b), np.int32), np.zeros((n_a, n_b), np.int32)
    widest = 0
    for q in range(n_b):
        widest = max(widest, other_offsets[q + 1] - other_offsets[q])
    row, often = np.empty(widest + 1, np.int32), np.empty(longest, np.int32)
    for r in range(n_a):
        a = codes[offsets[r] : offsets[r + 1]]
        occurrence = np.zeros((a.size, longest), np.int32)
        if longest > 0:
            for i in range(a.size):  # runs that end at i and at an i' up to it
                for k in range(i + 1):
                    n = 0
                    while n < longest and n <= k and a[i - n] == a[k - n]:
                        occurrence[i, n] += 1
                        n += 1
        for q in range(r if same else 0, n_b):
            b = others[other_offsets[q] : other_offsets[q + 1]]
            if longest > 0:
                common[r, q] = _common(a, b, occurrence, row, often)
            if edit:
                edits[r, q] = _edits(a, b, row)
            if same:
                common[q, r], edits[q, r] = common[r, q], edits[r, q]
    return common, edits


@kernel
def differences(a: Array, others: Array, other_offsets: Array) -> Array:
    """Runs in which sequences differ from ``a``, (R, 5): which, and its part and that of ``a``.

    A row (q, i, k, j, l) says that sequence q has its labels j to l where ``a`` has i to k, in an
    alignment with the fewest edits; before and after the run they agree (or end).
    """
    n_b = other_offsets.size - 1
    found = np.empty((16, 5), np.int64)
    n_found = 0
    for q in range(n_b):
        b = others[other_offsets[q] : other_offsets[q + 1]]
        cost = np.empty((a.size + 1, b.size + 1), np.int32)
        for i in range(a.size + 1):
            cost[i, 0] = i
        for j in range(b.size + 1):
            cost[0, j] = j
        for i in range(a.size):
            for j in range(b.size):
                change = cost[i, j] + (1 if a[i] != b[j] else 0)
                cost[i + 1, j + 1] = min(change, cost[i, j + 1] + 1, cost[i + 1, j] + 1)
        i, j = a.size, b.size
        k, m = i, j  # where the run that is being read ends
        while True:
            agree = i > 0 and j > 0 and a[i - 1] == b[j - 1] and cost[i, j] == cost[i - 1, j - 1]
            if (agree or (i == 0 and j == 0)) and (k > i or m > j):
                if n_found == found.shape[0]:
                    larger = np.empty((2 * n_found, 5), np.int64)
                    larger[:n_found] = found
                    found = larger
                found[n_found, 0] = q
                found[n_found, 1] = i
                found[n_found, 2] = k
                found[n_found, 3] = j
                found[n_found, 4] = m
                n_found += 1
            if i == 0 and j == 0:
                break
            if agree:
                i, j = i - 1, j - 1
                k, m = i, j
            elif i > 0 and j > 0 and cost[i, j] == cost[i - 1, j - 1] + 1:
                i, j = i - 1, j - 1
            elif i > 0 and cost[i, j] == cost[i - 1, j] + 1:
                i -= 1
            else:
                j -= 1
    return found[:n_found]
