"""A regression of a table beside its rivals, each row predicted by models not trained on it.

All see the same folds and the same numbers. What is learnt from targets, means of categories among
it, is learnt from the rows of the other folds.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from trellis.arrays import Float64s, Int64s
from trellis.progress import Task
from trellis.regression.fold_scores import FoldScores, measured
from trellis.regression.rivals import Fold, Rival
from trellis.regression.table_data import TableData
from trellis.regression.table_regressor import TableRegressor

__all__ = ["CrossValidation", "cross_validated"]


@dataclass(frozen=True)
class CrossValidation:
    """What models predict of rows that they were not trained on.

    Attributes
    ----------
    kind : str
        What folds are made of, in words.
    fold : (n,) array
        The fold of each row of the table, -1 without a target.
    groups : (n,) array
        Rows that stay together in the intervals of measures.
    means, stds : dict of str to (n,) arrays
        By name of the model; NaN without a target, None without standard deviations.
    seconds : dict of str to float
        Mean time of a fold.
    """

    kind: str
    fold: Int64s
    groups: Int64s
    means: dict[str, Float64s]
    stds: dict[str, Float64s | None]
    seconds: dict[str, float]

    def scores(self, y: Float64s, reference: str) -> dict[str, FoldScores]:
        """Measures of all models, which are compared with one of them."""
        known = self.fold >= 0
        stds = {name: None if std is None else std[known] for name, std in self.stds.items()}
        means = {name: mean[known] for name, mean in self.means.items()}
        return measured(
            y[known], means, stds, self.groups[known], reference=reference, seconds=self.seconds
        )


def cross_validated(
    data: TableData,
    regressor: TableRegressor,
    rivals: Mapping[str, Rival],
    fold: Int64s,
    *,
    kind: str,
    title: str,
    groups: Int64s | None = None,
    graph: object = None,
    task: Task | None = None,
    done: int = 0,
) -> CrossValidation:
    """Predict each known row by models trained on the other folds.

    Parameters
    ----------
    data : TableData
    regressor : TableRegressor
        The model, called `title`; its base alone is called «base».
    rivals : dict of str to Rival
    fold : (n,) array
        The fold of each row; that of rows without a target does not matter.
    kind : str
        What folds are made of, in words.
    title : str
    groups : (n,) array, optional
        Rows that stay together in the intervals of measures; by default each alone.
    graph : sparse (n, n), optional
        Similarities of all rows.
    task : Task, optional
        Told which model is trained; `done` is its number so far.

    Examples
    --------
    >>> from trellis.regression.rivals import rivals
    >>> rng = np.random.default_rng(0)
    >>> table = {"lat": rng.uniform(50, 51, 40), "lon": rng.uniform(8, 9, 40)}
    >>> table["price"] = 100 * table["lat"] + rng.normal(size=40)
    >>> regressor = TableRegressor("price", base="ridge", random_state=0)
    >>> data, few = regressor.read(table), {"mean": rivals(coordinates=True)["mean"]}
    >>> half = np.arange(40) % 2
    >>> found = cross_validated(data, regressor, few, half, kind="halves", title="GCRF")
    >>> scores = found.scores(data.y, "GCRF")
    >>> scores["GCRF"].rmse.value < scores["mean"].rmse.value
    True
    """
    n, known = len(data.y), data.known
    names = [title, "base", *rivals]
    means = {name: np.full(n, np.nan) for name in names}
    stds: dict[str, Float64s | None] = dict.fromkeys(names)
    seconds = dict.fromkeys(names, 0.0)
    of_known = np.full(n, -1, dtype=np.int64)
    of_known[known] = fold[known]
    numbers = np.unique(of_known[known])
    seed = regressor.random_state or 0
    for count, number in enumerate(numbers.tolist()):
        test, train = np.flatnonzero(of_known == number), known[fold[known] != number]
        rows, X = data.numbers(train, seed)

        def say(name: str, i: int, count: int = count) -> float:
            if task is not None:
                task.at(done + count * (len(names) - 1) + i, f"{name}, fold {count + 1}, {kind}")
            return time.perf_counter()

        started = say(title, 0)
        y = np.full(n, np.nan)
        y[train] = data.y[train]
        model = regressor.fitted_model(X, y, data, seed, graph=graph)
        if graph is not None:
            found = model.answer(X, graph=graph, observed=y).subset(test)
        else:
            assert data.points is not None
            found = model.answer(X[test], points=data.points[test])
        seconds[title] += time.perf_counter() - started
        means[title][test], means["base"][test] = found.mean, found.base
        stds[title] = _with(stds[title], n, test, found.std)
        part = Fold(
            X, data.y, train, test, data.points, data.places, graph, regressor.n_neighbors or 10,
            rows.names, data.regressors, seed,
        )  # fmt: skip
        for i, (name, rival) in enumerate(rivals.items()):
            started = say(name, i + 1)
            means[name][test], std = rival(part)
            if std is not None:
                stds[name] = _with(stds[name], n, test, std)
            seconds[name] += time.perf_counter() - started
    seconds = {name: total / len(numbers) for name, total in seconds.items()}
    seconds["base"] = float("nan")  # a part of the model's
    apart = np.arange(n) if groups is None else groups
    return CrossValidation(kind, of_known, apart, means, stds, seconds)


def _with(known: Float64s | None, n: int, rows: Int64s, values: Float64s) -> Float64s:
    array = np.full(n, np.nan) if known is None else known
    array[rows] = values
    return array
