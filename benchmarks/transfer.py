"""Transfer: annotations of one laboratory, or kind of text, for another that has few.

    python -m benchmarks.transfer [--tasks cellmigration-epidermis ...] [--draws 5]

1. Cells of two real movies and two simulated laboratories, both ways. The source is annotated in
   full; of the target's training part some links are, drawn one by one, or whole pairs of frames;
   the rest of it is given, too. F1 of links and of divisions, and task loss (events that are other
   than annotated, by the number of true ones), in per cent, on the test part.
2. Parts of speech: e-mails as source, reviews as target, both with the same regulariser.

«Flow» is the tracker that learns nothing; «target» is what ``fit`` makes of the target alone;
«transfer» has default settings. Means over draws of what is annotated ± half their 95 % interval.
«Against the better»: difference, in points, to the better of source and target alone (by their
means), with the 95 % interval of a bootstrap over draws and test pairs (sentences: Student's t over
draws); of a loss, less is better. Settings were chosen on halves of the parts to learn from; test
parts had been scored with earlier rules, the last of which (when to believe a source that has
splits and merges) was changed after the simulated laboratories had been.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.options import begin
from benchmarks.side_by_side import Table
from studies.cheap_data.chains import EMAILS, FEATURES, REVIEWS, drawn, tagged
from studies.cheap_data.data import NEIGHBOURS, TITLES, cells, events_of, measured
from studies.cheap_data.tables import interval
from studies.datasets import load
from trellis import ChainCRF, MaxMargin
from trellis.cheap import TransferLearner
from trellis.tracking import (
    FlowTracker,
    FramePair,
    PairAnnotation,
    TrackingModel,
    TrackingResult,
)

STRATEGIES: dict[str, dict[str, Any]] = {
    "source": {"strategy": "all-source"},
    "target": {"strategy": "all-target"},
    "transfer": {},
}
_BOOTSTRAP = 1000

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


def cell_scores(result: TrackingResult, test: list[FramePair]) -> tuple[list[float], list[float]]:
    """F1 of links, of divisions and the loss, in per cent; the loss of each pair."""
    found = measured(result, test)
    losses = [100 * float(loss) for loss in found["losses"]]
    return [100 * found["links"], 100 * found["divisions"], float(np.mean(losses))], losses


def move_cells(source: str, target: str, args: Any) -> None:
    """One laboratory to another."""
    protocol = "quick" if args.small else "default"
    events = events_of(source, target)
    there, (train, test) = cells(source, protocol)[0], cells(target, protocol)
    there = there[: args.source_pairs]
    title = f"{TITLES[source]} to {TITLES[target].lower()}: {len(there)} pairs to {len(train)}"
    figures = "link F1", "division F1", "task loss, %"
    table = Table(title, "annotated", "learned from", *figures, "against the better")
    bare = [replace(pair, annotation=None) for pair in test]
    untrained, _ = cell_scores(FlowTracker().fit(bare).predict(bare), test)
    table.add("", "nothing: flow", *(f"{score:.2f}" for score in untrained), "")
    for name, annotate in annotations(train, args).items():
        draws = 1 if name in ("nothing", "all") else args.draws
        scores: dict[str, list[list[float]]] = {strategy: [] for strategy in STRATEGIES}
        losses: dict[str, list[list[float]]] = {strategy: [] for strategy in STRATEGIES}
        for draw in range(draws):
            data = {"source": there, "target": annotate(np.random.default_rng(draw))}
            for strategy, chosen in STRATEGIES.items():
                model = TrackingModel(events, n_neighbors=NEIGHBOURS)
                learner = TransferLearner(model, target="target", **chosen).fit(data)
                figures_, each = cell_scores(learner.predict(test), test)
                scores[strategy].append(figures_)
                losses[strategy].append(each)
        better = min("source", "target", key=lambda s: float(np.mean(losses[s])))
        away = np.array(losses["transfer"]) - np.array(losses[better])
        _show(table, name, scores, _bootstrap(away))
    table.show()


def _show(table: Table, name: str, scores: dict[str, list[list[float]]], away: str) -> None:
    """A row for each strategy."""
    for strategy, runs in scores.items():
        means = [_interval(values) for values in np.transpose(runs)]
        table.add(name, strategy, *means, away if strategy == "transfer" else "")


def _bootstrap(away: NDArray[np.float64]) -> str:
    """Mean of differences (draws, pairs) and its interval."""
    rng = np.random.default_rng(0)
    draws, pairs = away.shape
    means = [
        away[rng.integers(draws, size=draws)][:, rng.integers(pairs, size=pairs)].mean()
        for _ in range(_BOOTSTRAP)
    ]
    low, high = np.quantile(means, [0.025, 0.975])
    return f"{away.mean():+.2f} ({low:+.2f} to {high:+.2f})".replace("-", "−")


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
            better = max("source", "target", key=lambda s: float(np.mean(scores[s])))
            away = _interval(np.subtract(scores["transfer"], scores[better])[:, 0])
            sign = "" if away.startswith("-") else "+"
            _show(table, f"{n}", scores, f"{sign}{away}".replace("-", "−"))
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
