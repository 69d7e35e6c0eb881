"""Base models by name: short names for those that people use, and every regressor of scikit-learn.

A model that takes no missing values gets them filled with the means of training; one that is not
indifferent to the units of features gets them standardised, and, if to those of the target, that
too.
"""

from __future__ import annotations

import difflib
from typing import Any

from trellis.errors import DataError
from trellis.regression.bases import least_squares_boosting, seeded

__all__ = ["BASES", "named_base", "taking_gaps"]

BASES = {
    "hgb": "HistGradientBoostingRegressor",
    "ridge": "RidgeCV",
    "linear": "LinearRegression",
    "forest": "RandomForestRegressor",
    "extra-trees": "ExtraTreesRegressor",
    "boosting": "GradientBoostingRegressor",
    "lsb": "least-squares boosting of ten trees, as in the literature",
    "tree": "DecisionTreeRegressor",
    "lasso": "LassoCV",
    "elastic-net": "ElasticNetCV",
    "bayes": "BayesianRidge",
    "huber": "HuberRegressor",
    "mlp": "MLPRegressor",
    "knn": "KNeighborsRegressor",
    "svm": "SVR",
    "mean": "DummyRegressor",
}
"""Short names, and what they stand for in scikit-learn."""

_OPTIONS: dict[str, dict[str, Any]] = {
    "RandomForestRegressor": {"min_samples_leaf": 2, "max_features": 0.5},
    "ExtraTreesRegressor": {"min_samples_leaf": 2, "max_features": 0.5},
    "MLPRegressor": {"max_iter": 1000, "early_stopping": True},
    "KNeighborsRegressor": {"weights": "distance", "n_neighbors": 10},
}
_OF_TREES = ("Tree", "Forest", "Boost", "Dummy", "Bagging")


def named_base(name: str, random_state: int | None = None) -> Any:
    """Return a regressor by its short name or that of its class.

    Parameters
    ----------
    name : str
        One of :data:`BASES`, or a class of scikit-learn such as ``"Lars"``.
    random_state : int, optional
        Seed, if it draws random numbers.

    Raises
    ------
    DataError
        If there is no such regressor; the message names those that look alike.

    Examples
    --------
    >>> named_base("hgb", 0)
    HistGradientBoostingRegressor(random_state=0)
    >>> [type(step).__name__ for _, step in named_base("Lars").steps]
    ['SimpleImputer', 'StandardScaler', 'Lars']
    >>> named_base("rigde")
    Traceback (most recent call last):
    trellis.errors.DataError: no base model is called 'rigde'; near to it: ridge, Ridge, RidgeCV
    """
    import numpy as np

    key = name.strip()
    short = key.lower().replace("_", "-")
    if short == "lsb":
        return taking_gaps(least_squares_boosting(10, random_state))
    if short in BASES:
        key = BASES[short]
    kind = _kind(key)
    if kind is None:
        raise DataError(f"no base model is called {name!r}; {_near(name)}")
    options = dict(_OPTIONS.get(key, {}))
    if key == "RidgeCV":
        options["alphas"] = np.logspace(-3, 4, 15)
    try:
        model = kind(**options)
        if random_state is not None:
            seeded(model, random_state)
    except TypeError:
        raise DataError(
            f"{key} needs parameters of its own; give such a base model in Python"
        ) from None
    return taking_gaps(model)


def taking_gaps(model: Any) -> Any:
    """Return a regressor that takes missing values: itself, or with what fills them before it.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> [type(step).__name__ for _, step in taking_gaps(Ridge()).steps]
    ['SimpleImputer', 'StandardScaler', 'Ridge']
    """
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.utils import get_tags

    try:
        gaps = bool(get_tags(model).input_tags.allow_nan)
    except (AttributeError, TypeError):  # not quite scikit-learn's
        gaps = False
    if gaps:
        return model
    steps: list[Any] = [SimpleImputer(keep_empty_features=True)]
    kind = type(model).__name__
    if not any(word in kind for word in _OF_TREES):
        steps.append(StandardScaler())
        if any(word in kind for word in ("MLP", "SVR", "SGD", "Gaussian", "Huber")):
            model = TransformedTargetRegressor(model, transformer=StandardScaler())
    return make_pipeline(*steps, model)


def _kind(name: str) -> Any:
    """A class of scikit-learn that learns to predict one number; None if there is none."""
    from sklearn.utils import all_estimators

    kinds = dict(all_estimators(type_filter="regressor"))
    return None if name.startswith("Multi") else kinds.get(name)  # of several targets


def _near(name: str) -> str:
    from sklearn.utils import all_estimators

    known = [*BASES, *(found for found, _ in all_estimators(type_filter="regressor"))]
    known = [found for found in known if not found.startswith("Multi")]
    close = difflib.get_close_matches(name.lower(), [k.lower() for k in known], 4, 0.6)
    names = list(dict.fromkeys(n for k in close for n in known if n.lower() == k))
    if names:
        return f"near to it: {', '.join(names)}"
    return f"known are {', '.join(BASES)} and the classes of scikit-learn"
