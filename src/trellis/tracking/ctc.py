r"""Tracks in the form of the Cell Tracking Challenge.

A result is a text file ``res_track.txt`` with one line "L B E P" for each track: its label (from
1), its first and its last frame (from 0), and the label of its parent, 0 for none; and for each
frame a label image ``maskTTT.tif`` in which the pixels of an object hold the label of its track and
the background 0. Every track must have pixels in all its frames. Of a volume the slices are the
pages of the file.

The images must be 16-bit TIFF. They are written here, byte by byte, rather than by an imaging
library: an uncompressed grey image needs a header and a dozen tags, far less than a dependency.

References
----------
V. Ulman et al., *An objective comparison of cell-tracking algorithms*, 2017; *TIFF*, revision 6.0,
1992.
"""

from __future__ import annotations

import logging
import os
import struct
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.errors import DataError
from trellis.files import atomic_write
from trellis.files.text import read_text
from trellis.tracking.gap_parts import without_gaps
from trellis.tracking.image_frames import ImageMovie, checked_labels, open_movies
from trellis.tracking.result import Track, TrackedObject, TrackingResult

__all__ = ["read_ctc", "write_ctc"]

_log = logging.getLogger("trellis")

_FILES = ("res_track.txt", "man_track.txt")  # of results, of ground truth


def write_ctc(
    result: TrackingResult,
    folder: str | os.PathLike[Any],
    *,
    masks: Any = None,
) -> None:
    """Write tracks, and label images if there are masks, for the Cell Tracking Challenge.

    A track that leaves out frames is written in parts, each the parent of the next, since every
    track must have pixels in all its frames; the log says so. Each sequence has a folder of its own
    inside ``folder``, by its name; a sequence without name is written to ``folder`` itself. Folders
    are made where they are missing.

    Parameters
    ----------
    result : TrackingResult
        Frames are counted from 0.
    folder : path
        Where to write.
    masks : mapping of str to label images, optional
        Those of each sequence, or all in one, as :func:`~trellis.tracking.read_label_images` takes
        them: arrays, or files that are read frame by frame; an object's pixels hold its id + 1.
        Pixels of objects that the result does not have become background.

    Raises
    ------
    DataError
        If a sequence cannot be the name of a folder, a frame is negative, or the masks do not fit
        the objects; nothing is written then.

    Examples
    --------
    >>> import tempfile
    >>> from trellis.tracking.result import Track, TrackingResult
    >>> tracks = [Track("a", 1, 0, 4, -1), Track("a", 2, 5, 8, 1), Track("a", 3, 5, 9, 1)]
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_ctc(TrackingResult([], [], tracks, []), folder)
    >>> print((folder / "a" / "res_track.txt").read_text(), end="")
    1 0 4 0
    2 5 8 1
    3 5 9 1
    """
    tracks: dict[str, list[Track]] = defaultdict(list)
    objects: dict[str, list[TrackedObject]] = defaultdict(list)
    parts, seen_in_parts = without_gaps(result.tracks, result.objects)
    for part in parts:
        tracks[part.sequence].append(part)
    for seen in seen_in_parts:
        objects[seen.sequence].append(seen)
    movies = {} if masks is None else {m.name: m for m in open_movies(masks, "masks")}
    if len(parts) > len(result.tracks):
        _log.warning(
            "tracks with gaps are written in parts, each the parent of the next, since the Cell "
            "Tracking Challenge allows none; gaps: %d",
            len(parts) - len(result.tracks),
        )
    for sequence, members in tracks.items():
        _check_sequence(sequence, members)
        if masks is not None:
            if sequence not in movies:
                raise DataError(f"masks has no sequence {sequence!r}; it has {', '.join(movies)}")
            _check_masks(sequence, movies[sequence], objects[sequence], len(members))
    for sequence, members in tracks.items():
        place = Path(folder, sequence)
        place.mkdir(parents=True, exist_ok=True)
        if masks is not None:
            _write_masks(place, movies[sequence], objects[sequence])
        with atomic_write(place / "res_track.txt", binary=False) as file:
            file.writelines(f"{t.track} {t.begin} {t.end} {max(t.parent, 0)}\n" for t in members)


def read_ctc(path: str | os.PathLike[Any], sequence: str = "") -> list[Track]:
    r"""Read tracks in the text form of the Cell Tracking Challenge.

    Parameters
    ----------
    path : path
        A file with lines "L B E P", or a folder with res_track.txt or man_track.txt.
    sequence : str
        Name to give the sequence.

    Returns
    -------
    list of Track
        In the order of the file; parent -1 where the file has 0.

    Raises
    ------
    DataError
        If the file cannot be read or what it says cannot be.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "man_track.txt"
    >>> _ = path.write_text("1 0 4 0\n2 5 8 1\n")
    >>> read_ctc(path.parent)[1]
    Track(sequence='', track=2, begin=5, end=8, parent=1)
    """
    if Path(path).is_dir():
        files = [Path(path, name) for name in _FILES if Path(path, name).is_file()]
        if not files:
            raise DataError(f"{os.fspath(path)} has neither {' nor '.join(_FILES)}")
        path = files[0]
    name, text = read_text(path)
    tracks: dict[int, tuple[int, Track]] = {}
    for line, content in enumerate(text.splitlines(), start=1):
        if not content.strip():
            continue
        try:
            label, begin, end, parent = map(int, content.split())
        except ValueError:
            raise DataError(
                f"{name}, line {line}: expected four whole numbers (label, begin, end, parent), "
                f"got {content[:80]!r}"
            ) from None
        if label < 1 or begin < 0 or end < begin or parent < 0:
            raise DataError(
                f"{name}, line {line}: expected label >= 1, 0 <= begin <= end and parent >= 0, "
                f"got {content!r}"
            )
        if label in tracks:
            raise DataError(
                f"{name}, line {line}: label {label} is already on line {tracks[label][0]}"
            )
        tracks[label] = line, Track(sequence, label, begin, end, parent or -1)
    for line, track in tracks.values():
        if track.parent == -1:
            continue
        if track.parent not in tracks:
            raise DataError(f"{name}, line {line}: there is no track {track.parent} to be parent")
        if tracks[track.parent][1].end >= track.begin:
            raise DataError(
                f"{name}, line {line}: the parent {track.parent} does not end before frame "
                f"{track.begin}, where track {track.track} begins"
            )
    return [track for _, track in tracks.values()]


def _check_sequence(sequence: str, tracks: list[Track]) -> None:
    if sequence in {".", ".."} or any(c in "/\\:" or not c.isprintable() for c in sequence):
        raise DataError(f"sequence {sequence!r} cannot be the name of a folder; rename it")
    for track in tracks:
        if track.begin < 0:
            raise DataError(
                f"track {track.track} of sequence {sequence!r} begins in frame {track.begin}; the "
                "Cell Tracking Challenge counts frames from 0"
            )


def _check_masks(
    sequence: str, masks: ImageMovie, objects: list[TrackedObject], n_tracks: int
) -> None:
    """Refuse masks in which an object has no pixels."""
    if n_tracks >= 1 << 16:
        raise DataError(f"sequence {sequence!r} has {n_tracks} tracks; a 16-bit mask holds 65535")
    by_frame = _by_frame(objects)
    strange = sorted(set(by_frame) - set(masks.numbers))
    if strange:
        first, last = masks.numbers[0], masks.numbers[-1]
        raise DataError(
            f"masks of sequence {sequence!r} are of the frames {first} to {last}, and there are "
            f"objects of frame {strange[0]}"
        )
    for frame, (where, mask) in zip(masks.numbers, masks.frames(), strict=True):
        present = set(np.unique(checked_labels(where, mask)).tolist())
        lost = [o.id for o in by_frame.get(frame, []) if o.id < 0 or o.id + 1 not in present]
        if lost:
            raise DataError(
                f"masks of sequence {sequence!r}, frame {frame}: object {lost[0]} has no pixel; an "
                "object's pixels must hold its id + 1"
            )


def _by_frame(objects: list[TrackedObject]) -> dict[int, list[TrackedObject]]:
    frames: dict[int, list[TrackedObject]] = defaultdict(list)
    for tracked in objects:
        frames[tracked.frame].append(tracked)
    return dict(frames)


def _write_masks(folder: Path, masks: ImageMovie, objects: list[TrackedObject]) -> None:
    by_frame = _by_frame(objects)
    for frame, mask in zip(masks.numbers, masks, strict=True):
        values, which = np.unique(mask, return_inverse=True)
        track = {o.id + 1: o.track for o in by_frame.get(frame, [])}
        labels = np.array([track.get(value, 0) for value in values.tolist()], np.uint16)
        with atomic_write(folder / _mask_name(frame, masks.numbers[-1] + 1)) as file:
            file.write(_tiff(labels[which.reshape(mask.shape)]))


def _mask_name(frame: int, n_frames: int) -> str:
    digits = max(3, len(str(n_frames - 1)))
    return f"mask{frame:0{digits}}.tif"


def _tiff(image: NDArray[np.uint16]) -> bytes:
    """Bytes of an uncompressed TIFF: header, then page by page its tags, resolution and pixels."""
    slices = image.reshape(-1, *image.shape[-2:])
    pages = [struct.pack("<2sHI", b"II", 42, 8)]
    at = 8
    for number, one in enumerate(slices, start=1):
        pages.append(_page(one, at, last=number == len(slices)))
        at += len(pages[-1])
    return b"".join(pages)


def _page(image: NDArray[np.uint16], at: int, last: bool) -> bytes:
    """One page of a TIFF that stands at this place in its file."""
    height, width = image.shape
    pixels = image.astype("<u2").tobytes()
    pixels += b"\0" * (len(pixels) % 4)  # pages begin at whole words
    short, long, rational = 3, 4, 5
    n_tags = 12
    resolution_at = at + 2 + 12 * n_tags + 4
    pixels_at = resolution_at + 8
    tags = (
        (256, long, width),
        (257, long, height),
        (258, short, 16),  # bits a pixel
        (259, short, 1),  # not compressed
        (262, short, 1),  # 0 is black
        (273, long, pixels_at),
        (277, short, 1),  # one value a pixel
        (278, long, height),  # all rows in one strip
        (279, long, 2 * height * width),
        (282, rational, resolution_at),
        (283, rational, resolution_at),
        (296, short, 1),  # the resolution has no unit
    )
    # A short stands in the low bytes of its field, which little-endian packing of a long gives.
    entries = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in tags)
    after = 0 if last else pixels_at + len(pixels)
    return struct.pack("<H", n_tags) + entries + struct.pack("<III", after, 1, 1) + pixels
