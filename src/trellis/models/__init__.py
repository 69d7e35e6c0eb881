"""Estimators."""

from trellis.models.chain_crf import ChainCRF
from trellis.models.chain_perceptron import ChainPerceptron
from trellis.models.checkpoint import Checkpoint
from trellis.models.graph_crf import GraphCRF
from trellis.models.graph_perceptrons import GraphPerceptron, TreePerceptron
from trellis.models.graph_predictor import Decoded
from trellis.models.max_margin import MaxMargin
from trellis.models.regularised_decoder import RegularisedDecoder
from trellis.models.tree_crf import TreeCRF

__all__ = [
    "ChainCRF",
    "ChainPerceptron",
    "Checkpoint",
    "Decoded",
    "GraphCRF",
    "GraphPerceptron",
    "MaxMargin",
    "RegularisedDecoder",
    "TreeCRF",
    "TreePerceptron",
]
