"""A protocol of seconds on the embedded data, for the tests."""

from __future__ import annotations

from dataclasses import replace

from studies.structure_regularisation.protocol import PROTOCOLS

TINY = replace(
    PROTOCOLS["quick"],
    name="tiny",
    runs=2,
    train_limit=15,
    test_limit=12,
    retrain=True,
    crf={"max_passes": 3},
    perceptron={"max_passes": 2},
    resamples=200,
    tokens=1500,
    small=5,
    rates=(0.1,),
)
N_FITS = 2 + 1 + 1 + 3 * 2 + 2 + 2 + 4 + 3 * 2
"""L2, L1, group lasso, perceptrons at three sizes, not averaged, pieces, and the comparison."""
