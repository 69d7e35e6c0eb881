"""What every benchmark begins with: its options, small mode, one core, compiled kernels.

Each option is declared once, with its usual value and that of small mode. Small mode is for seeing
that a benchmark still works, in seconds and on any machine: it runs the same code at small sizes on
generated stand-ins for the real data, and its figures mean nothing. ``--record`` keeps the figures
of a usual run (:mod:`benchmarks.records`).
"""

from __future__ import annotations

import argparse
import os
from typing import Any

from benchmarks import records
from trellis.warmup import warmup


def begin(doc: str | None, *, pin: bool = True, **choices: tuple[Any, ...]) -> argparse.Namespace:
    """Read the options and make the process ready; ``pin`` it to one core, unless in small mode.

    A choice is an option's usual value, its value in small mode, and maybe a word of help. A truth
    value makes a flag, a list takes several values.
    """
    # Options are not abbreviated, so that the command on record is one that others can read.
    first = (doc or "").partition("\n")[0]
    parser = argparse.ArgumentParser(description=first, allow_abbrev=False)
    parser.add_argument("--small", action="store_true", help="does it work? seconds, no real data")
    parser.add_argument("--record", action="store_true", help="keep the figures, for the page")
    for name, (usual, _, *told) in choices.items():
        flag = "--" + name.replace("_", "-")
        text = "; ".join([*told, f"default: {usual}"])
        if isinstance(usual, bool):
            parser.add_argument(flag, action="store_true", default=None, help=told[0])
        elif isinstance(usual, list):
            parser.add_argument(flag, type=type(usual[0]), nargs="*", help=text)
        else:
            parser.add_argument(flag, type=type(usual), help=text)
    args = parser.parse_args()
    if args.small and args.record:
        parser.error("--record keeps no figures of --small, which mean nothing: leave one out")
    given = {}
    for name, (usual, small, *_) in choices.items():
        if getattr(args, name) is None:
            setattr(args, name, small if args.small else usual)
        elif getattr(args, name) != usual:
            given[name] = getattr(args, name)
    if args.small:
        from benchmarks.stand_ins import stand_ins  # else it would count in a peak of memory

        os.environ["TRELLIS_DATA"] = stand_ins()
        return args
    warmup()
    if args.record:
        records.begin(given)
    if pin and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    return args
