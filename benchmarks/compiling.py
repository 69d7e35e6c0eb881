"""What compiling kernels takes at first use, with an empty cache.

    python -m benchmarks.compiling           # some minutes

Each row is a Python of its own that begins with an empty cache of kernels: CPU seconds, those of
the processes that it starts among them, and wall seconds, from its start to its end.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time

from benchmarks.options import begin
from benchmarks.side_by_side import Seconds, Table

CHAIN = """
from trellis import ChainCRF
X, y = [list("abc"), list("de")], [list("xyx"), list("yx")]
features = "char[-2..2]; char[-1..0] & char[0..1]"
ChainCRF(features, columns=["char"], max_passes=1{options}).fit(X, y).predict(X)
"""
PARTS = "from trellis import warmup as w; w.warmup([{names}])"
DEMO = (
    "training", "features", "inference", "gradient", "perceptrons", "assignments", "experts",
)  # fmt: skip
ROWS = {
    "import trellis.models": "import trellis.models",
    "ChainCRF, fit and predict": CHAIN.format(options=""),
    "ChainCRF, rich edges": CHAIN.format(options=", rich_edges=True"),
    "parts of the demo": PARTS.format(names=", ".join(f"w.warm_{name}" for name in DEMO)),
    "all of warmup": "from trellis.warmup import warmup; warmup()",
}
SMALL = {
    "import trellis.models": ROWS["import trellis.models"],
    "parts of the demo": PARTS.format(names="w.warm_experts"),
}


def run(code: str) -> tuple[float, float]:
    """CPU and wall seconds of a program that finds no compiled kernels."""
    with tempfile.TemporaryDirectory() as folder:
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "TRELLIS_CACHE": folder},
            stderr=subprocess.DEVNULL,
            check=True,
        )
        wall = time.perf_counter() - start
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, wall


def main() -> None:
    args = begin(__doc__, pin=False, rounds=(3, 1))
    table = Table("Kernels compiled at first use, from an empty cache", "what", "CPU s", "wall s")
    for name, code in (SMALL if args.small else ROWS).items():
        cpu, wall = (
            Seconds(row) for row in zip(*(run(code) for _ in range(args.rounds)), strict=True)
        )
        table.add(name, cpu, wall)
    table.show()


if __name__ == "__main__":
    main()
