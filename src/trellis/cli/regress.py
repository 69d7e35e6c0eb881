"""``trellis regress``: predict a number at every node of a graph, from a table."""

from __future__ import annotations

import argparse
import csv
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trellis.arrays import Float64s
from trellis.cli.inputs import reading
from trellis.cli.named_files import InputFile, OutputFolder
from trellis.cli.output import say, write_stdout
from trellis.cli.parameters import add_number, add_parameters, new_model
from trellis.errors import DataError
from trellis.pictures.style import has_matplotlib

if TYPE_CHECKING:
    from trellis.files.table import Table
    from trellis.regression.comparison import Evaluation
    from trellis.regression.data import RegressionData


NAME = "regress"
HELP = "predict a number at every node of a graph, from a table"
DESCRIPTION = """\
Predict a column of a CSV file from other columns and from the nearest rows, with GLACER or another
Gaussian CRF, beside the usual baselines.

  trellis regress houses.csv --target price --coords lat,lon --knn 5 --model glacer --report out

Cross-validates all models and writes to DIR: report.md with the table of errors; predictions.csv
with out-of-fold predictions and intervals; map.png with targets, predictions and intervals in
space; and objective.png with R_obj over the swaps of GLACER (figures need matplotlib; without it
there are none).

The file has a header. Empty cells, NA, NaN, null, none and ? are missing. A missing feature is
replaced by the column's mean over the rows trained on; a row without target is predicted, not
trained on; a row without coordinates is an error.

Rows are joined to their nearest, with weights e^(-distance / median distance of joined rows).
"""

_LATITUDES, _LONGITUDES = ("lat", "latitude"), ("lon", "lng", "long", "longitude")
_CONFIDENCE = 0.9
_PARAMETERS = ("n_components", "subsample", "random_state", "n_jobs")


class _Report(OutputFolder):
    names = ("predictions.csv", "report.md", "map.png", "objective.png")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    from trellis.regression import GLACER, KNN

    add = parser.add_argument
    add("file", type=InputFile, metavar="FILE", help="CSV file with a header; - for standard input")
    add("--target", required=True, metavar="COLUMN", help="what to predict")
    add(
        "--coords", required=True, type=_names, metavar="COLUMN,...",
        help="where rows are: columns that distances are measured on",
    )  # fmt: skip
    add(
        "--features", type=_names, metavar="COLUMN,...",
        help="what to predict from (default: all columns of numbers but the target)",
    )  # fmt: skip
    usual = "haversine for columns named lat,lon or the like, else euclidean"
    add_parameters(parser, [KNN], ["n_neighbors", "metric"], defaults={"metric": usual})
    add(
        "--model", choices=("glacer", "gcrf"), default="glacer",
        help="the model to report on: glacer, or gcrf, one Gaussian CRF over boosted trees "
        "(default: glacer)",
    )  # fmt: skip
    add_parameters(
        parser, [GLACER], _PARAMETERS,
        defaults={"random_state": "0", "n_jobs": "one a processor"},
    )  # fmt: skip
    add(
        "--compare", type=_names, metavar="NAME,...",
        help="baselines in the table, e.g. MLR,S-RF,Kriging (default: all)",
    )  # fmt: skip
    add_number(parser, "--folds", 2, "of the cross-validation", 5)
    add(
        "--report", type=_Report, default="regression", metavar="DIR",
        help="folder for the results (default: regression)",
    )  # fmt: skip
    add("--no-figures", action="store_true", help="do not draw figures")
    add("--quiet", action="store_true", help="no progress on standard error")


def run(args: argparse.Namespace) -> int:
    """Read, cross-validate, write."""
    from trellis.files.table import read_table
    from trellis.regression.baselines import baselines

    _check(args)
    known = baselines(coordinates=True, glacer=False)
    for name in args.compare or ():
        if name not in known:
            raise DataError(f"--compare: unknown baseline {name!r}; known: {'; '.join(known)}")
    folder = Path(args.report)
    if not args.no_figures and not has_matplotlib():
        args.no_figures = True
        say("trellis: no figures, which need matplotlib: install it, or trellis-structured[plot]")
    with reading(args, args.file):
        problem = _problem(read_table(args.file), args)
    folder.mkdir(parents=True, exist_ok=True)
    say(f"{len(problem.known)} rows to train on, {problem.describe()}", quiet=args.quiet)
    predicted = _cross_validated(problem, args)
    table = _compared(problem, predicted, args)
    with args.reporter.stage("writing the report"):
        _write(problem, predicted, table, folder, args)
    write_stdout(table.table(args.model.upper()) + "\n")
    files = "report.md, predictions.csv" + ("" if args.no_figures else ", figures")
    say(f"{files} are in {folder}", quiet=args.quiet)
    return 0


# ------------------------------------------------------------------------------- the problem


@dataclass(frozen=True)
class Problem:
    """The table as numbers: rows with a target are ``known``, the others ``unknown``."""

    lines: NDArray[np.int64]
    X: Float64s
    y: Float64s
    coords: Float64s
    names: tuple[str, ...]
    regressors: tuple[int, ...] | None
    metric: str
    left_out: tuple[str, ...]

    @property
    def known(self) -> NDArray[np.int64]:
        """Rows with a target."""
        return np.flatnonzero(~np.isnan(self.y))

    @property
    def unknown(self) -> NDArray[np.int64]:
        """Rows without one."""
        return np.flatnonzero(np.isnan(self.y))

    def describe(self) -> str:
        """What is predicted from what, in words."""
        missing = int(np.isnan(self.X).any(1).sum())
        parts = [f"features {', '.join(self.names)}"]
        if self.left_out:
            parts.append(f"left out, since they are not numbers: {', '.join(self.left_out)}")
        if missing:
            parts.append(f"{missing} rows with missing features, replaced by means")
        if len(self.unknown):
            parts.append(f"{len(self.unknown)} rows without target, predicted only")
        return "; ".join(parts)

    def part(self, rows: NDArray[np.int64], means: Float64s, k: int) -> RegressionData:
        """Data of some rows, missing features replaced, with a graph of their own."""
        from scipy.sparse import csr_array

        from trellis.regression import knn_graph
        from trellis.regression.data import RegressionData

        X = np.where(np.isnan(self.X[rows]), means, self.X[rows])
        n = len(rows)
        if n > 1:
            metric: Any = self.metric
            graph = knn_graph(self.coords[rows], min(k, n - 1), metric=metric, scale="median")
        else:
            graph = csr_array((n, n))
        return RegressionData(
            "the table", X, self.y[rows], self.coords[rows], graph, self.names, self.metric,
            self.regressors,
        )  # fmt: skip

    def pair(
        self, train: NDArray[np.int64], test: NDArray[np.int64], k: int
    ) -> tuple[RegressionData, RegressionData]:
        """Training and test data; means are those of the training rows."""
        known = ~np.isnan(self.X[train])
        sums = np.where(known, self.X[train], 0.0).sum(0)
        means = sums / np.maximum(known.sum(0), 1)
        return self.part(train, means, k), self.part(test, means, k)


def _problem(table: Table, args: argparse.Namespace) -> Problem:
    if not len(table):
        raise DataError(f"{table.name} has a header, but no rows")
    table.require((args.target, *args.coords, *(args.features or ())))
    if args.target in (*args.coords, *(args.features or ())):
        raise DataError(f"the target {args.target!r} is also a feature or a coordinate")
    others = [name for name in table.columns if name != args.target]
    names = args.features or [name for name in others if table.is_numeric(name)]
    left_out = () if args.features else tuple(n for n in others if n not in names)
    y = table.checked_numbers(args.target, missing=True)
    coords = np.column_stack([table.checked_numbers(name) for name in args.coords])
    X = np.column_stack([table.checked_numbers(name, missing=True) for name in names])
    metric = _metric(args)
    if metric == "haversine" and (coords.shape[1] != 2 or np.abs(coords[:, 0]).max() > 90):
        raise DataError(
            "haversine distances need --coords LATITUDE,LONGITUDE in degrees, in this order; got "
            f"{','.join(args.coords)}"
        )
    n_known = int((~np.isnan(y)).sum())
    least = max(10, 2 * args.folds)
    if n_known < least:
        raise DataError(
            f"{table.name} has {n_known} rows with a target; at least {least} are needed for "
            f"{args.folds} folds"
        )
    if np.ptp(y[~np.isnan(y)]) == 0:
        raise DataError(f"{table.name}: column {args.target!r} is the same in every row")
    apart = tuple(i for i, name in enumerate(names) if name not in args.coords)
    lines = np.array(table.lines)
    return Problem(lines, X, y, coords, tuple(names), apart or None, metric, left_out)


def _metric(args: argparse.Namespace) -> str:
    if args.metric is not None:
        return str(args.metric)
    names = [name.lower() for name in args.coords]
    earth = len(names) == 2 and names[0] in _LATITUDES and names[1] in _LONGITUDES
    return "haversine" if earth else "euclidean"


def _check(args: argparse.Namespace) -> None:
    """Check the options, and fill in what was not given."""
    from trellis.regression import GLACER, KNN

    model = new_model(args, GLACER, random_state=0, n_jobs=-1)
    for name in _PARAMETERS:
        setattr(args, name, getattr(model, name))
    args.n_neighbors = new_model(args, KNN).n_neighbors
    if not args.coords:
        raise DataError("--coords names no column")


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


# ------------------------------------------------------------------------------- computing


@dataclass(frozen=True)
class Found:
    """Out-of-fold predictions of the known rows, predictions of the others, and the history.

    The half width of an interval is ``factor`` standard deviations of the model, where the factor
    makes the intervals of the known rows cover what they promise.
    """

    mean: Float64s
    std: Float64s
    fold: NDArray[np.int64]
    seconds: list[float]
    factor: float
    own_coverage: float
    history: list[Any]

    @property
    def half(self) -> Float64s:
        """Half widths."""
        return self.factor * self.std


def _cross_validated(problem: Problem, args: argparse.Namespace) -> Found:
    mean, std = (np.full(len(problem.y), np.nan) for _ in range(2))
    fold, seconds = np.full(len(problem.y), -1), []
    title = args.model.upper()
    with args.reporter.steps("fit", args.folds + 1) as fits:
        for number, (train, test) in enumerate(_folds(problem, args)):
            fits.at(number, f"{title} on fold {number + 1}")
            pair = problem.pair(train, test, args.n_neighbors)
            started = time.perf_counter()
            mean[test], std[test], _ = _fitted(pair, args)
            seconds.append(time.perf_counter() - started)
            fold[test] = number
            say(f"fold {number + 1} of {args.folds}: {title} is trained", quiet=args.quiet)
        fits.at(args.folds, f"{title} on all rows")
        everything = _fitted(problem.pair(problem.known, problem.unknown, args.n_neighbors), args)
    mean[problem.unknown], std[problem.unknown] = everything[0], everything[1]
    known = problem.known
    errors = np.abs(problem.y[known] - mean[known]) / std[known]
    n = len(known)
    level = min(1.0, np.ceil((n + 1) * _CONFIDENCE) / n)
    factor = float(np.quantile(errors, level, method="higher"))
    from scipy.stats import norm

    coverage = float((errors <= norm.ppf((1 + _CONFIDENCE) / 2)).mean())
    return Found(mean, std, fold, seconds, factor, coverage, everything[2])


def _folds(
    problem: Problem, args: argparse.Namespace
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    order = np.random.default_rng(args.random_state).permutation(problem.known)
    parts = np.array_split(order, args.folds)
    return [
        (np.sort(np.concatenate(parts[:i] + parts[i + 1 :])), np.sort(part))
        for i, part in enumerate(parts)
    ]


def _fitted(pair: Any, args: argparse.Namespace) -> tuple[Float64s, Float64s, list[Any]]:
    """Means and standard deviations on the second part, and the history of GLACER."""
    from trellis.regression import GCRF, GLACER, least_squares_boosting

    train, test = pair
    model: Any
    if args.model == "glacer":
        model = new_model(args, GLACER)
    else:
        base = least_squares_boosting(args.n_components, args.random_state)
        model = GCRF(base, base_predictions="cv", random_state=args.random_state)
    model.fit(train.X, train.y, graph=train.graph)
    history = list(getattr(model, "history_", []))
    if not len(test.y):
        return np.empty(0), np.empty(0), history
    mean, std = model.predict(test.X, graph=test.graph, return_std=True)
    return mean, std, history


def _compared(problem: Problem, found: Found, args: argparse.Namespace) -> Evaluation:
    from trellis.regression.baselines import baselines
    from trellis.regression.comparison import Evaluation, evaluate

    table = baselines(args.n_components, args.subsample, coordinates=True, glacer=False)
    if args.compare is not None:
        table = {name: table[name] for name in args.compare}
    pairs = [problem.pair(train, test, args.n_neighbors) for train, test in _folds(problem, args)]
    title = args.model.upper()
    errors = (problem.y - found.mean) ** 2
    by_fold = [float(errors[found.fold == f].mean()) for f in range(args.folds)]
    if not table:
        return Evaluation({title: by_fold}, {title: found.seconds}, _CONFIDENCE)
    say(f"{len(table)} baselines ...", quiet=args.quiet)
    result = evaluate(
        table, pairs, random_state=args.random_state, n_jobs=args.n_jobs,
        verbose=args.reporter.shown,
    )  # fmt: skip
    seconds = result.seconds | {title: found.seconds}
    return Evaluation(result.mse | {title: by_fold}, seconds, _CONFIDENCE)


# ------------------------------------------------------------------------------- writing


def _write(
    problem: Problem, found: Found, table: Evaluation, folder: Path, args: argparse.Namespace
) -> None:
    from trellis.files import atomic_write

    with atomic_write(folder / "predictions.csv", binary=False) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["line", args.target, "predicted", "std", "low", "high", "fold"])
        for i, line in enumerate(problem.lines):
            low, high = found.mean[i] - found.half[i], found.mean[i] + found.half[i]
            numbers = (found.mean[i], found.std[i], low, high)
            known = not np.isnan(problem.y[i])
            writer.writerow(
                [line, repr(float(problem.y[i])) if known else ""]
                + [f"{value:.8g}" for value in numbers]
                + [found.fold[i] + 1 if known else ""]
            )
    pictures = [] if args.no_figures else _figures(problem, found, folder, args)
    with atomic_write(folder / "report.md", binary=False) as file:
        file.write(_report(problem, found, table, pictures, args))


def _report(
    problem: Problem, found: Found, table: Evaluation, pictures: list[str], args: argparse.Namespace
) -> str:
    title, best = args.model.upper(), table.best()
    known = problem.known
    covered = np.abs(problem.y[known] - found.mean[known]) <= found.half[known]
    parts = [
        f"# {args.target}: {title} and its baselines",
        f"{len(known)} rows to train on; {problem.describe()}. Each row is joined to its "
        f"{args.n_neighbors} nearest by {','.join(args.coords)} ({problem.metric} distance).",
        f"## Errors\n\nMean squared errors over {args.folds} folds with t intervals of the mean, "
        f"and p-values of paired t-tests against {title}. Folds share training rows, so intervals "
        "and p-values are too small.",
        table.table(title),
        f"The lowest error is that of {best}."
        + (
            "" if best == title else f" {title} lies {-table.improvement(title, best):.1f} % above."
        ),
        "## Intervals\n\nThe model's own 90 % intervals cover "
        f"{100 * found.own_coverage:.1f} % of the rows not trained on. Those in predictions.csv "
        f"are {found.factor:.2f} standard deviations of the model to each side, which covers "
        f"{100 * covered.mean():.1f} % of them (the factor was chosen on these rows).",
    ]
    if found.history:
        first, last = found.history[0], found.history[-1]
        parts.append(
            f"## Swaps\n\nOn all rows GLACER made {len(found.history) - 1} swaps; R_obj fell from "
            f"{first.r_obj:.4f} to {last.r_obj:.4f}, R_emp went from {first.r_emp:.4f} to "
            f"{last.r_emp:.4f}, dCorr from {first.dcorr:.4f} to {last.dcorr:.4f}."
        )
    parts += [f"![{name}]({name})" for name in pictures]
    return "\n\n".join(parts) + "\n"


def _figures(problem: Problem, found: Found, folder: Path, args: argparse.Namespace) -> list[str]:
    from trellis.pictures import draw_learning, draw_map

    figures = []
    if problem.coords.shape[1] == 2:
        draw_map(
            problem.coords, found.mean, lower=found.mean - found.half,
            upper=found.mean + found.half, observed=problem.y,
            geographic=problem.metric == "haversine", label=args.target, names=args.coords,
            path=folder / "map.png",
        )  # fmt: skip
        figures.append("map.png")
    if found.history:
        title = "GLACER on all rows"
        draw_learning(found.history, path=folder / "objective.png", title=title)
        figures.append("objective.png")
    return figures
