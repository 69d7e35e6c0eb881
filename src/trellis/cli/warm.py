"""``trellis warmup``: compile the kernels now instead of at first use."""

from __future__ import annotations

import argparse
import logging
import time

from trellis.cli.output import say

NAME = "warmup"
HELP = "compile the kernels ahead of first use"
DESCRIPTION = """\
Compile all kernels for this machine now, so that no later run pauses for it. The code is kept in
the user's cache folder (or in $TRELLIS_CACHE) until Trellis, Numba or Python change.

  trellis warmup
  TRELLIS_CACHE=/var/cache/trellis trellis warmup    # e.g. when building an image
"""


def run(args: argparse.Namespace) -> int:
    """Compile everything."""
    from trellis.warmup import warmup

    started = time.perf_counter()
    say("trellis: preparing kernels (some minutes, unless it is done)")
    logging.getLogger("trellis").setLevel(logging.ERROR)  # the line above says it already
    with args.reporter.stage("compiling kernels"):
        warmup()
    say(f"trellis: kernels ready ({time.perf_counter() - started:.1f} s)")
    return 0
