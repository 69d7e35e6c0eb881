"""Links of tracks of the Cell Tracking Challenge whose labels are in the images.

In its ground truth the label of a region is the number of its track. An object is linked with that
of the same label in the next frame; where a track ends and others with this parent begin in the
next frame, it has divided, or gone on under another number if there is only one. A track without
pixels in some frames was missed there, and is linked over them. Parents that end earlier than their
daughters begin, by frames, are left out: nobody has seen them divide.
"""

from __future__ import annotations

import logging
import os
from collections import defaultdict
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from trellis.arrays import Int64s
from trellis.errors import DataError
from trellis.tracking.ctc import read_ctc
from trellis.tracking.result import Track

__all__ = ["links_of_tracks"]

_log = logging.getLogger("trellis")


def links_of_tracks(
    tracks: Any, labels: Mapping[str, Mapping[int, Int64s]]
) -> dict[str, list[Any]]:
    r"""Read files of tracks as a table of links, in which ids are labels less one.

    Parameters
    ----------
    tracks : path, or mapping of str to path
        man_track.txt or its folder; by name, if there are several sequences.
    labels : mapping of str to mapping of int to int64, shape (n,)
        The labels of each frame of each sequence.

    Raises
    ------
    DataError
        If a file cannot be read, or is of other labels.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp(), "man_track.txt")
    >>> _ = path.write_text("1 0 1 0\n2 2 2 1\n3 2 2 1\n")
    >>> frames = {0: np.array([1]), 1: np.array([1]), 2: np.array([2, 3])}
    >>> links = links_of_tracks(path, {"": frames})
    >>> links["source_id"], links["target_id"], links["kind"]
    ([0, 0, 0], [0, 1, 2], ['move', 'division', 'division'])
    """
    if not isinstance(tracks, Mapping):
        if len(labels) > 1:
            raise DataError(
                f"{os.fspath(tracks)} has the tracks of one sequence, and there are {len(labels)}; "
                f"give a mapping of {', '.join(map(repr, labels))} to files of tracks"
            )
        tracks = dict.fromkeys(labels, tracks)
    rows: list[tuple[str, int, int, int, int, str]] = []
    n_late = 0
    for name, frames in labels.items():
        if name not in tracks:
            raise DataError(f"links has no tracks of sequence {name!r}; it has {', '.join(tracks)}")
        links, skipped = _links(os.fspath(tracks[name]), read_ctc(tracks[name], name), frames)
        rows += [(name, *link) for link in links]
        n_late += skipped
    if not rows:
        raise DataError("the tracks have no link: none of them is in two frames")
    if n_late:
        _log.warning("%d parent(s) that end before their daughters begin: not annotated", n_late)
    names = ("sequence", "frame", "frame_target", "source_id", "target_id", "kind")
    return {name: list(cells) for name, cells in zip(names, zip(*rows, strict=True), strict=True)}


def _links(
    place: str, tracks: list[Track], frames: Mapping[int, Int64s]
) -> tuple[list[tuple[int, int, int, int, str]], int]:
    """Links, and the number of parents that end too early for one."""
    span = {track.track: track for track in tracks}
    seen: dict[int, list[int]] = defaultdict(list)
    for frame, here in frames.items():
        for label in here.tolist():
            track = span.get(label)
            if track is None or not track.begin <= frame <= track.end:
                what = (
                    "is not there"
                    if track is None
                    else f"is of frames {track.begin} to {track.end}"
                )
                raise DataError(
                    f"{place}: frame {frame} has the label {label}, but track {label} {what}; the "
                    "tracks are those of other images, or labels are no tracks"
                )
            seen[label].append(frame)
    links = []
    n_late = 0
    for label, when in seen.items():
        links += [(a, b, label - 1, label - 1, "move") for a, b in pairwise(when)]
    daughters: dict[int, list[int]] = defaultdict(list)
    for track in tracks:
        if track.parent in seen and track.track in seen:
            if seen[track.track][0] == seen[track.parent][-1] + 1:
                daughters[track.parent].append(track.track)
            else:
                n_late += 1
    for parent, born in daughters.items():
        kind = "division" if len(born) > 1 else "single_daughter"
        end = seen[parent][-1]
        links += [(end, end + 1, parent - 1, label - 1, kind) for label in born]
    return links, n_late
