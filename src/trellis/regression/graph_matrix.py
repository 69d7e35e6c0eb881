"""Graphs as matrices of similarities: what models check of them and make of them.

S (n, n) is sparse and symmetric, S_ij >= 0, S_ii = 0. Models divide every similarity by the average
weighted degree (:func:`normalise`), so that their parameters mean the same on graphs of different
sizes, and smooth by the Laplacian (:func:`laplacian`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trellis.domains import nothing, whole
from trellis.errors import DataError

__all__ = ["check_graph", "laplacian", "normalise", "resolve_graph", "without_zeros"]


def check_graph(graph: Any, n: int | None = None) -> Any:
    """Check a similarity matrix and give it as a CSR array of float64 with empty diagonal.

    A node's similarity to itself has no meaning for smoothing (it cancels in the Laplacian) and is
    dropped. Isolated nodes are allowed.

    Parameters
    ----------
    graph : sparse matrix or array, (n, n)
        Similarities.
    n : int, optional
        The number of nodes expected.

    Raises
    ------
    DataError
        If it is not a square matrix of numbers, has not `n` nodes, holds a NaN, an infinite or a
        negative similarity, or is not symmetric.

    Examples
    --------
    >>> check_graph([[1, 2], [2, 0]]).toarray()
    array([[0., 2.],
           [2., 0.]])
    >>> check_graph([[0, 2], [1, 0]])
    Traceback (most recent call last):
    trellis.errors.DataError: the graph is not symmetric: S[0, 1] = 2 but S[1, 0] = 1; use the
    larger (S.maximum(S.T)) or the mean of both
    """
    import scipy.sparse as sp

    (nothing | whole(0)).check("n", n)
    if not sp.issparse(graph):
        try:
            graph = np.asarray(graph, dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise DataError(f"the graph is not a matrix of numbers: {error}") from error
    if graph.ndim != 2 or graph.shape[0] != graph.shape[1]:
        raise DataError(f"the graph must be a square matrix, got shape {graph.shape}")
    if n is not None and graph.shape[0] != n:
        raise DataError(
            f"the graph has {graph.shape[0]} nodes but X has {n} rows; the graph of exactly the"
            " rows at hand is needed (a builder such as KNN(n_neighbors=5) makes it from X)"
        )
    S = sp.csr_array(graph, dtype=np.float64, copy=True)
    S.sum_duplicates()
    bad = ~np.isfinite(S.data)
    if bad.any():
        i, j = _place(S, int(np.argmax(bad)))
        raise DataError(f"similarity S[{i}, {j}] is {S.data[bad][0]}; give finite numbers")
    if len(S.data) and S.data.min() < 0:
        i, j = _place(S, int(np.argmin(S.data)))
        raise DataError(
            f"similarity S[{i}, {j}] = {S.data.min():g} is negative; similarities are at least 0"
        )
    difference = (S - S.T.tocsr()).tocoo()
    if len(difference.data):
        worst = int(np.argmax(np.abs(difference.data)))
        if abs(difference.data[worst]) > 1e-9 * S.data.max():
            i, j = sorted((int(difference.row[worst]), int(difference.col[worst])))
            raise DataError(
                f"the graph is not symmetric: S[{i}, {j}] = {S[i, j]:g} but S[{j}, {i}] ="
                f" {S[j, i]:g}; use the larger (S.maximum(S.T)) or the mean of both"
            )
        S = (S + S.T.tocsr()) * 0.5  # rounding differences only
    rows = np.repeat(np.arange(S.shape[0]), np.diff(S.indptr))
    S.data[rows == S.indices] = 0.0
    return without_zeros(S)


def resolve_graph(graph: Any, X: Any, n: int) -> Any:
    """Give the checked graph of the rows of `X`: a matrix as it is, a builder called with `X`.

    Examples
    --------
    >>> from trellis.regression import KNN
    >>> resolve_graph(KNN(n_neighbors=1), [[0.0], [1.0]], 2).nnz
    2
    """
    if graph is None:
        raise DataError("no graph: pass graph=S (similarities of the rows of X) or a builder")
    return check_graph(graph(X) if callable(graph) else graph, n)


def normalise(S: Any) -> Any:
    """Scale similarities to an average weighted degree of 1: n S / sum(S).

    A graph without edges stays as it is.

    Examples
    --------
    >>> normalise(check_graph([[0, 4], [4, 0]])).toarray()
    array([[0., 1.],
           [1., 0.]])
    """
    S = _graph(S)
    total = float(S.sum())
    return S * (S.shape[0] / total) if total > 0 else S


def laplacian(S: Any) -> Any:
    """Return L = diag(row sums of S) - S, so that y'Ly = sum over edges of S_ij (y_i - y_j)^2.

    Examples
    --------
    >>> laplacian(check_graph([[0, 2], [2, 0]])).toarray()
    array([[ 2., -2.],
           [-2.,  2.]])
    """
    import scipy.sparse as sp

    S = _graph(S)
    return (sp.diags_array(np.asarray(S.sum(axis=1)).ravel()) - S).tocsr()


def _graph(S: Any) -> Any:
    """A sparse square matrix as it is, anything else checked."""
    square = getattr(S, "format", "") == "csr" and S.shape[0] == S.shape[1]
    return S if square else check_graph(S)


def without_zeros(S: Any) -> Any:
    """Drop stored zeros."""
    S.eliminate_zeros()
    S.sort_indices()
    return S


def _place(S: Any, position: int) -> tuple[int, int]:
    row = int(np.searchsorted(S.indptr, position, side="right")) - 1
    return row, int(S.indices[position])
