"""A corpus of 100 million features: read, encode, one training pass; seconds and peak memory.

    python -m benchmarks.large                  # 5.6 million tokens, about 2 minutes
    python -m benchmarks.large --tokens 500000

The text is random (words by Zipf's law, tags by word), because no corpus of this size is at hand;
what is measured is the machinery, not a score.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from benchmarks.options import begin
from benchmarks.side_by_side import Table, once, peak
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


def main() -> None:
    args = begin(__doc__, tokens=(5_600_000, 5000))
    columns = ["word", "pos", "label"]
    crf = ChainCRF("chunking", max_passes=1, learning_rate=0.1, random_state=0)
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "large.txt")
        write(path, args.tokens)
        corpus, reading = once(lambda: read_conll(path, columns, "label"))
        after_reading = peak()
        (n_entries, n_features), encoding = once(lambda: encode(corpus))
        title = f"{args.tokens:,} tokens, {n_entries:,} features ({n_features:,} distinct)"
        table = Table(title, "step", "seconds", "peak GB so far")
        table.add("read", reading, after_reading)
        table.add("encode", encoding, peak())
        table.add("encode and one pass", once(lambda: crf.fit(corpus))[1], peak())
        table.add("predict", once(lambda: crf.predict(corpus))[1], peak())
    table.show()


if __name__ == "__main__":
    main()
