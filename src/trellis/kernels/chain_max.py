r"""Best and k best labellings of stacked linear chains.

The score s(y) and the arguments are those of :mod:`trellis.kernels.chain`.

Viterbi runs without back-pointers: the sums along the winning path are taken once more, which
leaves the inner loop free to run over several labels at once. Ties go to the lowest label at the
last position, then at the one before, and so on. ``kbest`` keeps the k best labellings that end in
each label and merges these sorted lists (Seshadri & Sundberg, 1994).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from trellis.kernels._jit import kernel, subkernel
from trellis.kernels.lanes import get
from trellis.kernels.row_products import argmax_plus, few_max_plus, row_max_plus
from trellis.kernels.rows import copy, list_depth, longest_sample, merge, transpose
from trellis.kernels.staggered import staggered_viterbi
from trellis.kernels.step_changes import (
    StepChanges,
    change,
    change_back,
    change_row,
    none,
    turned,
)

__all__ = ["as_stack", "kbest", "pruned_viterbi", "viterbi"]

# Labels from which on few of them are looked at first: the table of fewer is in the cache. Of
# samples with more scores than ``_ROOM`` it would take more memory than the scores do.
_MANY, _ROOM = 400, 1 << 23
# Labels from which on few rows of the transitions are looked at, unless it is a quarter of them; so
# many steps are tried.
_FEW, _TRIED = 64, 50

Floats = npt.NDArray[np.floating[Any]]
Float64s = npt.NDArray[np.float64]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


def as_stack(trans: Floats) -> Floats:
    """Transitions as the kernels take them: (1, L, L) if shared, (N, L, L) with N > 1 if not.

    So one compiled kernel serves both, and tells them apart by the length.
    """
    if trans.ndim == 2:
        return trans[None]
    # Up to one position there is no transition, and what the caller's array holds must not matter.
    return trans if len(trans) > 1 else np.zeros((1, *trans.shape[1:]), trans.dtype)


@subkernel
def _copy(trans: Floats, out: Float64s) -> None:
    for i in range(trans.shape[0]):
        for j in range(trans.shape[0]):
            out[i, j] = trans[i, j]


def viterbi(
    node: Floats, trans: Floats, offsets: Int64s, changes: StepChanges | None = None
) -> tuple[Int32s, Float64s]:
    """Find the best labelling of each sample: labels int32 (N,), scores float64 (S,).

    Of many labels most need not be looked at (:mod:`trellis.kernels.staggered`).
    """
    longest = int(np.diff(offsets).max(initial=0))
    if changes is not None or trans.ndim == 3 or len(trans) < _MANY or longest * len(trans) > _ROOM:
        return _viterbi(node, as_stack(trans), offsets, changes or none(trans))
    labels, scores, bounds = staggered_viterbi(node, trans, offsets, 0, True)
    _search_fully(node, trans, offsets, np.flatnonzero(bounds == np.inf), labels, scores)
    return labels, scores


def pruned_viterbi(
    node: Floats, trans: Floats, offsets: Int64s, k: int
) -> tuple[Int32s, Float64s, Float64s]:
    """Find the best labellings among k labels a position: labels, scores and bounds of the best.

    A sample with no feasible labelling among these is searched fully.
    """
    labels, scores, bounds = staggered_viterbi(node, trans, offsets, k, False)
    lost = np.flatnonzero(bounds == np.inf)
    _search_fully(node, trans, offsets, lost, labels, scores)
    bounds[lost] = scores[lost]
    return labels, scores, bounds


def _search_fully(
    node: Floats,
    trans: Floats,
    offsets: Int64s,
    samples: Int64s,
    labels: Int32s,
    scores: Float64s,
) -> None:
    """Write the best labellings of some samples to those of all."""
    a, b = 0, 0
    while a < len(samples):  # a run of consecutive samples at a time
        while b + 1 < len(samples) and samples[b + 1] == samples[b] + 1:
            b += 1
        first, last = samples[a], samples[b] + 1
        rows = slice(offsets[first], offsets[last])
        bounds = offsets[first : last + 1] - offsets[first]
        found = _viterbi(node[rows], as_stack(trans), bounds, none(trans))
        labels[rows], scores[first:last] = found
        a = b = b + 1


@kernel
def _viterbi(
    node: Floats, trans: Floats, offsets: Int64s, changes: StepChanges
) -> tuple[Int32s, Float64s]:
    n_samples = offsets.shape[0] - 1
    n_labels = node.shape[1]
    width = max(n_labels, 8)
    shared = trans.shape[0] == 1
    T = np.full((width, width), -np.inf)
    into = np.full((width, width), -np.inf)  # into[j]: the transitions into label j
    if shared:
        _copy(trans[0], T)
        transpose(trans[0], into)
    plain = shared and changes.ptr.size == 0
    tops = np.full(width, -np.inf)  # of the rows of T
    looked = steps = 0  # at so many rows, in so many steps
    for i in range(n_labels if plain else 0):
        for j in range(n_labels):
            tops[i] = max(tops[i], T[i, j])
    across, column = turned(changes), np.full((1, width), -np.inf)
    nothing = np.zeros((1, width))
    # Row t: score of the best labelling of positions 0..t that ends in each label.
    v = np.full((longest_sample(offsets), width), -np.inf)
    labels = np.full(node.shape[0], -1, dtype=np.int32)
    scores = np.zeros(n_samples)
    for s in range(n_samples):
        first = offsets[s]
        n = offsets[s + 1] - first
        if n == 0:
            continue
        for j in range(n_labels):
            v[0, j] = node[first, j]
        for t in range(1, n):
            if not shared:
                _copy(trans[first + t], T)
            change(changes, first + t, T)
            if n_labels <= 4:
                for j in range(n_labels):
                    top = -np.inf
                    for i in range(n_labels):
                        top = max(top, v[t - 1, i] + T[i, j])
                    v[t, j] = top
            elif plain and n_labels >= _FEW and 4 * looked <= n_labels * (steps + _TRIED):
                looked += few_max_plus(v, (t - 1) * width, n_labels, T, tops, v, t * width)
                steps += 1
            else:
                row_max_plus(v, (t - 1) * width, n_labels, T, 0, width, width, v, t * width)
            change_back(changes, first + t, into, T)
            for j in range(n_labels):
                v[t, j] += node[first + t, j]
        label = _argmax_sum(v, (n - 1) * width, nothing, 0, n_labels)
        scores[s] = v[n - 1, label]
        if scores[s] == -np.inf:
            continue
        labels[first + n - 1] = label
        for t in range(n - 1, 0, -1):
            if not shared:
                copy(trans[first + t, :, label], into[label])
            row, by = into, label * width
            if changes.ptr.size:
                copy(into[label], column[0])
                change_row(across, first + t, label, column[0])
                row, by = column, 0
            label = _argmax_sum(v, (t - 1) * width, row, by, n_labels)
            labels[first + t - 1] = label
    return labels, scores


@subkernel
def _argmax_sum(x: Float64s, at: int, y: Float64s, by: int, n_labels: int) -> int:
    """Label of the largest sum of two rows; one of the labels even if a sum is NaN."""
    if n_labels <= 4:
        best = -np.inf
        arg = 0
        for i in range(n_labels):
            s = get(x, at + i) + get(y, by + i)
            if s > best:
                best = s
                arg = i
        return arg
    return min(argmax_plus(x, at, y, by, max(n_labels, 8)), n_labels - 1)


def kbest(
    node: Floats, trans: Floats, offsets: Int64s, k: int, changes: StepChanges | None = None
) -> tuple[Int32s, Float64s]:
    """Find the k best labellings of each sample: labels int32 (k, N), scores float64 (S, k).

    Where a sample has fewer than k feasible labellings, the rest has score -inf and labels -1.
    """
    return _kbest(node, as_stack(trans), offsets, k, changes or none(trans))


@kernel
def _kbest(
    node: Floats, trans: Floats, offsets: Int64s, k: int, changes: StepChanges
) -> tuple[Int32s, Float64s]:
    n_samples = offsets.shape[0] - 1
    n_labels = node.shape[1]
    longest = longest_sample(offsets)
    depth = list_depth(k, n_labels, longest)
    shared = trans.shape[0] == 1
    into = np.empty((n_labels, n_labels))  # into[j]: the transitions into label j
    if shared:
        transpose(trans[0], into)
    across = turned(changes)
    nothing = np.zeros(n_labels)
    # Row [t, j]: scores of the best labellings of positions 0..t that end in label j, descending,
    # and for each its previous label i and its place r in the list of i, kept as i * depth + r.
    values = np.empty((longest, n_labels, depth))
    origins = np.empty((longest, n_labels, depth), dtype=np.int64)
    counts = np.empty((longest, n_labels), dtype=np.int64)
    heads = np.empty(n_labels, dtype=np.int64)
    last_values = np.empty(depth)
    last_origins = np.empty(depth, dtype=np.int64)

    labels = np.full((k, node.shape[0]), -1, dtype=np.int32)
    scores = np.full((n_samples, k), -np.inf)
    for s in range(n_samples):
        first = offsets[s]
        n = offsets[s + 1] - first
        if n == 0:
            scores[s, 0] = 0.0
            continue
        for j in range(n_labels):
            values[0, j, 0] = node[first, j]
            counts[0, j] = 1 if node[first, j] > -np.inf else 0
        for t in range(1, n):
            if not shared:
                transpose(trans[first + t], into)
            change(across, first + t, into)
            for j in range(n_labels):
                counts[t, j] = 0
                if node[first + t, j] == -np.inf:
                    continue
                counts[t, j] = merge(
                    values[t - 1], counts[t - 1], into[j], heads, values[t, j], origins[t, j]
                )
                for r in range(counts[t, j]):
                    values[t, j, r] += node[first + t, j]
            change_back(across, first + t, trans[0], into)
        n_lists = merge(values[n - 1], counts[n - 1], nothing, heads, last_values, last_origins)
        for r in range(n_lists):
            scores[s, r] = last_values[r]
            origin = last_origins[r]
            for t in range(n - 1, 0, -1):
                labels[r, first + t] = origin // depth
                origin = origins[t, origin // depth, origin % depth]
            labels[r, first] = origin // depth
    return labels, scores
