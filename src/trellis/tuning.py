r"""Choosing parameters by held-out data, as Sun (2014) does.

With :math:`D_1, \dots, D_K` the folds of the training data :math:`D` and :math:`s(\theta; A, B)`
the score on :math:`B` of the model with parameters :math:`\theta` trained on :math:`A`,

.. math:: \bar s(\theta) = \frac1K \sum_{k=1}^K s(\theta; D \setminus D_k, D_k), \qquad
          \theta^* = \arg\max_{\theta \in \Theta} \bar s(\theta);

with development data :math:`B`, :math:`\bar s(\theta) = s(\theta; D, B)`. The score is span F1 if
the labels follow a tag scheme, else token accuracy; which of them is decided once, from all the
data. Of equal means the first in the order of the grid wins.

References
----------
X. Sun, *Structure regularization for structured prediction*, NIPS 2014, section 3: l2 (the paper's
λ/2) among 0.1, 0.5, 1, 2, 5, by development data or 4-fold cross-validation on the training set;
curves over the piece sizes 1.5, 2.5, 3.5, 5.5, 10.5, 15.5, 20.5.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis import __version__
from trellis.corpus import Corpus, Label
from trellis.corpus.form import Given
from trellis.errors import DataError, ParameterError, ParametersError
from trellis.estimator import check_parameters
from trellis.evaluation.held_out import held_out_score, metric_name, scoring_scheme
from trellis.files import display_name, fingerprint
from trellis.files.tuning_log import TuningLog, plain
from trellis.models.linear_model import LinearModel
from trellis.progress import Reporter, Task

__all__ = ["Trial", "Tuning", "default_grid", "tune"]

# Ties go to the first: whole sequences before pieces, larger pieces before smaller.
_PIECE_SIZES = (None, 20.5, 15.5, 10.5, 5.5, 3.5, 2.5, 1.5)
# The paper has 0.1 to 5; averaged steps often want less of a penalty than that.
_L2 = (0.03, 0.1, 0.3, 1.0, 5.0)


def default_grid(model: LinearModel) -> dict[str, list[Any]]:
    """Return the usual grid: ``l2`` (unless the model has none) and the paper's ``piece_size``.

    Examples
    --------
    >>> from trellis import ChainPerceptron
    >>> default_grid(ChainPerceptron())
    {'piece_size': [None, 20.5, 15.5, 10.5, 5.5, 3.5, 2.5, 1.5]}
    """
    grid: dict[str, list[Any]] = {"l2": list(_L2)} if "l2" in model.get_params() else {}
    return grid | {"piece_size": list(_PIECE_SIZES)}


@dataclass(frozen=True)
class Trial:
    """One point of the grid and what it scored.

    Attributes
    ----------
    params : dict
        The parameters tried.
    mean : float
        Mean score of the folds.
    sd : float or None
        Their standard deviation (over K − 1); None with development data, which give one score.
    scores : tuple of float
        The score of each fold.
    seconds : float
        Time of training, all folds together.
    """

    params: dict[str, Any]
    mean: float
    sd: float | None
    scores: tuple[float, ...]
    seconds: float


@dataclass(frozen=True)
class Tuning:
    """Result of :func:`tune`; ``str()`` gives a table.

    Attributes
    ----------
    table : list of Trial
        Every point tried, in order.
    best : Trial
        The one chosen.
    metric : str
        What was scored: ``"span F1"`` or ``"accuracy"``.
    """

    table: list[Trial]
    best: Trial
    metric: str
    _model: LinearModel = field(repr=False, compare=False)
    _given: Given = field(repr=False, compare=False)

    @property
    def best_params_(self) -> dict[str, Any]:
        """The parameters chosen."""
        return dict(self.best.params)

    @property
    def best_score_(self) -> float:
        """Their mean score: an optimistic one, since it is the largest of many."""
        return self.best.mean

    def best_model(self) -> LinearModel:
        """Train a model with the parameters chosen on all the training data, and return it."""
        return _with(self._model, self.best.params).fit(self._given)

    def __str__(self) -> str:
        folds = len(self.best.scores)
        of = "development data" if self.best.sd is None else f"mean of {folds} folds"
        head = [*self.best.params, self.metric, *([] if self.best.sd is None else ["sd"])]
        rows = [[*head, "training"]]
        for trial in self.table:
            scores = [trial.mean] if trial.sd is None else [trial.mean, trial.sd]
            rows.append(
                [_shown(*item) for item in trial.params.items()]
                + [f"{100 * score:.2f}" for score in scores]
                + [f"{trial.seconds:.2f} s"]
            )
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.rjust, row, widths)) for row in rows]
        chosen = (
            f"best: {_point(self.best.params)} ({self.metric} {100 * self.best.mean:.2f}, {of})"
        )
        return "\n".join([*lines, "", chosen])


def tune(
    model: LinearModel,
    X: Any,
    y: Sequence[Sequence[Label]] | None = None,
    *,
    edges: Sequence[Any] | None = None,
    edge_types: Sequence[Sequence[str]] | None = None,
    edge_features: Sequence[Any] | None = None,
    grid: Mapping[str, Iterable[Any]] | None = None,
    search: str = "grid",
    dev: Any = None,
    folds: int = 4,
    n_jobs: int | None = None,
    random_state: int = 0,
    log: str | os.PathLike[Any] | None = None,
    verbose: bool = False,
) -> Tuning:
    """Choose parameters of a model by development data or cross-validation.

    Every fit is made from nothing: its features and labels come from its own training part. Folds
    are drawn over sequences. The seed of a fit is derived from ``random_state``, the point of the
    grid and the fold, so the result does not depend on ``n_jobs``, nor on what else is in the grid.

    Parameters
    ----------
    model : ChainCRF, TreePerceptron, MaxMargin, ...
        Any linear model. Gives the parameters that are not in the grid; it is not changed itself.
        Its ``random_state`` serves :meth:`Tuning.best_model` only (None: the one given here).
    X, y, edges, edge_types, edge_features
        Training data, as for ``fit``.
    grid : dict of parameter names to values, optional
        By default the paper's, see :func:`default_grid`.
    search : "grid" or "coordinate"
        "grid" tries all combinations. "coordinate" goes through the parameters in the order of the
        grid, each with those before it at their best and those after it as in ``model`` (but
        ``piece_size`` None, whole sequences). With the default grid: l2 on whole sequences, then
        the piece size at that l2. This is how the paper tuned l2, for its baseline; whether l2 was
        tuned again for pieces, and how their size was chosen, it does not say. The full grid is
        the default because penalty and pieces both regularise, so that the best l2 may be another
        on pieces; "coordinate" costs 12 points instead of 40.
    dev : Corpus or (X, y), optional
        Development data to score on, instead of folds. Every fit then has all the training data.
    folds : int
        Number of folds, if there is no ``dev``.
    n_jobs : int or None
        Fits made at once; -1 for one on each processor. None is 1, or what
        ``joblib.parallel_config`` says: its backend (processes, Dask, Ray, …) is used.
    random_state : int
        Seed of the folds and of all fits.
    log : path, optional
        File to which each finished fit is appended. The same call goes on from there if it was
        interrupted; fits that are in the log are not made again. A log belongs to its data.
    verbose : bool
        Show on standard error how far the search is: a bar with the time left on terminals and in
        notebooks, and a line for each fit.

    Returns
    -------
    Tuning

    Examples
    --------
    >>> from trellis import ChainCRF
    >>> from trellis.tuning import tune
    >>> X = [["the", "cat", "sat"], ["the", "dog", "ran", "off"]] * 5
    >>> y = [["D", "N", "V"], ["D", "N", "V", "P"]] * 5
    >>> result = tune(ChainCRF("word"), X, y, grid={"l2": [0.1, 50.0], "max_passes": [5]}, folds=2)
    >>> result.best_params_
    {'l2': 0.1, 'max_passes': 5}
    >>> result.best_model().predict([["the", "cat", "ran"]])
    [['D', 'N', 'V']]
    """
    if not isinstance(model, LinearModel):
        raise DataError(f"tune takes a linear model such as ChainCRF(), got {model!r}")
    if not isinstance(random_state, int | np.integer) or random_state < 0:
        raise DataError(f"random_state must be an integer of at least 0, got {random_state!r}")
    if dev is None and getattr(model, "partial", "unknown") != "unknown":
        raise DataError(
            f"partial={model.partial!r} needs dev= (--dev) with all mentions marked: in parts of "
            "the training data mentions were missed, and a model that finds them would score less"
        )
    if n_jobs is not None and not (isinstance(n_jobs, int | np.integer) and n_jobs):
        raise DataError(f"n_jobs must be None or an integer other than 0, got {n_jobs!r}")
    if search not in ("grid", "coordinate"):
        raise DataError(f"search must be 'grid' or 'coordinate', got {search!r}")
    values = _checked_grid(model, default_grid(model) if grid is None else grid)
    given = model.training_data(X, y, edges, edge_types, edge_features)
    corpus, fields = given.corpus, given.fields
    held_out = None if dev is None else model.dev_corpus(dev, fields).only_used_labels()
    splits = [None] if held_out is not None else _folds(corpus, folds, random_state)
    task = _Task(model, corpus.only_used_labels(), held_out, splits, int(random_state))
    trials = _Trials(
        task,
        TuningLog(log, fingerprint(corpus, held_out)),
        n_jobs,
        Reporter(verbose),
    )
    try:
        if search == "grid":
            points = [
                dict(zip(values, point, strict=True))
                for point in itertools.product(*values.values())
            ]
            best = trials.best(points)
        else:
            best = _coordinate_search(trials, values)
    except KeyboardInterrupt as stop:
        advice = (
            "with log=FILE the fits made so far would have been kept"
            if log is None
            else f"the fits made so far are in {display_name(log)}; the same call goes on from them"
        )
        raise KeyboardInterrupt(advice) from stop
    refit = (
        model
        if model.random_state is not None
        else _with(model, {"random_state": int(random_state)})
    )
    metric = metric_name("auto", task.scheme)
    return Tuning(trials.table, best, metric, refit, given)


def _coordinate_search(trials: _Trials, values: dict[str, list[Any]]) -> Trial:
    start = {"piece_size": None}  # where the paper's baseline is
    point = {name: start.get(name, getattr(trials.task.model, name)) for name in values}
    for name, candidates in values.items():
        best = trials.best([point | {name: value} for value in candidates])
        point = best.params
    return best


# ---------------------------------------------------------------------- what is to be computed


@dataclass(frozen=True)
class _Fit:
    """One training: a point of the grid and the number of the fold held out (None: dev data)."""

    params: dict[str, Any]
    fold: int | None
    seed: int
    key: str


class _Task:
    """The data, how they are split and scored; everything a fit needs besides its parameters."""

    def __init__(
        self,
        model: LinearModel,
        corpus: Corpus,
        dev: Corpus | None,
        splits: Sequence[NDArray[np.int64] | None],
        random_state: int,
    ) -> None:
        self.model, self.corpus, self.dev = model, corpus, dev
        self.splits, self.random_state = splits, random_state
        scored = corpus if dev is None else dev
        assert corpus.labels is not None and scored.labels is not None
        # For all fits alike: a fold that happens to lack some label must not change the score.
        self.scheme = None
        if model.structure == "chain":
            self.scheme = scoring_scheme(
                model.scheme, corpus.labels.classes, scored.label_lists(), scored.labels.classes
            )

    def fits(self, params: dict[str, Any]) -> list[_Fit]:
        """The fits of one point of the grid."""
        fits = []
        for k, part in enumerate(self.splits, 1):
            fold = None if part is None else k
            origin = {"random_state": self.random_state, "fold": fold, "folds": len(self.splits)}
            seed = int(fingerprint(plain([origin, params]))[:8], 16)
            model = _with(self.model, {"random_state": seed} | params)
            everything = origin | {
                "model": type(model).__name__,
                "params": model.get_params() | {"verbose": False, "warm_start": False},
                "scheme": self.scheme,
                "version": __version__,
            }
            fits.append(_Fit(params, fold, seed, fingerprint(plain(everything))))
        return fits

    def score(self, fit: _Fit) -> tuple[float, float]:
        """Train and score; returns the score and the seconds of training."""
        changed = {"random_state": fit.seed} | fit.params | {"verbose": False, "warm_start": False}
        model = _with(self.model, changed)
        part = None if fit.fold is None else self.splits[fit.fold - 1]
        if part is None:
            train, test = self.corpus, self.dev
        else:
            rest = np.delete(np.arange(len(self.corpus)), part)
            train = self.corpus.take(rest).only_used_labels()
            test = self.corpus.take(part)
        assert test is not None
        started = time.perf_counter()
        try:
            model.fit(train)
            seconds = time.perf_counter() - started
            return held_out_score(test.label_lists(), model.predict(test), self.scheme), seconds
        except ParametersError as error:
            # The text has fields in braces; those of the place, as of a pattern, are none.
            place = _place(fit).replace("{", "{{").replace("}", "}}")
            raise ParametersError(f"at {place}: {error.text}", **error.values) from error
        except DataError as error:
            kind = DataError if isinstance(error, ParameterError) else type(error)
            raise kind(f"at {_place(fit)}: {error}") from error


class _Trials:
    """Computes trials, each fit once, and keeps them."""

    def __init__(self, task: _Task, log: TuningLog, n_jobs: int | None, reporter: Reporter) -> None:
        self.task = task
        self.table: list[Trial] = []
        self._log, self._n_jobs, self._reporter = log, n_jobs, reporter

    def best(self, points: list[dict[str, Any]]) -> Trial:
        """Try some points and return the best of them."""
        fits = [self.task.fits(point) for point in points]
        wanted = list(itertools.chain.from_iterable(fits))
        missing = [fit for fit in wanted if fit.key not in self._log.done]
        n_done = len(wanted) - len(missing)
        steps = Task("fit", len(wanted), n_done)
        with (
            self._reporter.under_way(steps),
            closing(_computed(self.task, missing, self._n_jobs)) as computed,
        ):
            for fit, score, seconds in computed:
                self._log.add(fit.key, fit.params, fit.fold, score, seconds)
                n_done += 1
                steps.at(n_done)
                self._reporter.line(
                    f"fit {n_done}/{len(wanted)}  {_place(fit)}: {100 * score:.2f}  {seconds:.2f} s"
                )
        trials = [
            _trial(point, [self._log.done[fit.key] for fit in its_fits])
            for point, its_fits in zip(points, fits, strict=True)
        ]
        known = [plain(trial.params) for trial in self.table]  # equal, though not the same object
        self.table += [trial for trial in trials if plain(trial.params) not in known]
        return max(trials, key=lambda trial: trial.mean)


def _computed(
    task: _Task, fits: list[_Fit], n_jobs: int | None
) -> Generator[tuple[_Fit, float, float]]:
    """Scores and seconds of fits, in the order in which they are ready."""
    from joblib import Parallel, delayed, effective_n_jobs

    calls = [delayed(_numbered_score)(task, number, fit) for number, fit in enumerate(fits)]
    try:
        parallel = Parallel(n_jobs=n_jobs, batch_size=1, return_as="generator_unordered")
        step = len(calls)
    except ValueError:
        # Pools of multiprocessing, and of Ray, return whole lists: a few at a time, for the log.
        parallel = Parallel(n_jobs=n_jobs, batch_size=1)
        step = effective_n_jobs(n_jobs)
    for first in range(0, len(calls), step or 1):
        results: Any = parallel(calls[first : first + step])
        try:
            for number, score, seconds in results:
                yield fits[number], score, seconds
        finally:  # an interrupt ends the fits that are being made, too
            if not isinstance(results, list):
                results.close()


def _numbered_score(task: _Task, number: int, fit: _Fit) -> tuple[int, float, float]:
    return (number, *task.score(fit))


def _trial(params: dict[str, Any], results: list[tuple[float, float]]) -> Trial:
    scores, seconds = zip(*results, strict=True)
    sd = float(np.std(scores, ddof=1)) if len(scores) > 1 else None
    return Trial(params, float(np.mean(scores)), sd, scores, sum(seconds))


def _folds(corpus: Corpus, folds: int, random_state: int) -> list[NDArray[np.int64]]:
    """Sequences held out in each fold."""
    if not isinstance(folds, int | np.integer) or folds < 2:
        raise DataError(f"folds must be an integer of at least 2, got {folds!r}")
    if folds > len(corpus):
        raise DataError(f"{folds} folds of {len(corpus)} sequence(s): use fewer folds")
    order = np.random.default_rng(random_state).permutation(len(corpus))
    parts = [np.sort(part) for part in np.array_split(order, folds)]
    assert corpus.labels is not None
    annotated = corpus.labels.ids != len(corpus.labels.classes)
    total = np.add.reduceat(annotated, corpus.offsets[:-1], dtype=np.int64)  # no sequence is empty
    for part in parts:
        if not 0 < total[part].sum() < total.sum():
            raise DataError(
                "a fold would have no annotated position to learn from or to score on; use fewer "
                "folds, or leave out sequences without any label"
            )
    return parts


def _checked_grid(model: LinearModel, grid: Mapping[str, Iterable[Any]]) -> dict[str, list[Any]]:
    if not isinstance(grid, Mapping) or not grid:
        raise DataError(f"grid must be a dict of parameter names to lists of values, got {grid!r}")
    checked: dict[str, list[Any]] = {}
    for name, values in grid.items():
        if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
            raise DataError(f"grid: {name} must have a list of values, got {values!r}")
        checked[name] = list(values)
        if not checked[name]:
            raise DataError(f"grid: {name} has no values")
        seen = []
        for value in checked[name]:
            if plain(value) in seen:
                raise DataError(f"grid: {name} has the value {value!r} twice")
            seen.append(plain(value))
            check_parameters(_with(model, {name: value}))
    return checked


def _with(model: LinearModel, params: Mapping[str, Any]) -> LinearModel:
    """A model that has learned nothing, with some parameters changed."""
    return type(model)(**model.get_params(deep=False)).set_params(**params)


def _shown(name: str, value: Any) -> str:
    if value is None and name == "piece_size":
        return "whole"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _point(params: dict[str, Any]) -> str:
    return ", ".join(f"{name} {_shown(name, value)}" for name, value in params.items())


def _place(fit: _Fit) -> str:
    fold = "" if fit.fold is None else f", fold {fit.fold}"
    return f"{_point(fit.params)}{fold}"
