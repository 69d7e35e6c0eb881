r"""What others predict on a map, with intervals that hold 90 %.

- scikit-learn: ``HistGradientBoostingRegressor``, ``RandomForestRegressor`` and ``Ridge`` as they
  come; the models that Trellis's default begins with, stacked (weights of at least 0, learned from
  out-of-fold predictions); boosting and the stack once more with the mean target of the five
  nearest rows to learn from as a feature, a row itself left out: what a data scientist adds.
- PyKrige: ordinary kriging of what boosting, ridge (regression kriging) or the stack leave, out of
  fold, with an exponential variogram. Above 3000 rows the variogram is of 3000 random ones, and
  each tile of 50 places is kriged from the 50 rows nearest to each of them. Two coordinates only.
- scikit-learn's ``GaussianProcessRegressor`` of what boosting or the stack leave: Matérn's
  covariance (ν = 1/2) and noise, its parameters from at most 1000 rows; not above 5000 rows.
- spreg: ``GM_Lag``, the spatial lag model y = ρWy + Xβ + ε with the five nearest, predicted with
  the targets of the five nearest rows to learn from.

Coordinates are features, too. Missing features are for boosting and for what stacks to deal with;
the others get means. Kriging and Gaussian processes have variances; the intervals of the others are
the prediction ± the 90 % quantile of out-of-fold residuals (five folds, split-conformal).

PyKrige and spreg run in the interpreter of ``--peer-python``, which need not know Trellis.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.map_sets import Floats, Task, Whole
from benchmarks.peers import PeerError, PeerProcess

FOLDS, NEAREST, Z90 = 5, 5, 1.6449
KRIGED_AT_ONCE, TILE, CLOSEST = 3000, 50, 50
TUNED_ON, AT_MOST = 1000, 5000  # rows of Gaussian processes


class Answer(NamedTuple):
    """Predictions of the places asked about."""

    mean: Floats
    half: Any
    """Half the width of their 90 % intervals, one for all or one each."""
    elsewhere: float = 0.0
    """CPU seconds that were spent in another process, or before."""


Contestant = Callable[[Task], Answer | None]
"""None: it cannot."""

Learner = Callable[[Floats, Floats, Floats, Floats, Floats], Floats]
"""Predictions from features, targets and points; features and points that are asked about."""


# ------------------------------------------------------------------------- models of features


def out_of_fold(learn: Learner, X: Floats, y: Floats, points: Floats, seed: int) -> Floats:
    """Predictions for each row by what the other folds taught."""
    from sklearn.model_selection import KFold

    found = np.empty(len(y))
    for kept, left in KFold(FOLDS, shuffle=True, random_state=seed).split(X):
        found[left] = learn(X[kept], y[kept], points[kept], X[left], points[left])
    return found


def conformal(residuals: Floats) -> float:
    """Half the width within which 90 % of residuals lie."""
    n = len(residuals)
    return float(np.sort(np.abs(residuals))[min(n, int(np.ceil(0.9 * (n + 1)))) - 1])


class Base(NamedTuple):
    """Predictions of the places asked about, and out-of-fold residuals."""

    mean: Floats
    residuals: Floats
    earlier: float = 0.0
    """CPU seconds, if another contestant spent them."""

    @property
    def answer(self) -> Answer:
        """With an interval of the residuals."""
        return Answer(self.mean, conformal(self.residuals), self.earlier)


def of_features(make: Callable[[int], Any], seed: int) -> Learner:
    """A model that looks at features alone, made for a seed."""

    def learn(X: Floats, y: Floats, P: Floats, asked: Floats, Q: Floats) -> Floats:
        found: Floats = make(seed).fit(X, y).predict(asked)
        return found

    return learn


def left_by(learn: Learner, task: Task) -> Base:
    """Predictions, and out-of-fold residuals."""
    mean = learn(task.X, task.y, task.points, task.X_asked, task.points_asked)
    return Base(mean, task.y - out_of_fold(learn, task.X, task.y, task.points, task.seed))


def boosting(seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(random_state=seed)


def forest(seed: int) -> Any:
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline

    return make_pipeline(SimpleImputer(), RandomForestRegressor(random_state=seed))


def ridge(seed: int) -> Any:
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(SimpleImputer(), StandardScaler(), Ridge())


MODELS: dict[str, Callable[[int], Any]] = {"hgb": boosting, "forest": forest, "ridge": ridge}


def stack(task: Task, around: Callable[..., Floats] | None = None) -> Base:
    """Ridge, a forest, boosting: weighted as is best for out-of-fold predictions.

    With ``around``, a feature made of the targets of other rows, which is made anew in each fold.
    """
    from sklearn.linear_model import LinearRegression

    from trellis.regression.bases import default_bases

    points, points_asked = task.points, task.points_asked
    columns, answers = [], []
    for base in default_bases(len(task.y), task.seed):

        def learn(
            X: Floats, y: Floats, P: Floats, asked: Floats, Q: Floats, base: Any = base
        ) -> Floats:
            from sklearn.base import clone

            if around is not None:
                X, asked = np.c_[X, around(P, y, None)], np.c_[asked, around(P, y, Q)]
            found: Floats = clone(base).fit(X, y).predict(asked)
            return found

        columns.append(out_of_fold(learn, task.X, task.y, points, task.seed))
        answers.append(learn(task.X, task.y, points, task.X_asked, points_asked))
    R = np.column_stack(columns)
    weights = LinearRegression(positive=True).fit(R, task.y)
    return Base(weights.predict(np.column_stack(answers)), task.y - weights.predict(R))


# ------------------------------------------------------------------------- with what is near


def nearest(points: Floats, asked: Floats | None, metric: str, k: int = NEAREST) -> Whole:
    """The nearest points of each asked about; of each other, if none are."""
    from sklearn.neighbors import NearestNeighbors

    distance = "manhattan" if metric == "manhattan" else "euclidean"
    search = NearestNeighbors(n_neighbors=k, metric=distance).fit(points)
    found: Whole = search.kneighbors(asked, return_distance=False)
    return found


def mean_around(metric: str) -> Callable[[Floats, Floats, Floats | None], Floats]:
    """The mean target of the nearest rows to learn from, as a function of points and targets."""

    def around(points: Floats, y: Floats, asked: Floats | None) -> Floats:
        found: Floats = y[nearest(points, asked, metric)].mean(axis=1)
        return found

    return around


def boosting_near(task: Task) -> Answer:
    """Boosting with the mean target of the nearest as a feature."""
    around = mean_around(task.metric)

    def learn(X: Floats, y: Floats, P: Floats, asked: Floats, Q: Floats) -> Floats:
        model = boosting(task.seed).fit(np.c_[X, around(P, y, None)], y)
        found: Floats = model.predict(np.c_[asked, around(P, y, Q)])
        return found

    return left_by(learn, task).answer


def stacked_near(task: Task) -> Answer:
    """The stack with the mean target of the nearest as a feature."""
    return stack(task, mean_around(task.metric)).answer


# ------------------------------------------------------------------------- fields of what is left


def base_of(task: Task, name: str) -> Base:
    """A model of features, or the stack: made once a task; the seconds count for all who use it."""
    if name in task.kept:
        found, seconds = task.kept[name]
        return Base(found.mean, found.residuals, seconds)
    started = time.process_time()
    found = stack(task) if name == "stack" else left_by(of_features(MODELS[name], task.seed), task)
    task.kept[name] = found, time.process_time() - started
    return found


def alone(name: str) -> Contestant:
    """A model of features as a contestant."""
    return lambda task: base_of(task, name).answer


def gaussian_process(name: str) -> Contestant:
    """A model, and a Gaussian process of what it leaves."""

    def answer(task: Task) -> Answer | None:
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

        if len(task.y) > AT_MOST:
            return None
        base = base_of(task, name)
        unit, size = task.points.std(axis=0).mean(), base.residuals.std()
        points, asked = task.points / unit, task.points_asked / unit
        kernel = ConstantKernel(0.5) * Matern(0.2, (1e-3, 1e2), nu=0.5) + WhiteKernel(0.5)
        z = base.residuals / size
        few = np.random.default_rng(task.seed).permutation(len(z))[:TUNED_ON]
        tuned = GaussianProcessRegressor(kernel, random_state=task.seed).fit(points[few], z[few])
        model = GaussianProcessRegressor(tuned.kernel_, optimizer=None).fit(points, z)
        more, std = model.predict(asked, return_std=True)
        return Answer(base.mean + size * more, Z90 * size * std, base.earlier)

    return answer


HERE: dict[str, tuple[str, Contestant]] = {
    "hgb": ("HistGradientBoosting", alone("hgb")),
    "forest": ("random forest", alone("forest")),
    "ridge": ("ridge", alone("ridge")),
    "stack": ("stack of ridge, trees, boosting", alone("stack")),
    "hgb-near": ("HistGradientBoosting, near targets", boosting_near),
    "stack-near": ("stack, near targets", stacked_near),
    "gp": ("Gaussian process of HGB's residuals", gaussian_process("hgb")),
    "gp-stack": ("Gaussian process of the stack's residuals", gaussian_process("stack")),
}
"""By short names, as on the command line: a row's name, and who it is."""

ELSEWHERE = ("kriging", "kriging-ridge", "kriging-stack", "lag")
"""Those that need another process."""


# ------------------------------------------------------------------------- in another process


def kriged(
    places: list[list[float]],
    values: list[float],
    asked: list[list[float]],
    degrees: bool,
    at_once: int,
    tile: int,
    closest: int,
) -> list[list[float]]:
    """Mean and variance at places, by ordinary kriging; degrees are latitude and longitude."""
    import numpy as np
    from pykrige.ok import OrdinaryKriging
    from scipy.spatial import cKDTree

    old, new, z = np.array(places), np.array(asked), np.array(values)
    kind = "geographic" if degrees else "euclidean"
    if degrees:  # PyKrige has longitudes first
        old, new = old[:, ::-1], new[:, ::-1]

    def krige(rows, **variogram):
        return OrdinaryKriging(
            *old[rows].T, z[rows], variogram_model="exponential", coordinates_type=kind,
            exact_values=False, **variogram,
        )  # fmt: skip

    few = np.random.default_rng(0).permutation(len(z))[:at_once]
    # Lags as short as the number of pairs allows: by default there are six on the whole map.
    first = krige(few, nlags=int(np.clip(len(few) // 20, 6, 100)), weight=True)
    sill, reach, nugget = (float(one) for one in first.variogram_model_parameters)
    nugget = max(nugget, 1e-6 * (sill + nugget), 1e-12)  # two values at one place
    fixed = {"variogram_parameters": {"psill": sill, "range": reach, "nugget": nugget}}

    def on_globe(points):
        if not degrees:
            return points
        east, north = np.radians(points).T
        return np.stack(
            [np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)], axis=1
        )

    def tiles(points, rows):
        if len(rows) <= tile:
            return [rows]
        axis = np.ptp(points[rows], axis=0).argmax()
        order = rows[np.argsort(points[rows, axis], kind="stable")]
        half = len(order) // 2
        return tiles(points, order[:half]) + tiles(points, order[half:])

    mean, variance = np.empty(len(new)), np.empty(len(new))
    if len(z) <= at_once:
        model = krige(np.arange(len(z)), **fixed)
        mean[:], variance[:] = model.execute("points", *new.T)
    else:
        tree, around = cKDTree(on_globe(old)), on_globe(new)
        for rows in tiles(around, np.arange(len(new))):
            near = np.unique(tree.query(around[rows], closest)[1])
            mean[rows], variance[rows] = krige(near, **fixed).execute("points", *new[rows].T)
    return [mean.tolist(), variance.tolist()]


def lagged(
    X: list[list[float]],
    y: list[float],
    near: list[list[int]],
    asked: list[list[float]],
    near_asked: list[list[int]],
) -> list[float]:
    """What a spatial lag model predicts from neighbours' targets."""
    import numpy as np
    from libpysal.weights import W
    from spreg import GM_Lag

    table, targets = np.array(X), np.array(y)
    varied = table.std(axis=0) > 0
    w = W(dict(enumerate(near)), silence_warnings=True)
    w.transform = "r"
    model = GM_Lag(targets[:, None], table[:, varied], w=w, spat_diag=False, spat_impacts=None)
    constant, *slopes, rho = np.asarray(model.betas).ravel()
    mean = constant + np.array(asked)[:, varied] @ np.array(slopes)
    mean = mean + rho * targets[np.array(near_asked)].mean(axis=1)
    answer: list[float] = mean.tolist()
    return answer


class Elsewhere:
    """The process in which PyKrige and spreg run."""

    def __init__(self, python: str = sys.executable) -> None:
        self._process = PeerProcess(python, kriged, lagged)
        self._failed: set[str] = set()

    def contestants(self) -> dict[str, tuple[str, Contestant]]:
        """Those that are installed there."""
        found: dict[str, tuple[str, Contestant]] = {}
        if version := self._process.version("PyKrige", "pykrige"):
            for key, base, whose in (
                ("kriging", "hgb", "HGB's"), ("kriging-ridge", "ridge", "ridge's"),
                ("kriging-stack", "stack", "the stack's"),
            ):  # fmt: skip
                name = f"PyKrige {version} of {whose} residuals"
                found[key] = (name, self._or_none(name, partial(self._krige, base)))
        if version := self._process.version("spreg"):
            name = f"spreg {version} GM_Lag"
            found["lag"] = (name, self._or_none(name, self._lag))
        return found

    def _or_none(self, name: str, run: Contestant) -> Contestant:
        def answer(task: Task) -> Answer | None:
            try:
                return run(task)
            except PeerError as error:
                if name not in self._failed:
                    print(f"{name} fails: {error!s:.150}", file=sys.stderr)
                self._failed.add(name)
                return None

        return answer

    def _krige(self, name: str, task: Task) -> Answer | None:
        if task.places.shape[1] != 2:
            return None
        base = base_of(task, name)
        (more, variance), seconds = self._process.ask(
            "kriged", task.places.tolist(), base.residuals.tolist(), task.places_asked.tolist(),
            task.metric == "haversine", KRIGED_AT_ONCE, TILE, CLOSEST,
        )  # fmt: skip
        half = Z90 * np.sqrt(np.maximum(variance, 0))
        return Answer(base.mean + np.array(more), half, base.earlier + seconds)

    def _lag(self, task: Task) -> Answer:
        from sklearn.impute import SimpleImputer
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        spent = 0.0

        def learn(X: Floats, y: Floats, P: Floats, asked: Floats, Q: Floats) -> Floats:
            nonlocal spent
            scale = make_pipeline(SimpleImputer(), StandardScaler()).fit(X)
            near, near_asked = nearest(P, None, task.metric), nearest(P, Q, task.metric)
            tables = (scale.transform(X), y, near, scale.transform(asked), near_asked)
            found, seconds = self._process.ask("lagged", *(table.tolist() for table in tables))
            spent += seconds
            return np.array(found)

        answer = left_by(learn, task).answer
        return answer._replace(elsewhere=spent)

    def close(self) -> None:
        """End the process."""
        self._process.close()
