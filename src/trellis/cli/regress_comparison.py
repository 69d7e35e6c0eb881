"""The comparison of ``trellis regress``: who takes part, which folds, and its tables."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trellis.arrays import Float64s
from trellis.cli.output import say
from trellis.errors import DataError

if TYPE_CHECKING:
    from trellis.regression.cross_validation import CrossValidation
    from trellis.regression.fold_scores import FoldScores, Measured
    from trellis.regression.rivals import Rival
    from trellis.regression.table_data import TableData
    from trellis.regression.table_regressor import TableRegressor

__all__ = ["Comparison", "check_names", "comparison", "said"]

_OF_COORDINATES = "kriging"


@dataclass(frozen=True)
class Comparison:
    """The cross-validations of a model, whose name is `title`, and its rivals."""

    title: str
    random: CrossValidation
    blocked: CrossValidation | None

    def scores(self, y: Float64s) -> list[tuple[str, dict[str, FoldScores]]]:
        """Measures, by what was left out."""
        every = [self.random] if self.blocked is None else [self.random, self.blocked]
        return [(found.kind, found.scores(y, self.title)) for found in every]

    def tables(self, y: Float64s) -> str:
        """Markdown: all models in a row each, what was left out side by side."""
        scores = self.scores(y)
        heads = ["model"]
        for kind, _ in scores:
            short = kind.partition(",")[0]
            heads += [f"RMSE, {short}", "MAE", "R²", "in 90 %"]
        heads.append("seconds")
        lines = [_line(heads), "|---|" + "---:|" * (len(heads) - 1)]
        for name in scores[0][1]:
            cells = [self.called(name)]
            for _, of_models in scores:
                found = of_models[name]
                covered = found.coverage
                cells += [
                    said(found.rmse.value), said(found.mae.value), f"{found.r2.value:.3f}",
                    "–" if covered is None else f"{100 * covered.value:.1f}",
                ]  # fmt: skip
            seconds = scores[0][1][name].seconds
            cells.append("–" if np.isnan(seconds) else f"{seconds:.2f}")
            lines.append(_line(cells))
        return "\n".join(lines)

    def details(self, scores: dict[str, FoldScores]) -> str:
        """Markdown: measures with their intervals, and beside the model's."""
        heads = ["model", "RMSE", f"above {self.title}", "MAE", "R²", "in 90 %", "width"]
        lines = [_line(heads), "|---|" + "---:|" * (len(heads) - 1)]
        for name, found in scores.items():
            more = "–" if found.more is None else _with_interval(found.more, "{:+.1f} %")
            covered = found.coverage
            cells = [
                self.called(name), _with_interval(found.rmse), more, _with_interval(found.mae),
                _with_interval(found.r2, "{:.3f}"),
                "–" if covered is None else _with_interval(_percent(covered), "{:.1f} %"),
                "–" if np.isnan(found.width) else said(found.width),
            ]  # fmt: skip
            lines.append(_line(cells))
        return "\n".join(lines)

    def called(self, name: str) -> str:
        """What a model is called in tables."""
        return f"its base alone ({self.title})" if name == "base" else name


def check_names(args: argparse.Namespace) -> None:
    """Refuse models to compare with that nobody knows."""
    from trellis.regression.rivals import rivals

    if args.compare is None or [n.lower() for n in args.compare] in (["all"], ["none"], []):
        return
    known = {name.lower(): name for name in rivals(coordinates=True, all_of=True)}
    for i, name in enumerate(args.compare):
        if name.lower() not in known:
            raise DataError(
                f"--compare: no model is called {name!r}; known: {'; '.join(known.values())}"
            )
        args.compare[i] = known[name.lower()]


def comparison(
    data: TableData, regressor: TableRegressor, graph: Any, args: argparse.Namespace
) -> Comparison:
    """Cross-validate the model and its rivals, at random and by cells of the map."""
    from trellis.regression.cross_validation import cross_validated
    from trellis.regression.folds import blocked_folds, random_folds

    others = _rivals(data, args)
    title = args.model.upper()
    known, n = data.known, len(data.y)
    fold = np.zeros(n, dtype=np.int64)
    fold[known] = random_folds(len(known), args.folds, args.random_state)
    plans = [(f"random, {args.folds} folds", fold)]
    groups = None
    if _has_map(data, args):
        assert data.points is not None
        assert data.places is not None
        blocks, cells = np.zeros(n, dtype=np.int64), np.arange(n)
        blocks[known], cells[known] = blocked_folds(
            data.points[known], args.folds, how=args.blocks, n_cells=args.cells,
            geographic=data.places.geographic, random_state=args.random_state,
        )  # fmt: skip
        groups = cells
        n_cells = len(np.unique(cells[known]))
        plans.append((f"blocked, {n_cells} cells of the map in {args.folds} folds", blocks))
    each = (len(others) + 1) * args.folds
    say(
        f"{title} beside {', '.join(('its base', *others))}: "
        + " and ".join(kind for kind, _ in plans),
        quiet=args.quiet,
    )
    found = []
    with args.reporter.steps("fit", each * len(plans)) as task:
        for i, (kind, folds) in enumerate(plans):
            found.append(
                cross_validated(
                    data,
                    regressor,
                    others,
                    folds,
                    kind=kind,
                    title=title,
                    groups=groups,
                    graph=graph,
                    task=task,
                    done=i * each,
                )
            )
    return Comparison(title, found[0], found[1] if len(found) > 1 else None)


def _has_map(data: TableData, args: argparse.Namespace) -> bool:
    """Whether cells of the map can be left out; says why not, if that is not as asked for."""
    if data.points is None or args.blocks == "none":
        return False
    n_places = len(np.unique(data.points[data.known], axis=0))
    if n_places < args.folds:
        say(f"trellis: no cells of the map are left out: all rows are at {n_places} places")
    return bool(n_places >= args.folds)


def _rivals(data: TableData, args: argparse.Namespace) -> dict[str, Rival]:
    from trellis.regression.rivals import rivals

    coordinates = data.points is not None
    how = {"n_components": args.n_components, "subsample": args.subsample}
    if args.compare is None:
        return rivals(coordinates=coordinates, **how)
    table = rivals(coordinates=coordinates, all_of=True, **how)
    wanted = [name.lower() for name in args.compare]
    if wanted == ["all"]:
        return table
    if wanted in (["none"], []):
        return {}
    if _OF_COORDINATES in args.compare and not coordinates:
        raise DataError("--compare kriging needs --coords: it is about distances")
    return {name: table[name] for name in args.compare}


def said(value: float) -> str:
    """A number in four digits, or whole.

    Examples
    --------
    >>> said(0.123456), said(123456.7)
    ('0.1235', '123,457')
    """
    if np.isnan(value):
        return "–"
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"


def _with_interval(found: Measured, form: str = "") -> str:
    value, low, high = (
        form.format(v) if form else said(v) for v in (found.value, found.low, found.high)
    )
    return f"{value} ({low} to {high})"


def _percent(found: Measured) -> Any:
    from trellis.regression.fold_scores import Measured as Of

    return Of(100 * found.value, 100 * found.low, 100 * found.high)


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"
