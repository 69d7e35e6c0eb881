"""Entry point: parses the command line, runs a command, turns errors into one line and a code.

Exit codes: 0 done, 1 something about the data, a file or a model, 2 a wrong command line,
130 interrupted.
"""

from __future__ import annotations

import argparse
import logging
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from trellis import __version__
from trellis.cli import (
    combine,
    compress,
    demo,
    evaluate,
    export,
    inspect_model,
    prepare,
    regress,
    reproduce,
    tag,
    track,
    train,
    tune,
    warm,
)
from trellis.cli.named_files import check_files
from trellis.cli.output import flush_stdout, visible
from trellis.errors import TrellisError
from trellis.interrupts import interrupts
from trellis.progress import Reporter, write_line

__all__ = ["main"]

# Help is plain ASCII: it must print on any terminal.
_DESCRIPTION = """\
Structured prediction: names and tags of words, words of text without spaces, labels on trees and
graphs, tracks of cells, numbers on maps, and answers of several systems combined.

A first round, from a column file (one token a line, blank line after a sentence):

  trellis train train.txt --columns word,pos,chunk --features chunking -o chunk.trellis
  trellis tag chunk.trellis new.txt > tagged.txt
  trellis eval --model chunk.trellis test.txt

'trellis demo' shows on one page what Trellis does, in a minute, without any data;
'trellis COMMAND --help' explains a command.
"""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors can be shown, whatever the names of files hold."""

    def error(self, message: str) -> NoReturn:
        super().error(visible(message))


class _Command(_Parser):
    """A command, whose arguments are added when they are needed.

    They come from estimators, and no command should wait for the import of the others'.
    """

    module: Any = None

    def _complete(self) -> None:
        module, self.module = self.module, None
        if hasattr(module, "add_arguments"):
            module.add_arguments(self)

    def parse_known_args(self, *args: Any, **kwargs: Any) -> Any:
        self._complete()
        return super().parse_known_args(*args, **kwargs)

    def format_help(self) -> str:
        self._complete()
        return super().format_help()


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = _Parser(
        prog="trellis",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"trellis {__version__}")
    commands = top.add_subparsers(
        title="commands", metavar="COMMAND", required=True, parser_class=_Command
    )
    for module in (
        train, prepare, tune, tag, evaluate, inspect_model, compress, export, combine, regress,
        track, demo, reproduce, warm,
    ):  # fmt: skip
        command = commands.add_parser(
            module.NAME,
            help=module.HELP,
            description=module.DESCRIPTION,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            add_help=module is not reproduce,  # the studies have a help of their own
        )
        command.module = module
        command.set_defaults(run=module.run, name=module.NAME)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    try:
        with _log_on_stderr(), interrupts():
            code: int = _parse(argv)
        return code
    except TrellisError as error:
        return _fail(str(error))
    except BrokenPipeError:
        return 0  # the reader of our output has gone (e.g. `| head`): that is its right
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        return _fail(f"{name}{error.strerror or error}")
    except MemoryError:
        return _fail("not enough memory for this")
    except KeyboardInterrupt:
        print("trellis: interrupted", file=sys.stderr)
        return 130


def _parse(argv: Sequence[str] | None) -> int:
    top = parser()
    if not (sys.argv[1:] if argv is None else argv):  # who types the name alone wants to know more
        top.print_help()
        flush_stdout()
        return 0
    try:
        args, rest = top.parse_known_args(argv)
        if rest and args.run is not reproduce.run:
            top.error(f"unrecognized arguments: {' '.join(rest)}")
        check_files(args)
        reporter = _new_reporter(args)
        if reporter.shown:
            logging.getLogger("trellis").setLevel(logging.INFO)
        with reporter.stage(f"trellis {args.name}"):  # unless a command says more
            code: int = args.run(argparse.Namespace(**vars(args), rest=rest, reporter=reporter))
    except SystemExit:  # after --help or --version
        flush_stdout()
        raise
    return code


def _new_reporter(args: argparse.Namespace) -> Reporter:
    """Who shows the progress of a command: on a terminal unless --quiet, elsewhere if asked."""
    terminal = sys.stderr is not None and sys.stderr.isatty()
    quiet, always = (getattr(args, name, False) for name in ("quiet", "progress"))
    return Reporter(always or (terminal and not quiet))


@contextmanager
def _log_on_stderr() -> Iterator[None]:
    """Show the library's log above bars: notes as they are, warnings with the program's name."""

    class AboveBars(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            mark = "" if record.levelno <= logging.INFO else "trellis: "
            if sys.stderr is not None and not hasattr(record, "reported"):
                write_line(mark + visible(record.getMessage()), sys.stderr)

    logger = logging.getLogger("trellis")
    handlers, propagate, level = logger.handlers, logger.propagate, logger.level
    logger.handlers = [AboveBars()]
    logger.propagate = False
    logger.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: logger.warning("%s", message)
            yield
    finally:  # main() may be called from a program with a log of its own
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


def _fail(message: str) -> int:
    print(f"trellis: error: {visible(' '.join(message.splitlines()))}", file=sys.stderr)
    return 1
