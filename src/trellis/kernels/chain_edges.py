"""The kinds of edges that chains have in CRF training, beside plain ones.

The kernels take None where edges are plain, and else all others in one argument, most of it empty:
so they are compiled twice, not once for each kind. (Numba drops what is done only if an argument is
not None, where it is None.)
"""

from __future__ import annotations

from typing import NamedTuple

from trellis.kernels.listed_pairs import ListedPairs
from trellis.kernels.rich_edges import RichEdges
from trellis.kernels.sparse_edges import Hits

__all__ = ["DENSE", "LISTED", "SPARSE", "ChainEdges"]

DENSE, SPARSE, LISTED = range(3)


class ChainEdges(NamedTuple):
    """Edges of one kind.

    ``rich`` are the weights of crossed features: of all pairs if ``kind`` is DENSE, of some if it
    is SPARSE, with room for their ``hits``. ``listed`` are, if it is LISTED, the pairs of labels
    that have transitions.
    """

    kind: int
    rich: RichEdges
    hits: Hits
    listed: ListedPairs
