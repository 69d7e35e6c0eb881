"""``trellis demo``: one page that shows what Trellis does, made live."""

from __future__ import annotations

import argparse
import logging
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING

from trellis.cli.named_files import OutputFolder
from trellis.cli.output import say, write_stdout
from trellis.cli.parameters import add_number

if TYPE_CHECKING:
    from trellis.demo.page import Made

NAME = "demo"
HELP = "a page that shows what Trellis does, made live in a minute, no data needed"
DESCRIPTION = """\
Make one page, OUT/index.html, that shows what Trellis does: text without spaces, cells that
divide, several systems combined, numbers on a map, labelling less, and how fast it is. All of it is
computed now, on data that every machine has; a double click opens the page, and it needs no
network. What it found is also printed.

  trellis demo
  trellis demo --panels words,map --out /tmp/demo --open
"""


class _Page(OutputFolder):
    names = ("index.html",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    from trellis.demo import PANELS

    parser.add_argument(
        "--out",
        type=_Page,
        default="demo",
        metavar="OUT",
        help="folder for the page (default: demo)",
    )
    parser.add_argument(
        "--panels",
        type=_panels,
        default=list(PANELS),
        metavar="NAMES",
        help=f"which to make, with commas between them (default: {','.join(PANELS)})",
    )
    add_number(parser, "--seed", 0, "of the random numbers", 0)
    parser.add_argument("--open", action="store_true", help="open the page in the browser")


def _panels(text: str) -> list[str]:
    """Names of panels, each once."""
    from trellis.demo import PANELS

    names = list(dict.fromkeys(text.replace(" ", "").split(",")))
    for name in names:
        if name not in PANELS:
            raise argparse.ArgumentTypeError(
                f"there is no panel {name!r}; there are {', '.join(PANELS)}"
            )
    return names


def run(args: argparse.Namespace) -> int:
    """Compile, make the panels, write the page, print what they found."""
    from trellis.demo.page import compile_kernels, make_page, make_panels
    from trellis.files import atomic_write

    path = Path(args.out) / "index.html"
    path.parent.mkdir(parents=True, exist_ok=True)  # now, lest the work is done for nothing
    logging.getLogger("trellis").setLevel(logging.ERROR)  # the line below says it already
    say("preparing kernels (half a minute, once for a machine) ...")
    started = time.perf_counter()
    with args.reporter.stage("compiling kernels"):
        compiling = compile_kernels(args.panels)
    say(f"... ready after {compiling:.1f} s")
    with args.reporter.steps("panel", len(args.panels)) as steps:
        done: list[Made] = []

        def told(made: Made) -> None:
            done.append(made)
            steps.at(len(done), made.title)
            say(f"{made.title}: {made.seconds:.1f} s")

        panels = make_panels(args.panels, args.seed, told)
    seconds = time.perf_counter() - started
    with atomic_write(path, binary=False) as file:
        file.write(make_page(panels, seconds, compiling))
    write_stdout("\n".join(map(_paragraph, panels)) + "\n")
    say(f"made in {seconds:.0f} s; open it in a browser: {path.resolve()}")
    if args.open:
        import webbrowser

        webbrowser.open(path.resolve().as_uri())
    return 1 if any(panel.error for panel in panels) else 0


def _paragraph(panel: Made) -> str:
    """What a panel found, for the terminal."""
    text = textwrap.fill(panel.summary, 92, initial_indent="  ", subsequent_indent="  ")
    return f"{panel.title}\n{text}\n"
