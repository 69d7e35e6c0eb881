"""The same code on text: partial annotation, active learning and transfer on chains.

- *chains-partial*: chunks of ``conll2000``; some of the tokens are annotated, scattered over all
  sentences, and F1 is measured against their share: for the bridge loss, a CRF of label sets
  (which sums over what is not annotated), the partial perceptron, a CRF without structure (pieces
  of one token), and the bridge loss with as many tokens in sentences annotated in full.
- *chains-active*: the same sentences as a pool, of which an active learner asks for whole
  sentences or for spans; F1 against the tokens that were annotated, of the perceptron and of the
  max-margin model that ends it.
- *chains-transfer*: parts of speech of ``ud_ewt``, whose training sentences come genre after
  genre: e-mails are the source, reviews the target, of which a share of the sentences is annotated.

Each run has training sentences of its own; test sentences are the same for all.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from studies.cheap_data.tables import interval, percent_interval
from studies.datasets import load
from studies.experiments import Computation, Experiment, Records
from studies.folder import Call
from studies.markdown import markdown
from trellis.cheap import (
    TRANSFER_STRATEGIES,
    ActiveLearner,
    TransferLearner,
    cross_validate_transfer,
)
from trellis.corpus import Corpus, Labels
from trellis.errors import DataError
from trellis.evaluation import span_scores, token_accuracy
from trellis.models import ChainCRF, MaxMargin
from trellis.pictures.style import new_figure, save_figure
from trellis.solvers import partial_perceptron

__all__ = [
    "EMAILS",
    "FEATURES",
    "REVIEWS",
    "SIZES",
    "Sizes",
    "active_run",
    "chain_experiments",
    "drawn",
    "partial_run",
    "tagged",
    "transfer_run",
]

FEATURES = {
    "conll2000": (
        "bos; eos; pos[-2..2]; pos[-1] & pos; pos & pos[1]; word[-1..1] @ min_count=2; "
        "suffix(word, 2) @ min_count=2"
    ),
    "ud_ewt": (
        "bos; eos; word[-1..1] @ min_count=2; suffix(word, 1..3) @ min_count=2; "
        "prefix(word, 1) ; shape(word)"
    ),
}
"""Templates, few enough for planes of all weights."""

EMAILS, REVIEWS = slice(1700, 5300), slice(9900, None)
"""Genres of the training sentences of ``ud_ewt``, well within their borders."""

_L2 = {"margin": 2.0, "crf": 0.1}
"""Factors of the regularisers, chosen on sentences that are not tested on."""
_RHOS = (0.5, 2.0, 8.0, 32.0)
_FOLDS = 3
_TOL = 0.05
_PASSES = 10

METHODS = {
    "bridge": "bridge loss",
    "crf": "CRF of label sets",
    "perceptron": "partial perceptron",
    "no-structure": "CRF without structure (n′ = 1)",
    "whole": "bridge loss, whole sentences",
}
_ACTIVE = ("random", "scoring", "best-vs-worst", "best-vs-second")
_UNITS = {"sentences": None, "spans": 5}
"""What is asked for, and the number of tokens of a part."""


@dataclass(frozen=True)
class Sizes:
    """How much of everything a protocol has."""

    n_train: int  # sentences of each run
    n_test: int  # sentences of the test
    n_runs: int
    shares: tuple[float, ...]  # shares of the tokens that are annotated
    # Annotated tokens at which an active learner is tested: its perceptron, and a max-margin
    # model of what it asked for
    tokens: tuple[int, ...]
    finished: tuple[int, ...]
    target_shares: tuple[float, ...]  # shares of the target sentences that are annotated


SIZES = {
    "quick": Sizes(30, 60, 1, (0.1, 0.5, 1.0), (50, 150), (150,), (0.1, 1.0)),
    "default": Sizes(
        200, 300, 3, (0.05, 0.1, 0.25, 0.5, 0.75, 1.0), (100, 200, 400, 800, 1600), (400, 1600),
        (0.05, 0.1, 0.2, 0.5, 1.0),
    ),
    "full": Sizes(
        300, 1000, 10, (0.05, 0.1, 0.25, 0.5, 0.75, 1.0), (50, 100, 200, 400, 800, 1600),
        (200, 400, 800, 1600), (0.05, 0.1, 0.2, 0.3, 0.5, 1.0),
    ),
}  # fmt: skip
"""Sizes of the protocols."""


# -------------------------------------------------------------------- data


def drawn(corpus: Corpus, n: int, run: int) -> Corpus:
    """Sentences of one run, drawn without replacement."""
    if len(corpus) < n:
        raise DataError(f"{n} sentences are needed, but there are {len(corpus)}")
    return corpus.take(np.random.default_rng([1, run]).permutation(len(corpus))[:n])


def _chunks(sizes: Sizes, run: int) -> tuple[Corpus, Corpus]:
    data = load("conll2000")
    return drawn(data.train, sizes.n_train, run), data.test[: sizes.n_test]


def _masked(corpus: Corpus, kept: NDArray[np.bool_]) -> Corpus:
    """The corpus with labels at some positions only; its classes stay as they are."""
    y = [
        [label if keep else None for label, keep in zip(labels, own, strict=True)]
        for labels, own in zip(
            corpus.label_lists(), np.split(kept, corpus.offsets[1:-1]), strict=True
        )
    ]
    assert corpus.labels is not None
    return replace(corpus, labels=Labels.from_lists(y, corpus.labels.classes))


def _scores(test: Corpus, predicted: Sequence[Sequence[str]]) -> dict[str, float]:
    gold: Any = test.label_lists()
    found = {"accuracy": token_accuracy(gold, predicted)}
    if any(label.startswith("B-") for labels in gold for label in labels):
        found["f1"] = span_scores(gold, predicted, scheme="BIO").f1
    return found


_percent = functools.partial(percent_interval, digits=1)


# -------------------------------------------------------------------- partial annotation


def partial_run(method: str, share: float, run: int, sizes: Sizes) -> dict[str, Any]:
    """Learn from a share of the tokens of the sentences of a run."""
    train, test = _chunks(sizes, run)
    rng = np.random.default_rng([2, run])
    order = rng.permutation(train.n_positions)
    kept = np.zeros(train.n_positions, bool)
    n_kept = max(1, round(share * train.n_positions))
    if method == "whole":
        n = int(np.searchsorted(np.cumsum(train.lengths), n_kept)) + 1
        kept[: int(train.offsets[min(n, len(train))])] = True
    else:
        kept[order[:n_kept]] = True
    model = _learned(method, _masked(train, kept))
    return {"tokens": int(kept.sum())} | _scores(test, model.predict(test))


def _learned(method: str, corpus: Corpus) -> Any:
    features = FEATURES["conll2000"]
    if method in ("crf", "no-structure"):
        piece = 1.0 if method == "no-structure" else None
        return ChainCRF(
            features, l2=_L2["crf"], solver="lbfgs", piece_size=piece, random_state=0
        ).fit(corpus)
    svm = MaxMargin(features, l2=_L2["margin"], tol=_TOL, solver="bundle", random_state=0)
    if method != "perceptron":
        return svm.fit(corpus)
    problem = svm.learning_problems({"train": corpus})["train"]
    return svm.with_weights(problem, partial_perceptron(problem, passes=_PASSES, seed=0))


_PARTIAL = Computation("chains-partial", partial_run)


def _partial_calls(protocol: str) -> list[Call]:
    sizes = SIZES[protocol]
    return [
        _PARTIAL.call(f"{method} {share:.0%}, run {run}", protocol, method, share, run, sizes=sizes)
        for run in range(sizes.n_runs)
        for share in sizes.shares
        for method in METHODS
    ]


def _partial_values(
    protocol: str, records: Records, method: str, share: float, score: str
) -> list[float]:
    """Scores, a list over runs."""
    runs = range(SIZES[protocol].n_runs)
    return [_PARTIAL.of(records, protocol, method, share, run)[score] for run in runs]


def _partial_report(protocol: str, records: Records) -> str:
    sizes = SIZES[protocol]
    parts = [
        f"{sizes.n_train} sentences of `conll2000`, {sizes.n_test} test sentences, mean over "
        f"{sizes.n_runs} run(s) ± half its 95 % interval. The tokens that are annotated "
        "are drawn one by one from all sentences, except in the last row, which has about as "
        f"many tokens in sentences that are annotated in full. l2 = {_L2['margin']:g} for "
        f"max-margin models and {_L2['crf']:g} for CRFs."
    ]
    for score, name in (("f1", "F1 of chunks"), ("accuracy", "Tokens right")):
        rows = []
        for method, title in METHODS.items():
            found = [_partial_values(protocol, records, method, s, score) for s in sizes.shares]
            rows.append([title, *map(_percent, found)])
        parts.append(markdown([f"{name}, %", *(f"{s:.0%}" for s in sizes.shares)], rows))
    quarter = min(sizes.shares, key=lambda s: abs(s - 0.25))
    some, whole = (
        float(np.mean(_partial_values(protocol, records, "bridge", s, "f1")))
        for s in (quarter, sizes.shares[-1])
    )
    parts.append(
        f"With {quarter:.0%} of the tokens the bridge loss has {100 * some:.1f} % F1, "
        f"{100 * (whole - some):.1f} points less than with all of them."
    )
    return "\n\n".join(parts)


def _draw_partial(protocol: str, records: Records, path: Path) -> None:
    sizes = SIZES[protocol]
    curves = {
        title: [_partial_values(protocol, records, method, s, "f1") for s in sizes.shares]
        for method, title in METHODS.items()
    }
    _draw(path, [("chunks", "annotated tokens, %", [100 * s for s in sizes.shares], curves, "F1")])


# -------------------------------------------------------------------- active learning


def active_run(strategy: str, unit: str, run: int, sizes: Sizes) -> dict[str, Any]:
    """Ask for sentences or spans of a pool; scores at numbers of annotated tokens."""
    train, test = _chunks(sizes, run)
    assert train.labels is not None
    gold, pool = train.label_lists(), replace(train, labels=None)
    learner = ActiveLearner(
        MaxMargin(FEATURES["conll2000"], l2=_L2["margin"]), strategy, labels=train.labels.classes,
        random_state=run,
    )  # fmt: skip
    size, told, questions = _UNITS[unit], 0, 0
    learner.query(pool)  # takes the pool
    spans = _spans(gold, size, run) if strategy == "random" and size is not None else []
    asked: list[int] = []
    perceptron: list[dict[str, float]] = []
    combined: list[dict[str, float]] = []
    for goal in sizes.tokens:
        while told < goal:
            if size is None:
                i = learner.query(pool)
                answer: Any = gold[i]
            else:
                i, nodes = spans.pop() if spans else learner.query_part(pool, size)
                answer = {t: gold[i][t] for t in nodes}
            learner.tell(i, answer)
            told, questions = told + len(answer), questions + 1
        asked.append(told)
        perceptron.append(_scores(test, learner.model_.predict(test)))
        if goal in sizes.finished:
            combined.append(_scores(test, learner.finish(tol=_TOL).predict(test)))
    return {
        "asked": asked, "perceptron": perceptron, "combined": combined, "questions": questions,
        "sentences": len(learner.annotated_),
    }  # fmt: skip


def _spans(gold: Sequence[Sequence[Any]], size: int, run: int) -> list[tuple[int, range]]:
    """All sentences cut into spans, in random order, the same for all learners of a run."""
    cut = [
        (i, range(start, min(start + size, len(labels))))
        for i, labels in enumerate(gold)
        for start in range(0, len(labels), size)
    ]
    return [cut[k] for k in np.random.default_rng([3, run]).permutation(len(cut))]


_ASKED = Computation("chains-active", active_run)


def _active_calls(protocol: str) -> list[Call]:
    sizes = SIZES[protocol]
    return [
        _ASKED.call(f"{strategy}, {unit}, run {run}", protocol, strategy, unit, run, sizes=sizes)
        for run in range(sizes.n_runs)
        for unit in _UNITS
        for strategy in _ACTIVE
    ]


def _active_values(
    protocol: str, records: Records, strategy: str, unit: str, part: str
) -> list[list[float]]:
    """F1 at each number of tokens, a list over runs."""
    runs = range(SIZES[protocol].n_runs)
    found = [_ASKED.of(records, protocol, strategy, unit, run)[part] for run in runs]
    return [[scores["f1"] for scores in point] for point in zip(*found, strict=True)]


def _active_report(protocol: str, records: Records) -> str:
    sizes = SIZES[protocol]
    parts = [
        f"A pool of {sizes.n_train} sentences of `conll2000`, F1 in per cent on {sizes.n_test} "
        f"test sentences, mean over {sizes.n_runs} run(s) ± half its 95 % interval. What counts "
        "is the number of tokens that are annotated, not of questions: a strategy that asks for "
        "long sentences pays for it. A learner may go beyond a number by the rest of its last "
        "question. Random spans are drawn from all sentences, cut into spans."
    ]
    for unit, size in _UNITS.items():
        asked = "whole sentences" if size is None else f"spans of {size} tokens"
        for part, name, points in (
            ("perceptron", "perceptron", sizes.tokens),
            ("combined", "then max-margin (combined learning)", sizes.finished),
        ):
            curves = {s: _active_values(protocol, records, s, unit, part) for s in _ACTIVE}
            rows = [[s, *map(_percent, values)] for s, values in curves.items()]
            parts += [
                f"### Asking for {asked}: {name}",
                markdown(["F1, %", *(f"{n:,} tokens" for n in points)], rows),
            ]
    best, random = (
        float(np.mean(_active_values(protocol, records, s, "spans", "combined")[-1]))
        for s in ("best-vs-second", "random")
    )
    parts.append(
        f"With {sizes.finished[-1]:,} tokens in spans, best-vs-second has {100 * best:.1f} % and "
        f"random {100 * random:.1f} %."
    )
    return "\n\n".join(parts)


def _draw_active(protocol: str, records: Records, path: Path) -> None:
    sizes = SIZES[protocol]
    panels = []
    for unit in _UNITS:
        curves = {s: _active_values(protocol, records, s, unit, "perceptron") for s in _ACTIVE}
        panels.append((unit, "annotated tokens", list(sizes.tokens), curves, "F1"))
    _draw(path, panels)


# -------------------------------------------------------------------- transfer


def transfer_run(strategy: str, share: float, run: int, sizes: Sizes) -> dict[str, Any]:
    """Learn from e-mails and a share of the reviews, by one of the strategies; test on reviews."""
    train = tagged(load("ud_ewt").train)
    source = drawn(train[EMAILS], sizes.n_train, run)
    reviews = train[REVIEWS]
    held_out = min(sizes.n_test, len(reviews) // 2)
    test = reviews[len(reviews) - held_out :]
    target = drawn(reviews[: len(reviews) - held_out], sizes.n_train, run)
    kept = np.zeros(target.n_positions, bool)
    n = max(2, round(share * len(target)))  # two, so that there can be folds
    if strategy != "all-target":
        kept[: int(target.offsets[n])] = True
    else:
        kept[:] = True
    model = MaxMargin(FEATURES["ud_ewt"], l2=_L2["margin"])
    data = {"emails": source, "reviews": _masked(target, kept)}
    rho = _RHOS[0]
    if strategy == "transfer":
        rho = cross_validate_transfer(
            model, data, target="reviews", l2s=[_L2["margin"]], rhos=_RHOS, folds=min(_FOLDS, n),
            tol=_TOL,
        ).best.rho  # fmt: skip
    learner = TransferLearner(model, rho, strategy=strategy, target="reviews", tol=_TOL).fit(data)
    return {"sentences": n, "rho": rho} | _scores(test, learner.predict(test))


def tagged(corpus: Corpus) -> Corpus:
    """Parts of speech (UPOS) as labels."""
    column = corpus.columns["upos"]
    labels = Labels.from_codes(column.codes, column.values)
    return replace(corpus, columns={"word": corpus.columns["word"]}, labels=labels)


def _strategies(protocol: str) -> list[tuple[str, float]]:
    """Strategies with the shares of the target on which their result depends."""
    shares = SIZES[protocol].target_shares
    fixed = [("all-source", 1.0), ("all-target", 1.0)]
    return fixed + [
        (strategy, share)
        for share in shares
        for strategy in TRANSFER_STRATEGIES[2:]
        if (strategy, share) != ("partial-target", 1.0)
    ]


_MOVED = Computation("chains-transfer", transfer_run)


def _transfer_calls(protocol: str) -> list[Call]:
    sizes = SIZES[protocol]
    return [
        _MOVED.call(
            f"{strategy} {share:.0%}, run {run}", protocol, strategy, share, run, sizes=sizes
        )
        for run in range(sizes.n_runs)
        for strategy, share in _strategies(protocol)
    ]


def _transfer_values(protocol: str, records: Records, strategy: str, share: float) -> list[float]:
    if (strategy, share) == ("partial-target", 1.0):
        strategy = "all-target"
    share = 1.0 if strategy in TRANSFER_STRATEGIES[:2] else share
    runs = range(SIZES[protocol].n_runs)
    return [_MOVED.of(records, protocol, strategy, share, run)["accuracy"] for run in runs]


def _transfer_report(protocol: str, records: Records) -> str:
    sizes = SIZES[protocol]
    rows = [
        [s, *(_percent(_transfer_values(protocol, records, s, x)) for x in sizes.target_shares)]
        for s in TRANSFER_STRATEGIES
    ]
    goal = float(np.mean(_transfer_values(protocol, records, "all-target", 1.0)))
    reached = [
        share
        for share in sizes.target_shares
        if np.mean(_transfer_values(protocol, records, "transfer", share)) >= goal
    ]
    outcome = (
        f"Transfer reaches «all-target» ({100 * goal:.1f} %) with {reached[0]:.0%} of the target."
        if reached
        else f"Transfer does not reach «all-target» ({100 * goal:.1f} %)."
    )
    return "\n\n".join(
        [
            f"Parts of speech of `ud_ewt`: {sizes.n_train} sentences of e-mails (source) and "
            f"{sizes.n_train} of reviews (target), of which a share is annotated; tokens right in "
            f"per cent on {sizes.n_test} sentences of reviews at most, mean over {sizes.n_runs} "
            f"run(s) ± half its 95 % interval. l2 = {_L2['margin']:g}; rho of «transfer» is chosen "
            f"among {', '.join(f'{rho:g}' for rho in _RHOS)} by cross-validation in what is "
            "annotated of "
            "the target.",
            markdown(["share of the target", *(f"{s:.0%}" for s in sizes.target_shares)], rows),
            outcome,
        ]
    )


def _draw_transfer(protocol: str, records: Records, path: Path) -> None:
    shares = SIZES[protocol].target_shares
    curves = {
        s: [_transfer_values(protocol, records, s, x) for x in shares] for s in TRANSFER_STRATEGIES
    }
    places = [100 * s for s in shares]
    _draw(path, [("parts of speech", "annotated target sentences, %", places, curves, "accuracy")])


# -------------------------------------------------------------------- figures


Panel = tuple[str, str, list[Any], dict[str, list[list[float]]], str]


def _draw(path: Path, panels: Sequence[Panel]) -> None:
    """Curves of means, with their intervals over runs where there are several."""
    figure, axes = new_figure(len(panels))
    for axis, (title, xlabel, places, curves, ylabel) in zip(axes, panels, strict=True):
        for name, points in curves.items():
            means = [100 * float(np.mean(values)) for values in points]
            spread = [100 * interval(v)[1] for v in points]
            axis.errorbar(places, means, spread, marker="o", ms=4, capsize=2, label=name)
        axis.set_xscale("log")
        axis.set_title(title)
        axis.set_xlabel(xlabel)
        axis.set_ylabel(f"{ylabel}, %")
    axes[0].legend()
    save_figure(figure, path)


chain_experiments = (
    Experiment(
        "chains-partial", "Chunks from some of the tokens", _partial_calls, _partial_report,
        ("conll2000",), _draw_partial,
    ),
    Experiment(
        "chains-active", "Chunks by asking", _active_calls, _active_report, ("conll2000",),
        _draw_active,
    ),
    Experiment(
        "chains-transfer", "Parts of speech from another genre", _transfer_calls,
        _transfer_report, ("ud_ewt",), _draw_transfer,
    ),
)  # fmt: skip
"""The experiments on chains, in the order of the report."""
