"""``trellis prepare``: encode a training file once, for training larger than memory."""

from __future__ import annotations

import argparse
from pathlib import Path

from trellis.cli.beside import add_text_arguments, beside
from trellis.cli.inputs import Input, add_input_arguments, layout_for, read_labelled, reading
from trellis.cli.named_files import InputFile, OutputFile
from trellis.cli.options import add_feature_arguments, families
from trellis.cli.output import say
from trellis.cli.parameters import add_parameters
from trellis.cli.train import features_for

NAME = "prepare"
HELP = "encode a training file once, for data larger than memory"
DESCRIPTION = """\
Encode a file of labelled sequences by its features and write them to PREPARED. 'trellis train'
takes PREPARED in place of FILE and gives the same model; the features, which take far more room
than the text, stay on the disk, and training starts at once. Edges of files that have them
(--format conllu or graphs) are written, too, for 'trellis train --structure tree' or 'graph'.

  trellis prepare train.txt --columns word,pos,chunk --features chunking -o train.prepared
  trellis train train.prepared -o chunk.trellis
  trellis prepare train.conllu --format conllu --structure tree -o trees.prepared
  trellis train trees.prepared --structure tree -o tree.trellis
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument(
        "file", type=InputFile, metavar="FILE", help="labelled sequences ('-': standard input)"
    )
    parser.add_argument(
        "-o", "--output", type=OutputFile, required=True, metavar="PREPARED", help="file to write"
    )
    parser.add_argument("--quiet", action="store_true", help="print warnings and errors only")
    add_input_arguments(parser)
    add_feature_arguments(parser)
    add_text_arguments(parser)
    add_parameters(parser, families(), ["max_labels"])
    parser.add_argument(
        "--structure",
        choices=("chain", "tree", "graph"),
        default="chain",
        help="what is to be trained; trees have other features where none are named",
    )


def run(args: argparse.Namespace) -> int:
    """Encode and write."""
    from trellis.features import prepare

    with reading(args, args.file):
        source = Input(args.file)
        layout = layout_for(args, source)
        corpus = read_labelled(source, layout)
    features = features_for(args, corpus, source.name)
    with args.reporter.stage(f"encoding {len(corpus):,} samples"):
        made = prepare(
            corpus,
            args.output,
            features,
            input_format=layout,
            max_labels=args.max_labels,
            structure=args.structure,
            **beside(args, layout),
        )
    size = Path(args.output).stat().st_size
    edges = "" if corpus.edges is None else f"{len(corpus.edges)} edges, "
    say(
        f"{args.output}: {len(made)} sequences, {made.n_positions} positions, {edges}"
        f"{len(made.labels.classes)} labels, {made.encoder.n_features} features, "
        f"{size / 1e6:.1f} MB",
        quiet=args.quiet,
    )
    return 0
