"""``trellis tune``: choose the penalty and the piece size by held-out data."""

from __future__ import annotations

import argparse
import warnings
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from trellis.cli.inputs import Input, add_input_arguments, layout_for, read_labelled, reading
from trellis.cli.marks import with_marks
from trellis.cli.named_files import InputFile, OutputFile
from trellis.cli.options import add_feature_arguments, add_model_arguments
from trellis.cli.output import say, write_stdout
from trellis.cli.parameters import add_number, errors_of_options
from trellis.cli.train import new_model, summary
from trellis.errors import DataError

NAME = "tune"
HELP = "choose parameters by development data or cross-validation"
DESCRIPTION = """\
Try penalties and piece sizes, print what each scores (span F1 if the labels follow a tag scheme,
else accuracy), and write the model trained on all of FILE with the best of them to MODEL.

  trellis tune train.txt --columns word,pos,chunk --features chunking -o chunk.trellis
  trellis tune train.txt --dev dev.txt --l2 0.5,1,2 --piece-size 5.5,10.5,whole
  trellis tune train.txt --search coordinate --jobs 4 --log tune.jsonl -o model.trellis

With --log each finished fit is kept: the same command goes on where it was interrupted.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument(
        "file", type=InputFile, metavar="FILE", help="labelled sequences ('-': standard input)"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=OutputFile,
        metavar="MODEL",
        help="file to write the best model to (default: none)",
    )
    parser.add_argument(
        "--quiet", action="store_true", help="print the table, warnings and errors only"
    )
    add_input_arguments(parser)
    add_feature_arguments(parser)
    group = parser.add_argument_group("tuning")
    group.add_argument(
        "--l2",
        dest="l2_values",
        type=_numbers,
        metavar="X,...",
        help="penalties to try, unless the model has none (default: 0.1,0.5,1,2,5)",
    )
    group.add_argument(
        "--piece-size",
        dest="piece_sizes",
        type=partial(_numbers, whole=None),
        metavar="N,...",
        help="mean sizes of pieces to try, or 'whole' sequences (default: "
        "whole,20.5,15.5,10.5,5.5,3.5,2.5,1.5)",
    )
    group.add_argument(
        "--search",
        choices=("grid", "coordinate"),
        default="grid",
        help="all combinations (default), or penalties on whole sequences first and then piece "
        "sizes with the best penalty",
    )
    scored = group.add_mutually_exclusive_group()
    scored.add_argument("--dev", type=InputFile, metavar="FILE", help="score on this data")
    add_number(scored, "--folds", 2, "else cross-validate in K folds", 4)
    group.add_argument(
        "--jobs",
        type=int,
        default=1,
        metavar="K",
        help="fits at once; -1: one a processor (default: 1)",
    )
    group.add_argument(
        "--log",
        type=OutputFile,
        metavar="FILE",
        help="keep finished fits here, and go on from them",
    )
    add_model_arguments(parser, without=("l2", "piece_size", "n_jobs", "lock_free", "patience"))


def run(args: argparse.Namespace) -> int:
    """Try everything, print the table, write the best model."""
    from trellis.tuning import default_grid, tune

    if args.jobs == 0:
        raise DataError("--jobs must not be 0; -1 makes one fit on each processor")
    with reading(args, args.file):
        source = Input(args.file)
        layout = layout_for(args, source)
        corpus = read_labelled(source, layout)
        dev = read_labelled(Input(args.dev), layout) if args.dev else None
    model = new_model(args, corpus, source.name)
    corpus, dev = with_marks(model, corpus, dev)
    grid = default_grid(model)
    if args.l2_values is not None:
        if "l2" not in grid:
            raise DataError(f"--l2 is not for {type(model).__name__}")
        grid["l2"] = args.l2_values
    if args.piece_sizes is not None:
        grid["piece_size"] = args.piece_sizes
    try:
        with warnings.catch_warnings(), deaf_workers(), errors_of_options(type(model)):
            # How many fits it gives up when interrupted is of no interest.
            warnings.filterwarnings("ignore", category=UserWarning, module="joblib")
            result = tune(
                model,
                corpus,
                grid=grid,
                search=args.search,
                dev=dev,
                folds=args.folds,
                n_jobs=args.jobs,
                random_state=model.random_state or 0,
                log=args.log,
                verbose=args.reporter.shown,
            )
    except KeyboardInterrupt:
        advice = (
            "with --log FILE the fits made so far would have been kept"
            if args.log is None
            else f"the fits made so far are in {args.log}; the same command goes on from them"
        )
        say(f"trellis: interrupted; {advice}")
        return 130
    write_stdout(f"{result}\n")
    if args.output is not None:
        with args.reporter.stage("training the best model on all data"):
            best = result.best_model()
        best.input_format_ = layout
        best.save(args.output)
        say(summary(best, args.output), quiet=args.quiet)
    return 0


def deaf_workers() -> AbstractContextManager[Any]:
    """Let worker processes ignore Ctrl-C: they are ended by this process, without tracebacks."""
    import signal

    from joblib import parallel_config

    ignore = (signal.SIGINT, signal.SIG_IGN)
    settings: AbstractContextManager[Any] = parallel_config(
        "loky", initializer=signal.signal, initargs=ignore
    )
    return settings


def _numbers(text: str, **words: Any) -> list[Any]:
    """Distinct numbers, or words that stand for something, between commas."""
    values: list[Any] = []
    for part in map(str.strip, text.split(",")):
        try:
            value = words[part] if part in words else float(part)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{part!r} is not a number") from None
        if value in values:
            shown = part if part in words else f"{value:g}"
            raise argparse.ArgumentTypeError(f"{shown} is named twice")
        values.append(value)
    return values
