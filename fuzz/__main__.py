"""Attack Trellis for a while: ``python -m fuzz [ATTACK …] --minutes 10``, or one case of it."""

from __future__ import annotations

import argparse
import importlib
import sys

import numpy as np

from fuzz import ATTACKS
from fuzz.watch import run_attack


def main() -> int:
    """Run the attacks and print what came of them; 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("attacks", nargs="*", metavar="ATTACK", help=f"of {', '.join(ATTACKS)}")
    parser.add_argument("--minutes", type=float, help="for all of them together (default: 10)")
    parser.add_argument("--cases", type=int, help="so many of each, whatever time it takes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--case", type=int, help="run this one here, with its traceback")
    args = parser.parse_args()
    names = args.attacks or list(ATTACKS)
    if unknown := sorted(set(names) - set(ATTACKS)):
        parser.error(f"no attack {unknown[0]}; there are {', '.join(ATTACKS)}")
    if args.case is not None:
        for name in names:
            case = importlib.import_module(f"fuzz.{name}").cases()
            print(f"{name}: {case(np.random.default_rng([args.seed, args.case]))}")
        return 0
    minutes = args.minutes if args.minutes or args.cases else 10.0
    failed = False
    for name in names:
        share = None if minutes is None else minutes / len(names)
        report = run_attack(
            name, seed=args.seed, first=args.first, n_cases=args.cases, minutes=share
        )
        print(report.summary(), flush=True)
        failed = failed or bool(report.failures)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
