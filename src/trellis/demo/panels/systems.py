"""Several systems: weak taggers combined, where they agree, and what a person should look at.

Seven taggers mark the words of Python's manual that are code (:mod:`trellis.demo.manual`): six
learn from 100 sentences each, with different features and learners, one is a rule. The right labels
of up to 400 further sentences teach how to combine them; all other sentences test it. Shown are

- the *best single* system, chosen on the gold sentences, as a user would have to;
- the *plain vote*, the dumbest way to combine;
- the combination that ``trellis combine`` chooses: the best of its ten methods in five-fold
  cross-validation on the gold sentences. Nothing sees a test sentence before it is measured.

F1 is of pieces of code. With less gold than there is, several parts of it are taken in turn and
their F1 averaged. Intervals of 95 % are of a bootstrap over test sentences and over these parts;
that of a difference to the vote is paired. It is called a gain, or a loss, only if its interval
does not hold 0.
"""

from __future__ import annotations

import html
import keyword
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis import ChainCRF, ChainPerceptron
from trellis.demo import charts
from trellis.demo.elements import code_of, figure, note, percent, summary, table
from trellis.demo.manual import code_words
from trellis.demo.warm import warm_few, warm_plain
from trellis.evaluation.spans import sample_counts
from trellis.experts import (
    BestExpert,
    ESPBoost,
    ExpertOutputs,
    ForwardStepwise,
    LogLinearVote,
    MajorityVote,
    Rerank,
    Rover,
    Stacking,
    WeightedMajority,
    from_models,
)

__all__ = [
    "METHODS", "TITLE", "WARM", "Estimate", "Look", "Rule", "Trial", "choose", "example", "panel",
    "summarise", "warm", "weak_taggers",
]  # fmt: skip

TITLE = "Several systems: combined, compared, checked"

METHODS: Mapping[str, Any] = {
    "best-expert": BestExpert(),
    "majority-vote": MajorityVote(),
    "plurality": Rerank(weights="uniform"),
    "rerank": Rerank(),
    "rover": Rover(),
    "weighted-majority": WeightedMajority(),
    "espboost": ESPBoost(scheme="BIO"),
    "stepwise": ForwardStepwise(random_state=0),
    "log-linear": LogLinearVote(),
    "stacking": Stacking(scheme="BIO"),
}
"""What ``trellis combine`` tries, by the names it has there."""

_LEARNERS: Mapping[str, tuple[type[Any], str]] = {
    "CRF, spelling": (ChainCRF, "prefix(word, 1..3); suffix(word, 1..3); short_shape(word)"),
    "CRF, words": (ChainCRF, "word[0..1]; short_shape(word)"),
    "CRF, neighbours": (ChainCRF, "word[-1]; word[1]; short_shape(word)[-1..1]"),
    "perceptron, letters": (ChainPerceptron, "ngrams(word, 2..3)"),
    "perceptron, words": (ChainPerceptron, "word[-1..1]; short_shape(word)"),
    "perceptron, pairs": (ChainPerceptron, "word[-1..0] & word[0..1]; suffix(word, 1..2)"),
}
_TRAIN, _GOLD = 600, 400  # sentences for the taggers, and for combining them
_LESS_GOLD = (20, 100)
_PARTS = 4  # of the gold that are taken in turn, where there are so many
_FOLDS = 5
_RESAMPLES = 2000
_SHOWN = 8  # positions for a person to look at
_AROUND = 5  # words before and after them

Labels = list[list[str]]
Floats = NDArray[np.float64]


def example(seed: int, train: int, taught: int) -> tuple[Any, ...]:
    """What the panel runs and shows."""
    from trellis.demo.manual import code_words
    from trellis.demo.panels.systems import choose, weak_taggers
    from trellis.experts import from_models

    words, labels = code_words(seed)  # sentences of Python's manual; which words are code?
    taggers = weak_taggers(words[:train], labels[:train], seed)
    models, names = [*taggers.values()], [*taggers]
    said = from_models(models, words[train:taught], names=names)
    new = from_models(models, words[taught:], names=names)
    method = choose(said, labels[train:taught])  # by cross-validation, as `trellis combine` does
    combined = method.fit(said, labels[train:taught]).predict(new)
    return said, labels[train:taught], new, words[taught:], labels[taught:], method, combined


def panel(seed: int) -> str:
    """The panel as HTML."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # no stubs

    sizes = {"train": _TRAIN, "taught": _TRAIN + _GOLD}
    with threadpool_limits(1):  # threads of BLAS cost more than they bring to so little
        said, gold, new, words, truth, method, combined = example(seed, **sizes)
        study = _Study(new, truth, seed)
        trials = [study.trial(said, gold, size) for size in _LESS_GOLD]
        trials.append(study.trial(said, gold, len(gold), (method, combined)))
    look = Look.measure(new, truth, combined, study.weights)
    return "".join(
        [
            _STYLE,
            summary(summarise(new.n_experts, trials, look)),
            '<div class="columns"><div>',
            _scores(trials),
            _over_the_vote(trials),
            "</div>",
            _by_gold(trials),
            "</div>",
            '<div class="columns">',
            _agreement(new, truth),
            _levels(look, new.n_experts),
            "</div>",
            _to_look_at(new, words, truth, combined),
            code_of(example, seed=seed, **sizes),
            _about(new, trials),
        ]
    )


def warm() -> None:
    """The same path on a few sentences."""
    words, labels = code_words(0, n=100)  # enough words that they are coded as those of many are
    taggers = [*weak_taggers(words[:30], labels[:30], 0).values()]
    said = from_models(taggers, words)
    some, right = said.take(slice(30)), labels[:30]
    choose(some, right).fit(some, right).predict(said)


WARM = (warm_few, warm_plain, warm)


# ---------------------------------------------------------------------------- systems


class Rule:
    """Words with the marks of code are code, and so are keywords of four letters or more.

    Examples
    --------
    >>> Rule().predict([["the", "__enter__()", "method"]])
    [['O', 'B-code', 'O']]
    """

    _MARKS = re.compile(r"[_()\[\]=<>'.]|[a-z][A-Z]")

    def predict(self, samples: Iterable[Sequence[str]]) -> Labels:
        """Labels of sentences."""
        return [self._labels(words) for words in samples]

    def _labels(self, words: Sequence[str]) -> list[str]:
        labels = ["O"]
        for word in words:
            is_code = self._MARKS.search(word) or (keyword.iskeyword(word) and len(word) > 3)
            labels.append("O" if not is_code else "B-code" if labels[-1] == "O" else "I-code")
        return labels[1:]


def weak_taggers(words: Sequence[Any], labels: Sequence[Any], seed: int) -> dict[str, Any]:
    """Six taggers, each trained on its own sixth of the sentences, and a rule.

    Examples
    --------
    >>> words, labels = code_words(seed=0, n=12)
    >>> len(weak_taggers(words, labels, seed=0))
    7
    """
    taggers: dict[str, Any] = {}
    for k, (name, (model, features)) in enumerate(_LEARNERS.items()):
        own = slice(k * len(words) // len(_LEARNERS), (k + 1) * len(words) // len(_LEARNERS))
        taggers[name] = model(features, random_state=seed).fit(words[own], labels[own])
    return taggers | {"rule": Rule()}


def choose(said: ExpertOutputs, gold: Labels) -> Any:
    """The method with the best F1 in cross-validation: what ``trellis combine`` would take.

    Parameters
    ----------
    said : ExpertOutputs
        What the systems answer to the gold sentences.
    gold : list of lists of str
        The right labels.
    """
    n = len(gold)
    fold = np.random.default_rng(0).permutation(n) % _FOLDS
    scores = []
    for method in METHODS.values():
        counts = np.zeros(3)
        for k in range(_FOLDS):
            rest, held = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            method.fit(said.take(rest), [gold[i] for i in rest])
            answers = method.predict(said.take(held))
            counts += sample_counts([gold[i] for i in held], answers, "BIO").sum(axis=0)
        scores.append(float(_f1(counts)))
    return [*METHODS.values()][int(np.argmax(scores))]


# ---------------------------------------------------------------------------- measurements


@dataclass(frozen=True)
class Estimate:
    """A figure and its 95 % interval."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Floats) -> Estimate:
        """From a figure and, after it, what it is in each resample."""
        low, high = np.quantile(values[1:], [0.025, 0.975])
        return cls(float(values[0]), float(low), float(high))

    @property
    def sign(self) -> int:
        """1 or -1 if its interval, as it is shown, is above or below 0, else 0."""
        return int(round(self.low, 1) > 0) - int(round(self.high, 1) < 0)

    def __str__(self) -> str:
        return f"{_signed(self.value)} ({_signed(self.low)} to {_signed(self.high)})"


@dataclass(frozen=True)
class Trial:
    """F1 on the test sentences with so many gold ones; gains are over the plain vote."""

    n_gold: int
    best: Estimate
    vote: Estimate
    combined: Estimate
    gain_of_best: Estimate
    gain: Estimate
    methods: tuple[str, ...]


class _Study:
    """Answers to the test sentences, measured with the same resamples of them throughout."""

    def __init__(self, new: ExpertOutputs, truth: Labels, seed: int) -> None:
        self._new, self._truth = new, truth
        self._rng = np.random.default_rng(seed)
        n = len(truth)
        self.weights = self._rng.multinomial(n, np.full(n, 1 / n), size=_RESAMPLES).astype(float)

    def trial(
        self, said: ExpertOutputs, gold: Labels, size: int, done: tuple[Any, Labels] | None = None
    ) -> Trial:
        """Combine with so many gold sentences; method and answers may be there already."""
        n_parts = max(1, min(_PARTS, len(gold) // size))
        best, vote, learned, methods = [], [], [], []
        for k in range(n_parts):
            part = slice(k * size, (k + 1) * size)
            known, right = said.take(part), gold[part]
            method = choose(known, right) if done is None else done[0]
            methods.append(_name(method))
            answers = done[1] if done else method.fit(known, right).predict(self._new)
            learned.append(self._scores(answers))
            best.append(self._scores(BestExpert().fit(known, right).predict(self._new)))
            vote.append(self._scores(MajorityVote().fit(known, right).predict(self._new)))
        lots = self._rng.integers(0, n_parts, (_RESAMPLES, n_parts))
        one, two, three = (_averaged(scores, lots) for scores in (best, vote, learned))
        return Trial(
            n_gold=size,
            best=Estimate.of(one),
            vote=Estimate.of(two),
            combined=Estimate.of(three),
            gain_of_best=Estimate.of(one - two),
            gain=Estimate.of(three - two),
            methods=tuple(methods),
        )

    def _scores(self, answers: Labels) -> Floats:
        """F1 on all test sentences, then on each resample of them."""
        counts = sample_counts(self._truth, answers, "BIO")
        return _f1(np.vstack([counts.sum(axis=0), self.weights @ counts]))


def _averaged(scores: Sequence[Floats], lots: NDArray[np.int64]) -> Floats:
    """Means over the parts of the gold, in a resample over those that were drawn."""
    rows = np.array(scores)
    drawn = np.take_along_axis(rows[:, 1:].T, lots, axis=1)
    return np.concatenate([[rows[:, 0].mean()], drawn.mean(axis=1)])


def _f1(counts: NDArray[Any]) -> Floats:
    """F1 in per cent of numbers (..., 3) of correct, predicted and gold spans."""
    correct, both = counts[..., 0], counts[..., 1] + counts[..., 2]
    f1: Floats = 200.0 * correct / np.maximum(both, 1)
    return f1


def _name(method: Any) -> str:
    return next(name for name, known in METHODS.items() if known is method)


@dataclass(frozen=True)
class Look:
    """Where errors are: by how many systems say the same as the combination.

    Attributes
    ----------
    shares, wrong, errors : float (p + 1,)
        Words with which 0, 1, ... systems agree: share of all words, share of them that is wrong,
        share of all errors.
    at_most : int
        Words with which so many systems or fewer agree hold half of all errors or more; no smaller
        number does.
    words, wrong_there, of_errors : Estimate
        These words, in per cent: of all; how many are wrong; of all errors.
    """

    shares: Floats
    wrong: Floats
    errors: Floats
    at_most: int
    words: Estimate
    wrong_there: Estimate
    of_errors: Estimate

    @classmethod
    def measure(cls, new: ExpertOutputs, truth: Labels, combined: Labels, weights: Floats) -> Look:
        """Count, with bootstrap weights (B, sentences) for the intervals."""
        agreeing, mistaken = _agreeing(new, combined), _mistaken(truth, combined)
        n = np.bincount(agreeing, minlength=new.n_experts + 1)
        n_wrong = np.bincount(agreeing[mistaken], minlength=new.n_experts + 1)
        upto = np.cumsum(n_wrong)
        at_most = int(np.argmax(upto >= upto[-1] / 2))
        low = agreeing <= at_most
        parts = np.stack([np.ones(len(low)), low, mistaken, low & mistaken], axis=1)
        counts = np.add.reduceat(parts, new.offsets[:-1], axis=0)
        total = np.vstack([counts.sum(axis=0), weights @ counts])
        per_cent = 100 * total[:, [1, 3, 3]] / np.maximum(total[:, [0, 1, 2]], 1)
        return cls(
            shares=n / n.sum(),
            wrong=n_wrong / np.maximum(n, 1),
            errors=n_wrong / max(upto[-1], 1),
            at_most=at_most,
            words=Estimate.of(per_cent[:, 0]),
            wrong_there=Estimate.of(per_cent[:, 1]),
            of_errors=Estimate.of(per_cent[:, 2]),
        )


def _agreeing(new: ExpertOutputs, combined: Labels) -> NDArray[np.int64]:
    """How many systems say what the combination says, at each word (N,)."""
    code = {label: k for k, label in enumerate(new.labels)}
    answer = np.array([code.get(label, -1) for label in chain(*combined)])
    agreeing: NDArray[np.int64] = (new.codes == answer[:, None]).sum(axis=1)
    return agreeing


def _mistaken(truth: Labels, combined: Labels) -> NDArray[np.bool_]:
    """Where the combination is wrong (N,)."""
    return np.array([a != b for a, b in zip(chain(*truth), chain(*combined), strict=True)])


# ---------------------------------------------------------------------------- words


def summarise(n_systems: int, trials: Sequence[Trial], look: Look) -> str:
    """The panel in sentences: what most gold brings, what less of it does, where errors are."""
    last = trials[-1]
    same = ", as it picks just that one" if last.methods == ("best-expert",) else ""
    return (
        f"{_count(n_systems).capitalize()} weak taggers mark code in Python's manual. Their plain "
        f"vote has F1 {last.vote.value:.1f}, the best of them alone {last.best.value:.1f}. "
        f"Taught by {last.n_gold} labelled sentences, trellis combine has "
        f"{last.combined.value:.1f}{same}: {verdict(last.gain)} over the vote. "
        f"{less_gold(trials[:-1])}{where_errors_are(n_systems, look)}"
    )


def where_errors_are(n_systems: int, look: Look) -> str:
    """Which words a person should look at first."""
    every = _count(n_systems)
    few = "not all" if look.at_most == n_systems - 1 else f"at most {_count(look.at_most)} of"
    return (
        f"The {look.words.value:.0f} % of words where {few} {every} agree with the answer hold "
        f"{look.of_errors.value:.0f} % of all errors: a person should look there first."
    )


def verdict(gain: Estimate) -> str:
    """What a difference to the vote amounts to.

    Examples
    --------
    >>> verdict(Estimate(2.0, 0.5, 3.5))
    'a sure gain of 2.0 (+0.5 to +3.5)'
    >>> verdict(Estimate(-0.2, -1.0, 0.6))
    'no sure gain (−0.2, −1.0 to +0.6)'
    >>> verdict(Estimate(-2.0, -3.5, -0.5))
    'a sure loss of 2.0 (−3.5 to −0.5)'
    """
    low, high = _signed(gain.low), _signed(gain.high)
    if not gain.sign:
        return f"no sure gain ({_signed(gain.value)}, {low} to {high})"
    return (
        f"a sure {'gain' if gain.sign > 0 else 'loss'} of {abs(gain.value):.1f} ({low} to {high})"
    )


def less_gold(trials: Sequence[Trial]) -> str:
    """What combining brings with fewer gold sentences; nothing is said without trials."""
    said = []
    for sign, words in (
        (1, "it surely gains"),
        (0, "it makes no sure difference to the vote"),
        (-1, "it surely loses to the vote"),
    ):
        sizes = [str(trial.n_gold) for trial in trials if trial.gain.sign == sign]
        if sizes:
            said.append(f"with {' or '.join(sizes)} {words}")
    text = "; ".join(said)
    return f"{text[0].upper()}{text[1:]}. " if text else ""


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")


def _count(n: int) -> str:
    words = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    return words[n] if n < len(words) else str(n)


# ---------------------------------------------------------------------------- pictures

_STYLE = """<style>
.systems-matrix { border-collapse: separate; border-spacing: 2px; font-size: .84rem; }
.systems-matrix th, .systems-matrix td { border: 0; padding: 3px 5px; }
.systems-matrix th { font-weight: 500; }
.systems-matrix thead th, .systems-matrix td { text-align: center; }
.systems-matrix td { min-width: 2.3em; border-radius: 3px; font-variant-numeric: tabular-nums;
  --tint: color-mix(in srgb, var(--c0) calc(var(--share) * 1%), var(--paper));
  background: var(--paper) linear-gradient(var(--tint), var(--tint)); }
.systems-matrix td.self { background: none; color: var(--faint); }
.systems-look th, .systems-look td { padding: 3px 3px 3px 0; vertical-align: top; }
.systems-look th:not(:first-child), .systems-look td:not(:first-child) { text-align: center; }
.systems-look td:first-child { min-width: 15rem; padding-right: 12px; }
.systems-look mark { background: var(--mark); color: inherit; padding: 0 3px; border-radius: 3px;
  font-weight: 600; }
.systems-look i { display: inline-block; width: 1.6em; font-style: normal; border-radius: 3px;
  color: var(--faint); border: 1px solid transparent; }
.systems-look i.right { color: var(--ink); font-weight: 600; border-color: var(--c2);
  background: color-mix(in srgb, var(--c2) 18%, var(--paper)); }
.systems-look .total { border-left: 1px solid var(--rule); padding-left: 6px; }
@media (max-width: 520px) {
  .systems-matrix { font-size: .74rem; border-spacing: 1px; }
  .systems-matrix th, .systems-matrix td { padding: 2px 1px; min-width: 1.9em; }
  .systems-look td:first-child { min-width: 9.5rem; padding-right: 6px; }
  .systems-look th, .systems-look td { padding-right: 1px; }
  .systems-look i { width: 1.3em; }
}
</style>"""


def _scores(trials: Sequence[Trial]) -> str:
    last = trials[-1]
    rows = [
        charts.Measured(name, value.value, value.low, value.high)
        for name, value in (
            ("best single tagger", last.best),
            ("plain vote", last.vote),
            (f"trellis combine ({last.methods[0]})", last.combined),
        )
    ]
    caption = f"F1 on test sentences, {last.n_gold} gold sentences; whiskers: 95 % intervals."
    return figure(charts.intervals(rows, "F1 of pieces of code, %"), caption)


def _by_gold(trials: Sequence[Trial]) -> str:
    sizes = [trial.n_gold for trial in trials]
    series = []
    for name, values in (
        ("best single", [trial.best for trial in trials]),
        ("plain vote", [trial.vote for trial in trials]),
        ("trellis combine", [trial.combined for trial in trials]),
    ):
        y, low, high = zip(*((e.value, e.low, e.high) for e in values), strict=True)
        series.append(charts.Curve(name, sizes, y, low, high))
    picture = charts.curves(series, "gold sentences", "F1, %", log_x=True)
    return figure(picture, "What more gold brings. The vote learns nothing from it.")


def _over_the_vote(trials: Sequence[Trial]) -> str:
    rows = [("best single tagger", trials[-1].gain_of_best)]
    rows += [(f"trellis combine, {trial.n_gold} gold sentences", trial.gain) for trial in trials]
    measured = [charts.Measured(name, gain.value, gain.low, gain.high) for name, gain in rows]
    chosen = [f"{' or '.join(dict.fromkeys(t.methods))} from {t.n_gold}" for t in trials]
    caption = (
        "The same as differences to the plain vote, paired. What reaches across 0 is no sure "
        f"difference. It chose {', '.join(chosen)} gold sentences."
    )
    return figure(charts.intervals(measured, "F1 over the plain vote"), caption)


def _agreement(new: ExpertOutputs, truth: Labels) -> str:
    """F1 of each system against each other one and against the truth, as a heat map."""
    answers = [new.lists(new.codes[:, j]) for j in range(new.n_experts)] + [truth]
    names = [*(f"{chr(65 + j)}  {name}" for j, name in enumerate(new.names)), "truth"]
    head = "".join(f'<th scope="col">{html.escape(name.split()[0])}</th>' for name in names)
    rows = []
    for i, row in enumerate(answers):
        cells = [f'<th scope="row">{html.escape(names[i])}</th>']
        for j, column in enumerate(answers):
            if i == j:
                cells.append('<td class="self">–</td>')
                continue
            value = float(_f1(sample_counts(row, column, "BIO").sum(axis=0)))
            share = max(0.0, min(45.0, 1.5 * (value - 45)))
            cells.append(f'<td style="--share:{share:.0f}">{value:.0f}</td>')
        rows.append(f"<tr>{''.join(cells)}</tr>")
    picture = (
        f'<div class="scroll"><table class="systems-matrix"><thead><tr><th></th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )
    caption = (
        "How alike the systems are: F1 of one's pieces of code against another's. The last row is "
        "F1 against the truth. Systems that differ have more to give each other."
    )
    return figure(picture, caption)


def _levels(look: Look, n_systems: int) -> str:
    rows = []
    for k in range(n_systems, -1, -1):
        if look.shares[k]:
            rows.append(
                [
                    f"{k} of {n_systems}",
                    percent(look.shares[k]),
                    percent(look.wrong[k]),
                    percent(look.errors[k]),
                ]
            )
    header = ["systems that agree", "share of words", "of them wrong", "of all errors"]
    caption = (
        f"What a person should look at: where {look.at_most} or fewer of {n_systems} systems say "
        f"what the combination says are {_within(look.words)} of the words; "
        f"{_within(look.wrong_there)} of these are wrong, and they hold {_within(look.of_errors)} "
        "of all errors (95 % intervals)."
    )
    return figure(table(header, rows), caption)


def _within(share: Estimate) -> str:
    return f"{share.value:.1f} % ({share.low:.1f} to {share.high:.1f})"


def _to_look_at(
    new: ExpertOutputs, words: Sequence[Sequence[str]], truth: Labels, combined: Labels
) -> str:
    """The words with the least agreement, one of a sentence, and what is said of them."""
    agreeing = _agreeing(new, combined)
    code = {label: _short(label) for label in new.labels}
    head = "".join(
        f"<th>{name}</th>"
        for name in (*(chr(65 + j) for j in range(new.n_experts)), "all", "truth")
    )
    rows: dict[int, str] = {}
    for t in np.argsort(agreeing, kind="stable").tolist():
        s = int(np.searchsorted(new.offsets, t, side="right")) - 1
        if s in rows:
            continue
        k = t - int(new.offsets[s])
        right = _short(truth[s][k])
        said = [code[new.labels[c]] for c in new.codes[t]]
        cells = "".join(f"<td>{_answer(answer, right)}</td>" for answer in said)
        answer = _answer(_short(combined[s][k]), right)
        rows[s] = (
            f'<tr>{_excerpt(words[s], k)}{cells}<td class="total">{answer}</td>'
            f'<td class="total">{right}</td></tr>'
        )
        if len(rows) == _SHOWN:
            break
    picture = (
        f'<div class="scroll"><table class="systems-look"><thead><tr><th>least agreement</th>{head}'
        f"</tr></thead><tbody>{''.join(rows.values())}</tbody></table></div>"
    )
    caption = (
        "The words with the fewest systems behind the combination («all»), one of a sentence: B "
        "begins a piece of code, I goes on with it, · is no code. Framed answers are right."
    )
    return figure(picture, caption)


def _short(label: str) -> str:
    return "·" if label == "O" else label[0]


def _answer(said: str, right: str) -> str:
    return f'<i class="right">{said}</i>' if said == right else f"<i>{said}</i>"


def _excerpt(words: Sequence[str], k: int) -> str:
    first, last = max(0, k - _AROUND), min(len(words), k + _AROUND + 1)
    before, after = (html.escape(" ".join(part)) for part in (words[first:k], words[k + 1 : last]))
    left, right = "… " if first else "", " …" if last < len(words) else ""
    return f"<td>{left}{before} <mark>{html.escape(words[k])}</mark> {after}{right}</td>"


def _about(new: ExpertOutputs, trials: Sequence[Trial]) -> str:
    return note(
        f"Measured now on {len(new):,} sentences ({new.n_positions:,} words) of this Python's "
        "language reference, which the taggers and the combination have not seen; quotes, by which "
        "the manual marks code, are taken away. The best single tagger is the one that is best on "
        f"the gold. With {' or '.join(str(trial.n_gold) for trial in trials[:-1])} gold sentences, "
        f"F1 is the mean over {_PARTS} such samples. Intervals: bootstrap over test sentences and "
        "these samples; other taggers or other text may differ by more."
    )
