"""Options shared by commands that read samples, and the corpus they describe.

A *layout* says how a file is to be read: its format and, where the format leaves it open, the
names of the columns, which of them is the label, what separates fields and which lines to skip.
A model keeps the layout it was trained on, so that later files need no options.
"""

from __future__ import annotations

import argparse
import io
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trellis.cli.output import one_line, say
from trellis.errors import DataError
from trellis.files.text import ReadText, read_bytes
from trellis.progress import nothing_drawn

if TYPE_CHECKING:
    from trellis.corpus import Corpus

__all__ = [
    "FORMATS",
    "Input",
    "add_input_arguments",
    "layout_for",
    "layout_of_model",
    "read_labelled",
    "read_samples",
    "reading",
]

FORMATS = ("conll", "conllu", "crfsuite", "csv", "jsonl", "segmented", "graphs")
_IN_COLUMNS = ("conll", "graphs")
_DEFAULT_LABEL = {"conllu": "upos", "jsonl": "labels"}


def add_input_arguments(parser: argparse.ArgumentParser) -> None:
    """--format, --columns, --label, --tabs, --skip."""
    group = parser.add_argument_group("input")
    group.add_argument(
        "--format",
        choices=FORMATS,
        help="conll: fields in columns, a blank line after each sentence (default); conllu: "
        "Universal Dependencies; crfsuite: label, then attributes, separated by tabs; csv: a "
        "header, then a row for each position, --group tells samples apart; jsonl: one object of "
        "lists a line; segmented: one sentence a line, spaces between words; graphs: as conll, "
        "with lines '@edge A B [TYPE]' after the nodes of a sample",
    )
    group.add_argument(
        "--group", metavar="NAME", help="csv: the column that says which rows are one sample"
    )
    group.add_argument(
        "--columns",
        metavar="A,B,...",
        help="conll: names of the columns, in order (default: word,label or word,pos,label, or "
        "word,column2,...,label, by their number); csv: those to take (default: all)",
    )
    group.add_argument(
        "--label",
        metavar="NAME",
        help="the column or key to predict (default: conll and csv the last, conllu upos, jsonl "
        "labels)",
    )
    group.add_argument(
        "--tabs",
        action="store_true",
        help="conll: single tabs separate fields, which may hold spaces",
    )
    group.add_argument("--skip", metavar="PREFIX", help="conll: ignore lines that start so")


class Input(ReadText):
    """The text of an input, read once (standard input cannot be read twice), with its name."""

    def __init__(self, source: str) -> None:
        typed: AbstractContextManager[None] = nullcontext()
        if source == "-":
            if sys.stdin is None:  # the shell's <&-
                raise DataError("cannot read standard input: it is closed")
            if sys.stdin.isatty():
                say("trellis: reading from the terminal (end with Ctrl-D)")
                typed = nothing_drawn()
        with typed:
            super().__init__(*read_bytes(source))

    def n_fields(self, tabs: bool, skip: str) -> int:
        """Number of fields of the first line that counts; 0 if there is none."""
        for line in io.BytesIO(self.getvalue()):
            text = line.removesuffix(b"\n").removesuffix(b"\r")
            if not text.strip(b" \t") or (skip and text.startswith(skip.encode())):
                continue
            fields = text.split(b"\t") if tabs else text.replace(b"\t", b" ").split(b" ")
            return len(fields) if tabs else sum(map(bool, fields))
        return 0


def reading(args: argparse.Namespace, file: str) -> AbstractContextManager[Any]:
    """Show that a file is read, as a context."""
    name = "standard input" if file == "-" else one_line(Path(file).name)
    stage: AbstractContextManager[Any] = args.reporter.stage(f"reading {name}")
    return stage


def layout_for(
    args: argparse.Namespace, source: Input, known: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Layout of an input: what the options say, else what is known, else what is usual."""
    kind = args.format or (known or {}).get("format", "conll")
    if known is None or known["format"] != kind:
        known = {}
    if kind == "csv":
        return _csv_layout(args, source, known)
    if args.group:
        raise DataError(f"--group is for csv files, not for {kind}")
    if kind not in _IN_COLUMNS:
        for option in ("columns", "tabs", "skip"):
            if getattr(args, option):
                raise DataError(f"--{option} is for conll files, not for {kind}")
        if kind in _DEFAULT_LABEL:
            return {"format": kind, "label": args.label or known.get("label", _DEFAULT_LABEL[kind])}
        if args.label:
            raise DataError(f"--label is for conll, conllu and jsonl files, not for {kind}")
        return {"format": kind}
    tabs = args.tabs or known.get("tabs", False)
    skip = known.get("skip", "") if args.skip is None else args.skip
    if args.columns:
        columns = [name.strip() for name in args.columns.split(",")]
    else:
        columns = known.get("columns") or _usual_columns(source, tabs, skip)
    if args.label and args.label not in columns:
        raise DataError(
            f"label column {args.label!r} is not among the columns {', '.join(columns)}; "
            "name the columns with --columns"
        )
    label = args.label or known.get("label", columns[-1])
    return {"format": kind, "columns": columns, "label": label, "tabs": tabs, "skip": skip}


def _csv_layout(args: argparse.Namespace, source: Input, known: dict[str, Any]) -> dict[str, Any]:
    """Layout of a CSV file: what the header says, with the group and the label told apart."""
    from trellis.corpus.csv_table import csv_columns

    for option in ("tabs", "skip"):
        if getattr(args, option):
            raise DataError(f"--{option} is for conll files, not for csv")
    header = csv_columns(source)
    group = args.group or known.get("group")
    if group is None:
        raise DataError(
            f"csv files need --group, the column that says which rows are one sample: "
            f"{', '.join(header)}"
        )
    others = [name for name in header if name != group]
    label = args.label or known.get("label") or (others[-1] if others else group)
    if label == group:
        raise DataError(
            f"{source.name}: {group!r} tells samples apart, so it cannot be the label; name "
            f"another column with --label ({', '.join(others) or 'there is none'})"
        )
    if args.columns:
        columns = [name.strip() for name in args.columns.split(",")]
    else:
        columns = known.get("columns") or [name for name in others if name != label]
    columns = [name for name in columns if name != label]
    return {"format": "csv", "columns": columns, "label": label, "group": group}


def _usual_columns(source: Input, tabs: bool, skip: str) -> list[str]:
    width = source.n_fields(tabs, skip)
    if width == 0:
        raise DataError(f"{source.name} is empty: there is no sequence in it")
    if width == 1:
        raise DataError(
            f"{source.name} has one column; expected at least two, the label in the last "
            "(or is it another --format?)"
        )
    middle = ["pos"] if width == 3 else [f"column{i}" for i in range(2, width)]
    return ["word", *middle, "label"]


def layout_of_model(
    model: Any, args: argparse.Namespace, source: Input, file: str
) -> dict[str, Any]:
    """Layout of an input for a model: what the options say, else what it was trained on."""
    known = model.input_format_
    if known is None and args.format in (None, *_IN_COLUMNS):  # a model made in Python
        known = _layout_from_templates(model, args, file)
    return layout_for(args, source, known)


def _layout_from_templates(model: Any, args: argparse.Namespace, file: str) -> dict[str, Any]:
    """What can be told of column files from the templates: the columns needed, not their order."""
    from trellis.features import TemplateEncoder

    if not isinstance(model.encoder_, TemplateEncoder):
        raise DataError(
            f"{file} was trained on ready-made features, not on a file; name the --format "
            "(crfsuite or jsonl)"
        )
    needed = model.encoder_.templates.columns()
    label = "label"
    if args.columns:
        last = args.columns.split(",")[-1].strip()
        label = label if last in needed else last
    elif len(needed) > 1:
        raise DataError(
            f"{file} does not say how its input looks; name the columns in their order with "
            f"--columns, e.g. --columns {','.join(needed)},label"
        )
    kind = args.format or ("graphs" if hasattr(model, "edge_types_") else "conll")
    layout = {"format": kind, "columns": [*needed, "label"], "label": label}
    return layout | {"tabs": False, "skip": ""}


def read_samples(source: Input, layout: dict[str, Any], *, labelled: bool = True) -> Corpus:
    """Read samples in a known layout; those not labelled may lack the label's column."""
    from trellis import corpus

    kind = layout["format"]
    if kind in _IN_COLUMNS:
        columns, label = list(layout["columns"]), layout["label"]
        tabs, skip = layout["tabs"], layout["skip"]
        if not labelled:
            columns, label = _present_columns(source, columns, label, tabs, skip)
        separator = "\t" if tabs else None
        read = corpus.read_conll if kind == "conll" else corpus.read_graphs
        return read(source, columns, label, separator=separator, skip=skip)
    if kind == "csv":
        from trellis.corpus.csv_table import csv_columns

        there = labelled or layout["label"] in csv_columns(source)
        label = layout["label"] if there else None
        return corpus.read_csv(source, label, group=layout["group"], columns=layout["columns"])
    if kind == "conllu":
        return corpus.read_conllu(source, layout["label"])
    if kind == "crfsuite":
        return corpus.read_crfsuite(source)
    if kind == "jsonl":
        return corpus.read_jsonl(source, layout["label"])
    return corpus.read_segmented(source, segmented=labelled)


def _present_columns(
    source: Input, columns: list[str], label: str, tabs: bool, skip: str
) -> tuple[list[str], str | None]:
    """Columns and label of a file that may lack the label's column."""
    without = [name for name in columns if name != label]
    width = source.n_fields(tabs, skip)
    if width == len(columns):
        return columns, label if label in columns else None
    if width in (0, len(without)):
        return without, None
    more = f", or {len(columns)} with {label}" if without != columns else ""
    raise DataError(
        f"{source.name}: {width} field(s) in the first line, expected {len(without)} "
        f"({' '.join(without)}){more}"
    )


def read_labelled(source: Input, layout: dict[str, Any]) -> Corpus:
    """Read samples that must be there and have labels."""
    corpus = read_samples(source, layout)
    if len(corpus) == 0:
        raise DataError(f"{source.name} is empty: there is no sequence in it")
    if corpus.labels is None:
        raise DataError(
            f"{source.name} has no labels: no key {layout['label']!r} (--label names another)"
        )
    return corpus
