"""Structure regularisation: training samples cut into mini-samples (Sun 2014, Algorithm 1)."""

from trellis.decompose.chains import ChainPieces, partitioner
from trellis.decompose.graphs import GraphPieces
from trellis.decompose.pieces import VISITS, Partitioner, Pieces, WholeSamples, cut, visits

__all__ = [
    "VISITS",
    "ChainPieces",
    "GraphPieces",
    "Partitioner",
    "Pieces",
    "WholeSamples",
    "cut",
    "partitioner",
    "visits",
]
