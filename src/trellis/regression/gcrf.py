"""Gaussian conditional random fields: any regressor, smoothed over a graph, with variances.

    p(y | X) ~ exp(-sum_k alpha_k |y - R_k|^2 - sum_l beta_l y'L_l y)

R_k are the predictions of unstructured base models and L_l the Laplacians of similarity graphs,
each scaled to an average weighted degree of 1 so that what is learnt on one graph holds on another.
So y ~ N(mu, (2Q)^-1) with Q = sum(alpha) I + sum_l beta_l L_l and mu = Q^-1 R alpha. An isolated
node gets its base prediction. If the targets of some nodes o are known when those of others, u, are
predicted, then y_u ~ N(Q_uu^-1 ((R alpha)_u - Q_uo y_o), (2Q_uu)^-1).

References: Qin et al. (2009), Radosavljevic et al. (2010).

How alpha and beta are found: see :mod:`trellis.regression.likelihood`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, Self

import numpy as np

from trellis.arrays import Float64s
from trellis.domains import flag, function, has, nothing, one_of, sequence_of, whole
from trellis.errors import CorruptModelError, DataError, TrellisError
from trellis.estimator import Seeded, changed, parameter
from trellis.files.sklearn_state import check_prediction
from trellis.files.storable import Storable
from trellis.files.stored import check_range, header_value, take
from trellis.regression.graph_matrix import laplacian, normalise, resolve_graph
from trellis.regression.likelihood import (
    dense_profile,
    exact_is_affordable,
    search,
    search_error,
    search_many,
    search_stochastic,
)
from trellis.regression.rows import check_observed, check_targets
from trellis.regression.spectral import inverse_diagonal, solve

__all__ = [
    "GCRF",
    "LARGEST_GAMMA",
    "REGRESSOR",
    "least_squares_boosting",
    "n_rows",
    "seeded",
]


REGRESSOR = has("fit", "predict", words="a regressor")
_NORMAL_90 = 1.6448536269514722  # half the width of a 90 % interval in standard deviations

LARGEST_GAMMA = 1e15
"""Beyond it 1 + gamma is gamma in floating point, and a Gaussian CRF has no variances."""


def least_squares_boosting(
    n_estimators: int = 10, random_state: int | None = None, *, max_leaf_nodes: int = 11
) -> Any:
    """Return the default base model: least-squares boosting of trees with at most 10 splits.

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


class GCRF(Seeded, Storable):
    """Gaussian CRF over any scikit-learn regressor.

    Attributes
    ----------
    alpha_, beta_ : float, or arrays when there are several
        Weights of the base predictions and of the graphs.
    log_likelihood_ : float
        Of the training targets, given the base predictions (NaN for ``criterion="error"``).
    std_scale_ : float
        What standard deviations are multiplied by; 1 without calibration.
    bases_ : list
        The fitted base models (empty for "precomputed").

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from trellis.regression import GCRF, knn_graph
    >>> rng = np.random.default_rng(0)
    >>> where = rng.uniform(size=(200, 2))
    >>> X = rng.normal(size=(200, 1))
    >>> y = X[:, 0] + np.sin(6 * where[:, 0]) + 0.1 * rng.normal(size=200)
    >>> model = GCRF(LinearRegression()).fit(X, y, graph=knn_graph(where))
    >>> mean, std = model.predict(X, graph=knn_graph(where), return_std=True)
    >>> mean.shape, std.shape
    ((200,), (200,))
    """

    base: Any = parameter(
        nothing
        | one_of("precomputed")
        | REGRESSOR
        | sequence_of(nothing | REGRESSOR, "a list of regressors"),
        """The unstructured model(s), cloned and fitted. "precomputed": X itself holds the base
        predictions, (n,) or (n, K). None: least-squares boosting, 10 trees.""",
        default=None,
        kw_only=False,
    )
    graph: Any = parameter(
        nothing | function | sequence_of(function, "a list of functions"),
        """Makes the graph from X when `fit` and `predict` are given none, e.g.
        ``KNN(n_neighbors=5, columns=["lat", "lon"])``. Several graphs have one beta each.""",
        default=None,
    )
    base_predictions: Literal["in-sample", "cv"] = parameter(
        one_of("in-sample", "cv"),
        """What alpha and beta are learnt from. The base model's predictions on its own training
        data ("in-sample", as in the literature) make a strong learner look better than it is: too
        little smoothing and intervals far too narrow. Out-of-fold predictions ("cv") do not.""",
        default="in-sample",
    )
    cv: int = parameter(whole(2), 'Folds for "cv".', default=5)
    criterion: Literal["likelihood", "error"] = parameter(
        one_of("likelihood", "error"),
        """What alpha and beta maximise: the likelihood, or (one base, one graph) the accuracy of
        the mean. Where targets are smoother than the model can explain, the likelihood smooths too
        much; the error needs ``base_predictions="cv"`` to be honest.""",
        default="likelihood",
    )
    calibrate: bool | None = parameter(
        nothing | flag,
        """Whether standard deviations are scaled so that 90 % of the training residuals lie within
        their 90 % intervals. The likelihood gets the joint density right, not each node's own
        variance, when the targets are not what the model says. None: yes for "cv", whose residuals
        are those of unseen nodes, else no.""",
        default=None,
    )
    method: Literal["auto", "exact", "stochastic"] = parameter(
        one_of("auto", "exact", "stochastic"),
        """"exact": eigendecomposition. "stochastic": Lanczos quadrature, for large graphs. "auto"
        decides by size (exact up to 1,500 connected nodes).""",
        default="auto",
    )
    n_probes: int = parameter(
        whole(1),
        """Random vectors of the estimate of standard deviations on large graphs (the relative error
        is roughly 1 / sqrt(2 n_probes) at most).""",
        default=64,
    )
    random_state = changed(help="Seed of folds and probes.")

    def fit(self, X: Any, y: Any, *, graph: Any = None) -> Self:
        """Fit the base models, then alpha and beta.

        Parameters
        ----------
        X : (n, d)
            Whatever the base models take; for ``base="precomputed"`` the base predictions.
        y : (n,)
            Targets.
        graph : sparse (n, n), builder, or a list of these
            Similarities between the rows of X; None uses the builder of the constructor.

        Raises
        ------
        DataError
            If targets are missing or constant, or the graph does not fit.
        """
        self._check_parameters()
        seed = self._seed_or_fresh()
        n = n_rows(X)
        targets = check_targets(y, n)
        laplacians = self._laplacians(graph, X, n)
        self.bases_: list[Any] = []
        R = self._learn_bases(X, targets, seed)
        if R.shape[1] == 1 and len(laplacians) == 1:
            L, r = laplacians[0], R[:, 0]
            if self.criterion == "error":
                optimum = search_error(L, targets, r)
            elif self.method == "exact" or (self.method == "auto" and exact_is_affordable(L)):
                optimum = search(dense_profile(L, targets, r))
            else:
                optimum = search_stochastic(L, targets, r, random_state=seed)
            self.alpha_: Any = optimum.alpha
            self.beta_: Any = optimum.alpha * optimum.gamma
            self.log_likelihood_ = optimum.log_likelihood
        elif self.criterion == "error":
            raise DataError("criterion='error' is for one base model and one graph")
        else:
            self.alpha_, self.beta_, self.log_likelihood_ = search_many(
                laplacians, targets, R, random_state=seed
            )
        self.std_scale_ = 1.0
        out_of_fold = self.base_predictions == "cv" and not isinstance(self.base, str)
        if out_of_fold if self.calibrate is None else self.calibrate:
            mean, std = self._moments(R, laplacians, np.full(n, np.nan), True, seed)
            self.std_scale_ = float(np.quantile(np.abs(targets - mean) / std, 0.9)) / _NORMAL_90
        return self

    def predict(
        self, X: Any, *, graph: Any = None, return_std: bool = False, observed: Any = None
    ) -> Any:
        """Return the expected targets, and with `return_std` their standard deviations.

        Parameters
        ----------
        X : (n, d)
        graph : as in :meth:`fit`, for these rows
        return_std : bool
        observed : (n,), optional
            Targets that are known, NaN where they are not: the others are then predicted given
            these (the conditional Gaussian, exactly). Give the rows of the training data and their
            targets together with the new rows, and the graph of all of them.

        Returns
        -------
        mean : (n,) array
            Where a target was observed, its value.
        std : (n,) array
            Only with `return_std`. Exact where a connected component has at most 2,000 nodes,
            estimated from `n_probes` random vectors elsewhere; 0 where a target was observed.
            Calibration (`std_scale_`) goes by predictions without `observed`, and multiplies
            standard deviations with it just so.

        Raises
        ------
        DataError
            If the graph or `observed` does not fit the rows, or an observed value is infinite.

        Examples
        --------
        Forty places in a line; what the base model cannot know shows in every other of them:

        >>> from sklearn.linear_model import LinearRegression
        >>> from trellis.regression import GCRF, KNN
        >>> place = np.arange(40.0)[:, None]
        >>> y = np.sin(place[:, 0] / 4)
        >>> model = GCRF(LinearRegression(), graph=KNN(n_neighbors=2)).fit(place, y)
        >>> half = np.where(np.arange(40) % 2, np.nan, y)
        >>> plain, given = model.predict(place), model.predict(place, observed=half)
        >>> float(abs(plain - y).mean().round(1)), float(abs(given - y).mean().round(1))
        (0.6, 0.0)
        """
        self._check_fitted()
        n = n_rows(X)
        laplacians = self._laplacians(graph, X, n)
        n_alphas, n_betas = np.size(self.alpha_), np.size(self.beta_)
        if len(laplacians) != n_betas:
            raise DataError(f"the model has {n_betas} graph(s), got {len(laplacians)}")
        R = self._base_predictions(X)
        if R.shape[1] != n_alphas:
            raise DataError(f"the model has {n_alphas} base prediction(s), got {R.shape[1]}")
        values = np.full(n, np.nan) if observed is None else check_observed(observed, n)
        mean, std = self._moments(R, laplacians, values, return_std, self._seed_or_fresh())
        return (mean, std) if return_std else mean

    def _moments(
        self, R: Float64s, laplacians: list[Any], observed: Float64s, with_std: bool, seed: int
    ) -> tuple[Float64s, Float64s]:
        """Return the mean and, if wanted, the standard deviation of every node given the known."""
        alpha, beta = np.atleast_1d(self.alpha_), np.atleast_1d(self.beta_)
        total = float(alpha.sum())
        if len(beta) == 1:
            L, gamma = laplacians[0], float(beta[0]) / total
        else:
            L, gamma = sum(b / total * L for b, L in zip(beta, laplacians, strict=True)), 1.0
        r = R @ (alpha / total)
        unknown = np.isnan(observed)
        mean, std = np.where(unknown, 0.0, observed), np.zeros(len(r))
        if not unknown.all():
            u = np.flatnonzero(unknown)
            rows = L[u]
            L, r = rows[:, u], r[u] - gamma * (rows @ mean)
        mean[unknown] = solve(L, gamma, r)
        if with_std:
            diagonal = inverse_diagonal(L, gamma, n_probes=self.n_probes, random_state=seed)
            std[unknown] = self.std_scale_ * np.sqrt(diagonal / (2 * total))
        return mean, std

    def score(self, X: Any, y: Any, *, graph: Any = None) -> float:
        """Return R^2 of the predicted mean."""
        from sklearn.metrics import r2_score

        return float(r2_score(y, self.predict(X, graph=graph)))

    def _laplacians(self, graph: Any, X: Any, n: int) -> list[Any]:
        source = self.graph if graph is None else graph
        graphs = source if isinstance(source, (list, tuple)) else [source]
        return [laplacian(normalise(resolve_graph(g, X, n))) for g in graphs]

    def _learn_bases(self, X: Any, y: Float64s, seed: int) -> Float64s:
        """Fit the base models; return their predictions on the training data, (n, K)."""
        from sklearn.base import clone
        from sklearn.model_selection import KFold, cross_val_predict

        if isinstance(self.base, str):
            return self._base_predictions(X)
        single = self.base is None or hasattr(self.base, "fit")
        bases = [self.base] if single else list(self.base)
        if not bases:
            raise DataError("base is a list without a model; give one at least")
        columns = []
        for base in bases:
            model = least_squares_boosting(random_state=seed) if base is None else base
            with _words_of(model):
                self.bases_.append(clone(model).fit(X, y))
                if self.base_predictions == "cv":
                    folds = KFold(self.cv, shuffle=True, random_state=seed)
                    columns.append(cross_val_predict(clone(model), X, y, cv=folds))
        if columns:
            return np.column_stack(columns).astype(np.float64)
        return self._base_predictions(X)

    def _base_predictions(self, X: Any) -> Float64s:
        if isinstance(self.base, str):
            R = np.asarray(X, dtype=np.float64)
            R = R[:, None] if R.ndim == 1 else R
        else:
            columns = []
            for model in self.bases_:
                with _words_of(model):
                    columns.append(np.asarray(model.predict(X), dtype=np.float64))
            R = np.column_stack(columns)
        if not np.isfinite(R).all():
            row = int(np.argmin(np.isfinite(R).all(axis=1)))
            raise DataError(f"the base prediction of row {row} is not a finite number")
        return R

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "alpha_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, RegressorTags, Tags, TargetTags

        return Tags(
            estimator_type="regressor",
            target_tags=TargetTags(required=True),
            regressor_tags=RegressorTags(),
            input_tags=InputTags(),
        )

    def _state(self) -> dict[str, Any]:
        return {
            "alpha": self.alpha_,
            "beta": self.beta_,
            "log_likelihood": float(self.log_likelihood_),
            "std_scale": self.std_scale_,
            "bases": self.bases_,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self.alpha_, self.beta_ = (_not_negative(state, name) for name in ("alpha", "beta"))
        if not np.sum(self.alpha_) * LARGEST_GAMMA > np.max(self.beta_):
            raise CorruptModelError("alpha is 0, or nothing beside beta")
        self.log_likelihood_ = header_value(state, "log_likelihood", float, finite=False)
        self.std_scale_ = header_value(state, "std_scale", float, low=0)
        self.bases_ = header_value(state, "bases", list)
        if len(self.bases_) != (0 if isinstance(self.base, str) else np.size(self.alpha_)):
            raise CorruptModelError("there is not one alpha for each base model")
        for base in self.bases_:
            check_prediction(base)


@contextmanager
def _words_of(model: Any) -> Iterator[None]:
    """What a base model refuses is refused as all data are, and the message says who did."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if isinstance(error, TrellisError):
            raise
        name = type(model).__name__
        raise DataError(f"the base model {name} refuses the data: {error}") from error


def _not_negative(state: Mapping[str, Any], name: str) -> Any:
    """A number, or an array of some, of at least 0."""
    if isinstance(state.get(name), np.ndarray):
        values = take(state, name, np.float64, (None,))
        if not values.size:
            raise CorruptModelError(f"there is no {name}")
    else:
        values = np.array(header_value({name: _plain(state.get(name))}, name, float))
    check_range(values, 0, np.inf, name)
    return state[name]


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def n_rows(X: Any) -> int:
    """Return the number of rows of an array, a sparse matrix or a table.

    Examples
    --------
    >>> n_rows([[1, 2], [3, 4]])
    2
    """
    try:
        n = int(X.shape[0]) if hasattr(X, "shape") and len(X.shape) else len(X)
    except TypeError:  # a number, an array without dimensions
        raise DataError(f"X is of type {type(X).__name__}; expected a table") from None
    if n == 0:
        raise DataError("X has no rows")
    return n
