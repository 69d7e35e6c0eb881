"""Objectives: what is minimised, as values, gradients and single steps over pieces."""

from trellis.problems.chain import ChainData
from trellis.problems.edge_weights import EdgeWeights
from trellis.problems.graph import GraphData
from trellis.problems.graph_hinge import GraphHingeLoss
from trellis.problems.graph_log_likelihood import GraphLogLikelihood
from trellis.problems.graph_perceptron import GraphPerceptronLoss
from trellis.problems.hinge import HingeData, HingeLoss, StructuredOracle, summed_risk
from trellis.problems.label_problem import LabelProblem
from trellis.problems.learning_problem import Learnable, LearningProblem, Maxima
from trellis.problems.log_likelihood import FeatureRates, LogLikelihood
from trellis.problems.partial import PARTIAL_LOSSES, PartialLoss, PartialObjective
from trellis.problems.penalty import Penalty
from trellis.problems.perceptron import PerceptronLoss
from trellis.problems.weights import Weights

__all__ = [
    "PARTIAL_LOSSES",
    "ChainData",
    "EdgeWeights",
    "FeatureRates",
    "GraphData",
    "GraphHingeLoss",
    "GraphLogLikelihood",
    "GraphPerceptronLoss",
    "HingeData",
    "HingeLoss",
    "LabelProblem",
    "Learnable",
    "LearningProblem",
    "LogLikelihood",
    "Maxima",
    "PartialLoss",
    "PartialObjective",
    "Penalty",
    "PerceptronLoss",
    "StructuredOracle",
    "Weights",
    "summed_risk",
]
