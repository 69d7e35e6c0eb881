r"""Letters to phones: alignment by expectation maximisation, and pronunciation models on top.

Each letter of a word makes a *chunk* of no, one or two phones; the chunks of a word, joined, are
its pronunciation. With :math:`p(c \mid x)` the chance that letter x makes chunk c, the best
alignment of word and phones is found by dynamic programming, the chances are counted anew from the
best alignments of all words, and so on (hard EM). The first chances are from how often letter and
phone meet in one word.

A pronunciation model then is a sequence model that labels letters with chunks.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

__all__ = ["NOTHING", "align_letters", "joined", "letter_features"]

NOTHING = "-"
_FLOOR = -12.0  # log-probability of a chunk that a letter never made
_DOUBLE = -3.0  # what a chunk of two phones costs at first, besides the chances of both

Words = Sequence[Sequence[str]]
Chances = dict[tuple[str, str], float]


def align_letters(
    words: Words, pronunciations: Words, *, n_rounds: int = 4, min_count: int = 3
) -> list[list[str] | None]:
    """Return the chunk of each letter.

    Parameters
    ----------
    words, pronunciations : sequence of sequences of str
        Letters and phones.
    n_rounds : int
        Rounds of EM.
    min_count : int
        Words with a chunk that occurs less often have no alignment.

    Returns
    -------
    list of (list of str, or None where a word has no alignment)

    Examples
    --------
    >>> words = [list("ab"), list("a"), list("b"), list("ba")] * 3
    >>> align_letters(words, [["A", "B"], ["A"], ["B"], ["B", "A"]] * 3)[:2]
    [['A', 'B'], ['A']]
    """
    pairs = list(zip(words, pronunciations, strict=True))
    meet = Counter((x, y) for word, phones in pairs for x in set(word) for y in set(phones))
    total = Counter(x for word, _ in pairs for x in set(word))
    chances: Chances = {key: math.log(n / total[key[0]]) for key, n in meet.items()}
    for word, phones in pairs:
        for first, second in pairwise(phones):
            for x in set(word):
                both = chances[x, first] + chances[x, second]
                chances[x, f"{first}_{second}"] = both + _DOUBLE
    silent = dict.fromkeys(total, -2.0)
    found: list[list[str] | None] = []
    for _ in range(n_rounds):
        found = [_best(word, phones, chances, silent) for word, phones in pairs]
        counts = Counter(
            (x, c)
            for (word, _), chunks in zip(pairs, found, strict=True)
            if chunks is not None
            for x, c in zip(word, chunks, strict=True)
        )
        letters: Counter[str] = Counter()
        for (x, _), n in counts.items():
            letters[x] += n
        chances = {(x, c): math.log(n / letters[x]) for (x, c), n in counts.items()}
        silent = {x: chances.get((x, NOTHING), _FLOOR) for x in total}
    often = Counter(c for chunks in found if chunks is not None for c in chunks)
    return [
        None if chunks is None or any(often[c] < min_count for c in chunks) else chunks
        for chunks in found
    ]


def _best(
    word: Sequence[str], phones: Sequence[str], chances: Chances, silent: dict[str, float]
) -> list[str] | None:
    """Return the most likely chunks, or None if there are too many phones."""
    m = len(phones)
    double = [f"{a}_{b}" for a, b in pairwise(phones)]
    score = [0.0] + [-math.inf] * m  # of the letters so far having made j phones
    back: list[list[int]] = []
    for x in word:
        new, steps = [], []
        for j in range(m + 1):
            best, step = score[j] + silent[x], 0
            if j >= 1:
                one = score[j - 1] + chances.get((x, phones[j - 1]), _FLOOR)
                if one > best:
                    best, step = one, 1
            if j >= 2:
                two = score[j - 2] + chances.get((x, double[j - 2]), _FLOOR)
                if two > best:
                    best, step = two, 2
            new.append(best)
            steps.append(step)
        score = new
        back.append(steps)
    if score[m] == -math.inf:
        return None
    chunks, j = [], m
    for steps in reversed(back):
        step = steps[j]
        chunks.append(NOTHING if step == 0 else "_".join(phones[j - step : j]))
        j -= step
    return chunks[::-1]


def joined(chunks: Iterable[str]) -> list[str]:
    """Return the phones of chunks.

    Examples
    --------
    >>> joined(["k", "-", "k_s"])
    ['k', 'k', 's']
    """
    return [phone for chunk in chunks if chunk != NOTHING for phone in chunk.split("_")]


def letter_features(word: Sequence[str], window: int, longest: int) -> list[list[str]]:
    """Return the n-grams of letters, up to ``longest``, in a window around each letter.

    Examples
    --------
    >>> letter_features("ab", 1, 2)[0]
    ['-1^', '-1^a', '0a', '0ab', '1b']
    """
    text = "^" * window + "".join(word) + "$" * window
    features = []
    for i in range(window, window + len(word)):
        row = []
        for a in range(-window, window + 1):
            for n in range(1, longest + 1):
                if a + n - 1 <= window:
                    row.append(f"{a}{text[i + a : i + a + n]}")
        features.append(row)
    return features
