"""Objectives: what is minimised, as values, gradients and single steps over pieces."""

from trellis.objectives.chain import ChainData, ChainWeights
from trellis.objectives.log_likelihood import LogLikelihood
from trellis.objectives.perceptron import PerceptronLoss

__all__ = ["ChainData", "ChainWeights", "LogLikelihood", "PerceptronLoss"]
