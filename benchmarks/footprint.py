"""Bytes a token of an encoded corpus, against python-crfsuite's feature dicts; import times.

python -m benchmarks.footprint
"""

from __future__ import annotations

import subprocess
import sys
import time
import tracemalloc

from benchmarks.crfsuite_chunking import attributes, read
from benchmarks.side_by_side import table
from studies.datasets import data_folder
from trellis import read_conll
from trellis.features import TemplateEncoder, as_templates


def seconds(*command: str) -> float:
    """Best of five wall times of a command."""
    best = float("inf")
    for _ in range(5):
        started = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        best = min(best, time.perf_counter() - started)
    return best


def main() -> None:
    folder = data_folder("conll2000")
    corpus = read_conll(folder / "train.txt.xz", ["word", "pos", "chunk"], "chunk")
    encoder = TemplateEncoder(as_templates("chunking", list(corpus.columns)))
    encoded = encoder.learn(corpus)
    n = corpus.n_positions
    sentences = read(folder / "train.txt.xz")[:2000]
    tokens = sum(len(s) for s in sentences)
    tracemalloc.start()
    dicts = [[dict.fromkeys(here, 1.0) for here in attributes(s)] for s in sentences]
    in_dicts = tracemalloc.get_traced_memory()[0] / tokens
    del dicts
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    lists = [attributes(s) for s in sentences]
    in_lists = (tracemalloc.get_traced_memory()[0] - before) / tokens
    del lists
    tracemalloc.stop()
    per_token = len(encoded.indices) / n
    print(f"CoNLL-2000, {per_token:.1f} features a token\n")
    rows = [
        ["Trellis, columns and labels as read", f"{corpus.nbytes / n:.0f}"],
        ["Trellis, encoded features", f"{encoded.nbytes / n:.0f}"],
        ["attribute lists, as python-crfsuite takes them", f"{in_lists:.0f}"],
        ["feature dicts, as python-crfsuite takes them", f"{in_dicts:.0f}"],
    ]
    print(table(["what", "bytes a token"], rows))
    base = seconds(sys.executable, "-c", "pass")
    rows = [
        ["import trellis", f"{seconds(sys.executable, '-c', 'import trellis') - base:.3f}"],
        ["trellis --help", f"{seconds(sys.executable, '-m', 'trellis', '--help'):.3f}"],
    ]
    print(f"\nbest of five (Python itself takes {base:.3f} s)\n")
    print(table(["what", "seconds"], rows))


if __name__ == "__main__":
    main()
