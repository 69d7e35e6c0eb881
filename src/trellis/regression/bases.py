"""Base models of a Gaussian CRF: which they are by default, and their out-of-fold predictions.

R_ik is what base model k predicts at node i. At the nodes it was trained on a model looks better
than it is, so there R holds predictions of its copies that were trained on the other folds.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from trellis.arrays import Float64s
from trellis.domains import nothing, seed, whole
from trellis.errors import DataError, TrellisError
from trellis.regression.rows import n_rows

__all__ = [
    "bounds_of",
    "default_bases",
    "least_squares_boosting",
    "one_thread",
    "out_of_fold",
    "predictions",
    "refusals_of",
    "seeded",
    "threads_for",
    "trained",
]

_ONE_THREAD_UP_TO = 10_000  # rows
_FOREST_UP_TO = 20_000  # rows; a forest of more takes minutes
_BEYOND = 0.25  # of the range of training targets


def default_bases(n: int, random_state: int | None = None) -> list[Any]:
    """Return the base models for a table of n rows: one is good wherever another is not.

    A ridge regression (few rows, and trends that go on), a forest of random trees (few rows,
    anything but a line) and boosted trees (many rows). How much each is worth is learnt. All take
    missing values (NaN).

    Examples
    --------
    >>> [type(base).__name__ for base in default_bases(100)]
    ['Pipeline', 'ExtraTreesRegressor', 'Pipeline']
    """
    whole(0).check("n", n)
    (nothing | seed).check("random_state", random_state)
    from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    filled = SimpleImputer(keep_empty_features=True)
    ridge = make_pipeline(filled, StandardScaler(), RidgeCV(np.logspace(-3, 4, 15)))
    forest = ExtraTreesRegressor(
        100, min_samples_leaf=2, max_features=0.5, random_state=random_state
    )
    # It takes gaps itself, but no column that has nothing else, which a fold may well have.
    told = SimpleImputer(add_indicator=True, keep_empty_features=True)
    boosting = make_pipeline(told, HistGradientBoostingRegressor(random_state=random_state))
    return [ridge, forest, boosting] if n <= _FOREST_UP_TO else [ridge, boosting]


def bounds_of(y: Float64s) -> tuple[float, float]:
    """Return how low and how high default base models may predict, from training targets.

    One row with a feature ten times that of all others, and a line predicts what nobody ever saw.
    A quarter of the range beyond the targets leaves trends room to go on.

    Examples
    --------
    >>> bounds_of(np.array([1.0, 5.0, 2.0]))
    (0.0, 6.0)
    """
    low, high = float(y.min()), float(y.max())
    return low - _BEYOND * (high - low), high + _BEYOND * (high - low)


def least_squares_boosting(
    n_estimators: int = 10, random_state: int | None = None, *, max_leaf_nodes: int = 11
) -> Any:
    """Return least-squares boosting of small trees, at learning rate 1, as in the literature.

    Examples
    --------
    >>> least_squares_boosting().n_estimators
    10
    """
    from sklearn.ensemble import GradientBoostingRegressor

    return GradientBoostingRegressor(
        n_estimators=n_estimators,
        learning_rate=1.0,
        max_leaf_nodes=max_leaf_nodes,
        min_samples_leaf=5,
        max_depth=None,
        random_state=random_state,
    )


def seeded(estimator: Any, seed: int) -> Any:
    """Set every ``random_state`` in a scikit-learn estimator, and return it."""
    states = [name for name in estimator.get_params() if name.split("__")[-1] == "random_state"]
    return estimator.set_params(**dict.fromkeys(states, seed))


def trained(models: Sequence[Any], X: Any, y: Float64s) -> list[Any]:
    """Return copies of the models, trained."""
    from sklearn.base import clone

    copies = []
    with threads_for(len(y)):
        for model in models:
            with refusals_of(model):
                copies.append(clone(model).fit(X, y))
    return copies


def predictions(models: Sequence[Any], X: Any) -> Float64s:
    """Return what fitted models predict, (n, K)."""
    columns = []
    with threads_for(n_rows(X)):
        for model in models:
            with refusals_of(model):
                columns.append(np.asarray(model.predict(X), dtype=np.float64))
    return np.column_stack(columns)


def out_of_fold(models: Sequence[Any], X: Any, y: Float64s, splitter: Any) -> Float64s:
    """Return what copies of the models predict that were not trained on a row, (n, K)."""
    from sklearn.base import clone
    from sklearn.model_selection import cross_val_predict

    columns = []
    with threads_for(len(y)):
        for model in models:
            with refusals_of(model):
                columns.append(cross_val_predict(clone(model), X, y, cv=splitter))
    return np.column_stack(columns).astype(np.float64)


def one_thread() -> Any:
    """Limit BLAS and OpenMP to one thread: their results depend on the number of threads."""
    return _controller().limit(limits=1)


def threads_for(n: int) -> Any:
    """One thread for few rows: several wait for one another longer than they work."""
    return one_thread() if n <= _ONE_THREAD_UP_TO else nullcontext()


@functools.cache
def _controller() -> Any:
    import sklearn.ensemble  # noqa: F401 (its libraries must be loaded to be limited)
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]  # no stubs

    return ThreadpoolController()


@contextmanager
def refusals_of(model: Any) -> Iterator[None]:
    """What a base model refuses is refused as all data are, and the message says who did."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if isinstance(error, TrellisError):
            raise
        name = type(model).__name__
        raise DataError(f"the base model {name} refuses the data: {error}") from error
