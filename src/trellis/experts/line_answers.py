"""Lines of words as answers: plain lines, and the transcripts of speech recognisers (trn, ctm)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from trellis.corpus.columnfile import check_writable
from trellis.errors import DataError
from trellis.experts.answer_formats import Combined
from trellis.experts.answer_values import Missing
from trellis.files.text import Source, read_text

__all__ = ["CTM_LINE", "TRN_LINE", "LineFile", "read_ctm", "read_lines", "read_trn"]

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
CTM_LINE = re.compile(rf"\S+\s+\S+\s+{_NUMBER}\s+{_NUMBER}\s+\S+(?:\s|$)")
TRN_LINE = re.compile(
    r"(?P<words>.*?)\s*\((?P<last>[^()\s]+)\)|\((?P<first>[^()\s]+)\)\s+(?P<rest>.*)"
)


@dataclass(frozen=True, eq=False)
class LineFile:
    """A file with a sequence of words a line, or for each utterance."""

    name: str
    format: str
    words: list[list[str]]
    lines: list[int]
    utterances: list[str] | None = None
    channels: list[str] = field(default_factory=list)  # of utterances in a ctm file
    odd: list[int] = field(default_factory=list)  # lines that could not be read

    def __len__(self) -> int:
        return len(self.words)

    def place(self, sample: int) -> str:
        """Where a sample is."""
        return f"{self.name}, line {self.lines[sample]}"

    def answers(self, marks: Sequence[str]) -> list[Any]:
        """The words of each sample."""
        return [
            Missing(f"marked {words[0]!r}") if len(words) == 1 and words[0] in marks else words
            for words in self.words
        ]

    def text(self, combined: Combined) -> str:
        """A line for each sample, with its utterance; confidences after a tab."""
        if self.utterances is not None:
            check_writable(combined.ids, "an utterance", "a trn file", " \t()")
        lines = []
        for i, answer in enumerate(combined.labels):
            words = [combined.mark] if answer is None else [y or combined.mark for y in answer]
            check_writable(words, "an answer", "a file of lines", " \t")
            line = " ".join(words)
            if self.utterances is not None:
                line = f"{line} ({combined.ids[i]})".lstrip()
            if combined.confidence is not None:
                sure = combined.confidence[i]
                numbers = [] if sure is None else sure if isinstance(sure, list) else [sure]
                line += "\t" + " ".join(f"{c:.4f}" for c in numbers)
            lines.append(f"{line}\n")
        return "".join(lines)


def _text_lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def read_lines(source: Source) -> LineFile:
    """A sample a line."""
    name, text = read_text(source)
    rows = _text_lines(text)
    return LineFile(name, "lines", [row.split() for row in rows], list(range(1, len(rows) + 1)))


def read_trn(source: Source) -> LineFile:
    """Words, and the utterance in brackets, a line."""
    name, text = read_text(source)
    words, lines, utterances = [], [], []
    odd = []
    for number, row in enumerate(_text_lines(text), 1):
        if not row.strip() or row.startswith(";;"):
            continue
        found = TRN_LINE.fullmatch(row.strip())
        if found is None:
            odd.append(number)
            continue
        words.append((found["words"] if found["last"] else found["rest"]).split())
        utterances.append(found["last"] or found["first"])
        lines.append(number)
    if odd and not words:
        raise DataError(
            f"{name}, line {odd[0]}: expected words and an utterance in brackets, «the cat sat "
            "(utt-1)»; for lines without utterances, the format is lines"
        )
    return LineFile(name, "trn", words, lines, utterances, odd=odd)


def read_ctm(source: Source) -> LineFile:
    """A word a line, with its utterance, channel and time."""
    name, text = read_text(source)
    said: dict[tuple[str, str], list[tuple[float, str]]] = {}
    first: list[int] = []
    odd = []
    for number, row in enumerate(_text_lines(text), 1):
        fields = row.split()
        if not fields or row.startswith(";;"):
            continue
        start = _time(fields[2]) if len(fields) >= 5 else None
        if start is None or _time(fields[3]) is None:
            odd.append(number)
            continue
        key = (fields[0], fields[1])
        if key not in said:
            first.append(number)
        said.setdefault(key, []).append((start, fields[4]))
    if odd and not said:
        raise DataError(
            f"{name}, line {odd[0]}: expected utterance, channel, start, duration and word, and "
            "perhaps a confidence"
        )
    words = [[word for _, word in sorted(timed, key=lambda x: x[0])] for timed in said.values()]
    utterances = [utterance for utterance, _ in said]
    channels = [channel for _, channel in said]
    return LineFile(name, "ctm", words, first, utterances, channels, odd)


def _time(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
