"""Bytes a token of an encoded corpus, against python-crfsuite's feature dicts; import times.

    python -m benchmarks.footprint

Strings of attributes carry the names of features along; Trellis has them once, in the encoder.
"""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.crfsuite import attributes, read
from benchmarks.options import begin
from benchmarks.side_by_side import Table, alternate
from studies.datasets import data_folder
from trellis import read_conll
from trellis.features import Encoded, TemplateEncoder, as_templates


def size(make: Callable[[], Any]) -> int:
    """Bytes of what is made."""
    tracemalloc.start()
    made = make()
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del made
    return taken


def main() -> None:
    args = begin(__doc__, sentences=(2000, 50, "given to Python objects"), rounds=(5, 1))
    path = data_folder("conll2000") / "train.txt.xz"
    corpus = read_conll(path, ["word", "pos", "chunk"], "chunk")
    n = corpus.n_positions

    def learn() -> tuple[TemplateEncoder, Encoded]:
        encoder = TemplateEncoder(as_templates("chunking", list(corpus.columns)))
        return encoder, encoder.learn(corpus)

    _, encoded = learn()
    sentences = read(path)[: args.sentences]
    tokens = sum(len(s) for s in sentences)
    lists = size(lambda: [attributes(s) for s in sentences])
    dicts = size(lambda: [[dict.fromkeys(t, 1.0) for t in attributes(s)] for s in sentences])
    title = f"CoNLL-2000, {len(encoded.indices) / n:.1f} features a token"
    table = Table(title, "what", "bytes a token")
    table.add("Trellis, columns and labels as read", corpus.nbytes / n)
    table.add("Trellis, encoded features", encoded.nbytes / n)
    table.add("Trellis, encoded features and the encoder", size(learn) / n)
    table.add("attribute lists, as python-crfsuite takes them", lists / tokens)
    table.add("feature dicts, as python-crfsuite takes them", dicts / tokens)
    table.show()
    commands = {
        "python": ["-c", "pass"],
        "import trellis": ["-c", "import trellis"],
        "trellis --help": ["-m", "trellis", "--help"],
    }

    def call(words: list[str]) -> None:
        subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)

    runs = {name: partial(call, words) for name, words in commands.items()}
    table = Table(f"best of {args.rounds}, Python's own start included", "what", "seconds")
    for run in alternate(runs, args.rounds):
        table.add(run.name, min(run.wall))
    table.show()


if __name__ == "__main__":
    main()
