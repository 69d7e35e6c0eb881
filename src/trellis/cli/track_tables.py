"""Tables of ``trellis track``: their options, and how they are read."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from trellis.cli.inputs import Input
from trellis.cli.named_files import OutputFile
from trellis.errors import DataError
from trellis.files.text import NOT_UTF8, ReadText, recoded

if TYPE_CHECKING:
    from trellis.tracking import FramePair, TrackingResult

__all__ = ["TracksFile", "add_table_arguments", "opened", "read_objects", "write_tracks"]


def add_table_arguments(parser: argparse.ArgumentParser) -> None:
    """--columns, --ignore, --encoding."""
    add = parser.add_argument_group("tables").add_argument
    add(
        "--columns", type=_mapping, metavar="NAME=COLUMN,...",
        help="which column is what, as frame=FRAME,x=POSITION_X (default: by their names, those of "
        "scikit-image, TrackMate and others, too)",
    )  # fmt: skip
    add(
        "--ignore", type=_names, metavar="COLUMN,...",
        help="columns of the objects that are no features",
    )  # fmt: skip
    add(
        "--encoding", metavar="NAME",
        help="that of the files, such as cp1252, Excel's in Europe, or utf-16 (default: utf-8)",
    )  # fmt: skip


class TracksFile(OutputFile):
    """A file of tracks; one that ends in .geff is a folder, which may be there."""

    __slots__ = ()

    def written(self, args: argparse.Namespace) -> list[str]:
        """The file."""
        if self.lower().endswith(".geff") and Path(self).is_dir():
            return [str(self)]
        return super().written(args)


def write_tracks(result: TrackingResult, path: str) -> None:
    """Write tracks as what the name of the file ends in."""
    from trellis.tracking import write_geff, write_trackmate

    if path.lower().endswith(".geff"):
        write_geff(result, path)
    elif path.lower().endswith(".xml"):
        write_trackmate(result, path)
    else:
        result.write(path)


def opened(args: argparse.Namespace, file: str) -> ReadText | str:
    """The text of a file, read once, in the encoding of the options; the name of a folder."""
    if file != "-" and Path(file).is_dir():
        return file
    if args.encoding is not None:
        return recoded(file, args.encoding)
    return Input(file)


def read_objects(
    args: argparse.Namespace,
    objects: ReadText | str,
    links: str | None = None,
    *,
    complete: bool = True,
) -> list[FramePair]:
    """Objects, and maybe links, as pairs of frames."""
    from trellis.tracking import read_detections

    if not isinstance(objects, str):
        objects.seek(0)
    more = {} if args.ignore is None else {"ignore": ("track", *args.ignore)}
    try:
        return read_detections(
            objects, None if links is None else opened(args, links), complete=complete,
            columns=args.columns, **more,
        )  # fmt: skip
    except DataError as error:
        if str(error).endswith(NOT_UTF8):
            raise DataError(f"{error}, or name its encoding: --encoding cp1252") from None
        raise


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _mapping(text: str) -> dict[str, str]:
    """Names and columns of ``name=column,...``."""
    columns: dict[str, str] = {}
    for part in _names(text):
        name, sign, column = (piece.strip() for piece in part.partition("="))
        if not sign or not name or not column:
            raise argparse.ArgumentTypeError(
                f"{part!r} is not NAME=COLUMN, such as frame=FRAME (or x=POSITION_X)"
            )
        if name in columns:
            raise argparse.ArgumentTypeError(f"{name!r} is said twice")
        columns[name] = column
    return columns
