"""What ``trellis regress`` writes: the report, predictions of all rows, pictures, new rows."""

from __future__ import annotations

import argparse
import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trellis.arrays import Float64s
from trellis.cli.output import one_line
from trellis.cli.regress_comparison import said
from trellis.regression.fold_scores import NORMAL_90
from trellis.regression.log_scale import OwnScale

if TYPE_CHECKING:
    from trellis.cli.regress_comparison import Comparison
    from trellis.files.table import Table
    from trellis.regression import TableRegressor
    from trellis.regression.table_data import TableData
    from trellis.regression.table_rows import ColumnCode

__all__ = ["applied_rows", "columns_table", "how_good", "write_report"]

_MANY = 50  # columns that are named

# ------------------------------------------------------------------------------- in words


def columns_table(data: TableData) -> list[str]:
    """What was made of the columns, in a few lines."""
    rows = data.rows
    known, unknown = len(data.known), len(data.unknown)
    lines = [f"{known} rows to learn from" + (f", {unknown} to predict" if unknown else "")]
    if lost := len(data.lost):
        lines.append(
            f"rows without a place: {lost} (the first is {data.table.place(data.lost[0])}); they "
            "are not learnt from, and get what the base says"
        )
    if data.note:
        lines.append(f"target: {one_line(data.target)} ({data.note})")
    kinds = {
        "number": "numbers", "date": "dates", "one-hot": "a column for each value",
        "means": "mean target of each value",
    }  # fmt: skip
    for how, words in kinds.items():
        of_kind = [code for code in rows.codes if code.how == how]
        named = [c.name + (f" ({c.note})" if c.note else "") for c in of_kind]
        if how == "date":
            named = [f"{c.name} ({_form(c.form)}: {', '.join(c.parts)})" for c in of_kind]
        elif how != "number":
            named = [f"{c.name} ({'; '.join(_about(c))})" for c in of_kind]
        more = [f"and {len(named) - _MANY} more"] if len(named) > _MANY + 1 else []
        named = named[:_MANY] if more else named
        if named:
            lines.append(f"{words}: {', '.join(map(one_line, [*named, *more]))}")
    if rows.left_out:
        out = (f"{name} ({why})" for name, why in rows.left_out.items())
        lines.append(f"left out: {', '.join(map(one_line, out))}")
    gaps = int(np.isnan(data.given.X).any(axis=1).sum())
    if gaps:
        lines.append(f"{gaps} rows have gaps in numbers or dates")
    return lines


def _about(code: ColumnCode) -> list[str]:
    """How many values a category has, and what a user should know of it."""
    return [str(len(code.levels)), *([code.note] if code.note else [])]


def _form(form: str) -> str:
    from trellis.regression.column_kinds import DATE_FORMS

    return DATE_FORMS[form]


def _neighbours(data: TableData, graph: Any, args: argparse.Namespace) -> str:
    if graph is None:
        assert data.places is not None
        many = "" if args.n_neighbors is None else f"{args.n_neighbors} "
        return (
            f"Each row is joined to its {many}nearest by {','.join(data.places.columns)} "
            f"({data.places.metric} distance)."
        )
    degree = np.diff(graph.indptr)
    text = f"Rows have {degree.mean():.1f} neighbours on average, by {args.edges or args.areas}."
    alone = int((degree == 0).sum())
    return text + (f" {alone} rows have none and keep what the base says." if alone else "")


# ------------------------------------------------------------------------------- the report


def write_report(
    data: TableData,
    fitted: TableRegressor | None,
    graph: Any,
    tests: Comparison,
    folder: Path,
    args: argparse.Namespace,
) -> list[str]:
    """Write everything to the folder, each file whole or not at all; returns their names."""
    from trellis.files.text import write_text

    folder.mkdir(parents=True, exist_ok=True)
    of_unknown = None
    if fitted is not None and len(data.unknown):
        of_unknown = _of_unknown(data, fitted, graph)
    write_text(folder / "predictions.csv", _predictions(data, tests, of_unknown, args))
    pictures = [] if args.no_figures else _pictures(data, tests, of_unknown, folder, args)
    history = _history(fitted)
    if history and not args.no_figures:
        from trellis.pictures import draw_learning

        draw_learning(history, path=folder / "objective.png", title="GLACER on all rows")
        pictures.append("objective.png")
    text = _report(data, graph, tests, history, pictures, args)
    write_text(folder / "report.md", text)
    return ["report.md", "predictions.csv", *pictures]


def _of_unknown(data: TableData, fitted: TableRegressor, graph: Any) -> tuple[Float64s, ...]:
    """Mean, standard deviation and base of the rows without a target."""
    rows = data.unknown
    if graph is not None:
        y = data.y.copy()
        y[rows] = np.nan  # nobody learns from these
        y = np.exp(y) if data.log else y
        table = replace(data.table, columns={**data.table.columns, data.target: y})
        found = fitted.answer(table, graph=graph).subset(rows)
    else:
        found = fitted.answer(data.table.subset(rows))
    return found.mean, found.std, found.base


def _predictions(
    data: TableData,
    tests: Comparison,
    of_unknown: tuple[Float64s, ...] | None,
    args: argparse.Namespace,
) -> str:
    n, title = len(data.y), tests.title
    cross = tests.random
    std = cross.stds[title]
    assert std is not None  # of the model
    mean, spread, base = cross.means[title].copy(), std.copy(), cross.means["base"].copy()
    if of_unknown is not None:
        for array, values in zip((mean, spread, base), of_unknown, strict=True):
            array[data.unknown] = values
    own = OwnScale.of(mean, spread, NORMAL_90, log=data.log)
    y, base = (np.exp(data.y), np.exp(base)) if data.log else (data.y, base)
    table = data.table
    names = None if args.id is None else table.texts(args.id)
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    head = ["line", *([] if names is None else [args.id]), args.target, "predicted", "std"]
    writer.writerow([*head, "low", "high", "base", "fold"])
    for i in range(n):
        known = not np.isnan(y[i])
        target = f"{y[i]:.12g}" if data.log else repr(float(y[i]))
        fold = int(cross.fold[i]) + 1 if cross.fold[i] >= 0 else ""
        place = [_line_of(table, i), *([] if names is None else [names[i]])]
        numbers = [*_numbers(own, i), f"{base[i]:.8g}"]
        writer.writerow([*place, target if known else "", *numbers, fold])
    return file.getvalue()


def _report(
    data: TableData,
    graph: Any,
    tests: Comparison,
    history: list[Any],
    pictures: list[str],
    args: argparse.Namespace,
) -> str:
    title = tests.title
    parts = [
        f"# {one_line(data.label)}: {title} beside other models",
        "\n".join(f"- {line}" for line in columns_table(data)),
        _neighbours(data, graph, args),
    ]
    if suspects := data.suspects():
        parts.append(
            f"**{', '.join(suspects)} nearly equals the target in other units.** If it is not "
            "known for new rows, everything below is too good; leave it out."
        )
    parts += [
        "## Rows that were not trained on",
        tests.tables(data.y),
        (
            f"Everything is measured on the natural logarithm of {one_line(args.target)}: errors "
            "of 0.1 are about 10 %. predictions.csv has the numbers themselves: what is expected, "
            "and intervals that are longer upwards.\n\n"
            if data.log
            else ""
        )
        + "RMSE is the root of the mean squared error, MAE the mean absolute error, R² the share "
        "of the variance that is explained; «in 90 %» is the share of targets within the 90 % "
        "intervals of the model, in per cent. Seconds are for training and prediction of a fold."
        + _of_blocks(tests),
    ]
    for kind, scores in tests.scores(data.y):
        best = min(scores, key=lambda name: scores[name].rmse.value)
        parts += [f"## {kind.capitalize()}", tests.details(scores), _verdict(tests, scores, best)]
    parts.append(
        "Intervals of measures are 90 % bootstrap intervals over "
        + ("rows" if tests.blocked is None else "cells of the map")
        + "; they leave out what depends on the draw of the training rows."
    )
    parts.append(
        "## Intervals\n\nIntervals in predictions.csv are 1.645 standard deviations of the model "
        + (f"of {one_line(data.label)} " if data.log else "")
        + "to either side; the tables say how many targets they cover."
    )
    if history:
        first, last = history[0], history[-1]
        parts.append(
            f"## Swaps\n\nOn all rows GLACER made {len(history) - 1} swaps; R_obj fell from "
            f"{first.r_obj:.4f} to {last.r_obj:.4f}, R_emp went from {first.r_emp:.4f} to "
            f"{last.r_emp:.4f}, dCorr from {first.dcorr:.4f} to {last.dcorr:.4f}."
        )
    parts += [f"![{name}]({name})\n\n{_CAPTIONS[name]}" for name in pictures]
    return "\n\n".join(parts) + "\n"


_CAPTIONS = {
    "map.png": "Targets, what the base model and the model say of rows they were not trained on, "
    "and residuals: marks that point upwards are targets above their prediction.",
    "calibration.png": "How many targets lie within intervals of all levels; below the diagonal "
    "intervals are too narrow. The grey band is that of a model which keeps its word.",
    "variogram.png": "Half the mean squared difference of residuals by distance. A curve that "
    "rises from the left says that neighbours have something in common that the model left unused.",
    "objective.png": "The objective of GLACER over its swaps.",
}


def _of_blocks(tests: Comparison) -> str:
    if tests.blocked is None:
        return ""
    return (
        "\n\nAt random, a row has its neighbours among those trained on: this is how well gaps are "
        "filled. Blocked, whole cells of the map are left out: this is how well a model does where "
        "nobody has been."
    )


def _verdict(tests: Comparison, scores: dict[str, Any], best: str) -> str:
    title = tests.title
    if best == title:
        others = {name: found.more for name, found in scores.items() if name != title}
        near = [n for n, more in others.items() if more is not None and not more.low > 0]
        if not near:
            return f"{title} has the lowest RMSE, and the interval of every difference is above 0."
        names = ", ".join(map(tests.called, near))
        return f"{title} has the lowest RMSE; not surely lower than that of {names}."
    more = scores[best].more
    surely = "surely" if more.high < 0 else "not surely"
    return (
        f"The lowest RMSE is that of {tests.called(best)}: {abs(more.value):.1f} % below "
        f"{title}'s, {surely} lower."
    )


def _history(fitted: TableRegressor | None) -> list[Any]:
    return [] if fitted is None else list(getattr(fitted.model_.model, "history_", []))


def _pictures(
    data: TableData,
    tests: Comparison,
    of_unknown: tuple[Float64s, ...] | None,
    folder: Path,
    args: argparse.Namespace,
) -> list[str]:
    from trellis.pictures import draw_coverage, draw_residuals, draw_variogram

    made = []
    title, y = tests.title, data.y
    mean, base = (tests.random.means[name].copy() for name in (title, "base"))
    left = {"base": y - base, title: y - mean}
    if of_unknown is not None:
        mean[data.unknown], base[data.unknown] = of_unknown[0], of_unknown[2]
    label = one_line(data.label)
    there = np.setdiff1d(np.arange(len(y)), data.lost)
    if data.points is not None and data.places is not None:
        metric = data.places.metric
        if data.points.shape[1] == 2:
            order = [0, 1]
            if data.places.northward and not data.places.geographic:
                order = [1, 0]  # of metres called latitude, or northing before easting
            first, second = (data.places.columns[k] for k in order)
            draw_residuals(
                data.points[there][:, order], y[there], mean[there], base=base[there], label=label,
                geographic=data.places.geographic, names=(first, second), path=folder / "map.png",
            )  # fmt: skip
            made.append("map.png")
    systems = {}
    for found in (tests.random, tests.blocked):
        std = None if found is None else found.stds[title]
        if found is not None and std is not None:
            name = found.kind.partition(",")[0]
            systems[name] = (y, found.means[title], np.where(std > 0, std, np.nan))
    draw_coverage(systems, path=folder / "calibration.png", title=f"{title}: {label}")
    made.append("calibration.png")
    places = None if data.points is None else data.points[there]
    if places is not None and data.places is not None and np.ptp(places, axis=0).any():
        draw_variogram(
            places, {name: values[there] for name, values in left.items()}, metric=metric,
            path=folder / "variogram.png", title=f"residuals of {label}",
        )  # fmt: skip
        made.append("variogram.png")
    return made


# ------------------------------------------------------------------------------- new rows


def applied_rows(table: Table, found: OwnScale, id: str | None) -> str:
    """Predictions of new rows as CSV."""
    names = None if id is None else table.texts(id)
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["line", *([] if id is None else [id]), "predicted", "std", "low", "high"])
    for i in range(len(table)):
        place = [_line_of(table, i), *([] if names is None else [names[i]])]
        writer.writerow([*place, *_numbers(found, i)])
    return file.getvalue()


def how_good(table: Table, target: str, found: OwnScale) -> str:
    """Errors, where the new table has targets."""
    from trellis.regression.written_cells import plain_cells

    table, _ = plain_cells(table, [target])
    if target not in table.columns or not table.is_numeric(target):
        return ""
    y = table.checked_numbers(target, missing=True)
    known = ~np.isnan(y) & (found.std > 0)
    if not known.any():
        return ""
    within = 100 * float(((found.low <= y) & (y <= found.high))[known].mean())
    rmse = float(np.sqrt(((y - found.mean)[known] ** 2).mean()))
    return (
        f"; of the {int(known.sum())} with a target {within:.1f} % lie in their 90 % intervals, "
        f"RMSE {said(rmse)}"
    )


def _numbers(found: OwnScale, row: int) -> list[str]:
    """Prediction, standard deviation and ends of a row."""
    numbers = (found.mean[row], found.std[row], found.low[row], found.high[row])
    return [f"{value:.8g}" for value in numbers]


def _line_of(table: Table, row: int) -> int:
    return row if table.lines is None else table.lines[row]
