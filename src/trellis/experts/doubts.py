"""Where a person should look first: answers that experts differ on, the least sure ones.

Of label sequences each run of positions on which somebody differs from the answer is one doubt, as
sure as its least sure position; of sequences of different lengths the whole sequence; of spans each
span that is not given by all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trellis.arrays import Float64s
from trellis.experts.outputs import ExpertOutputs, as_gold

__all__ = ["Doubt", "label_doubts", "span_doubts", "word_doubts"]


@dataclass(frozen=True)
class Doubt:
    """An answer that somebody should look at.

    Attributes
    ----------
    sample : int
    start, end : int
        The positions that the answer is about.
    answer : str
        What is answered: a label, or the type of a span.
    confidence : float
        Probability that it is right.
    said : tuple of str
        What each expert says there; "" if nothing.
    """

    sample: int
    start: int
    end: int
    answer: str
    confidence: float
    said: tuple[str, ...]


def label_doubts(
    answers: Sequence[list[str]], levels: Sequence[Float64s], outputs: ExpertOutputs
) -> Iterator[Doubt]:
    """Doubts about label sequences, given how sure their positions are.

    Examples
    --------
    >>> import numpy as np
    >>> from trellis.experts import as_outputs
    >>> said = as_outputs([[["a", "b"]], [["a", "c"]], [["a", "c"]]])
    >>> [doubt] = label_doubts([["a", "c"]], [np.array([0.9, 0.6])], said)
    >>> doubt.start, doubt.answer, doubt.said
    (1, 'c', ('b', 'c', 'c'))
    """
    chosen, outputs = as_gold(answers, outputs)
    names = np.array([*outputs.labels, ""], dtype=object)  # -1, nothing, is the last one
    split = ((outputs.codes != chosen[:, None]) & (outputs.codes >= 0)).any(axis=1)
    before, after = (np.roll(split, step) for step in (1, -1))
    before[outputs.offsets[:-1]] = after[outputs.offsets[1:] - 1] = False  # runs end with samples
    starts, ends = np.flatnonzero(split & ~before), np.flatnonzero(split & ~after) + 1
    samples = np.searchsorted(outputs.offsets, starts, side="right") - 1
    sure, firsts = np.concatenate(levels), outputs.offsets[samples]
    for i, a, b, first in zip(*(x.tolist() for x in (samples, starts, ends, firsts)), strict=True):
        told = tuple(
            "" if (said < 0).all() else " ".join(names[said]) for said in outputs.codes[a:b].T
        )
        answer, level = " ".join(names[chosen[a:b]]), float(sure[a:b].min())
        yield Doubt(i, a - first, b - first, answer, level, told)


def word_doubts(
    answers: Sequence[list[str]], levels: Sequence[Float64s], columns: Sequence[list[Any]]
) -> Iterator[Doubt]:
    """Doubts about sequences of different lengths, given how sure their words are.

    Examples
    --------
    >>> import numpy as np
    >>> [doubt] = word_doubts([["a"]], [np.array([0.6])], [[["a"]], [["a", "b"]]])
    >>> doubt.answer, doubt.said
    ('a', ('a', 'a b'))
    """
    for i, (answer, level) in enumerate(zip(answers, levels, strict=True)):
        said = [column[i] for column in columns]
        if any(one != answer for one in said if one is not None):
            sure = float(np.mean(level)) if len(level) else 0.0
            lines = tuple("" if one is None else " ".join(one) for one in said)
            yield Doubt(i, 0, len(answer), " ".join(answer), sure, lines)


def span_doubts(
    found: Sequence[list[tuple[int, int, str, float]]], columns: Sequence[list[Any]]
) -> Iterator[Doubt]:
    """Doubts about spans (start, end, type, probability), and about those that are left out.

    Examples
    --------
    >>> [doubt] = span_doubts([[]], [[[(0, 2, "X")]], [[]], [[]]])
    >>> doubt.start, doubt.end, doubt.answer, doubt.said
    (0, 2, '-', ('X', '-', '-'))
    """
    for i, spans in enumerate(found):
        given = [None if column[i] is None else {s[:3] for s in column[i]} for column in columns]
        awake = [one for one in given if one is not None]
        chosen = {span[:3]: span[3] for span in spans}
        for span in sorted(set().union(*awake)):
            votes = sum(span in one for one in awake)
            if span in chosen and votes == len(awake):
                continue
            # Nobody has learned how sure it is that a span is none; the votes say something.
            sure = chosen.get(span, 1 - (votes + 0.25) / (len(awake) + 0.5))
            told = tuple("" if g is None else span[2] if span in g else "-" for g in given)
            answer = span[2] if span in chosen else "-"
            yield Doubt(i, span[0], span[1], answer, float(sure), told)
