"""Gaussian conditional random fields: any regressors, and what was observed in the neighbourhood.

    p(y | X) ~ exp(-sum_k alpha_k |y - R_k|^2 - sum_l beta_l (y - R rho)' L_l (y - R rho))

R_k are the predictions of unstructured base models and L_l the Laplacians of similarity graphs,
each scaled to an average weighted degree of 1 on the training nodes. With alpha = sum_k alpha_k,
a = alpha_k / alpha, gamma = beta / alpha and K = I + sum_l gamma_l L_l,

    y ~ N(K^-1 (R a + (K - I) R rho), (2 alpha K)^-1)

Targets of nodes that are to be predicted are those of this Gaussian *given the targets of the
training nodes* (:mod:`trellis.regression.conditional`), and the parameters are those with the least
leave-one-out error (:mod:`trellis.regression.leave_one_out`).

As published, ``observed=False``: rho = 0, alpha and beta maximise the likelihood
(:mod:`trellis.regression.likelihood`), and rows to predict are smoothed over a graph of their own,
scaled by itself, without a look at the training nodes.

References: Qin et al. (2009), Radosavljevic et al. (2010).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np

from trellis.arrays import Float64s
from trellis.domains import flag, function, has, nothing, one_of, sequence_of, whole
from trellis.errors import CorruptModelError, DataError
from trellis.estimator import Seeded, changed, parameter
from trellis.files.sklearn_state import check_prediction
from trellis.files.storable import Storable
from trellis.files.stored import check_range, header_value, take
from trellis.regression.bases import (
    bounds_of,
    default_bases,
    out_of_fold,
    predictions,
    refusals_of,
    trained,
)
from trellis.regression.calibration import (
    deviations,
    limit_of,
    scale_of,
    spread_in_regions,
    spread_of,
)
from trellis.regression.conditional import joined_to_known, unknown_given_known
from trellis.regression.leave_one_out import learn, residuals
from trellis.regression.likelihood import maximise
from trellis.regression.regions import Weights, errors_in_regions
from trellis.regression.rows import check_observed, check_targets, n_rows
from trellis.regression.similarity import KNN, METRIC, Metric
from trellis.regression.training_graphs import TrainingGraphs
from trellis.regression.training_nodes import TrainingNodes

__all__ = ["GCRF", "LARGEST_GAMMA", "REGRESSOR"]


REGRESSOR = has("fit", "predict", words="a regressor")
_NEIGHBOURS = (5, 20)  # of the default graphs
_UNBOUNDED = (-np.finfo(np.float64).max, np.finfo(np.float64).max)

LARGEST_GAMMA = 1e15
"""Beyond it 1 + gamma is gamma in floating point, and a Gaussian CRF has no variances."""


class GCRF(Seeded, Storable):
    """Gaussian CRF over any scikit-learn regressors, given what was observed nearby.

    Attributes
    ----------
    alpha_, beta_ : float, or arrays when there are several
        Weights of the base predictions and of the graphs.
    rho_ : array (K,)
        How much of each base prediction neighbours need not share: 0 says that neighbours have
        similar targets, 1 that they have similar residuals. They sum to 2 at most.
    leave_one_out_error_, base_error_ : float
        Mean squared errors at training nodes, each predicted from all others, and those of the base
        models alone (both NaN for ``observed=False``).
    log_likelihood_ : float
        Of the training targets, given the base predictions (NaN unless it was maximised).
    std_scale_, std_power_, std_limit_ : float
        What calibration makes of a variance v / (2 alpha): the standard deviation
        min(std_scale_ * sqrt(v^std_power_ / (2 alpha)), std_limit_). Without it they are 1, 1 and
        infinite.
    bases_ : list
        The fitted base models (empty for "precomputed").

    Examples
    --------
    >>> from trellis.regression import GCRF
    >>> rng = np.random.default_rng(0)
    >>> where, X = rng.uniform(size=(300, 2)), rng.normal(size=(300, 1))
    >>> y = X[:, 0] + np.sin(6 * where[:, 0]) + 0.1 * rng.normal(size=300)
    >>> model = GCRF(random_state=0).fit(X[:200], y[:200], coords=where[:200])
    >>> mean, std = model.predict(X[200:], coords=where[200:], return_std=True)
    >>> error, error_of_base = mean - y[200:], model.predict_base(X[200:]) - y[200:]
    >>> bool(np.mean(error**2) < 0.5 * np.mean(error_of_base**2))
    True
    """

    base: Any = parameter(
        nothing
        | one_of("precomputed")
        | REGRESSOR
        | sequence_of(nothing | REGRESSOR, "a list of regressors"),
        """The unstructured model(s), cloned and fitted; how much each is worth is learnt.
        "precomputed": X itself holds the base predictions, (n,) or (n, K), out-of-fold for rows
        with a target. None: ridge regression, extra trees and boosted trees, none of which says
        what is far beyond all training targets.""",
        default=None,
        kw_only=False,
    )
    graph: Any = parameter(
        nothing | function | sequence_of(function, "a list of functions"),
        """Makes the graph from `coords` (from X where none are given), e.g. ``KNN(5,
        metric="haversine")`` or ``KNN(5, columns=["lat", "lon"])``. Several graphs have one beta
        each. None: of `coords`, ``KNN(5, weight="inverse")`` and ``KNN(20, weight="inverse")``: the
        nearest of all, and some more, which tell of what is noisy and of what is far.""",
        default=None,
    )
    metric: Metric = parameter(
        METRIC.domain, "Distance of `coords` where `graph` is None.", default="euclidean"
    )
    observed: bool = parameter(
        flag,
        """Whether rows are predicted given the targets of the training rows. False, as published:
        the rows to predict have a graph of their own and are smoothed over each other.""",
        default=True,
    )
    base_predictions: Literal["in-sample", "cv"] = parameter(
        one_of("in-sample", "cv"),
        """What parameters are learnt from. The base model's predictions on its own training data
        ("in-sample", as in the literature) make a strong learner look better than it is: too little
        smoothing and intervals far too narrow. Out-of-fold predictions ("cv") do not.""",
        default="cv",
    )
    cv: int = parameter(whole(2), 'Folds for "cv".', default=5)
    criterion: Literal["leave-one-out", "pseudo-likelihood", "likelihood", "error"] | None = (
        parameter(
            nothing | one_of("leave-one-out", "pseudo-likelihood", "likelihood", "error"),
            """What is learnt from: the squared error of each training node given all others; the
            likelihood of each given all others; the likelihood of all (with rho = 0), which smooths
            too much where targets are smoother than the model can explain; or (one base, one graph,
            rho = 0) the error of base predictions smoothed over each other. None: "leave-one-out",
            "likelihood" if not `observed`.""",
            default=None,
        )
    )
    residuals: bool = parameter(
        flag,
        """Whether rho is learnt for the first two criteria: neighbours are similar in what base
        models leave over. False: rho = 0, neighbours have similar targets, as published.""",
        default=True,
    )
    calibrate: bool | None = parameter(
        nothing | flag,
        """Whether standard deviations are made such that 90 % of the training residuals lie within
        their 90 % intervals: leave-one-out residuals and, where nodes have coordinates, those of
        regions of the map that are left out, for which base models are trained two to five times
        more; or residuals of base predictions smoothed over each other if not `observed`. None: yes
        where residuals are those of unseen nodes.""",
        default=None,
    )
    method: Literal["auto", "exact", "stochastic"] = parameter(
        one_of("auto", "exact", "stochastic"),
        """How the likelihood's determinant is computed. "exact": by eigenvalues or, above 1,500
        connected nodes, sparse factors. "stochastic": Lanczos quadrature. "auto" decides by what is
        affordable.""",
        default="auto",
    )
    n_probes: int = parameter(
        whole(1),
        """Random vectors of the estimate of standard deviations on graphs without sparse factors,
        such as random ones (the relative error is roughly 1 / sqrt(2 n_probes) at most).""",
        default=64,
    )
    random_state = changed(help="Seed of base models, folds and probes.")

    def fit(self, X: Any, y: Any, *, graph: Any = None, coords: Any = None) -> Self:
        """Fit the base models, then what is learnt of the graph.

        Parameters
        ----------
        X : (n, d)
            Whatever the base models take; for ``base="precomputed"`` the base predictions.
        y : (n,)
            Targets, NaN where they are not known. Rows without target are nodes of a graph that is
            given as a matrix, and left out of one that is made from coordinates.
        graph : sparse (n, n), builder, or a list of these
            Similarities between the rows of X; None uses the builder of the constructor.
        coords : (n, c)
            What builders make graphs of; None: X.

        Raises
        ------
        DataError
            If fewer than two targets are known or all are alike, or the graph does not fit.
        """
        self._check_parameters()
        seed = self._seed_or_fresh()
        n = n_rows(X)
        y = check_targets(y, n, gaps=self.observed)
        source = self._source(graph, coords)
        X, y, self._graphs, matrices = TrainingGraphs.of(source, X, y, coords, own=self.observed)
        known = ~np.isnan(y)
        R, fitted = self._learn_bases(X, y, seed)
        laplacians = self._graphs.laplacians(matrices)
        self.leave_one_out_error_ = self.base_error_ = self.log_likelihood_ = float("nan")
        self.rho_, self._alone = np.zeros(R.shape[1]), np.full(R.shape[1], 1.0 / R.shape[1])
        if self._criterion in ("leave-one-out", "pseudo-likelihood"):
            left, variance = self._learn_left_out(laplacians, y, R)
        else:
            if not known.all():
                laplacians = self._graphs.laplacians(matrices, known)
            left, variance = self._learn_jointly(laplacians, y[known], R[known], seed)
        self.std_scale_ = self.std_power_ = 1.0
        self.std_limit_ = float("inf")
        honest = isinstance(self.base, str) and self.observed
        honest |= not isinstance(self.base, str) and self.base_predictions == "cv"
        if honest if self.calibrate is None else self.calibrate:
            if self.observed:
                self._calibrate(X, y, R, left, variance, seed)
            else:
                self.std_scale_ = scale_of(left, variance)
        self._nodes = TrainingNodes(y, R, fitted) if self.observed else None
        return self

    def predict(
        self,
        X: Any,
        *,
        graph: Any = None,
        coords: Any = None,
        return_std: bool = False,
        observed: Any = None,
    ) -> Any:
        """Return the expected targets, and with `return_std` their standard deviations.

        Rows are joined to the training rows as the builder says, at the scale of the training
        graph, and to nothing else: what is said of a row does not depend on what other rows are
        asked for. A graph that is given as a matrix may join all to all.

        Parameters
        ----------
        X : (m, d)
        graph : sparse (n + m, n + m) or (m, m), or a list of these, or builders
            Similarities: of the n rows of `fit` and then these, or (if the training rows play no
            part, or are among these) of these alone. Needed where `fit` was given a matrix; its
            weights must mean what they meant there.
        coords : (m, c)
            As in :meth:`fit`.
        return_std : bool
        observed : (m,), optional
            Targets that are known by now, NaN where they are not. Rows of `fit` may come again:
            they are known by target and features, and nothing counts twice.

        Returns
        -------
        mean : (m,) array
            Where a target was observed, its value.
        std : (m,) array
            Only with `return_std`; 0 where a target was observed. Exact, but for graphs of more
            than 2,000 connected nodes without small separators (random graphs), where they are
            estimated from `n_probes` random vectors.

        Raises
        ------
        DataError
            If the graph, coordinates or `observed` do not fit the rows, or an observed value is
            infinite.

        Examples
        --------
        Forty places in a line; what the base model cannot know shows in every other of them:

        >>> from sklearn.linear_model import LinearRegression
        >>> from trellis.regression import GCRF, KNN
        >>> place = np.arange(40.0)[:, None]
        >>> y = np.sin(place[:, 0] / 4)
        >>> model = GCRF(LinearRegression(), graph=KNN(2), random_state=0).fit(place[::2], y[::2])
        >>> base, given = model.predict_base(place[1::2]), model.predict(place[1::2])
        >>> float(abs(base - y[1::2]).mean().round(1)), float(abs(given - y[1::2]).mean().round(1))
        (0.6, 0.0)
        """
        self._check_fitted()
        n = n_rows(X)
        fitted = self._base_predictions(X)
        if fitted.shape[1] != len(self.rho_):
            raise DataError(
                f"the model has {len(self.rho_)} base prediction(s), got {fitted.shape[1]}"
            )
        if graph is None:
            self._graphs.check_coords(coords)
        values = np.full(n, np.nan) if observed is None else check_observed(observed, n)
        R, twins = fitted, np.full(n, -1)
        if self._nodes is not None and observed is not None:
            twins = self._nodes.twins(values, fitted)
            R = np.where((twins >= 0)[:, None], self._nodes.R[twins], fitted)
        join = self._nodes is not None and graph is None and self._graphs.can_join
        moments = self._joined if join else self._on_graphs
        source = (self._source(graph, coords), X, coords)
        mean, variance = moments(R, values, twins, source, return_std)
        if not return_std:
            return mean
        total = float(np.sum(self.alpha_))
        return mean, deviations(variance, total, self.std_scale_, self.std_power_, self.std_limit_)

    def remember(self, fitted: Float64s) -> None:
        """Say how base predictions (n, K) of training rows look that come again, if precomputed."""
        assert self._nodes is not None
        self._nodes = replace(self._nodes, fitted=fitted)

    def predict_base(self, X: Any) -> Float64s:
        """Return what the base models say alone, weighted as is best without a graph."""
        self._check_fitted()
        mean: Float64s = self._base_predictions(X) @ self._alone
        return mean

    def score(self, X: Any, y: Any, *, graph: Any = None, coords: Any = None) -> float:
        """Return R^2 of the predicted mean."""
        from sklearn.metrics import r2_score

        return float(r2_score(y, self.predict(X, graph=graph, coords=coords)))

    def _source(self, graph: Any, coords: Any) -> Any:
        """What graphs are made of: matrices or builders."""
        if graph is not None:
            return graph
        if self.graph is None and coords is not None:
            return [KNN(k, weight="inverse", metric=self.metric) for k in _NEIGHBOURS]
        return self.graph

    # ------------------------------------------------------------------ learning

    @property
    def _criterion(self) -> str:
        return self.criterion or ("leave-one-out" if self.observed else "likelihood")

    def _learn_bases(self, X: Any, y: Float64s, seed: int) -> tuple[Float64s, Float64s]:
        """Fit the base models; return R, and what they say of the training rows, both (n, K)."""
        from sklearn.model_selection import KFold
        from sklearn.utils import _safe_indexing

        self.bases_: list[Any] = []
        if isinstance(self.base, str):
            R = self._base_predictions(X)
            self._bounds = np.tile(_UNBOUNDED, (R.shape[1], 1))
            return R, R
        known = np.flatnonzero(~np.isnan(y))
        models: list[Any] = []
        bounds: list[Any] = []
        single = self.base is None or hasattr(self.base, "fit")
        for base in [self.base] if single else list(self.base):
            more = default_bases(len(known), seed) if base is None else [base]
            models += more
            bounds += [bounds_of(y[known]) if base is None else _UNBOUNDED] * len(more)
        if not models:
            raise DataError("base is a list without a model; give one at least")
        with refusals_of(models[0]):
            rows = X if len(known) == len(y) else _safe_indexing(X, known)
        self._bounds = np.array(bounds)
        self.bases_ = trained(models, rows, y[known])
        says = self._base_predictions(X)
        if self.base_predictions == "in-sample":
            return says, says
        R = says.copy()
        folds = KFold(min(self.cv, len(known)), shuffle=True, random_state=seed)
        R[known] = _finite(out_of_fold(models, rows, y[known], folds)).clip(*self._bounds.T)
        return R, says

    def _learn_left_out(
        self, laplacians: list[Any], y: Float64s, R: Float64s
    ) -> tuple[Float64s, Float64s]:
        """Learn from each node given all others; return residuals, as 2 alpha were 1, and v."""
        criterion: Any = self._criterion
        found = learn(laplacians, y, R, criterion=criterion, smooth_bases=self.residuals)
        self._keep(found.alpha * found.a, found.alpha * found.gamma)
        self.rho_, self._alone = found.rho, found.alone
        self.leave_one_out_error_, self.base_error_ = found.error, found.error_alone
        return found.residuals * np.sqrt(2 * found.alpha), 1 / found.precisions

    def _learn_jointly(
        self, laplacians: list[Any], y: Float64s, R: Float64s, seed: int
    ) -> tuple[Float64s, Float64s]:
        """Learn from all nodes at once; return the same."""
        alpha, beta, self.log_likelihood_ = maximise(
            laplacians, y, R, self._criterion, method=self.method, random_state=seed
        )
        self._keep(alpha, beta)
        total = float(alpha.sum())
        self._alone = alpha / total
        mixed, gamma = R @ self._alone, beta / total
        if self.observed:
            terms = residuals(laplacians, y, mixed, gamma)
            self.leave_one_out_error_ = float(np.mean(terms.y**2))
            self.base_error_ = float(np.mean((y - mixed) ** 2))
            return terms.y * np.sqrt(2 * total), 1 / terms.precision
        if self.calibrate is False:
            return np.zeros(1), np.ones(1)
        none = np.full(len(y), np.nan)
        M = sum(g * L for g, L in zip(gamma, laplacians, strict=True))
        mean, variance = self._given(M, none, mixed, np.zeros(len(y)), True)
        return (y - mean) * np.sqrt(2 * total), variance

    def _calibrate(
        self, X: Any, y: Float64s, R: Float64s, left: Float64s, v: Float64s, seed: int
    ) -> None:
        """Learn what makes standard deviations of variances."""
        errors = (y - R @ self._alone)[~np.isnan(y)]
        regions = None
        if self._graphs.can_join:  # all rows have a target
            a, gamma = self._mixture()
            weights = Weights(a, self.rho_, gamma, self._alone)
            regions = errors_in_regions(
                self.bases_, self._bounds, X, y, R, self._graphs, weights, seed
            )
        if regions is None:
            self.std_scale_, self.std_power_ = spread_of(left, v)
            self.std_limit_ = limit_of(errors)
            return
        far = regions.model * np.sqrt(2 * np.sum(self.alpha_))
        self.std_scale_, self.std_power_ = spread_in_regions(left, v, far, regions.v)
        self.std_limit_ = limit_of(errors, regions.base)

    def _keep(self, alpha: Float64s, beta: Float64s) -> None:
        """Weights as users see them: numbers where there is one base and one graph."""
        one = len(alpha) == 1 and len(beta) == 1
        self.alpha_: Any = float(alpha[0]) if one else alpha
        self.beta_: Any = float(beta[0]) if one else beta

    # ------------------------------------------------------------------ predicting

    def _base_predictions(self, X: Any) -> Float64s:
        if not isinstance(self.base, str):
            return _finite(predictions(self.bases_, X)).clip(*self._bounds.T)
        try:
            R = np.asarray(X, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(f"base predictions are not numbers: {error}") from error
        return _finite(R[:, None] if R.ndim == 1 else R)

    def _joined(
        self, R: Float64s, values: Float64s, twins: Any, source: Any, with_std: bool
    ) -> tuple[Float64s, Float64s]:
        """Means and diag(K_uu^-1) of rows that are joined to the training rows, each by itself."""
        assert self._nodes is not None
        a, gamma = self._mixture()
        unknown = np.isnan(values)
        left = self._nodes.y - self._nodes.R @ self.rho_, (values - R @ self.rho_)[~unknown]
        _, X, coords = source
        places = X if coords is None else coords
        weight, pull = self._graphs.pulls(places, unknown, twins, left, gamma)
        asked = R[unknown]
        mean, variance = np.where(unknown, 0.0, values), np.zeros(len(R))
        mean[unknown], variance[unknown] = joined_to_known(
            asked @ a, asked @ self.rho_, weight, pull
        )
        return mean, variance

    def _on_graphs(
        self, R: Float64s, values: Float64s, twins: Any, source: Any, with_std: bool
    ) -> tuple[Float64s, Float64s]:
        """Means and diag(K_uu^-1) of rows on graphs that are given."""
        a, gamma = self._mixture()
        n = len(R)
        given, X, coords = source
        matrices = self._graphs.of_rows(given, X, coords, n)
        if matrices[0].shape[0] > n:
            assert self._nodes is not None
            R = np.vstack([self._nodes.R, R])
            values = np.concatenate([self._nodes.y, values])
        laplacians = self._graphs.laplacians(matrices)
        M = sum(g * L for g, L in zip(gamma, laplacians, strict=True))
        mean, variance = self._given(M, values, R @ a, R @ self.rho_, with_std)
        return mean[-n:], variance[-n:]

    def _mixture(self) -> tuple[Float64s, Float64s]:
        """A and gamma."""
        alpha, beta = np.atleast_1d(self.alpha_), np.atleast_1d(self.beta_)
        return alpha / alpha.sum(), beta / alpha.sum()

    def _given(
        self, M: Any, y: Float64s, mixed: Float64s, smoothed: Float64s, with_std: bool
    ) -> tuple[Float64s, Float64s]:
        return unknown_given_known(
            M, y, mixed, smoothed, with_variance=with_std,
            n_probes=self.n_probes, random_state=self._seed_or_fresh(),
        )  # fmt: skip

    # ------------------------------------------------------------------ services

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "alpha_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, RegressorTags, Tags, TargetTags

        return Tags(
            estimator_type="regressor",
            target_tags=TargetTags(required=True),
            regressor_tags=RegressorTags(),
            input_tags=InputTags(allow_nan=True),
        )

    def _state(self) -> dict[str, Any]:
        state = {
            "alpha": self.alpha_,
            "beta": self.beta_,
            "rho": self.rho_,
            "alone": self._alone,
            "log_likelihood": float(self.log_likelihood_),
            "errors": [float(self.leave_one_out_error_), float(self.base_error_)],
            "std_scale": self.std_scale_,
            "std_power": self.std_power_,
            "std_limit": self.std_limit_,
            "bases": self.bases_,
            "bounds": self._bounds,
            "graphs": self._graphs.state(),
        }
        return state if self._nodes is None else state | self._nodes.state()

    def _restore(self, state: dict[str, Any]) -> None:
        self.alpha_, self.beta_ = (_not_negative(state, name) for name in ("alpha", "beta"))
        if not np.sum(self.alpha_) * LARGEST_GAMMA > np.max(self.beta_):
            raise CorruptModelError("alpha is 0, or nothing beside beta")
        self.log_likelihood_ = header_value(state, "log_likelihood", float, finite=False)
        self.std_scale_ = header_value(state, "std_scale", float, low=0)
        self.bases_ = header_value(state, "bases", list)
        k = np.size(self.alpha_)
        if len(self.bases_) != (0 if isinstance(self.base, str) else k):
            raise CorruptModelError("there is not one alpha for each base model")
        for base in self.bases_:
            check_prediction(base)
        if "graphs" in state:
            self._restore_graphs(state, k)
        else:  # a file of 0.1, which knew no training nodes
            self._restore_published(k)

    def _restore_graphs(self, state: dict[str, Any], k: int) -> None:
        self.rho_ = take(state, "rho", np.float64, (k,))
        self._alone = take(state, "alone", np.float64, (k,))
        self._bounds = take(state, "bounds", np.float64, (k, 2))
        self.std_power_ = header_value(state, "std_power", float, low=0)
        self.std_limit_ = header_value(state, "std_limit", float, low=0, finite=False)
        for name, values in (("rho", self.rho_), ("base weights", self._alone)):
            check_range(values, 0, np.inf, name)
        if not (self._bounds[:, 0] <= self._bounds[:, 1]).all():
            raise CorruptModelError("bounds of base predictions are not as they should be")
        errors = header_value(state, "errors", list, items=float)
        if len(errors) != 2:
            raise CorruptModelError("there are not two errors")
        self.leave_one_out_error_, self.base_error_ = errors
        stored = header_value(state, "graphs", dict)
        self._graphs = TrainingGraphs.restored(stored, np.size(self.beta_))
        self._nodes = TrainingNodes.restored(state, k) if self.observed else None
        if self._graphs.own != self.observed:
            raise CorruptModelError("its graphs are not scaled as the model says")
        if self._nodes is not None and len(self._nodes.y) != self._graphs.n:
            raise CorruptModelError("there is not one target for each node of the graph")

    def _restore_published(self, k: int) -> None:
        self.observed = False
        self.rho_, self.std_power_, self.std_limit_ = np.zeros(k), 1.0, float("inf")
        alpha = np.atleast_1d(self.alpha_)
        self._alone = alpha / alpha.sum()
        self._bounds = np.tile(_UNBOUNDED, (k, 1))
        self.leave_one_out_error_ = self.base_error_ = float("nan")
        n_graphs = np.size(self.beta_)
        self._graphs = TrainingGraphs(1, np.ones(n_graphs), (None,) * n_graphs, None, False, False)
        self._nodes = None


def _finite(R: Float64s) -> Float64s:
    if not np.isfinite(R).all():
        row = int(np.argmin(np.isfinite(R).all(axis=1)))
        raise DataError(f"the base prediction of row {row} is not a finite number")
    return R


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
