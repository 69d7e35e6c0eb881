"""Chunking from part of the labels: what a missing label costs, and which loss learns best.

    python -m benchmarks.partial [--small]

1. Max-margin training on 300 sentences of CoNLL-2000, complete and with one label missing, by
   turns: time and accuracy. Objectives of label sets are not convex, but one label must not change
   the price.
2. Partial log-likelihood, hinge loss and perceptron at 5, 25 and 100 % of the labels, five draws
   each. Test sentences are the last 500 of the training file; nothing was chosen on them.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.side_by_side import alternate, one_core, ratio, table
from studies.datasets import load
from trellis import ChainCRF, ChainPerceptron, Corpus, MaxMargin
from trellis.corpus import Labels

_SHARES = (0.05, 0.25, 1.0)


def without(corpus: Corpus, share: float | None, seed: int = 0) -> Corpus:
    """A corpus that keeps a share of its labels; None: all but the first."""
    assert corpus.labels is not None
    labels = [list(sentence) for sentence in corpus.label_lists()]
    if share is None:
        labels[0][0] = None
    else:
        rng = np.random.default_rng(seed)
        labels = [[y if rng.random() < share else None for y in sentence] for sentence in labels]
    return replace(corpus, labels=Labels.from_lists(labels, corpus.labels.classes))


def one_missing(train: Corpus, test: Corpus, rounds: int) -> str:
    """Complete labels against one that is missing."""
    models: dict[str, MaxMargin] = {}

    def fit(name: str, corpus: Corpus) -> None:
        models[name] = MaxMargin("chunking", random_state=0).fit(corpus)

    data = {"complete": train, "one label missing": without(train, None)}
    for corpus in data.values():  # compile
        MaxMargin("chunking", max_passes=1).fit(corpus[:5])
    runs: dict[str, Any] = {
        name: (lambda name=name, corpus=corpus: fit(name, corpus)) for name, corpus in data.items()
    }
    whole, missing = alternate(runs, rounds)
    rows = [
        [t.name, f"{t.median:.2f}", f"{100 * models[t.name].score(test):.2f}",
         f"{models[t.name].objective_:.2f}", f"{models[t.name].n_passes_}"]
        for t in (whole, missing)
    ]  # fmt: skip
    shown = table(["labels", "seconds", "accuracy", "objective", "passes"], rows)
    return f"{len(train)} sentences\n{shown}\none label missing: {ratio(missing, whole)} the time"


def losses(train: Corpus, test: Corpus, draws: int) -> str:
    """Accuracy of the losses by the share of labels that are known."""
    kinds: dict[str, Any] = {
        "log-likelihood (ChainCRF)": ChainCRF,
        "hinge (MaxMargin)": MaxMargin,
        "perceptron (ChainPerceptron)": ChainPerceptron,
    }
    rows = []
    for name, kind in kinds.items():
        row = [name]
        for share in _SHARES:
            scores = [
                100 * kind("chunking", random_state=0).fit(without(train, share, seed)).score(test)
                for seed in range(1 if share == 1 else draws)
            ]
            spread = f" ± {statistics.stdev(scores):.2f}" if len(scores) > 1 else ""
            row.append(f"{statistics.mean(scores):.2f}{spread}")
        rows.append(row)
    head = [f"{len(train)} sentences", *(f"{100 * share:g} % of labels" for share in _SHARES)]
    return table(head, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="a few sentences, one round")
    small = parser.parse_args().small
    one_core()
    corpus = load("conll2000").train
    test = corpus[-500:]
    print(one_missing(corpus[: 20 if small else 300], test, 1 if small else 5), "\n")
    print(losses(corpus[: 20 if small else 300], test, 1 if small else 5))


if __name__ == "__main__":
    main()
