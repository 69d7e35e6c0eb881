"""Every model of the comparison under one roof: a table of names and models.

A *model* here is a callable ``model(train, test, seed) -> predictions`` on
:class:`~trellis.regression.RegressionData`, so that models that look at features, graphs or
coordinates can stand in one table. The names are those of Pavlovski et al. (2018, section 5.1); a
name with «S-» is a Gaussian CRF over the model of the same name, learnt from out-of-fold
predictions. Where data have coordinates, it and GLACER predict given the targets of the training
rows; where they have none, training and test rows are two graphs, and all that an edge can say is
that base predictions of neighbours should be alike: gamma is the one with the least error, 0 where
that helps nobody.

    MLR       linear regression
    NN        one hidden layer of 10 units (the paper: 3 layers), inputs and targets standardised
    SVM       RBF kernel, C = 1 and ε = 0.1 on standardised inputs and targets
    SUBBAG    M trees on ηN examples each, drawn without replacement
    RF        M trees, a third of the features at each split, at least 5 examples a leaf
    LSB       M boosted trees of at most 10 splits, learning rate 1
    (C)NL     convex network lasso; (NC)NL the non-convex one; «tuned»: λ chosen on a quarter of the
              training nodes held out. Features are standardised, targets are ten times their
              z-score and (NC)NL is the best iterate of ADMM, as in its authors' code
    HGB       histogram gradient boosting, scikit-learn's defaults
    Kriging   linear regression and a Gaussian process of its residuals over the coordinates
    GLACER
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trellis.arrays import Float64s
from trellis.domains import flag, number, whole
from trellis.errors import DataError
from trellis.regression.bases import least_squares_boosting, seeded, threads_for
from trellis.regression.data import RegressionData
from trellis.regression.gcrf import GCRF
from trellis.regression.similarity import KNN

__all__ = [
    "GlacerModel",
    "Kriging",
    "Lasso",
    "Model",
    "Plain",
    "Structured",
    "baselines",
]

Model = Callable[[RegressionData, RegressionData, int], Float64s]
Pair = tuple[RegressionData, RegressionData]
LAMBDAS = (0.1, 0.3, 1.0, 3.0, 5.0, 10.0, 30.0)


# ------------------------------------------------------------------------------- the models


@dataclass(frozen=True)
class Plain:
    """A scikit-learn regressor on the features."""

    estimator: Any

    def __call__(self, train: RegressionData, test: RegressionData, seed: int) -> Float64s:
        """Train and predict."""
        from sklearn.base import clone

        model = seeded(clone(self.estimator), seed)
        with warnings.catch_warnings(), threads_for(len(train.y)):
            _hush()
            model.fit(train.X, train.y)
            return np.asarray(model.predict(test.X), dtype=np.float64)


@dataclass(frozen=True)
class Structured:
    """A Gaussian CRF over a scikit-learn regressor; options are those of the class."""

    base: Any
    options: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, train: RegressionData, test: RegressionData, seed: int) -> Float64s:
        """Train and predict."""
        from sklearn.base import clone

        base = seeded(clone(self.base), seed)
        alone = {} if _on_a_map(train, self.options) else {"observed": False, "criterion": "error"}
        model = GCRF(base=base, **{"random_state": 0, **alone, **self.options})
        with warnings.catch_warnings():
            _hush()
            return _fitted_and_asked(model, train, test)


@dataclass(frozen=True)
class GlacerModel:
    """GLACER; options besides the seed are those of the class."""

    options: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, train: RegressionData, test: RegressionData, seed: int) -> Float64s:
        """Train and predict."""
        from trellis.regression.glacer import GLACER

        alone = {} if _on_a_map(train, self.options) else {"observed": False}
        model = GLACER(**{"random_state": seed, **alone, **self.options})
        return _fitted_and_asked(model, train, test)


def _on_a_map(data: RegressionData, options: Mapping[str, Any]) -> bool:
    """Whether new rows can be joined to the training rows."""
    return data.coords is not None and bool(options.get("observed", True))


def _fitted_and_asked(model: Any, train: RegressionData, test: RegressionData) -> Float64s:
    """What a model predicts given the training rows, or on a graph of the test rows alone."""
    if model.observed and train.coords is not None:
        metric: Any = train.metric  # a str
        model.set_params(graph=KNN(metric=metric))
        model.fit(train.X, train.y, coords=train.coords)
        found = model.predict(test.X, coords=test.coords)
    else:
        model.fit(train.X, train.y, graph=train.graph)
        found = model.predict(test.X, graph=test.graph)
    return np.asarray(found, dtype=np.float64)


@dataclass(frozen=True)
class Lasso:
    """Network lasso on standardised features and ten times the z-score of the target.

    Parameters
    ----------
    lam : float or None
        None: chosen among ``LAMBDAS`` on a quarter of the training nodes.
    convex : bool
    options : mapping
        Further parameters of :class:`~trellis.regression.NetworkLasso`.
    """

    lam: float | None = 5.0
    convex: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, train: RegressionData, test: RegressionData, seed: int) -> Float64s:
        """Train and predict."""
        lam = self._chosen(train, seed) if self.lam is None else self.lam
        return self._fitted(train, test, lam)

    def _chosen(self, train: RegressionData, seed: int) -> float:
        inner, held = train.split(len(train.y) - len(train.y) // 4, seed)
        errors = [np.mean((self._fitted(inner, held, lam) - held.y) ** 2) for lam in LAMBDAS]
        return LAMBDAS[int(np.argmin(errors))]

    def _fitted(self, train: RegressionData, test: RegressionData, lam: float) -> Float64s:
        from trellis.regression.network_lasso import NetworkLasso

        columns = slice(None) if train.regressors is None else list(train.regressors)
        X, X_new = train.X[:, columns], test.X[:, columns]
        mean, spread = X.mean(0), np.where(X.std(0) > 0, X.std(0), 1.0)
        centre, scale = train.y.mean(), train.y.std() or 1.0
        model = NetworkLasso(
            lam, convex=self.convex, y_scale=10 / scale, metric=train.metric, **self.options
        )
        Z, Z_new = (X - mean) / spread, (X_new - mean) / spread
        where = Z if train.coords is None else train.coords
        model.fit(Z, train.y - centre, graph=train.graph, coords=where)
        predictions = model.predict(Z_new, coords=Z_new if test.coords is None else test.coords)
        return np.asarray(centre + predictions)


@dataclass(frozen=True)
class Kriging:
    """Linear regression, and a Gaussian process (Matérn 3/2 + noise) of residuals in space.

    The kernel's parameters are learned on at most ``n_tuning`` nodes; the process then sees all.
    """

    n_tuning: int = 400

    def __call__(self, train: RegressionData, test: RegressionData, seed: int) -> Float64s:
        """Train and predict."""
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
        from sklearn.linear_model import LinearRegression

        if train.coords is None or test.coords is None:
            raise DataError(f"{train.name} has no coordinates, which kriging needs")
        columns = slice(None) if train.regressors is None else list(train.regressors)
        linear = LinearRegression().fit(train.X[:, columns], train.y)
        residuals = train.y - linear.predict(train.X[:, columns])
        mean, spread = (
            train.coords.mean(0),
            np.where(train.coords.std(0) > 0, train.coords.std(0), 1),
        )
        C, C_new = (train.coords - mean) / spread, (test.coords - mean) / spread
        variance = float(residuals.var()) or 1.0
        start = ConstantKernel(variance / 2, (1e-6 * variance, 1e3 * variance)) * Matern(
            0.3, (1e-3, 1e2), nu=1.5
        ) + WhiteKernel(variance / 2, (1e-6 * variance, 1e3 * variance))
        few = np.random.default_rng(seed).permutation(len(C))[: self.n_tuning]
        with warnings.catch_warnings():
            _hush()
            tuned = GaussianProcessRegressor(start).fit(C[few], residuals[few])
            process = GaussianProcessRegressor(tuned.kernel_, optimizer=None).fit(C, residuals)
        return np.asarray(linear.predict(test.X[:, columns]) + process.predict(C_new))


def unstructured(n_components: int = 10, subsample: float = 0.3) -> dict[str, Any]:
    """The scikit-learn regressors of the paper's baselines by name."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.ensemble import BaggingRegressor, RandomForestRegressor
    from sklearn.linear_model import LinearRegression
    from sklearn.neural_network import MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVR
    from sklearn.tree import DecisionTreeRegressor

    def scaled(model: Any) -> Any:
        inner = make_pipeline(StandardScaler(), model)
        return TransformedTargetRegressor(inner, transformer=StandardScaler())

    network = MLPRegressor(hidden_layer_sizes=(10,), solver="lbfgs", alpha=1e-3, max_iter=500)
    tree = DecisionTreeRegressor(min_samples_leaf=5)
    return {
        "MLR": LinearRegression(),
        "NN": scaled(network),
        "SVM": scaled(SVR(kernel="rbf", C=1.0, epsilon=0.1)),
        "SUBBAG": BaggingRegressor(tree, n_components, max_samples=subsample, bootstrap=False),
        "RF": RandomForestRegressor(n_components, min_samples_leaf=5, max_features=1 / 3),
        "LSB": least_squares_boosting(n_components),
    }


def baselines(
    n_components: int = 10,
    subsample: float = 0.3,
    *,
    coordinates: bool = False,
    modern: bool = True,
    glacer: bool = True,
) -> dict[str, Model]:
    """The table of models by name, in the paper's order.

    Parameters
    ----------
    n_components : int
        M, components of the ensembles.
    subsample : float
        η, share of the examples that a component of SUBBAG and GLACER sees.
    coordinates : bool
        Whether the data have coordinates: then Kriging is in the table.
    modern : bool
        Also what the paper does not have: tuned network lasso, HGB and Kriging.
    glacer : bool
        Also GLACER itself.

    Examples
    --------
    >>> from trellis.regression import baselines
    >>> [name for name in baselines() if not name.startswith("S-")][:8]
    ['MLR', 'NN', 'SVM', 'SUBBAG', 'RF', 'LSB', '(C)NL', '(NC)NL']
    """
    whole(1).check("n_components", n_components)
    number(above=0, below=1).check("subsample", subsample)
    for name, value in (("coordinates", coordinates), ("modern", modern), ("glacer", glacer)):
        flag.check(name, value)
    table: dict[str, Model] = {}
    for name, estimator in unstructured(n_components, subsample).items():
        table[name] = Plain(estimator)
        table[f"S-{name}"] = Structured(estimator)
    table["(C)NL"] = Lasso(5.0)
    as_published = {"search": False}
    table["(NC)NL"] = Lasso(5.0, convex=False, options=as_published)
    if modern:
        from sklearn.ensemble import HistGradientBoostingRegressor

        table["(C)NL, tuned"] = Lasso(None)
        table["(NC)NL, tuned"] = Lasso(None, convex=False, options=as_published)
        table["HGB"] = Plain(HistGradientBoostingRegressor())
        if coordinates:
            table["Kriging"] = Kriging()
    if glacer:
        table["GLACER"] = GlacerModel({"n_components": n_components, "subsample": subsample})
    return table


def _hush() -> None:
    """A network that has not converged after its iterations is what the table shows."""
    from sklearn.exceptions import ConvergenceWarning

    warnings.simplefilter("ignore", ConvergenceWarning)
