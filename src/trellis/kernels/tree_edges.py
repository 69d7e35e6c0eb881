"""Edge scores of tree-shaped pieces: tables shared by type, or one for each edge.

Without rich edges an edge of type k has the scores T[k] (first, second). With them, edge e has

    M_e = T[k] + Σ_{(r, v) of e} v · R[r],

where the rows r and values v of each edge are in CSR (``eptr``, ``erow``, ``evalue``; ``efeature``
names the feature of each entry), and row r has the pairs ``pair[ptr[r]:ptr[r + 1]]`` with weights R
at the same places, or all L² if ``ptr`` is empty. ``rich`` is the tuple (eptr, erow, evalue,
efeature, ptr, pair, R), or None. Edges without direction have M + Mᵀ (``symmetric``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.kernels._jit import subkernel

__all__ = ["add_to_edge_rows", "make_symmetric", "score_edge"]

Array = np.ndarray[Any, Any]


@subkernel
def score_edge(
    T: Array, k: int, rich: Any, e: int, scale: float, symmetric: bool, out: Array, at: int
) -> None:
    """Write the scores of edge e, of type k, to out[at] (L, L); true rich weights are scale · R."""
    n_labels = T.shape[1]
    for i in range(n_labels):
        for j in range(n_labels):
            out[at, i, j] = 0
    if rich is not None:
        eptr, erow, evalue, _, ptr, pair, R = rich
        for p in range(eptr[e], eptr[e + 1]):
            r = erow[p]
            v = evalue[p] if evalue.size else out.dtype.type(1)
            if ptr.size:
                for q in range(ptr[r], ptr[r + 1]):
                    out[at, pair[q] // n_labels, pair[q] % n_labels] += v * R[q]
            else:
                base = r * n_labels * n_labels
                for i in range(n_labels):
                    for j in range(n_labels):
                        out[at, i, j] += v * R[base + i * n_labels + j]
    for i in range(n_labels):
        for j in range(n_labels):
            out[at, i, j] = out[at, i, j] * scale + T[k, i, j]
    if symmetric:
        make_symmetric(out, at)


@subkernel
def make_symmetric(matrices: Array, at: int) -> None:
    """M ← M + Mᵀ for the matrix ``at``."""
    n = matrices.shape[1]
    for i in range(n):
        matrices[at, i, i] *= 2
        for j in range(i):
            both = matrices[at, i, j] + matrices[at, j, i]
            matrices[at, i, j] = both
            matrices[at, j, i] = both


@subkernel
def add_to_edge_rows(
    rich: Any, e: int, gradient: Array, at: int, R_into: Array, gamma: Array, thread: int, n: int
) -> None:
    """R_into += v · gradient[at] for the rows of edge e that are this thread's, of n threads."""
    eptr, erow, evalue, efeature, ptr, pair, _ = rich
    n_pairs = gradient.shape[1]
    for p in range(eptr[e], eptr[e + 1]):
        r = erow[p]
        if r % n != thread:
            continue
        v = evalue[p] if evalue.size else gradient.dtype.type(1)
        if gamma.size:
            v *= gradient.dtype.type(gamma[efeature[p]])
        if ptr.size:
            for q in range(ptr[r], ptr[r + 1]):
                R_into[q] += v * gradient[at, pair[q]]
        else:
            for q in range(n_pairs):
                R_into[r * n_pairs + q] += v * gradient[at, q]
