"""Weighted votes: which label wins at each position.

The label c of position t has the score S_t(c) = Σ_j W_tj 1[h_j says c at t], with the weights W_tj
of the experts that are awake there. The most voted label wins, and among equals the one that the
first expert in order says (or any of them, drawn with equal chances). Where all sleep there is no
winner.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import for_kernels
from trellis.kernels.votes import most_voted

__all__ = ["own_votes", "vote"]

# Votes closer than this, relatively, are equal: sums of the same weights in another order differ.
_EQUAL = 1e-12
_CELLS = 4_000_000


def vote(
    codes: NDArray[np.int32],
    weights: NDArray[np.float64] | Callable[[slice], NDArray[np.float64]],
    n_labels: int,
    rng: np.random.Generator | None = None,
    order: NDArray[np.int64] | None = None,
) -> NDArray[np.int32]:
    """Return the label with the most weight at each position, -1 where no expert is awake.

    Parameters
    ----------
    codes : int32 (N, p)
        What the experts say; -1: nothing.
    weights : float64 (p,), (N, p) or a function from a slice of positions to (n, p)
        Non-negative weights; if all that are awake are 0, the vote is unweighted.
    n_labels : int
    rng : Generator or None
        Break ties at random; None: the label that the first expert in order says.
    order : int64 (p,) or None
        Experts in the order in which they are asked where there are ties; None: as they stand.

    Returns
    -------
    int32 (N,)

    Examples
    --------
    >>> import numpy as np
    >>> from trellis.experts.voting import vote
    >>> said, weights = np.array([[0, 1, 1], [0, 1, -1]], np.int32), np.array([0.4, 0.3, 0.3])
    >>> vote(said, weights, 2)
    array([1, 0], dtype=int32)
    """
    n, p = codes.shape
    winner = np.empty(n, np.int32)
    asked = np.arange(p) if order is None else for_kernels(np.asarray(order, np.int64))
    # With lots there is a table of all labels; without, the weights alone need memory.
    step = max(1, _CELLS // (p if rng is None else max(n_labels, p)))
    if rng is None and not callable(weights):
        step = max(1, n)
    for start in range(0, n, step):
        part = slice(start, min(n, start + step))
        block = codes[part]
        if callable(weights):
            weight = weights(part)
        else:
            weight = weights[None] if weights.ndim == 1 else weights[part]
        if rng is None:
            most_voted(
                for_kernels(np.ascontiguousarray(block, np.int32)),
                for_kernels(np.ascontiguousarray(weight, np.float64)),
                asked, n_labels, _EQUAL, winner[part],
            )  # fmt: skip
            continue
        votes = own_votes(block, np.broadcast_to(weight, block.shape), n_labels)
        best = votes.max(axis=1, keepdims=True)
        tied = votes >= best * (1 - _EQUAL)
        # One lot a label, not an expert, so that each tied label has the same chance.
        lots = np.take_along_axis(rng.random((len(block), n_labels)), np.maximum(block, 0), 1)
        pick = np.where(tied, lots, -1.0).argmax(axis=1)
        rows = np.arange(len(block))
        winner[part] = np.where(best[:, 0] < 0, -1, block[rows, pick])
    return winner


def own_votes(
    codes: NDArray[np.int32], weights: NDArray[np.float64], n_labels: int
) -> NDArray[np.float64]:
    """Return S_t(what expert j says at t), (N, p), as a share of all votes; -1 where j sleeps."""
    awake = codes >= 0
    weights = np.where(awake, weights, 0.0)
    total = weights.sum(axis=1, keepdims=True)
    weights = np.where(total > 0, weights, awake)
    total = np.where(total > 0, total, np.maximum(awake.sum(axis=1, keepdims=True), 1))
    index = np.arange(len(codes))[:, None] * n_labels + np.maximum(codes, 0)
    votes = np.bincount(index.ravel(), weights.ravel(), len(codes) * n_labels)
    return np.where(awake, votes[index] / total, -1.0)
