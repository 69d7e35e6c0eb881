"""Objectives: what is minimised, as values, gradients and single steps over pieces."""

from trellis.objectives.chain import ChainData, ChainWeights
from trellis.objectives.edge_weights import EdgeWeights
from trellis.objectives.log_likelihood import FeatureRates, LogLikelihood
from trellis.objectives.penalty import Penalty
from trellis.objectives.perceptron import PerceptronLoss

__all__ = [
    "ChainData",
    "ChainWeights",
    "EdgeWeights",
    "FeatureRates",
    "LogLikelihood",
    "Penalty",
    "PerceptronLoss",
]
