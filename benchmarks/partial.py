"""Chunking from part of the labels: what a missing label costs, and which loss learns best.

    python -m benchmarks.partial

1. Max-margin training on 300 sentences of CoNLL-2000, complete and with one label missing, by
   turns: time and accuracy. Objectives of label sets are not convex, but one label must not change
   the price.
2. Partial log-likelihood, hinge loss and perceptron at 5, 25 and 100 % of the labels, five draws
   each. Test sentences are the last 500 of the training file; nothing was chosen on them.
"""

from __future__ import annotations

import statistics
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.options import begin
from benchmarks.side_by_side import Table, alternate, ratio
from studies.datasets import load
from trellis import ChainCRF, ChainPerceptron, Corpus, MaxMargin
from trellis.corpus import Labels

_SHARES = (0.05, 0.25, 1.0)


def accuracy(model: Any, test: Corpus) -> float:
    """Share of the positions that are right, in per cent."""
    return 100 * float(model.score(test, metric="accuracy"))


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


def one_missing(train: Corpus, test: Corpus, rounds: int) -> None:
    """Complete labels against one that is missing."""
    data = {"complete": train, "one missing": without(train, None)}
    for corpus in data.values():  # loads the kernels
        MaxMargin("chunking", max_passes=1).fit(corpus[:5])
    runs = {
        name: lambda corpus=corpus: MaxMargin("chunking", random_state=0).fit(corpus)
        for name, corpus in data.items()
    }
    measured = alternate(runs, rounds, keep=lambda model: model)
    table = Table(
        f"{len(train)} sentences", "labels", "seconds", "accuracy", "objective", "passes",
        "time, times complete (range)",
    )  # fmt: skip
    for run in measured:
        model = run.kept[-1]
        table.add(
            run.name, run.wall.median, f"{accuracy(model, test):.2f}",
            f"{model.objective_:.2f}", model.n_passes_, ratio(run.wall, measured[0].wall),
        )  # fmt: skip
    table.show()


def losses(train: Corpus, test: Corpus, draws: int) -> None:
    """Accuracy of the losses by the share of labels that are known."""
    kinds: dict[str, Any] = {
        "log-likelihood (ChainCRF)": ChainCRF,
        "hinge (MaxMargin)": MaxMargin,
        "perceptron (ChainPerceptron)": ChainPerceptron,
    }
    shares = [f"{100 * share:g} % of labels" for share in _SHARES]
    table = Table(f"accuracy, {len(train)} sentences", "loss", *shares)
    for name, kind in kinds.items():
        row = [name]
        for share in _SHARES:
            scores = [
                accuracy(kind("chunking", random_state=0).fit(without(train, share, seed)), test)
                for seed in range(1 if share == 1 else draws)
            ]
            spread = f" ± {statistics.stdev(scores):.2f}" if len(scores) > 1 else ""
            row.append(f"{statistics.mean(scores):.2f}{spread}")
        table.add(*row)
    table.show()


def main() -> None:
    args = begin(__doc__, sentences=(300, 20), test=(500, 20), rounds=(5, 1), draws=(5, 2))
    corpus = load("conll2000").train
    train, test = corpus[: args.sentences], corpus[-args.test :]
    one_missing(train, test, args.rounds)
    losses(train, test, args.draws)


if __name__ == "__main__":
    main()
