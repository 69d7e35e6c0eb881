"""The theory of structure regularisation (Sun 2014) as functions, and measurements beside it.

Bounds on stability and overfitting, the number of SGD updates, estimates of the quantities in them
from a fitted model, and two experiments that measure what the bounds speak of.
"""

from trellis.theory.convergence import sgd_iterations, sgd_learning_rate
from trellis.theory.measured_rate import RateRun, measure_rate
from trellis.theory.measured_stability import MeasuredStability, measure_stability
from trellis.theory.quantities import Quantities, point_losses
from trellis.theory.risk import (
    VARIANTS,
    overfit_bound,
    overfit_order,
    risk_bound,
    risk_bound_from_stability,
)
from trellis.theory.stability import (
    Stability,
    mini_sample_stability_bound,
    observed_stability,
    sample_stability_bound,
    stability_from_function,
)

__all__ = [
    "VARIANTS",
    "MeasuredStability",
    "Quantities",
    "RateRun",
    "Stability",
    "measure_rate",
    "measure_stability",
    "mini_sample_stability_bound",
    "observed_stability",
    "overfit_bound",
    "overfit_order",
    "point_losses",
    "risk_bound",
    "risk_bound_from_stability",
    "sample_stability_bound",
    "sgd_iterations",
    "sgd_learning_rate",
    "stability_from_function",
]
