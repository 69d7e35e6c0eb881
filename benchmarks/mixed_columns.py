"""Numbers beside text: what they bring, and what useless ones cost, with and without neighbours.

Parts of training data, with three numbers of each word (its length, capitals and digits) or five
random ones besides. «own»: the default, the number of the position alone; «window»: those of both
neighbours, too. Held out are 1,500 other sentences of the training data. The default was chosen on
conll2000 and jnlpba, not on ud_ewt. The difference is to text alone: the mean over draws, and its
95 % interval by Student's t.

    python -m benchmarks.mixed_columns [--draws 8]
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.edge_features import interval
from benchmarks.options import begin
from benchmarks.side_by_side import Table
from studies.datasets import load
from trellis import ChainCRF, Corpus, Templates
from trellis.corpus import Column

TASKS = {"conll2000": ["word", "pos"], "jnlpba": ["word"], "ud_ewt": ["word"]}


def with_numbers(corpus: Corpus, kind: str, rng: np.random.Generator) -> Corpus:
    """A corpus with columns of numbers, as a table with them would be."""
    words = next(iter(corpus.columns.values())).strings()
    if kind == "useful":
        counts = (len, lambda w: sum(map(str.isupper, w)), lambda w: sum(map(str.isdigit, w)))
        numbers = [[float(count(word)) for word in words] for count in counts]
    else:
        numbers = rng.normal(0, 10, (5, len(words))).tolist()
    more = {
        f"number{k}": Column.from_strings(list(map(repr, column)), numbers=True)
        for k, column in enumerate(numbers)
    }
    return replace(corpus, columns={**corpus.columns, **more})


def score(train: Corpus, test: Corpus, *, window: bool) -> float:
    """Score of a model on held-out data, with the numbers of neighbours or without."""
    numbers = [name for name, column in train.columns.items() if column.numbers]
    texts = [name for name in train.columns if name not in numbers]
    lines = Templates.default_for(texts).text().split("\n")
    lines += [f"number({name})" + "[-1..1]" * window for name in numbers]
    return ChainCRF(lines, random_state=0).fit(train).score(test)


def main() -> None:
    args = begin(
        __doc__,
        draws=(8, 2),
        sizes=([200, 2000], [10], "sentences to learn from"),
        test=(1500, 10, "sentences held out"),
    )
    table = Table(
        "Numbers beside text, against text alone", "task", "sentences", "text",
        "useful, own", "useful, window", "useless, own", "useless, window",
    )  # fmt: skip
    for task, names in TASKS.items():
        corpus = load(task).train
        kept = {name: corpus.columns[name] for name in names}
        corpus = replace(corpus, columns=kept, edges=None, edge_types=None)
        for size in args.sizes:
            plain: list[float] = []
            gains: dict[tuple[str, bool], list[float]] = {}
            for draw in range(args.draws):
                rng = np.random.default_rng(draw)
                order = rng.permutation(len(corpus))
                train, test = corpus.take(order[:size]), corpus.take(order[-args.test :])
                plain.append(score(train, test, window=False))
                for kind in ("useful", "useless"):
                    both = [with_numbers(part, kind, rng) for part in (train, test)]
                    for window in (False, True):
                        gain = score(*both, window=window) - plain[-1]
                        gains.setdefault((kind, window), []).append(gain)
            cells = [interval(found) for found in gains.values()]
            table.add(task, f"{size:,}", f"{100 * np.mean(plain):.2f}", *cells)
    table.show()


if __name__ == "__main__":
    main()
