"""``trellis compress``: a small file of a model, and what it costs."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trellis.cli.inputs import Input, add_input_arguments, layout_of_model, read_labelled, reading
from trellis.cli.named_files import InputFile, OutputFile
from trellis.cli.output import say, write_stdout
from trellis.errors import DataError

if TYPE_CHECKING:
    from trellis.corpus import Corpus

NAME = "compress"
HELP = "make a model file small, or show what that costs"
DESCRIPTION = """\
Forget the features of a model that have little say, and round its weights.

  trellis compress chunk.trellis --data dev.txt               # sizes, speeds and scores
  trellis compress chunk.trellis -o small.trellis             # a fifth of the features, float16
  trellis compress chunk.trellis -o small.trellis --keep 0.05

Judge it on data that the model was not trained on, and that are not your test data.
"""
_SHARES = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("model", type=InputFile, metavar="MODEL", help="model file")
    parser.add_argument("-o", "--output", type=OutputFile, metavar="FILE", help="file to write")
    parser.add_argument(
        "--data",
        type=InputFile,
        metavar="FILE",
        help="labelled sequences to try models on: what is asked for, or else several shares",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--keep",
        type=float,
        metavar="SHARE",
        help="share of the features to keep, those with the largest weights (default: 0.2)",
    )
    which.add_argument(
        "--threshold",
        type=float,
        metavar="SIZE",
        help="keep the features with a weight of at least this size instead",
    )
    parser.add_argument(
        "--precision",
        choices=("float16", "float32"),
        default="float16",
        help="what weights are rounded to (default: float16)",
    )
    add_input_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Write the small model, print the table, or both."""
    from trellis.cli.model_files import load_labelling_model
    from trellis.files import display_name

    if not args.output and not args.data:
        raise DataError("name the file to write with -o, or data to try models on with --data")
    model = load_labelling_model(args.model)
    asked = {"keep": args.keep, "threshold": args.threshold}
    asked = {name: value for name, value in asked.items() if value is not None}
    if args.data:
        with reading(args, args.data):
            source = Input(args.data)
            corpus = read_labelled(source, layout_of_model(model, args, source, args.model))
        write_stdout(_table(model, corpus, asked, args))
    if args.output:
        small = model.compressed(**asked, precision=args.precision)
        small.save(args.output)
        before, after = (Path(name).stat().st_size for name in (args.model, args.output))
        say(
            f"{display_name(args.output)}: {small.n_features_:,} of {model.n_features_:,} features,"
            f" {_bytes(after)} of {_bytes(before)}"
        )
    return 0


def _table(model: Any, corpus: Corpus, asked: dict[str, float], args: argparse.Namespace) -> str:
    """A line for each model: how large, fast and good it is."""
    from trellis.evaluation import token_accuracy
    from trellis.evaluation.held_out import held_out_score

    gold, scheme = corpus.label_lists(), model.scoring_scheme(corpus)
    lines = [f"{'':18s}{'features':>10s}{'size':>10s}{'tokens/s':>11s}{'accuracy':>10s}"]
    lines[0] += f"{'F1':>8s}" if scheme else ""
    model.predict(corpus.take([0]))  # reads kernels from the cache, or compiles them
    trials = [asked] if asked else [{"keep": share} for share in _SHARES]
    with args.reporter.steps("model", 1 + len(trials)) as models:
        for number, trial in enumerate((None, *trials)):
            name = "as it is" if trial is None else " ".join(f"{k} {v:g}" for k, v in trial.items())
            models.at(number, name)
            small = model if trial is None else model.compressed(**trial, precision=args.precision)
            begin = time.perf_counter()
            predicted = small.predict(corpus)
            speed = corpus.n_positions / (time.perf_counter() - begin)
            size = _bytes(_file_size(small))
            line = f"{name:18s}{small.n_features_:10,d}{size:>10s}{speed:11.0f}"
            line += f"{100 * token_accuracy(gold, predicted):10.2f}"
            if scheme:
                line += f"{100 * held_out_score(gold, predicted, scheme):8.2f}"
            lines.append(line)
    return "\n".join(lines) + "\n"


def _file_size(model: Any) -> int:
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        return (Path(folder) / "model").stat().st_size


def _bytes(n: int) -> str:
    """A number of bytes for people."""
    return f"{n / 1e6:.2f} MB" if n >= 1e6 else f"{n / 1e3:.1f} kB"
