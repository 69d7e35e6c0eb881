"""``trellis track``: follow dividing cells, or learn to, from tables of detections and links."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from trellis.cli.inputs import reading
from trellis.cli.named_files import InputFile, OutputFile, OutputFolder
from trellis.cli.output import say, write_stdout
from trellis.cli.parameters import add_parameters, given_parameters, new_model
from trellis.cli.picture_option import add_picture_argument
from trellis.cli.track_inputs import add_image_arguments, followed_objects
from trellis.cli.track_report import add_report_argument, track_with_report, write_report
from trellis.cli.track_scores import read_truth, scores
from trellis.cli.track_tables import TracksFile, add_table_arguments, write_tracks
from trellis.cli.words import count, ending, step
from trellis.errors import DataError
from trellis.estimator import parameters_of

if TYPE_CHECKING:
    from trellis.tracking import FramePair, TrackingModel, TrackingResult
    from trellis.tracking.baselines import Tracker

NAME = "track"
HELP = "follow dividing cells through a movie, or learn to"
DESCRIPTION = """\
Link detected objects from frame to frame, find divisions, and write the tracks.

  trellis track objects.csv -o tracks.csv --plot lineage.png
  trellis track objects.csv --learn links.csv --save cells.trellis
  trellis track objects.csv --learn some_links.csv --partial --save cells.trellis
  trellis track new.csv --model cells.trellis -o tracks.csv --ctc results --truth links.csv
  trellis track new.csv --model cells.trellis --report report

objects.csv has a header and the columns frame, id, x, y; z in three dimensions; sequence, if there
are several movies; and any other columns of numbers (area, mean_intensity, ...), which are
features. A column track is never looked at. links.csv has frame, source_id, target_id (in the next
frame) and, if wanted, sequence and kind (move, division, split or merge).

Label images hold a number for each object and 0 elsewhere, one image a frame. Of them, and of
--images, everything else is measured.

  trellis track 01_SEG --images 01 -o tracks.csv --ctc 01_RES
  trellis track 02_SEG --learn 01_GT/TRA --ctc 02_RES

Without --model and --learn the model learns from the movie alone, from what a tracker with prices
made by hand finds in it (--method flow is that tracker). The more links are given to learn from,
the better it gets, and a few do no harm: what nobody annotated is guessed. Frames of which no link
is given are not annotated. With --truth the precision, recall and F1 of links and divisions are
printed.

Ctrl-C while learning writes what is learned so far to the file of --save.
"""

_METHODS = {
    "self": "learns from what flow finds in this movie",
    "flow": "least total price of moves, divisions, appearances and disappearances",
    "nearest": "one-to-one links of least total distance, no divisions",
    "matching": "places among the neighbours, and divisions where areas add up",
}
# Options that are about learning, and those of them that are parameters of the model.
_LEARNING = ("partial", "save")
_LEARNED = ("l2", "loss", "events", "n_neighbors")


class _Challenge(OutputFolder):
    names = ("res_track.txt", "*/res_track.txt")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    from trellis.tracking import TrackingModel

    parser.add_argument(
        "file",
        type=InputFile,
        metavar="OBJECTS",
        help="CSV file of detected objects, '-' for standard input; or label images: a folder of "
        "TIFF files, a .tif stack, .npy, .npz or .zarr",
    )
    parser.add_argument("--quiet", action="store_true", help="print warnings and errors only")
    add_table_arguments(parser)
    group = parser.add_argument_group("results (at least one)")
    group.add_argument(
        "-o",
        "--output",
        type=TracksFile,
        metavar="TRACKS",
        help="file to write: CSV with sequence, frame, id, x, y, track and parent of every object; "
        "a file of TrackMate if it ends in .xml, a GEFF if it ends in .geff",
    )
    add_picture_argument(group, "the lineages")
    add_report_argument(group)
    group.add_argument(
        "--ctc",
        type=_Challenge,
        metavar="FOLDER",
        help="write res_track.txt of the Cell Tracking Challenge, and masks if label images were "
        "read; a folder for each named sequence",
    )
    group.add_argument(
        "--truth",
        type=InputFile,
        metavar="LINKS",
        help="CSV file of all true links or tracks, to score the tracks with; or a folder of the "
        "Cell Tracking Challenge with true images, as 01_GT",
    )
    add_image_arguments(parser.add_argument_group("label images"))
    group = parser.add_argument_group("how to track")
    group.add_argument("--model", type=InputFile, metavar="FILE", help="a model that --save wrote")
    group.add_argument(
        "--method",
        choices=tuple(_METHODS),
        help="without a model; "
        + "; ".join(f"{name}: {what}" for name, what in _METHODS.items())
        + " (default: self)",
    )
    usual = "from the links; without them from the distances of nearest objects"
    names = ["max_distance", "max_gap"]
    add_parameters(group, [TrackingModel], names, defaults={"max_distance": usual})
    group = parser.add_argument_group("learning")
    group.add_argument(
        "--learn",
        type=InputFile,
        metavar="LINKS",
        help="learn from this CSV file of links between the objects; or, with label images, from "
        "a folder of ground truth of the Cell Tracking Challenge (TRA)",
    )
    group.add_argument(
        "--partial",
        action="store_true",
        help="the links are some of all: nothing is known of objects without (default: they "
        "appeared or disappeared)",
    )
    group.add_argument(
        "--save",
        type=OutputFile,
        metavar="FILE",
        help="the file for the model that is learned",
    )
    usual = "the first four, split and merge if there are such links"
    add_parameters(group, [TrackingModel], _LEARNED, defaults={"events": usual})


def run(args: argparse.Namespace) -> int:
    """Learn or load a model, track, write."""
    from trellis.tracking import TrackingModel

    _check_options(args)
    with reading(args, args.file):
        objects = followed_objects(args)
        truth = read_truth(args, objects)
    if args.learn is not None:
        model = new_model(args, TrackingModel, random_state=0)
        model.verbose = args.reporter.shown
        with reading(args, args.learn):
            pairs = objects.to_learn(args.learn, complete=not args.partial)
            if all(pair.annotation is None for pair in pairs):
                raise DataError(f"{args.learn} has no links to learn from")
        started = time.perf_counter()
        try:
            model.fit(pairs)
            if args.save is not None:
                _ = model.temperature_  # goes into the file
        except KeyboardInterrupt:
            return _interrupted(model, args.save)
        model.verbose = False  # it is about this run
        if args.save is not None:
            model.save(args.save)
        say(_learned(model, args.save, time.perf_counter() - started), quiet=args.quiet)
        tracker: Tracker = model
    elif args.model is not None:
        from trellis.cli.model_files import load_tracking_model

        tracker = loaded = load_tracking_model(args.model)
        if args.max_gap is not None:
            loaded.max_gap = args.max_gap
    else:
        tracker = _unlearned(objects.pairs(), args)
    if any((args.output, args.plot, args.ctc, args.truth, args.report)):
        started, pairs = time.perf_counter(), objects.pairs()
        result = track_with_report(tracker, pairs, args)
        seconds = time.perf_counter() - started
        if args.report is not None:
            known = truth if isinstance(truth, list) else None  # images have no ids to mark
            write_report(result, pairs, tracker, known, seconds, args)
        _write(result, seconds, args, objects.masks)
        if truth is not None:
            write_stdout(f"{scores(truth, result, objects.masks)}\n")
    return 0


# ------------------------------------------------------------------------------- at the door


def _check_options(args: argparse.Namespace) -> None:
    from trellis.tracking import TrackingModel

    if not any((args.output, args.plot, args.report, args.ctc, args.truth, args.save)):
        raise DataError(
            "no result is asked for: name a file for the tracks with -o (or --plot, --report, "
            "--ctc, --truth, or --learn and --save)"
        )
    ways = [f"--{name}" for name in ("model", "method", "learn") if getattr(args, name) is not None]
    if len(ways) > 1:
        raise DataError(f"give one of {' and '.join(ways)}: each says how to track")
    if args.learn is None:
        options = {name: f"--{name}" for name in _LEARNING}
        options |= {name: parameters_of(TrackingModel)[name].option for name in _LEARNED}
        for name, option in options.items():
            if getattr(args, name) not in (None, False):
                raise DataError(f"{option} is for --learn, which names the links to learn from")
    if args.model is not None and args.max_distance is not None:
        raise DataError("--max-distance cannot go with --model, which has learned it")
    given_parameters(args, TrackingModel)
    if args.max_distance == "auto":
        args.max_distance = None


# ------------------------------------------------------------------------------- trackers


def _unlearned(pairs: list[FramePair], args: argparse.Namespace) -> Tracker:
    """A tracker that needs no links."""
    from trellis.tracking import FlowTracker, GraphMatching, NearestNeighbour, TrackingModel
    from trellis.tracking.gates import usual_reach

    if args.method in (None, "self"):
        model = new_model(args, TrackingModel, random_state=0)
        model.verbose = args.reporter.shown
        with args.reporter.stage("learning from what flow finds"):
            model.fit(pairs)
        model.verbose = False
        say(
            "no links to learn from (--learn): the model learned from what flow (--method) finds "
            f"in this movie; links up to {model.max_distance_:.3g} (--max-distance)",
            quiet=args.quiet,
        )
        return model
    kinds: dict[str, type[FlowTracker | NearestNeighbour | GraphMatching]] = {
        "flow": FlowTracker,
        "nearest": NearestNeighbour,
        "matching": GraphMatching,
    }
    gate = usual_reach(pairs) if args.max_distance is None else args.max_distance
    say(
        f"no model: tracked without learning, by {args.method} (--method), objects up to "
        f"{gate:.3g} apart (--max-distance)",
        quiet=args.quiet,
    )
    return kinds[args.method](gate)


# ------------------------------------------------------------------------------- results


def _interrupted(model: TrackingModel, path: str | None) -> int:
    """Write what was learned, if anything was."""
    done, model.verbose = len(getattr(model, "history_", ())), False
    if not done:
        raise KeyboardInterrupt
    where = f"trellis: interrupted in {step(model)} {done + 1}"
    if path is None:
        say(f"{where}; with --save what was learned by then is kept")
    else:
        model.save(path)
        say(f"{where}; what was learned by then is in {path}")
    return 130


def _learned(model: TrackingModel, path: str | None, seconds: float) -> str:
    """One line about a model."""
    return (
        f"{path or 'learned'}: {len(model.weights_)} weights of {', '.join(model.events_)}; links "
        f"up to {model.max_distance_:.3g}; {count(len(model.history_), step(model))} "
        f"({ending(model)}), {seconds:.2f} s"
    )


def _write(result: TrackingResult, seconds: float, args: argparse.Namespace, masks: Any) -> None:
    from trellis.pictures import draw_lineage
    from trellis.tracking import write_ctc

    if args.output is not None:
        write_tracks(result, args.output)
    if args.ctc is not None:
        write_ctc(result, args.ctc, masks=masks)
    if args.plot is not None:
        draw_lineage(result, args.plot)
    frames = len({(o.sequence, o.frame) for o in result.objects})
    n = len({(t.sequence, t.parent) for t in result.tracks if t.parent != -1})
    where = [name for name in (args.output, args.plot, args.report, args.ctc) if name is not None]
    gaps = sum(link.gap > 0 for link in result.links)
    over = f", {count(gaps, 'gap')} closed (--max-gap)" if gaps else ""
    say(
        f"{', '.join(where) or 'tracked'}: {len(result.objects)} objects of {frames} frames, "
        f"{len(result.tracks)} tracks, {count(n, 'division')}{over}{_proof(result)}, "
        f"{seconds:.2f} s",
        quiet=args.quiet,
    )


def _proof(result: TrackingResult) -> str:
    """How far from the best a model's tracks may be, if they are not proven best."""
    if result.score is None or result.bound is None:
        return ""
    excess = (result.bound - result.score) / max(abs(result.bound), 1e-300)
    return "" if excess < 1e-9 else f", at most {excess:.2g} of the score below the best"
