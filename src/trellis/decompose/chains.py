"""Pieces of chains: runs of consecutive positions.

Their sizes are drawn independently, ⌊n′⌋ or ⌊n′⌋ + 1 so that the mean is n′; a fair coin for each
sample decides whether blocks are laid from the left or from the right, so the short remainder is at
either end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import as_offsets, memory_for
from trellis.decompose.pieces import Partitioner, Pieces, WholeSamples, drawn
from trellis.domains import generator, number, whole

__all__ = ["ChainPieces", "check_piece_size", "partitioner"]

_MOST = 2**31  # an overlap of more positions than any sample has is as good as a larger one


def check_piece_size(size: Any) -> None:
    """Refuse a mean size that is none."""
    number(at_least=1).check("piece_size", size)


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
        whole(0).check("overlap", self.overlap)
        check_piece_size(self.piece_size)

    def draw(self, offsets: NDArray[np.int64], rng: np.random.Generator) -> Pieces:
        """Cut every chain into blocks of ⌊n′⌋ or ⌊n′⌋ + 1 positions, from a random end."""
        from trellis.kernels.pieces import chain_blocks

        generator.check("rng", rng)
        offsets = as_offsets(offsets)
        lengths = np.diff(offsets)
        whole_length = max(1, int(lengths.max(initial=0)))
        # A size beyond int64 is whole samples too.
        small = min(math.floor(self.piece_size), whole_length)
        most = int(np.sum(-(-lengths // small)))  # room for blocks of the smaller size only
        reverse = rng.random(len(lengths)) < 0.5
        with memory_for(most, "pieces"):
            larger = rng.random(most) < self.piece_size - math.floor(self.piece_size)
            bounds, sample = chain_blocks(offsets, small, larger, reverse)
        return drawn(bounds, sample, overlap=int(min(self.overlap, _MOST)))


def partitioner(piece_size: float | None, overlap: int = 0) -> Partitioner:
    """Return the partitioner of chains for a piece size; None means whole samples."""
    if piece_size is None:
        ChainPieces(1, overlap)  # checks the overlap
        return WholeSamples()
    return ChainPieces(piece_size, overlap)
