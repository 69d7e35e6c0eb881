"""``trellis eval``: compare predictions with gold labels."""

from __future__ import annotations

import argparse
from typing import Any

from trellis.cli.inputs import Input, add_input_arguments, layout_of_model, read_labelled, reading
from trellis.cli.named_files import InputFile
from trellis.cli.output import write_stdout
from trellis.cli.parameters import add_number
from trellis.cli.picture_option import add_picture_argument
from trellis.errors import DataError

NAME = "eval"
HELP = "score a model, or a file of predictions"
DESCRIPTION = """\
Score predictions against gold labels: accuracy, precision, recall and F1 of spans by type (if the
labels follow a tag scheme), and the most frequent confusions.

  trellis eval --model chunk.trellis test.txt    # label test.txt and compare
  trellis eval tagged.txt                        # the last two columns are gold and predicted
  trellis eval tagged.txt --plot confusion.png
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument(
        "file", type=InputFile, metavar="FILE", help="labelled sequences ('-': standard input)"
    )
    parser.add_argument(
        "--model", type=InputFile, metavar="MODEL", help="label the file with this model first"
    )
    parser.add_argument(
        "--scheme",
        choices=("BIO", "BILOU", "IOBES", "BMES", "none"),
        help="tag scheme of the labels (default: told from the labels)",
    )
    add_number(parser, "--confusions", 0, "how many to list", 5)
    add_picture_argument(parser, "which label is taken for which")
    add_input_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Print the scores."""
    gold, predicted = _predictions(args) if args.model else _columns(args)
    text = report(gold, predicted, args.scheme, args.confusions)
    if args.plot is not None:
        from trellis.pictures import draw_confusion

        draw_confusion(gold, predicted, path=args.plot)
    write_stdout(text + "\n")
    return 0


def report(gold: Any, predicted: Any, scheme: str | None, confusions: int) -> str:
    """Scores as text."""
    from trellis.corpus.schemes import detect_scheme
    from trellis.evaluation import confusion, sequence_accuracy, span_scores, token_accuracy

    labels = [y for sample in gold for y in sample]
    if scheme is None and all(isinstance(y, str) for y in labels):  # spans need all labels
        scheme = detect_scheme(sorted(set(labels)))
    lines = [
        f"positions  {len(labels)}, in {len(gold)} sequences",
        f"accuracy   {100 * token_accuracy(gold, predicted):.2f} % of positions, "
        f"{100 * sequence_accuracy(gold, predicted):.2f} % of sequences",
    ]
    if scheme is not None and scheme != "none":
        lines += ["", f"spans ({scheme})", str(span_scores(gold, predicted, scheme))]
    most = confusion(gold, predicted).most_confused(confusions) if confusions else []
    if most:
        lines += ["", "most confused (gold → predicted)"]
        lines += [f"  {count:6d}  {a} → {b}" for a, b, count in most]
    return "\n".join(lines)


def _predictions(args: argparse.Namespace) -> tuple[Any, Any]:
    from trellis.cli.model_files import load_labelling_model

    model = load_labelling_model(args.model)
    with reading(args, args.file) as stage:
        source = Input(args.file)
        corpus = read_labelled(source, layout_of_model(model, args, source, args.model))
        stage.now(f"labelling {len(corpus):,} sequences")
        return corpus.label_lists(), model.predict(corpus)


def _columns(args: argparse.Namespace) -> tuple[Any, Any]:
    from trellis.corpus.columnfile import code_column, read_fields
    from trellis.corpus.corpus import split

    if args.format not in (None, "conll"):
        raise DataError(f"without --model, only conll files can be scored, not {args.format}")
    if args.columns or args.label:
        raise DataError("--columns and --label need --model; without, the last two columns count")
    source = Input(args.file)
    table = read_fields(source, tabs_only=args.tabs, skip=args.skip or "")
    if not len(table.line_number):
        raise DataError(f"{source.name} is empty: there is no sequence in it")
    width = int(table.line_ptr[1])
    if width < 2:
        raise DataError(
            f"{source.name} has one column; expected gold and predicted labels as the last two "
            "(or name a --model to predict them)"
        )
    fields = table.rectangle(width, "as many as on the first line")
    gold, predicted = (code_column(table, fields[:, j]).strings() for j in (-2, -1))
    return split(gold, table.sample_ptr), split(predicted, table.sample_ptr)
