"""The files that a command line names: which are read, which are written, and that none is both.

Every option that names a file says by its ``type`` what the command does with it. Before a command
is run, all that its command line names are compared (:func:`check_files`): by what they are, not by
how they are written, so that ``./x``, links and standard input from a file are seen through. No
command can forget it, and nothing has been read by then.
"""

from __future__ import annotations

import argparse
import os
import stat
import sys
import unicodedata
from collections.abc import Iterator
from itertools import combinations, product
from pathlib import Path

from trellis.errors import DataError

__all__ = [
    "DictionaryFile",
    "InputFile",
    "NamedFile",
    "OutputFile",
    "OutputFolder",
    "ReplacedFile",
    "TemplatesText",
    "TrainedModel",
    "check_files",
]


class NamedFile(str):
    """What a command line says of a file: text with a role."""

    __slots__ = ()

    def read(self) -> list[str]:
        """The files that are read, ``"-"`` for standard input."""
        return []

    def written(self, args: argparse.Namespace) -> list[str]:
        """The files that are written; refuses what cannot be."""
        return []

    def check(self) -> None:
        """Refuse what cannot be done with the file, once all files are told apart."""


class InputFile(NamedFile):
    """A file to read, or ``-`` for standard input."""

    __slots__ = ()

    def read(self) -> list[str]:
        """The file."""
        return [str(self)]


class ReplacedFile(InputFile):
    """A file to read that the result may take the place of: a model that is trained further."""

    __slots__ = ()


class TemplatesText(NamedFile):
    """Templates, or ``@`` and the name of a file with them."""

    __slots__ = ()

    def read(self) -> list[str]:
        """The file after ``@``."""
        return [self[1:]] if self.startswith("@") else []


class DictionaryFile(NamedFile):
    """NAME=FILE, where the file has one entry of a dictionary a line."""

    __slots__ = ()

    def __new__(cls, text: str) -> DictionaryFile:
        """Refuse what lacks one of the two."""
        name, equals, file = text.partition("=")
        if not (name and equals and file):
            raise argparse.ArgumentTypeError(
                f"expected NAME=FILE, such as cities=cities.txt, got {text!r}"
            )
        return super().__new__(cls, text)

    @property
    def name(self) -> str:
        """What templates call the dictionary."""
        return self.partition("=")[0]

    def read(self) -> list[str]:
        """The file."""
        return [self.partition("=")[2]]


class OutputFile(NamedFile):
    """A file to write."""

    __slots__ = ()

    def written(self, args: argparse.Namespace) -> list[str]:
        """The file."""
        _check_target(self)
        return [str(self)]


class TrainedModel(OutputFile):
    """A model to write, and beside it the checkpoint of its training."""

    __slots__ = ()

    @property
    def checkpoint(self) -> str:
        """The name of the checkpoint."""
        return f"{self}.checkpoint"

    def written(self, args: argparse.Namespace) -> list[str]:
        """Both files, unless no checkpoint is wanted."""
        model = super().written(args)
        if args.no_checkpoint:
            return model
        _check_target(self.checkpoint)
        return [*model, self.checkpoint]


class OutputFolder(NamedFile):
    """A folder to write to; a subclass says which files."""

    __slots__ = ()
    names: tuple[str, ...] = ()
    """The files that the command writes; ``*`` stands for a folder with a name from the data."""

    def written(self, args: argparse.Namespace) -> list[str]:
        """The files; where a name is still unknown, those that are there."""
        folder = Path(self)
        if folder.exists() and not folder.is_dir():
            raise DataError(f"{self} is a file; name a folder to write to")
        paths = [folder.glob(name) if "*" in name else [folder / name] for name in self.names]
        return [str(path) for places in paths for path in places]


def check_files(args: argparse.Namespace) -> None:
    """Refuse impossible outputs, outputs that are inputs, and one output named twice.

    What else files need is asked last.

    Raises
    ------
    DataError
        With the name of the file.
    """
    files = list(_named(args))
    if [name for file in files for name in file.read()].count("-") > 1:
        raise DataError("standard input can be one file only; name the others")
    written = [file.written(args) for file in files]
    for file in files:
        for name in file.read():
            said = "standard input" if name == "-" else name
            for other, targets in zip(files, written, strict=True):
                for target in targets:
                    model = isinstance(other, TrainedModel) and target == other
                    replaced = isinstance(file, ReplacedFile) and model
                    if _is_same(name, target) and not replaced:
                        raise DataError(
                            f"{target} would be written over {said}, which is read; name another "
                            "file to write"
                        )
            if _is_standard_output(name):
                raise DataError(
                    f"standard output goes to {said}, which is read; send it to another file"
                )
    for before, after in combinations(written, 2):
        for name, earlier in product(after, before):
            if _place(name) == _place(earlier) or _is_same(name, earlier):
                raise DataError(
                    f"{name} would be written twice; each result needs a file of its own"
                )
    for file in files:
        file.check()


def _named(args: argparse.Namespace) -> Iterator[NamedFile]:
    for value in vars(args).values():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, NamedFile):
                yield item


def _check_target(path: str) -> None:
    """Refuse an impossible output file before the work, not after."""
    target = Path(path)
    if path in ("", "-"):
        raise DataError(f"{path!r} is no name of a file to write (./- would be one)")
    if target.is_dir():
        raise DataError(f"{path} is a folder; name a file to write")
    if target.exists() and not target.is_file():
        raise DataError(f"{path} is not a regular file; name a file to write")
    if not target.absolute().parent.is_dir():
        raise DataError(f"cannot write {path}: the folder {target.parent} does not exist")


def _is_same(name: str, target: str) -> bool:
    """Whether two names stand for one file; one that does not exist is no other."""
    try:
        return os.path.samestat(_status(name), os.stat(target))  # noqa: PTH116 (as it is given)
    except (OSError, ValueError, AttributeError):
        return name != "-" and os.path.realpath(name) == os.path.realpath(target)


def _status(name: str) -> os.stat_result:
    if name == "-":
        return os.fstat(sys.stdin.fileno() if sys.stdin is not None else 0)
    return os.stat(name)  # noqa: PTH116 (as it is given)


def _is_standard_output(name: str) -> bool:
    """Whether what a command prints is added to this file."""
    try:
        status = os.fstat(sys.stdout.fileno())
        return stat.S_ISREG(status.st_mode) and os.path.samestat(_status(name), status)
    except (OSError, ValueError, AttributeError):  # none, or replaced by something without a file
        return False


def _place(name: str) -> str:
    """Where a file will be; alike for names that some systems do not tell apart."""
    return unicodedata.normalize("NFC", os.path.realpath(name)).casefold()
