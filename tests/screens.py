"""Terminals for tests: one that remembers when it was written to, and what one shows."""

from __future__ import annotations

import io
import re
import time

import numpy as np


class Terminal(io.StringIO):
    """A terminal that knows when it was written to."""

    def __init__(self):
        super().__init__()
        self.times = [time.monotonic()]

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.times.append(time.monotonic())
        return super().write(text)

    def silence(self) -> float:
        """The longest time without a sign, up to now."""
        return max(np.diff([*self.times, time.monotonic()]))


def screen(text):
    """What a terminal shows of what was written to it: its lines, and where the cursor is."""
    lines, column = [""], 0
    for piece in re.findall(r"\x1b\[K|\x1b\[A|.|\n", text):
        if piece == "\x1b[K":
            lines[-1] = lines[-1][:column]
        elif piece == "\n":
            lines.append("")
            column = 0
        elif piece == "\r":
            column = 0
        else:
            lines[-1] = lines[-1][:column].ljust(column) + piece + lines[-1][column + 1 :]
            column += 1
    return [line.rstrip() for line in lines], column
