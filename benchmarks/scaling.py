"""Training time and memory against the size of the corpus: 10⁵ to 10⁷ tokens.

    python -m benchmarks.scaling                # about 15 minutes
    python -m benchmarks.scaling --sizes 1e5 1e6

The embedded data (roles of identifiers in Python source, 21 labels): the standard library and
whatever packages are installed beside Trellis. Where that is less than asked for, the sequences
are repeated; the table says how many tokens are distinct text. Each size runs in a process of its
own, one core: seconds to encode, seconds a pass on whole sequences and at n' = 5.5, peak memory.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import sysconfig
import time

import numpy as np

from benchmarks.side_by_side import one_core, table
from trellis import Corpus
from trellis.datasets import stdlib_roles
from trellis.decompose import partitioner, visits
from trellis.features import TemplateEncoder, as_templates
from trellis.problems import LabelProblem, LogLikelihood, Weights

TEMPLATES = "word[-2..2]; word[-1] & word; word & word[1]; prefix(word, 1..3); suffix(word, 1..3)"


def corpus_of(tokens: int) -> tuple[Corpus, int]:
    """A corpus of about so many tokens, and how many of them are distinct text."""
    data = stdlib_roles(max_tokens=tokens)
    texts, labels = list(data.tokens), list(data.labels)
    if data.n_tokens < tokens:
        more = stdlib_roles(
            max_tokens=tokens - data.n_tokens, root=sysconfig.get_paths()["purelib"]
        )
        texts += more.tokens
        labels += more.labels
    lengths = np.array([len(text) for text in texts])
    copies = -(-tokens // int(lengths.sum()))
    n = int(np.searchsorted(np.cumsum(np.tile(lengths, copies)), tokens)) + 1
    chosen = [k % len(texts) for k in range(min(n, copies * len(texts)))]
    columns = {"word": [texts[k] for k in chosen]}
    return Corpus.from_columns(columns, [labels[k] for k in chosen]), int(lengths.sum())


def measure(tokens: int) -> dict[str, float]:
    one_core()
    corpus, distinct = corpus_of(tokens)
    started = time.perf_counter()
    encoder = TemplateEncoder(as_templates(TEMPLATES, ["word"]))
    encoded = encoder.learn(corpus)
    found = {
        "tokens": corpus.n_positions,
        "distinct": distinct,
        "features": encoder.n_features,
        "encode": time.perf_counter() - started,
    }
    assert corpus.labels is not None
    problem = LabelProblem(encoded, corpus.labels, encoder.n_features)
    loss = LogLikelihood(problem)
    for size in (None, 5.5):
        weights = Weights.zeros(encoder.n_features, problem.n_labels)
        state, rng, seconds = np.array([1.0, 0.0]), np.random.default_rng(0), []
        for _ in range(3):
            started = time.perf_counter()
            pieces = partitioner(size).draw(corpus.offsets, rng)
            loss.descend(weights, problem.visits(pieces, visits(pieces, rng)), state, rate=0.05)
            seconds.append(time.perf_counter() - started)
        found["whole" if size is None else "pieces"] = min(seconds)
    found["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--sizes", type=float, nargs="+", default=[1e5, 3e5, 1e6, 3e6, 1e7])
    arguments.add_argument("--one", type=int, help=argparse.SUPPRESS)
    args = arguments.parse_args()
    if args.one:
        print(json.dumps(measure(args.one)))
        return
    rows = []
    for size in args.sizes:
        command = [sys.executable, "-m", "benchmarks.scaling", "--one", str(int(size))]
        f = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        per = f["tokens"] / 1e6
        rows.append(
            [
                f"{f['tokens']:,}", f"{f['distinct']:,}", f"{f['features']:,}",
                f"{f['encode']:.2f} ({f['encode'] / per:.2f})",
                f"{f['whole']:.2f} ({f['whole'] / per:.2f})",
                f"{f['pieces']:.2f} ({f['pieces'] / per:.2f})", f"{f['peak']:.2f}",
            ]
        )  # fmt: skip
        print(rows[-1], flush=True)
    header = [
        "tokens", "distinct text", "features", "encode, s (a million)",
        "pass whole, s (a million)", "pass n' = 5.5, s (a million)", "peak GB",
    ]  # fmt: skip
    print(table(header, rows))


if __name__ == "__main__":
    main()
