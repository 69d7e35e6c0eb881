"""``trellis train``: learn a model from a file."""

from __future__ import annotations

import argparse
import functools
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trellis.cli.inputs import (
    Input,
    add_input_arguments,
    layout_for,
    layout_of_model,
    read_labelled,
)
from trellis.cli.options import (
    LOSSES,
    add_feature_arguments,
    add_model_arguments,
    add_parallel_arguments,
    add_penalty_arguments,
    add_solver_arguments,
    add_structure_arguments,
    given_parameters,
    in_words_of_options,
    option_name,
)
from trellis.cli.output import check_target
from trellis.errors import DataError, TrellisError

if TYPE_CHECKING:
    from trellis.corpus import Corpus
    from trellis.features import Prepared
    from trellis.models import Checkpoint
    from trellis.models.linear_model import LinearModel

NAME = "train"
HELP = "learn a model from labelled sequences"
DESCRIPTION = """\
Learn a model from a file of labelled sequences and write it to MODEL.

  trellis train train.txt --columns word,pos,chunk --features chunking -o chunk.trellis
  trellis train train.txt --dev dev.txt --patience 3 -o model.trellis
  trellis train train.txt --features 'word[-1..1]; suffix(word, 1..3)' -o model.trellis
  trellis train train.jsonl --format jsonl --model perceptron -o model.trellis
  trellis train train.txt --solver lbfgs --l1 0.5 --l2 0 --jobs -1 -o model.trellis
  trellis train train.prepared --rich-edges --piece-size 5.5 -o model.trellis
  trellis train train.prepared --rich-edges --piece-size 5.5 -o model.trellis --resume
  trellis train train.conllu --format conllu --structure tree --piece-size 5.5 -o tree.trellis
  trellis train scenes.txt --format graphs --structure graph --loss perceptron -o scene.trellis

On a terminal each pass prints one line: the objective, its convergence value (from the third pass
on), the score on the --dev data (span F1 if the labels follow a tag scheme, else accuracy) and
seconds. With --dev the weights of the best pass are kept. Ctrl-C writes what is learned so far.
The same command with --resume goes on where training was interrupted, however that happened.
FILE may be the result of 'trellis prepare', for data larger than memory.
"""

_AFRESH = "training starts afresh"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument(
        "file",
        metavar="FILE",
        help="labelled sequences ('-': standard input), or what 'trellis prepare' made of them",
    )
    parser.add_argument("-o", "--output", required=True, metavar="MODEL", help="file to write")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--quiet", action="store_true", help="print warnings and errors only")
    shown.add_argument(
        "--progress", action="store_true", help="print a line a pass even without a terminal"
    )
    add_input_arguments(parser)
    add_feature_arguments(parser)
    model = parser.add_argument_group("model")
    add_structure_arguments(model)
    add_model_arguments(model)
    add_penalty_arguments(parser.add_argument_group("pieces and penalties"))
    add_solver_arguments(parser.add_argument_group("solver"))
    add_parallel_arguments(parser.add_argument_group("parallel"))
    group = parser.add_argument_group("course of training")
    group.add_argument("--dev", metavar="FILE", help="held-out data, scored after each pass")
    group.add_argument(
        "--patience", type=int, metavar="K", help="stop after K passes without a better dev score"
    )
    group.add_argument(
        "--warm-start",
        metavar="MODEL",
        help="go on from this model, with its features, labels and parameters",
    )
    group.add_argument(
        "--checkpoint-minutes",
        type=float,
        default=5.0,
        metavar="X",
        help="MODEL.checkpoint, for --resume, is written after a pass and every X minutes within "
        "one (default: 5), and removed at the end",
    )
    group = group.add_mutually_exclusive_group()
    group.add_argument(
        "--resume",
        action="store_true",
        help="go on from the checkpoint of an interrupted run: the model will be the same as "
        "without the interruption",
    )
    group.add_argument("--no-checkpoint", action="store_true", help="write no checkpoint")


def run(args: argparse.Namespace) -> int:
    """Train and write the model."""
    from trellis.models import Checkpoint, MaxMargin

    check_target(args.output)
    if not args.no_checkpoint:
        check_target(f"{args.output}.checkpoint")
    if not args.checkpoint_minutes >= 0:
        raise DataError(f"--checkpoint-minutes must be at least 0, got {args.checkpoint_minutes}")
    if args.patience is not None and not args.dev:
        raise DataError("--patience needs --dev: data on which to look for a better score")
    if args.progress or (sys.stderr is not None and sys.stderr.isatty() and not args.quiet):
        logging.getLogger("trellis").setLevel(logging.INFO)  # lets progress lines through
    earlier = _earlier_model(args)
    corpus, layout, name = _training_data(args, earlier)
    dev = None
    if args.dev:
        source = Input(args.dev)
        dev = read_labelled(source, layout_for(args, source, layout))
    model = new_model(args, corpus, name) if earlier is None else earlier
    model.set_params(**given_parameters(args, model))
    if getattr(args, "overlap", None) and model.piece_size is None:
        raise DataError("--overlap needs --piece-size: whole sequences cannot overlap")
    if isinstance(model, MaxMargin):
        for option in ("dev", "resume"):
            if getattr(args, option):
                raise DataError(f"--{option} is not for a max-margin model")
    model.input_format_ = layout
    assert corpus.labels is not None
    logging.getLogger("trellis").info(
        f"{len(corpus)} sequences, {corpus.n_positions} positions, "
        f"{len(corpus.labels.classes)} labels"
    )
    checkpoint = None if args.no_checkpoint else Path(f"{args.output}.checkpoint")
    older = _stamp(checkpoint)
    _tell_about_checkpoint(args, checkpoint)
    kept = None if checkpoint is None else Checkpoint(checkpoint, args.checkpoint_minutes)
    try:
        _fit(model, corpus, dev, kept, args)
    except TrellisError as error:
        raise DataError(_in_words_of_training(str(error), checkpoint)) from error
    except OSError as error:
        if checkpoint is None or "while writing" not in (error.strerror or ""):
            raise
        advice = f"{error.strerror}; --no-checkpoint trains without this file"
        raise OSError(error.errno, advice, error.filename) from error
    except KeyboardInterrupt:
        goes_on = _stamp(checkpoint) is not None and (args.resume or _stamp(checkpoint) != older)
        return _interrupted(model, args.output, goes_on=goes_on)
    _save(model, args.output)
    if kept is not None:
        kept.remove()
    if not args.quiet:
        print(summary(model, args.output), file=sys.stderr)
    return 0


def _fit(
    model: Any, corpus: Any, dev: Corpus | None, kept: Checkpoint | None, args: argparse.Namespace
) -> None:
    """Train; a max-margin model has neither held-out data nor checkpoints."""
    from trellis.models import MaxMargin

    if isinstance(model, MaxMargin):
        model.fit(corpus)
    else:
        model.fit(corpus, dev=dev, checkpoint=kept, resume=args.resume)


def _stamp(file: Path | None) -> tuple[int, int] | None:
    """What tells a file from one that took its place; None if there is none."""
    if file is None or not file.exists():
        return None
    state = file.stat()
    return state.st_ino, state.st_mtime_ns


def _tell_about_checkpoint(args: argparse.Namespace, checkpoint: Path | None) -> None:
    if checkpoint is None:
        return
    if checkpoint.exists() and not args.resume:
        print(
            f"trellis: {checkpoint} of an interrupted run is not used, training starts afresh "
            "(--resume would go on from it)",
            file=sys.stderr,
        )
    elif args.resume and not checkpoint.exists() and not args.quiet:
        print(
            f"trellis: there is no {checkpoint}, training starts from the beginning",
            file=sys.stderr,
        )


def _in_words_of_training(message: str, checkpoint: Path | None) -> str:
    if checkpoint is not None and message.startswith(str(checkpoint)):
        what, other, _ = message.partition(" is the checkpoint of a run with other data or ")
        if other:
            return f"{what}{other}options; --resume needs those of that run, without it " + _AFRESH
        return f"{message}; without --resume {_AFRESH}"
    return in_words_of_options(message)


def _interrupted(model: LinearModel, path: str, *, goes_on: bool) -> int:
    """Write what was learned, if anything was, and say how to go on."""
    learned = bool(getattr(model, "history_", None))
    if not learned and not goes_on:
        raise KeyboardInterrupt
    where = f"interrupted in {_round(model)} {len(model.history_) + 1}"
    parts = [f"trellis: {where}"]
    if learned:
        _save(model, path)
        parts.append(f"what was learned by then is in {path}")
    if goes_on:
        parts.append("the same command with --resume goes on")
    print("; ".join(parts), file=sys.stderr)
    return 130


def _round(model: LinearModel) -> str:
    """What the records of training are about."""
    return "iteration" if getattr(model, "solver_", "") == "lbfgs" else "pass"


def _training_data(
    args: argparse.Namespace, earlier: LinearModel | None
) -> tuple[Corpus | Prepared, dict[str, Any] | None, str]:
    """The data, how their file is, or was, read (None: prepared in Python), and its name."""
    from trellis.features.prepared import Prepared, is_prepared

    if is_prepared(args.file):
        for option in ("format", "columns", "label", "tabs", "skip", "features", "crfpp"):
            if getattr(args, option) not in (None, False):
                raise DataError(f"--{option} is for 'trellis prepare', {args.file} is its result")
        prepared = Prepared.open(args.file)
        known = None if earlier is None else earlier.input_format_
        return prepared, prepared.input_format or known, args.file
    source = Input(args.file)
    if earlier is None:
        layout = layout_for(args, source)
    else:
        layout = layout_of_model(earlier, args, source, args.warm_start)
    return read_labelled(source, layout), layout, source.name


def _save(model: LinearModel, path: str) -> None:
    known = model.get_params()
    for_this_run = {"warm_start": False, "n_jobs": None}
    model.set_params(**{name: value for name, value in for_this_run.items() if name in known})
    model.save(path)


def summary(model: LinearModel, path: str) -> str:
    """One line about a model that was written."""
    history = model.history_
    notes = []
    if getattr(history[-1], "dev_score", None) is not None:
        best = max(history, key=lambda record: record.dev_score or 0.0)
        notes.append(f"kept {_round(model)} {best.number}, dev {100 * (best.dev_score or 0.0):.2f}")
    if ending := ending_in_short(model):
        notes.append(ending)
    rounds = "L-BFGS iterations" if _round(model) == "iteration" else "passes"
    noted = f" ({'; '.join(notes)})" if notes else ""
    return (
        f"{path}: {len(model.classes_)} labels, {model.n_features_} features, "
        f"{len(history)} {rounds}{noted}, "
        f"{sum(record.seconds for record in history):.2f} s"
    )


def ending_in_short(model: LinearModel) -> str:
    """Why training ended, in a word or two; nothing for passes that were made as asked."""
    reason = model.stop_reason_
    if (gap := getattr(model, "gap_", None)) is not None:
        objective: float = model.objective_
        within = f"within {100 * gap / max(objective, 1e-300):.2g} % of the optimum"
        return within if objective < float("inf") else ""
    if reason.startswith("converge"):
        return "converged"
    if reason == "the objective no longer falls":
        return "no more improvement"
    if reason.startswith("no better score"):
        return "out of patience"
    if reason.endswith(("iteration made", "iterations made")):
        return "not converged"
    return "" if reason.endswith("passes made") else reason


def _earlier_model(args: argparse.Namespace) -> LinearModel | None:
    from trellis.cli.model_files import load_labelling_model
    from trellis.models import MaxMargin

    if not args.warm_start:
        return None
    model: LinearModel = load_labelling_model(args.warm_start)
    if isinstance(model, MaxMargin):
        raise DataError(f"{args.warm_start} is a max-margin model, which cannot go on learning")
    structure, kind = next(k for k, c in _estimators().items() if c is type(model))
    if _kind(args) not in (None, kind):
        raise DataError(f"{args.warm_start} holds a {kind}, not a {_kind(args)}")
    if args.structure not in (None, structure):
        raise DataError(f"{args.warm_start} is for structure {structure}, not {args.structure}")
    for name in ("features", "crfpp", "rich_edges", "edge_pairs"):
        if getattr(args, name) is not None:
            raise DataError(
                f"{option_name(name)} cannot go with --warm-start: the model has its features"
            )
    return model.set_params(warm_start=True)


def _estimators() -> dict[tuple[str, str], type[LinearModel]]:
    """Estimators by structure and kind."""
    from trellis import models

    return {
        ("chain", "crf"): models.ChainCRF,
        ("chain", "perceptron"): models.ChainPerceptron,
        ("tree", "crf"): models.TreeCRF,
        ("tree", "perceptron"): models.TreePerceptron,
        ("graph", "crf"): models.GraphCRF,
        ("graph", "perceptron"): models.GraphPerceptron,
    }


def _kind(args: argparse.Namespace) -> str | None:
    """The kind of model that --model or --loss ask for, if they do."""
    loss = getattr(args, "loss", None)
    by_loss = next((kind for kind, name in LOSSES.items() if name == loss), None)
    if args.model and by_loss and args.model != by_loss:
        raise DataError(f"--model {args.model} has the loss {LOSSES[args.model]}, not {loss}")
    kind: str | None = args.model or by_loss
    return kind


def new_model(args: argparse.Namespace, corpus: Corpus | Prepared, name: str) -> Any:
    """An estimator of the kind and with the features asked for."""
    from trellis import models
    from trellis.features import Prepared

    structure = getattr(args, "structure", None) or "chain"
    kind = _kind(args) or "crf"
    make: Any = functools.partial(models.MaxMargin, structure=structure)
    if kind != "max-margin":
        make = _estimators()[structure, kind]
    if isinstance(corpus, Prepared):
        if structure != "chain":
            raise DataError(f"{name} is prepared for chains, which have no edges")
        if kind == "max-margin":
            raise DataError(f"{name} is prepared; a max-margin model learns from the file itself")
        return make(corpus.features, random_state=0)
    if structure != "chain" and corpus.edges is None:
        raise DataError(
            f"{name} has no edges, which --structure {structure} needs; they are in files of "
            "--format conllu (heads) or graphs (lines '@edge A B')"
        )
    return make(features_for(args, corpus, name), random_state=0)


def features_for(args: argparse.Namespace, corpus: Corpus, name: str) -> str:
    """What the options say about features, as the library takes it."""
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
