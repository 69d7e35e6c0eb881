"""A protocol of seconds on the embedded data, for the tests."""

from __future__ import annotations

from dataclasses import replace

from studies.structure_regularisation.protocol import PROTOCOLS

TINY = replace(
    PROTOCOLS["quick"],
    name="tiny",
    runs=2,
    crf_runs=2,
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
_BASELINES = 2 * 2 + 1 + 1 + 2 * 3 * 2 + 2 + 1
"""L2, L1, group lasso, perceptrons at three sizes, not averaged, the default; both edges."""
_PIECES, _EXTENSIONS = 2 * 2, 2 + 2
"""Two kinds of edges; overlap at two sizes, two models with two complex ones."""
N_FITS = _BASELINES + _PIECES + _EXTENSIONS + (7 * 2 + 2 + 5 * 2)
"""All, with the comparison: seven CRFs in two runs, L1 and group lasso in one, perceptrons."""
