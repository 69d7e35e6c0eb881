"""Sentences of Python's own manual, and which of their words are code.

Every Python has the text of its language reference, for ``help()`` (``pydoc_data.topics``). There,
code stands in double quotes: «The "with" statement is used to wrap the execution of a block with
methods defined by a context manager». A sample is a sentence without these quotes, a list of words;
its labels say which of them are code: ``B-code`` and ``I-code`` for the words of one piece, else
``O``. The first «with» above is code, the second is not: the neighbours have to tell.

Chapters repeat paragraphs of each other, so each sentence is taken once. The text differs a little
from one version of Python to the next, and with it every figure that is measured on it.
"""

from __future__ import annotations

import re
from functools import cache

import numpy as np

from trellis.domains import nothing, whole
from trellis.errors import DataError

__all__ = ["code_words"]

_PARAGRAPH = re.compile(r"\n\s*\n")
_NO_PROSE = ("::=", ">>>", "***", "===", "---", "...", "+-", "|")
_BULLET = re.compile(r"^(\*|\d+\.|\[\d+\])\s+")
_EMPHASIS = re.compile(r"\*+([A-Za-z][\w ]*)\*+")
_SENTENCE = re.compile(r"(?<=[.:;])(?<!e\.g\.)(?<!i\.e\.)\s+(?=[A-Z\"])")
_CODE = re.compile(r'(?:^|(?<=[\s(]))"([^"]+)"(?=[\s).,;:’…–]|$)')
_PUNCTUATION = ".,;:!?()[]*“”‘’–—…"
_SHORTEST, _LONGEST = 5, 40

_Sentence = tuple[tuple[str, ...], tuple[str, ...]]


def code_words(seed: int = 0, n: int | None = None) -> tuple[list[list[str]], list[list[str]]]:
    """Sentences of Python's manual in random order, and which of their words are code.

    Parameters
    ----------
    seed : int
        Of the order.
    n : int, optional
        How many; None: all.

    Examples
    --------
    >>> words, labels = code_words(seed=0, n=100)
    >>> len(words), sorted({label for sentence in labels for label in sentence})
    (100, ['B-code', 'I-code', 'O'])
    """
    whole(0).check("seed", seed)
    (nothing | whole(1)).check("n", n)
    known = _sentences()
    order = np.random.default_rng(seed).permutation(len(known))[:n].tolist()
    return [list(known[i][0]) for i in order], [list(known[i][1]) for i in order]


@cache
def _sentences() -> tuple[_Sentence, ...]:
    """All sentences of prose in the manual, each once, in its order."""
    try:
        from pydoc_data.topics import topics
    except ImportError:
        raise DataError(
            "this Python comes without the text of its manual (pydoc_data); one from python.org, "
            "or the whole standard library of your system's package, has it"
        ) from None
    found: dict[_Sentence, None] = {}
    for chapter in sorted(topics):
        for paragraph in _PARAGRAPH.split(topics[chapter]):
            if any(mark in paragraph for mark in _NO_PROSE):
                continue
            text = _EMPHASIS.sub(r" \1 ", _BULLET.sub("", " ".join(paragraph.split())))
            for sentence in _SENTENCE.split(text):
                labelled = _labelled(sentence)
                if labelled is not None:
                    found[labelled] = None
    return tuple(found)


def _labelled(sentence: str) -> _Sentence | None:
    """The words and labels of a sentence; None if it is none, or it is not clear what is quoted."""
    words: list[str] = []
    labels: list[str] = []
    for number, part in enumerate(_CODE.split(sentence)):
        is_code = number % 2 == 1  # every other part stood in quotes
        if not is_code and '"' in part:
            return None
        said = part.split() if is_code else [word.strip(_PUNCTUATION) for word in part.split()]
        said = [word for word in said if word]
        words += said
        labels += ["B-code", *["I-code"] * len(said)][: len(said)] if is_code else ["O"] * len(said)
    ends_well = sentence[-1:] in {".", ":", ";"}
    return (
        (tuple(words), tuple(labels)) if ends_well and _SHORTEST <= len(words) <= _LONGEST else None
    )
