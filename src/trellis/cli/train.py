"""``trellis train``: learn a model from a file."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path
from typing import Any

from trellis.cli.inputs import Input, add_input_arguments, input_format, read_samples
from trellis.errors import DataError

NAME = "train"
HELP = "learn a model from labelled sequences"
DESCRIPTION = """\
Learn a model from a file of labelled sequences and write it to MODEL.

  trellis train train.txt --columns word,pos,chunk --features chunking -o chunk.trellis
  trellis train train.txt --dev dev.txt --patience 3 -o model.trellis
  trellis train train.txt --features 'word[-1..1]; suffix(word, 1..3)' -o model.trellis
  trellis train train.jsonl --format jsonl --model perceptron -o model.trellis

Each pass prints one line: the objective, its convergence value, the score on held-out data (span
F1 if labels follow a tag scheme, else accuracy) and seconds. Ctrl-C keeps what is learned so far.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("train", help="labelled sequences ('-' for standard input)")
    parser.add_argument("-o", "--output", required=True, metavar="MODEL", help="model file")
    add_input_arguments(parser)
    group = parser.add_argument_group("features")
    group.add_argument(
        "--features",
        default="auto",
        metavar="SET",
        help="chunking, pos, ner, wordseg; template text; or @FILE with templates (default: "
        "the file's own features, or windows and affixes of all columns)",
    )
    group.add_argument("--crfpp", metavar="FILE", help="a CRF++ or Wapiti template file instead")
    group = parser.add_argument_group("model")
    group.add_argument("--model", choices=("crf", "perceptron"), default="crf")
    group.add_argument(
        "--piece-size",
        type=float,
        metavar="N",
        help="structure regularisation: train on pieces of mean size N, e.g. 5.5 (default: "
        "whole sequences)",
    )
    group.add_argument("--l2", type=float, default=1.0, help="L2 penalty of the CRF (default 1)")
    group.add_argument("--scheme", choices=("BIO", "BILOU", "BMES"), help="predict valid tags only")
    group = parser.add_argument_group("training")
    group.add_argument("--dev", metavar="FILE", help="held-out data, scored after each pass")
    group.add_argument(
        "--patience", type=int, metavar="K", help="stop after K passes without a better dev score"
    )
    group.add_argument("--max-passes", type=int, metavar="K", help="12 for a CRF, else 10")
    group.add_argument("--tol", type=float, help="stop below this convergence value")
    group.add_argument("--learning-rate", type=float, help="of the CRF (default: by trial)")
    group.add_argument("--decay", type=float, help="of the rate in a pass (default 0.8)")
    group.add_argument("--seed", type=int, default=0, help="same seed, same bits (default 0)")
    group.add_argument("--warm-start", metavar="MODEL", help="go on from this model")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--quiet", action="store_true", help="no progress lines")
    shown.add_argument(
        "--progress", action="store_true", help="progress lines also if this is no terminal"
    )


def run(args: argparse.Namespace) -> int:
    """Train and write the model."""
    target = Path(args.output)
    _check_target(target)
    source = Input(args.train)
    layout = input_format(args, source)
    corpus = read_samples(source, layout)
    dev = read_samples(Input(args.dev), layout) if args.dev else None
    model = _model(args, layout)
    model.input_format_ = layout
    _show_progress(args)
    print(
        f"{len(corpus)} sequences, {corpus.n_positions} positions, "
        f"{len(corpus.labels.classes) if corpus.labels else 0} labels",
        file=sys.stderr,
    )
    try:
        model.fit(corpus, dev=dev)
    except KeyboardInterrupt:
        if not getattr(model, "history_", None):
            raise
        model.save(target)
        print(
            f"trellis: interrupted after pass {model.n_passes_}; the model as of then is in "
            f"{target}",
            file=sys.stderr,
        )
        return 130
    model.save(target)
    print(
        f"{target}: {model.n_features_} features, {model.n_passes_} passes, "
        f"{sum(r.seconds for r in model.history_):.2f} s",
        file=sys.stderr,
    )
    return 0


def _check_target(target: Path) -> None:
    """Refuse an impossible output before the work, not after."""
    if target.is_dir():
        raise DataError(f"{target} is a folder; name a file for the model")
    if not target.absolute().parent.is_dir():
        raise DataError(f"the folder {target.absolute().parent} of {target.name} does not exist")


def _model(args: argparse.Namespace, layout: dict[str, Any]) -> Any:
    from trellis.models import ChainCRF, ChainPerceptron, load_model

    parameters: dict[str, Any] = {"random_state": args.seed, "piece_size": args.piece_size}
    parameters |= {"scheme": args.scheme, "patience": args.patience}
    for name in ("max_passes", "tol", "learning_rate", "decay"):
        if getattr(args, name) is not None:
            parameters[name] = getattr(args, name)
    if args.model == "perceptron":
        for name in ("learning_rate", "decay"):
            if name in parameters:
                raise DataError(f"--{name.replace('_', '-')} is not used by the perceptron")
    else:
        parameters["l2"] = args.l2
    if args.warm_start:
        model = load_model(args.warm_start)
        kind = ChainPerceptron if args.model == "perceptron" else ChainCRF
        if not isinstance(model, kind):
            raise DataError(f"{args.warm_start} holds a {type(model).__name__}, not a {args.model}")
        return model.set_params(**parameters, warm_start=True)
    parameters["features"] = _features(args, layout)
    return ChainPerceptron(**parameters) if args.model == "perceptron" else ChainCRF(**parameters)


def _features(args: argparse.Namespace, layout: dict[str, Any]) -> str:
    if args.crfpp:
        from trellis.features import read_crfpp

        columns = [c for c in layout.get("columns", []) if c != layout["label"]]
        return read_crfpp(args.crfpp, columns).text()
    if args.features.startswith("@"):
        from trellis.files import open_text_bytes

        try:
            return open_text_bytes(args.features[1:]).decode("utf-8")
        except UnicodeDecodeError:
            raise DataError(f"{args.features[1:]} is not UTF-8 text") from None
    return str(args.features)


def _show_progress(args: argparse.Namespace) -> None:
    """Let the library's progress lines through to standard error."""
    if args.progress or (sys.stderr.isatty() and not args.quiet):
        logging.getLogger("trellis").setLevel(logging.INFO)
