"""Active learning on chains: how good a CRF is after so many labels, by what was asked for.

    python -m benchmarks.active_chains            # about half an hour
    python -m benchmarks.active_chains --dev      # on training data alone, as settings were chosen

Chunks (CoNLL-2000), names of molecules and cells (JNLPBA) and parts of speech (UPOS of UD English
EWT), with the features that a model takes by itself. Of each training set 10,000 sentences (or all,
in another order) are the pool of a run, of which nothing is known; gold labels answer. After 500,
1,500 and 3,000 labels the model is trained on what was said, and scored on the official test set:
F1 of spans, or accuracy. A run may go beyond a number by the rest of its last question.

Ways to ask: sentences at random, the shortest first, the longest first, at random those of the
shorter 40 % (a way may be better just because it asks for short sentences); the sentence that
``ActiveLearner`` asks for with a strategy, one at a time; ten at once (``query_batch``); spans of
five tokens at random and by the learner (``query_part``), where the rest of the sentence stays
unknown.

Differences to random sentences are paired by run; their 95 % intervals are those of Student's t.
Strategies and settings were chosen on the last sentences of the training sets (``--dev``), the test
sets were scored once, at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # no stubs

from benchmarks.options import begin
from benchmarks.side_by_side import Table
from studies.datasets import data_folder, load
from trellis import ChainCRF, Corpus, MaxMargin, read_conll
from trellis.cheap import ActiveLearner
from trellis.evaluation import span_scores

_POOL, _TEST = 10_000, 1_500
_SHORT = 0.4  # share of the sentences that count as short
_SIZE = 5  # of spans
RANDOM = "random sentences"
PASSIVE = (RANDOM, "shortest first", "longest first", "random short ones", "random spans")
LEARNERS: dict[str, tuple[str, str, int]] = {
    "best-vs-second": ("best-vs-second", "sentences", 1),
    "token-confidence": ("token-confidence", "sentences", 1),
    "the default": ("auto", "sentences", 1),
    "the default, ten at once": ("auto", "sentences", 10),
    "the default, spans": ("auto", "spans", 1),
}
"""Strategy, what is asked for, and how many at once."""

Floats = np.ndarray[Any, np.dtype[np.float64]]


class Task(NamedTuple):
    """Sentences to ask for and to test on, and the tag scheme of their labels, if they have one."""

    train: Corpus
    test: Corpus
    scheme: str | None

    def score(self, model: Any) -> float:
        """F1 of spans or accuracy, in per cent."""
        assert self.test.labels is not None
        said, gold = model.predict(self.test), self.test.label_lists()
        if self.scheme is not None:
            return 100 * float(span_scores(gold, said, self.scheme).f1)
        pairs = zip(chain(*said), chain(*gold), strict=True)
        return 100 * sum(a == b for a, b in pairs) / self.test.n_positions


def task_of(name: str, dev: bool) -> Task:
    """A data set, or its training part cut in two."""
    if name == "ud_ewt":
        folder, columns = data_folder(name), ["word", "upos", "xpos", "head", "deprel"]
        train, test = (
            read_conll(folder / f"{part}.tsv.xz", columns, "upos", separator="\t")
            for part in ("train", "test")
        )
        train, test = (
            replace(part, columns={"word": part.columns["word"]}) for part in (train, test)
        )
        scheme = None
    else:
        data = load(name)
        train, test, scheme = data.train, data.test, data.scheme
    if dev:
        cut = max(len(train) - _TEST, len(train) // 2)
        train, test = train[:cut], train[cut:]
    return Task(train, test, scheme)


def questions(
    way: str, pool: Corpus, rng: np.random.Generator
) -> Iterator[tuple[int, Sequence[int]]]:
    """Samples and their positions, in an order that does not depend on answers."""
    lengths = np.diff(pool.offsets)
    if way == "random spans":
        spans = [(i, k) for i in range(len(pool)) for k in range(0, int(lengths[i]), _SIZE)]
        for number in rng.permutation(len(spans)):
            i, k = spans[number]
            yield i, range(k, min(k + _SIZE, int(lengths[i])))
        return
    order = rng.permutation(len(pool))
    if way == "random short ones":
        order = order[lengths[order] <= np.quantile(lengths, _SHORT)]
    elif way != RANDOM:
        sign = 1 if way == "shortest first" else -1
        order = order[np.argsort(sign * lengths[order], kind="stable")]
    for i in order.tolist():
        yield i, range(int(lengths[i]))


def curve(task: Task, way: str, seed: int, budgets: Sequence[int], kind: type[Any]) -> list[float]:
    """Scores after so many labels."""
    order = np.random.default_rng([1, seed]).permutation(len(task.train))[:_POOL]
    labelled = task.train.take(order)
    assert labelled.labels is not None
    gold, pool = labelled.label_lists(), replace(labelled, labels=None)
    if way in PASSIVE:
        return _drawn(task, way, seed, budgets, labelled, kind)
    strategy, unit, n = LEARNERS[way]
    learner = ActiveLearner(
        kind(random_state=seed), strategy, labels=labelled.labels.classes, random_state=seed
    )
    scores, told = [], 0
    for budget in budgets:
        while told < budget:
            if unit == "spans":
                i, nodes = learner.query_part(pool, _SIZE)
                learner.tell(i, {t: gold[i][t] for t in nodes})
                told += len(nodes)
                continue
            for i in [learner.query(pool)] if n == 1 else learner.query_batch(pool, n):
                if told < budget:
                    learner.tell(i, gold[i])
                    told += len(gold[i])
        scores.append(task.score(learner.finish()))
    return scores


def _drawn(
    task: Task, way: str, seed: int, budgets: Sequence[int], labelled: Corpus, kind: type[Any]
) -> list[float]:
    """The same for an order of questions that is known from the beginning."""
    gold, pool = labelled.label_lists(), replace(labelled, labels=None)
    asked = questions(way, pool, np.random.default_rng([2, seed]))
    known: dict[int, list[Any]] = {}
    scores, told = [], 0
    for budget in budgets:
        while told < budget:
            i, nodes = next(asked)
            labels = known.setdefault(i, [None] * len(gold[i]))
            for t in nodes:
                labels[t] = gold[i][t]
            told += len(nodes)
        model = kind(random_state=seed).fit(pool.take([*known]), [*known.values()])
        scores.append(task.score(model))
    return scores


def gained(differences: Floats) -> str:
    """A mean over runs and its 95 % interval."""
    n = len(differences)
    half = stdtrit(n - 1, 0.975) * differences.std(ddof=1) / n**0.5 if n > 1 else np.nan
    return f"{differences.mean():+.1f} ± {half:.1f}".replace("-", "−")


def main() -> None:
    args = begin(
        __doc__,
        sets=(["conll2000", "jnlpba", "ud_ewt"], ["conll2000", "ud_ewt"], "data sets"),
        ways=([*PASSIVE, *LEARNERS], [*PASSIVE, *LEARNERS], "ways to ask"),
        budgets=([500, 1500, 3000], [30, 60], "labels asked for"),
        seeds=(5, 2, "runs"),
        dev=(False, False, "score on the end of the training part"),
        margin=(False, False, "MaxMargin in place of ChainCRF"),
    )
    kind = MaxMargin if args.margin else ChainCRF
    ways = [RANDOM, *(way for way in args.ways if way != RANDOM)]
    headings = [f"{n:,} labels" for n in args.budgets]
    gains = [f"over random at {n:,}" for n in args.budgets]
    with threadpool_limits(1):
        for name in args.sets:
            task, base = task_of(name, args.dev), np.zeros(0)
            what = "accuracy" if task.scheme is None else "F1"
            table = Table(f"{name}: {what} of {kind.__name__}, %", "asked for", *headings, *gains)
            for way in ways:
                runs = range(args.seeds)
                found = np.array([curve(task, way, run, args.budgets, kind) for run in runs])
                base = found if way == RANDOM else base
                more = [gained(d) if way != RANDOM else "" for d in (found - base).T]
                table.add(way, *(f"{mean:.1f}" for mean in found.mean(axis=0)), *more)
            table.show()


if __name__ == "__main__":
    main()
