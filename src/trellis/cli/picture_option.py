"""The option ``--plot``: a picture of what a command does, refused before the work if ever."""

from __future__ import annotations

from typing import Any

from trellis.cli.named_files import OutputFile
from trellis.errors import DataError
from trellis.pictures.style import SUFFIXES, check_matplotlib

__all__ = ["PictureFile", "add_picture_argument"]


class PictureFile(OutputFile):
    """A picture to write."""

    __slots__ = ()

    def check(self) -> None:
        """Refuse names of other files, and all without matplotlib."""
        if not self.lower().endswith(SUFFIXES):
            raise DataError(f"--plot {self}: expected a name that ends in {', '.join(SUFFIXES)}")
        check_matplotlib("--plot needs")


def add_picture_argument(parser: Any, what: str) -> None:
    """Add ``--plot``, which draws this to a file."""
    parser.add_argument(
        "--plot",
        type=PictureFile,
        metavar="PICTURE",
        help=f"draw {what}: .png, .svg or .pdf (needs matplotlib)",
    )
