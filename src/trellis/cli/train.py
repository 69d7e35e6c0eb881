"""``trellis train``: learn a model from a file."""

from __future__ import annotations

import argparse
import logging
import sys
from typing import TYPE_CHECKING, Any

from trellis.cli.inputs import (
    Input,
    add_input_arguments,
    layout_for,
    layout_of_model,
    read_labelled,
)
from trellis.cli.output import check_target
from trellis.errors import DataError

if TYPE_CHECKING:
    from trellis.corpus import Corpus
    from trellis.models.chain_model import ChainModel

NAME = "train"
HELP = "learn a model from labelled sequences"
DESCRIPTION = """\
Learn a model from a file of labelled sequences and write it to MODEL.

  trellis train train.txt --columns word,pos,chunk --features chunking -o chunk.trellis
  trellis train train.txt --dev dev.txt --patience 3 -o model.trellis
  trellis train train.txt --features 'word[-1..1]; suffix(word, 1..3)' -o model.trellis
  trellis train train.jsonl --format jsonl --model perceptron -o model.trellis

On a terminal each pass prints one line: the objective, its convergence value (from the third pass
on), the score on the --dev data (span F1 if the labels follow a tag scheme, else accuracy) and
seconds. With --dev the weights of the best pass are kept. Ctrl-C writes what is learned so far.
"""

# Options that become parameters of the model as they are, where they are given.
_PARAMETERS = {
    "seed": "random_state",
    "piece_size": "piece_size",
    "l2": "l2",
    "scheme": "scheme",
    "patience": "patience",
    "max_passes": "max_passes",
    "tol": "tol",
    "learning_rate": "learning_rate",
    "decay": "decay",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("file", metavar="FILE", help="labelled sequences ('-': standard input)")
    parser.add_argument("-o", "--output", required=True, metavar="MODEL", help="file to write")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--quiet", action="store_true", help="print warnings and errors only")
    shown.add_argument(
        "--progress", action="store_true", help="print a line a pass even without a terminal"
    )
    add_input_arguments(parser)
    group = parser.add_argument_group("features")
    group.add_argument(
        "--features",
        metavar="SET",
        help="a template set (chunking, pos, ner or wordseg), templates as text, or @FILE with "
        "templates (default: the file's own features, or windows and affixes of all columns)",
    )
    group.add_argument(
        "--crfpp",
        metavar="FILE",
        help="a CRF++ or Wapiti template file instead; it numbers the columns from 0, the "
        "label's not counted",
    )
    group = parser.add_argument_group("model")
    group.add_argument(
        "--model", choices=("crf", "perceptron"), help="kind of model (default: crf)"
    )
    group.add_argument(
        "--piece-size",
        type=float,
        metavar="N",
        help="structure regularisation: train on pieces of mean size N, e.g. 5.5 (default: "
        "whole sequences)",
    )
    group.add_argument(
        "--l2", type=float, metavar="X", help="strength of the CRF's L2 penalty (default: 1)"
    )
    group.add_argument(
        "--scheme",
        choices=("BIO", "BILOU", "IOBES", "BMES"),
        help="predict only what is valid in this tag scheme",
    )
    group = parser.add_argument_group("training")
    group.add_argument("--dev", metavar="FILE", help="held-out data, scored after each pass")
    group.add_argument(
        "--patience", type=int, metavar="K", help="stop after K passes without a better dev score"
    )
    group.add_argument(
        "--max-passes",
        type=int,
        metavar="K",
        help="passes over the data at most (default: 12 for a CRF, 10 for a perceptron)",
    )
    group.add_argument(
        "--tol",
        type=float,
        metavar="X",
        help="stop when the convergence value falls below X (default: 1e-4 for a CRF, 0 for a "
        "perceptron)",
    )
    group.add_argument(
        "--learning-rate",
        type=float,
        metavar="X",
        help="initial rate of the CRF (default: found by short trials)",
    )
    group.add_argument(
        "--decay",
        type=float,
        metavar="X",
        help="factor by which the CRF's rate falls in a pass (default: 0.8)",
    )
    group.add_argument(
        "--seed", type=int, metavar="K", help="same seed, same model file (default: 0)"
    )
    group.add_argument(
        "--warm-start",
        metavar="MODEL",
        help="go on from this model, with its features, labels and parameters",
    )


def run(args: argparse.Namespace) -> int:
    """Train and write the model."""
    check_target(args.output)
    if args.patience is not None and not args.dev:
        raise DataError("--patience needs --dev: data on which to look for a better score")
    if args.progress or (sys.stderr is not None and sys.stderr.isatty() and not args.quiet):
        logging.getLogger("trellis").setLevel(logging.INFO)  # lets progress lines through
    earlier = _earlier_model(args)
    source = Input(args.file)
    if earlier is None:
        layout = layout_for(args, source)
    else:
        layout = layout_of_model(earlier, args, source, args.warm_start)
    corpus = read_labelled(source, layout)
    dev = read_labelled(Input(args.dev), layout) if args.dev else None
    model = _new_model(args, corpus, source.name) if earlier is None else earlier
    model.set_params(**_parameters(args, model))
    model.input_format_ = layout
    assert corpus.labels is not None
    logging.getLogger("trellis").info(
        f"{len(corpus)} sequences, {corpus.n_positions} positions, "
        f"{len(corpus.labels.classes)} labels"
    )
    try:
        model.fit(corpus, dev=dev)
    except DataError as error:
        raise DataError(_in_words_of_options(str(error))) from error
    except KeyboardInterrupt:
        if not getattr(model, "history_", None):
            raise
        _save(model, args.output)
        print(
            f"trellis: interrupted in pass {model.n_passes_ + 1}; "
            f"what was learned by then is in {args.output}",
            file=sys.stderr,
        )
        return 130
    _save(model, args.output)
    if not args.quiet:
        print(_summary(model, args.output), file=sys.stderr)
    return 0


def _save(model: ChainModel, path: str) -> None:
    model.set_params(warm_start=False)  # was for this run only
    model.save(path)


def _summary(model: ChainModel, path: str) -> str:
    history = model.history_
    kept = ""
    if history[-1].dev_score is not None:
        best = max(history, key=lambda record: record.dev_score or 0.0)
        kept = f" (kept pass {best.number}, dev {100 * (best.dev_score or 0.0):.2f})"
    return (
        f"{path}: {len(model.classes_)} labels, {model.n_features_} features, "
        f"{len(history)} passes{kept}, {sum(record.seconds for record in history):.2f} s"
    )


def _earlier_model(args: argparse.Namespace) -> ChainModel | None:
    from trellis.models import ChainPerceptron, load_model

    if not args.warm_start:
        return None
    model = load_model(args.warm_start)
    kind = "perceptron" if isinstance(model, ChainPerceptron) else "crf"
    if args.model not in (None, kind):
        raise DataError(f"{args.warm_start} holds a {kind}, not a {args.model}")
    for option in ("features", "crfpp"):
        if getattr(args, option) is not None:
            raise DataError(f"--{option} cannot go with --warm-start: the model has its features")
    return model.set_params(warm_start=True)


def _new_model(args: argparse.Namespace, corpus: Corpus, name: str) -> ChainModel:
    from trellis.models import ChainCRF, ChainPerceptron

    kind = ChainPerceptron if args.model == "perceptron" else ChainCRF
    return kind(_features(args, corpus, name), random_state=0)


def _parameters(args: argparse.Namespace, model: ChainModel) -> dict[str, Any]:
    """The parameters given as options; the others stay as they are."""
    given = {name: getattr(args, name) for name in _PARAMETERS if getattr(args, name) is not None}
    for name in given:
        if _PARAMETERS[name] not in model.get_params():
            raise DataError(f"--{name.replace('_', '-')} is not for a perceptron")
    return {_PARAMETERS[name]: value for name, value in given.items()}


def _features(args: argparse.Namespace, corpus: Corpus, name: str) -> str:
    if corpus.features is not None:
        if args.features is not None or args.crfpp is not None:
            raise DataError(f"--features and --crfpp are for columns; {name} has ready features")
        if not len(corpus.features.names):
            raise DataError(
                f"{name}: no position has a feature (crfsuite files separate the label and the "
                "attributes by tabs)"
            )
        return "auto"
    if args.crfpp is not None:
        from trellis.features import read_crfpp

        if args.features is not None:
            raise DataError("give --features or --crfpp, not both")
        return read_crfpp(args.crfpp, list(corpus.columns)).text()
    if args.features is None:
        return "auto"
    if args.features.startswith("@"):
        from trellis.files import open_text_bytes

        try:
            # A line break more, since one word alone would name a set.
            return open_text_bytes(args.features[1:]).decode("utf-8-sig") + "\n"
        except UnicodeDecodeError:
            raise DataError(f"{args.features[1:]} is not UTF-8 text") from None
    return str(args.features)


def _in_words_of_options(message: str) -> str:
    """Message of the library with a leading parameter called by its option."""
    name, space, rest = message.partition(" ")
    option = {parameter: option for option, parameter in _PARAMETERS.items()}.get(name)
    if option is None:
        return message
    return f"--{option.replace('_', '-')}{space}{rest.replace('None or ', '')}"
