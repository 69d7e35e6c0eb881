"""An attack whose cases do all that cases can do, by their numbers."""

from __future__ import annotations

import ctypes
import time

from trellis.errors import DataError


def cases():
    """Of ten numbers drawn, one is a crash, one an error, one a hang if it is told to."""

    def case(rng):
        number = int(rng.integers(10))
        if number == 0:
            ctypes.string_at(0)
        if number == 1:
            raise KeyError("no such thing")
        if number == 2:
            raise DataError("as documented")
        if number == 3:
            time.sleep(300)
        return "used"

    return case
