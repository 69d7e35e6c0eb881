"""What the bounds of :mod:`trellis.theory` speak of, measured: stability, SGD's rate, margins."""

from studies.measured.boosting import empirical_margin_loss, exponential_loss
from studies.measured.rate import RateRun, measure_rate
from studies.measured.stability import (
    MeasuredStability,
    measure_stability,
    observed_stability,
)

__all__ = [
    "MeasuredStability",
    "RateRun",
    "empirical_margin_loss",
    "exponential_loss",
    "measure_rate",
    "measure_stability",
    "observed_stability",
]
