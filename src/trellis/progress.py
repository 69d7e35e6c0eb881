"""Progress: one line for each pass, on a terminal only.

The library never prints; everything of interest is also logged under ``trellis``.
"""

from __future__ import annotations

import logging
import sys
from typing import TextIO

__all__ = ["Reporter"]

_log = logging.getLogger("trellis")


class Reporter:
    """Writes lines to a terminal; silent elsewhere unless ``always``.

    Parameters
    ----------
    enabled : bool
        False: never write.
    always : bool
        Write also when the stream is no terminal.
    stream : text stream
        Standard error by default.
    """

    def __init__(
        self, enabled: bool = True, *, always: bool = False, stream: TextIO | None = None
    ) -> None:
        self._stream = sys.stderr if stream is None else stream  # None under pythonw
        terminal = self._stream is not None and self._stream.isatty()
        self._shown = enabled and self._stream is not None and (always or terminal)

    def line(self, text: str) -> None:
        """Write one line."""
        _log.info(text)
        if self._shown:
            self._stream.write(text + "\n")
            self._stream.flush()
