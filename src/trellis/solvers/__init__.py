"""Solvers: how an objective is minimised."""

from trellis.solvers.adf import AdaptiveFrequency
from trellis.solvers.bundle import Bundle
from trellis.solvers.cccp import (
    CCCPRecord,
    PlaneSurrogate,
    Surrogate,
    Tangent,
    minimise_cccp,
)
from trellis.solvers.completion import CompletedFrankWolfe
from trellis.solvers.convergence import convergence_value
from trellis.solvers.frank_wolfe import minimise_frank_wolfe
from trellis.solvers.lbfgs import LimitedMemoryBFGS
from trellis.solvers.partial_margin import minimise_partial
from trellis.solvers.passes import Passes, PassRecord, Progress, Watch
from trellis.solvers.perceptron import AveragedPerceptron
from trellis.solvers.perceptron_partial import partial_perceptron
from trellis.solvers.planes import BundleResult, minimise_bundle
from trellis.solvers.sgd import StochasticGradient, calibrate
from trellis.solvers.simplices_qp import SimplexSolution, solve_simplices_qp
from trellis.solvers.solution import Solution

__all__ = [
    "AdaptiveFrequency",
    "AveragedPerceptron",
    "Bundle",
    "BundleResult",
    "CCCPRecord",
    "CompletedFrankWolfe",
    "LimitedMemoryBFGS",
    "PassRecord",
    "Passes",
    "PlaneSurrogate",
    "Progress",
    "SimplexSolution",
    "Solution",
    "StochasticGradient",
    "Surrogate",
    "Tangent",
    "Watch",
    "calibrate",
    "convergence_value",
    "minimise_bundle",
    "minimise_cccp",
    "minimise_frank_wolfe",
    "minimise_partial",
    "partial_perceptron",
    "solve_simplices_qp",
]
