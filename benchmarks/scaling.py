"""Training time and memory against the size of the corpus: 10⁵ to 10⁷ tokens.

    python -m benchmarks.scaling                # about 15 minutes
    python -m benchmarks.scaling --sizes 1e5 1e6

The embedded data (roles of identifiers in Python source, 21 labels): the standard library and
whatever packages are installed beside Trellis. Where that is less than asked for, the sequences
are repeated; the table says how many tokens are distinct text. Each size runs in a process of its
own, one core: seconds to encode, seconds a pass on whole sequences and at n' = 5.5, peak memory.
"""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig

import numpy as np

from benchmarks.options import begin
from benchmarks.side_by_side import Table, alternate, once, peak, short
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
    """What is measured at one size, by the process that calls it."""
    corpus, distinct = corpus_of(tokens)
    templates = as_templates(TEMPLATES, ["word"])
    TemplateEncoder(templates).learn(corpus[:1])  # loads the kernels
    encoder = TemplateEncoder(templates)
    encoded, encoding = once(lambda: encoder.learn(corpus))
    assert corpus.labels is not None
    problem = LabelProblem(encoded, corpus.labels, encoder.n_features)
    loss = LogLikelihood(problem)

    def passes(size: float | None) -> float:
        weights = Weights.zeros(encoder.n_features, problem.n_labels)
        state, rng = np.array([1.0, 0.0]), np.random.default_rng(0)

        def run() -> None:
            pieces = partitioner(size).draw(corpus.offsets, rng)
            loss.descend(weights, problem.visits(pieces, visits(pieces, rng)), state, rate=0.05)

        return min(alternate({"": run}, 3)[0].wall)

    return {
        "tokens": corpus.n_positions, "distinct": distinct, "features": encoder.n_features,
        "encode": encoding, "whole": passes(None), "pieces": passes(5.5), "peak": peak(),
    }  # fmt: skip


def main() -> None:
    args = begin(__doc__, sizes=([1e5, 3e5, 1e6, 3e6, 1e7], [1e3, 3e3]))
    table = Table(
        "roles of identifiers, one core", "tokens", "distinct text", "features",
        "encode, s (a million)", "pass whole, s (a million)", "pass n' = 5.5, s (a million)",
        "peak GB",
    )  # fmt: skip
    for size in args.sizes:
        code = "import sys, json; from benchmarks.scaling import measure; "
        code += "print(json.dumps(measure(int(sys.argv[1]))))"
        command = [sys.executable, "-c", code, str(int(size))]
        f = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        seconds = [
            f"{short(f[step])} ({f[step] / f['tokens'] * 1e6:.2f})"
            for step in ("encode", "whole", "pieces")
        ]
        table.add(f["tokens"], f["distinct"], f["features"], *seconds, f["peak"])
    table.show()


if __name__ == "__main__":
    main()
