"""The command line of the studies: which there are, how much of one to run, and where to."""

from __future__ import annotations

import argparse
import sys
import textwrap
import warnings
from collections.abc import Sequence

from studies import STUDIES, render, reproduce
from trellis.cli.output import write_stdout
from trellis.cli.tune import deaf_workers
from trellis.errors import DataError

__all__ = ["main", "parser"]

_ABOUT = "\n\n".join(
    textwrap.fill(
        about, 100, initial_indent=f"  {name:26}", subsequent_indent=" " * 28,
        break_on_hyphens=False,
    )
    for name, about in STUDIES.items()
)  # fmt: skip
_DESCRIPTION = f"""\
Repeat the experiments behind a part of Trellis. Writes figures, report.md and results.json to DIR.

{_ABOUT}

  python -m studies structure-regularisation --quick --out quick
  python -m studies structure-regularisation --out reproduction
  python -m studies structure-regularisation --full --out full
  trellis reproduce structures --out structures

'trellis reproduce' and 'python -m studies' are the same. Every finished computation is kept in
DIR/log.jsonl: with --resume the same command goes on where it was interrupted.
"""


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(
        prog="python -m studies",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument(
        "study", choices=tuple(STUDIES), metavar="STUDY", help=", ".join(STUDIES),
    )  # fmt: skip
    size = top.add_mutually_exclusive_group()
    size.add_argument(
        "--quick", action="store_true", help="small parts of the data, a minute or so"
    )
    size.add_argument("--full", action="store_true", help="the paper's whole protocol, hours")
    top.add_argument(
        "--out", default="reproduction", metavar="DIR",
        help="folder for the results (default: reproduction)",
    )  # fmt: skip
    top.add_argument(
        "--tasks", type=_names, metavar="TASK,...",
        help="tasks to run (default: all; with --quick those whose data are there)",
    )  # fmt: skip
    top.add_argument(
        "--jobs", type=int, metavar="K", help="computations at once (default: one a processor)"
    )
    top.add_argument("--resume", action="store_true", help="go on from the log in DIR")
    top.add_argument(
        "--markdown-only", action="store_true",
        help="compute nothing: write report.md and results.json again from the log in DIR",
    )  # fmt: skip
    top.add_argument("--no-figures", action="store_true", help="do not draw figures")
    top.add_argument("--quiet", action="store_true", help="no line for each computation")
    return top


def main(arguments: Sequence[str]) -> int:
    """Compute what is missing, write everything, say where it is."""
    args = parser().parse_args(arguments)
    if args.jobs is not None and args.jobs < 1:
        raise DataError(f"--jobs must be at least 1, got {args.jobs}")
    if args.markdown_only:
        render(args.study, args.out, figures=False)
        write_stdout(f"report.md and results.json are in {args.out}\n")
        return 0
    try:
        with warnings.catch_warnings(), deaf_workers():
            # How many fits it gives up when interrupted is of no interest.
            warnings.filterwarnings("ignore", category=UserWarning, module="joblib")
            reproduce(
                args.study,
                args.out,
                protocol="quick" if args.quick else "full" if args.full else "default",
                tasks=args.tasks,
                n_jobs=args.jobs,
                resume=args.resume,
                figures=not args.no_figures,
                verbose=not args.quiet,
            )
    except KeyboardInterrupt:
        print(
            f"trellis: interrupted; what was finished is in {args.out}: the same command with "
            "--resume goes on from it",
            file=sys.stderr,
        )
        return 130
    drawn = "" if args.no_figures else ", figures"
    write_stdout(f"report.md, results.json{drawn} are in {args.out}\n")
    return 0


def _names(text: str) -> list[str]:
    """Names between commas."""
    return [part.strip() for part in text.split(",") if part.strip()]
