"""``trellis regress``: predict a number for each row of a table, also by its neighbours."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trellis.cli.inputs import reading
from trellis.cli.named_files import InputFile, OutputFile, OutputFolder
from trellis.cli.output import say, write_stdout
from trellis.cli.parameters import add_number, add_parameters, new_model
from trellis.errors import DataError
from trellis.pictures.style import has_matplotlib

if TYPE_CHECKING:
    from trellis.files.table import Table
    from trellis.regression import TableRegressor
    from trellis.regression.table_data import TableData

NAME = "regress"
HELP = "predict a number for each row of a table, from it and from its neighbours"
DESCRIPTION = """\
Predict a column of a CSV file from other columns and from the nearest rows, or from neighbouring
areas, with a Gaussian CRF over any regressor, beside the usual models.

  trellis regress houses.csv --target price --coords lon,lat --report out
  trellis regress houses.csv --target price --base hgb --save prices.trellis
  trellis regress --load prices.trellis new.csv -o predicted.csv
  trellis regress counties.csv --target income --id fips --areas counties.geojson

Columns may hold numbers, words, dates and gaps (empty cells, NA, NaN, null, none and ?). What was
made of each is said; numbers of rows, texts that never repeat and what is always the same are left
out. A row without target is predicted, not trained on.

Every model predicts rows that it was not trained on: at random, and, where rows have coordinates,
whole cells of the map at a time. DIR gets report.md with the tables; predictions.csv; map.png with
targets, predictions of base and model and residuals; calibration.png; and variogram.png of the
residuals of base and model (pictures need matplotlib; without it there are none).
"""

_OF_GLACER = ("n_components", "subsample", "n_jobs")
_OF_TABLE = ("n_neighbors", "metric", "max_levels", "random_state", "log")


class _Report(OutputFolder):
    names = (
        "predictions.csv", "report.md", "applied.csv", "map.png", "calibration.png",
        "variogram.png", "objective.png",
    )  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    from trellis.regression import GLACER, TableRegressor

    add = parser.add_argument
    add("file", type=InputFile, metavar="FILE", help="CSV file with a header; - for standard input")
    add("--target", metavar="COLUMN", help="what to predict")
    table = parser.add_argument_group("table")
    add = table.add_argument
    add(
        "--features", type=_names, metavar="COLUMN,...",
        help="what to predict from (default: all columns that say something)",
    )  # fmt: skip
    add("--drop", type=_names, metavar="COLUMN,...", help="what not to predict from")
    add(
        "--categories", type=_names, metavar="COLUMN,...",
        help="columns whose numbers are names, such as districts",
    )  # fmt: skip
    add_parameters(table, [TableRegressor], ["max_levels"])
    add("--id", metavar="COLUMN", help="names of the rows, for --edges, --areas and results")
    add(
        "--sep", metavar="SIGN",
        help="what cells stand between: a sign, or tab (default: what the header looks like)",
    )  # fmt: skip
    add(
        "--decimal", choices=(".", ","), metavar="SIGN",
        help="mark of decimals, . or , (default: what the cells look like)",
    )  # fmt: skip
    add(
        "--encoding", metavar="NAME",
        help="that of the file, such as cp1252, Excel's in Europe, or utf-16 (default: utf-8)",
    )  # fmt: skip
    graph = parser.add_argument_group("neighbours")
    add = graph.add_argument
    add(
        "--coords", type=_names, metavar="COLUMN,...",
        help="where rows are; latitude and longitude are known by their names, in either order "
        "(default: these, if the table has them)",
    )  # fmt: skip
    usual = "haversine for latitude and longitude, else euclidean"
    add_parameters(
        graph,
        [TableRegressor],
        ["n_neighbors", "metric"],
        defaults={"metric": usual, "n_neighbors": "as the model has it"},
    )
    add(
        "--edges", type=InputFile, metavar="FILE",
        help="instead of nearest rows: a CSV file of which the first two columns are ids of rows "
        "that are joined, a third their similarity",
    )  # fmt: skip
    add(
        "--areas", type=InputFile, metavar="FILE",
        help="instead of nearest rows: GeoJSON of polygons; those that touch are joined",
    )  # fmt: skip
    add(
        "--rule", choices=("queen", "rook"), default="queen",
        help="whether areas touch in a point or along a border (default: queen, a point)",
    )  # fmt: skip
    models = parser.add_argument_group("model")
    add_parameters(models, [TableRegressor], ["log"])
    add = models.add_argument
    add(
        "--model", choices=("gcrf", "glacer"), default="gcrf",
        help="gcrf, a Gaussian CRF, or glacer, an ensemble of them (default: gcrf)",
    )  # fmt: skip
    add(
        "--base", metavar="NAME",
        help="the model that the graph corrects: hgb, ridge, forest, extra-trees, linear, "
        "boosting, mlp, knn, ... or any regressor of scikit-learn (default: of gcrf several, "
        "weighted; of glacer boosted trees)",
    )  # fmt: skip
    add_parameters(models, [GLACER], _OF_GLACER, defaults={"n_jobs": "one a processor"})
    add_parameters(models, [TableRegressor], ["random_state"], defaults={"random_state": "0"})
    tests = parser.add_argument_group("cross-validation")
    add = tests.add_argument
    add_number(tests, "--folds", 2, "of the cross-validation", 5)
    add(
        "--blocks", choices=("kmeans", "grid", "none"), default="kmeans",
        help="cells of the map that are left out as a whole: regions, squares, or none of this "
        "(default: kmeans, regions)",
    )  # fmt: skip
    add_number(tests, "--cells", 2, "cells of the map (default: 10 for each fold)")
    add(
        "--compare", type=_names, metavar="NAME,...",
        help="models to compare with, e.g. HGB,kriging,S-RF; all, none "
        "(default: HGB, forest, kriging, neighbours, mean)",
    )  # fmt: skip
    add("--no-test", action="store_true", help="no cross-validation and no report")
    results = parser.add_argument_group("results")
    add = results.add_argument
    add(
        "--report", type=_Report, default=None, metavar="DIR",
        help="folder for the results (default: regression)",
    )  # fmt: skip
    add("--no-figures", action="store_true", help="do not draw figures")
    add("--save", type=OutputFile, metavar="MODEL", help="keep what was learned, for --load")
    add(
        "--load", type=InputFile, metavar="MODEL",
        help="use what was learned before: FILE is a table to predict",
    )  # fmt: skip
    add("--apply", type=InputFile, metavar="NEW", help="a table of new rows to predict")
    add(
        "-o", "--output", type=OutputFile, metavar="OUT",
        help="where predictions of new rows go (default: DIR/applied.csv; standard output with "
        "--load)",
    )  # fmt: skip
    add("--quiet", action="store_true", help="no progress on standard error")


def run(args: argparse.Namespace) -> int:
    """Read, cross-validate, learn, write."""
    if args.load is not None:
        return _apply_loaded(args)
    _check(args)
    regressor = _regressor(args)
    table = _read(args, args.file)
    data, graph = _data(table, regressor, args)
    if not args.quiet:
        _say_what_was_made_of(data, args)
    from trellis.cli.regress_comparison import comparison

    tests = None if args.no_test else comparison(data, regressor, graph, args)
    fitted = None
    wanted = args.save is not None or args.apply is not None or len(data.unknown) > 0
    if wanted or args.model == "glacer":  # whose swaps are reported
        with args.reporter.stage(f"{args.model.upper()} on all rows"):
            fitted = regressor.fit_data(data, graph=graph)
    if tests is not None:
        from trellis.cli.regress_report import write_report

        with args.reporter.stage("writing the report"):
            names = write_report(data, fitted, graph, tests, Path(args.report), args)
        write_stdout(tests.tables(data.y) + "\n")
        say(f"{', '.join(names)} are in {args.report}", quiet=args.quiet)
    if fitted is not None and args.save is not None:
        fitted.save(args.save)
        say(f"what was learned is in {args.save}", quiet=args.quiet)
    if fitted is not None and args.apply is not None:
        _apply(fitted, args.apply, args.output or str(Path(args.report) / "applied.csv"), args)
    return 0


# ------------------------------------------------------------------------------- reading


def _check(args: argparse.Namespace) -> None:
    """Check the options, and fill in what was not given."""
    from trellis.cli.regress_comparison import check_names
    from trellis.regression import GLACER

    if args.target is None:
        raise DataError("--target is missing: name the column to predict")
    if args.edges is not None and args.areas is not None:
        raise DataError("--edges and --areas are two ways to say who neighbours are; give one")
    if (args.edges or args.areas) and args.id is None:
        which = "--edges" if args.edges else "--areas"
        raise DataError(f"{which} needs --id: the column whose names it uses for the rows")
    if args.coords is not None and not args.coords:
        raise DataError("--coords names no column")
    if args.cells is not None and args.cells < args.folds:
        raise DataError(
            f"--cells must be at least {args.folds}, the number of folds, got {args.cells}"
        )
    if args.output is not None and args.apply is None:
        raise DataError("-o is where predictions of new rows go: name them with --apply")
    if args.no_test and args.save is None and args.apply is None:
        raise DataError("--no-test leaves nothing to do: give --save or --apply, too")
    own = argparse.Namespace(
        **{name: getattr(args, name) for name in (*_OF_GLACER, "random_state")}
    )
    glacer = new_model(own, GLACER, random_state=0, n_jobs=-1)
    for name in (*_OF_GLACER, "random_state"):
        setattr(args, name, getattr(glacer, name))
    check_names(args)
    folder = "regression" if args.report is None else args.report
    args.report = _Report(folder)
    if not args.no_figures and not args.no_test and not has_matplotlib():
        args.no_figures = True
        say("trellis: no figures, which need matplotlib: install it, or trellis-structured[plot]")


def _regressor(args: argparse.Namespace) -> TableRegressor:
    """The regression that the options ask for, its base among those that are known."""
    from trellis.regression import GLACER, TableRegressor
    from trellis.regression.base_names import named_base

    if args.base is not None:
        base = named_base(args.base, args.random_state)
        if args.save is not None:
            _check_savable(base, args)
    more: dict[str, Any] = {"target": args.target, "random_state": 0, "model": args.model}
    if args.model == "glacer":
        given = {name: getattr(args, name) for name in _OF_GLACER}
        more["model"] = GLACER(random_state=args.random_state, **given)
    named = {name: getattr(args, name) for name in ("features", "drop", "categories", "coords")}
    kept = argparse.Namespace(**{name: getattr(args, name) for name in _OF_TABLE})
    return new_model(kept, TableRegressor, **more, **named, base=args.base)


def _check_savable(base: Any, args: argparse.Namespace) -> None:
    """Refuse a base that no model file can hold, before the work."""
    from trellis.files.sklearn_state import CLASSES

    known = {name for names in CLASSES.values() for name in names}
    parts = [base, *base.get_params().values()]
    for part in parts:
        name = type(part).__name__
        if hasattr(part, "get_params") and name not in known:
            raise DataError(
                f"--save: a model file cannot hold a {name}, so not --base {args.base}; leave one "
                "of the two out"
            )


def _read(args: argparse.Namespace, file: str) -> Table:
    from trellis.files.table import read_table
    from trellis.files.text import NOT_UTF8, recoded

    sign = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";"}.get(args.sep, args.sep)
    with reading(args, file):
        source = file if args.encoding is None else recoded(file, args.encoding)
        try:
            return read_table(source, separator=sign, decimal=args.decimal)
        except DataError as error:
            if str(error).endswith(NOT_UTF8):
                raise DataError(f"{error}, or name its encoding: --encoding cp1252") from None
            raise


def _data(table: Table, regressor: TableRegressor, args: argparse.Namespace) -> Any:
    """The table as numbers, and the graph of its rows if it is not one of nearest rows."""
    from dataclasses import replace

    import numpy as np

    if args.id is not None:
        table.require([args.id])
        if args.id == args.target:
            raise DataError(f"the target {args.target!r} cannot be the id of the rows, too")
        if args.id not in (*(args.features or ()), *(args.categories or ())):
            regressor.set_params(drop=[*(regressor.drop or ()), args.id])
    with args.reporter.stage("looking at columns"):
        data = regressor.read(table)
    if not args.no_test:
        least = max(10, 2 * args.folds)
        data.check_targets(least, f"for {args.folds} folds")
    if args.edges is None and args.areas is None:
        if data.places is None:
            raise DataError(_without_places(data.table))
        return data, None
    with reading(args, args.edges or args.areas):
        graph, centres = _graph(table, args)
    data = data.on_graph()
    if centres is not None and data.places is None:
        from trellis.regression.places import Places

        drawn = centres[~np.isnan(centres[:, 0])]
        earth = bool((abs(drawn[:, 0]) <= 90).all() and (abs(drawn[:, 1]) <= 180).all())
        names = ("latitude", "longitude") if earth else ("x", "y")
        if not earth:
            centres = centres[:, ::-1]
        places = Places(names, "haversine" if earth else "euclidean")
        data = replace(data, places=places, points=centres)
    return data, graph


def _without_places(table: Table) -> str:
    """Say that nobody knows where rows are, and what to do."""
    from trellis.regression.places import Places

    for name, row in Places.odd(table):
        return (
            f"{table.place(row)}, column {name!r}: {table.texts(name)[row]!r} is not a number: "
            "coordinates are to be numbers, such as -122.25"
        )
    if several := Places.named(table):
        return (
            f"{table.name} has not one latitude and one longitude, but {', '.join(several)}: name "
            "two of them with --coords"
        )
    named = ",".join(Places.likely(table))
    return (
        f"{table.name} has no columns called latitude and longitude: name those that say where "
        f"rows are with --coords{f' ({named}?)' if named else ''}, or their neighbours with "
        "--edges or --areas"
    )


def _graph(table: Table, args: argparse.Namespace) -> tuple[Any, Any]:
    """Similarities of the rows, and the middles of areas (latitude first; NaN where none is)."""
    import numpy as np
    from scipy.sparse import csr_array

    from trellis.files.table import read_table
    from trellis.regression.areas import areas_graph, edges_graph, read_areas

    ids = table.texts(args.id)
    if args.edges is not None:
        edges = read_table(args.edges, separator=None, decimal=None)  # --sep is the table's
        return edges_graph(edges, ids), None
    areas = read_areas(args.areas, args.id, ids=ids)
    there = np.flatnonzero(areas.has(ids))
    if 2 * len(there) < len(ids):  # which is no accident
        there = np.arange(len(ids))
    drawn = [ids[i] for i in there]
    graph = areas_graph(areas, drawn, rule=args.rule)
    centres = np.full((len(ids), 2), np.nan)
    centres[there] = areas.subset(drawn).centres()[:, ::-1]
    if len(drawn) < len(ids):
        place = csr_array((np.ones(len(there)), (there, np.arange(len(there)))),
                          shape=(len(ids), len(there)))  # fmt: skip
        graph = (place @ graph @ place.T).tocsr()
    return graph, centres


def _say_what_was_made_of(data: TableData, args: argparse.Namespace) -> None:
    from trellis.cli.regress_report import columns_table
    from trellis.regression.log_scale import looks_logarithmic

    for line in columns_table(data):
        say(line)
    asked, places, points = args.metric is not None, data.places, data.points
    if places and points is not None and not asked and places.may_be_degrees(points):
        which = ",".join(places.columns)
        say(f"trellis: if {which} are degrees, --metric haversine measures in kilometres")
    if data.log:
        say(f"what is learnt and measured is {data.label}: errors of 0.1 are about 10 %")
    elif looks_logarithmic(data.y[data.known]):
        say(f"trellis: {args.target} is skewed, with few large values: --log learns its logarithm")
    for column in data.suspects():
        say(
            f"trellis: {column} is nearly the same as {args.target} in other units; if it is not "
            f"known for new rows, --drop {column}"
        )
    if places and points is not None and (many := places.nowhere(points)):
        say(
            f"trellis: {many} rows are at latitude 0 and longitude 0; if nobody knows where they "
            "are, empty these cells"
        )


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


# ------------------------------------------------------------------------------- new rows


def _apply_loaded(args: argparse.Namespace) -> int:
    from trellis.files import load_model
    from trellis.regression import TableRegressor

    for option in (
        "target", "features", "drop", "categories", "coords", "metric", "n_neighbors", "max_levels",
        "base", "n_components", "subsample", "random_state", "compare", "save", "apply", "report",
        "log",
    ):  # fmt: skip
        if getattr(args, option) is not None:
            said = {"n_neighbors": "knn", "n_components": "components", "random_state": "seed",
                    "max_levels": "max-levels"}.get(option, option)  # fmt: skip
            raise DataError(f"--load takes what was learned before; --{said} has no place")
    model = load_model(args.load)
    if not isinstance(model, TableRegressor):
        raise DataError(
            f"{args.load} holds a {type(model).__name__}, no regression of a table, as 'trellis "
            "regress --save' makes them"
        )
    _apply(model, args.file, args.output, args)
    return 0


def _apply(model: TableRegressor, file: str, output: str | None, args: argparse.Namespace) -> None:
    """Predict the rows of a new table, and write them."""
    import numpy as np

    from trellis.cli.regress_report import applied_rows, how_good
    from trellis.files.text import write_text
    from trellis.regression.fold_scores import NORMAL_90
    from trellis.regression.log_scale import OwnScale

    table = _read(args, file)
    graph = None
    if model.places_ is None:
        if args.edges is None and args.areas is None:
            raise DataError(
                "the model was trained with a graph of its rows: give --edges or --areas, and --id"
            )
        table.require([args.id] if args.id else [])
        if args.id is None:
            raise DataError("--edges and --areas need --id: the column of the ids of the rows")
        with reading(args, args.edges or args.areas):
            graph, centres = _graph(table, args)
        if centres is not None and (lost := int(np.isnan(centres[:, 0]).sum())):
            say(f"trellis: {lost} rows have no area and get what the base says")
    elif args.id is not None:
        table.require([args.id])
    with args.reporter.stage("predicting"):
        found = model.answer(table, graph=graph)
    own = OwnScale.of(found.mean, found.std, NORMAL_90, log=model.log_)
    for column, many, value in model.rows_.unseen(table):
        say(f"trellis: {many} cells of {column} hold what training never saw, such as {value!r}")
    text = applied_rows(table, own, args.id)
    if output is None:
        write_stdout(text)
        return
    Path(output).parent.mkdir(parents=True, exist_ok=True)
    write_text(output, text)
    good = how_good(table, model.target, own)
    say(f"{len(table)} rows are predicted in {output}{good}", quiet=args.quiet)
