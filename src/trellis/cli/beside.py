"""Options for what features are learned from beside the labelled text: raw text, dictionaries."""

from __future__ import annotations

import argparse
from typing import Any

from trellis.cli.inputs import Input, layout_for, read_samples
from trellis.cli.named_files import DictionaryFile, InputFile

__all__ = ["add_text_arguments", "beside"]


def add_text_arguments(parser: argparse.ArgumentParser) -> None:
    """--unlabelled, --dictionary."""
    group = parser.add_argument_group("text and lists for features")
    group.add_argument(
        "--unlabelled",
        type=InputFile,
        action="append",
        metavar="FILE",
        help="raw text in the format of the input, with labels or without, from which features "
        "are learned, too: clusters of words, contexts of characters; may be given several times",
    )
    group.add_argument(
        "--dictionary",
        type=DictionaryFile,
        action="append",
        metavar="NAME=FILE",
        help="a list of words, names or terms, one a line, for features that say where they "
        "stand; may be given several times",
    )


def beside(args: argparse.Namespace, layout: dict[str, Any] | None) -> dict[str, Any]:
    """What the options name, as ``fit`` and ``prepare`` take it."""
    given: dict[str, Any] = {}
    if args.unlabelled:
        sources = [Input(file) for file in args.unlabelled]
        given["unlabelled"] = [
            read_samples(source, layout_for(args, source, layout), labelled=False)
            for source in sources
        ]
    if args.dictionary:
        given["dictionaries"] = {file.name: file.read()[0] for file in args.dictionary}
    return given
