"""Column files of answers: a label a line, in a column of fields; a blank line ends a sample."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from trellis.corpus.columnfile import FieldTable, check_writable, code_column
from trellis.domains import is_whole
from trellis.errors import DataError
from trellis.experts.answer_formats import Combined
from trellis.experts.answer_values import Missing

__all__ = ["ColumnFile"]


@dataclass(frozen=True, eq=False)
class ColumnFile:
    """A file with a label a line."""

    table: FieldTable
    format: str = "conll"

    @property
    def name(self) -> str:
        """Of the file."""
        return self.table.name

    def __len__(self) -> int:
        return len(self.table.sample_ptr) - 1

    def place(self, sample: int) -> str:
        """Where a sample begins."""
        table = self.table
        return f"{table.name}, line {table.line_number[table.sample_ptr[sample]]}"

    def answers(self, column: Any, marks: Sequence[str]) -> list[Any]:
        """The labels in a column; None for those that are a mark."""
        table = self.table
        fields = self._fields(column)
        coded = code_column(table, fields)
        values: list[str | None] = [None if v in marks else v for v in coded.values]
        labels = [values[code] for code in coded.codes]
        ends = table.sample_ptr.tolist()
        if None not in values:
            return [labels[a:b] for a, b in pairwise(ends)]
        silent = Missing(f"marked {next(m for m in marks if m in coded.values)!r}")
        return [
            silent if all(label is None for label in labels[a:b]) else labels[a:b]
            for a, b in pairwise(ends)
        ]

    def _fields(self, column: Any) -> Any:
        """The field of each line that belongs to a column."""
        number = _column_number(column)
        table = self.table
        counts = np.diff(table.line_ptr)
        short = np.flatnonzero(counts < abs(number))
        if short.size:
            raise table.fail(int(short[0]), f"{counts[short[0]]} fields, expected column {number}")
        return table.line_ptr[:-1] + number - 1 if number > 0 else table.line_ptr[1:] + number

    def text(self, combined: Combined) -> str:
        """The file with the combined labels in a column, and their confidence in one more."""
        labels = [y for answer in combined.labels for y in answer or ()]
        check_writable((y for y in labels if y is not None), "an answer", "a column file", " \t")
        if combined.kind != "labels":
            return self._of_other_lengths(combined)
        table = self.table
        data = table.buffer.tobytes()
        last_field = table.line_ptr[1:] - 1
        replaced = last_field if combined.key is None else self._fields(combined.key)
        pieces = []
        done = 0
        lines = iter(
            zip(
                table.first[replaced].tolist(), table.last[replaced].tolist(),
                table.last[last_field].tolist(), table.first[table.line_ptr[:-1]].tolist(),
                strict=True,
            )
        )  # fmt: skip
        for row, answer in enumerate(combined.labels):
            length = int(table.sample_ptr[row + 1] - table.sample_ptr[row])
            if answer is not None and len(answer) != length:
                raise DataError(f"{self.place(row)}: {len(answer)} labels for {length} lines")
            sure = None if combined.confidence is None else combined.confidence[row]
            for k in range(length):
                first, last, end, begin = next(lines)
                label = (None if answer is None else answer[k]) or combined.mark
                gap = b"\t" if b"\t" in data[begin:end] else b" "
                if combined.key is None:
                    pieces += [data[done:end], gap, label.encode()]
                else:
                    pieces += [data[done:first], label.encode(), data[last:end]]
                if combined.confidence is not None:
                    number = combined.mark if sure is None else f"{sure[k]:.4f}"
                    pieces += [gap, number.encode()]
                done = end
        return b"".join([*pieces, data[done:]]).decode()

    def _of_other_lengths(self, combined: Combined) -> str:
        lines = []
        for row, answer in enumerate(combined.labels):
            for k, label in enumerate([combined.mark] if answer is None else answer):
                sure = None if combined.confidence is None else combined.confidence[row]
                lines.append(f"{label} {sure[k]:.4f}" if sure is not None else label)
            lines.append("")
        return "".join(f"{line}\n" for line in lines)


def _column_number(column: Any) -> int:
    if isinstance(column, str) and re.fullmatch(r"-?[1-9][0-9]{0,8}", column):
        column = int(column)
    if not is_whole(column) or column == 0:
        raise DataError(
            f"column is {column!r}: expected the number of a column of a column file, 1 (the "
            "first), 2, ... or -1 (the last)"
        )
    return int(column)
