"""What the library's defaults reach where the paper's models were not meant to go.

*Given what was observed*: on maps, GLACER and a Gaussian CRF as the library makes them if nothing
is said, which know the targets of training rows nearby; King County's missing numbers are 0 here.
*Network lassos*: new nodes predicted by the convex and by the non-convex network lasso, the latter
where ADMM ended, or after the search for a minimum of its objective; λ is 5 as in the tables, or
chosen on held-out nodes. *Regions*: 800 places in a square, half to train, of which each of four
regions has a linear model of its own; what network lassos are made for.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from studies.datasets import load_kingcounty, load_sacramento
from studies.glacer.cases import Case
from studies.glacer.models import hushed
from trellis.regression import GCRF, GLACER, KNN, NetworkLasso, RegressionData
from trellis.regression.baselines import Lasso
from trellis.regression.bases import one_thread

__all__ = ["GIVEN", "LASSOS", "LEVEL_STD", "regions", "run_given", "run_lassos"]

GIVEN = ("GCRF", "GLACER", "GLACER, no swaps")
"""Models with default parameters."""

LASSOS: dict[str, dict[str, Any]] = {
    "convex": {"convex": True},
    "non-convex": {"convex": False, "options": {"search": False}},
    "non-convex, search": {"convex": False, "options": {"search": True}},
}
"""Network lassos by name."""

LEVEL_STD = 1.6449
"""Standard deviations to either side of a 90 % interval."""

MOST_ASKED = 1000  # test rows


def run_given(kind: str, n: int, split: int) -> dict[str, Any]:
    """Errors of default models and of their base models, coverage and times, on a random split."""
    data = load_sacramento() if kind == "sacramento" else load_kingcounty()
    train, rest = data.split(n, split)
    test = rest.subset(np.arange(min(MOST_ASKED, len(rest.y))))
    X, X_new = np.nan_to_num(train.X), np.nan_to_num(test.X)
    found: dict[str, Any] = {"kind": "given", "mse": {}, "base": {}, "coverage": {}, "seconds": {}}
    with one_thread(), hushed():
        for name in GIVEN:
            metric: Any = data.metric  # a str
            model: Any = GCRF(metric=metric, random_state=split)
            if name != "GCRF":
                swaps = 0 if name.endswith("no swaps") else None
                model = GLACER(max_swaps=swaps, random_state=split)
            started = time.perf_counter()
            model.fit(X, train.y, coords=train.coords)
            mean, std = model.predict(X_new, coords=test.coords, return_std=True)
            found["seconds"][name] = time.perf_counter() - started
            if name == "GCRF":
                base = model.predict_base(X_new)
            else:
                base = np.mean([m.predict(X_new) for m in model.models_], axis=0)
            found["mse"][name] = float(np.mean((mean - test.y) ** 2))
            found["base"][name] = float(np.mean((base - test.y) ** 2))
            found["coverage"][name] = float(np.mean(abs(mean - test.y) < LEVEL_STD * std))
    return found


def regions(seed: int, n: int = 400) -> tuple[RegressionData, RegressionData]:
    """Training and test nodes of a map with four regions; each part has a graph of its own."""
    rng = np.random.default_rng(seed)
    where, centres = rng.random((2 * n, 2)), rng.random((4, 2))
    region = ((where[:, None] - centres) ** 2).sum(2).argmin(1)
    X = rng.standard_normal((2 * n, 2))
    weights = 2 * rng.standard_normal((4, 3))[region]
    y = (X * weights[:, :2]).sum(1) + weights[:, 2] + 0.5 * rng.standard_normal(2 * n)
    whole = RegressionData("regions", X, y, where, None, ("a", "b"))
    parts = (whole.subset(np.arange(n)), whole.subset(np.arange(n, 2 * n)))
    train, test = (part.with_graph(KNN(scale="median")) for part in parts)
    return train, test


def run_lassos(case: Case | None, repetition: int) -> dict[str, Any]:
    """Errors of network lassos, and the non-convex objective where ADMM and the search ended.

    No case: regions.
    """
    train, test = regions(repetition) if case is None else case.pair(repetition)
    found: dict[str, Any] = {"kind": "lassos", "mse": {}, "objective": {}}
    with one_thread():
        for name, options in LASSOS.items():
            for chosen, lam in (("λ = 5", 5.0), ("λ chosen", None)):
                values = Lasso(lam, **options)(train, test, repetition)
                found["mse"][f"{name}, {chosen}"] = float(np.mean((values - test.y) ** 2))
            if name != "convex":
                found["objective"][name] = _objective(train, options["options"])
    return found


def _objective(train: RegressionData, options: dict[str, Any]) -> float:
    """The objective at λ = 5 on the numbers that the table's models see."""
    columns = slice(None) if train.regressors is None else list(train.regressors)
    X = train.X[:, columns]
    Z = (X - X.mean(0)) / np.where(X.std(0) > 0, X.std(0), 1.0)
    model = NetworkLasso(5.0, convex=False, y_scale=10 / train.y.std(), **options)
    return float(model.fit(Z, train.y - train.y.mean(), graph=train.graph).objective_)
