"""``trellis reproduce``: the studies of the repository, if they are there.

The wheel holds the library, the repository holds the studies: everything after the name of this
command is passed on to :mod:`studies.command`, which is looked for beside the source tree of a
checkout first and then wherever Python looks for packages.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from typing import Any

from trellis.errors import DataError

NAME = "reproduce"
HELP = "repeat the experiments of a paper (in a checkout)"
DESCRIPTION = """\
Repeat the experiments behind a part of Trellis. The studies live in the repository: in a checkout

  trellis reproduce --help

names them and their options.
"""
ROOT = Path(__file__).parents[3]
"""Folder of the checkout, if the library is not installed elsewhere."""


def run(args: argparse.Namespace) -> int:
    """Pass on what the parser has left over."""
    code: int = _studies().main(args.rest)
    return code


def _studies() -> Any:
    """The command line of the studies."""
    if (ROOT / "studies" / "command.py").is_file() and str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    try:
        return importlib.import_module("studies.command")
    except ModuleNotFoundError as error:
        if error.name not in ("studies", "studies.command"):
            raise
    raise DataError(
        "studies live in the repository of Trellis, not in the installed library: in a checkout of "
        "it run 'python -m studies NAME'"
    )
