"""The attack on model files made on python-crfsuite, for comparison: not one of Trellis.

``python -m fuzz.crfsuite_model_files --cases 1000`` (extra «bench»). Its model files have no
checksum, so that there is damage of bytes only. Each mutant is loaded, and tags, in a process of
its own: «crashed» (killed by a signal), «hung», «refused», «used» with the labels of the model that
was saved, and «changed»: used, with other labels and without a word.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from fuzz.damage import damaged
from fuzz.every_model import TAGS, WORDS

__all__ = ["main"]

_PATIENCE = 10.0  # seconds


def _train(path: Path) -> bytes:
    import pycrfsuite

    trainer = pycrfsuite.Trainer(verbose=False)
    for words, tags in zip(WORDS, TAGS, strict=True):
        trainer.append([[f"w={word}", f"n={len(word)}"] for word in words], tags)
    trainer.train(str(path))
    return path.read_bytes()


def _tagged(path: Path) -> list[list[str]]:
    import pycrfsuite

    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    return [tagger.tag([[f"w={word}", f"n={len(word)}"] for word in words]) for words in WORDS]


def _outcome(path: Path, expected: list[list[str]]) -> str:
    """Load and tag in a child of this process."""
    child = os.fork()
    if child == 0:
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        try:
            os._exit(0 if _tagged(path) == expected else 3)
        except Exception:
            os._exit(4)
    end = time.monotonic() + _PATIENCE
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "hung"
        time.sleep(0.001)
    if os.WIFSIGNALED(status):
        return f"crashed, {signal.Signals(os.WTERMSIG(status)).name}"
    words = {0: "used", 3: "changed", 4: "refused"}
    return words.get(os.WEXITSTATUS(status), "crashed, exit")


def main() -> int:
    """Run the cases and print the counts."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.crfsuite_model_files")
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        data = _train(path)
        expected = _tagged(path)
        for i in range(args.cases):
            path.write_bytes(damaged(data, [data], random.Random(f"{args.seed} {i}")))
            counts[_outcome(path, expected)] += 1
    crashed = sum(n for word, n in counts.items() if word.startswith("crashed"))
    words = ", ".join(f"{n:,} {word}" for word, n in sorted(counts.items()))
    print(f"python-crfsuite: {args.cases:,} damaged files: {crashed:,} crashed ({words})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
