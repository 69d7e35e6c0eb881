"""Labelling less: F1 against the number of labelled words, drawn or chosen.

Nothing of Python's manual (:mod:`trellis.demo.manual`) is labelled at first. A CRF asks, a person
(here: the quotes of the manual) answers, and after 125, 250, 500 and 1,000 words it is trained on
all answers and tested on sentences that it could not ask for. What it asks for is

- *random sentences*, the dumbest way;
- *chosen sentences*: ``ActiveLearner`` with its defaults, which asks for the sentence of the most
  doubt by word, where doubts about familiar words count more;
- *random words*: five neighbours somewhere, the dumbest way to ask for parts;
- *chosen words*: ``query_part`` with the strategy "token-entropy", the five neighbours anywhere
  whose labels are least sure. Words are asked for up to 500, which is what there is time for here.

All of it is done six times, with other sentences to ask for and to test on. Intervals of 95 % are
of Student's t over these runs, those of differences paired. Asking is said to save labels only if
fewer words have surely a better F1; of the numbers of random words that are so beaten, the largest
is named.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis import ChainCRF
from trellis.cheap import ActiveLearner, Part
from trellis.demo import charts
from trellis.demo.elements import code_of, figure, note, summary
from trellis.demo.manual import code_words
from trellis.demo.warm import warm_few, warm_marginals, warm_plain
from trellis.evaluation.spans import sample_counts

__all__ = [
    "TITLE", "WARM", "Estimate", "Saving", "example", "panel", "saving", "summarise", "verdict",
    "warm",
]  # fmt: skip

TITLE = "Labelling less: let the model ask"

_BUDGETS = (125, 250, 500, 1000)  # labelled words
_IN_PARTS = 3  # of these, where words are asked for
_RUNS = 6
_POOL = 250
_TEST = 600
_SIZE = 5  # of a part
_SHOWN = 8  # questions
_LABELS = ["B-code", "I-code", "O"]
_FEATURES = "word[-1..1]; suffix(word, 1..3); short_shape(word)[-1..1]"  # as in the example

Labels = list[list[str]]
Floats = NDArray[np.float64]


def example(seed: int, n: int, budgets: Sequence[int]) -> tuple[Any, ...]:
    """What the panel runs and shows."""
    from trellis import ChainCRF
    from trellis.cheap import ActiveLearner
    from trellis.demo.manual import code_words

    words, labels = code_words(seed, n)  # sentences of Python's manual; which words are code?
    crf = ChainCRF("word[-1..1]; suffix(word, 1..3); short_shape(word)[-1..1]", random_state=seed)
    learner = ActiveLearner(crf, "token-entropy", labels=["B-code", "I-code", "O"])
    n_words, asked, models = 0, [], []
    for budget in budgets:
        while n_words < budget:
            i, places = learner.query_part(words, size=5)
            learner.tell(i, {k: labels[i][k] for k in places})  # a person would answer here
            asked.append((i, places))
            n_words += len(places)
        models.append(learner.finish())
    return words, labels, asked, models


def panel(seed: int) -> str:
    """The panel as HTML."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # no stubs

    with threadpool_limits(1):
        runs = [_Run.make(_RUNS * seed + k, _POOL, _TEST, _BUDGETS) for k in range(_RUNS)]
    scores = {name: np.array([run.scores[name] for run in runs]) for name in runs[0].scores}
    return "".join(
        [
            _STYLE,
            summary(summarise(_BUDGETS, scores)),
            '<div class="columns">',
            _curves(scores),
            _gains(scores),
            "</div>",
            _questions(runs[0]),
            code_of(example, seed=_RUNS * seed, n=_POOL, budgets=_BUDGETS[:_IN_PARTS]),
            _about(),
        ]
    )


def warm() -> None:
    """The same path with a few questions."""
    _Run.make(0, 12, 60, (10, 20))  # enough words that they are coded as those of many are


WARM = (warm_marginals, warm_few, warm_plain, warm)


# ---------------------------------------------------------------------------- measurements

RANDOM, DEFAULT, PARTS, CHOSEN = (
    "random sentences",
    "chosen sentences (default)",
    "random words",
    "chosen words",
)


@dataclass(frozen=True)
class _Run:
    """F1 of each way to ask, after each number of words; and what was asked for at last."""

    words: Sequence[Sequence[str]]
    labels: Labels
    asked: Sequence[tuple[int, Sequence[int]]]
    scores: Mapping[str, list[float]]

    @classmethod
    def make(cls, seed: int, pool: int, test: int, budgets: Sequence[int]) -> _Run:
        words, labels, asked, models = example(seed, pool, budgets[:_IN_PARTS])
        new, truth = (part[pool:] for part in code_words(seed, pool + test))
        rng = np.random.default_rng(seed)
        found = {
            RANDOM: _fitted(
                words, labels, budgets, seed, _drawn(labels, max(map(len, labels)), rng)
            ),
            DEFAULT: _by_default(words, labels, budgets, seed),
            PARTS: _fitted(words, labels, budgets[:_IN_PARTS], seed, _drawn(labels, _SIZE, rng)),
            CHOSEN: models,
        }
        scores = {
            name: [_f1(truth, model.predict(new)) for model in models]
            for name, models in found.items()
        }
        return cls(words, labels, asked, scores)


def _by_default(words: Any, labels: Labels, budgets: Sequence[int], seed: int) -> list[Any]:
    """Models after so many words of whole sentences that the learner asks for by default."""
    learner = ActiveLearner(ChainCRF(_FEATURES, random_state=seed), labels=_LABELS)
    models, n_words = [], 0
    for budget in budgets:
        while n_words < budget:
            i = learner.query(words)
            learner.tell(i, labels[i])
            n_words += len(labels[i])
        models.append(learner.finish())
    return models


def _fitted(
    words: Any, labels: Labels, budgets: Sequence[int], seed: int, parts: Iterator[Part]
) -> list[Any]:
    """Models after so many words of the parts that come; ``fit`` learns what ``finish`` would."""
    known: list[list[str | None]] = [[None] * len(sentence) for sentence in labels]
    models, n_words = [], 0
    for budget in budgets:
        while n_words < budget:
            i, places = next(parts)
            for k in places:
                known[i][k] = labels[i][k]
            n_words += len(places)
        some = [i for i, sentence in enumerate(known) if any(sentence)]
        crf = ChainCRF(_FEATURES, random_state=seed)
        models.append(crf.fit([words[i] for i in some], [known[i] for i in some]))
    return models


def _drawn(labels: Labels, size: int, rng: np.random.Generator) -> Iterator[Part]:
    """Neighbours of this number, none twice, in random order."""
    parts = [
        Part(i, tuple(range(k, min(k + size, len(sentence)))))
        for i, sentence in enumerate(labels)
        for k in range(0, len(sentence), size)
    ]
    for number in rng.permutation(len(parts)):
        yield parts[number]


def _f1(truth: Labels, answers: Labels) -> float:
    """F1 of pieces of code, in per cent."""
    correct, predicted, wanted = sample_counts(truth, answers, "BIO").sum(axis=0)
    return 200.0 * float(correct) / max(1, int(predicted + wanted))


@dataclass(frozen=True)
class Estimate:
    """A mean over runs and its 95 % interval by Student's t.

    Examples
    --------
    >>> print(Estimate.of([1.0, 2.0, 3.0]))
    +2.0 (−0.5 to +4.5)
    """

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float] | Floats) -> Estimate:
        """From one value for each run."""
        from scipy.special import stdtrit

        n = len(values)
        mean = float(np.mean(values))
        half = float(stdtrit(n - 1, 0.975) * np.std(values, ddof=1) / np.sqrt(n))
        return cls(mean, mean - half, mean + half)

    @property
    def sign(self) -> int:
        """1 or -1 if its interval, as it is shown, is above or below 0, else 0."""
        return int(round(self.low, 1) > 0) - int(round(self.high, 1) < 0)

    def __str__(self) -> str:
        return f"{_signed(self.value)} ({self.interval})"

    @property
    def interval(self) -> str:
        """The ends of the interval."""
        return f"{_signed(self.low)} to {_signed(self.high)}"


@dataclass(frozen=True)
class Saving:
    """So few chosen words have surely more F1 than so many random ones."""

    n_chosen: int
    n_random: int
    chosen: float
    random: float
    gain: Estimate


def saving(budgets: Sequence[int], chosen: Floats, random: Floats) -> Saving | None:
    """The largest number of random words that fewer chosen ones surely beat, and how many do.

    Parameters
    ----------
    budgets : sequence of int
        Numbers of labelled words, rising.
    chosen, random : float (runs, budgets)
        F1; chosen ones may end earlier.

    Returns
    -------
    Saving or None
        None if no smaller number of chosen words is surely better.

    Examples
    --------
    >>> random = np.array([[30.0, 40.0, 50.0], [32.0, 41.0, 51.0], [31.0, 42.0, 50.0]])
    >>> found = saving([250, 500, 1000], random + 15, random)
    >>> found.n_chosen, found.n_random
    (500, 1000)
    """
    for m in range(len(budgets) - 1, 0, -1):
        for k in range(min(m, chosen.shape[1])):
            gain = Estimate.of(chosen[:, k] - random[:, m])
            if gain.sign > 0:
                return Saving(
                    budgets[k], budgets[m], chosen[:, k].mean(), random[:, m].mean(), gain
                )
    return None


# ---------------------------------------------------------------------------- words


def summarise(budgets: Sequence[int], scores: Mapping[str, Floats]) -> str:
    """The panel in sentences, from F1 (runs, budgets) of each way to ask."""
    drawn = scores[RANDOM]
    return " ".join(
        [
            "Which words of Python's manual are code?",
            verdict("Let the model ask for words", budgets, scores[CHOSEN], drawn),
            verdict("Let it ask for sentences, the default,", budgets, scores[DEFAULT], drawn),
        ]
    )


def verdict(what: str, budgets: Sequence[int], chosen: Floats, random: Floats) -> str:
    """What asking brings over drawing: fewer labels, more F1 for as many, or nothing sure.

    Parameters
    ----------
    what : str
        How to ask.
    budgets : sequence of int
        Numbers of labelled words, rising.
    chosen, random : float (runs, budgets)
        F1; chosen ones may end earlier.
    """
    last = chosen.shape[1] - 1
    reached = float(chosen[:, last].mean())
    found = saving(budgets, chosen, random)
    if found is not None:
        more = f" {budgets[last]:,} reach {reached:.1f}." if found.n_chosen < budgets[last] else ""
        return (
            f"{what} and you label {found.n_chosen:,} words instead of {found.n_random:,} in "
            f"random sentences: F1 {found.chosen:.1f} against {found.random:.1f}, surely more "
            f"({found.gain.interval}).{more}"
        )
    gain = Estimate.of(chosen[:, last] - random[:, last])
    how = {1: "surely more", 0: "no sure difference", -1: "surely less"}[gain.sign]
    return (
        f"{what} and {budgets[last]:,} words reach F1 {reached:.1f} against "
        f"{random[:, last].mean():.1f} at random: {how} ({gain.interval})."
    )


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")


# ---------------------------------------------------------------------------- pictures

_STYLE = """<style>
.labelling-gains td { white-space: nowrap; font-variant-numeric: tabular-nums; }
.labelling-gains th { vertical-align: top; }
.labelling-gains tbody th { text-align: right; }
.labelling-gains small { display: block; color: var(--faint); font-weight: 400; }
.labelling-gains .sure { font-weight: 700; }
@media (max-width: 520px) {
  .labelling-gains th, .labelling-gains td { padding-right: 6px; }
  .labelling-gains small { font-size: .72rem; }
}
.labelling-asked td { vertical-align: top; }
.labelling-asked td:first-child { text-align: right; padding-right: 10px; color: var(--faint); }
.labelling-asked mark { background: var(--mark); color: inherit; border-radius: 3px;
  padding: 0 3px; }
.labelling-asked mark.code { font-weight: 600; text-decoration: underline; }
</style>"""


def _curves(scores: Mapping[str, Floats]) -> str:
    series = []
    for name, values in scores.items():
        estimates = [Estimate.of(column) for column in values.T]
        low = [max(0.0, estimate.low) for estimate in estimates]
        high = [min(100.0, estimate.high) for estimate in estimates]
        means = [estimate.value for estimate in estimates]
        series.append(charts.Curve(name, _BUDGETS[: len(means)], means, low, high))
    picture = charts.curves(series, "labelled words", "F1 on other sentences, %", log_x=True)
    return figure(picture, f"Means of {_RUNS} runs; bands: 95 % intervals.")


def _gains(scores: Mapping[str, Floats]) -> str:
    others = [CHOSEN, DEFAULT, PARTS]
    head = "".join(f"<th>{html.escape(name)}</th>" for name in others)
    rows = []
    for k, budget in enumerate(_BUDGETS):
        cells = []
        for name in others:
            if k >= scores[name].shape[1]:
                cells.append("<td>–</td>")
                continue
            gain = Estimate.of(scores[name][:, k] - scores[RANDOM][:, k])
            kind = ' class="sure"' if gain.sign else ""
            cells.append(f"<td{kind}>{_signed(gain.value)}<small>{gain.interval}</small></td>")
        rows.append(f'<tr><th scope="row">{budget:,}</th>{"".join(cells)}</tr>')
    picture = (
        '<div class="scroll"><table class="labelling-gains"><thead><tr><th>words</th>'
        f"{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )
    caption = "F1 over random sentences of as many words, paired by run; what is sure is bold."
    return figure(picture, caption)


def _questions(run: _Run) -> str:
    """Some questions: the first ones, and others up to the last."""
    last = len(run.asked) - 1
    numbers = sorted({0, 1, 2, *np.linspace(3, last, _SHOWN - 3).astype(int).tolist()})
    rows = []
    for number in numbers:
        if number > last:
            continue
        i, places = run.asked[number]
        text = " ".join(
            _word(word, label, k in places)
            for k, (word, label) in enumerate(zip(run.words[i], run.labels[i], strict=True))
        )
        rows.append(f"<tr><td>{number + 1}</td><td>{text}</td></tr>")
    picture = (
        '<div class="scroll"><table class="labelling-asked"><thead><tr><th></th>'
        f"<th>which of the marked words are code?</th></tr></thead><tbody>{''.join(rows)}</tbody>"
        "</table></div>"
    )
    caption = (
        "What it asks for, from the first question to the last of a run. The answers: bold and "
        "underlined words are code. Of words that are not marked nothing is said."
    )
    return figure(picture, caption)


def _word(word: str, label: str, asked: bool) -> str:
    if not asked:
        return html.escape(word)
    kind = "" if label == "O" else ' class="code"'
    return f"<mark{kind}>{html.escape(word)}</mark>"


def _about() -> str:
    return note(
        f"Measured now, {_RUNS} times: {_POOL} sentences of this Python's language reference to "
        f"ask for and {_TEST} others to test on, drawn anew each time; every answer is right. Who "
        f"labels {_SIZE} words of a sentence still has to read it, so less time is saved than "
        "labels. «Random words» says what asking for parts brings by itself. Intervals: Student's "
        "t over the runs; the summary names the largest saving that is sure by itself, of several "
        "that were looked at."
    )
