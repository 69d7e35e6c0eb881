"""Entry point: parses the command line, runs a command, turns errors into one line and a code.

Exit codes: 0 done, 1 something about the data, a file or a model, 2 a wrong command line,
130 interrupted.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence

from trellis import __version__
from trellis.cli import demo, evaluate, inspect_model, tag, train, warm

__all__ = ["main"]

_DESCRIPTION = """\
Structured prediction: label the parts of sequences, learned from examples.

A first round, from a column file (one token a line, blank line after a sentence):

  trellis train train.txt --columns word,pos,chunk --features chunking -o chunk.trellis
  trellis tag chunk.trellis new.txt > tagged.txt
  trellis eval --model chunk.trellis test.txt

'trellis COMMAND --help' explains a command; 'trellis demo' shows what it does on Python's own
source code, without any data.
"""


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(
        prog="trellis",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"trellis {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in (train, tag, evaluate, inspect_model, demo, warm):
        command = commands.add_parser(
            module.NAME,
            help=module.HELP,
            description=module.DESCRIPTION,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    args = parser().parse_args(argv)
    _log_to_stderr()
    from trellis.errors import TrellisError

    try:
        code: int = args.run(args)
        sys.stdout.flush()
        return code
    except TrellisError as error:
        return _fail(str(error))
    except BrokenPipeError:
        # The reader of our output has gone (e.g. `| head`): that is its right.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        return _fail(f"{name}{error.strerror or error}")
    except KeyboardInterrupt:
        print("trellis: interrupted", file=sys.stderr)
        return 130


def _log_to_stderr() -> None:
    """Show the library's log: progress as it is, warnings with the program's name."""

    class Plain(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            mark = "" if record.levelno <= logging.INFO else "trellis: "
            return mark + record.getMessage()

    logger = logging.getLogger("trellis")
    logger.handlers = [logging.StreamHandler(sys.stderr)]
    logger.handlers[0].setFormatter(Plain())
    logger.propagate = False
    logger.setLevel(logging.WARNING)


def _fail(message: str) -> int:
    print(f"trellis: error: {message}", file=sys.stderr)
    return 1
