"""Transcripts of sentences with mistakes, made up: answers of different lengths to be combined.

Sentences are those of CoNLL-2000's test part. Each system gets words wrong at its own rate: 60 % of
these are other words, 20 % are left out, 20 % are followed by a word too many. If mistakes are
shared, that part of what is wrong is what others get wrong, too.
"""

from __future__ import annotations

import lzma
import random

from studies.datasets.folder import data_folder

Answers = list[list[list[str] | None]]


def sentences() -> list[list[str]]:
    """Sentences of CoNLL-2000's test part, of five words at least."""
    with lzma.open(data_folder("conll2000") / "test.txt.xz", "rt", encoding="utf-8") as file:
        blocks = file.read().lower().split("\n\n")
    found = [[line.split()[0] for line in block.splitlines() if line] for block in blocks]
    return [sentence for sentence in found if len(sentence) >= 5]


def transcripts(
    seed: int, n: int, rates: tuple[float, ...], *, shared: float = 0.0, missing: float = 0.0
) -> tuple[Answers, list[list[str]]]:
    """Copies of sentences with mistakes at these rates, and the sentences."""
    rng = random.Random(seed)
    known = sentences()
    vocabulary = [word for sentence in known for word in sentence]
    gold = rng.sample(known, min(n, len(known)))
    hard = [[rng.random() for _ in sentence] for sentence in gold]
    misheard: dict[str, str] = {}

    def copy(sentence: list[str], hardness: list[float], rate: float) -> list[str]:
        heard = []
        for word, level in zip(sentence, hardness, strict=True):
            chance = level if rng.random() < shared else rng.random()
            kind = rng.random()
            if chance >= rate:
                heard.append(word)
            elif kind < 0.6:
                other = rng.choice(vocabulary)
                heard.append(misheard.setdefault(word, other) if rng.random() < shared else other)
            elif kind < 0.8:
                heard += [word, rng.choice(vocabulary)]
        return heard

    said: Answers = [
        [None if rng.random() < missing else copy(y, h, rate)
         for y, h in zip(gold, hard, strict=True)]
        for rate in rates
    ]  # fmt: skip
    for i, right in enumerate(gold):  # each sentence is heard by two at least
        while sum(column[i] is not None for column in said) < 2:
            j = rng.randrange(len(said))
            said[j][i] = said[j][i] or copy(right, hard[i], rates[j])
    return said, gold
