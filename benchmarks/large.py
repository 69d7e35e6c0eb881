"""A corpus of 100 million features: read, encode, one training pass; seconds and peak memory.

    python -m benchmarks.large                  # 5.6 million tokens, about 2 minutes
    python -m benchmarks.large --tokens 500000

The text is random (words by Zipf's law, tags by word), because no corpus of this size is at hand;
what is measured is the machinery, not a score.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.side_by_side import one_core, table
from trellis import ChainCRF, Corpus, read_conll
from trellis.features import TemplateEncoder, as_templates


def write(path: Path, tokens: int) -> None:
    """Sentences of about 20 tokens, 300,000 possible words, 45 tags, 22 labels."""
    rng = np.random.default_rng(0)
    words = rng.zipf(1.2, tokens) % 300_000
    tags, labels = words * 7919 % 45, words * 104_729 % 22
    ends = rng.random(tokens) < 0.05
    with path.open("w", encoding="utf-8") as file:
        for w, t, y, end in zip(words, tags, labels, ends, strict=True):
            file.write(f"w{w} T{t} L{y}\n\n" if end else f"w{w} T{t} L{y}\n")


def encode(corpus: Corpus) -> tuple[int, int]:
    """Encode and forget; returns the number of features and of distinct ones."""
    encoder = TemplateEncoder(as_templates("chunking", ["word", "pos"]))
    return len(encoder.learn(corpus).indices), encoder.n_features


def peak() -> float:
    """Peak resident memory in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--tokens", type=int, default=5_600_000)
    args = arguments.parse_args()
    one_core()
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "large.txt")
        write(path, args.tokens)

        def step(name: str, run: object) -> object:
            started = time.perf_counter()
            result = run()  # type: ignore[operator]
            rows.append([name, f"{time.perf_counter() - started:.1f}", f"{peak():.2f}"])
            print(*rows[-1], flush=True)
            return result

        columns = ["word", "pos", "label"]
        corpus = step("read", lambda: read_conll(path, columns, "label"))
        n_entries, n_features = step("encode", lambda: encode(corpus))
        crf = ChainCRF("chunking", max_passes=1, learning_rate=0.1, random_state=0)
        step("encode and one pass", lambda: crf.fit(corpus))
        step("predict", lambda: crf.predict(corpus))
    print(f"\n{args.tokens} tokens, {n_entries} features ({n_features} distinct), one core\n")
    print(table(["step", "seconds", "peak GB so far"], rows))


if __name__ == "__main__":
    main()
