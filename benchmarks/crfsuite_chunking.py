"""The chunking features of CRFsuite's example (as attribute strings), for python-crfsuite.

Same features as the template set ``chunking``: words and tags in a window of two, pairs and triples
of neighbours, and flags at both ends; what reaches beyond the sentence gives nothing.
"""

from __future__ import annotations

import lzma
from pathlib import Path

Sentence = list[tuple[str, str, str]]

_TEMPLATES: list[tuple[tuple[int, int], ...]] = [
    *(((0, k),) for k in range(-2, 3)),
    *(((0, k), (0, k + 1)) for k in (-1, 0)),
    *(((1, k),) for k in range(-2, 3)),
    *(((1, k), (1, k + 1)) for k in range(-2, 2)),
    *(((1, k), (1, k + 1), (1, k + 2)) for k in range(-2, 1)),
]
_NAMES = ["|".join(f"{'wp'[c]}[{k}]" for c, k in template) for template in _TEMPLATES]


def read(path: Path) -> list[Sentence]:
    """Sentences of (word, tag, chunk)."""
    sentences: list[Sentence] = []
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for block in file.read().split("\n\n"):
            if block.strip():
                sentences.append([tuple(line.split()) for line in block.strip().split("\n")])
    return sentences


def attributes(sentence: Sentence) -> list[list[str]]:
    """Attribute strings of every position."""
    n = len(sentence)
    found = []
    for t in range(n):
        here = []
        for name, template in zip(_NAMES, _TEMPLATES, strict=True):
            if t + template[0][1] >= 0 and t + template[-1][1] < n:
                here.append(name + "=" + "|".join(sentence[t + k][c] for c, k in template))
        if t == 0:
            here.append("__BOS__")
        if t == n - 1:
            here.append("__EOS__")
        found.append(here)
    return found
