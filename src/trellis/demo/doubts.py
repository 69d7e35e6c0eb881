r"""What a person should look at: how many errors the answers most in doubt hold.

``AutoCombiner.review`` returns the places on which systems differ, those first that are least
likely right. Whoever looks at them in this order, and after the last at all other words at random,
has seen the share x of the words and found the share h(x) of the errors; by looking at random words
alone it would be h(x) = x on average. A resample of the test sentences has an x and an h of its
own, from which intervals come.

A probability that an answer is right is *calibrated* if of all answers with the probability p the
share p is right.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from trellis.demo import charts
from trellis.demo.elements import figure, percent, table
from trellis.demo.trials import Estimate
from trellis.experts import Doubt

__all__ = ["DOUBT_STYLE", "Level", "Look", "curve_of_errors", "levels_table", "places_to_look_at"]

_LOOKED = (0, 1, 2, 3, 5, 8)  # per cent of all words
_TOLD = 5  # the one of them that is put into words
_EDGES = (0.0, 0.7, 0.9, 1.0)  # of levels of confidence
_SHOWN = 8  # places for a person to look at
_LONGEST = 3  # words of these
_AROUND = 5  # words before and after them

Labels = list[list[str]]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Level:
    """Words of which the combination is about as sure: from ``low`` to ``high``.

    Attributes
    ----------
    low, high : float
    share : float
        Of all words.
    said : float
        Mean probability that they are right, in per cent.
    right : Estimate
        How many are right, in per cent.
    """

    low: float
    high: float
    share: float
    said: float
    right: Estimate


@dataclass(frozen=True)
class Look:
    """Where errors are.

    Attributes
    ----------
    n_places : int
        On which systems differ.
    in_places, errors_in_places : float
        Per cent of all words and of all errors that are there.
    looked : tuple of int
        Per cent of the words that a person looks at.
    found : tuple of Estimate
        Per cent of the errors that are found so.
    levels : tuple of Level
    """

    n_places: int
    in_places: float
    errors_in_places: float
    looked: tuple[int, ...]
    found: tuple[Estimate, ...]
    levels: tuple[Level, ...]

    @classmethod
    def measure(
        cls,
        answers: Labels,
        sure: Sequence[Floats],
        doubts: Sequence[Doubt],
        truth: Labels,
        weights: Floats,
    ) -> Look:
        """Count, with bootstrap weights (B, sentences) for the intervals.

        Answers come with the probability that each label is right, and with the doubts about them.
        """
        wrong = [np.not_equal(a, b) for a, b in zip(answers, truth, strict=True)]
        every = np.vstack([np.ones(len(truth)), weights])  # first all as they are
        n_words, n_wrong = (
            every @ [len(w) for w in wrong],
            np.maximum(every @ [w.sum() for w in wrong], 1),
        )
        sample = np.array([d.sample for d in doubts], np.int64)
        size = np.array([d.end - d.start for d in doubts])
        hit = np.array([wrong[d.sample][d.start : d.end].sum() for d in doubts])
        drawn = every[:, sample]
        x = _from_0_to_1(np.cumsum(drawn * size, axis=1) / n_words[:, None])
        h = _from_0_to_1(np.cumsum(drawn * hit, axis=1) / n_wrong[:, None])
        at = np.array(_LOOKED) / 100
        found = 100 * np.array([np.interp(at, *pair) for pair in zip(x, h, strict=True)])
        return cls(
            n_places=len(doubts),
            in_places=100 * float(x[0, -2]),
            errors_in_places=100 * float(h[0, -2]),
            looked=_LOOKED,
            found=tuple(Estimate.of(column) for column in found.T),
            levels=tuple(_levels(sure, wrong, every)),
        )

    def __str__(self) -> str:
        found = self.found[self.looked.index(_TOLD)]
        more = (
            "a person should look there first"
            if round(found.low) > _TOLD
            else "that is not surely more than random words hold"
        )
        return (
            f"The {_TOLD} % of words that are most in doubt hold {_within(found)} of all errors "
            f"that are left: {more}."
        )


def _from_0_to_1(rows: Floats) -> Floats:
    return np.pad(rows, ((0, 0), (1, 1)), constant_values=((0, 0), (0, 1)))


def _levels(
    sure: Sequence[Floats], wrong: Sequence[NDArray[np.bool_]], weights: Floats
) -> list[Level]:
    """Words by their confidence: the levels that have any."""
    all_words = np.concatenate(sure)
    found = []
    for low, high in pairwise(_EDGES):
        here = [(p >= low) & ((p < high) | (high == _EDGES[-1])) for p in sure]
        n = weights @ [h.sum() for h in here]
        n_right = weights @ [(h & ~w).sum() for h, w in zip(here, wrong, strict=True)]
        if n[0]:
            said = all_words[np.concatenate(here)]
            right = Estimate.of(100 * n_right / np.maximum(n, 1))
            share = len(said) / len(all_words)
            found.append(Level(low, high, share, 100 * float(said.mean()), right))
    return found


def _within(share: Estimate) -> str:
    return f"{share.value:.0f} % ({share.low:.0f} to {share.high:.0f})"


# ---------------------------------------------------------------------------- pictures

DOUBT_STYLE = """<style>
.doubts th, .doubts td { padding: 3px 3px 3px 0; vertical-align: top; }
.doubts th:not(:first-child), .doubts td:not(:first-child) { text-align: center; }
.doubts td:first-child { min-width: 15rem; padding-right: 12px; }
.doubts mark { background: var(--mark); color: inherit; padding: 0 3px; border-radius: 3px;
  font-weight: 600; }
.doubts i { display: inline-block; min-width: 1.6em; padding: 0 2px; font-style: normal;
  border-radius: 3px; color: var(--faint); border: 1px solid transparent; white-space: nowrap; }
.doubts i.right { color: var(--ink); font-weight: 600; border-color: var(--c2);
  background: color-mix(in srgb, var(--c2) 18%, var(--paper)); }
.doubts .total { border-left: 1px solid var(--rule); padding-left: 6px; white-space: nowrap; }
@media (max-width: 520px) {
  .doubts td:first-child { min-width: 9.5rem; padding-right: 6px; }
  .doubts th, .doubts td { padding-right: 1px; }
  .doubts i { min-width: 1.3em; padding: 0; }
}
</style>"""


def curve_of_errors(look: Look) -> str:
    """How many errors are found by looking at so many words."""
    y, low, high = zip(*((e.value, e.low, e.high) for e in look.found), strict=True)
    picture = charts.curves(
        [
            charts.Curve("most in doubt first", look.looked, y, low, high),
            charts.Curve("random words", look.looked, look.looked),
        ],
        "words looked at, %",
        "errors found, %",
    )
    caption = (
        f"What a person should look at. Systems differ from the answer in {look.n_places:,} places "
        f"({look.in_places:.1f} % of the words, {look.errors_in_places:.0f} % of the errors); those"
        " least likely right come first. Band: 95 % interval. The other errors are where all "
        "systems say the same."
    )
    return figure(picture, caption)


def levels_table(look: Look) -> str:
    """Whether the confidence means what it says."""
    rows = [
        [
            f"{100 * level.low:.0f} to {100 * level.high:.0f} %",
            percent(level.share),
            f"{level.said:.1f} %",
            f"{level.right.value:.1f} % ({level.right.low:.1f} to {level.right.high:.1f})",
        ]
        for level in look.levels
    ]
    off = sum(not level.right.low <= level.said <= level.right.high for level in look.levels)
    caption = (
        "How sure the combination says it is, on average, and how many of these words are right "
        "(95 % intervals), which it learned from the gold; without any, it only tells how far the "
        f"systems agree. What it says is outside the interval in {off or 'none'} of "
        f"{len(look.levels)} rows."
    )
    return figure(table(["how sure", "of words", "it says", "are right"], rows), caption)


def places_to_look_at(doubts: Sequence[Doubt], words: Labels, truth: Labels) -> str:
    """The places most in doubt, one of a sentence, and what is said of them."""
    n_systems = len(doubts[0].said) if doubts else 0
    columns = [*(chr(65 + j) for j in range(n_systems)), "all", "sure", "truth"]
    head = "".join(f"<th>{name}</th>" for name in columns)
    rows: dict[int, str] = {}
    for doubt in doubts:
        s, start, end = doubt.sample, doubt.start, doubt.end
        if s in rows or end - start > _LONGEST:
            continue
        right = _short(truth[s][start:end])
        cells = "".join(f"<td>{_answer(_short(y.split()), right)}</td>" for y in doubt.said)
        rows[s] = (
            f"<tr>{_excerpt(words[s], start, end)}{cells}"
            f'<td class="total">{_answer(_short(doubt.answer.split()), right)}</td>'
            f'<td class="total">{percent(doubt.confidence, 0)}</td>'
            f'<td class="total">{right}</td></tr>'
        )
        if len(rows) == _SHOWN:
            break
    picture = (
        f'<div class="scroll"><table class="doubts"><thead><tr><th>most in doubt</th>{head}</tr>'
        f"</thead><tbody>{''.join(rows.values())}</tbody></table></div>"
    )
    caption = (
        f"The places most in doubt, of at most {_LONGEST} words and one of a sentence, with what "
        "each system, all together and the manual say: B begins a piece of code, I goes on with "
        "it, · is no code. Framed answers are right."
    )
    return figure(picture, caption)


def _short(labels: Sequence[str]) -> str:
    return "".join("·" if label == "O" else label[0] for label in labels)


def _answer(said: str, right: str) -> str:
    return f'<i class="right">{said}</i>' if said == right else f"<i>{said}</i>"


def _excerpt(words: Sequence[str], start: int, end: int) -> str:
    first, last = max(0, start - _AROUND), min(len(words), end + _AROUND)
    before, here, after = (
        html.escape(" ".join(part))
        for part in (words[first:start], words[start:end], words[end:last])
    )
    left, right = "… " if first else "", " …" if last < len(words) else ""
    return f"<td>{left}{before} <mark>{here}</mark> {after}{right}</td>"
