r"""Files of answers: their formats, and what is to be written in them.

    conll              a label a line, in a column of fields; a blank line after each sample
    jsonl, json        an object a line, or a list of objects: an answer under a key
    csv, tsv           a table with a header: an answer in a cell
    lines              a sample a line, words separated by spaces
    trn                lines with the utterance in brackets: ``the cat sat (utt-1)``
    ctm                ``utterance channel start duration word [confidence]``, a word a line

What one file holds is a class in :mod:`trellis.experts.column_answers`, ``record_answers`` or
``line_answers``: it knows the place of every sample for messages, and gives the text of the same
file with other answers in it. What an answer means is said in
:mod:`trellis.experts.answer_values`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["FORMATS", "Combined"]

FORMATS = ("conll", "jsonl", "json", "csv", "tsv", "lines", "trn", "ctm")


@dataclass(frozen=True)
class Combined:
    """What is to be written: for each sample an answer, how sure it is, and where it came from.

    Attributes
    ----------
    kind : str
    labels : list of (list of str or None)
        For the column and line formats.
    values : list
        The same as users write them: a label, a list, an object; None where there is no answer.
    confidence : list or None
        Numbers, lists or objects of them, likewise.
    rows : list of (int or None)
        The sample of the file that each belongs to; None if the file has none.
    ids : list of str
    key : int, str or None
        The column that is replaced; None: there is a new one.
    id : str or None
        The column of the ids.
    mark : str
        What stands where there is no answer.
    spread : bool
        Whether answers are objects that are no value of a record, but part of it.
    """

    kind: str
    labels: list[list[Any] | None]
    values: list[Any]
    confidence: list[Any] | None
    rows: list[int | None]
    ids: list[str]
    key: int | str | None
    id: str | None
    mark: str
    spread: bool = False
