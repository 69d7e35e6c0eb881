"""Solvers: how an objective is minimised."""

from trellis.solvers.adf import AdaptiveFrequency
from trellis.solvers.bundle import Bundle, BundleRecord, BundleResult, Cut, minimise_bundle
from trellis.solvers.convergence import convergence_value
from trellis.solvers.frank_wolfe import (
    FrankWolfeRecord,
    FrankWolfeResult,
    minimise_frank_wolfe,
)
from trellis.solvers.lbfgs import LimitedMemoryBFGS
from trellis.solvers.passes import PassRecord, Progress, run_passes
from trellis.solvers.perceptron import AveragedPerceptron
from trellis.solvers.sgd import StochasticGradient, calibrate
from trellis.solvers.simplex_qp import SimplexSolution, solve_simplex_qp

__all__ = [
    "AdaptiveFrequency",
    "AveragedPerceptron",
    "Bundle",
    "BundleRecord",
    "BundleResult",
    "Cut",
    "FrankWolfeRecord",
    "FrankWolfeResult",
    "LimitedMemoryBFGS",
    "PassRecord",
    "Progress",
    "SimplexSolution",
    "StochasticGradient",
    "calibrate",
    "convergence_value",
    "minimise_bundle",
    "minimise_frank_wolfe",
    "run_passes",
    "solve_simplex_qp",
]
