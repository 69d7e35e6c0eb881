"""The process that an attack runs in: it may crash, hang or be killed, and is watched from outside.

It tells :mod:`fuzz.watch` through two files: ``mark``, eight bytes with the number of the case that
it is at, and what was standard output when it began, which gets a line of JSON for each failure and
now and then one with the counts. What cases print goes to standard error.
"""

from __future__ import annotations

import importlib
import json
import mmap
import os
import resource
import sys
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from trellis.errors import TrellisError

__all__ = ["outcome"]


def outcome(case: Any, seed: int, number: int) -> tuple[str, dict[str, Any] | None]:
    """Run one case; return the word for what came of it, and what is known of a failure."""
    rng = np.random.default_rng([seed, number])
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return str(case(rng)), None
    except TrellisError:
        return "refused", None
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        inside = [f for f in frames if "/trellis/" in f.filename] or frames
        place = f"{Path(inside[-1].filename).name}:{inside[-1].lineno}"
        text = " ".join(str(error).split())[:300]
        return "failed", {"case": number, "error": type(error).__name__, "at": place, "text": text}


def main(attack: str, seed: int, first: int, last: int, seconds: float, mark: str) -> None:
    """Run the cases first … last − 1, or as many as fit into the seconds."""
    # Room for honest work; what wants more is an attack on memory and gets a MemoryError.
    resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def tell(**message: Any) -> None:
        lines.write(json.dumps(message) + "\n")
        lines.flush()

    case = importlib.import_module(attack).cases()
    counts: Counter[str] = Counter()
    end = time.monotonic() + seconds
    with Path(mark).open("r+b") as file:
        place = mmap.mmap(file.fileno(), 8)
        number = first
        while number < last and time.monotonic() < end:
            place[:8] = number.to_bytes(8, "little")
            word, failure = outcome(case, seed, number)
            counts[word] += 1
            if failure is not None:
                tell(failure=failure)
            number += 1
            if number % 100 == 0:  # what is counted so far outlives the process
                tell(counts=counts, next=number)
                counts = Counter()
        tell(counts=counts, next=number)


if __name__ == "__main__":
    attack, seed, first, last, seconds, mark = sys.argv[1:]
    main(attack, int(seed), int(first), int(last), float(seconds), mark)
