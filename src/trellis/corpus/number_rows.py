"""Rows of numbers as features: (n, d) arrays and sparse matrices, a row for each position.

Column j is the real-valued attribute named ``columns[j]``, or ``xj``; zeros are not kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.corpus.corpus import FLOAT32_LIMIT, Corpus, Features, bounds
from trellis.corpus.form import Given
from trellis.errors import DataError

__all__ = ["dense_features", "from_rows", "is_sparse"]


def is_sparse(sample: Any) -> bool:
    """Whether a sample is a sparse matrix of SciPy."""
    return hasattr(sample, "tocsr") and hasattr(sample, "nnz")


def from_rows(samples: list[Any], columns: list[str] | None = None) -> Given:
    """Samples that are arrays or matrices of one width."""
    width = None if columns is None else len(columns)
    others = "sample 0 has" if columns is None else "there are names for"
    for i, sample in enumerate(samples):
        if not (isinstance(sample, np.ndarray) or is_sparse(sample)) or sample.ndim != 2:
            shape = getattr(sample, "shape", type(sample).__name__)
            raise DataError(f"sample {i} is {shape}; expected an (n, d) array like the others")
        width = sample.shape[1] if width is None else width
        if sample.shape[1] != width:
            raise DataError(f"sample {i} has {sample.shape[1]} columns, {others} {width}")
        if sample.dtype.kind not in "biuf":
            raise DataError(f"sample {i} has dtype {sample.dtype}; expected numbers")
    names = [f"x{j}" for j in range(width or 0)] if columns is None else columns
    offsets = bounds([sample.shape[0] for sample in samples])
    if any(map(is_sparse, samples)):  # of a million columns, maybe: their names are not kept
        return Given(Corpus(offsets, features=_sparse_features(samples, offsets, names)))
    for i, sample in enumerate(samples):
        bad = np.argwhere(~(np.abs(sample.astype(np.float64)) < FLOAT32_LIMIT))
        if len(bad):
            t, j = bad[0]
            raise _no_float32(i, t, j, sample[t, j])
    stacked: NDArray[np.float32] = np.concatenate([s.astype(np.float32) for s in samples])
    return Given(Corpus(offsets, features=dense_features(stacked, names)), fields=tuple(names))


def _sparse_features(samples: list[Any], offsets: NDArray[np.int64], names: list[str]) -> Features:
    """Features of matrices of one width, of which some are sparse."""
    from scipy.sparse import csr_array, vstack

    matrix = vstack([csr_array(sample).astype(np.float64) for sample in samples], format="csr")
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    bad = np.flatnonzero(~(np.abs(matrix.data) < FLOAT32_LIMIT))
    if bad.size:
        row = int(np.searchsorted(matrix.indptr, bad[0], side="right")) - 1
        i = int(np.searchsorted(offsets, row, side="right")) - 1
        at = matrix.indices[bad[0]]
        raise _no_float32(i, row - offsets[i], at, matrix.data[bad[0]])
    values = matrix.data.astype(np.float32)
    return Features(
        matrix.indptr.astype(np.int64),
        matrix.indices.astype(np.int32),
        None if (values == 1).all() else values,
        names,
    )


def _no_float32(sample: int, position: int, column: int, value: Any) -> DataError:
    return DataError(
        f"sample {sample}, position {position}, column {column} is {value}; "
        "must be a finite float32"
    )


def dense_features(rows: NDArray[np.float32], names: list[str]) -> Features:
    """Real-valued features (n, d) of positions."""
    where, columns = np.nonzero(rows)
    values = rows[where, columns]
    return Features(
        bounds(np.bincount(where, minlength=len(rows))),
        columns.astype(np.int32),
        None if (values == 1).all() else values,
        names,
    )
