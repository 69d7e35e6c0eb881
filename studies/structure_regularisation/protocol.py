"""How much is computed: the paper's protocol, a shorter one, and one that takes a minute.

What Sun (2014, section 3) fixes: the piece sizes n′, the penalties λ/2 of WeightReg (``l2`` here),
CRFs at the convergence state (relative change of the objective below 10⁻⁴), perceptrons after 10
passes, averaged over 10 runs, rich edges for all methods. What it leaves open is decided here:

- every method is tried with plain edges, too: one weight for each pair of labels;
- ``l2`` is also tried at 0.01 and 0.03, since the paper's smallest value is often the best of its
  grid;
- n′ of StructReg is chosen on development data among the seven sizes, with the λ that WeightReg
  chose on whole sequences with the same edges (the paper does not say that λ was tuned again for
  pieces);
- L1 and group lasso are tuned over a few values, without L2;
- pieces that overlap, and decoding with two models (Sun et al. 2017), are chosen in the same way;
- settings are chosen by one run of a CRF, and what is compared has several, as perceptrons have;
- «converged» in the full protocol is the paper's rule with at most 100 passes; the shorter ones
  take 12 passes with a rate that falls faster, or less, and the report says how many CRFs met the
  rule.

All of it is said here, so that what is measured stays the paper's method whatever the defaults of
the estimators are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["FIXED", "PROTOCOLS", "Protocol"]

_ALL: dict[str, Any] = {
    "piece_size": None,
    "overlap": 0,
    "edge_pairs": "auto",
    "edge_negatives": 10,
    "edge_min_share": 0.02,
    "batch_size": 1,
    "visit": "pooled",
    "scheme": None,
    "encoding": "given",
}
FIXED: dict[str, dict[str, Any]] = {
    "crf": _ALL
    | {
        "solver": "sgd",
        "averaged": False,
        "learning_rate": "auto",
        "decay": 0.75,
        "max_passes": 12,
        "tol": 1e-4,
        "l2": 0.0,
        "l1": 0.0,
        "group_lasso": 0.0,
        "l2_once": False,
        "transitions": "all",
    },
    "perceptron": _ALL | {"averaged": True, "max_passes": 10, "tol": 0.0},
}
"""Parameters of all CRFs and of all perceptrons but «Trellis default», if nothing else is said."""

_SIZES = (1.5, 2.5, 3.5, 5.5, 10.5, 15.5, 20.5)
_L2 = (0.01, 0.03, 0.1, 0.5, 1.0, 2.0, 5.0)


@dataclass(frozen=True)
class Protocol:
    """Grids, repetitions and sizes of the data."""

    name: str
    piece_sizes: tuple[float, ...]  # mean sizes n′ of mini-samples; whole sequences come besides
    l2: tuple[float, ...]  # strengths tried on whole sequences, each without the other two
    l1: tuple[float, ...]
    group_lasso: tuple[float, ...]
    overlaps: tuple[int, ...]  # overlaps of pieces tried at every n′ that is larger
    strengths: tuple[float, ...]  # weights of the simple one of two models tried
    runs: int  # runs of a perceptron with different seeds, which are averaged
    crf_runs: int  # the same for the CRFs that are compared; all others are run once
    # Sequences of the training part that curves and choices are made on, and of the development
    # and the test part; spread evenly over the data. None: all
    train_limit: int | None = None
    test_limit: int | None = None
    # Train the chosen settings on all training data (with the part held out from it, if there is
    # one) for the comparison; else the models of the curves are compared
    retrain: bool = True
    crf: dict[str, Any] = field(default_factory=dict)  # parameters that are not as in FIXED
    perceptron: dict[str, Any] = field(default_factory=dict)
    resamples: int = 10_000  # of the paired bootstrap
    tokens: int | None = None  # identifiers of the embedded data; None: all
    small: int = 100  # sequences of the corpus for stability and rate
    # Piece sizes of stability and rate
    small_sizes: tuple[float | None, ...] = (None, 10.5, 5.5, 2.5, 1.5)
    # Fixed learning rates tried at each of them
    rates: tuple[float, ...] = (0.02, 0.05, 0.1, 0.2, 0.5)


PROTOCOLS = {
    "quick": Protocol(
        "quick",
        piece_sizes=(1.5, 5.5),
        l2=(0.5, 2.0),
        l1=(0.3,),
        group_lasso=(0.1,),
        overlaps=(1,),
        strengths=(0.3, 1.0),
        runs=1,
        crf_runs=1,
        train_limit=200,
        test_limit=100,
        retrain=False,
        crf={"max_passes": 5},
        perceptron={"max_passes": 5},
        resamples=1000,
        tokens=12_000,
        small=12,
        small_sizes=(None, 2.5),
        rates=(0.1, 0.5),
    ),
    "default": Protocol(
        "default",
        piece_sizes=_SIZES,
        l2=_L2,
        l1=(0.1, 1.0),
        group_lasso=(0.03, 0.1, 0.3),
        overlaps=(1, 2),
        strengths=(0.1, 0.3, 1.0, 3.0),
        runs=3,
        crf_runs=3,
        train_limit=4000,
        tokens=100_000,
    ),
    "full": Protocol(
        "full",
        piece_sizes=_SIZES,
        l2=_L2,
        l1=(0.1, 0.3, 1.0),
        group_lasso=(0.01, 0.03, 0.1, 0.3),
        overlaps=(1, 2),
        strengths=(0.1, 0.3, 1.0, 3.0),
        runs=10,
        crf_runs=10,
        crf={"max_passes": 100, "decay": 0.9},
        small=200,
    ),
}
"""The protocols of the command line, by name."""
