"""``trellis track --report``: a tracked movie as one HTML page, and what it says of the run."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trellis.cli.named_files import OutputFile, OutputFolder
from trellis.tracking import TrackingModel, close_gaps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trellis.tracking import FramePair, TrackingResult
    from trellis.tracking.baselines import Tracker

__all__ = ["add_report_argument", "track_with_report", "write_report"]

_CALIBRATED = {
    "annotated": "They were calibrated with the annotated links that the model learned from.",
    "guessed": "They were calibrated with what a tracker with prices made by hand finds, not with "
    "the truth: where both are wrong in the same way, they are too high.",
}


class _Report(OutputFile):
    """A folder for the page, or a file whose name ends in .html."""

    __slots__ = ()

    @property
    def is_page(self) -> bool:
        """Whether it names the page, not a folder."""
        return Path(self).suffix.lower() in (".html", ".htm")

    def written(self, args: argparse.Namespace) -> list[str]:
        """The page, and the table beside it; the folder, too, if it is none yet."""
        path = Path(self)
        if self.is_page:
            table = path.with_name(f"{path.stem}_doubtful_links.csv")
            return [*super().written(args), *OutputFile(table).written(args)]
        return [*[str(self)] * (not path.is_dir()), *(str(path / n) for n in _Folder.names)]

    def check(self) -> None:
        """Refuse what cannot be a folder."""
        if not self.is_page:
            _Folder(self).written(argparse.Namespace())


class _Folder(OutputFolder):
    names = ("index.html", "doubtful_links.csv")

    def written(self, args: argparse.Namespace) -> list[str]:
        """Nothing: whether it can be a folder."""
        super().written(args)
        return []


def add_report_argument(group: Any) -> None:
    """Add ``--report``."""
    group.add_argument(
        "--report",
        type=_Report,
        metavar="OUT",
        help="write one HTML page to look at: the movie with its tracks, lineages, the links to "
        "check first; a file that ends in .html, or a folder for index.html. A table of all "
        "doubtful links is put beside it, and -o has a column with probabilities",
    )


def track_with_report(
    tracker: Tracker, pairs: Sequence[FramePair], args: argparse.Namespace
) -> TrackingResult:
    """Track, with probabilities if a page is wanted and the tracker has any; show how far it is."""
    if not isinstance(tracker, TrackingModel):
        with args.reporter.stage(f"tracking through {len(pairs):,} pairs of frames"):
            result = tracker.predict(pairs)
            if args.max_gap is None:
                return close_gaps(result, pairs)
            return close_gaps(result, pairs, max_gap=args.max_gap)
    tracker.verbose = args.reporter.shown
    try:
        return tracker.predict(pairs, probabilities=args.report is not None)
    finally:
        tracker.verbose = False  # it is about this run


def write_report(
    result: TrackingResult,
    pairs: Sequence[FramePair],
    tracker: Tracker,
    truth: Sequence[FramePair] | None,
    seconds: float,
    args: argparse.Namespace,
) -> None:
    """Write the page, and the table beside it."""
    from trellis import __version__
    from trellis.pictures.movie_page import movie_page
    from trellis.tracking import annotated_events

    name = "standard input" if args.file == "-" else Path(args.file).name
    settings: dict[str, Any] = {"objects": name, "tracked by": _tracked_by(args)}
    calibrated = ""
    if isinstance(tracker, TrackingModel):
        settings |= {
            "events": ", ".join(tracker.events_),
            "features": ", ".join(tracker.columns_) or "positions alone",
            "links up to": f"{tracker.max_distance_:.4g} (--max-distance)",
            "neighbours of an object": tracker.n_neighbors,
            "temperature of the probabilities": f"{tracker.temperature_for(pairs):.3g}",
        }
        calibrated = _CALIBRATED[tracker.calibration_]
    elif hasattr(tracker, "gate"):
        settings["links up to"] = f"{tracker.gate:.4g} (--max-distance)"
    settings |= {"seconds to track": f"{seconds:.2f}", "Trellis": __version__}
    with args.reporter.stage("writing the page"):
        movie_page(
            result,
            args.report,
            pairs=pairs,
            truth=None if truth is None else annotated_events(truth)[0],
            title=f"Tracks of {name}",
            calibrated=calibrated,
            settings=settings,
        )


def _tracked_by(args: argparse.Namespace) -> str:
    if args.model is not None:
        return f"the model {Path(args.model).name}"
    if args.learn is not None:
        part = ", some of all links" if args.partial else ""
        return f"a model learned from {Path(args.learn).name}{part}"
    if args.method in (None, "self"):
        return "a model learned from this movie alone"
    return f"{args.method} (--method), without learning"
