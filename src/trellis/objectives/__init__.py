"""Objectives: what is minimised, as values, gradients and single steps over pieces."""

from trellis.objectives.chain import ChainData
from trellis.objectives.cut import Cut
from trellis.objectives.edge_weights import EdgeWeights
from trellis.objectives.graph import GraphData
from trellis.objectives.graph_hinge import GraphHingeLoss
from trellis.objectives.graph_log_likelihood import GraphLogLikelihood
from trellis.objectives.graph_perceptron import GraphPerceptronLoss
from trellis.objectives.hinge import HingeData, HingeLoss, StructuredOracle, summed_risk
from trellis.objectives.label_problem import LabelProblem
from trellis.objectives.learning_problem import Learnable, LearningProblem, Maxima
from trellis.objectives.log_likelihood import FeatureRates, LogLikelihood
from trellis.objectives.partial import PARTIAL_LOSSES, PartialLoss, PartialObjective
from trellis.objectives.penalty import Penalty
from trellis.objectives.perceptron import PerceptronLoss
from trellis.objectives.weights import Weights

__all__ = [
    "PARTIAL_LOSSES",
    "ChainData",
    "Cut",
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
