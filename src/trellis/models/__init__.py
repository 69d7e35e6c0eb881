"""Estimators: linear models of chains, trees and graphs."""

from trellis.models.chain_crf import ChainCRF
from trellis.models.checkpoint import Checkpoint
from trellis.models.crf import GraphCRF, TreeCRF
from trellis.models.export import export_predictor
from trellis.models.max_margin import MaxMargin
from trellis.models.perceptron import ChainPerceptron, GraphPerceptron, TreePerceptron
from trellis.models.prediction import Decoded
from trellis.models.regularised_decoder import RegularisedDecoder

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
    "export_predictor",
]
