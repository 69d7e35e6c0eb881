"""``trellis tag``: label new sequences with a model."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from trellis.cli.inputs import Input, add_input_arguments, input_format, read_samples
from trellis.errors import DataError

if TYPE_CHECKING:
    from trellis.corpus import Corpus
    from trellis.models.chain_model import ChainModel

NAME = "tag"
HELP = "label new sequences with a model"
DESCRIPTION = """\
Label the sequences of a file and write them with the predicted label as one more column.

  trellis tag chunk.trellis new.txt > tagged.txt
  cat new.txt | trellis tag chunk.trellis -o tagged.txt
  trellis tag ner.trellis new.txt --marginals        # probability of each predicted label
  trellis tag ner.trellis new.txt --kbest 3          # the three best labellings

The input has the layout the model was trained on, with or without the label's column; the options
below override it. Jsonl files get a key «predicted», segmented text comes out with spaces.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("model", help="model file")
    parser.add_argument(
        "file", nargs="?", default="-", help="sequences to label (default: standard input)"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="default: standard output")
    more = parser.add_mutually_exclusive_group()
    more.add_argument(
        "--marginals", action="store_true", help="add the probability of each label (CRF)"
    )
    more.add_argument("--kbest", type=int, metavar="K", help="write the K best labellings")
    add_input_arguments(parser)


def layout_of(model: Any, args: argparse.Namespace, source: Input) -> dict[str, Any]:
    """Layout of the input: what the options say, else what the model was trained on."""
    if args.format or args.columns or getattr(model, "input_format_", None) is None:
        return input_format(args, source)
    layout: dict[str, Any] = dict(model.input_format_)
    if args.label:
        layout["label"] = args.label
    return layout


def run(args: argparse.Namespace) -> int:
    """Label and write."""
    from trellis.models import ChainCRF, load_model

    model = load_model(args.model)
    source = Input(args.file)
    layout = layout_of(model, args, source)
    corpus = read_samples(source, layout, labelled=False)
    if args.marginals and not isinstance(model, ChainCRF):
        raise DataError("--marginals needs a CRF; a perceptron has no probabilities")
    if args.kbest is not None and args.kbest < 1:
        raise DataError("--kbest must be at least 1")
    text = _text(model, corpus, layout, args)
    if args.output:
        from trellis.files import atomic_write

        with atomic_write(args.output) as file:
            file.write(text.encode("utf-8"))
    else:
        sys.stdout.buffer.write(text.encode("utf-8"))
    return 0


def _text(
    model: ChainModel, corpus: Corpus, layout: dict[str, Any], args: argparse.Namespace
) -> str:
    if args.kbest is not None:
        return _kbest_text(model, corpus, args.kbest)
    kind = layout["format"]
    gap = "\t" if kind == "conllu" or layout.get("tabs") else " "
    predicted = model.predict(corpus)
    if args.marginals:
        if kind in ("jsonl", "segmented"):
            raise DataError(f"--marginals cannot be written to {kind} files")
        predicted = _with_probabilities(model, corpus, predicted, gap)
    if kind == "segmented":
        from trellis.corpus.schemes import tags_to_words

        characters = (sample.columns["char"] for sample in corpus)
        words = (tags_to_words(c, y) for c, y in zip(characters, predicted, strict=True))
        return "".join(" ".join(sentence) + "\n" for sentence in words)
    if kind == "jsonl":
        from trellis.corpus.jsonl import jsonl_lines

        return "".join(line + "\n" for line in jsonl_lines(corpus, predicted))
    if kind == "crfsuite":
        return "".join("".join(f"{y}\n" for y in sample) + "\n" for sample in predicted)
    from trellis.corpus.conll import format_conll

    return format_conll(corpus, labels=predicted, separator=gap)


def _with_probabilities(
    model: ChainModel, corpus: Corpus, predicted: list[list[str]], gap: str
) -> list[list[str]]:
    position = {name: i for i, name in enumerate(model.classes_)}
    marginals = model.predict_marginals(corpus)  # type: ignore[attr-defined]  # a CRF
    return [
        [f"{y}{gap}{p[t, position[y]]:.4f}" for t, y in enumerate(labels)]
        for labels, p in zip(predicted, marginals, strict=True)
    ]


def _kbest_text(model: ChainModel, corpus: Corpus, k: int) -> str:
    """For each sequence a line «# sample rank score» before each labelling."""
    lines = []
    for s, (sample, found) in enumerate(zip(corpus, model.predict_kbest(corpus, k), strict=True)):
        rows = list(zip(*sample.columns.values(), strict=True)) or [()] * len(sample)
        for rank, (labels, score) in enumerate(found, 1):
            lines.append(f"# {s + 1} {rank} {score:.4f}")
            lines += [" ".join((*row, y)) for row, y in zip(rows, labels, strict=True)]
            lines.append("")
    return "\n".join(lines) + "\n"
