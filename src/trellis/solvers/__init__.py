"""Solvers: how an objective is minimised, pass by pass."""

from trellis.solvers.convergence import convergence_value
from trellis.solvers.passes import PassRecord, run_passes
from trellis.solvers.perceptron import AveragedPerceptron
from trellis.solvers.sgd import StochasticGradient, calibrate

__all__ = [
    "AveragedPerceptron",
    "PassRecord",
    "StochasticGradient",
    "calibrate",
    "convergence_value",
    "run_passes",
]
