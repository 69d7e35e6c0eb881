"""Segmented text: one sentence a line, words separated by spaces; characters become positions.

Each character of a word gets a tag of the BMES scheme (begin, middle, end, single), so that word
segmentation is sequence labelling.
"""

from __future__ import annotations

import numpy as np

from trellis.corpus.corpus import Column, Corpus, bounds
from trellis.corpus.labels import Labels
from trellis.files.text import Source, read_text

__all__ = ["read_segmented"]


def read_segmented(source: Source, *, segmented: bool = True) -> Corpus:
    r"""Read text for word segmentation.

    Parameters
    ----------
    source : path, "-" or open file
        One sentence a line; spaces separate words.
    segmented : bool
        False for text whose words are not known: spaces are dropped and there are no labels.

    Returns
    -------
    Corpus
        With the column ``char`` and, if segmented, BMES labels.

    Examples
    --------
    >>> import io
    >>> from trellis import read_segmented
    >>> corpus = read_segmented(io.StringIO("ab c\n"))
    >>> corpus[0].columns["char"], corpus[0].labels
    (['a', 'b', 'c'], ['B', 'E', 'S'])
    """
    _, text = read_text(source)
    points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    newline = points == ord("\n")
    is_space = newline | np.isin(points, [ord(c) for c in " \t\r"])
    is_character = ~is_space
    # Sentences: the characters between two line breaks, blank lines left out.
    before = bounds(is_character)
    ends = np.append(before[:-1][newline], before[-1])
    offsets = np.unique(np.append(0, ends)).astype(np.int64)
    where = np.flatnonzero(is_character)
    edge = np.concatenate([[True], is_space, [True]])  # a space, or the end of the text
    starts_word, ends_word = edge[where], edge[where + 2]
    tags = np.where(starts_word, np.where(ends_word, 3, 0), np.where(ends_word, 2, 1))
    distinct, codes = np.unique(points[where], return_inverse=True)
    column = Column(codes.astype(np.int32), [chr(c) for c in distinct])
    labels = Labels.from_codes(tags.astype(np.int32), "BMES") if segmented else None
    return Corpus(offsets, {"char": column}, labels=labels)
