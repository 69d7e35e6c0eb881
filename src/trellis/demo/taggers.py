"""Seven weak taggers that mark the words of Python's manual that are code.

Six learn from a sixth of the sentences each (:mod:`trellis.demo.manual`), with different features
and learners; one is a rule. They err in different places, so there is something to combine.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trellis.models import ChainCRF, ChainPerceptron

__all__ = ["Rule", "weak_taggers"]

_LEARNERS: Mapping[str, tuple[type[Any], str]] = {
    "CRF, spelling": (ChainCRF, "prefix(word, 1..3); suffix(word, 1..3); short_shape(word)"),
    "CRF, words": (ChainCRF, "word[0..1]; short_shape(word)"),
    "CRF, neighbours": (ChainCRF, "word[-1]; word[1]; short_shape(word)[-1..1]"),
    "perceptron, letters": (ChainPerceptron, "ngrams(word, 2..3)"),
    "perceptron, words": (ChainPerceptron, "word[-1..1]; short_shape(word)"),
    "perceptron, pairs": (ChainPerceptron, "word[-1..0] & word[0..1]; suffix(word, 1..2)"),
}


class Rule:
    """Words with the marks of code are code, and so are keywords of four letters or more.

    Examples
    --------
    >>> Rule().predict([["the", "__enter__()", "method"]])
    [['O', 'B-code', 'O']]
    """

    _MARKS = re.compile(r"[_()\[\]=<>'.]|[a-z][A-Z]")

    def predict(self, samples: Iterable[Sequence[str]]) -> list[list[str]]:
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
    >>> from trellis.demo.manual import code_words
    >>> words, labels = code_words(seed=0, n=12)
    >>> len(weak_taggers(words, labels, seed=0))
    7
    """
    taggers: dict[str, Any] = {}
    for k, (name, (model, features)) in enumerate(_LEARNERS.items()):
        own = slice(k * len(words) // len(_LEARNERS), (k + 1) * len(words) // len(_LEARNERS))
        taggers[name] = model(features, random_state=seed).fit(words[own], labels[own])
    return taggers | {"rule": Rule()}
