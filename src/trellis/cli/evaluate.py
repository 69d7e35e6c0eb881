"""``trellis eval``: compare predictions with gold labels."""

from __future__ import annotations

import argparse
from typing import Any

from trellis.cli.inputs import Input, add_input_arguments, read_samples
from trellis.cli.tag import layout_of
from trellis.errors import DataError

NAME = "eval"
HELP = "score a model, or a file of predictions"
DESCRIPTION = """\
Score predictions against gold labels: accuracy, precision, recall and F1 of spans by type, and the
most frequent confusions.

  trellis eval --model chunk.trellis test.txt    # label test.txt and compare
  trellis eval tagged.txt                        # the last two columns are gold and predicted
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("file", help="labelled sequences ('-' for standard input)")
    parser.add_argument("--model", help="label the file with this model first")
    parser.add_argument(
        "--scheme",
        choices=("BIO", "BILOU", "BMES", "none"),
        help="tag scheme of the labels (default: found by itself)",
    )
    parser.add_argument("--confusions", type=int, default=5, metavar="K", help="how many to list")
    add_input_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Print the scores."""
    gold, predicted = _predictions(args) if args.model else _columns(args)
    print(report(gold, predicted, args.scheme, args.confusions))
    return 0


def report(gold: Any, predicted: Any, scheme: str | None, confusions: int) -> str:
    """Scores as text."""
    from trellis.corpus.schemes import detect_scheme
    from trellis.evaluation import confusion, sequence_accuracy, span_scores, token_accuracy

    if scheme is None:
        scheme = detect_scheme(sorted({y for sample in gold for y in sample if isinstance(y, str)}))
    lines = [
        f"positions  {sum(len(sample) for sample in gold)}, in {len(gold)} sequences",
        f"accuracy   {100 * token_accuracy(gold, predicted):.2f} % of positions, "
        f"{100 * sequence_accuracy(gold, predicted):.2f} % of sequences",
    ]
    if scheme is not None and scheme != "none":
        lines += ["", f"spans ({scheme})", str(span_scores(gold, predicted, scheme))]
    most = confusion(gold, predicted).most_confused(confusions)
    if most:
        lines += ["", "most confused (gold → predicted)"]
        lines += [f"  {count:6d}  {a} → {b}" for a, b, count in most]
    return "\n".join(lines)


def _predictions(args: argparse.Namespace) -> tuple[Any, Any]:
    from trellis.models import load_model

    model = load_model(args.model)
    source = Input(args.file)
    corpus = read_samples(source, layout_of(model, args, source))
    if corpus.labels is None:
        raise DataError(f"{args.file} has no labels to compare with")
    return corpus.label_lists(), model.predict(corpus)


def _columns(args: argparse.Namespace) -> tuple[Any, Any]:
    from trellis.corpus.columnfile import code_column, read_fields
    from trellis.corpus.corpus import split

    if args.format not in (None, "conll"):
        raise DataError(f"without --model, {args.file} must be a column file")
    table = read_fields(args.file, tabs_only=args.tabs, skip=args.skip)
    if not len(table.line_number):
        raise DataError(f"{args.file} is empty")
    width = int(table.line_ptr[1])
    if width < 2:
        raise DataError(f"{args.file} has one column; expected gold and predicted labels last")
    fields = table.rectangle(width, "as many as on the first line")
    gold, predicted = (code_column(table, fields[:, j]).strings() for j in (-2, -1))
    return split(gold, table.sample_ptr), split(predicted, table.sample_ptr)
