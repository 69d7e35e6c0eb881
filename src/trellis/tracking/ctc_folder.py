r"""Folders of the Cell Tracking Challenge with label images, truth and results.

::

    01_GT/TRA/man_track.txt, man_track000.tif, man_track001.tif, ...
    01_GT/SEG/man_seg000.tif, ... (some frames), or man_seg_000_007.tif (plane 7 of frame 0)
    01_RES/res_track.txt, mask000.tif, mask001.tif, ...

The package ``tifffile`` is needed to read the images, and ``imagecodecs`` if they are compressed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.errors import DataError
from trellis.tracking.ctc import read_ctc
from trellis.tracking.result import Track

__all__ = [
    "LabelImages",
    "check_challenge",
    "read_challenge",
    "read_label_image",
    "read_segmentation",
]

_IMAGE = re.compile(r"(?:man_track|mask)(\d{1,9})\.tiff?", re.IGNORECASE)
_SEGMENTED = re.compile(r"man_seg_?(\d{1,9})(?:_(\d{1,9}))?\.tiff?", re.IGNORECASE)


class LabelImages(Mapping[int, NDArray[Any]]):
    """Label images by frame, each read when it is asked for: a movie need not be in memory.

    Examples
    --------
    >>> len(LabelImages({})), list(LabelImages({3: Path("mask003.tif")}))
    (0, [3])
    """

    def __init__(self, paths: Mapping[int, Path]) -> None:
        self._paths = paths

    def __getitem__(self, frame: int) -> NDArray[Any]:
        return read_label_image(self._paths[frame])

    def __iter__(self) -> Iterator[int]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


def read_challenge(
    folder: str | os.PathLike[Any],
) -> tuple[str, Mapping[int, NDArray[Any]], list[Track]]:
    """Name, label images by frame and tracks of a folder of truth or of a result.

    Parameters
    ----------
    folder : path
        ``01_GT``, ``01_GT/TRA`` or ``01_RES``.

    Raises
    ------
    DataError
        If there are no images or no list of tracks, or they cannot be read.

    Examples
    --------
    >>> read_challenge("no/such/folder")
    Traceback (most recent call last):
    trellis.errors.DataError: no/such/folder is no folder
    """
    place, found = check_challenge(folder)
    tracks = read_ctc(place)
    return str(place), LabelImages(found), tracks


def check_challenge(folder: str | os.PathLike[Any]) -> tuple[Path, dict[int, Path]]:
    """Where the images of tracks are, and which are of which frame.

    Parameters
    ----------
    folder : path
        ``01_GT``, ``01_GT/TRA`` or ``01_RES``.

    Raises
    ------
    DataError
        If there are none.

    Examples
    --------
    >>> check_challenge("no/such/folder")
    Traceback (most recent call last):
    trellis.errors.DataError: no/such/folder is no folder
    """
    place = _of_tracks(folder)
    found: dict[int, Path] = {}
    for path in sorted(place.iterdir()):
        match = _IMAGE.fullmatch(path.name)
        if match:
            frame = int(match[1])
            if frame in found:
                raise DataError(
                    f"{place}: {found[frame].name} and {path.name} are both of frame {frame}"
                )
            found[frame] = path
    if not found:
        raise DataError(f"{place} has no label images; expected man_trackTTT.tif or maskTTT.tif")
    return place, found


def read_segmentation(
    folder: str | os.PathLike[Any],
) -> list[tuple[int, Path, int | None]] | None:
    """Frame, file and plane (None: all of the frame) of each image for SEG; None: there are none.

    Parameters
    ----------
    folder : path
        ``01_GT`` or ``01_GT/TRA``.

    Examples
    --------
    >>> read_segmentation(".") is None
    True
    """
    beside = [Path(folder, "SEG")]
    if Path(folder).name == "TRA":
        beside.append(Path(folder).parent / "SEG")
    place = next((path for path in beside if path.is_dir()), None)
    if place is None:
        return None
    images = []
    for path in sorted(place.iterdir()):
        match = _SEGMENTED.fullmatch(path.name)
        if match:
            plane = None if match[2] is None else int(match[2])
            images.append((int(match[1]), path, plane))
    return images or None


def read_label_image(path: Path) -> NDArray[Any]:
    """One image of labels.

    Examples
    --------
    >>> read_label_image(Path("mask000.tif"))  # doctest: +SKIP
    """
    try:
        import tifffile
    except ImportError:
        raise DataError(
            f"to read {path}, install the package tifffile: pip install tifffile imagecodecs"
        ) from None
    try:
        image = np.asarray(tifffile.imread(path))
    except Exception as error:  # each fault of a file has its own
        raise DataError(f"cannot read {path}: {error!s:.200}") from error
    if image.ndim not in (2, 3) or image.dtype.kind not in "iu":
        raise DataError(
            f"{path}: expected whole numbers in two or three dimensions, got {image.dtype} "
            f"{image.shape}"
        )
    return image


def _of_tracks(folder: str | os.PathLike[Any]) -> Path:
    place = Path(folder)
    if not place.is_dir():
        raise DataError(f"{place} is no folder")
    inner = place / "TRA"
    return inner if inner.is_dir() else place
