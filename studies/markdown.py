"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["markdown"]


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; columns of numbers are right-aligned.

    Examples
    --------
    >>> print(markdown(["n′", "F1"], [["1.5", "93.10"]]))
    | n′ | F1 |
    |---|---:|
    | 1.5 | 93.10 |
    """
    numbers = [
        any(cell[:1] in "+-" or cell[:1].isdigit() for cell in column)
        for column in zip(*rows, strict=True)
    ]
    marks = ["---:" if i and number else "---" for i, number in enumerate(numbers)]
    return "\n".join([_row(head), "|" + "|".join(marks) + "|", *map(_row, rows)])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
