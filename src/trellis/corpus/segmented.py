"""Segmented text: one sentence a line, words separated by spaces; characters become positions.

Each character of a word gets a tag of the BMES scheme (begin, middle, end, single), so that word
segmentation is sequence labelling.
"""

from __future__ import annotations

import numpy as np

from trellis.corpus.columnfile import Source, read_fields
from trellis.corpus.corpus import Column, Corpus
from trellis.corpus.labels import Labels

__all__ = ["read_segmented"]


def read_segmented(source: Source, *, segmented: bool = True) -> Corpus:
    """Read text for word segmentation.

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
    >>> corpus = read_segmented(io.StringIO("ab c\\n"))
    >>> corpus[0].columns["char"], corpus[0].labels
    (['a', 'b', 'c'], ['B', 'E', 'S'])
    """
    table = read_fields(source, tabs_only=False)
    characters: list[str] = []
    tags: list[int] = []
    lengths = []
    for line in range(len(table.line_number)):
        before = len(characters)
        for field in table.fields_of(line):
            try:
                word = table.text(field)
            except UnicodeDecodeError:
                raise table.fail(line, "not UTF-8 text; convert the file to UTF-8") from None
            characters += word
            tags += [3] if len(word) == 1 else [0, *[1] * (len(word) - 2), 2]
        lengths.append(len(characters) - before)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    labels = Labels.from_codes(np.array(tags, np.int32), "BMES") if segmented else None
    return Corpus(offsets, {"char": Column.from_strings(characters)}, labels=labels)

