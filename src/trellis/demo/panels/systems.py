"""Several systems: weak taggers combined, where they agree, and what a person should look at.

Seven taggers mark the words of Python's manual that are code (:mod:`trellis.demo.taggers`). The
right labels of up to 400 further sentences, or none, teach how to combine them; all other sentences
test it (:mod:`trellis.demo.trials`). Shown are

- the *best single* system, chosen on the gold sentences, as a user would have to;
- the *plain vote*, the dumbest way to combine;
- what ``AutoCombiner`` takes, which is what ``trellis combine`` runs. Nothing sees the labels of a
  test sentence before it is measured.

A difference is called a gain, or a loss, only if its interval does not hold 0.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from trellis.demo import charts
from trellis.demo.doubts import (
    DOUBT_STYLE,
    Look,
    curve_of_errors,
    levels_table,
    places_to_look_at,
)
from trellis.demo.elements import code_of, figure, note, summary
from trellis.demo.manual import code_words
from trellis.demo.taggers import weak_taggers
from trellis.demo.trials import Estimate, Study, Trial, signed, span_f1
from trellis.demo.warm import warm_few, warm_plain
from trellis.evaluation.spans import sample_counts
from trellis.experts import AutoCombiner, ExpertOutputs, from_models

__all__ = ["TITLE", "WARM", "example", "panel", "summarise", "verdict", "warm", "what_gold_adds"]

TITLE = "Several systems: combined, compared, checked"

_TRAIN, _GOLD = 600, 400  # sentences for the taggers, and for combining them
_LESS_GOLD = (20, 100)
_PARTS = 3  # of the gold that are taken in turn, where there are so many
_RESAMPLES = 2000

Labels = list[list[str]]


def example(seed: int, train: int, taught: int) -> tuple[Any, ...]:
    """What the panel runs and shows."""
    from trellis.demo.manual import code_words
    from trellis.demo.taggers import weak_taggers
    from trellis.experts import AutoCombiner, from_models

    words, labels = code_words(seed)  # sentences of Python's manual; which words are code?
    taggers = weak_taggers(words[:train], labels[:train], seed)
    models, names = [*taggers.values()], [*taggers]
    said = from_models(models, words[train:taught], names=names)
    new = from_models(models, words[taught:], names=names)
    alone = AutoCombiner().fit(said)  # no right answers at all
    combiner = AutoCombiner().fit(said, labels[train:taught])
    answers = combiner.predict(new)
    doubts = combiner.review(new)  # what a person should look at, most doubtful first
    return words, labels, said, new, alone, combiner, answers, doubts


def panel(seed: int) -> str:
    """The panel as HTML."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # no stubs

    sizes = {"train": _TRAIN, "taught": _TRAIN + _GOLD}
    with threadpool_limits(1):  # threads of BLAS cost more than they bring to so little
        words, labels, said, new, alone, combiner, answers, doubts = example(seed, **sizes)
        gold, truth = labels[_TRAIN : _TRAIN + _GOLD], labels[_TRAIN + _GOLD :]
        study = Study(new, truth, alone, _PARTS, _RESAMPLES, seed)
        trials = [study.without_gold(said)]
        trials += [study.with_gold(said, gold, size) for size in _LESS_GOLD]
        trials.append(study.with_gold(said, gold, len(gold), combiner))
        sure = combiner.predict_confidence(new)
    look = Look.measure(answers, sure, doubts, truth, study.weights)
    return "".join(
        [
            _STYLE,
            DOUBT_STYLE,
            summary(summarise(new.n_experts, trials, look)),
            '<div class="columns"><div>',
            _scores(trials),
            _over_the_vote(trials),
            "</div><div>",
            _by_gold(trials),
            _agreement(new, truth),
            '</div></div><div class="columns">',
            curve_of_errors(look),
            levels_table(look),
            "</div>",
            places_to_look_at(doubts, words[_TRAIN + _GOLD :], truth),
            code_of(example, seed=seed, **sizes),
            _about(new, trials),
        ]
    )


def warm() -> None:
    """The same path on a few sentences."""
    words, labels = code_words(0, n=100)  # enough words that they are coded as those of many are
    taggers = [*weak_taggers(words[:30], labels[:30], 0).values()]
    said = from_models(taggers, words)
    AutoCombiner().fit(said.take(slice(30)), labels[:30]).review(said)


WARM = (warm_few, warm_plain, warm)


# ---------------------------------------------------------------------------- words


def summarise(n_systems: int, trials: Sequence[Trial], look: Look) -> str:
    """The panel in sentences: without gold, what gold adds, where errors are.

    Trials are in the order of their gold; the first has none.
    """
    first, last = trials[0], trials[-1]
    best = "" if last.best is None else f", the best of them alone {last.best.value:.1f}"
    return (
        f"{_count(n_systems).capitalize()} weak taggers mark code in Python's manual. Their plain "
        f"vote has F1 {first.vote.value:.1f}{best}. Combined without a single right answer they "
        f"have {first.combined.value:.1f}: {verdict(first.gain)} over the vote. "
        f"{what_gold_adds(trials[1:])}{look}"
    )


def verdict(gain: Estimate) -> str:
    """What a difference amounts to.

    Examples
    --------
    >>> verdict(Estimate(2.0, 0.5, 3.5))
    'a sure gain of 2.0 (+0.5 to +3.5)'
    >>> verdict(Estimate(-0.2, -1.0, 0.6))
    'no sure gain (−0.2, −1.0 to +0.6)'
    >>> verdict(Estimate(-2.0, -3.5, -0.5))
    'a sure loss of 2.0 (−3.5 to −0.5)'
    """
    low, high = signed(gain.low), signed(gain.high)
    if not gain.sign:
        return f"no sure gain ({signed(gain.value)}, {low} to {high})"
    return (
        f"a sure {'gain' if gain.sign > 0 else 'loss'} of {abs(gain.value):.1f} ({low} to {high})"
    )


def what_gold_adds(trials: Sequence[Trial]) -> str:
    """What right answers add to the combination without any; nothing is said without trials."""
    said = []
    for sign, words in ((1, "surely add to that"), (-1, "surely take from that")):
        for trial in trials:
            if trial.more is not None and trial.more.sign == sign:
                value, low, high = map(signed, (trial.more.value, trial.more.low, trial.more.high))
                said.append(f"to {trial.n_gold} sentences {words} ({value}, {low} to {high})")
    same = [str(t.n_gold) for t in trials if t.more is not None and not t.more.sign]
    if same:
        said.append(f"to {_either(same)} sentences make no sure difference to that")
    lost = [str(trial.n_gold) for trial in trials if trial.gain.sign < 0]
    if lost:
        said.append(f"to {_either(lost)} sentences leave it surely behind the vote")
    return f"Right answers {'; those '.join(said)}. " if said else ""


def _either(names: Sequence[str]) -> str:
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


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
@media (max-width: 520px) {
  .systems-matrix { font-size: .74rem; border-spacing: 1px; }
  .systems-matrix th, .systems-matrix td { padding: 2px 1px; min-width: 1.9em; }
}
</style>"""


def _scores(trials: Sequence[Trial]) -> str:
    first, last = trials[0], trials[-1]
    rows = [
        charts.Measured(name, value.value, value.low, value.high)
        for name, value in (
            ("best single tagger", last.best),
            ("plain vote", first.vote),
            (f"combined, no gold ({first.methods[0]})", first.combined),
            (f"combined, {last.n_gold} gold ({last.methods[0]})", last.combined),
        )
        if value is not None
    ]
    caption = (
        "F1 on test sentences; whiskers: 95 % intervals. Gold: sentences whose right answers teach "
        f"how to combine; the best tagger is the one that is best on {last.n_gold} of them."
    )
    return figure(charts.intervals(rows, "F1 of pieces of code, %"), caption)


def _by_gold(trials: Sequence[Trial]) -> str:
    series = []
    for name, values in (
        ("best single", [trial.best for trial in trials]),
        ("plain vote", [trial.vote for trial in trials]),
        ("combined", [trial.combined for trial in trials]),
    ):
        known = [(t.n_gold, e) for t, e in zip(trials, values, strict=True) if e is not None]
        x, y, low, high = zip(*((n, e.value, e.low, e.high) for n, e in known), strict=True)
        series.append(charts.Curve(name, x, y, low, high))
    picture = charts.curves(series, "gold sentences", "F1, %")
    return figure(picture, "What more gold brings. The vote learns nothing from it.")


def _over_the_vote(trials: Sequence[Trial]) -> str:
    rows = [("best single tagger", trials[-1].gain_of_best)]
    rows += [(f"combined, {trial.n_gold or 'no'} gold sentences", trial.gain) for trial in trials]
    measured = [charts.Measured(name, e.value, e.low, e.high) for name, e in rows if e is not None]
    taken: dict[str, list[str]] = {}
    for trial in trials:
        method = _either([*dict.fromkeys(trial.methods)])
        taken.setdefault(method, []).append(str(trial.n_gold or "no"))
    told = "; ".join(f"{method} with {_either(sizes)}" for method, sizes in taken.items())
    caption = (
        "The same as differences to the plain vote, paired. What reaches across 0 is no sure "
        f"difference. The method taken: {told} gold sentences."
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
            value = float(span_f1(sample_counts(row, column, "BIO").sum(axis=0)))
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


def _about(new: ExpertOutputs, trials: Sequence[Trial]) -> str:
    less = [str(trial.n_gold) for trial in trials[1:-1]]
    return note(
        f"Measured now on {len(new):,} sentences ({new.n_positions:,} words) of this Python's "
        "language reference, which the taggers and the combination have not seen; quotes, by which "
        "the manual marks code, are taken away. Combined by AutoCombiner, as trellis combine does: "
        f"without gold it is given what the systems say to {trials[-1].n_gold} sentences, with gold"
        " only what they say to the gold ones. "
        f"With {_either(less)} gold sentences, F1 is the mean over {_PARTS} such samples. "
        "Intervals: bootstrap over test sentences and these samples; other taggers or other text "
        "may differ by more."
    )
