"""``trellis train``: learn a model from a file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trellis.cli.beside import add_text_arguments, beside
from trellis.cli.inputs import (
    Input,
    add_input_arguments,
    layout_for,
    layout_of_model,
    read_labelled,
    reading,
)
from trellis.cli.marks import check_not_marked, with_marks
from trellis.cli.model_files import load_labelling_model
from trellis.cli.named_files import InputFile, ReplacedFile, TrainedModel
from trellis.cli.options import (
    add_feature_arguments,
    add_model_arguments,
    check_kind,
    families,
    model_class,
    model_parameters,
)
from trellis.cli.output import one_line, say
from trellis.cli.parameters import add_number, add_parameters, errors_of_options
from trellis.cli.picture_option import add_picture_argument
from trellis.cli.words import count, ending, step
from trellis.errors import CheckpointError, CorruptModelError, DataError

if TYPE_CHECKING:
    from trellis.corpus import Corpus
    from trellis.features import Prepared
    from trellis.models.linear_model import LinearModel

NAME = "train"
HELP = "learn a model from labelled sequences"
DESCRIPTION = """\
Learn a model from a file of labelled sequences and write it to MODEL.

  trellis train train.txt --columns word,pos,chunk --features chunking -o chunk.trellis
  trellis train train.txt --dev dev.txt --patience 3 -o model.trellis --plot learning.png
  trellis train train.txt --features 'word[-1..1]; suffix(word, 1..3)' -o model.trellis
  trellis train train.jsonl --format jsonl --model perceptron -o model.trellis
  trellis train train.txt --solver lbfgs --l1 0.5 --l2 0 --jobs -1 -o model.trellis
  trellis train train.prepared --rich-edges --piece-size 5.5 -o model.trellis
  trellis train train.prepared --rich-edges --piece-size 5.5 -o model.trellis --resume
  trellis train train.conllu --format conllu --structure tree --piece-size 5.5 -o tree.trellis
  trellis train scenes.txt --format graphs --structure graph --loss perceptron -o scene.trellis
  trellis train train.txt --features ner --unlabelled raw.txt --dictionary city=cities.txt -o m
  trellis train names.txt --features ner --partial mentions -o names.trellis

On a terminal a bar shows how far training is and how long it will take, and each pass prints one
line: the objective, its convergence value (from the third pass on), the score on the --dev data
(span F1 if the labels follow a tag scheme, else accuracy) and seconds. With --dev the weights of
the best pass are kept. Ctrl-C writes what is learned so far. The same command with --resume goes on
where training was interrupted, however that happened. FILE may be the result of 'trellis prepare',
for data larger than memory. With --partial mentions words that are O or _ are those that nobody
marked: they may be names all the same. Names in --dev data are all marked.
"""

_COURSE = ("patience",)
_NO_WAY_ON = {
    "other run": "{} is the checkpoint of a run with other data or options; --resume needs those "
    "of that run, without it training starts afresh",
    "solver": "--resume cannot go on from {}: a run of this solver cannot be taken up in the "
    "middle; without it training starts afresh",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument(
        "file",
        type=InputFile,
        metavar="FILE",
        help="labelled sequences ('-': standard input), or what 'trellis prepare' made of them",
    )
    parser.add_argument(
        "-o", "--output", type=TrainedModel, required=True, metavar="MODEL", help="file to write"
    )
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--quiet", action="store_true", help="print warnings and errors only")
    shown.add_argument(
        "--progress", action="store_true", help="print a line a pass even without a terminal"
    )
    add_input_arguments(parser)
    add_feature_arguments(parser)
    add_text_arguments(parser)
    add_model_arguments(parser, without=_COURSE)
    group = parser.add_argument_group("course of training")
    group.add_argument(
        "--dev", type=InputFile, metavar="FILE", help="held-out data, scored after each pass"
    )
    add_parameters(group, families(), _COURSE)
    add_picture_argument(group, "the learning curves, objective and score of each pass")
    group.add_argument(
        "--warm-start",
        dest="earlier",
        type=ReplacedFile,
        metavar="MODEL",
        help="go on from this model, with its features, labels and parameters",
    )
    what = (
        "MODEL.checkpoint, for --resume, is written after a pass and every X minutes within one, "
        "and removed at the end; solvers that cannot go on write none"
    )
    add_number(group, "--checkpoint-minutes", 0, what, 5.0, "X")
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
    from trellis.features import Prepared
    from trellis.models import Checkpoint

    if args.patience is not None and not args.dev:
        raise DataError("--patience needs --dev: data on which to look for a better score")
    earlier = _earlier_model(args)
    with reading(args, args.file):
        corpus, layout, name = _training_data(args, earlier)
    dev = None
    if args.dev:
        with reading(args, args.dev):
            source = Input(args.dev)
            dev = read_labelled(source, layout_for(args, source, layout))
    given = beside(args, layout)
    if earlier is None:
        model = new_model(args, corpus, name)
    else:
        model = earlier.set_params(**model_parameters(args, type(earlier)))
    if args.overlap and model.piece_size is None:
        raise DataError("--overlap needs --piece-size: whole sequences cannot overlap")
    if isinstance(corpus, Prepared):
        check_not_marked(model, name)
    else:
        corpus, dev = with_marks(model, corpus, dev)
    model.input_format_ = layout
    model.verbose = args.reporter.shown
    assert corpus.labels is not None
    args.reporter.line(
        f"{len(corpus)} sequences, {corpus.n_positions} positions, "
        f"{len(corpus.labels.classes)} labels"
    )
    checkpoint = None if args.no_checkpoint else Path(args.output.checkpoint)
    older = _stamp(checkpoint)
    _tell_about_checkpoint(args, checkpoint)
    kept = None
    if checkpoint is not None:
        kept = Checkpoint(checkpoint, args.checkpoint_minutes, required=False)
    try:
        with errors_of_options(type(model)):
            model.fit(corpus, dev=dev, checkpoint=kept, resume=args.resume, **given)
    except CheckpointError as error:
        raise DataError(_NO_WAY_ON[error.code].format(error.path)) from error
    except CorruptModelError as error:  # the only file that is read here is the checkpoint
        raise DataError(f"{error}; without --resume training starts afresh") from error
    except OSError as error:
        if checkpoint is None or error.filename != str(checkpoint):
            raise
        advice = f"{error.strerror}; --no-checkpoint trains without this file"
        raise OSError(error.errno, advice, error.filename) from error
    except KeyboardInterrupt:
        goes_on = _stamp(checkpoint) is not None and (args.resume or _stamp(checkpoint) != older)
        return _interrupted(model, args.output, goes_on=goes_on)
    with args.reporter.stage(f"writing {one_line(args.output)}"):
        _save(model, args.output)
        if args.plot is not None:
            from trellis.pictures import draw_learning

            draw_learning(model, path=args.plot)
    if kept is not None:
        kept.remove()
    say(summary(model, args.output), quiet=args.quiet)
    return 0


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
        say(
            f"trellis: {checkpoint} of an interrupted run is not used, training starts afresh "
            "(--resume would go on from it)"
        )
    elif args.resume and not checkpoint.exists():
        text = f"trellis: there is no {checkpoint}, training starts from the beginning"
        say(text, quiet=args.quiet)


def _interrupted(model: LinearModel, path: str, *, goes_on: bool) -> int:
    """Write what was learned, if anything was, and say how to go on."""
    learned = bool(getattr(model, "history_", None))
    if not learned and not goes_on:
        raise KeyboardInterrupt
    parts = [f"trellis: interrupted in {step(model)} {len(model.history_) + 1}"]
    if learned:
        _save(model, path)
        parts.append(f"what was learned by then is in {path}")
    if goes_on:
        parts.append("the same command with --resume goes on")
    say("; ".join(parts))
    return 130


def _training_data(
    args: argparse.Namespace, earlier: LinearModel | None
) -> tuple[Corpus | Prepared, dict[str, Any] | None, str]:
    """The data, how their file is, or was, read (None: prepared in Python), and its name."""
    from trellis.features.prepared import Prepared, is_prepared

    if is_prepared(args.file):
        about = ("format", "columns", "label", "group", "tabs", "skip", "templates", "crfpp")
        for dest in (*about, "unlabelled", "dictionary"):
            if getattr(args, dest) not in (None, False):
                option = "features" if dest == "templates" else dest
                raise DataError(f"--{option} is for 'trellis prepare', {args.file} is its result")
        prepared = Prepared.open(args.file)
        known = None if earlier is None else earlier.input_format_
        return prepared, prepared.input_format or known, args.file
    source = Input(args.file)
    if earlier is None:
        layout = layout_for(args, source)
    else:
        layout = layout_of_model(earlier, args, source, args.earlier)
    return read_labelled(source, layout), layout, source.name


def _save(model: LinearModel, path: str) -> None:
    model.set_params(warm_start=False, n_jobs=None, verbose=False)  # these are about this run
    model.save(path)


def summary(model: LinearModel, path: str) -> str:
    """One line about a model that was written."""
    history = model.history_
    notes = []
    scored = [record for record in history if record.dev_score is not None]
    if scored:
        best = max(scored, key=lambda record: record.dev_score or 0.0)
        notes.append(f"kept {step(model)} {best.number}, dev {100 * (best.dev_score or 0.0):.2f}")
    notes += filter(None, [ending(model)])
    steps = f"{'L-BFGS ' * (model.solver_ == 'lbfgs')}{step(model)}"
    noted = f" ({'; '.join(notes)})" if notes else ""
    return (
        f"{path}: {len(model.classes_)} labels, {model.n_features_} features, "
        f"{count(len(history), steps)}{noted}, {sum(record.seconds for record in history):.2f} s"
    )


def _earlier_model(args: argparse.Namespace) -> LinearModel | None:
    if not args.earlier:
        return None
    model: LinearModel = load_labelling_model(args.earlier)
    check_kind(args, model, args.earlier)
    given = [("--features", args.templates), ("--crfpp", args.crfpp)]
    given += [("--unlabelled", args.unlabelled), ("--dictionary", args.dictionary)]
    given += [("--rich-edges", args.rich_edges), ("--edge-pairs", args.edge_pairs)]
    for option, value in given:
        if value is not None:
            raise DataError(f"{option} cannot go with --warm-start: the model has its features")
    return model.set_params(warm_start=True)


def new_model(args: argparse.Namespace, corpus: Corpus | Prepared, name: str) -> LinearModel:
    """An estimator of the kind and with the features and parameters asked for."""
    from trellis.features import Prepared

    kind = model_class(args)
    parameters = {"random_state": 0} | model_parameters(args, kind)
    samples = corpus.corpus if isinstance(corpus, Prepared) else corpus
    if args.structure not in (None, "chain") and samples.edges is None:
        raise DataError(
            f"{name} has no edges, which --structure {args.structure} needs; they are in files of "
            "--format conllu (heads) or graphs (lines '@edge A B')"
        )
    if isinstance(corpus, Prepared):
        return kind(corpus.features, **parameters)
    return kind(features_for(args, corpus, name), **parameters)


def features_for(args: argparse.Namespace, corpus: Corpus, name: str) -> str:
    """What the options say about features, as the library takes it."""
    if corpus.features is not None:
        if args.templates is not None or args.crfpp is not None:
            raise DataError(f"--features and --crfpp are for columns; {name} has ready features")
        if not len(corpus.features.names):
            raise DataError(
                f"{name}: no position has a feature (crfsuite files separate the label and the "
                "attributes by tabs)"
            )
        return "auto"
    if args.crfpp is not None:
        from trellis.features import read_crfpp

        if args.templates is not None:
            raise DataError("give --features or --crfpp, not both")
        return read_crfpp(args.crfpp, list(corpus.columns)).text()
    if args.templates is None:
        return "auto"
    if args.templates.startswith("@"):
        from trellis.files import open_text_bytes

        try:
            # A line break more, since one word alone would name a set.
            return open_text_bytes(args.templates[1:]).decode("utf-8-sig") + "\n"
        except UnicodeDecodeError:
            raise DataError(f"{args.templates[1:]} is not UTF-8 text") from None
    return str(args.templates)
