"""Errors of models side by side.

Mean squared errors (MSE) over repetitions, with a t interval of the mean,
t_{(1+c)/2, n−1} · sd / √n (c = 0.9 in Pavlovski et al. 2018), and p-values of paired t-tests.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trellis.arrays import as_array
from trellis.domains import function, instance, nothing, number, samples, sequence_of, whole
from trellis.errors import DataError
from trellis.progress import Reporter
from trellis.regression.baselines import Model
from trellis.regression.data import RegressionData

__all__ = ["Evaluation", "evaluate", "mean_interval"]

Pair = tuple[RegressionData, RegressionData]


def mean_interval(values: ArrayLike, confidence: float = 0.9) -> tuple[float, float]:
    """Mean, and half the width of its two-sided t interval; NaN for a single value.

    Examples
    --------
    >>> mean, half = mean_interval([1.0, 2.0, 3.0])
    >>> round(mean, 3), round(half, 3)
    (2.0, 1.686)
    """
    from scipy.stats import t

    number(above=0, below=1).check("confidence", confidence)
    x = as_array(values, np.float64, "values")
    if x.ndim != 1 or not len(x):
        raise DataError(f"values must be a list of at least one number, got shape {x.shape}")
    if len(x) == 1:
        return float(x[0]), float("nan")
    factor = float(t.ppf((1 + confidence) / 2, len(x) - 1))
    return float(x.mean()), factor * float(x.std(ddof=1)) / float(np.sqrt(len(x)))


@dataclass(frozen=True)
class Evaluation:
    """Errors of models on the same repetitions.

    Attributes
    ----------
    mse : dict of str to list of float
        Mean squared test errors of each model, one a repetition.
    seconds : dict of str to list of float
        Times of training and prediction.
    confidence : float
        Level of the intervals.
    """

    mse: dict[str, list[float]]
    seconds: dict[str, list[float]]
    confidence: float = 0.9

    def interval(self, name: str) -> tuple[float, float]:
        """Mean MSE and half the width of its interval."""
        return mean_interval(self._errors(name), self.confidence)

    def p_value(self, name: str, reference: str) -> float:
        """Two-sided p-value of the paired t-test; NaN where it is not defined."""
        from trellis.evaluation import paired_t_test

        errors, others = self._errors(name), self._errors(reference)
        if len(errors) < 2:
            return float("nan")
        try:
            return paired_t_test(errors, others).p_value
        except DataError:  # the same difference in every repetition, or errors that overflow
            return float("nan")

    def improvement(self, name: str, reference: str) -> float:
        """By how many per cent the mean MSE of ``name`` lies below that of ``reference``."""
        error, reference_error = (float(np.mean(self._errors(n))) for n in (name, reference))
        return 100 * (1 - error / reference_error)

    def best(self) -> str:
        """The model with the lowest mean MSE."""
        return min(self.mse, key=lambda name: float(np.mean(self.mse[name])))

    def table(self, reference: str | None = None) -> str:
        """Markdown: mean, interval, and p-value against a reference model."""
        if reference is not None:
            self._errors(reference)
        level = f"{100 * self.confidence:g} %"
        lines = [f"| model | MSE | ± ({level}) | p | seconds |", "|---|---:|---:|---:|---:|"]
        for name in self.mse:
            mean, half = self.interval(name)
            p = float("nan")
            if reference is not None and name != reference:
                p = self.p_value(name, reference)
            cells = [name, f"{mean:.4g}", _shown(half, "3g"), _shown(p, "2g")]
            cells.append(f"{np.mean(self.seconds[name]):.2f}")
            lines.append("| " + " | ".join(cells) + " |")
        return "\n".join(lines)

    def _errors(self, name: str) -> list[float]:
        if name not in self.mse:
            raise DataError(f"no model is called {name!r}; there are {', '.join(self.mse)}")
        return self.mse[name]


def evaluate(
    models: Mapping[str, Model],
    data: Callable[[int], Pair] | Sequence[Pair],
    repetitions: int = 10,
    *,
    confidence: float = 0.9,
    random_state: int = 0,
    n_jobs: int | None = 1,
    verbose: bool = False,
) -> Evaluation:
    """Train and test models on the same repetitions.

    Parameters
    ----------
    models : mapping of str to Model
        For instance :func:`baselines`.
    data : callable or sequence of pairs
        Seed to (train, test), or the pairs themselves, such as the folds of a cross-validation.
    repetitions : int
        Number of seeds; of no effect if pairs are given.
    confidence : float
        Level of the intervals.
    random_state : int
        The first seed; repetition r has the seed ``random_state + r``.
    n_jobs : int or None
        Of joblib; results do not depend on it.
    verbose : bool
        Show on standard error how far it is.

    Examples
    --------
    >>> from functools import partial
    >>> from trellis.datasets import synthetic_graph_regression
    >>> from trellis.regression import baselines, evaluate
    >>> table = baselines(glacer=False, modern=False)
    >>> few = {name: table[name] for name in ("MLR", "LSB")}
    >>> make = lambda seed: synthetic_graph_regression(100, 100, random_state=seed)
    >>> result = evaluate(few, make, repetitions=3)
    >>> sorted(result.mse), len(result.mse["LSB"])
    (['LSB', 'MLR'], 3)
    """
    from joblib import delayed

    instance(Mapping).check("models", models)
    sequence_of(function, "a mapping of names to functions").check("models", list(models.values()))
    (function | samples).check("data", data)
    whole(0).check("random_state", random_state)
    (nothing | whole()).check("n_jobs", n_jobs)
    if not models:
        raise DataError("no models to evaluate")
    if callable(data):
        whole(1).check("repetitions", repetitions)
        sources: list[Any] = [(data, random_state + r) for r in range(repetitions)]
    else:
        sources = [(pair, random_state + r) for r, pair in enumerate(data)]
        if not sources:
            raise DataError("no data to evaluate on")
    mean_interval([0.0], confidence)  # checks the level before the work
    jobs = [delayed(_measured)(models[n], *source) for source in sources for n in models]
    results = _in_order(jobs, list(models), n_jobs, Reporter(verbose))
    mse: dict[str, list[float]] = {name: [] for name in models}
    seconds: dict[str, list[float]] = {name: [] for name in models}
    for _ in sources:
        for name in models:
            error, time_taken = next(results)
            mse[name].append(error)
            seconds[name].append(time_taken)
    return Evaluation(mse, seconds, confidence)


def _in_order(
    jobs: list[Any], names: list[str], n_jobs: int | None, reporter: Reporter
) -> Iterator[Any]:
    """Results of jobs, which are those of all names again and again, as they are ready."""
    from joblib import Parallel

    try:
        parallel = Parallel(n_jobs, return_as="generator")
    except ValueError:  # pools of multiprocessing return whole lists
        parallel = Parallel(n_jobs)
    with reporter.steps("fit", len(jobs)) as fits:
        results = iter(parallel(jobs))
        for number in range(len(jobs)):
            repetition, name = divmod(number, len(names))
            fits.at(number, f"{names[name]}, repetition {repetition + 1}")
            yield next(results)


def _measured(model: Model, data: Any, seed: int) -> tuple[float, float]:
    train, test = data(seed) if callable(data) else data
    started = time.perf_counter()
    predictions = model(train, test, seed)
    seconds = time.perf_counter() - started
    errors = as_array(predictions, np.float64, "predictions", test.y.shape) - test.y
    return float(np.mean(errors**2)), seconds


def _shown(value: float, form: str) -> str:
    return "–" if np.isnan(value) else f"{value:.{form}}"
