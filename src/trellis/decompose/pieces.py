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

from trellis.arrays import as_array, as_offsets, held, known
from trellis.domains import generator, instance, nothing, one_of, takes, whole
from trellis.errors import DataError
from trellis.structures.forest import Forest

__all__ = ["VISITS", "Partitioner", "Pieces", "WholeSamples", "cut", "drawn", "visits"]

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

    Raises
    ------
    DataError
        If the arrays do not fit each other.
    """

    offsets: NDArray[np.int64]
    sample: NDArray[np.int64]
    nodes: NDArray[np.int64] | None = None
    edges: NDArray[np.int64] | None = None
    overlap: int = 0
    forest: Forest | None = None
    kept: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        whole(0).check("overlap", self.overlap)
        (nothing | instance(Forest)).check("forest", self.forest)
        sample = as_array(self.sample, np.int64, "sample", (None,), low=0)
        offsets = as_offsets(self.offsets)
        n = int(offsets[-1])
        object.__setattr__(self, "overlap", int(min(self.overlap, n)))  # more is the same
        arrays = {"sample": sample, "offsets": offsets}
        if len(offsets) != len(sample) + 1 or (np.diff(offsets) == 0).any():
            raise DataError("offsets must rise, and be one more than the samples of the pieces")
        if (np.diff(sample) < 0).any():
            raise DataError("pieces must come in the order of their samples")
        if self.nodes is not None:
            nodes = arrays["nodes"] = as_array(self.nodes, np.int64, "nodes", (n,))
            if not np.array_equal(np.sort(nodes), np.arange(n)):
                raise DataError(f"nodes must hold each of the positions 0 to {n - 1} once")
        if self.edges is not None:
            arrays["edges"] = as_array(self.edges, np.int64, "edges", (None, 2), low=0, high=n)
        if self.kept is not None:
            shape = (None,) if self.edges is None else (len(arrays["edges"]),)
            arrays["kept"] = as_array(self.kept, np.int64, "kept", shape, low=0)
        if self.forest is not None and not (
            np.array_equal(self.forest.order, arrays.get("nodes", []))
            and np.array_equal(self.forest.tree, offsets)
        ):
            raise DataError("nodes and offsets must be the order and the trees of the forest")
        for name, array in arrays.items():
            vars(self)[name] = held(array, vars(self)[name])

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
        offsets = as_offsets(offsets)
        filled = np.flatnonzero(np.diff(offsets))
        return drawn(np.append(0, offsets[1:][filled]), filled)


def drawn(
    offsets: NDArray[np.int64],
    sample: NDArray[np.int64],
    nodes: NDArray[np.int64] | None = None,
    edges: NDArray[np.int64] | None = None,
    overlap: int = 0,
    forest: Forest | None = None,
    kept: NDArray[np.int64] | None = None,
) -> Pieces:
    """Pieces that a partitioner made, which need no check."""
    return known(
        Pieces, offsets=offsets, sample=sample, nodes=nodes, edges=edges, overlap=overlap,
        forest=forest, kept=kept,
    )  # fmt: skip


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
    offsets = as_offsets(offsets)
    n = int(offsets[-1])
    edges = as_array(edges, np.int64, "edges", (None, 2), low=0, high=n)
    piece = as_array(piece, np.int64, "piece", (n,))
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    nodes = np.lexsort((piece, owner))
    other = (np.diff(piece[nodes]) != 0) | (np.diff(owner[nodes]) != 0)
    change = np.flatnonzero(other) + 1
    bounds = np.concatenate([[0], change, [len(nodes)]]) if len(nodes) else np.zeros(1)
    same = (piece[edges[:, 0]] == piece[edges[:, 1]]) & (owner[edges[:, 0]] == owner[edges[:, 1]])
    first = nodes[bounds[:-1].astype(np.int64)]
    return drawn(bounds.astype(np.int64), owner[first], nodes, edges[same])


@takes(pieces=instance(Pieces), rng=generator, visit=one_of(*VISITS))
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
