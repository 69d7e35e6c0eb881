"""Structure regularisation: training samples cut into mini-samples (Sun 2014, Algorithm 1).

A sample is its positions and edges. A *partitioner* assigns every position to a piece; edges that
join two pieces are dropped, features stay as they are. Pieces are drawn anew for each pass, and
their mean size is n′, so that a structure of n positions becomes α = n / n′ simpler ones.

For chains the pieces are runs of consecutive positions. Their sizes are drawn independently, ⌊n′⌋
or ⌊n′⌋ + 1 so that the mean is n′; a fair coin for each sample decides whether blocks are laid from
the left or from the right, so the short remainder is at either end. Prediction never cuts.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from trellis.errors import DataError

__all__ = [
    "VISITS",
    "ChainPieces",
    "Partitioner",
    "Pieces",
    "WholeSamples",
    "cut",
    "partitioner",
    "visits",
]

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
    """

    offsets: NDArray[np.int64]
    sample: NDArray[np.int64]
    nodes: NDArray[np.int64] | None = None
    edges: NDArray[np.int64] | None = None
    overlap: int = 0

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


@dataclass(frozen=True)
class ChainPieces:
    """Consecutive blocks of mean size ``piece_size``.

    With an ``overlap`` of k each block goes on for k positions into the next one of its sample,
    whose edges and labels are then learned from twice (Sun 2014, appendix A.2).

    Examples
    --------
    >>> import numpy as np
    >>> from trellis.decompose import ChainPieces
    >>> pieces = ChainPieces(2.5).draw(np.array([0, 10, 12]), np.random.default_rng(0))
    >>> pieces.offsets, pieces.sample
    (array([ 0,  3,  6,  8, 10, 12]), array([0, 0, 0, 0, 1]))
    """

    piece_size: float
    overlap: int = 0

    def __post_init__(self) -> None:
        size = self.piece_size
        if not isinstance(self.overlap, numbers.Integral) or self.overlap < 0:
            raise DataError(f"overlap must be an integer of at least 0, got {self.overlap!r}")
        if not (isinstance(size, numbers.Real) and math.isfinite(size) and size >= 1):
            raise DataError(f"piece_size must be a number of at least 1, got {size!r}")

    def draw(self, offsets: NDArray[np.int64], rng: np.random.Generator) -> Pieces:
        """Cut every chain into blocks of ⌊n′⌋ or ⌊n′⌋ + 1 positions, from a random end."""
        from trellis.kernels.pieces import chain_blocks

        lengths = np.diff(offsets)
        whole = max(1, int(lengths.max(initial=0)))
        small = min(math.floor(self.piece_size), whole)  # a size beyond int64 is whole samples too
        most = int(np.sum(-(-lengths // small)))  # room for blocks of the smaller size only
        reverse = rng.random(len(lengths)) < 0.5
        larger = rng.random(most) < self.piece_size - math.floor(self.piece_size)
        bounds, sample = chain_blocks(offsets, small, larger, reverse)
        return Pieces(bounds, sample, overlap=int(self.overlap))


def partitioner(piece_size: float | None, overlap: int = 0) -> Partitioner:
    """Return the partitioner of chains for a piece size; None means whole samples."""
    if piece_size is None:
        ChainPieces(1, overlap)  # checks the overlap
        return WholeSamples()
    return ChainPieces(piece_size, overlap)


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
