"""``trellis tag``: label new sequences with a model."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from trellis.cli.inputs import Input, add_input_arguments, layout_of_model, read_samples, reading
from trellis.cli.named_files import InputFile, OutputFile
from trellis.cli.output import write_stdout
from trellis.cli.parameters import add_number
from trellis.errors import DataError

if TYPE_CHECKING:
    from trellis.corpus import Corpus

NAME = "tag"
HELP = "label new sequences with a model"
DESCRIPTION = """\
Label the sequences of a file.

  trellis tag chunk.trellis new.txt > tagged.txt
  cat new.txt | trellis tag chunk.trellis -o tagged.txt
  trellis tag ner.trellis new.txt --marginals        # and how probable each label is
  trellis tag ner.trellis new.txt --kbest 3          # the three best labellings

The input has the layout the model was trained on, with or without the label's column; the options
below override it. What comes out depends on the format:

  conll      the columns of the input and, as one more column, the predicted label
  conllu     the input with the predictions in place of the label's column
  crfsuite   the predicted labels, one a line
  csv        the input with one more column, "predicted"
  jsonl      the input with one more key, "predicted"
  segmented  the text with spaces between words (spaces in the input do not count)
  graphs     as conll, with the lines of edges
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("model", type=InputFile, metavar="MODEL", help="model file")
    parser.add_argument(
        "file",
        type=InputFile,
        metavar="FILE",
        nargs="?",
        default="-",
        help="sequences (default: standard input)",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=OutputFile,
        metavar="FILE",
        help="file to write (default: standard output)",
    )
    more = parser.add_mutually_exclusive_group()
    more.add_argument(
        "--marginals",
        action="store_true",
        help="add the probability of each predicted label (CRF; conll, crfsuite, csv: one more "
        "column; conllu: p=... in MISC)",
    )
    what = "write the K best labellings of each sequence as columns, each after a line "
    add_number(more, "--kbest", 1, f"{what}'# SEQUENCE RANK SCORE'")
    add_input_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Label and write."""
    from trellis.cli.model_files import load_labelling_model

    model = load_labelling_model(args.model)
    if args.marginals and not hasattr(model, "predict_marginals"):
        raise DataError(f"--marginals needs a CRF; {type(model).__name__} has no probabilities")
    with reading(args, args.file) as stage:
        source = Input(args.file)
        layout = layout_of_model(model, args, source, args.model)
        if args.marginals and layout["format"] in ("jsonl", "segmented"):
            raise DataError(f"--marginals cannot be written to {layout['format']} files")
        corpus = read_samples(source, layout, labelled=False)
        stage.now(f"labelling {len(corpus):,} sequences")
        if args.kbest is not None:
            text = _kbest_text(model, corpus, layout, args.kbest)
        else:
            predicted = model.predict(corpus)
            probability = _probabilities(model, corpus, predicted) if args.marginals else None
            text = _labelled_text(source, layout, corpus, predicted, probability)
    if args.output:
        from trellis.files import atomic_write

        with atomic_write(args.output) as file:
            file.write(text.encode("utf-8"))
    else:
        write_stdout(text, "utf-8")
    return 0


def _probabilities(model: Any, corpus: Corpus, predicted: list[list[str]]) -> list[list[str]]:
    """Probability of each predicted label, as text."""
    position = {name: i for i, name in enumerate(model.classes_)}
    marginals = model.predict_marginals(corpus)
    return [
        [f"{p[t, position[y]]:.4f}" for t, y in enumerate(labels)]
        for labels, p in zip(predicted, marginals, strict=True)
    ]


def _labelled_text(
    source: Input,
    layout: dict[str, Any],
    corpus: Corpus,
    predicted: list[list[str]],
    probability: list[list[str]] | None,
) -> str:
    """The samples with their predicted labels, in the format of the input."""
    from trellis.corpus.label_values import label_name

    kind = layout["format"]
    if kind == "conllu":
        return _conllu_text(source, layout["label"], predicted, probability)
    if kind == "csv":
        from trellis.corpus.csv_table import format_csv

        added = {"predicted": [list(map(label_name, sample)) for sample in predicted]}
        added |= {} if probability is None else {"probability": probability}
        return format_csv(source, layout["group"], added)
    if kind == "jsonl":
        from trellis.corpus.jsonl import jsonl_lines

        return "".join(line + "\n" for line in jsonl_lines(corpus, predicted))
    if kind == "segmented":
        from trellis.corpus.schemes import tags_to_words

        characters = (sample.columns["char"] for sample in corpus)
        words = (tags_to_words(c, y) for c, y in zip(characters, predicted, strict=True))
        return "".join(" ".join(sentence) + "\n" for sentence in words)
    gap = "\t" if kind == "crfsuite" or layout["tabs"] else " "
    if probability is not None:
        predicted = [
            [f"{label_name(y)}{gap}{p}" for y, p in zip(*pair, strict=True)]
            for pair in zip(predicted, probability, strict=True)
        ]
    if kind == "crfsuite":
        return "".join("".join(f"{label_name(y)}\n" for y in s) + "\n" for s in predicted)
    from trellis.corpus.conll import format_conll
    from trellis.corpus.graphs import format_graphs

    formatted = format_conll if kind == "conll" else format_graphs
    return formatted(corpus, labels=predicted, separator=gap)


def _conllu_text(
    source: Input, label: str, predicted: list[list[str]], p: list[list[str]] | None
) -> str:
    """The input, comments and all, with one field of each word replaced."""
    from trellis.corpus.label_values import label_name

    names = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
    field = names.index(label)
    labels = iter([y for sample in predicted for y in sample])
    chances = None if p is None else iter([x for sample in p for x in sample])
    lines = source.getvalue().decode("utf-8").split("\n")
    for i, line in enumerate(lines):
        text, end = line.removesuffix("\r"), "\r" * line.endswith("\r")
        fields = text.split("\t")
        if line.startswith("#") or not fields[0].isdecimal():
            continue  # a comment, a blank line, a range of words or an empty node
        fields[field] = label_name(next(labels))
        if chances is not None:
            entry = f"p={next(chances)}"
            fields[-1] = entry if fields[-1] == "_" else f"{fields[-1]}|{entry}"
        lines[i] = "\t".join(fields) + end
    return "\n".join(lines)


def _kbest_text(model: Any, corpus: Corpus, layout: dict[str, Any], k: int) -> str:
    """For each labelling of each sequence a line with its rank and score, then its positions."""
    from trellis.corpus.label_values import label_name

    gap = "\t" if layout["format"] == "conllu" or layout.get("tabs") else " "
    lines = []
    for s, (sample, found) in enumerate(zip(corpus, model.predict_kbest(corpus, k), strict=True)):
        rows = list(zip(*sample.columns.values(), strict=True)) or [()] * len(sample)
        for rank, (labels, score) in enumerate(found, 1):
            lines.append(f"# {s + 1} {rank} {score:.4f}\n")
            named = map(label_name, labels)
            lines += [gap.join((*row, y)) + "\n" for row, y in zip(rows, named, strict=True)]
            lines.append("\n")
    return "".join(lines)
