"""Combining experts: scores by the number of gold samples, beside the plain vote and peers.

    python -m benchmarks.combine                                 # all sets
    python -m benchmarks.combine --sets conll2000 skewed         # some of them
    python -m benchmarks.combine --peer-python peers/bin/python  # crowd-kit of another environment

Sets of experts: 14 named-entity recognisers (CoNLL-2003), segmentations of Czech and English words
by 13 systems each, seven weak taggers of biomedical entities (JNLPBA), of chunks (CoNLL-2000) and
of code in Python's manual, seven weak classifiers of handwritten letters and of movements (single
labels), five transcripts of different lengths, five experts of which each knows two of ten fields,
and seven of which two are good. Methods were developed on CoNLL-2000, the manual, movements (with
other classifiers), the transcripts (with other seeds) and the last one; the others are for testing,
though defaults of Stacking, Rerank and ESPBoost were once settled on the real systems, and the
fields (ADS1) are the paper's.

In each repeat the samples are split at random into a test half and a pool. A method is given the
answers to 0, 20, 50, 150 or all samples of the pool with their gold, and the answers to the test
half without it, which it may learn from, too. «auto» is ``AutoCombiner`` with its defaults, which
chooses among the methods after it. Methods of one repeat see the same samples, and
smaller sets of gold are parts of larger ones. A cell holds the mean score over repeats in per cent,
and in brackets its mean difference to the plain vote with a 95 % interval. The plain vote needs no
gold; equal votes go to the first expert (in the word segmentations the better systems stand first).

Intervals are of a paired bootstrap over samples and over repeats: a resample draws samples of the
set, the same for all repeats and methods, so that test halves that overlap are known to, and then
repeats. A cell is empty where a method needs gold and there is none, or, among crowd-kit's, where
there is gold that it cannot use. Seconds are median CPU seconds to learn from the most gold and
answer, one thread. A peer that takes minutes runs in one or two repeats only, as its row says; its
difference is to the vote in these.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # no stubs

from benchmarks.combine_peers import (
    CROWD_KIT,
    CrowdKit,
    PeerMethod,
    here,
    most_frequent_answers,
    plain_vote,
)
from benchmarks.expert_sets import (
    SETS,
    ExpertSet,
    Labels,
    Outputs,
    conll2000_taggers,
    skewed,
    take,
)
from benchmarks.options import begin
from benchmarks.side_by_side import Table
from trellis.experts import AutoCombiner, ExpertOutputs
from trellis.experts.methods import ALONE, method_names, new_method
from trellis.experts.quality import METRICS, Quality

SIZES = (0, 20, 50, 150, None)
RESAMPLES = 2000
VOTE = "plain vote"
SLOW = {"MACE": 1}
SLOW_NETWORKS = {"LogisticRegression": 2}
"""Repeats of peers that take minutes; those that do with answers of different lengths."""

Method = Callable[[Outputs, Labels, Outputs], Labels | None]
"""Answers to the last, given outputs with gold (maybe none); None if it cannot answer so."""
Floats = NDArray[np.float64]


# ---------------------------------------------------------------------------- the curve


class Cell(list[float]):
    """Mean score; of others than the vote also the difference to it and its interval."""

    def __str__(self) -> str:
        value, *rest = self
        if not rest:
            return f"{value:.2f}"
        gain, low, high = (f"{number:+.2f}".replace("-", "−") for number in rest)
        return f"{value:.2f} ({gain}, {low} to {high})"


@dataclass(frozen=True)
class Point:
    """How a method does with so many gold samples."""

    method: str
    size: int | None
    """Gold samples; None: the whole pool."""
    score: float
    """Mean over repeats, in per cent."""
    gain: float
    """Mean difference to the plain vote in the same repeats, more than 0 if it is better."""
    low: float
    high: float
    """Ends of its 95 % interval."""
    seconds: float
    """Median CPU seconds to learn and answer."""

    @property
    def cell(self) -> Cell:
        """For a table."""
        gain = [] if self.method == VOTE else [self.gain, self.low, self.high]
        return Cell([self.score, *gain])


def curve(
    data: ExpertSet,
    methods: Mapping[str, Method],
    sizes: Sequence[int | None] = SIZES,
    repeats: int = 10,
    seed: int = 0,
    limits: Mapping[str, int] | None = None,
) -> list[Point]:
    """Scores of methods by the number of gold samples.

    The pool of a repeat is in random order, and gold its first samples. ``limits`` are repeats for
    methods that take part in fewer; the vote is always there, as the first. Sizes that the pool
    has not are left out.
    """
    n = len(data)
    n_pool = n - n // 2
    sizes = [size for size in sizes if size is None or size <= n_pool]
    bootstrap = Bootstrap(n, repeats, seed, data.quality)
    found: dict[tuple[str, int | None], list[Floats]] = {}
    seconds: dict[tuple[str, int | None], list[float]] = {}
    every: dict[str, Method] = {VOTE: PeerMethod(plain_vote), **methods}
    for r in range(repeats):
        order = np.random.default_rng([seed, r]).permutation(n)
        test, pool = np.sort(order[: n // 2]), order[n // 2 :]
        asked, truth = take(data.outputs, test), [data.gold[i] for i in test]
        for name, method in every.items():
            for size in sizes if r < (limits or {}).get(name, repeats) else ():
                picked = pool[:size]
                known, gold = take(data.outputs, picked), [data.gold[i] for i in picked]
                started = time.process_time()
                answers = method(known, gold, asked)
                took = time.process_time() - started
                if answers is not None:
                    elsewhere = getattr(method, "seconds", None)
                    seconds.setdefault((name, size), []).append(elsewhere or took)
                    resampled = bootstrap.scores(test, data.quality.counts(truth, answers))
                    found.setdefault((name, size), []).append(resampled)
    points = []
    for (name, size), scores in found.items():
        k = len(scores)
        mean, gain, low, high = bootstrap.gain(scores, found[VOTE, size][:k])
        told = statistics.median(seconds[name, size])
        points.append(Point(name, size, mean, gain, low, high, told))
    return points


class Bootstrap:
    """Resamples of samples and of repeats, the same for all methods."""

    def __init__(self, n_samples: int, repeats: int, seed: int, quality: Quality) -> None:
        self._quality = quality
        rng = np.random.default_rng([seed, 1])
        equal = np.full(n_samples, 1 / n_samples)
        self._weights = rng.multinomial(n_samples, equal, size=RESAMPLES).astype(np.float32)
        self._lots = rng.random((RESAMPLES, repeats))
        self._test: tuple[bytes, Any] = (b"", None)

    def scores(self, test: NDArray[np.int64], counts: Floats) -> Floats:
        """Score on these samples, then in each resample of all samples."""
        if self._test[0] != test.tobytes():  # once a repeat
            self._test = test.tobytes(), self._weights[:, test]
        drawn = self._test[1] @ counts.astype(np.float32)
        return self._quality.score(np.vstack([counts.sum(axis=0), drawn]))

    def gain(
        self, mine: Sequence[Floats], others: Sequence[Floats]
    ) -> tuple[float, float, float, float]:
        """Mean score over repeats, mean gain, and its interval."""
        rows, k = np.array(mine), len(mine)
        differences = self._quality.sign * (rows - np.array(others))
        lots = (self._lots[:, :k] * k).astype(np.int64)
        drawn = np.take_along_axis(differences[:, 1:].T, lots, axis=1).mean(axis=1)
        low, high = np.quantile(drawn, [0.025, 0.975])
        return float(rows[:, 0].mean()), float(differences[:, 0].mean()), float(low), float(high)


# ---------------------------------------------------------------------------- Trellis


def joined(first: Outputs, second: Outputs) -> Outputs:
    """Answers to some samples and then to others."""
    if not isinstance(first, ExpertOutputs) or not isinstance(second, ExpertOutputs):
        if not first:
            return second
        return [[*a, *b] for a, b in zip(first, second, strict=True)]
    offsets = np.concatenate([first.offsets, second.offsets[1:] + first.offsets[-1]])
    codes = np.concatenate([first.codes, second.codes])  # both are parts of one, with its labels
    return replace(second, offsets=offsets, codes=codes)


def combined(name: str, data: ExpertSet) -> Method:
    """A method of Trellis by name, or the choice among all; it hears the test answers, too."""

    def answer(outputs_gold: Outputs, gold: Labels, outputs_test: Outputs) -> Labels | None:
        every = joined(outputs_gold, outputs_test)
        right = [*gold, *[None] * (samples(every) - len(gold))]
        if name == "auto":
            model: Any = AutoCombiner(metric=data.metric, scheme=data.scheme)
            found: Labels = model.fit(every, right).answers_
            return found[len(gold) :]
        model = new_method(name, "labels" if data.aligned else "words", data.scheme, 0)
        if name in ALONE or not gold:
            answers: Labels = model.fit(every, right if gold else None).predict(outputs_test)
        else:
            answers = model.fit(outputs_gold, gold).predict(outputs_test)
        return answers

    return answer


def samples(outputs: Outputs) -> int:
    """How many samples are answered."""
    return len(outputs) if isinstance(outputs, ExpertOutputs) else len(outputs[0])


def trellis_methods(data: ExpertSet) -> dict[str, Method]:
    """The methods that suit a set, with their defaults; the choice among them is the first."""
    names = method_names("labels" if data.aligned else "words", data.scheme)
    return {name: combined(name, data) for name in ("auto", *names[1:])}


# ---------------------------------------------------------------------------- tables


def title(size: int | None) -> str:
    """Heading of a number of gold samples."""
    return "all gold" if size is None else f"{size} gold" if size else "no gold"


def show(data: ExpertSet, points: Sequence[Point]) -> None:
    """A table of a set: a row a method, a column a number of gold samples."""
    what = f"{data.name}: {METRICS[data.metric]}"
    sizes = list(dict.fromkeys(point.size for point in points))
    table = Table(what, "method", *map(title, sizes), "CPU s")
    for name in dict.fromkeys(point.method for point in points):
        known = {point.size: point for point in points if point.method == name}
        cells = [known[size].cell if size in known else "" for size in sizes]
        table.add(name, *cells, list(known.values())[-1].seconds)
    table.show()


def singles(sets: Sequence[ExpertSet]) -> None:
    """A table of the experts by themselves, on all samples."""
    table = Table(
        "Experts by themselves and their plain vote, all samples, %", "set", "experts", "samples",
        "measured", "worst", "median", "best", "plain vote",
    )  # fmt: skip
    vote = PeerMethod(plain_vote)
    for data in sets:
        scores = [data.score(data.answers(j)) for j in range(len(data.names))]
        together = vote([], [], data.outputs)
        assert together is not None
        best, worst = (max, min) if data.quality.sign > 0 else (min, max)
        told = [worst(scores), statistics.median(scores), best(scores), data.score(together)]
        table.add(
            data.name, len(scores), len(data), METRICS[data.metric],
            *(f"{value:.2f}" for value in told),
        )  # fmt: skip
    table.show()


def main() -> None:
    args = begin(
        __doc__,
        sets=([*SETS], ["skewed", "conll2000"], "sets of experts"),
        repeats=(10, 2),
        only_vote=(False, False, "no methods but the plain vote, and the experts"),
        only_auto=(False, False, "no methods of Trellis but the default"),
        no_peers=(False, True, "no peers"),
        crowd_kit=([*CROWD_KIT], [*CROWD_KIT], "classes of crowd-kit; MACE takes minutes"),
        peer_python=(sys.executable, sys.executable, "where crowd-kit is"),
        cache=("", "", "folder in which answers of weak taggers are kept"),
    )
    sizes: Sequence[int | None] = SIZES
    if args.small:
        with tempfile.TemporaryDirectory() as folder:
            chunks = conll2000_taggers(folder, n=30, share=0.0125)
        small = {"skewed": skewed(n=40), "conll2000": chunks}
        sets, sizes = [small[name] for name in args.sets], (0, 10, None)
    else:
        sets = [SETS[name](args.cache or None) for name in args.sets]
    singles(sets)
    if args.only_vote:
        return
    others = None if args.no_peers else CrowdKit(args.peer_python)
    if others is not None and others.version is None:
        print("crowd-kit is left out: not installed")
    theirs = {} if others is None else here() | others.methods(args.crowd_kit)
    with threadpool_limits(1):
        for data in sets:
            methods: dict[str, Method] = trellis_methods(data)
            if args.only_auto:
                methods = {"auto": methods["auto"]}
            if not data.aligned:
                methods["most frequent whole answer"] = most_frequent_answers
            limits: dict[str, int] = {}
            slow = SLOW if data.aligned else SLOW | SLOW_NETWORKS
            for name, method in theirs.items():
                k = slow.get(name.split()[-1])
                told = name if k is None else f"{name}, {k} repeat{'s' * (k > 1)}"
                limits |= {} if k is None else {told: k}
                methods[told] = method
            show(data, curve(data, methods, sizes, args.repeats, limits=limits))
    if others is not None:
        others.close()


if __name__ == "__main__":
    main()
