r"""Scores of answers of any length by common n-grams and by edits: GLEU and the word error rate.

**GLEU** of a sentence [1]_: of the n-grams of 1 to 4 labels, an n-gram counted as often as it
occurs, the share that both sequences have, by the larger of the two numbers:

.. math:: \mathrm{GLEU}(y, \hat y) = \frac{\sum_g \min(c_g(y), c_g(\hat y))}
          {\max\bigl(\sum_g c_g(y),\ \sum_g c_g(\hat y)\bigr)},

the smaller of precision and recall. It is symmetric, and 1 for equal sequences only.

**Word error rate**: all edits (insertions, deletions, substitutions) by the number of right words.

References
----------
.. [1] Y. Wu et al., *Google's neural machine translation system: bridging the gap between human
   and machine translation*, 2016, section 5.2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from trellis.domains import samples, strings, text, whole
from trellis.errors import DataError
from trellis.evaluation.edit_distance import edit_distance

__all__ = ["gleu", "sentence_gleu", "word_error_rate"]


def sentence_gleu(gold: Sequence[str], answer: Sequence[str], longest: int = 4) -> float:
    """GLEU of one answer: common n-grams by those of the one that has more.

    Parameters
    ----------
    gold, answer : sequence of str
        Of any lengths. A string is the sequence of its characters.
    longest : int
        The n-grams have 1 to so many labels.

    Returns
    -------
    float
        In [0, 1]; 1 for two empty sequences.

    Examples
    --------
    >>> from trellis.evaluation import sentence_gleu
    >>> round(sentence_gleu("the cat sat".split(), "the cat sat down".split()), 3)
    0.6
    """
    whole(1).check("longest", longest)
    (text | strings).check("gold", gold)
    (text | strings).check("answer", answer)
    if len(gold) == len(answer) == 0:
        return 1.0
    ours, theirs = _ngrams(gold, longest), _ngrams(answer, longest)
    return (ours & theirs).total() / max(ours.total(), theirs.total())


def gleu(gold: Any, answers: Any, longest: int = 4) -> float:
    """Mean GLEU of the sentences.

    Parameters
    ----------
    gold, answers : sequence of sequences of str
        The right answer to each sample, and the answer that is scored.
    longest : int
        The n-grams have 1 to so many labels.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    DataError
        If their numbers differ, or there are none.

    Examples
    --------
    >>> from trellis.evaluation import gleu
    >>> gleu([["a", "cat"], ["a", "dog"]], [["a", "cat"], ["the", "cat"]])
    0.5
    """
    right, said = _pairs(gold, answers)
    return sum(sentence_gleu(a, b, longest) for a, b in zip(right, said, strict=True)) / len(right)


def word_error_rate(gold: Any, answers: Any) -> float:
    """Edits that turn the right answers into those given, by the number of right words.

    Parameters
    ----------
    gold, answers : sequence of sequences of str
        The right answer to each sample, and the answer that is scored.

    Returns
    -------
    float
        At least 0; above 1 if answers are much too long.

    Raises
    ------
    DataError
        If their numbers differ, or gold has no words.

    Examples
    --------
    >>> from trellis.evaluation import word_error_rate
    >>> word_error_rate([["a", "cat"], ["a", "dog"]], [["a", "cat"], ["dog", "s"]])
    0.5
    """
    right, said = _pairs(gold, answers)
    n_words = sum(map(len, right))
    if not n_words:
        raise DataError("gold has no words, by whose number the word error rate is divided")
    return sum(edit_distance(a, b) for a, b in zip(right, said, strict=True)) / n_words


def _ngrams(labels: Sequence[str], longest: int) -> Counter[tuple[str, ...]]:
    sizes = range(1, min(longest, len(labels)) + 1)
    return Counter(tuple(labels[i : i + n]) for n in sizes for i in range(len(labels) - n + 1))


def _pairs(gold: Any, answers: Any) -> tuple[list[Sequence[str]], list[Sequence[str]]]:
    samples.check("gold", gold)
    samples.check("answers", answers)
    right, said = list(gold), list(answers)
    if len(right) != len(said):
        raise DataError(f"gold has {len(right)} samples, there are {len(said)} answers")
    if not right:
        raise DataError("no samples to score")
    return right, said
