"""What ``trellis track`` follows objects in: a table of detections, or label images."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from trellis.cli.inputs import Input
from trellis.cli.named_files import InputFile
from trellis.cli.track_tables import opened, read_objects
from trellis.errors import DataError

if TYPE_CHECKING:
    from trellis.tracking import FramePair

__all__ = ["FollowedObjects", "add_image_arguments", "followed_objects"]

_FOR_IMAGES = ("images", "learn_images", "pixels", "spacing")


class FollowedObjects(Protocol):
    """Where the objects to be followed come from."""

    def pairs(self, links: str | None = None, *, complete: bool = True) -> list[FramePair]:
        """Frame pairs, annotated by a file of links between these objects."""
        ...

    def to_learn(self, links: str, *, complete: bool) -> list[FramePair]:
        """Frame pairs to learn from: annotated, these or those of a folder of ground truth."""
        ...

    @property
    def masks(self) -> Any:
        """Label images of the objects; None if there are none."""
        ...


def add_image_arguments(group: Any) -> None:
    """--images, --learn-images, --pixels, --spacing."""
    group.add_argument(
        "--images",
        type=InputFile,
        metavar="FOLDER",
        help="images of intensities that belong to label images, for features of brightness: a "
        "folder, .tif, .npy, .npz or .zarr",
    )
    group.add_argument(
        "--learn-images",
        type=InputFile,
        metavar="FOLDER",
        help="likewise, those that belong to the folder of --learn",
    )
    group.add_argument(
        "--pixels",
        choices=("none", "overlap", "published"),
        help="what to measure of label images beside columns: how masks of two frames overlap, for "
        "cells that are detected in parts or two as one; all published features (default: none)",
    )
    group.add_argument(
        "--spacing",
        metavar="[Z,]Y,X",
        help="size of a pixel of label images along each axis, such as 2.5,0.6,0.6 (default: 1)",
    )


def followed_objects(args: argparse.Namespace) -> FollowedObjects:
    """Read OBJECTS, once."""
    from trellis.tracking.image_frames import is_images

    if is_images(args.file):
        return _Images(args)
    for name in _FOR_IMAGES:
        if getattr(args, name) is not None:
            raise DataError(
                f"--{name.replace('_', '-')} goes with label images (a folder, .tif, .npy, .npz or "
                f".zarr), and {args.file} is read as a table"
            )
    return _Tables(args)


class _Tables:
    """A table of detections."""

    masks = None

    def __init__(self, args: argparse.Namespace) -> None:
        self.args, self.objects = args, opened(args, args.file)
        self.bare: list[FramePair] | None = None

    def pairs(self, links: str | None = None, *, complete: bool = True) -> list[FramePair]:
        from trellis.tracking.annotation_extent import bare

        if links is None and self.bare is not None:
            return self.bare
        named = None if links is None else _table_of_links(links)
        pairs = read_objects(self.args, self.objects, named, complete=complete)
        self.bare = [bare(pair) for pair in pairs]
        return pairs

    def to_learn(self, links: str, *, complete: bool) -> list[FramePair]:
        return self.pairs(links, complete=complete)


class _Images:
    """Label images, gone through once; those to learn from may be others."""

    def __init__(self, args: argparse.Namespace) -> None:
        from trellis.tracking.image_frames import is_images
        from trellis.tracking.label_images import MeasuredImages

        self.spacing = _spacing(args.spacing)
        self.masks = str(args.file)
        self.learn_images = args.learn_images
        learns = args.learn is not None and is_images(args.learn)
        if args.learn_images is not None and not learns:
            raise DataError("--learn-images goes with a folder of ground truth in --learn")
        if args.ctc is not None:
            _check_folder(self.masks, args.ctc)
        self.pixels = args.pixels or "none"
        self.measured = MeasuredImages.of(self.masks, args.images, self.spacing, self.pixels)

    def pairs(self, links: str | None = None, *, complete: bool = True) -> list[FramePair]:
        known: Any = links
        if links is not None and not _has_tracks(links):
            known = Input(_table_of_links(links))
        return self.measured.pairs(known, complete=complete)

    def to_learn(self, links: str, *, complete: bool) -> list[FramePair]:
        from trellis.tracking import read_label_images
        from trellis.tracking.image_frames import is_images

        if not is_images(links):
            return self.pairs(links, complete=complete)

        folder = _ground_truth(links)
        return read_label_images(
            folder, self.learn_images, folder, complete=complete, spacing=self.spacing,
            pixels=self.pixels,
        )  # fmt: skip


def _has_tracks(links: str) -> bool:
    return Path(links).is_dir() or links.lower().endswith(".txt")


def _table_of_links(links: str) -> str:
    from trellis.tracking.image_frames import is_images

    if is_images(links):
        raise DataError(f"{links} is read as a CSV file of links; images go with label images")
    return links


def _ground_truth(folder: str) -> Path:
    """The folder of the images and of man_track.txt, which may be in one called TRA."""
    path = Path(folder)
    if not (path / "man_track.txt").is_file() and (path / "TRA" / "man_track.txt").is_file():
        path = path / "TRA"
    if not path.is_dir():
        raise DataError(
            f"--learn {folder}: expected a CSV file of links, or a folder of ground truth with "
            "label images and man_track.txt"
        )
    return path


def _spacing(text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        raise DataError(
            f"--spacing {text}: expected numbers with commas between them, such as 2.5,0.6,0.6"
        ) from None


def _check_folder(masks: str, folder: str) -> None:
    """Refuse to write masks among those that are read."""
    from trellis.tracking.image_frames import TIFF

    place = Path(masks)
    if place.suffix.lower() in TIFF:
        place = place.parent
    target = Path(folder)
    if place.is_dir() and target.is_dir() and place.samefile(target):
        raise DataError(
            f"--ctc {folder}: masks would be written among those that are read; name another folder"
        )
