"""The theory behind Trellis as functions.

Structure regularisation (Sun 2014): bounds on stability and overfitting, the number of SGD updates,
and estimates of the quantities in them from a fitted model. Ensembles of structured experts
(Cortes, Kuznetsov and Mohri 2014): their guarantees. Generalisation-aware regression (Pavlovski et
al. 2018): its objective and its bound.
"""

from trellis.theory.cheap_data import (
    log_partial_annotation_bound,
    partial_annotation_bound,
    rademacher_bridge,
    rademacher_kernel_class,
    rademacher_structured,
    radius_of,
    samples_needed,
)
from trellis.theory.convergence import sgd_iterations, sgd_learning_rate
from trellis.theory.experts import (
    boosting_margin_bound,
    boosting_risk_bound,
    hoeffding_deviation,
    majority_vote_bound,
    massart_complexity,
    randomised_excess,
    regret_bound,
)
from trellis.theory.quantities import Quantities, point_losses
from trellis.theory.regression import (
    MutualStability,
    bias_variance_objective,
    mutual_stability,
    true_risk_bound,
)
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
    sample_stability_bound,
    stability_from_function,
)

__all__ = [
    "VARIANTS",
    "MutualStability",
    "Quantities",
    "Stability",
    "bias_variance_objective",
    "boosting_margin_bound",
    "boosting_risk_bound",
    "hoeffding_deviation",
    "log_partial_annotation_bound",
    "majority_vote_bound",
    "massart_complexity",
    "mini_sample_stability_bound",
    "mutual_stability",
    "overfit_bound",
    "overfit_order",
    "partial_annotation_bound",
    "point_losses",
    "rademacher_bridge",
    "rademacher_kernel_class",
    "rademacher_structured",
    "radius_of",
    "randomised_excess",
    "regret_bound",
    "risk_bound",
    "risk_bound_from_stability",
    "sample_stability_bound",
    "samples_needed",
    "sgd_iterations",
    "sgd_learning_rate",
    "stability_from_function",
    "true_risk_bound",
]
