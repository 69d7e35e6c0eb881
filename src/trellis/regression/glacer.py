"""GLACER, the generalisation-aware collaborative ensemble regressor (Pavlovski et al., 2018).

M components F_m, each a Gaussian CRF fitted on a random subset D^m of n = round(eta N) of the N
training examples z_i = (x_i, y_i), predict by their mean Phi. They exchange examples so as to lower

    R_obj = sqrt(R_emp^2 + dCorr^2(L, Z)),   R_emp = mean_i l_i,   L = (l_1..l_N), Z = (z_1..z_N)

the mean loss of Phi on all examples, and the distance correlation of the losses with the examples
(:mod:`trellis.regression.objective` has the forms of the loss).

Algorithm 1. Repeat: every component names the example of its subset that it fits worst; for every
pair (j, k) whose worst examples are not in the other's subset, exchange them, refit both, compute
R_obj; carry out the exchange that lowers R_obj most; stop when none does.

How refits are saved and made: :mod:`trellis.regression.collaboration`, ``.swaps``.

The ensemble then predicts given the targets of the training nodes. That is a Gaussian CRF over one
base, the mean of the components' base models, which has learnt from what the components say that
did not see a node (:mod:`trellis.regression.gcrf`): the mean is linear in base predictions, so
that components with one K are conditioned all at once. As published, ``observed=False``: each
component smooths over the graph of the rows to predict, and Phi is their mean.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from trellis.arrays import Float64s
from trellis.domains import flag, function, has, nothing, number, one_of, whole
from trellis.errors import CorruptModelError, DataError
from trellis.estimator import Seeded, changed, moved, parameter
from trellis.files.sklearn_state import check_prediction
from trellis.files.storable import Storable, is_fitted
from trellis.files.stored import check_range, header_value, take
from trellis.progress import Reporter
from trellis.regression.bases import seeded
from trellis.regression.collaboration import (
    Collaboration,
    read_checkpoint,
    restored_history,
    run_fingerprint,
    stored_history,
    write_checkpoint,
)
from trellis.regression.gcrf import GCRF, LARGEST_GAMMA, REGRESSOR
from trellis.regression.graph_matrix import laplacian, normalise, resolve_graph
from trellis.regression.objective import LOSSES, Loss, Objective
from trellis.regression.rows import check_targets, finite_rows, n_rows
from trellis.regression.similarity import KNN
from trellis.regression.spectral import inverse_diagonal, own_generator, solve
from trellis.regression.swaps import Problem, unstructured

__all__ = ["GLACER"]


class GLACER(Seeded, Storable):
    """Generalisation-aware collaborative ensemble regressor.

    Attributes
    ----------
    history_ : list of Swap
        The start, then one record an exchange.
    converged_ : bool
        Whether no exchange could lower R_obj further.
    subsets_ : list of arrays
        The examples of each component.
    alphas_, gammas_ : arrays (M,)
        Parameters of the Gaussian CRFs; gamma = beta / alpha.
    models_ : list
        The fitted base models (or components).
    field_ : GCRF or None
        What conditions the ensemble on the training nodes; None unless `observed`.
    classes_ : array
        Only if the component is a classifier.

    Examples
    --------
    >>> from trellis.regression import GLACER, knn_graph
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(120, 2))
    >>> y = np.sin(6 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=120)
    >>> model = GLACER(n_components=3, random_state=0).fit(X, y, graph=knn_graph(X))
    >>> model.history_[-1].r_obj < model.history_[0].r_obj
    True
    >>> model.predict(X, graph=knn_graph(X)).shape
    (120,)
    """

    n_components: int = parameter(
        whole(2),
        "Components of the ensemble (M).",
        default=10,
        kw_only=False,
        option="--components",
    )
    subsample: float = parameter(
        number(above=0, below=1),
        "Share of the examples in each component's subset (eta).",
        default=0.3,
        kw_only=False,
    )
    base: Any = parameter(
        nothing | REGRESSOR | function,
        """Unstructured model inside each Gaussian CRF, cloned. None: histogram gradient boosting.
        As published: ``least_squares_boosting(100, max_leaf_nodes=2)``.""",
        default=None,
        kw_only=False,
    )
    observed: bool = parameter(
        flag,
        """Whether rows are predicted given the targets of the training rows. False, as published:
        the rows to predict have a graph of their own and are smoothed over each other.""",
        default=True,
    )
    component: Any = parameter(
        one_of("gcrf") | has("fit", "predict", words="a scikit-learn estimator") | function,
        """"gcrf", or what takes its place: a scikit-learn regressor or classifier (of two classes;
        the mean probability is the prediction), or a function without arguments that makes one. No
        graph is needed then.""",
        default="gcrf",
    )
    graph: Any = parameter(
        nothing | function,
        """Makes the graph from `coords` (from X where none are given), e.g. ``KNN(5)``. None:
        ``KNN()``, unless `fit` is given a graph.""",
        default=None,
    )
    loss: Loss = parameter(
        one_of(*LOSSES),
        "Loss of an example, see :mod:`trellis.regression.objective`.",
        default="paper",
    )
    use_dcorr: bool = parameter(
        flag, "Whether the objective includes distance correlation.", default=True
    )
    standardise: bool = parameter(
        flag,
        "Whether examples are scaled to unit variance for distance correlation.",
        default=False,
    )
    max_swaps: int | None = parameter(
        nothing | whole(0), "Stop after this many exchanges.", default=None
    )
    n_jobs: int | None = parameter(
        nothing | whole(1) | one_of(-1),
        """Processes for refits, through joblib (a ``joblib.parallel_config`` with another backend
        is honoured). The result does not depend on it.""",
        default=None,
        option="--jobs",
    )
    verbose: bool = parameter(
        flag,
        """Show on standard error how far the fit is: a bar on terminals and in notebooks, and a
        line for each exchange.""",
        default=False,
    )
    random_state = changed(help="Seed of subsets and models.")
    checkpoint = moved()
    resume = moved(False)

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        graph: Any = None,
        coords: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool = False,
    ) -> Self:
        """Draw the subsets, fit the components and let them exchange examples.

        Parameters
        ----------
        X : (N, d)
            Numbers.
        y : (N,)
            Targets; labels of two classes if the component is a classifier.
        graph : sparse (N, N) or builder
            Similarities between the rows of X; None uses the builder of the constructor.
        coords : (N, c)
            What a builder makes the graph of; None: X.
        checkpoint : path, optional
            File that holds the state after each exchange.
        resume : bool
            Go on from `checkpoint` (from the start if there is no such file yet).

        Raises
        ------
        DataError
            If targets are missing or constant, the graph does not fit, or a parameter is wrong.
        """
        self._check_parameters()
        path, resume = checkpoint or self.checkpoint, resume or self.resume
        if resume and path is None:
            raise DataError("resume=True needs checkpoint=, the file to go on from")
        problem = self._problem(X, y, graph, coords)
        objective = Objective(
            problem.X,
            problem.y,
            loss=self.loss,
            use_dcorr=self.use_dcorr,
            standardise=self.standardise,
        )
        stored = None if path is None else Path(path)
        mark = "" if stored is None else run_fingerprint(problem, self.get_params(deep=False))
        state = None
        if resume and stored is not None:
            state = read_checkpoint(stored, mark, self.n_components, len(problem.y))
        if state is not None:
            problem = replace(problem, seed=state.seed)
        reporter = Reporter(self.verbose)
        run = Collaboration(problem, objective, self.n_jobs, reporter)
        with reporter.stage("fitting the components") as stage:
            if state is None:
                run.begin(self._draw_subsets(problem))
            else:
                run.restore(state)
            self.converged_ = False
            while self.max_swaps is None or len(run.history) <= self.max_swaps:
                stage.now(f"looking for exchange {len(run.history)}")
                if stored is not None:
                    write_checkpoint(stored, mark, problem.seed, run)
                if not run.swap():
                    self.converged_ = True
                    break
            if stored is not None:
                write_checkpoint(stored, mark, problem.seed, run)
        self.history_ = run.history
        self.subsets_ = [c.nodes for c in run.components]
        self.alphas_ = np.array([c.alpha for c in run.components])
        self.gammas_ = np.array([c.gamma for c in run.components])
        # Candidates' models were not kept; the seeds make the chosen ones again.
        with reporter.stage("fitting the components that were chosen"):
            self.models_ = run.models()
        self._structured, self._apart = problem.S is not None, coords is not None
        self.field_ = None
        if self._structured and self.observed:
            self.field_ = self._field(problem, graph, X if coords is None else coords)
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
        """Return what the ensemble predicts: its mean, given what was observed.

        Parameters
        ----------
        X : (n, d)
        graph, coords, observed
            As for :class:`GCRF`.
        return_std : bool
            Also return standard deviations: those of the Gaussian CRF; as published, those of the
            mixture of the components' Gaussians, or of the components' predictions alone if these
            have no variance of their own.

        Returns
        -------
        array, or two of them
            For a classifier: labels (and the standard deviation of the probability).
        """
        source = (graph, coords, observed)
        mean, std = self._moments(X, source, return_std)
        if hasattr(self, "classes_"):
            mean = self.classes_[(mean >= 0.5).astype(int)]
        return (mean, std) if return_std else mean

    def predict_proba(self, X: Any) -> Float64s:
        """Return the mean probabilities of the two classes (components that classify only)."""
        self._check_fitted()
        if not hasattr(self, "classes_"):
            raise DataError("predict_proba needs a component that is a classifier")
        mean, _ = self._moments(X, (None, None, None), False)
        return np.column_stack([1 - mean, mean])

    def score(self, X: Any, y: Any, *, graph: Any = None, coords: Any = None) -> float:
        """Return R^2 of the predictions, or the accuracy of a classifier."""
        from sklearn.metrics import accuracy_score, r2_score

        measure = accuracy_score if hasattr(self, "classes_") else r2_score
        return float(measure(y, self.predict(X, graph=graph, coords=coords)))

    def _moments(
        self, X: Any, source: tuple[Any, Any, Any], with_std: bool
    ) -> tuple[Float64s, Float64s]:
        self._check_fitted()
        rows = finite_rows(X, "X")
        if rows.shape[1] != self.n_features_in_:
            raise DataError(f"X has {rows.shape[1]} columns, the model {self.n_features_in_}")
        classify = hasattr(self, "classes_")
        predictions = [unstructured(model, rows, classify) for model in self.models_]
        graph, coords, observed = source
        if self.field_ is not None:
            if graph is None and self._apart != (coords is not None):
                words = "coords" if self._apart else "no coords"
                raise DataError(f"fit was given {words}; give these rows in the same way")
            places = rows if coords is None and graph is None else coords
            base = np.mean(predictions, axis=0)
            found = self.field_.predict(
                base, graph=graph, coords=places, return_std=with_std, observed=observed
            )
            return found if with_std else (found, np.zeros(len(rows)))
        if observed is not None:
            raise DataError("this model does not look at what was observed (observed=False)")
        variance = np.zeros(len(rows))
        if self._structured:
            L = laplacian(normalise(self._graph_of(graph, X, coords, len(rows))))
            pairs = zip(predictions, self.gammas_, strict=True)
            predictions = [solve(L, float(gamma), p) for p, gamma in pairs]
            if with_std:
                for alpha, gamma in zip(self.alphas_, self.gammas_, strict=True):
                    variance += inverse_diagonal(L, float(gamma)) / (2 * alpha)
                variance /= len(predictions)
        return np.mean(predictions, axis=0), np.sqrt(variance + np.var(predictions, axis=0))

    def _graph_of(self, graph: Any, X: Any, coords: Any, n: int) -> Any:
        """The graph of some rows, as a matrix."""
        source = self.graph if graph is None else graph
        if source is None and coords is not None:
            source = KNN()
        if coords is not None and not callable(source):
            raise DataError("coords are for builders such as KNN(); a graph is given as a matrix")
        if coords is not None and n_rows(coords) != n:
            raise DataError(f"coords have {n_rows(coords)} rows, X has {n}")
        return resolve_graph(source, X if coords is None else coords, n)

    def _field(self, problem: Problem, graph: Any, places: Any) -> GCRF:
        """Learn the Gaussian CRF over what components say of nodes that they did not see."""
        says = np.array([unstructured(model, problem.X, False) for model in self.models_])
        unseen = np.ones(says.shape, dtype=bool)
        for m, nodes in enumerate(self.subsets_):
            unseen[m, nodes] = False
        unseen[:, ~unseen.any(axis=0)] = True  # seen by all: no better is known
        honest = np.where(unseen, says, 0.0).sum(axis=0) / unseen.sum(axis=0)
        source = self.graph if graph is None else graph
        field = GCRF("precomputed", graph=source, random_state=problem.seed)
        if source is None or callable(source):
            field.fit(honest, problem.y, coords=places)
        else:
            field.set_params(graph=None).fit(honest, problem.y, graph=source)
        field.remember(says.mean(axis=0)[:, None])
        return field

    def _problem(self, X: Any, y: Any, graph: Any, coords: Any = None) -> Problem:
        from sklearn.base import is_classifier

        rows = finite_rows(X, "X")
        self.n_features_in_ = rows.shape[1]
        structured = isinstance(self.component, str)
        make = _Maker(self.base if structured else self.component)
        classify = not structured and bool(is_classifier(make(0)))
        self.__dict__.pop("classes_", None)
        if classify:
            self.classes_, coded = np.unique(np.asarray(y), return_inverse=True)
            if len(self.classes_) != 2:
                raise DataError(f"a classifier needs two classes, y has {len(self.classes_)}")
            y = coded
        targets = check_targets(y, len(rows))
        S = L = None
        if structured:
            S = self._graph_of(graph, X, coords, len(rows))
            L = laplacian(normalise(S))
        return Problem(rows, targets, S, make, classify, self._seed_or_fresh(), L)

    def _draw_subsets(self, problem: Problem) -> list[npt.NDArray[np.int64]]:
        total = len(problem.y)
        size = round(self.subsample * total)
        if not 2 <= size < total:
            raise DataError(
                f"subsample={self.subsample:g} of {total} examples is {size}; subsets need at"
                f" least 2 and at most {total - 1}"
            )
        rng = own_generator(problem.seed, 2)
        subsets = []
        for _ in range(self.n_components):
            drawn = rng.choice(total, size=size, replace=False, shuffle=False)
            subsets.append(np.sort(drawn).astype(np.int64))
        constant = [m for m, s in enumerate(subsets) if np.ptp(problem.y[s]) == 0]
        if constant and not problem.classify:
            raise DataError(
                f"all targets in the subset of component {constant[0]} are alike; raise subsample"
            )
        return subsets

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "models_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import is_classifier
        from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags

        classify = not isinstance(self.component, str) and is_classifier(_Maker(self.component)(0))
        return Tags(
            estimator_type="classifier" if classify else "regressor",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(multi_class=False) if classify else None,
            regressor_tags=None if classify else RegressorTags(),
            input_tags=InputTags(),
        )

    def _state(self) -> dict[str, Any]:
        state = {
            "history": stored_history(self.history_),
            "converged": self.converged_,
            "subsets": np.stack(self.subsets_),
            "alphas": self.alphas_,
            "gammas": self.gammas_,
            "models": self.models_,
            "structured": self._structured,
            "n_features": self.n_features_in_,
            "field": self.field_,
            "apart": self._apart,
        }
        return state | ({"classes": self.classes_} if hasattr(self, "classes_") else {})

    def _restore(self, state: dict[str, Any]) -> None:
        self.history_ = restored_history(state)
        self.converged_ = header_value(state, "converged", bool)
        M = self.n_components
        subsets = take(state, "subsets", np.int64, (M, None))
        check_range(subsets, 0, np.inf, "examples of components")
        self.subsets_ = list(subsets)
        self.alphas_ = take(state, "alphas", np.float64, (M,))
        self.gammas_ = take(state, "gammas", np.float64, (M,))
        self._structured = header_value(state, "structured", bool)
        check_range(self.gammas_, 0, LARGEST_GAMMA, "gammas")
        check_range(self.alphas_, np.nextafter(0, 1) if self._structured else 0, np.inf, "alphas")
        self.n_features_in_ = header_value(state, "n_features", int)
        classify = "classes" in state
        if classify:
            self.classes_ = state["classes"]
            if not isinstance(self.classes_, np.ndarray) or self.classes_.shape != (2,):
                raise CorruptModelError("a classifier needs two classes")
        self.models_ = header_value(state, "models", list)
        if len(self.models_) != M:
            raise CorruptModelError("there is not one model for each component")
        for model in self.models_:
            check_prediction(model, self.n_features_in_, classify=classify)
        if "field" not in state:  # a file of 0.1, which knew no training nodes
            self.observed = False
        field = state.get("field")
        fits = (field is not None) == (self.observed and self._structured)
        if isinstance(field, GCRF) and is_fitted(field):
            fits = fits and field.base == "precomputed" and np.size(field.alpha_) == 1
        elif field is not None or not fits:
            fits = False
        if not fits:
            raise CorruptModelError("what conditions the ensemble is not as it should be")
        self.field_ = field
        self._apart = header_value(state, "apart", bool) if "field" in state else False


@dataclass(frozen=True)
class _Maker:
    """Makes an unfitted model from a prototype (or a function), with a seed if it takes one."""

    prototype: Any

    def __call__(self, seed: int) -> Any:
        from sklearn.base import clone
        from sklearn.ensemble import HistGradientBoostingRegressor

        if self.prototype is None:
            # Subsets are small: leaves of 20 examples would leave nothing to split.
            return HistGradientBoostingRegressor(max_iter=50, min_samples_leaf=5, random_state=seed)
        is_function = isinstance(self.prototype, type) or not hasattr(self.prototype, "get_params")
        return seeded(self.prototype() if is_function else clone(self.prototype), seed)
