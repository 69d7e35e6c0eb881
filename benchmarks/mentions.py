"""Marked mentions: what is learned where annotators marked some names and passed over others.

    python -m benchmarks.mentions              # on development data; some minutes
    python -m benchmarks.mentions --test       # on the test data of the same sets
    python -m benchmarks.mentions --test --sentences 5000 --tasks jnlpba
    python -m benchmarks.mentions --test --tasks conll2003
    python -m benchmarks.mentions --ratio --sentences 500 --shares 25 50 75 --tasks jnlpba

Sentences are drawn with each seed, and of their names a share is marked. Names are those of jnlpba
or of the news of conll2003 (of which only the test text is there: the names of its first 2,400
sentences are marked, and the rest is scored), or chunks of conll2000 of some types.

Contestants: all names (what could be had), unmarked words as "O", unmarked words as None (unknown),
``partial="mentions"`` and, where ``--ratio`` asks for it, ``partial="entity-ratio"``, which takes
long.

The second table is of other omissions than those at random: half of the types marked at 10 % and
the others at 75; half of the sentences not marked at all and the others in full; of each name in 25
sentences only the first occurrence. Development data are the last 1,500 sentences of the training
data; all choices were made on them.
"""

from __future__ import annotations

import math
import statistics
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.stats import t as student

from benchmarks.options import begin
from benchmarks.side_by_side import Table, once
from studies.datasets import load, load_experts
from trellis import ChainCRF, Corpus
from trellis.corpus import Labels, as_corpus
from trellis.corpus.schemes import get_scheme
from trellis.evaluation.held_out import held_out_score

Tags = list[list[str]]
_DEV, _NEWS, _NEAR = 1500, 2400, 25
_BIO = get_scheme("BIO")


class Task:
    """Sentences with names, and others to score on."""

    def __init__(self, name: str, test: bool) -> None:
        self.name, (source, _, types) = name, name.partition(":")
        if source == "conll2003":  # one file, of whose names nothing was chosen
            news = load_experts(source)
            corpus = as_corpus(news.inputs, news.gold, columns=["word"])
            self.features, self.pool, held_out = "ner", corpus[:_NEWS], corpus[_NEWS:]
        else:
            data = load(source)
            assert data.features is not None
            n = min(_DEV, len(data.train) // 4)
            self.features, self.pool = data.features, data.train[:-n]
            held_out = data.test if test else data.train[-n:]
        self.types = types.split("+") if types else []
        self.held_out = self.named(held_out)
        self.gold = self.held_out.label_lists()

    def named(self, corpus: Corpus) -> Corpus:
        """A corpus in which spans of the types chosen are names, and others are nothing."""
        if not self.types:
            return corpus
        tags = [
            [tag if tag[2:] in self.types else "O" for tag in sentence]
            for sentence in corpus.label_lists()
        ]
        return replace(corpus, labels=Labels.from_lists(tags))

    def drawn(self, n: int, seed: int) -> Corpus:
        """So many sentences of the pool."""
        chosen = np.random.default_rng(seed).permutation(len(self.pool))[:n]
        return self.named(self.pool.take(np.sort(chosen)))

    def score(self, model: ChainCRF) -> float:
        """F1 of the names, in per cent."""
        return 100 * held_out_score(self.gold, model.predict(self.held_out), "BIO")


# ------------------------------------------------------------------------- omissions


def at_random(share: float) -> Callable[[Corpus, Any], Iterator[set[int]]]:
    """Each name is marked with the same chance."""

    def marks(corpus: Corpus, rng: Any) -> Iterator[set[int]]:
        for tags in corpus.label_lists():
            yield {k for k in range(len(_BIO.spans(tags))) if rng.random() < share}

    return marks


def by_type(corpus: Corpus, rng: Any) -> Iterator[set[int]]:
    """Every other type, in alphabetical order, is marked at 10 %, the others at 75 %."""
    assert corpus.labels is not None
    types = sorted({tag[2:] for tag in corpus.labels.classes if tag != "O"})
    seldom = set(types[::2]) if len(types) > 1 else set()
    for tags in corpus.label_lists():
        spans = enumerate(_BIO.spans(tags))
        yield {k for k, (kind, *_) in spans if rng.random() < (0.1 if kind in seldom else 0.75)}


def by_sentence(corpus: Corpus, rng: Any) -> Iterator[set[int]]:
    """All names of a sentence are marked, or none."""
    for tags in corpus.label_lists():
        yield set(range(len(_BIO.spans(tags)))) if rng.random() < 0.5 else set()


def first_only(corpus: Corpus, rng: Any) -> Iterator[set[int]]:
    """Of equal names in so many sentences the first is marked."""
    words = next(iter(corpus.columns.values())).strings()
    met: set[str] = set()
    for s, tags in enumerate(corpus.label_lists()):
        if s % _NEAR == 0:
            met = set()
        begin, marked = int(corpus.offsets[s]), set()
        for k, (_, a, b) in enumerate(_BIO.spans(tags)):
            name = " ".join(words[begin + a : begin + b])
            if name not in met:
                marked.add(k)
            met.add(name)
        yield marked


def marked(corpus: Corpus, marks: Iterator[set[int]], unmarked: str | None) -> Corpus:
    """A corpus of whose names those are marked, with what stands at unmarked words."""
    assert corpus.labels is not None
    lists: list[list[str | None]] = []
    for tags, kept in zip(corpus.label_lists(), marks, strict=True):
        spans = [span for k, span in enumerate(_BIO.spans(tags)) if k in kept]
        labels = _BIO.labels_for(spans, len(tags))
        lists.append([unmarked if label == "O" else label for label in labels])
    return replace(corpus, labels=Labels.from_lists(lists, corpus.labels.classes))


# ------------------------------------------------------------------------- contestants


class Contest:
    """Scores of all contestants, seed by seed."""

    def __init__(self, task: Task, n: int, seeds: int, ratio: bool) -> None:
        self.task, self.n, self.seeds = task, n, seeds
        self.kinds = ["unmarked O", "unknown", "mentions", *(["entity-ratio"] if ratio else [])]
        self.everything = [self._fit(task.drawn(n, seed), seed)[0] for seed in range(seeds)]

    def _fit(self, corpus: Corpus, seed: int, partial: str = "unknown") -> tuple[float, float]:
        model = ChainCRF(self.task.features, partial=partial, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # that unknown words are no way to go
            _, seconds = once(lambda: model.fit(corpus))
        return self.task.score(model), seconds

    def row(self, omission: Callable[[Corpus, Any], Iterator[set[int]]]) -> list[Any]:
        """Mean scores, gains of mentions over the first two, and how many times the seconds."""
        scores: dict[str, list[float]] = {kind: [] for kind in self.kinds}
        times: list[float] = []
        for seed in range(self.seeds):
            corpus, spent = self.task.drawn(self.n, seed), {}
            for kind in self.kinds:
                marks = omission(corpus, np.random.default_rng(seed))
                shown = marked(corpus, marks, None if kind == "unknown" else "O")
                partial = kind if kind in ("mentions", "entity-ratio") else "unknown"
                score, spent[kind] = self._fit(shown, seed, partial)
                scores[kind].append(score)
            times.append(spent["mentions"] / spent["unmarked O"])
        means = [f"{statistics.mean(scores[kind]):.1f}" for kind in self.kinds]
        gains = [self._gain(scores["mentions"], scores[kind]) for kind in self.kinds[:2]]
        everything = f"{statistics.mean(self.everything):.1f}"
        return [everything, *means, *gains, f"{statistics.median(times):.1f}×"]

    def _gain(self, after: list[float], before: list[float]) -> str:
        """Mean paired gain with its 95 % interval (Student)."""
        gains = [a - b for a, b in zip(after, before, strict=True)]
        half = math.nan
        if len(gains) > 1:
            half = student.ppf(0.975, len(gains) - 1) * statistics.stdev(gains)
            half /= math.sqrt(len(gains))
        return f"{statistics.mean(gains):+.1f} ± {half:.1f}".replace("-", "−")


def main() -> None:
    args = begin(
        __doc__,
        tasks=(["jnlpba", "conll2000:NP", "conll2000:PP+VP"], ["jnlpba"], "sets and their types"),
        sentences=([500], [20], "sentences that are annotated"),
        shares=([10, 25, 50, 75, 100], [50], "per cent of the names that are marked"),
        seeds=(5, 2, "drawings of sentences and of marks"),
        ratio=(False, True, "try entity-ratio, too"),
        test=(False, False, "score on the test data"),
    )
    held_out = "test" if args.test else "development"
    omissions = {"types": by_type, "sentences": by_sentence, "first only": first_only}
    for n in args.sentences:
        heads = [
            "all names", "unmarked O", "unknown", "mentions",
            *(["entity ratio"] if args.ratio else []),
            "mentions − O", "mentions − unknown", "time of mentions, times that of O",
        ]  # fmt: skip
        what = f"F1 on {held_out} data, {n} sentences ({args.seeds} seeds)"
        table = Table(f"{what}, names marked at random", "data", "% marked", *heads)
        others = Table(f"{what}, other omissions", "data", "marked", *heads)
        for name in args.tasks:
            contest = Contest(Task(name, args.test), n, args.seeds, args.ratio)
            for share in args.shares:
                table.add(name, share, *contest.row(at_random(share / 100)))
            for told, omission in omissions.items():
                others.add(name, told, *contest.row(omission))
        table.show()
        others.show()


if __name__ == "__main__":
    main()
