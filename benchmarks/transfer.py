"""Transfer: annotations of one laboratory, or kind of text, for another that has few.

    python -m benchmarks.transfer [--tasks cellmigration-epidermis ...] [--draws 5]

1. Cells of two real movies and two simulated laboratories, both ways. The source is annotated in
   full; of the target's training part some links are, drawn one by one, or whole pairs of frames.
   Test parts were not seen while the rules were made. F1 of links and of divisions, and task loss
   (events that are other than annotated, by the number of true ones), in per cent.
2. Parts of speech: e-mails as source, reviews as target, both with the same regulariser.

«Transfer» has default settings: one scale, biases that may differ more than other weights, and how
strongly it transfers, if at all, chosen by cross-validation in what is annotated of the target.
«Transfer, rho 2.5» is what was the default: it always transfers. Means over draws of what is
annotated ± half their 95 % interval. «Against the better»: paired difference, in points, of
transfer to the better of source and target alone (by their means); of a loss, less is better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.options import begin
from benchmarks.side_by_side import Table
from studies.cheap_data.chains import EMAILS, FEATURES, REVIEWS, drawn, tagged
from studies.cheap_data.data import NEIGHBOURS, TITLES, cells, events_of, measured
from studies.cheap_data.tables import interval
from studies.datasets import load
from trellis import ChainCRF, MaxMargin
from trellis.cheap import TransferLearner
from trellis.tracking import FramePair, PairAnnotation, TrackingModel

STRATEGIES: dict[str, dict[str, Any]] = {
    "source": {"strategy": "all-source"},
    "target": {"strategy": "all-target"},
    "union": {"strategy": "union"},
    "transfer, rho 2.5": {"rho": 2.5, "bias_rho": 1.0},
    "transfer": {},
}

Draw = Callable[[np.random.Generator], list[FramePair]]


def links_of(pairs: Sequence[FramePair], n: int, rng: np.random.Generator) -> list[FramePair]:
    """Pairs in which n moves, divisions, … are annotated, and nothing else."""
    every = [
        (i, links)
        for i, pair in enumerate(pairs)
        for links in _events(pair.annotation or PairAnnotation())
    ]
    kept: dict[int, list[tuple[int, int, str]]] = {}
    for k in rng.permutation(len(every))[:n].tolist():
        i, links = every[k]
        kept.setdefault(i, []).extend(links)
    return [
        replace(pair, annotation=PairAnnotation(tuple(kept[i]), (), ()) if i in kept else None)
        for i, pair in enumerate(pairs)
    ]


def _events(note: PairAnnotation) -> list[list[tuple[int, int, str]]]:
    """The links of each event."""
    events: dict[Any, list[tuple[int, int, str]]] = {}
    for source, target, kind in note.links:
        one = target if kind == "merge" else source
        events.setdefault((kind, one), []).append((source, target, kind))
    return list(events.values())


def complete(pairs: Sequence[FramePair], n: int, rng: np.random.Generator) -> list[FramePair]:
    """Pairs of which n are annotated in full, and the others not at all."""
    kept = set(rng.permutation(len(pairs))[:n].tolist())
    return [pair if i in kept else replace(pair, annotation=None) for i, pair in enumerate(pairs)]


def annotations(pairs: list[FramePair], args: Any) -> dict[str, Draw]:
    """Ways to annotate a target, by what they cost."""
    fifth = max(1, len(pairs) // 5)
    ways: dict[str, Draw] = {
        f"{n} links" if n else "nothing": partial(links_of, pairs, n) for n in args.links
    }
    few = [n for n in args.pairs if n < fifth]
    ways |= {f"{n} pair{'s' * (n > 1)}": partial(complete, pairs, n) for n in few}
    return ways | {
        "20 % of the pairs": partial(complete, pairs, fifth),
        "all": partial(complete, pairs, len(pairs)),
    }


def cell_scores(learner: TransferLearner, test: list[FramePair]) -> list[float]:
    found = measured(learner.predict(test), test)
    return [100 * found["links"], 100 * found["divisions"], 100 * float(np.mean(found["losses"]))]


def move_cells(source: str, target: str, args: Any) -> None:
    """One laboratory to another."""
    protocol = "quick" if args.small else "default"
    events = events_of(source, target)
    there, (train, test) = cells(source, protocol)[0], cells(target, protocol)
    there = there[: args.source_pairs]
    title = f"{TITLES[source]} to {TITLES[target].lower()}: {len(there)} pairs to {len(train)}"
    figures = "link F1", "division F1", "task loss, %"
    table = Table(title, "annotated", "learned from", *figures, "against the better")
    for name, annotate in annotations(train, args).items():
        draws = 1 if name in ("nothing", "all") else args.draws
        scores: dict[str, list[list[float]]] = {strategy: [] for strategy in STRATEGIES}
        for draw in range(draws):
            data = {"source": there, "target": annotate(np.random.default_rng(draw))}
            for strategy, chosen in STRATEGIES.items():
                if name == "nothing" and strategy == "target":
                    continue
                model = TrackingModel(events, n_neighbors=NEIGHBOURS)
                learner = TransferLearner(model, target="target", **chosen).fit(data)
                scores[strategy].append(cell_scores(learner, test))
        _show(table, name, scores)
    table.show()


def _show(table: Table, name: str, scores: dict[str, list[list[float]]]) -> None:
    """A row for each strategy; the last of its figures is a loss, or else the score."""
    sign = 1 if len(next(iter(scores.values()))[0]) > 1 else -1
    last = {strategy: np.array(runs)[:, -1] for strategy, runs in scores.items() if runs}
    better = min((sign * last[s].mean(), s) for s in ("source", "target") if s in last)[1]
    for strategy, runs in scores.items():
        if runs:
            means = [_interval(values) for values in np.transpose(runs)]
            away = _interval(last[strategy] - last[better]).replace("-", "−")
            away = away if away.startswith("−") else f"+{away}"
            table.add(name, strategy, *means, away if "transfer" in strategy else "")


def _interval(values: Sequence[float]) -> str:
    mean, half = interval(values)
    return f"{mean:.2f} ± {half:.2f}" if len(values) > 1 else f"{mean:.2f}"


def move_words(args: Any) -> None:
    """From e-mails to reviews."""
    corpus = tagged(load("ud_ewt").train)
    emails, reviews = corpus[EMAILS], corpus[REVIEWS]
    if args.small:  # stand-ins have no genres
        emails, reviews = corpus[:20], corpus[20:]
    test, pool = reviews[len(reviews) - args.test :], reviews[: len(reviews) - args.test]
    for kind in (MaxMargin, ChainCRF):
        title = f"Parts of speech, {kind.__name__}: {args.sentences} sentences of e-mails"
        table = Table(title, "sentences", "learned from", "tokens right, %", "against the better")
        for n in args.known:
            scores: dict[str, list[list[float]]] = {strategy: [] for strategy in STRATEGIES}
            for draw in range(args.draws):
                data = {
                    "source": drawn(emails, args.sentences, draw),
                    "target": drawn(pool, n, draw),
                }
                for strategy, chosen in STRATEGIES.items():
                    model = kind(FEATURES["ud_ewt"], l2=1.0, random_state=0)
                    learner = TransferLearner(model, target="target", **chosen).fit(data)
                    right = learner.models_["target"].score(test, metric="accuracy")
                    scores[strategy].append([100 * float(right)])
            _show(table, f"{n}", scores)
        table.show()


def main() -> None:
    pairs = ["cellmigration-epidermis", "epidermis-cellmigration", "a-b", "b-a"]
    args = begin(
        __doc__,
        tasks=([*pairs, "words"], ["a-b", "words"], "source-target, or words"),
        links=([0, 10, 50, 200], [0, 10], "annotated links of the target"),
        pairs=([1, 2, 5], [], "annotated pairs of the target"),
        source_pairs=(20, 3, "pairs of the source"),
        known=([5, 20, 100], [5], "annotated sentences of the target"),
        sentences=(150, 10, "annotated sentences of the source"),
        test=(200, 10, "test sentences"),
        draws=(5, 2),
    )
    for task in args.tasks:
        if task == "words":
            move_words(args)
        else:
            source, target = task.split("-")
            move_cells(source, target, args)


if __name__ == "__main__":
    main()
