"""Solvers: how an objective is minimised."""

from trellis.solvers.adf import AdaptiveFrequency
from trellis.solvers.convergence import convergence_value
from trellis.solvers.lbfgs import LimitedMemoryBFGS
from trellis.solvers.passes import PassRecord, Progress, run_passes
from trellis.solvers.perceptron import AveragedPerceptron
from trellis.solvers.sgd import StochasticGradient, calibrate

__all__ = [
    "AdaptiveFrequency",
    "AveragedPerceptron",
    "LimitedMemoryBFGS",
    "PassRecord",
    "Progress",
    "StochasticGradient",
    "calibrate",
    "convergence_value",
    "run_passes",
]
