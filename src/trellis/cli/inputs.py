"""Options shared by commands that read samples, and the corpus they describe."""

from __future__ import annotations

import argparse
import io
from typing import TYPE_CHECKING, Any

from trellis.errors import DataError

if TYPE_CHECKING:
    from trellis.corpus import Corpus

__all__ = ["FORMATS", "Input", "add_input_arguments", "input_format", "read_samples"]

FORMATS = ("conll", "conllu", "crfsuite", "jsonl", "segmented")


def add_input_arguments(parser: argparse.ArgumentParser) -> None:
    """--format, --columns, --label, --tabs, --skip."""
    group = parser.add_argument_group("input")
    group.add_argument(
        "--format",
        choices=FORMATS,
        help="conll: columns, blank line after a sentence (default); conllu: Universal "
        "Dependencies; crfsuite: label and attributes; jsonl: one object a sentence; segmented: "
        "one sentence a line, spaces between words",
    )
    group.add_argument(
        "--columns",
        metavar="A,B,…",
        help="names of the columns of a conll file, in order (default: word,label or "
        "word,pos,label, by their number)",
    )
    group.add_argument("--label", metavar="NAME", help="the column to predict (default: the last)")
    group.add_argument("--tabs", action="store_true", help="conll: single tabs separate fields")
    group.add_argument(
        "--skip", metavar="PREFIX", default="", help="conll: ignore lines that start with PREFIX"
    )


class Input(io.BytesIO):
    """The bytes of an input, read once (standard input cannot be read twice), with its name."""

    def __init__(self, source: str) -> None:
        from trellis.files import open_text_bytes

        super().__init__(open_text_bytes(source))
        self.name = "standard input" if source == "-" else source

    def n_fields(self, tabs: bool, skip: str) -> int:
        """Number of fields of the first line that counts; 0 if there is none."""
        for line in self.getvalue().split(b"\n"):
            text = line.strip()
            if text and not (skip and text.startswith(skip.encode())):
                return len(text.split(b"\t") if tabs else text.split())
        return 0


def input_format(args: argparse.Namespace, source: Input) -> dict[str, Any]:
    """What the options say about the input; columns are guessed from the file's first line."""
    kind = args.format or "conll"
    found: dict[str, Any] = {"format": kind}
    if kind == "conll":
        columns = args.columns.split(",") if args.columns else _guess_columns(source, args)
        found |= {"columns": columns, "label": args.label or columns[-1]}
        found |= {"tabs": args.tabs, "skip": args.skip}
    elif args.columns:
        raise DataError(f"--columns is for conll files, not for {kind}")
    elif kind == "conllu":
        found["label"] = args.label or "upos"
    elif kind == "jsonl":
        found["label"] = args.label or "labels"
    elif args.label:
        raise DataError(f"--label is for conll, conllu and jsonl files, not for {kind}")
    return found


def _guess_columns(source: Input, args: argparse.Namespace) -> list[str]:
    width = source.n_fields(args.tabs, args.skip)
    if width == 0:
        raise DataError(f"{source.name} is empty: no line with fields")
    if width == 1:
        raise DataError(f"{source.name} has one column; a label's column is missing")
    middle = ["pos"] if width == 3 else [f"column{i}" for i in range(2, width)]
    return ["word", *middle, "label"]


def read_samples(source: Input, layout: dict[str, Any], *, labelled: bool = True) -> Corpus:
    """Read samples in a known layout; unlabelled conll files may lack the label's column."""
    from trellis import corpus

    kind = layout["format"]
    if kind == "conll":
        columns, label = list(layout["columns"]), layout["label"]
        tabs, skip = layout["tabs"], layout["skip"]
        if not labelled and source.n_fields(tabs, skip) == len(columns) - 1:
            columns.remove(label)
            label = None
        separator = "\t" if tabs else None
        return corpus.read_conll(source, columns, label, separator=separator, skip=skip)
    if kind == "conllu":
        return corpus.read_conllu(source, layout["label"])
    if kind == "crfsuite":
        return corpus.read_crfsuite(source)
    if kind == "jsonl":
        return corpus.read_jsonl(source, layout["label"])
    return corpus.read_segmented(source, segmented=labelled)
