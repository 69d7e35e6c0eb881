"""Problems: what there is to learn from, and losses as small objects over it.

A problem holds samples, features, edges, label sets and pieces; learners see nothing else.
"""

from trellis.problems.cut import Cut
from trellis.problems.edge_weights import EdgeWeights
from trellis.problems.hinge import HingeLoss
from trellis.problems.hinge_dual import HingeDual
from trellis.problems.hinge_steps import HingeSteps
from trellis.problems.label_problem import LabelProblem
from trellis.problems.log_likelihood import FeatureRates, LogLikelihood
from trellis.problems.log_objective import LogObjective
from trellis.problems.oracle import summed_risk
from trellis.problems.partial import PARTIAL_LOSSES, PartialLoss, PartialObjective
from trellis.problems.penalty import Penalty
from trellis.problems.perceptron import PerceptronLoss
from trellis.problems.problem import Learnable, Maxima, Problem
from trellis.problems.weights import Weights

__all__ = [
    "PARTIAL_LOSSES",
    "Cut",
    "EdgeWeights",
    "FeatureRates",
    "HingeDual",
    "HingeLoss",
    "HingeSteps",
    "LabelProblem",
    "Learnable",
    "LogLikelihood",
    "LogObjective",
    "Maxima",
    "PartialLoss",
    "PartialObjective",
    "Penalty",
    "PerceptronLoss",
    "Problem",
    "Weights",
    "summed_risk",
]
