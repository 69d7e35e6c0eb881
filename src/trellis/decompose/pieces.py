"""Pieces of samples, and the order in which a pass visits them (Sun 2014, Algorithm 1).

A sample is its positions and edges. A *partitioner* assigns every position to a piece; edges that
join two pieces are dropped, features stay as they are. Pieces are drawn anew for each pass, and
their mean size is n′, so that a structure of n positions becomes α = n / n′ simpler ones.
Prediction never cuts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from trellis.structures.forest import Forest

__all__ = ["VISITS", "Partitioner", "Pieces", "WholeSamples", "cut", "visits"]

VISITS = ("pooled", "permutation", "replacement")
"""Ways to order the visits of a pass (see :func:`visits`)."""

# Positions of a pool: their features (about 100 bytes each) fit a core's own cache.
_POOL = 2048


@dataclass(frozen=True)
class Pieces:
    """A decomposition of a corpus.

    Parameters
    ----------
    offsets : int64 array (K+1,)
        Piece k has the positions ``nodes[offsets[k]:offsets[k+1]]``.
    sample : int64 array (K,)
        The sample each piece comes from.
    nodes : int64 array (N,) or None
        Positions by piece; None when they are simply in order (chains).
    edges : int64 array (m, 2) or None
        The edges that remain; None for chains, whose neighbours are implied.
    overlap : int
        Positions that each piece of a chain goes on into the next one of its sample.
    forest : Forest or None
        For pieces that are trees: their nodes, each after its parent (then ``nodes`` is its
        ``order`` and the pieces are its trees), with the numbers of the edges.
    kept : int64 array (m,) or None
        Numbers of the edges that remain, by piece, where pieces need not be trees.
    """

    offsets: NDArray[np.int64]
    sample: NDArray[np.int64]
    nodes: NDArray[np.int64] | None = None
    edges: NDArray[np.int64] | None = None
    overlap: int = 0
    forest: Forest | None = None
    kept: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.sample)


class Partitioner(Protocol):
    """Draws a fresh decomposition of all samples."""

    def draw(self, offsets: NDArray[np.int64], rng: np.random.Generator) -> Pieces:
        """Cut the samples bounded by ``offsets``."""
        ...


@dataclass(frozen=True)
class WholeSamples:
    """No decomposition: every sample that is not empty is one piece (α = 1)."""

    def draw(self, offsets: NDArray[np.int64], rng: np.random.Generator) -> Pieces:
        """Return the samples as they are."""
        filled = np.flatnonzero(np.diff(offsets))
        return Pieces(np.append(0, offsets[1:][filled]), filled)


def cut(offsets: NDArray[np.int64], edges: NDArray[np.int64], piece: NDArray[np.int64]) -> Pieces:
    """Decomposition of any structure from the piece of each position: edges across are dropped.

    Parameters
    ----------
    offsets : int64 array (S+1,)
        Bounds of the samples.
    edges : int64 array (m, 2)
        Pairs of positions.
    piece : int64 array (N,)
        Piece of every position; a piece lies within one sample.

    Examples
    --------
    >>> import numpy as np
    >>> from trellis.decompose import cut
    >>> pieces = cut(np.array([0, 4]), np.array([[0, 1], [1, 2], [0, 3]]), np.array([7, 7, 2, 7]))
    >>> pieces.nodes, pieces.offsets, pieces.edges.tolist()
    (array([2, 0, 1, 3]), array([0, 1, 4]), [[0, 1], [0, 3]])
    """
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    nodes = np.lexsort((piece, owner))
    change = np.flatnonzero(np.diff(piece[nodes]) | np.diff(owner[nodes])) + 1
    bounds = np.concatenate([[0], change, [len(nodes)]]) if len(nodes) else np.zeros(1)
    same = (piece[edges[:, 0]] == piece[edges[:, 1]]) & (owner[edges[:, 0]] == owner[edges[:, 1]])
    first = nodes[bounds[:-1].astype(np.int64)]
    return Pieces(bounds.astype(np.int64), owner[first], nodes, edges[same])


def visits(pieces: Pieces, rng: np.random.Generator, visit: str = "pooled") -> NDArray[np.int64]:
    """Order in which a pass visits the pieces.

    Parameters
    ----------
    pieces : Pieces
    rng : Generator
    visit : {"pooled", "permutation", "replacement"}
        ``pooled``: every piece once; samples come in random order, and their pieces are mixed
        within pools of some hundred samples, whose features stay in the processor's cache.
        ``permutation``: every piece once, all orders equally likely. ``replacement``: as many
        independent uniform draws (Algorithm 1 as printed).

    Examples
    --------
    >>> import numpy as np
    >>> from trellis.decompose import ChainPieces, visits
    >>> rng = np.random.default_rng(0)
    >>> pieces = ChainPieces(2).draw(np.array([0, 6, 10]), rng)
    >>> sorted(visits(pieces, rng).tolist())
    [0, 1, 2, 3, 4]
    """
    n = len(pieces)
    if visit == "replacement":
        return rng.integers(0, n, n) if n else np.zeros(0, np.int64)
    if visit == "permutation":
        return rng.permutation(n)
    from trellis.kernels.pieces import pooled_order

    n_samples = int(pieces.sample[-1]) + 1 if n else 0
    first = np.searchsorted(pieces.sample, np.arange(n_samples + 1))
    samples = rng.permutation(n_samples)
    return pooled_order(first, np.diff(pieces.offsets), samples, rng.random(n), _POOL)
