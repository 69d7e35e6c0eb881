"""Unlabelled text: scores on development data with and without it, and the time that it takes.

    python -m benchmarks.unlabelled            # about 20 minutes

A few labelled sentences, drawn with each seed, and the rest of the training text as raw text; then
all labelled sentences, with the development text as raw text («transductive»: its labels are not
seen) or with no text but their own («inductive»). Templates are those that a named set gets with
``unlabelled=``. Development data are the last tenth of the training data where there are no others.
Test data are not looked at.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student

from benchmarks.options import begin
from benchmarks.side_by_side import Table, once
from studies.datasets import load
from trellis import ChainCRF, Corpus
from trellis.evaluation import paired_bootstrap
from trellis.evaluation.held_out import held_out_score
from trellis.features import as_templates
from trellis.features.dictionary import is_of_characters


@dataclass(frozen=True)
class Task:
    """Training and development data, the template set and the tag scheme (None: accuracy)."""

    name: str
    train: Corpus
    dev: Corpus
    features: str
    scheme: str | None

    @classmethod
    def of(cls, name: str) -> Task:
        """A data set without its test data."""
        data = load(name)
        train, dev = data.train, data.dev
        if dev is None:
            n = len(train) - len(train) // 10
            train, dev = train[:n], train[n:]
        assert data.features is not None
        return cls(name, train, dev, data.features, data.scheme)

    def learned_from_text(self) -> Any:
        """The set and the templates that are added to it where there is raw text."""
        columns = list(self.train.columns)
        templates = as_templates(self.features, columns)
        first = self.train.columns[templates.columns()[0]]
        return templates.with_text(of_characters=is_of_characters(first))

    def predicted(
        self, labelled: Corpus, features: Any, seed: int, raw: Corpus | None = None
    ) -> tuple[list[list[str]], float]:
        """Labels of the development data by a model, and the seconds of its training."""
        crf = ChainCRF(features, random_state=seed)
        known = labelled.only_used_labels()
        _, seconds = once(lambda: crf.fit(known, unlabelled=raw))
        return crf.predict(self.dev), seconds

    def score(self, predicted: list[list[str]]) -> float:
        """F1 or accuracy on the development data, in per cent."""
        return 100 * held_out_score(self.dev.label_lists(), predicted, self.scheme)

    def gain(self, before: list[list[str]], after: list[list[str]]) -> str:
        """Gain of one prediction over another, and its interval over sentences."""
        metric: Any = "accuracy" if self.scheme is None else "f1"
        gold, scheme = self.dev.label_lists(), self.scheme or "BIO"
        compared = paired_bootstrap(gold, after, before, metric, scheme=scheme)
        low, high = (100 * bound for bound in compared.interval or (math.nan, math.nan))
        return told(100 * compared.difference, low, high)


def told(gain: float, low: float, high: float) -> str:
    """A gain and its interval."""
    return f"{gain:+.2f} [{low:+.2f}, {high:+.2f}]".replace("-", "−")


def few(task: Task, n: int, seeds: int, table: Table) -> None:
    """A few labelled sentences, the rest as raw text."""
    scores: list[tuple[float, float]] = []
    spent: list[tuple[float, float]] = []
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(len(task.train))
        labelled, rest = (task.train.take(np.sort(part)) for part in (order[:n], order[n:]))
        plain, short = task.predicted(labelled, task.features, seed)
        with_text, long = task.predicted(labelled, task.features, seed, rest)
        scores.append((task.score(plain), task.score(with_text)))
        spent.append((short, long))
    gains = [b - a for a, b in scores]
    half = math.nan
    if seeds > 1:
        half = student.ppf(0.975, seeds - 1) * statistics.stdev(gains) / math.sqrt(seeds)
    gain = statistics.mean(gains)
    table.add(
        task.name,
        n,
        *(f"{statistics.mean(column):.2f}" for column in zip(*scores, strict=True)),
        told(gain, gain - half, gain + half),
        *(statistics.mean(column) for column in zip(*spent, strict=True)),
    )


def everything(task: Task, table: Table) -> None:
    """All labelled sentences: raw text of the development data, or none."""
    plain, _ = task.predicted(task.train, task.features, 0)
    runs: dict[str, tuple[Any, Corpus | None]] = {
        "development text (transductive)": (task.features, task.dev),
        "none (inductive)": (task.learned_from_text(), None),
    }
    for text, (features, raw) in runs.items():
        found, seconds = task.predicted(task.train, features, 0, raw)
        table.add(
            task.name,
            text,
            f"{task.score(plain):.2f}",
            f"{task.score(found):.2f}",
            task.gain(plain, found),
            seconds,
        )


def main() -> None:
    args = begin(
        __doc__,
        tasks=(["sxu", "jnlpba", "conll2000", "ud_ewt"],) * 2,
        sentences=([200, 1000], [10, 20], "labelled sentences"),
        seeds=(5, 2, "subsets of labelled sentences"),
    )
    heads = ("without", "with", "gain [95 %]")
    small = Table(
        "Few labelled sentences, the rest of the training text raw (means over seeds; interval of "
        "paired gains, Student)",
        "data", "labelled", *heads, "training s without", "with it",
    )  # fmt: skip
    large = Table(
        "All labelled sentences (paired bootstrap)", "data", "raw text", *heads, "training s"
    )
    for name in args.tasks:
        task = Task.of(name)
        for n in args.sentences:
            few(task, n, args.seeds, small)
        everything(task, large)
    small.show()
    large.show()


if __name__ == "__main__":
    main()
