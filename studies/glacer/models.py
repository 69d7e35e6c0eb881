"""The models of the study, with every parameter set here: library defaults may change.

`published_gcrf` and `published_glacer` make what the paper describes: each graph scaled by itself,
and predictions that know no target of a training node.

What the paper leaves open, or what its authors' language (MATLAB) would have made of it:

- LSBoost inside GLACER has 100 stumps. The paper limits *GLACER and the ensemble baselines* to M
  components, not the trees inside; MATLAB's boosting has 100 cycles if nothing is said, and its
  function of those years, ``fitensemble``, boosted stumps. Ten trees of ten splits stand beside it.
- LSB, a baseline, has M = 10 trees of ten splits; M stumps, and the 100 stumps that GLACER is made
  of, stand beside it.
- SVM has scikit-learn's width of the kernel, 1 over the number of features; MATLAB's is 1 («γ = 1»)
  and does worse.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from trellis.arrays import Float64s
from trellis.regression import GCRF, GLACER, RegressionData, least_squares_boosting
from trellis.regression.baselines import Model, Plain, baselines, unstructured
from trellis.regression.bases import seeded

__all__ = [
    "BY_ERROR",
    "READINGS",
    "STUMPS",
    "UNSTRUCTURED",
    "Smoothed",
    "glacer_base",
    "hushed",
    "learners",
    "plain_models",
    "published_gcrf",
    "published_glacer",
]

Learning = Literal["likelihood", "error"]
Predictions = Literal["in-sample", "cv"]

UNSTRUCTURED = ("MLR", "NN", "SVM", "SUBBAG", "RF", "LSB")
"""Baselines of the paper that know no graph."""

READINGS = {"SVM": "SVM, γ = 1", "LSB": "LSB, 10 stumps"}
"""Baselines as MATLAB may have had them."""

STUMPS = 100
"""Inside each component of GLACER, if nothing else is said."""

BY_ERROR = ", error"
"""How names of Gaussian CRFs that were learnt by their error end."""


def published_gcrf(
    base: Any, learning: Learning = "likelihood", predictions: Predictions = "in-sample"
) -> GCRF:
    """The Gaussian CRF of the paper over a regressor.

    α and β are learnt by exact likelihood from in-sample predictions, as in the paper; or from
    out-of-fold ones ("cv"), or by the squared error instead.
    """
    return GCRF(
        base, observed=False, criterion=learning, base_predictions=predictions, random_state=0
    )


def published_glacer(base: Any, random_state: int, **options: Any) -> GLACER:
    """GLACER of the paper; M = 10 components on η = 0.3 of the examples if none are said."""
    return GLACER(
        **{"n_components": 10, "subsample": 0.3} | options,
        base=base,
        observed=False,
        n_jobs=1,
        random_state=random_state,
    )


@contextmanager
def hushed() -> Iterator[None]:
    """No word of networks that have not converged, nor of few examples: the tables show them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "Using the fractional value", UserWarning)
        yield


class Smoothed:
    """A Gaussian CRF over a regressor as a model of the table; `gamma` is β/α of the last fit."""

    def __init__(self, base: Any, learning: Learning = "likelihood") -> None:
        self.base, self.learning = base, learning
        self.gamma = float("nan")

    def __call__(self, train: RegressionData, test: RegressionData, seed: int) -> Float64s:
        """Train and predict."""
        predictions: Predictions = "in-sample" if self.learning == "likelihood" else "cv"
        model = published_gcrf(seeded(clone(self.base), seed), self.learning, predictions)
        with hushed():
            model.fit(train.X, train.y, graph=train.graph)
        self.gamma = float(model.beta_ / model.alpha_)
        found: Float64s = model.predict(test.X, graph=test.graph)
        return found


def learners() -> dict[str, Any]:
    """The regressors that have an «S-» variant: the paper's six, and other readings of two."""
    found = unstructured()
    narrow = clone(found["SVM"])
    narrow.set_params(regressor__svr__gamma=1.0)
    return found | {
        "SVM, γ = 1": narrow,
        "LSB, 10 stumps": least_squares_boosting(10, max_leaf_nodes=2),
        f"LSB, {STUMPS} stumps": least_squares_boosting(STUMPS, max_leaf_nodes=2),
    }


def plain_models(coordinates: bool) -> dict[str, Model]:
    """All models without a Gaussian CRF, by name."""
    table = baselines(coordinates=coordinates, glacer=False)
    table = {name: model for name, model in table.items() if not name.startswith("S-")}
    return table | {name: Plain(base) for name, base in learners().items()}


def glacer_base(options: Mapping[str, Any]) -> Any:
    """The model inside GLACER: `learner` names it, else boosting with `trees` of `leaves`."""
    if "learner" in options:
        return learners()[options["learner"]]
    return least_squares_boosting(
        options.get("trees", STUMPS), max_leaf_nodes=options.get("leaves", 2)
    )
