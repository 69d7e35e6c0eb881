"""What ``trellis track --truth`` compares with, and the table of scores."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from trellis.errors import DataError

if TYPE_CHECKING:
    from trellis.cli.track_inputs import FollowedObjects
    from trellis.tracking import FramePair, TrackingResult

__all__ = ["read_truth", "scores"]


def read_truth(args: argparse.Namespace, objects: FollowedObjects) -> list[FramePair] | Path | None:
    """What --truth names, checked before anything is tracked."""
    from trellis.tracking.ctc_folder import check_challenge
    from trellis.tracking.geff_file import is_geff

    if args.truth is None:
        return None
    folder = Path(args.truth)
    if args.truth != "-" and folder.is_dir() and not is_geff(folder):
        check_challenge(folder)
        names = {pair.sequence for pair in objects.pairs()}
        if len(names) > 1:
            raise DataError(
                f"{args.truth} is the truth of one movie, but the objects are of {len(names)}; "
                "track each alone"
            )
        return folder
    return objects.pairs(args.truth)


def scores(truth: list[FramePair] | Path, result: TrackingResult, masks: str | None) -> str:
    """The table of links and divisions; with true images the challenge's measures, too."""
    from trellis.tracking import annotated_events, score_ctc, score_links
    from trellis.tracking.image_frames import open_movies
    from trellis.tracking.scores import LinkScores

    if not isinstance(truth, Path):
        return str(score_links(annotated_events(truth)[0], result.links))
    images = None if masks is None else open_movies(masks, "masks")[0]
    found = score_ctc(truth, result, masks=images)
    table = f"{LinkScores(found.links, found.divisions)}\n{found}"
    if masks is not None:
        return table
    return f"{table}\nan object counts as the true one at the pixel of its centre"
