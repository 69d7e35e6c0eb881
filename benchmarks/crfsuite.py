"""python-crfsuite, and the chunking features of CRFsuite's example as attribute strings.

Same features as the template set ``chunking``: words and tags in a window of two, pairs and triples
of neighbours, and flags at both ends; what reaches beyond the sentence gives nothing.
"""

from __future__ import annotations

import lzma
import re
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

Sentence = list[tuple[str, str, str]]
Items = list[list[str]]

_TEMPLATES: list[tuple[tuple[int, int], ...]] = [
    *(((0, k),) for k in range(-2, 3)),
    *(((0, k), (0, k + 1)) for k in (-1, 0)),
    *(((1, k),) for k in range(-2, 3)),
    *(((1, k), (1, k + 1)) for k in range(-2, 2)),
    *(((1, k), (1, k + 1), (1, k + 2)) for k in range(-2, 1)),
]
_NAMES = ["|".join(f"{'wp'[c]}[{k}]" for c, k in template) for template in _TEMPLATES]


def is_there() -> bool:
    """Whether python-crfsuite is installed; says so if it is not."""
    found = find_spec("pycrfsuite") is not None
    if not found:
        print("python-crfsuite is left out: not installed (it comes with the extra «bench»)")
    return found


def train(
    path: str, items: Iterable[Items], labels: Iterable[list[str]], algorithm: str, **options: Any
) -> tuple[str, float]:
    """Write a model; returns the log of training and the seconds that its iterations took."""
    import pycrfsuite

    trainer = pycrfsuite.Trainer(algorithm=algorithm, verbose=False)
    trainer.set_params(options)
    for x, y in zip(items, labels, strict=True):
        trainer.append(pycrfsuite.ItemSequence(x), y)
    trainer.train(path)
    log = "".join(trainer.logparser.log)
    return log, float(re.findall(r"Total seconds required for training: ([0-9.]+)", log)[-1])


def tagger(path: str) -> Callable[[Iterable[Items]], list[list[str]]]:
    """Open a model, which gives labels to samples."""
    import pycrfsuite

    model = pycrfsuite.Tagger()
    model.open(path)
    return lambda items: [model.tag(pycrfsuite.ItemSequence(x)) for x in items]


def read(path: Path) -> list[Sentence]:
    """Sentences of (word, tag, chunk)."""
    sentences: list[Sentence] = []
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for block in file.read().split("\n\n"):
            if block.strip():
                sentences.append([tuple(line.split()) for line in block.strip().split("\n")])
    return sentences


def attributes(sentence: Sentence) -> Items:
    """Attribute strings of every position."""
    n = len(sentence)
    items = []
    for t in range(n):
        here = []
        for name, template in zip(_NAMES, _TEMPLATES, strict=True):
            if t + template[0][1] >= 0 and t + template[-1][1] < n:
                here.append(name + "=" + "|".join(sentence[t + k][c] for c, k in template))
        if t == 0:
            here.append("__BOS__")
        if t == n - 1:
            here.append("__EOS__")
        items.append(here)
    return items
