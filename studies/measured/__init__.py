"""What the bounds of :mod:`trellis.theory` speak of, measured: stability, and the rate of SGD."""

from studies.measured.rate import RateRun, measure_rate
from studies.measured.stability import (
    MeasuredStability,
    measure_stability,
    observed_stability,
)

__all__ = [
    "MeasuredStability",
    "RateRun",
    "measure_rate",
    "measure_stability",
    "observed_stability",
]
