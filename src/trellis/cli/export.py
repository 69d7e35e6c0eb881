"""``trellis export``: a model as one Python file that needs NumPy alone."""

from __future__ import annotations

import argparse
from pathlib import Path

from trellis.cli.named_files import InputFile, OutputFile
from trellis.cli.output import say

NAME = "export"
HELP = "write a model as a Python file that needs NumPy alone"
DESCRIPTION = """\
Write a model of sequences as one Python file that predicts the same labels, without Trellis.

  trellis export chunk.trellis -o predictor.py
  python predictor.py new.txt > tagged.txt         # as 'trellis tag' does
  python -c "from predictor import predict; print(predict([{'word': ['The'], 'pos': ['DT']}]))"

The file holds the model; 'trellis compress' first makes it a small one, which starts at once.
"""
_LARGE = 10_000_000  # bytes from which on a file is slow to start


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("model", type=InputFile, metavar="MODEL", help="model file")
    parser.add_argument(
        "-o", "--output", type=OutputFile, metavar="FILE", required=True, help="file to write"
    )


def run(args: argparse.Namespace) -> int:
    """Write the file."""
    from trellis.cli.model_files import load_labelling_model
    from trellis.files import display_name
    from trellis.models import export_predictor

    model = load_labelling_model(args.model)
    export_predictor(model, args.output)
    size = Path(args.output).stat().st_size
    more = "; 'trellis compress' makes a model small" if size > _LARGE else ""
    say(f"{display_name(args.output)}: {size / 1e6:.2f} MB{more}")
    return 0
